"""Records of a window, matched: every fault is found under its name and at its offset, and nothing else is."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from sinks.kinds.offsets.exact_runs import Run
from sinks.verify.matching import Edges, Matched, match
from sinks.verify.partition_verdicts import Difference, FoundDifference
from streaming.verify.rows import ContentRow, Fields

Records = list[tuple[int, Fields]]
"""Offset and fields."""


def record(number: int, value: int | None = None) -> Fields:
    return Fields(number % 7 + 1, 1000 + number if value is None else value, 1, 10_000 + number)


def log(fields: list[Fields], start: int = 0) -> Records:
    return [(start + at, one) for at, one in enumerate(fields)]


def matched(source: Records, target: Records, edges: Edges = Edges()) -> Matched:  # noqa: B008 - a value
    """What Spark does before: contents as often on both sides become runs."""
    contents: dict[Fields, tuple[list[int], list[int]]] = {}
    for side, records in enumerate((source, target)):
        for offset, fields in records:
            contents.setdefault(fields, ([], []))[side].append(offset)
    pairs = sorted(
        pair
        for ours, theirs in contents.values()
        if len(ours) == len(theirs)
        for pair in zip(ours, theirs, strict=True)
    )
    runs: list[Run] = []
    for upstream, downstream in pairs:
        if runs and (runs[-1].upstream_end, runs[-1].downstream_end) == (upstream, downstream):
            runs[-1] = Run(runs[-1].upstream, runs[-1].downstream, runs[-1].length + 1)
        else:
            runs.append(Run(upstream, downstream, 1))
    odd = [
        ContentRow(0, 0, ours, theirs, fields)
        for fields, (ours, theirs) in contents.items()
        if len(ours) != len(theirs)
    ]
    return match(runs, odd, edges)


def found(source: Records, target: Records, edges: Edges = Edges()) -> list[FoundDifference]:  # noqa: B008 - a value
    return matched(source, target, edges).findings


SOURCE = [record(number) for number in range(10)]


def test_equal_logs_have_no_finding_and_one_run() -> None:
    result = matched(log(SOURCE, 5), log(SOURCE, 90))
    assert result.findings == []
    assert result.runs == [Run(5, 90, 10)]


def test_a_dropped_record_is_missing_at_its_offset() -> None:
    assert found(log(SOURCE), log([*SOURCE[:4], *SOURCE[5:]])) == [
        FoundDifference(Difference.MISSING, 4, None, 1, (), SOURCE[4].timestamp)
    ]


def test_a_record_that_comes_again_is_a_duplicate_of_the_first() -> None:
    target = [*SOURCE[:6], *SOURCE[4:]]
    assert found(log(SOURCE), log(target)) == [
        FoundDifference(Difference.DUPLICATE, 4, 6, 2, (), SOURCE[4].timestamp),
    ]


def test_a_changed_record_says_which_fields_differ() -> None:
    for name in Fields._fields:
        target = [*SOURCE]
        target[3] = target[3]._replace(**{name: 77})
        assert found(log(SOURCE), log(target)) == [
            FoundDifference(Difference.CHANGED, 3, 3, 1, (name,), SOURCE[3].timestamp)
        ]


def test_two_records_exchanged_are_one_out_of_order() -> None:
    target = [*SOURCE]
    target[3], target[4] = target[4], target[3]
    (finding,) = found(log(SOURCE), log(target))
    assert finding.difference is Difference.REORDERED
    assert (finding.upstream, finding.downstream) in {(3, 4), (4, 3)}


def test_a_record_of_somebody_else_is_extra() -> None:
    other = Fields(99, 99, 99, 99)
    assert found(log(SOURCE), log([*SOURCE[:4], other, *SOURCE[4:]])) == [
        FoundDifference(Difference.EXTRA, None, 4, 1, (), 99)
    ]


def test_what_follows_the_last_copy_is_pending_at_an_open_end_and_missing_at_a_closed_one() -> None:
    assert matched(log(SOURCE), log(SOURCE[:7]), Edges(ends_open=True)).pending == [7, 8, 9]
    assert found(log(SOURCE), log(SOURCE[:7])) == [
        FoundDifference(Difference.MISSING, 7, None, 3, (), SOURCE[7].timestamp)
    ]


def test_a_gap_before_the_last_copy_is_missing_at_an_open_end_too() -> None:
    result = matched(log(SOURCE), log([*SOURCE[:5], SOURCE[6]]), Edges(ends_open=True))
    assert result.findings == [FoundDifference(Difference.MISSING, 5, None, 1, (), SOURCE[5].timestamp)]
    assert result.pending == [7, 8, 9]


def test_a_last_copy_that_was_changed_is_no_pending_record() -> None:
    target = [*SOURCE[:4], SOURCE[4]._replace(value=5)]
    result = matched(log(SOURCE), log(target), Edges(ends_open=True))
    assert [(one.difference, one.upstream) for one in result.findings] == [(Difference.CHANGED, 4)]
    assert result.pending == [5, 6, 7, 8, 9]


def test_a_foreign_record_with_the_key_of_a_pending_one_makes_no_record_missing() -> None:
    """Neither its value nor its timestamp is that of the pending record, so both are records of their own."""
    foreign = Fields(SOURCE[8].key, 77, 1, 99)
    for timestamps in (True, False):
        source = [one if timestamps else one._replace(timestamp=None) for one in SOURCE]
        other = foreign if timestamps else foreign._replace(timestamp=None)
        result = matched(log(source), log([*source[:5], other]), Edges(ends_open=True))
        assert result.findings == [FoundDifference(Difference.EXTRA, None, 5, 1, (), other.timestamp)]
        assert result.pending == [5, 6, 7, 8, 9]


def test_what_one_side_has_deleted_is_unverifiable_only_where_that_side_lost_its_start() -> None:
    lost = matched(log(SOURCE), log(SOURCE[3:], 3), Edges(target_lost=True))
    assert lost.findings == [FoundDifference(Difference.UNVERIFIABLE, 0, None, 3, (), SOURCE[0].timestamp)]
    assert lost.expired == 3
    assert found(log(SOURCE), log(SOURCE[3:])) == [
        FoundDifference(Difference.MISSING, 0, None, 3, (), SOURCE[0].timestamp)
    ]
    source_lost = matched(log(SOURCE[3:], 3), log(SOURCE), Edges(source_lost=True))
    assert [(one.difference, one.downstream, one.count) for one in source_lost.findings] == [
        (Difference.UNVERIFIABLE, 0, 3)
    ]


def test_of_equal_records_the_one_in_its_place_is_matched() -> None:
    same = record(0)
    source = [same, SOURCE[1], same, SOURCE[3]]
    assert found(log(source), log([SOURCE[1], same, SOURCE[3]])) == [
        FoundDifference(Difference.MISSING, 0, None, 1, (), same.timestamp)
    ]


def test_key_and_value_exchanged_with_null_are_told_apart() -> None:
    ours, theirs = Fields(0, 5, 1, 7), Fields(5, 0, 1, 7)
    (finding,) = found(log([*SOURCE, ours]), log([*SOURCE, theirs]))
    assert (finding.difference, finding.fields) == (Difference.CHANGED, ("key", "value"))


FAULTS = st.lists(
    st.tuples(st.sampled_from(("drop", "double", "key", "value", "headers", "timestamp", "swap")), st.integers(0, 59)),
    max_size=6,
    unique_by=lambda fault: fault[1] // 4,
)


@given(FAULTS, st.integers(0, 50), st.integers(0, 50), st.booleans())
@example([("drop", 59), ("swap", 52)], 0, 0, True)
def test_any_mix_of_faults_is_found_as_what_it_is(
    faults: list[tuple[str, int]], start: int, distance: int, ends_open: bool
) -> None:
    source = log([record(number) for number in range(60)], start)
    target, expected, hidden = injected(source, faults)
    result = matched(source, log(target, distance), Edges(ends_open=ends_open))
    if not ends_open:
        expected |= {("MISSING", start + at) for at in hidden}
    else:
        assert set(result.pending) >= {start + at for at in hidden}
    assert _named(result.findings, start) == expected
    if not faults:
        assert result.runs == [Run(start, distance, 60)]


def injected(source: Records, faults: list[tuple[str, int]]) -> tuple[list[Fields], set[tuple[str, int]], list[int]]:
    """The target's records, what is to be found (kind, source offset), and dropped records at the end, if any.

    Each fault has four records of its own, so that no two are neighbours.
    """
    start = source[0][0]
    copies = {offset - start: [fields] for offset, fields in source}
    expected: set[tuple[str, int]] = set()
    for kind, number in faults:
        at = number - number % 4 + 1
        if kind == "drop":
            at += 2
            copies[at] = []
            expected.add(("MISSING", start + at))
        elif kind == "double":
            copies[at] *= 2
            expected.add(("DUPLICATE", start + at))
        elif kind == "swap":
            copies[at], copies[at + 1] = copies[at + 1], copies[at]
            expected.add(("REORDERED", start + at))
        else:
            copies[at] = [copies[at][0]._replace(**{kind: 7777})]
            expected.add((f"CHANGED {kind}", start + at))
    last = max((at for at, found in copies.items() if found), default=-1)
    hidden = [at for at in copies if at > last]
    expected -= {("MISSING", start + at) for at in hidden}
    return [one for at in sorted(copies) for one in copies[at]], expected, hidden


def _named(findings: list[FoundDifference], start: int) -> set[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    for one in findings:
        assert one.upstream is not None
        for at in range(one.upstream, one.upstream + one.count):
            name = f"CHANGED {one.fields[0]}" if one.difference is Difference.CHANGED else one.difference.value
            # Of two that were exchanged either one is out of order.
            first = at - (at - start) % 4 + 1
            place = first if one.difference is Difference.REORDERED else at
            found.add((name, place))
    return found
