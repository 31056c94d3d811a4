"""What a job knows of how far a partition was copied, and when it knows it no more."""

from __future__ import annotations

import pytest

from sinks.failover.source_end_offsets import CopyEvidence, PositionMemory
from sinks.ledger.kept_end_offsets import KnownPosition, LatestSync
from tests.sinks.failover.sampled_mirror import HERE

KNOWN = KnownPosition(50, 50, 2)


def renewed(
    memory: PositionMemory,
    end: int,
    *syncs: LatestSync,
    counted: KnownPosition | None = None,
    unborn: int | None = None,
) -> KnownPosition | None:
    """With these syncs, one at the most."""
    evidence = CopyEvidence(
        dict(zip([HERE], syncs, strict=False)),
        {HERE: counted} if counted else {},
        {HERE: unborn} if unborn is not None else {},
    )
    return memory.renew({HERE: end}, evidence).get(HERE)


def after(*syncs: LatestSync, end: int = 60) -> PositionMemory:
    """A job that counted once."""
    memory = PositionMemory({}, {})
    assert renewed(memory, end, *syncs, counted=KNOWN) == KNOWN
    return memory


def test_a_count_stays_until_a_sync_leaves_less() -> None:
    memory = after(LatestSync(9, 9))
    assert renewed(memory, 60, LatestSync(40, 45)) == KNOWN
    assert renewed(memory, 60, LatestSync(47, 60)) == KNOWN
    assert renewed(memory, 60, LatestSync(48, 61)) == (49, 62, 0)


def test_a_topic_that_was_not_on_the_target_had_nothing_copied() -> None:
    memory = PositionMemory({}, {})
    assert renewed(memory, 5, unborn=2) == (2, 0, 0)
    assert renewed(memory, 9) == (2, 0, 0)
    assert renewed(memory, 9, LatestSync(3, 3)) == (4, 4, 0)


def test_of_a_topic_that_was_there_before_nothing_is_known_without_a_sync_or_a_count() -> None:
    assert renewed(PositionMemory({}, {}), 5) is None


def test_while_mm2_sends_again_what_was_known_before_is_nearer() -> None:
    memory = after(LatestSync(9, 9))
    assert renewed(memory, 90, LatestSync(70, 80, resending=True)) == KNOWN
    assert renewed(memory, 90, LatestSync(70, 80)) == (71, 81, 0)


def test_a_sync_of_records_sent_again_is_better_than_nothing() -> None:
    assert renewed(PositionMemory({}, {}), 90, LatestSync(70, 80, resending=True)) == (71, 81, 0)


@pytest.mark.parametrize("syncs", [[], [LatestSync(9, 5)]])
def test_offset_syncs_that_began_anew_end_what_was_known(syncs: list[LatestSync]) -> None:
    found = renewed(after(LatestSync(9, 9)), 60, *syncs)
    assert found == (syncs[0].position if syncs else None)


def test_a_source_whose_log_became_shorter_is_another_one_and_its_last_sync_no_more_believed() -> None:
    memory = after(LatestSync(9, 9))
    assert renewed(memory, 20, LatestSync(9, 9), counted=KnownPosition(10, 10)) is None
    assert renewed(memory, 70, LatestSync(9, 9, gap=True)) is None
    assert renewed(memory, 70, LatestSync(10, 99)) == (11, 100, 0)


def test_a_sync_of_a_record_behind_the_sources_end_is_not_believed() -> None:
    assert renewed(PositionMemory({}, {}), 20, LatestSync(20, 5)) is None


def test_what_a_process_before_kept_counts_as_long_as_a_sync_is_known() -> None:
    for syncs, found in (([LatestSync(9, 9)], KNOWN), ([], None)):
        memory = PositionMemory({HERE: KNOWN}, {HERE: 60})
        assert memory.renew({HERE: 60}, CopyEvidence(None)) == {HERE: KNOWN}
        assert renewed(memory, 60, *syncs) == found


def test_what_a_process_before_kept_counts_for_no_shorter_log() -> None:
    assert renewed(PositionMemory({HERE: KNOWN}, {HERE: 60}), 55, LatestSync(9, 9)) is None


def test_an_end_that_cannot_be_seen_changes_nothing() -> None:
    memory = after(LatestSync(9, 9))
    assert memory.renew({}, CopyEvidence({})) == {HERE: KNOWN}
