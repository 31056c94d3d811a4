"""Runs the steps of a failover command, and writes each one to the flow's ledger and to the audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson

from sinks.ledger.audit import Audit
from sinks.ledger.failover_record import Begun, Command, FailoverRecord, NotNow, State, Step, begin, completed
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import FAILOVER_STATE, Entry, EntryKey
from sinks.model.times import UTC_FORM, utc_now, utc_text
from streaming.errors import LockstepError
from streaming.flow import Flow

StateObserver = Callable[[FailoverRecord, FailoverRecord], None]
"""Called with the records before and after each state change."""


class Journal:
    """The journal of one flow for one command. If two commands run at once, the one that wrote its claim to the ledger
    last goes on."""

    def __init__(
        self,
        flow: Flow,
        ledger: Ledger,
        audit: Audit,
        begun: Begun,
        *,
        is_alive: Callable[[str], bool] = lambda claim: True,
        on_state: StateObserver = lambda before, after: None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """`begun`: who runs the command, why, and its process. `is_alive`: whether the process of a claim may run."""
        self._flow, self.ledger, self._audit = flow, ledger, audit
        self._begun, self._is_alive, self._on_state, self.now = begun, is_alive, on_state, now

    @property
    def record(self) -> FailoverRecord:
        """The record as it was last read from the ledger."""
        return self.ledger.failover()

    def has_done(self, state: State) -> FailoverRecord | None:
        """Returns the record if the flow is in this state and no command is half done; None otherwise."""
        self.ledger.refresh()
        return self.record if (self.record.state, self.record.doing) == (state, None) else None

    def check(self, command: Command) -> FailoverRecord:
        """Checks that the command may begin, and returns the record that it would write. Raises NotNow."""
        self.ledger.refresh()
        known = self.record
        claim, doing = known.begun.claim, known.doing
        if doing is not None and claim not in ("", self._begun.claim) and self._is_alive(claim):
            raise NotNow(
                f"{claim} is running `{doing.typed}`: {known.describe()}. Wait until that is done; if that process is "
                "gone for certain, say --take-over"
            )
        return begin(known, command, replace(self._begun, at=utc_text(self.now())))

    def begin(self, command: Command, *, topics: tuple[str, ...] = (), without_fence: bool = False) -> FailoverRecord:
        """Writes to the ledger that the command begins or resumes. Raises NotNow."""
        record = self.check(command)
        if command is Command.FENCE:
            # From the first step on: these topics may differ from those that were denied.
            record = replace(record, topics=topics, without_fence=without_fence, done=())
        if command is Command.DRAIN:
            # New records may have come since these steps, or must be compared now.
            record = replace(record, done=())
        if command is Command.FAIL_OVER:
            # The command ends the flow of every topic, fenced or not.
            record = replace(record, topics=())
        self._put(record, (command.value, "begin"))
        self._check_mine()
        return record

    def run(self, steps: Mapping[Step, Callable[[], None]]) -> FailoverRecord:
        """Does the steps that remain, and records each once it is done. Raises what a step raises."""
        while remaining := self.record.remaining:
            self._check_mine()
            step, record = remaining[0], self.record
            try:
                steps[step]()
            except LockstepError as error:
                key = (str(record.doing), step.name)
                self._audit.record_failover(self._flow, key, record.state, record.state, str(error))
                raise
            self._check_mine(record)
            self._put(completed(record, step), (str(record.doing), step.name))
        return self.record

    def note_drill(self, document: Mapping[str, Any]) -> None:
        """Writes the result of a drill to the ledger and the audit. Its `error` says why the drill failed."""
        state, error = self.record.state, document.get("error")
        self.ledger.put({DRILL_KEY: drill_as_text(document, self._begun.who, utc_text(self.now()))})
        self._audit.record_failover(self._flow, ("drill", str(document["topic"])), state, state, error)

    def _put(self, record: FailoverRecord, key: tuple[str, str]) -> None:
        before = self.record
        self.ledger.put({FAILOVER_STATE: record.to_text()})
        self._audit.record_failover(self._flow, key, before.state, record.state)
        if before.state is not record.state:
            self._on_state(before, record)

    def _check_mine(self, before: FailoverRecord | None = None) -> None:
        """Raises NotNow if another command has begun. `before`: the record before a step that has just been done."""
        self.ledger.catch_up()
        found = self.record
        moved = before is not None and (found.state, found.doing) != (before.state, before.doing)
        if moved or found.begun.claim != self._begun.claim:
            raise NotNow(
                f"another failover command works on this flow now, by {found.begun.claim or found.begun.who}, so this "
                f"one stopped. The flow is {found.describe()}. Once the other is done, run this one again if it is "
                "still needed"
            )


def mirrors(record: FailoverRecord) -> bool:
    """Whether the flow mirrors and no failover command is half done."""
    return record.state is State.MIRRORING and record.doing is None


# Reads and writes the ledger's document of a flow's last drill, for status and page.


DRILL_KEY: EntryKey = (Entry.DRILL, ("last",))

LONGEST_TEXT = 4096
"""Longest text that is read from a drill's document, in characters. Names have 249 at most, errors a few hundred."""

MOST_ITEMS = 100
"""Most groups, and most steps, that are read from a drill's document. A drill has a few of each."""

Parse = Callable[[Any], Any]
"""Checks and returns an untrusted value. Raises ValueError, KeyError, TypeError."""


LastDrill = dict[str, Any]
"""The document of `lockstep drill`, with the fields in `FIELDS` and `OPTIONAL`. If the drill failed, `error` says why,
and is the only optional field."""


def drill_as_text(document: Mapping[str, Any], who: str, at: str) -> str:
    """Returns a drill's document as the text that the ledger keeps. `at`: UTC."""
    return orjson.dumps({**document, "who": who, "at": at}).decode()


def last_drill(ledger: Ledger) -> LastDrill | None:
    """Returns the last drill of a flow; None without one, or if the entry is damaged.

    Any client with write access to the ledger can put anything there, and status shows the result. So the result has
    only known fields, and its texts are cut.
    """
    text = ledger.get(DRILL_KEY[0], *DRILL_KEY[1])
    try:
        return None if text is None else _record(orjson.loads(text), FIELDS, OPTIONAL)
    except (ValueError, KeyError, TypeError):
        return None


def _record(found: Any, fields: Mapping[str, Parse], optional: Mapping[str, Parse] | None = None) -> dict[str, Any]:
    """Returns the known fields of an object. Raises KeyError if one of `fields` is missing."""
    more = {name: parse for name, parse in (optional or {}).items() if name in found}
    return {name: parse(found[name]) for name, parse in {**fields, **more}.items()}


def _is(kind: type) -> Parse:
    def parse(value: Any) -> Any:
        # A truth value is a number, too.
        if type(value) is not kind:
            raise TypeError(f"no {kind.__name__}")
        return value

    return parse


def _text(value: Any) -> str:
    text: str = _is(str)(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _time(value: Any) -> str:
    return utc_text(datetime.strptime(value, UTC_FORM))


def _seconds(value: Any) -> dict[str, float]:
    if not all(isinstance(one, int | float) for one in value.values()) or len(value) > MOST_ITEMS:
        raise TypeError("no seconds by step")
    return {_text(step): float(one) for step, one in value.items()}


def _groups(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or len(value) > MOST_ITEMS:
        raise TypeError("no groups")
    return [_record(one, GROUP) for one in value]


def _or_null(parse: Parse) -> Parse:
    return lambda value: None if value is None else parse(value)


FIELDS: Mapping[str, Parse] = {"topic": _text, "agrees": _is(bool), "who": _text, "at": _time}

OPTIONAL: Mapping[str, Parse] = {
    "error": _text,
    "loss": lambda value: _record(value, {"predicted": _is(int), "measured": _is(int)}),
    "fence_stops_this_principal": _or_null(_is(bool)),
    "groups": _groups,
    "seconds": _seconds,
}

GROUP: Mapping[str, Parse] = {"group": _text, "bound": _or_null(_is(int)), "read_twice": _is(int), "skipped": _is(int)}
