"""From summed-up rows to hints, and from hints to a flow's heartbeat."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.flow import Flow
from streaming.hints import (
    TOLERANCE_MS,
    CheckpointSeen,
    Hints,
    LatestHeartbeats,
    NewestHeartbeat,
    Summary,
    SyncSeen,
    age_seconds,
    hints_of,
    replaces,
)
from streaming.mm2.codec import REASONS
from streaming.mm2.records import RecordKind

AB, CB = Flow("a", "b"), Flow("c", "b")
READ_MS = 10_000


def heartbeat(flow: Flow, newest_ms: int, *, replicated: bool = True, appended_ms: int | None = None) -> Summary:
    appended = newest_ms if appended_ms is None else appended_ms
    topic = f"{flow.source}.heartbeats" if replicated else "heartbeats"
    return Summary("heartbeat", flow.source, flow.target, replicated, topic, None, None, 3, newest_ms, appended)


def told(record: RecordKind, flow: Flow, name: str, numbers: Sequence[int] = (), topics: Sequence[str] = ()) -> Summary:
    at = (record.value, flow.source, flow.target, False, f"{record}s", name)
    return Summary(*at, None, 2, None, 1, numbers, topics)


def test_a_batch_of_the_clock_alone_says_nothing() -> None:
    assert hints_of([], READ_MS) == Hints()


def test_copied_heartbeats_and_emitted_ones_are_told_apart() -> None:
    hints = hints_of([heartbeat(AB, 9_000), heartbeat(AB, 9_900, replicated=False)], READ_MS)
    assert hints.heartbeats == {AB: NewestHeartbeat(9_000, latency_ms=1_000)}
    assert hints.emitted == {AB: NewestHeartbeat(9_900, copied=False)}
    assert hints.rows == 6


def test_latency_is_exact_where_the_target_stamps_records_on_arrival() -> None:
    hints = hints_of([heartbeat(AB, 9_000, appended_ms=9_040)], READ_MS)
    assert hints.heartbeats[AB].latency_ms == 40


def test_latency_is_never_below_zero_when_the_clocks_differ() -> None:
    assert hints_of([heartbeat(AB, READ_MS + 500)], READ_MS).heartbeats[AB].latency_ms == 0


def test_syncs_and_checkpoints_come_to_their_flow_in_the_order_of_their_topic() -> None:
    hints = hints_of(
        [
            told(RecordKind.OFFSET_SYNC, AB, "orders", [0, 10, 11, 7, 1, 20, 21, 5]),
            told(RecordKind.OFFSET_SYNC, AB, "bills", [0, 3, 4, 6]),
            told(RecordKind.OFFSET_SYNC, CB, "orders", [0, 1, 2, 3]),
            told(RecordKind.CHECKPOINT, CB, "g", [0, 8, 9, 2, 1, 5, 6, 1], ["c.orders", "c.bills"]),
        ],
        READ_MS,
    )
    assert hints.syncs == {
        AB: [SyncSeen(5, "orders", 1, 20, 21), SyncSeen(6, "bills", 0, 3, 4), SyncSeen(7, "orders", 0, 10, 11)],
        CB: [SyncSeen(3, "orders", 0, 1, 2)],
    }
    assert hints.checkpoints == {
        CB: [CheckpointSeen(1, "g", "c.bills", 1, 5, 6), CheckpointSeen(2, "g", "c.orders", 0, 8, 9)]
    }


def test_undecodable_rows_are_counted_by_topic_and_reason_and_hint_at_nothing() -> None:
    rows = [
        Summary("checkpoint", "a", "b", False, "a.checkpoints.internal", None, "tombstone", 4, None, 5),
        Summary("heartbeat", "a", "b", True, "a.heartbeats", None, "short value", 1, None, 5),
    ]
    hints = hints_of(rows, READ_MS)
    assert hints.undecodable == {("a.checkpoints.internal", "tombstone"): 4, ("a.heartbeats", "short value"): 1}
    assert (hints.heartbeats, hints.checkpoints, hints.rows) == ({}, {}, 5)


aliases = st.none() | st.sampled_from(["", "a", "b"])
summaries = st.builds(
    Summary,
    record=st.sampled_from([kind.value for kind in RecordKind]),
    source=aliases,
    target=aliases,
    replicated=st.booleans(),
    topic=st.sampled_from(["heartbeats", "other"]),
    name=st.none() | st.text(max_size=3),
    error=st.none() | st.sampled_from(REASONS),
    rows=st.integers(1, 9),
    newest_ms=st.none() | st.integers(0, 2**63 - 1),
    appended_ms=st.none() | st.integers(0, 2**63 - 1),
    numbers=st.just(()),
    topics=st.just(()),
)


@given(st.lists(summaries))
def test_whatever_aliases_a_record_carries_hints_are_made_and_every_row_counted(found: list[Summary]) -> None:
    hints = hints_of(found, READ_MS)
    assert hints.rows == sum(summary.rows for summary in found)
    assert sum(hints.undecodable.values()) == sum(summary.rows for summary in found if summary.error)


def test_a_flow_whose_heartbeats_are_not_copied_is_measured_by_those_emitted() -> None:
    latest = LatestHeartbeats()
    latest.note(Hints(emitted={AB: NewestHeartbeat(5, None)}), [AB])
    assert latest.of(AB) == NewestHeartbeat(5, None)
    assert latest.of(CB) is None


def test_when_copying_stops_emitted_heartbeats_are_no_sign_of_life() -> None:
    latest = LatestHeartbeats()
    latest.note(Hints(heartbeats={AB: NewestHeartbeat(5, 1)}), [AB])
    latest.note(Hints(emitted={AB: NewestHeartbeat(900, None)}), [AB])
    assert latest.of(AB) == NewestHeartbeat(5, 1)


def test_a_batch_that_comes_twice_changes_nothing() -> None:
    latest = LatestHeartbeats()
    latest.note(Hints(heartbeats={AB: NewestHeartbeat(7, 1)}), [AB])
    latest.note(Hints(heartbeats={AB: NewestHeartbeat(5, 9)}), [AB])
    assert latest.of(AB) == NewestHeartbeat(7, 1)


def test_a_flow_that_no_one_asked_for_is_not_kept_however_many_a_record_may_name() -> None:
    latest = LatestHeartbeats()
    forged = {Flow(f"x{number}", "b"): NewestHeartbeat(5, 1) for number in range(100)}
    latest.note(Hints(heartbeats={AB: NewestHeartbeat(7, 1), **forged}, emitted=forged), [AB])
    assert latest.of(AB) == NewestHeartbeat(7, 1)
    assert not any(latest.of(flow) for flow in forged)


def note(latest: LatestHeartbeats, timestamp_ms: int, read_ms: int) -> int:
    """The timestamp that counts after a batch with this heartbeat."""
    latest.note(hints_of([heartbeat(AB, timestamp_ms)], read_ms), [AB])
    seen = latest.of(AB)
    assert seen is not None
    return seen.timestamp_ms


def test_a_heartbeat_from_the_future_counts_from_its_arrival_and_is_replaced_by_the_next() -> None:
    latest = LatestHeartbeats()
    assert note(latest, timestamp_ms=2**62, read_ms=READ_MS) == READ_MS
    assert note(latest, timestamp_ms=READ_MS + 900, read_ms=READ_MS + 1_000) == READ_MS + 900


def test_when_a_clock_is_set_back_the_next_heartbeat_replaces_the_one_that_is_now_in_the_future() -> None:
    latest = LatestHeartbeats()
    note(latest, timestamp_ms=3_600_000, read_ms=3_600_000)
    assert note(latest, timestamp_ms=READ_MS, read_ms=READ_MS) == READ_MS


NOW_MS = 1_000_000


@pytest.mark.parametrize(
    ("seen_ms", "known_ms", "replaced"),
    [
        (5, None, True),
        (6, 5, True),
        (5, 5, False),
        (4, 5, False),
        (5, NOW_MS + TOLERANCE_MS, False),
        (5, NOW_MS + TOLERANCE_MS + 1, True),
        (NOW_MS + TOLERANCE_MS + 1, NOW_MS + TOLERANCE_MS + 2, False),
    ],
)
def test_a_later_heartbeat_replaces_an_earlier_one_and_any_one_from_the_future(
    seen_ms: int, known_ms: int | None, replaced: bool
) -> None:
    assert replaces(seen_ms, known_ms, NOW_MS) is replaced


@pytest.mark.parametrize(
    ("timestamp_ms", "age"),
    [(NOW_MS - 2_500, 2.5), (NOW_MS, 0.0), (NOW_MS + TOLERANCE_MS, 0.0), (NOW_MS + TOLERANCE_MS + 1, None)],
)
def test_a_heartbeat_from_the_future_has_no_age(timestamp_ms: int, age: float | None) -> None:
    assert age_seconds(timestamp_ms, NOW_MS) == age
