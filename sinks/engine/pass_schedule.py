"""Spaces the passes of a flow. `flow_task` says when one is due, also after an error. Pure: callers pass times, in
monotonic seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

from streaming.message_words import Word

BUSY_SHARE = 0.75
"""Share of the time that a flow's passes may take while reasons keep coming; the rest between two passes lasts
`LONGEST_REST` at most."""

LONGEST_REST = 0.5
"""Most seconds that the rest after a long pass, such as a first comparison, delays the next one."""

POLL_REST = 0.5
"""Seconds from the start of a pass to a pass that only a due poll asks for, so that second comparisons do not spin.
Counted from the start: a group that commits during a pass waits no longer than needed."""


class Reason(Word):
    """Why a pass runs."""

    SIGNAL = "signal"
    """The source's metadata log moved."""
    STREAM = "stream"
    """A micro-batch arrived."""
    POLL = "poll"
    """A controller wants to poll or to try again, the full comparison is due, or this process may begin to lead."""
    REQUEST = "request"
    """An operator asked for a pass, or the flow's settings changed."""


@dataclass
class PassSchedule:
    """Schedule of one flow. `shortest`: least seconds between two passes, for any number of reasons. `due`: when a pass
    is due on its own."""

    shortest: float = 0.2
    due: float = float("-inf")
    _reasons: set[Reason] = field(default_factory=set)
    _ended: float = float("-inf")
    _took: float = 0.0

    def give(self, reason: Reason) -> None:
        self._reasons.add(reason)

    def next_at(self) -> float:
        if Reason.REQUEST in self._reasons:
            return self._ended + self.shortest
        rest = max(self.shortest, min(self._took * (1 / BUSY_SHARE - 1), LONGEST_REST))
        if self._reasons:
            return self._ended + rest
        return max(self.due, self._ended + rest, self._ended - self._took + POLL_REST)

    def begin(self) -> frozenset[Reason]:
        """Begin a pass, and return its reasons. Later reasons belong to the next pass."""
        reasons, self._reasons = frozenset(self._reasons), set()
        return reasons or frozenset({Reason.POLL})

    def end(self, now: float, took: float, due: float) -> None:
        """End a pass that took `took` seconds. `due`: when it wants the next one."""
        self._ended, self._took, self.due = now, took, due
