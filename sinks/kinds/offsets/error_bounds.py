"""Limits of the records that a group reads twice at an answer; the least of them is its error bound.

An error bound counts as far as the syncs were read. What MM2 sends again after its next crash is in no bound; and a
restart stays unseen where MM2 joined its sync with a later one and as many offsets are missing as were sent twice.
"""

from __future__ import annotations

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.history import History, Pair

Around = tuple[Pair | None, Pair | None]
"""The last pair at or before a group's offset, and the next one."""


def bounds_at_the_end(upstream: int, source: LogRange | None, target: LogRange, history: History | None) -> list[int]:
    """For an answer at the target's end: what the source has before `upstream` and the target has not yet."""
    bounds = [max(0, upstream - source.start)] if source else []
    if history:
        latest = history.latest
        arrived = latest.upstream + max(0, target.end - latest.downstream)
        bounds.append(max(0, upstream - arrived))
    return bounds


def bounds_by_syncs(upstream: int, offset: int, matched: int | None, history: History, around: Around) -> list[int]:
    """Limits of the records before `upstream` that the target has, or will have, at or behind `offset`.

    `matched`: where the group's record was found, at or before `offset`.
    """
    below, following = around
    bounds = []
    if following:
        later = max(offset, following.downstream)
        bounds.append(later - offset + history.resent_after(later))
    if matched is not None:
        # An answer behind the match may lie within what a restart after the match sent again.
        bounds.append(history.resent_after(matched))
    elif below and offset >= below.downstream + (upstream > below.upstream):
        bounds.append(max(0, upstream - below.upstream - 1) + history.resent_after(below.downstream))
    return bounds


def bounds_back(
    downstream: int, offset: int, exact: bool, source: LogRange | None, history: History | None, around: Around
) -> list[int]:
    """Limits of the records at or behind `offset` on the source that a group has read at `downstream` on the target.

    `exact`: `offset` is that of the record at `downstream`.
    """
    below, following = around
    bounds = [max(0, source.end - offset)] if source else []
    if history and below:
        # Before a restart the target got records that lie far ahead of the pair; where it was is known by the next one.
        newest = following.downstream if following else downstream
        read = 0 if exact else max(0, downstream - below.downstream - 1)
        bounds.append(read + history.resent_before(newest))
    return bounds
