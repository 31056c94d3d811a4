"""The table of states, and a failover that crashes anywhere and is run again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.ledger.failover_record import (
    ENDED,
    TRANSITIONS,
    Begun,
    Command,
    FailoverRecord,
    NotNow,
    State,
    Step,
    begin,
    commands_from,
    completed,
    typed_name,
)
from streaming.errors import LockstepError

ME = Begun("me", "2026-11-22T00:00:00Z", "a drill", "me@here:1")


def run(record: FailoverRecord, command: Command) -> FailoverRecord:
    """A command from begin to end."""
    record = begin(record, command, ME)
    for step in record.remaining:
        record = completed(record, step)
    return record


def at(state: State) -> FailoverRecord:
    return FailoverRecord(state)


def test_a_planned_failover_leads_from_mirroring_to_promoted() -> None:
    record = FailoverRecord()
    for command, state in (
        (Command.FENCE, State.FENCED),
        (Command.DRAIN, State.DRAINED),
        (Command.PROMOTE, State.PROMOTED),
    ):
        record = run(record, command)
        assert record.state is state
    assert record.doing is None


def test_an_unplanned_failover_is_failing_over_until_it_has_failed_over() -> None:
    begun = begin(FailoverRecord(), Command.FAIL_OVER, ME)
    assert (begun.state, begun.has_ended) == (State.FAILING_OVER, True)
    assert run(FailoverRecord(), Command.FAIL_OVER).state is State.FAILED_OVER


def test_the_way_back_leads_to_mirroring_again() -> None:
    record = at(State.FAILED_OVER)
    for command in (Command.INVALIDATE, Command.REVERSE, Command.RESUME):
        record = run(record, command)
    assert record.state is State.MIRRORING


@pytest.mark.parametrize("state", [state for state in State if state not in ENDED])
def test_before_promotion_the_flow_goes_on_being_written(state: State) -> None:
    assert not at(state).has_ended


def test_a_flow_has_ended_once_its_promotion_begins() -> None:
    assert begin(at(State.DRAINED), Command.PROMOTE, ME).has_ended


def test_promote_insists_on_a_drained_flow() -> None:
    for state in State:
        if state is not State.DRAINED:
            with pytest.raises(NotNow):
                begin(at(state), Command.PROMOTE, ME)


def test_a_half_done_command_keeps_others_away_but_for_those_that_may_interrupt() -> None:
    half = begin(FailoverRecord(), Command.FENCE, ME)
    with pytest.raises(NotNow, match="half done"):
        begin(half, Command.DRAIN, ME)
    assert begin(half, Command.UNFENCE, ME).doing is Command.UNFENCE
    assert begin(half, Command.FAIL_OVER, ME).state is State.FAILING_OVER
    failing = begin(FailoverRecord(), Command.FAIL_OVER, ME)
    with pytest.raises(NotNow):
        begin(failing, Command.UNFENCE, ME)


def test_unfence_after_a_failover_leaves_the_state_as_it_is() -> None:
    for state in (State.PROMOTED, State.FAILED_OVER, State.INVALIDATED, State.REVERSING):
        assert run(at(state), Command.UNFENCE).state is state


def test_every_state_has_a_way_out_and_mirroring_can_be_reached_from_each() -> None:
    reached = {State.MIRRORING}
    for _ in State:
        reached |= {here for (here, _), row in TRANSITIONS.items() if row.then in reached}
    assert reached == set(State)


def test_a_refusal_names_what_may_begin() -> None:
    with pytest.raises(NotNow, match="Possible now: `failback`, `unfence`"):
        begin(at(State.PROMOTED), Command.FENCE, ME)


@given(
    st.sampled_from(sorted(TRANSITIONS, key=str)),
    st.lists(st.sampled_from(["before the step", "after the step"]), max_size=6),
)
def test_a_command_that_crashes_between_any_two_steps_ends_the_same_when_it_is_run_again(
    row: tuple[State, Command], crashes: list[str]
) -> None:
    state, command = row
    wanted = run(at(state), command)
    ledger, effects, left = at(state).to_text(), list[Step](), list(crashes)
    while True:
        record = begin(FailoverRecord.from_text(ledger), command, ME)
        ledger = record.to_text()
        died = False
        for step in record.remaining:
            crash = left.pop(0) if left else None
            if crash == "before the step":
                died = True
                break
            effects.append(step)
            if crash == "after the step":
                died = True
                break
            record = completed(record, step)
            ledger = record.to_text()
        if not died:
            break
    assert FailoverRecord.from_text(ledger) == wanted
    order = list(dict.fromkeys(effects))
    assert order == list(TRANSITIONS[row].steps)


@given(st.sampled_from(list(State)), st.sampled_from(list(Command)))
def test_what_the_table_lacks_is_refused(state: State, command: Command) -> None:
    if command in commands_from(state):
        assert begin(at(state), command, ME).doing is command
    else:
        with pytest.raises(NotNow):
            begin(at(state), command, ME)


@given(st.integers(0, len(TRANSITIONS[State.DRAINED, Command.PROMOTE].steps)), st.booleans())
def test_unfence_interrupts_a_promotion_of_which_nobody_was_granted_to_write_and_no_other(
    done: int, dies_in_the_next: bool
) -> None:
    record, effects = begin(at(State.DRAINED), Command.PROMOTE, ME), list[Step]()
    for step in record.remaining[:done]:
        effects.append(step)
        record = completed(record, step)
    if dies_in_the_next:
        effects += record.remaining[:1]
    if record.state is State.PROMOTED:
        assert run(record, Command.UNFENCE).state is State.PROMOTED
    elif Step.GRANT_WRITES in effects or Step.LAST_OFFSETS in record.done:
        with pytest.raises(NotNow, match="run it again to its end"):
            begin(record, Command.UNFENCE, ME)
    else:
        assert not begin(record, Command.UNFENCE, ME).has_ended
        assert run(record, Command.UNFENCE) == FailoverRecord(begun=replace(ME, claim=""))


@given(st.sampled_from(sorted(TRANSITIONS, key=str)), st.sampled_from(list(Command)), st.integers(0, 3))
def test_a_refusal_beside_a_half_done_command_proposes_unfence_only_where_that_may_begin(
    row: tuple[State, Command], command: Command, done: int
) -> None:
    record = begin(at(row[0]), row[1], ME)
    for step in record.remaining[: min(done, len(record.remaining) - 1)]:
        record = completed(record, step)
    try:
        begin(record, command, ME)
    except NotNow as error:
        if "or `lockstep unfence`" in str(error):
            assert begin(record, Command.UNFENCE, ME).doing is Command.UNFENCE


def test_messages_name_what_somebody_types() -> None:
    half = begin(at(State.FENCED), Command.DRAIN, ME)
    assert "`cutover` is half done" in half.describe()
    with pytest.raises(NotNow, match="`cutover` is half done"):
        begin(half, Command.FENCE, ME)
    assert [typed_name(name) for name in ("drain", "resume", "fence", "later")] == [
        "cutover",
        "failback --done",
        "fence",
        "later",
    ]


def test_a_record_reads_as_it_was_written() -> None:
    record = begin(FailoverRecord(topics=("x",), without_fence=True), Command.FENCE, ME)
    assert FailoverRecord.from_text(record.to_text()) == record


def test_a_damaged_record_is_refused() -> None:
    for text in ("", "{}", '{"state": "SOMETHING"}', "[1]"):
        with pytest.raises(LockstepError):
            FailoverRecord.from_text(text)


def test_texts_of_steps_that_ledgers_keep_never_change() -> None:
    assert [step.value for step in Step] == [
        "denies everybody to write the topics on the source",
        "sees that their ends stand still",
        "takes its DENY ACLs away",
        "waits until the last record of each partition is on the target",
        "writes the groups' last offsets",
        "grants the ALLOW WRITE that was held back",
        "keeps where each partition diverges, and what is predicted to be lost",
        "counts the records that the source alone has",
        "writes the properties of the flow the other way round",
    ]
