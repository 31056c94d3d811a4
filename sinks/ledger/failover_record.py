"""The states of a failover, the steps of each command in each state, and the ledger's entry for both. Pure.

A command has a few steps. The ledger notes when a command begins, and each step after it is done. After a crash the
command resumes with the first step that the ledger does not list as done. Each step may be repeated.

The flow has ended once `promote` or `failover` begins: the job no longer writes anything for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson

from streaming.errors import LockstepError
from streaming.message_words import Word


class State(Word):
    """State of a flow's failover."""

    MIRRORING = "MIRRORING"
    """No failover."""
    FENCED = "FENCED"
    """No client writes the topics on the source."""
    DRAINED = "DRAINED"
    """The target has all records of the source."""
    PROMOTED = "PROMOTED"
    """The target has taken over, and no record was lost."""
    FAILING_OVER = "FAILING_OVER"
    """The target takes over without the last records of the source."""
    FAILED_OVER = "FAILED_OVER"
    """The target has taken over without the last records of the source."""
    INVALIDATED = "INVALIDATED"
    """The source is back, and Lockstep counted the records that only the source has."""
    REVERSING = "REVERSING"
    """The reverse flow replicates back to the source."""


class Command(Word):
    """A command that changes the state. `cutover` is FENCE, DRAIN and PROMOTE; `failback` is INVALIDATE and REVERSE."""

    FENCE = "fence"
    UNFENCE = "unfence"
    DRAIN = "drain"
    PROMOTE = "promote"
    FAIL_OVER = "failover"
    INVALIDATE = "invalidate"
    REVERSE = "reverse"
    RESUME = "resume"

    @property
    def typed(self) -> str:
        """The command that the operator types, for messages. Some commands are steps of a typed command."""
        return TYPED.get(self, self.value)


TYPED: Mapping[Command, str] = {
    Command.DRAIN: "cutover",
    Command.INVALIDATE: "failback",
    Command.REVERSE: "failback",
    Command.RESUME: "failback --done",
}
"""The commands that an operator starts under another name."""


def typed_name(command: str) -> str:
    """Returns what the operator types for a command as the ledger and JSON name it. Returns an unknown command
    unchanged."""
    return {one.value: one.typed for one in Command}.get(command, command)


class Step(Word):
    """One step of a command. The texts also appear in the docs and in `--dry-run`. The ledger keeps them, so they never
    change."""

    DENY_WRITES = "denies everybody to write the topics on the source"
    PROVE_FENCE = "sees that their ends stand still"
    LIFT_FENCE = "takes its DENY ACLs away"
    AWAIT_RECORDS = "waits until the last record of each partition is on the target"
    LAST_OFFSETS = "writes the groups' last offsets"
    GRANT_WRITES = "grants the ALLOW WRITE that was held back"
    KEEP_DIVERGENCE = "keeps where each partition diverges, and what is predicted to be lost"
    COUNT_LOST = "counts the records that the source alone has"
    WRITE_REVERSE = "writes the properties of the flow the other way round"


@dataclass(frozen=True, slots=True)
class Transition:
    """The steps of a command. `during`: the state while it runs. `then`: the state after it."""

    during: State
    steps: tuple[Step, ...]
    then: State


def _table() -> dict[tuple[State, Command], Transition]:
    fence = (Step.DENY_WRITES, Step.PROVE_FENCE)
    table: dict[tuple[State, Command], Transition] = {
        (State.DRAINED, Command.PROMOTE): Transition(
            State.DRAINED, (Step.KEEP_DIVERGENCE, Step.LAST_OFFSETS, Step.GRANT_WRITES), State.PROMOTED
        ),
        (State.INVALIDATED, Command.INVALIDATE): Transition(State.INVALIDATED, (Step.COUNT_LOST,), State.INVALIDATED),
        (State.INVALIDATED, Command.REVERSE): Transition(State.INVALIDATED, (Step.WRITE_REVERSE,), State.REVERSING),
        (State.REVERSING, Command.RESUME): Transition(State.REVERSING, (Step.LIFT_FENCE,), State.MIRRORING),
    }
    for state in (State.MIRRORING, State.FENCED, State.DRAINED):
        table[state, Command.FENCE] = Transition(state, fence, State.FENCED)
    for state in (State.FENCED, State.DRAINED):
        # All of it before clients are told that it is drained: from then on they may move, and write the copies.
        drain = (Step.AWAIT_RECORDS, Step.LAST_OFFSETS, Step.KEEP_DIVERGENCE)
        table[state, Command.DRAIN] = Transition(state, drain, State.DRAINED)
    for state in (State.MIRRORING, State.FENCED, State.DRAINED):
        table[state, Command.UNFENCE] = Transition(state, (Step.LIFT_FENCE,), State.MIRRORING)
    for state in (State.MIRRORING, State.FENCED, State.DRAINED, State.FAILING_OVER):
        table[state, Command.FAIL_OVER] = Transition(
            State.FAILING_OVER, (Step.KEEP_DIVERGENCE, Step.GRANT_WRITES), State.FAILED_OVER
        )
    for state in (State.PROMOTED, State.FAILED_OVER):
        table[state, Command.INVALIDATE] = Transition(state, (Step.COUNT_LOST,), State.INVALIDATED)
    for state in (State.PROMOTED, State.FAILED_OVER, State.INVALIDATED, State.REVERSING):
        # Typed by the operator alone: the old source takes writes again, and MM2 does not copy them.
        table[state, Command.UNFENCE] = Transition(state, (Step.LIFT_FENCE,), state)
    return table


TRANSITIONS: Mapping[tuple[State, Command], Transition] = _table()
"""The steps of each command in each state. Lockstep refuses every other combination."""

INTERRUPTS: Mapping[Command, Mapping[Command, Step | None]] = {
    Command.UNFENCE: {Command.FENCE: None, Command.DRAIN: None, Command.PROMOTE: Step.LAST_OFFSETS},
    Command.FAIL_OVER: dict.fromkeys((Command.FENCE, Command.UNFENCE, Command.DRAIN, Command.PROMOTE)),
}
"""Commands that may begin while another is half done: to lift a fence, and to fail over when the source dies.

With a step: only until that step is recorded as done, because no later step has begun before. So `unfence` interrupts a
`promote` that has not granted writes on the target. Such a `promote` may have written the groups' offsets. It writes
them as the job does in MIRRORING: only forward, for groups without members.
"""

TOO_LATE: Mapping[tuple[Command, Command], str] = {
    (Command.UNFENCE, Command.PROMOTE): (
        "the groups' last offsets are written, and ALLOW WRITE that was held back may be granted on the target, where "
        "clients may write by now. Correct what `lockstep promote` reports, and run it again to its end. Then "
        "`lockstep failback` fails back. If the source is gone, run `lockstep failover`"
    ),
}
"""The way out if a command may no longer interrupt another one."""

ENDED = frozenset({State.PROMOTED, State.FAILING_OVER, State.FAILED_OVER, State.INVALIDATED, State.REVERSING})
"""States in which Lockstep writes nothing for the flow."""


def may_interrupt(command: Command, doing: Command, done: Collection[Step]) -> bool:
    """Whether a command may begin while `doing` is half done with the steps `done`."""
    rows = INTERRUPTS.get(command, {})
    return doing in rows and rows[doing] not in done


def commands_from(state: State) -> list[Command]:
    return [command for here, command in TRANSITIONS if here is state]


class NotNow(LockstepError):
    """The command may not begin in this state, or another process runs it."""

    code = "NOT_NOW"
    remedy = (
        "`lockstep status` shows the state of the flow, and docs/failover.md the commands that each state allows. If "
        "the process that ran a command is certainly gone, add `--take-over`"
    )


@dataclass(frozen=True, slots=True)
class Begun:
    """Who began a command, when (UTC), and why. `claim`: the process that runs it, as `user@host/place:pid`."""

    who: str = ""
    at: str = ""
    why: str = ""
    claim: str = ""


@dataclass(frozen=True, slots=True)
class FailoverRecord:
    """A flow's state, the command that is half done, and its finished steps."""

    state: State = State.MIRRORING
    doing: Command | None = None
    done: tuple[Step, ...] = ()
    begun: Begun = Begun()
    without_fence: bool = False
    """No ACL keeps producers from the source; the operator stopped them in another way."""
    topics: tuple[str, ...] = ()
    """Fenced topics; empty: all replicated topics."""
    ended_at: str = ""
    """When the command that ended the flow began (UTC). Commands of the failback do not change it."""

    @property
    def has_ended(self) -> bool:
        """Whether Lockstep no longer writes anything for the flow."""
        return self.state in ENDED or self.doing is Command.PROMOTE

    @property
    def has_taken_over(self) -> bool:
        """Whether the target has taken over, and no command is half done."""
        return self.has_ended and self.doing not in (Command.PROMOTE, Command.FAIL_OVER)

    @property
    def remaining(self) -> tuple[Step, ...]:
        """Returns the steps that are not recorded as done."""
        if self.doing is None:
            return ()
        return tuple(step for step in TRANSITIONS[self.state, self.doing].steps if step not in self.done)

    def describe(self) -> str:
        """Returns state, half-done command, who and why in one line, for status and messages."""
        half = f", `{self.doing.typed}` is half done" if self.doing else ""
        begun = f" ({self.begun.who}, {self.begun.at}{': ' + self.begun.why if self.begun.why else ''})"
        return f"{self.state}{half}{begun if self.begun.who else ''}"

    def to_text(self) -> str:
        return orjson.dumps(asdict(self), default=str).decode()

    @classmethod
    def from_text(cls, text: str | None) -> FailoverRecord:
        """Returns the record; an empty one for None, which means no failover. Raises LockstepError for a damaged
        text."""
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
                fields.get("ended_at", ""),
            )
            record._check()
        except (ValueError, KeyError, TypeError) as error:
            raise LockstepError(
                f"the ledger's entry of the failover cannot be read ({error}). A newer version of Lockstep or "
                "another program wrote it. Lockstep writes nothing"
            ) from error
        return record

    def _check(self) -> None:
        """Check the types of the text fields, because status shows them as they are, and the table's commands and
        steps.

        Raises TypeError for a text field of another type. Raises ValueError for a command or step that the table does
        not allow here.
        """
        if not all(isinstance(text, str) for text in (*asdict(self.begun).values(), *self.topics, self.ended_at)):
            raise TypeError("a name, a time or a reason is not a text")
        transition = TRANSITIONS.get((self.state, self.doing)) if self.doing else None
        if self.doing and transition is None:
            raise ValueError(f"{self.doing} cannot be half done in {self.state}")
        if set(self.done) - set(transition.steps if transition else ()):
            raise ValueError(f"{self.doing} has no step {', '.join(step.name for step in self.done)}")


def begin(record: FailoverRecord, command: Command, begun: Begun) -> FailoverRecord:
    """Returns the record of a command that begins or resumes. Raises NotNow."""
    ended_at = begun.at if command in (Command.PROMOTE, Command.FAIL_OVER) else record.ended_at
    if record.doing is command:
        return replace(record, begun=replace(begun, why=begun.why or record.begun.why), ended_at=ended_at)
    if record.doing is not None and not may_interrupt(command, record.doing, record.done):
        way_out = TOO_LATE.get((command, record.doing)) or f"{way_on(record)} first"
        raise NotNow(f"`{record.doing.typed}` is half done ({record.describe()}): {way_out}")
    transition = TRANSITIONS.get((record.state, command))
    if transition is None:
        allowed = ", ".join(dict.fromkeys(f"`{one.typed}`" for one in commands_from(record.state)))
        raise NotNow(f"the flow is {record.describe()}, where `{command.typed}` cannot begin. Possible now: {allowed}")
    return replace(record, state=transition.during, doing=command, done=(), begun=begun, ended_at=ended_at)


def way_on(record: FailoverRecord) -> str:
    """Returns how to continue a half-done command; "" if no command is half done."""
    if record.doing is None:
        return ""
    goes_back = may_interrupt(Command.UNFENCE, record.doing, record.done)
    unfence = "`lockstep unfence` or " if goes_back and Command.UNFENCE in commands_from(record.state) else ""
    whole = ", or the `cutover` that it was part of" if record.doing in (Command.FENCE, Command.PROMOTE) else ""
    return f"{unfence}run `lockstep {record.doing.typed}` again to its end{whole}"


def completed(record: FailoverRecord, step: Step) -> FailoverRecord:
    """Returns the record with `step` done. The last step completes the command."""
    if record.doing is None or step not in record.remaining:
        raise ValueError(f"{record} does not wait for the step {step!r}")
    after = replace(record, done=(*record.done, step))
    if after.remaining:
        return after
    then = TRANSITIONS[record.state, record.doing].then
    fence = then is State.MIRRORING
    return replace(
        after,
        state=then,
        doing=None,
        done=(),
        begun=replace(record.begun, claim=""),
        without_fence=record.without_fence and not fence,
        topics=() if fence else record.topics,
        ended_at="" if fence else record.ended_at,
    )
