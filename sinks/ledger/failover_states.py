"""The states of a failover, as one table: what each command does in each state, and which state follows. Pure.

A command has a few steps. The ledger notes when a command begins, and each step after it is done
(`sinks.ledger.failover_record`). After a crash at any point the command resumes with the first step that is not noted.
Each step may be repeated.

The flow has ended once `promote` or `failover` begins: the job writes nothing for it any more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum


class State(str, Enum):
    """How far a flow's failover is.

    MIRRORING: no failover. FENCED: no client writes the topics on the source. DRAINED: all their records are on the
    target. PROMOTED: the target has taken over, nothing was lost. FAILING_OVER, FAILED_OVER: it takes or took over,
    without the source's last records. INVALIDATED: the source is back, and what it alone has is counted.
    REVERSING: the reverse flow leads back.
    """

    MIRRORING = "MIRRORING"
    FENCED = "FENCED"
    DRAINED = "DRAINED"
    PROMOTED = "PROMOTED"
    FAILING_OVER = "FAILING_OVER"
    FAILED_OVER = "FAILED_OVER"
    INVALIDATED = "INVALIDATED"
    REVERSING = "REVERSING"

    def __str__(self) -> str:
        return self.value


class Command(str, Enum):
    """What moves a flow on; `cutover` is FENCE, DRAIN and PROMOTE, `failback` is INVALIDATE and REVERSE."""

    FENCE = "fence"
    UNFENCE = "unfence"
    DRAIN = "drain"
    PROMOTE = "promote"
    FAIL_OVER = "failover"
    INVALIDATE = "invalidate"
    REVERSE = "reverse"
    RESUME = "resume"

    def __str__(self) -> str:
        return self.value

    @property
    def typed(self) -> str:
        """What the operator types, for messages: some commands are steps of another command there."""
        return TYPED.get(self, self.value)


TYPED: Mapping[Command, str] = {
    Command.DRAIN: "cutover",
    Command.INVALIDATE: "failback",
    Command.REVERSE: "failback",
    Command.RESUME: "failback --done",
}
"""Commands that are typed with another word."""


def typed_name(command: str) -> str:
    """Returns what the operator types for a command of the ledger and JSON; an unknown command unchanged."""
    return {one.value: one.typed for one in Command}.get(command, command)


class Step(str, Enum):
    """One step of a command. The texts also appear in the docs and in `--dry-run`."""

    DENY_WRITES = "denies everybody to write the topics on the source"
    PROVE_FENCE = "sees that their ends stand still"
    LIFT_FENCE = "takes its DENY ACLs away"
    AWAIT_RECORDS = "waits until the last record of each partition is on the target"
    LAST_OFFSETS = "writes the groups' last offsets"
    GRANT_WRITES = "grants the ALLOW WRITE that was held back"
    KEEP_DIVERGENCE = "keeps where each partition diverges, and what is predicted to be lost"
    COUNT_LOST = "counts the records that the source alone has"
    WRITE_REVERSE = "writes the properties of the flow the other way round"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Transition:
    """The steps of a command, the state `during` them, and the state `then`."""

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
        # Kept before clients are told that it is drained: from then on they may write the copies.
        table[state, Command.DRAIN] = Transition(state, (Step.AWAIT_RECORDS, Step.KEEP_DIVERGENCE), State.DRAINED)
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
"""Every other combination is refused."""

INTERRUPTS: Mapping[Command, Mapping[Command, Step | None]] = {
    Command.UNFENCE: {Command.FENCE: None, Command.DRAIN: None, Command.PROMOTE: Step.LAST_OFFSETS},
    Command.FAIL_OVER: dict.fromkeys((Command.FENCE, Command.UNFENCE, Command.DRAIN, Command.PROMOTE)),
}
"""Commands that may begin while another is half done: to lift a fence, and to fail over when the source dies.

With a step: only until that step is recorded as done, for then no later step has begun. So `unfence` interrupts a
`promote` that has granted no writes on the target. That `promote` may have written the groups' offsets. It writes them
as the job does while the flow mirrors: only forward, for groups without members.
"""

TOO_LATE: Mapping[tuple[Command, Command], str] = {
    (Command.UNFENCE, Command.PROMOTE): (
        "the groups' last offsets are written, and ALLOW WRITE that was held back may be granted on the target, where "
        "clients may write by now. Mend what `lockstep promote` says and run it again to its end; `lockstep failback` "
        "then leads back. If the source is gone: `lockstep failover`"
    ),
}
"""What to do if a command may not interrupt another one any more."""

ENDED = frozenset({State.PROMOTED, State.FAILING_OVER, State.FAILED_OVER, State.INVALIDATED, State.REVERSING})
"""States in which Lockstep writes nothing for the flow."""


def may_interrupt(command: Command, doing: Command, done: Collection[Step]) -> bool:
    """Whether a command may begin while another is half done, with these steps done."""
    rows = INTERRUPTS.get(command, {})
    return doing in rows and rows[doing] not in done


def commands_from(state: State) -> list[Command]:
    """What may begin in this state."""
    return [command for here, command in TRANSITIONS if here is state]
