"""What a pass lists: as much as it needs, for thousands of topics cost both the broker and the interpreter.

What was listed of a source still holds while its metadata log has not moved. Times are monotonic seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sinks.kinds.listing import Freshness, Listed

SETTLED_AFTER = 15.0
"""Seconds after a signal until each broker shows what it told of: the one that is asked may follow the metadata log
behind the one that told of it."""


class FreshListing:
    """Of one flow."""

    def __init__(self, list_topics: Callable[[Freshness], Listed]) -> None:
        self._list_topics = list_topics
        self._moved_at, self._listed_at = float("inf"), float("-inf")
        self._wanted_anew = True
        self._source: Mapping[str, int] = {}

    def sampled(self, now: float, silent: bool) -> None:
        """`silent`: the log is followed, and nothing was signalled since this was last called."""
        if not silent or self._moved_at == float("inf"):
            self._moved_at = now

    def want_anew(self, wanted: bool = True) -> None:
        """Where it is `wanted`, the next listing is of both clusters, whatever was listed before: it was written."""
        self._wanted_anew = self._wanted_anew or wanted

    def listed(self, began: float, *, everything: bool, asked: bool) -> Listed:
        """`began`: now. `everything` will be compared; `asked`: because somebody wants it, not because it is time.

        Raises ClusterUnreachable, RightsMissing.
        """
        wanted = self.wanted
        if asked or self._wanted_anew:
            wanted = Freshness.ALL_NOW
        elif everything:
            wanted = Freshness.ALL
        listed = self._list_topics(wanted)
        self._wanted_anew = False
        if wanted is not Freshness.QUIET:
            self._listed_at = began
            self._compare(listed.source, began)
        return listed

    def _compare(self, source: Mapping[str, int], now: float) -> None:
        """A listing that is another one though nothing was signalled may be half of it: the silence counts anew."""
        if source != self._source:
            self._source, self._moved_at = source, max(self._moved_at, now)

    @property
    def wanted(self) -> Freshness:
        """What a pass that compares not everything needs: QUIET where the last listing shows all that was signalled,
        and nothing was signalled since."""
        is_quiet = self._listed_at - self._moved_at >= SETTLED_AFTER
        return Freshness.QUIET if is_quiet else Freshness.SOURCE_NOW
