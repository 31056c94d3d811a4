"""A window with only some of its rows: what proves that a record is late, old or in order, and what does not."""

from __future__ import annotations

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.sync_history import Pair
from sinks.verify.matching import CellRows, Edges, Matched, matched_rows
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.partition_verdicts import Difference, PartitionReport, PartitionVerdict, VerifyLevel
from sinks.verify.record_checks import compare_records
from sinks.verify.windows import cut
from streaming.mm2.records import TopicPartition
from streaming.verify.rows import ContentRow, Fields, PairSums, RunRow
from tests.sinks.verify.memory_jobs import MemoryJobs
from tests.sinks.verify.mirrored_log import Record


def content(upstreams: list[int], downstreams: list[int]) -> ContentRow:
    return ContentRow(0, 0, upstreams, downstreams, Fields(1, 2, 3, 50))


def found(contents: list[ContentRow], runs: list[RunRow], edges: Edges, descents: int = 0) -> Matched:
    """Of records 10 … 109 of the source, which are 60 … 159 of the target, and some more."""
    sums = PairSums(0, 0, 100, descents, 9, 10, 60, 109, 159)
    return matched_rows(CellRows(sums, None, contents, runs), edges)


def kinds(of: Matched) -> list[Difference]:
    return [one.difference for one in of.findings]


def test_a_record_before_the_last_pair_is_missing_though_no_run_came() -> None:
    lost = found([content([50], [])], [], Edges(ends_open=True))
    assert (kinds(lost), lost.pending) == ([Difference.MISSING], [])
    assert found([content([200], [])], [], Edges(ends_open=True)).pending == [200]


def test_only_what_lies_before_the_first_pair_is_too_old() -> None:
    edges = Edges(source_lost=True, target_lost=True)
    assert found([content([5], [])], [], edges).expired == 1
    assert kinds(found([content([50], [])], [], edges)) == [Difference.MISSING]
    assert kinds(found([content([], [100])], [], edges)) == [Difference.EXTRA]


def test_where_pairs_are_out_of_order_nothing_is_late_or_too_old() -> None:
    late = found([content([200], [])], [], Edges(ends_open=True), descents=1)
    assert (kinds(late), late.uncounted) == ([Difference.MISSING], {Difference.REORDERED: 1})


def test_of_records_behind_the_runs_that_came_the_order_is_not_known() -> None:
    runs = [RunRow(0, 0, 10, 60, 20)]
    assert found([content([40, 50], [90, 95, 100])], runs, Edges()).order_unknown
    assert not found([content([12, 13], [62, 63, 64])], runs, Edges()).order_unknown
    assert not found([content([50], [])], runs, Edges()).order_unknown


def test_one_partition_with_many_runs_leaves_a_loss_in_another_missing() -> None:
    most = 50
    full = [Record(2 * at, None, b"%d" % at, None, at) for at in range(most + 1)]
    arrived = [one for one in full if one.offset != 40]
    copies = {"a.t0": full, "a.t1": arrived}
    copied = {
        name: [Record(place, one.key, one.value, one.headers, one.ms) for place, one in enumerate(records)]
        for name, records in copies.items()
    }
    jobs = MemoryJobs({"t0": full, "t1": full}, copied)
    reports = compare_records(
        [plan(name, len(full), len(copied[f"a.{name}"])) for name in ("t0", "t1")],
        VerifyLevel.RECORDS,
        lambda: jobs,
        most,
    )
    assert [one.verdict for one in reports] == [PartitionVerdict.VERIFIED, PartitionVerdict.DIFFERENT]
    assert places(reports[1]) == [(Difference.MISSING, 40)]


def plan(name: str, records: int, copies: int) -> PartitionPlan:
    ours, theirs = LogRange(0, 2 * records), LogRange(0, copies)
    windows = cut([Pair(0, 0)], (), ours, theirs)
    return PartitionPlan(TopicPartition(name, 0), TopicPartition(f"a.{name}", 0), ours, theirs, windows)


def places(of: PartitionReport) -> list[tuple[Difference, int | None]]:
    return [(one.difference, one.upstream) for one in of.findings]
