"""The same slots and the same answers as Kafka's own OffsetSyncStore, over generated offset-syncs."""

from __future__ import annotations

import itertools

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.sync_history import WIDTH, History, admit, first
from sinks.kinds.offsets.translation import Answer, Evidence, LogEnds, Method, translate
from streaming.mm2.records import MAX_INT64
from tests.parity.kafka_classes import Kafka
from tests.parity.offset_sync_store import OffsetSyncStore

STEPS = (
    st.integers(0, 3)
    | st.integers(0, 300)
    | st.integers(0, 62).map(lambda bits: 1 << bits)
    | st.integers(1, 2**62)
    | st.just(100)
)
SYNCS = st.tuples(st.integers(0, 10) | st.integers(0, 2**40), st.lists(st.tuples(STEPS, STEPS), max_size=60))


def forwards(start: int, steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Syncs whose offsets do not go back; each has a downstream offset of its own, as each record has."""
    upstream, downstream, syncs = start, start // 2, [(start, start // 2)]
    for ahead, written in steps:
        upstream, downstream = upstream + ahead, downstream + 1 + written
        if max(upstream, downstream) >= MAX_INT64:
            break
        syncs.append((upstream, downstream))
    return syncs


@settings(max_examples=120, deadline=None)
@example(made=(0, [(100, 99)] * 60))
@example(made=(0, [(1 << bits, 0) for bits in range(62)]))
@given(SYNCS)
def test_the_slots_hold_what_kafkas_hold(kafka: Kafka, made: tuple[int, list[tuple[int, int]]]) -> None:
    syncs = forwards(*made)
    store, slots = OffsetSyncStore(kafka), first(*syncs[0])
    store.take(*syncs[0])
    for sync in syncs[1:]:
        store.take(*sync)
        admit(slots, *sync)
    ours: list[tuple[int, int]] = []
    for at in range(0, len(slots), WIDTH):
        ours += [(slots[at], slots[at + 1])] * (slots[at + 2] - len(ours))
    assert ours == store.slots()


@settings(max_examples=80, deadline=None)
@given(
    SYNCS,
    st.lists(st.tuples(st.integers(1, 2000), st.lists(st.tuples(STEPS, STEPS), max_size=20)), max_size=3),
    st.data(),
)
def test_a_conservative_answer_is_kafkas_and_where_a_restart_made_it_forget_still_is_one(
    kafka: Kafka,
    made: tuple[int, list[tuple[int, int]]],
    restarts: list[tuple[int, list[tuple[int, int]]]],
    data: st.DataObject,
) -> None:
    syncs = forwards(*made)
    for back, steps in restarts:
        upstream, downstream = syncs[-1]
        if upstream >= back and downstream < 2**61:
            shifted = forwards(upstream - back, steps)
            by = downstream + 1 - shifted[0][1]
            syncs += [(ahead, written + by) for ahead, written in shifted if written + by <= MAX_INT64]
    store, history = OffsetSyncStore(kafka), History(*syncs[0], position=0)
    store.take(*syncs[0])
    for position, sync in enumerate(syncs[1:], 1):
        store.take(*sync)
        history.take(*sync, position)
    ends = LogEnds(None, LogRange(0, MAX_INT64))
    # MM2 answers while it still sends records again; ours waits until it is as far as it was.
    assume(history.resending_since(MAX_INT64) is None)
    near = st.sampled_from(syncs).flatmap(lambda sync: st.integers(max(0, sync[0] - 2), min(MAX_INT64, sync[0] + 150)))
    for upstream in data.draw(st.lists(near, min_size=10, max_size=20)):
        ours, theirs = translate(upstream, ends, Evidence(history)), store.translate(upstream)
        if theirs >= 0:
            assert isinstance(ours, Answer)
            assert (ours.downstream, ours.method) == (theirs, Method.CONSERVATIVE)
        elif all(before[0] <= after[0] for before, after in itertools.pairwise(syncs)):
            assert not isinstance(ours, Answer)
