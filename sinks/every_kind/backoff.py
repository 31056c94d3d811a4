"""Schedules retries of failed calls and of changes that the target refused, with growing waits. Pure.

Each refused change backs off by itself.

A change that failed for a missing right differs from a refused value: once the operator grants the right, all such
changes pass. So Lockstep tries a few of them every minute. If all of these pass, it tries twice as many of their kind
at once. The operator may have granted the right for all of them, or for one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from operator import attrgetter

from sinks.faults import ItemFault
from sinks.model.changes import Change, Key, Kind, Outcome
from sinks.model.plan import SEE_PLAN, Refusal
from sinks.model.times import NEVER_AT
from streaming.durations import doubled
from streaming.message_words import number_of

FIRST_RECOMPARE_S, LONGEST_RECOMPARE_S = 1.0, 30.0
"""Seconds until the second try, and longest wait between tries."""


@dataclass
class RetrySchedule:
    """Retry times. Waits double from FIRST_RECOMPARE_S up to LONGEST_RECOMPARE_S while a call keeps failing."""

    not_before: float = 0.0
    failures: int = 0

    def failed(self, now: float, at_least: float = 0.0) -> float:
        """Note a failure. Returns the seconds until the next try."""
        self.failures += 1
        wait = max(at_least, doubled(FIRST_RECOMPARE_S, self.failures, LONGEST_RECOMPARE_S))
        self.not_before = now + wait
        return wait

    def succeeded(self) -> None:
        """Note a success. The next failure counts as the first one."""
        self.failures, self.not_before = 0, 0.0

    def is_due(self, now: float) -> bool:
        return now >= self.not_before


FIRST_RETRY_S = 30.0
"""Seconds until the second try of a refused change."""

LONGEST_RETRY_S = 3600.0
"""Longest wait between tries, in seconds. Lockstep notices within the hour that an operator relaxed a policy."""

DENIED_WAIT, DENIED_TRIED = 60.0, 5
"""Seconds until Lockstep tries changes again that failed for a missing right, and how many of a kind it tries at first.
Each failed try is an event in the audit topic."""


@dataclass(frozen=True, slots=True)
class BackedOff:
    """A refused change. `due`: when it is tried again (monotonic seconds)."""

    change: Change
    fault: ItemFault
    tries: int
    due: float


class Backoff:
    """The refused changes of one flow, in memory. After a restart each is tried once more."""

    def __init__(self) -> None:
        self._changes: dict[tuple[Kind, Key], BackedOff] = {}
        self._tried: dict[Kind, int] = {}

    def sift(
        self, changes: Collection[Change], now: float, compared: Iterable[str] | None = None
    ) -> tuple[list[Change], list[Refusal]]:
        """Returns the changes to try now, and refusals of the changes that wait. A new value is tried at once.

        Forgets every other backed-off change of the compared items. `compared`: remote topics or groups, the first
        parts of keys; None: everything was compared.
        """
        wanted, begins = {(change.kind, change.key) for change in changes}, None if compared is None else set(compared)
        self.keep(lambda one: (one.kind, one.key) in wanted or (begins is not None and one.key[0] not in begins))
        todo: list[Change] = []
        waiting: list[Refusal] = []
        for change in changes:
            backed_off = self._changes.get((change.kind, change.key))
            if backed_off is None or backed_off.change.after != change.after or backed_off.due <= now:
                todo.append(change)
            else:
                waiting.append(self._refusal(backed_off, now))
        return todo, waiting

    @staticmethod
    def _refusal(backed_off: BackedOff, now: float) -> Refusal:
        wait = f"tried again in {max(0, backed_off.due - now):.0f} s"
        reason = f"{backed_off.fault} (refused {number_of(backed_off.tries, 'time')}, {wait})"
        remedy, denied = backed_off.fault.remedy or SEE_PLAN, backed_off.fault.is_denied
        change = backed_off.change
        return Refusal(change.kind, change.op, change.key, reason, remedy=remedy, denied=denied)

    def learn(self, outcomes: Iterable[Outcome], now: float) -> None:
        """Back off changes that the target refused, and forget changes that it took. Retriable faults do not count."""
        granted, denied = set[Kind](), set[Kind]()
        for outcome in outcomes:
            change, item = outcome.change, (outcome.change.kind, outcome.change.key)
            before = self._changes.get(item)
            if outcome.error is None:
                self._changes.pop(item, None)
                if before is not None and before.fault.is_denied:
                    granted.add(change.kind)
            elif not outcome.error.retriable:
                if outcome.error.is_denied:
                    denied.add(change.kind)
                tries = before.tries + 1 if before and before.change.after == change.after else 1
                due = now + doubled(FIRST_RETRY_S, tries, LONGEST_RETRY_S)
                self._changes[item] = BackedOff(change, outcome.error, tries, due)
        if self._changes or granted:
            self._hasten_denied(granted - denied, denied, now)

    def _hasten_denied(self, granted: Collection[Kind], denied_again: Collection[Kind], now: float) -> None:
        """Double the number of denied changes that are tried at once. `granted`: kinds whose tried changes all
        succeeded, denied ones among them. `denied_again`: kinds with a change that was denied now."""
        for kind in granted:
            self._tried[kind] = 2 * self._tried.get(kind, DENIED_TRIED)
        for kind in denied_again:
            self._tried.pop(kind, None)
        denied: dict[Kind, list[BackedOff]] = {}
        for one in sorted(self._changes.values(), key=attrgetter("due")):
            if one.fault.is_denied:
                denied.setdefault(one.change.kind, []).append(one)
        for kind, changes in denied.items():
            at = now if kind in granted else now + DENIED_WAIT
            for one in changes[: self._tried.get(kind, DENIED_TRIED)]:
                self._changes[kind, one.change.key] = replace(one, due=min(one.due, at))

    def due(self, now: float) -> set[str]:
        """Returns the remote topics or groups (first parts of keys) that have a change to try again now."""
        return {key[0] for (_, key), backed_off in self._changes.items() if backed_off.due <= now}

    def next_at(self) -> float:
        """When the next change is tried again; NEVER_AT if there is none."""
        return min((backed_off.due for backed_off in self._changes.values()), default=NEVER_AT)

    def keep(self, is_wanted: Callable[[Change], bool]) -> None:
        self._changes = {item: one for item, one in self._changes.items() if is_wanted(one.change)}

    def waiting(self, now: float) -> list[Refusal]:
        """Every change that backs off, for `status`."""
        return [self._refusal(backed_off, now) for backed_off in self._changes.values()]
