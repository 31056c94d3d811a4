"""How MM2 thins the syncs of a partition: dense near the end, exponentially sparser behind.

MM2 keeps 64 slots, and most neighbours hold the same sync. Here a sync is kept once, with the slot that it ends
before: three numbers (upstream offset, downstream offset, end) in one array, newest first, the last end being 64.
What `admit` leaves behind is what Kafka's `OffsetSyncStore.updateSyncArray` leaves behind (Kafka 3.5, KAFKA-12468;
tests/parity compares them). Its invariants, for slots i < j that hold different syncs:

- A: slot 0 is the latest sync;
- B: `upstream[i] <= upstream[j] + 2^j - 2^i`: nothing is too old for its slot;
- C: `upstream[i] >= upstream[j] + 2^(i - 2)`: nothing is so near to its neighbour that it is of no use;
- D: slot 63 is the earliest sync that can be translated with.
"""

from __future__ import annotations

from array import array

SLOTS = 64
"""One for each bit of an offset (`OffsetSyncStore.SYNCS_PER_PARTITION`)."""
WIDTH = 3
"""Numbers a sync takes."""

_NEW = -1


def first(upstream: int, downstream: int) -> array[int]:
    """The slots that hold one sync."""
    return array("q", (upstream, downstream, SLOTS))


def admit(slots: array[int], upstream: int, downstream: int) -> None:
    """Takes a sync in. `upstream` must not lie before the latest one: that is a new history's first."""
    # Up to this slot nothing known is recent enough for B, and MM2's loop fills slot after slot with the new sync.
    current = max(upstream - slots[0] - 1, 0).bit_length() + 1
    kept: list[int] = []
    before, replacement, candidate, here = _NEW, _NEW, 0, 0
    before_upstream, before_downstream = upstream, downstream
    while current < SLOTS:
        while slots[here + 2] <= current:
            here += WIDTH
        candidate, replacement = _choose(slots, current, (before, before_upstream), candidate, replacement, here)
        if before == here or before_upstream - slots[here] <= 1 << (current - 1):
            break
        if replacement != before:
            kept += (before_upstream, before_downstream, current)
            before, before_upstream, before_downstream = replacement, slots[replacement], slots[replacement + 1]
        current += 1
    else:
        here = len(slots)
    if before != here:
        kept += (before_upstream, before_downstream, current)
    slots[:here] = array("q", kept)


def _choose(
    slots: array[int], current: int, before: tuple[int, int], candidate: int, replacement: int, here: int
) -> tuple[int, int]:
    """The next candidate and the sync for the slot `current`, should the one in it have grown too old.

    `before`: the sync in the slot before it, by its index in `slots`, and its upstream offset. `here`: the index of
    the sync that is in `current`. A candidate that is too near to the one before it is passed over for good.
    """
    slot, upstream = before
    reach, apart, apart_next = 1 << (current - 1), 1 << max(current - 3, 0), 1 << max(current - 2, 0)
    following = here if slots[here + 2] > current + 1 else here + WIDTH
    while True:
        distance = upstream - slots[candidate]
        separated = slot == candidate or distance >= apart
        promoted = (separated and (slot == candidate or distance <= reach)) and (
            following in (candidate, len(slots)) or slots[candidate] - slots[following] >= apart_next
        )
        if promoted:
            replacement = candidate
        end = slots[candidate + 2]
        if end > current or (separated and not promoted):
            return candidate, replacement
        candidate += WIDTH
        if separated or end == current:
            return candidate, replacement
