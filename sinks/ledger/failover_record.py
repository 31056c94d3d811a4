"""What the ledger says of a flow's failover, and how a command moves it from step to step. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import orjson

from sinks.ledger.failover_states import (
    ENDED,
    TOO_LATE,
    TRANSITIONS,
    Command,
    State,
    Step,
    commands_from,
    may_interrupt,
)
from sinks.model.times import utc_text
from streaming.errors import LockstepError


class NotNow(LockstepError):
    """The command may not begin in this state, or another process is running it."""

    code = "NOT_NOW"


@dataclass(frozen=True, slots=True)
class Begun:
    """Who began a command, when (UTC), and why; `claim`: the process that is at it, as
    `user@host/place:pid`."""

    who: str = ""
    at: str = ""
    why: str = ""
    claim: str = ""


@dataclass(frozen=True, slots=True)
class FailoverRecord:
    """A flow's state, the command that is half done, and its steps that are done.

    `without_fence`: no ACL keeps producers away, they were stopped otherwise. `topics`: those that are fenced; none:
    all that are replicated.
    """

    state: State = State.MIRRORING
    doing: Command | None = None
    done: tuple[Step, ...] = ()
    begun: Begun = Begun()
    without_fence: bool = False
    topics: tuple[str, ...] = ()

    @property
    def has_ended(self) -> bool:
        """Whether nothing is written for the flow any more."""
        return self.state in ENDED or self.doing is Command.PROMOTE

    @property
    def has_taken_over(self) -> bool:
        """Whether the target has taken over, and no command is half done with it."""
        return self.has_ended and self.doing not in (Command.PROMOTE, Command.FAIL_OVER)

    @property
    def remaining(self) -> tuple[Step, ...]:
        """The steps that are not known to be done."""
        if self.doing is None:
            return ()
        return tuple(step for step in TRANSITIONS[self.state, self.doing].steps if step not in self.done)

    def describe(self) -> str:
        """In a line, for status and messages."""
        half = f", `{self.doing.typed}` is half done" if self.doing else ""
        begun = f" ({self.begun.who}, {self.begun.at}{': ' + self.begun.why if self.begun.why else ''})"
        return f"{self.state}{half}{begun if self.begun.who else ''}"

    def to_text(self) -> str:
        """As the ledger keeps it."""
        return orjson.dumps(asdict(self), default=str).decode()

    @classmethod
    def from_text(cls, text: str | None) -> FailoverRecord:
        """None: there was no failover. Raises LockstepError for what is damaged."""
        if text is None:
            return cls()
        try:
            fields: dict[str, Any] = orjson.loads(text)
            record = cls(
                State(fields["state"]),
                Command(fields["doing"]) if fields["doing"] else None,
                tuple(Step(step) for step in fields["done"]),
                Begun(**fields["begun"]),
                bool(fields["without_fence"]),
                tuple(fields["topics"]),
            )
            record.check_texts()
            record.check_possible()
        except (ValueError, KeyError, TypeError) as error:
            raise LockstepError(
                f"the ledger's entry of the failover cannot be read ({error}): a newer version of Lockstep wrote it, "
                "or another program did. Nothing is written"
            ) from error
        return record

    def check_texts(self) -> None:
        """Raises TypeError where something else is in a text's place: status shows them as they are."""
        if not all(isinstance(text, str) for text in (*asdict(self.begun).values(), *self.topics)):
            raise TypeError("a name, a time or a reason is no text")

    def check_possible(self) -> None:
        """Raises ValueError for a command or a step that the table does not have here."""
        transition = TRANSITIONS.get((self.state, self.doing)) if self.doing else None
        if self.doing and transition is None:
            raise ValueError(f"{self.doing} cannot be half done in {self.state}")
        if set(self.done) - set(transition.steps if transition else ()):
            raise ValueError(f"{self.doing} has no step {', '.join(step.name for step in self.done)}")


def begin(record: FailoverRecord, command: Command, begun: Begun) -> FailoverRecord:
    """The record with which a command begins, or goes on where it was. Raises NotNow."""
    if record.doing is command:
        return replace(record, begun=replace(begun, why=begun.why or record.begun.why))
    if record.doing is not None and not may_interrupt(command, record.doing, record.done):
        raise NotNow(f"`{record.doing.typed}` is half done ({record.describe()}): {_way_out(record, command)}")
    transition = TRANSITIONS.get((record.state, command))
    if transition is None:
        allowed = ", ".join(dict.fromkeys(f"`{one.typed}`" for one in commands_from(record.state)))
        raise NotNow(f"the flow is {record.describe()}, where `{command.typed}` cannot begin; what can is {allowed}")
    return replace(record, state=transition.during, doing=command, done=(), begun=begun)


def _way_out(record: FailoverRecord, command: Command) -> str:
    """What to do instead of a command that may not begin while another is half done."""
    doing = record.doing
    if doing is not None and (late := TOO_LATE.get((command, doing))):
        return late
    goes_back = doing is not None and may_interrupt(Command.UNFENCE, doing, record.done)
    can = goes_back and Command.UNFENCE in commands_from(record.state)
    return "run it again to its end first" + (", or `lockstep unfence`" if can else "")


def completed(record: FailoverRecord, step: Step) -> FailoverRecord:
    """With a step done; with the last of them the command is."""
    if record.doing is None or step not in record.remaining:
        raise ValueError(f"{step!r} is no step that {record} waits for")
    after = replace(record, done=(*record.done, step))
    if after.remaining:
        return after
    then = TRANSITIONS[record.state, record.doing].then
    fence = then in (State.MIRRORING,)
    return replace(
        after,
        state=then,
        doing=None,
        done=(),
        begun=replace(record.begun, claim=""),
        without_fence=record.without_fence and not fence,
        topics=() if fence else record.topics,
    )


def stamp(at: datetime) -> str:
    """A time as the ledger and messages have it."""
    return utc_text(at)
