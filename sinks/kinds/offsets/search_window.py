"""Where the record at a group's offset lies in the other log: between the two pairs around it."""

from __future__ import annotations

from typing import NamedTuple

from sinks.kinds.offsets.history import History
from sinks.kinds.offsets.translation import (
    BEYOND_ALL,
    LogEnds,
    limit_while_resending,
    read_to_the_end,
    without_truncated,
)
from streaming.mm2.records import MAX_INT64


class SearchWindow(NamedTuple):
    """Where the record at a group's offset is to be looked for in the other log: from `low` on, and before `high`.

    `until`: records before `high` there have their like before this offset here; None: nobody can tell.
    """

    low: int
    high: int | None
    until: int | None


def search_window(upstream: int, ends: LogEnds, history: History | None) -> SearchWindow | None:
    """Where on the target; None where there is nothing to find that the pairs do not say already."""
    history = without_truncated(history, ends.target)
    limit = limit_while_resending(history, ends.target)
    below, following = history.around(upstream, limit) if history else (None, None)
    if below is None or below.upstream == upstream:
        return None
    if ends.source and ends.replication_alone and read_to_the_end(upstream, ends.source, ends.markers_only):
        return None
    high = min((following or BEYOND_ALL).downstream, limit)
    until = following.upstream if following else ends.source.end if ends.source else None
    return SearchWindow(below.downstream, None if high == MAX_INT64 else high, until)


def search_window_back(downstream: int, history: History | None) -> SearchWindow | None:
    """Where on the source."""
    below, following = history.around_downstream(downstream) if history else (None, None)
    if below is None or below.downstream == downstream:
        return None
    if following is None or following.upstream <= below.upstream:
        return SearchWindow(below.upstream, None, None)
    return SearchWindow(below.upstream, following.upstream, following.downstream)
