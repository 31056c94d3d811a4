"""What the running job knows of differences is bounded, and what has no place any more is still counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from sinks.kafka.ports.groups import LogRange
from sinks.verify.partition_progress import MOST_SPOTS, KnownDifferences
from sinks.verify.partition_verdicts import Difference, FoundDifference, PartitionReport, PartitionVerdict
from sinks.verify.windows import Window
from streaming.mm2.records import TopicPartition
from tests.sinks.verify.verified_world import VerifiedWorld, records

REPORT = PartitionReport(TopicPartition("x", 0), "a.x", PartitionVerdict.DIFFERENT)
EVERYTHING = LogRange(0, 10**9)


def take(known: KnownDifferences, start: int, end: int, findings: list[FoundDifference]) -> None:
    """These were found between two offsets of both sides."""
    counts = Counter[Difference]()
    for one in findings:
        counts[one.difference] += one.count
    known.take([Window(start, end, start, end)], replace(REPORT, findings=findings, differences=counts))


def missing(*offsets: int) -> list[FoundDifference]:
    return [FoundDifference(Difference.MISSING, offset, None) for offset in offsets]


@given(st.integers(0, 2 * MOST_SPOTS), st.integers(20, 400))
@example(MOST_SPOTS + 2, 1)
def test_however_many_differ_so_many_are_kept_and_all_are_counted(count: int, at_once: int) -> None:
    known = KnownDifferences()
    for start in range(0, count, at_once):
        end = min(count, start + at_once)
        take(known, 2 * start, 2 * end, missing(*range(2 * start, 2 * end, 2)))
    assert len(known.spots) == min(count, MOST_SPOTS)
    assert known.dropped_count == max(0, count - MOST_SPOTS)
    assert known.counts[Difference.MISSING] == count


def test_what_is_compared_once_more_replaces_what_was_known_of_it() -> None:
    known = KnownDifferences()
    take(known, 0, 10, missing(3, 5))
    take(known, 0, 10, missing(5))
    assert known.counts == {Difference.MISSING: 1}


def test_what_has_no_place_is_forgotten_with_the_last_of_it() -> None:
    known = KnownDifferences()
    take(known, 0, 10_000, missing(*range(0, 4 * MOST_SPOTS, 2)))
    known.forget_deleted(LogRange(4 * MOST_SPOTS - 2, 10**9), EVERYTHING)
    assert known.dropped_count == MOST_SPOTS
    known.forget_deleted(LogRange(4 * MOST_SPOTS, 10**9), EVERYTHING)
    assert not known


def test_what_has_no_place_is_not_counted_twice_when_everything_is_compared_again() -> None:
    known, everything = KnownDifferences(), missing(*range(0, 4 * MOST_SPOTS, 2))
    take(known, 0, 10_000, everything)
    known.restart()
    take(known, 0, 10_000, everything)
    assert known.counts == {Difference.MISSING: 2 * MOST_SPOTS}


def test_a_status_says_how_many_have_no_place() -> None:
    made = VerifiedWorld()
    made.put("orders", records(100), records(100))
    made.sync("orders", (0, 0), (90, 90))
    made.run()
    take(made.progress.partitions[TopicPartition("orders", 0)].known, 0, 10_000, missing(*range(0, 4 * MOST_SPOTS, 2)))
    status = made.progress.status(made.now)
    assert (status.dropped, status.by_kind) == (MOST_SPOTS, {"MISSING": 2 * MOST_SPOTS})
    assert status.as_json()["differences_without_place"] == MOST_SPOTS
