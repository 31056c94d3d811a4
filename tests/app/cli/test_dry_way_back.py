"""A dry run refuses what the command itself would refuse, says what it would say, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.cli import failover_commands, failover_run
from app.cli.failover_run import FailoverRun
from app.cli.output import Output
from app.failover_session import FailoverCall
from sinks.failover.commands import cutover, failover
from sinks.failover.failing_back import failback, resume
from sinks.failover.fence_notes import NO_OTHERS, OtherLedgers
from sinks.failover.fencing import FenceUnclear
from sinks.failover.scene import Scene
from sinks.ledger.failover_record import NotNow, State, Step
from sinks.ledger.fence_acls import fence_acls
from sinks.ledger.kept_end_offsets import KnownPosition
from streaming.mm2.records import TopicPartition
from tests.sinks.failover.scenes import Stage, look, stage, store

FILE = Path("mm2.properties")
UNREAD = OtherLedgers(unread={"a->c": "c does not answer"})

Says = Callable[..., None]


@pytest.fixture
def built() -> Stage:
    """A flow that waits for the source to lead again."""
    there = stage()
    cutover(there.scene())
    failback(there.scene(), export=None, discard=None, write_reverse=lambda: None)
    return there


def run_on(
    there: Stage,
    monkeypatch: pytest.MonkeyPatch,
    others: OtherLedgers = NO_OTHERS,
    output: Output = Output.TEXT,
) -> None:
    """Lets commands run on the flow in memory, beside these ledgers of others."""

    @contextmanager
    def opened(*given: Any, **options: Any) -> Iterator[Scene]:
        yield replace(there.scene(), other_ledgers=lambda: nullcontext(others))

    def called(*given: Any, dry: bool, **options: Any) -> FailoverRun:
        settings: Any = None
        return FailoverRun(settings, there.world.settings, output, FailoverCall(), dry)

    monkeypatch.setattr(failover_run, "failover_session", opened)
    monkeypatch.setattr(failover_commands, "called", called)


@pytest.fixture
def on_stage(built: Stage, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets commands run on the flow in memory, beside these ledgers of others."""

    def with_others(others: OtherLedgers, output: Output = Output.TEXT) -> None:
        run_on(built, monkeypatch, others, output)

    return with_others


def test_dry_failback_done_asks_whether_the_source_leads(
    built: Stage, on_stage: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    on_stage(NO_OTHERS)
    before = built.world.source.writes, built.world.target.writes, built.record()
    with pytest.raises(NotNow, match=r"it is unknown whether a leads again.*--yes unknown"):
        failover_commands.failback(FILE, done=True, dry=True)
    failover_commands.failback(FILE, done=True, dry=True, yes="unknown")
    assert "and be MIRRORING" in capsys.readouterr().out
    assert (built.world.source.writes, built.world.target.writes, built.record()) == before


@pytest.mark.parametrize(
    "says",
    [
        lambda: failover_commands.failback(FILE, done=True, dry=True, yes="unknown"),
        lambda: failover_commands.unfence(FILE, dry=True),
    ],
    ids=["failback --done", "unfence"],
)
def test_dry_run_that_would_take_the_fence_away_asks_whether_another_flow_relies_on_it(
    says: Says, on_stage: Callable[..., None]
) -> None:
    on_stage(UNREAD)
    with pytest.raises(FenceUnclear):
        says()


@pytest.mark.parametrize(
    "says",
    [lambda: failover_commands.fence(None, FILE, dry=True), lambda: failover_commands.cutover(FILE, dry=True)],
    ids=["fence", "cutover"],
)
def test_dry_run_that_would_fence_what_may_be_another_flows_fence_refuses(
    says: Says, built: Stage, on_stage: Callable[..., None]
) -> None:
    resume(built.scene(), typed="unknown")
    built.world.source_acls.create(fence_acls(["x"]))
    on_stage(UNREAD)
    with pytest.raises(FenceUnclear):
        says()
    failover_commands.cutover(FILE, dry=True, without_fence=True)


@pytest.mark.parametrize("output", list(Output))
def test_dry_failover_names_partitions_whose_copies_have_no_known_position(
    output: Output, built: Stage, on_stage: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    resume(built.scene(), typed="unknown")
    keeper = store(built)
    keeper.note_counted({TopicPartition("x", 0): KnownPosition(10, 10), TopicPartition("y", 0): KnownPosition(10, 10)})
    look(built, 1000.0, keeper)
    built.world.source.reachable = built.here.reachable = False
    on_stage(NO_OTHERS, output)
    failover_commands.failover(FILE, dry=True)
    said = capsys.readouterr()
    if output is Output.JSON:
        (flow,) = orjson.loads(said.out)["flows"]
        assert flow["prediction"]["without_position"] == [{"topic": "x", "partition": 1}]
        assert flow["prediction"]["records"] == 10
    assert "a->b: how far MM2 copied x-1 is unknown, so all its records on the source count as lost" in said.err


def reversing(built: Stage) -> None:
    """As the flow is."""


def mirroring(built: Stage) -> None:
    resume(built.scene(), typed="unknown")


def promoted(built: Stage) -> None:
    mirroring(built)
    cutover(built.scene())


def failed_over(built: Stage) -> None:
    mirroring(built)
    failover(built.scene(answers=False), accept_loss=None, agreed=lambda prediction: None)


@pytest.mark.parametrize("output", list(Output))
@pytest.mark.parametrize(
    ("leads_to", "command", "state"),
    [
        (promoted, failover_commands.cutover, "PROMOTED"),
        (promoted, failover_commands.promote, "PROMOTED"),
        (failed_over, failover_commands.failover, "FAILED_OVER"),
        (reversing, failover_commands.failback, "REVERSING"),
        (mirroring, partial(failover_commands.failback, done=True), "MIRRORING"),
    ],
    ids=["cutover", "promote", "failover", "failback", "failback --done"],
)
def test_dry_run_of_what_has_come_to_its_end_says_that_nothing_is_left_to_do(
    leads_to: Callable[[Stage], None],
    command: Says,
    state: str,
    output: Output,
    built: Stage,
    on_stage: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    leads_to(built)
    on_stage(NO_OTHERS, output)
    before = built.world.source.writes, built.world.target.writes, built.record()
    command(FILE, dry=True)
    said = capsys.readouterr()
    if output is Output.JSON:
        (flow,) = orjson.loads(said.out)["flows"]
        assert (flow["state"], flow["would_do"], flow["would_be"], flow["topics"]) == (state, [], state, [])
    else:
        assert f"a->b is {state}" in said.out
        assert "nothing is left to do" in said.out
    # Another time begins in another state, as the command itself says.
    assert ("For another cutover" in said.err) == (state == "PROMOTED")
    assert (built.world.source.writes, built.world.target.writes, built.record()) == before


def test_steps_after_failback_are_a_line_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built = stage()
    cutover(built.scene())

    @contextmanager
    def opened(*given: Any, **options: Any) -> Iterator[Scene]:
        yield built.scene()

    monkeypatch.setattr(failover_run, "failover_session", opened)
    settings: Any = None
    run = FailoverRun(settings, built.world.settings, Output.TEXT, FailoverCall())
    monkeypatch.setattr(failover_commands, "called", lambda *given, **options: run)
    config = tmp_path / "mm2.properties"
    config.write_text("clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n")
    failover_commands.failback(config)
    said = capsys.readouterr().err
    assert "\\n" not in said
    assert len([line for line in said.splitlines() if "`lockstep" in line]) == 5
    assert "if b->a mirrors already: only `lockstep unfence` for a->b" in said


@pytest.mark.parametrize(("accepted", "refused"), [(None, True), ("0", False)])
def test_dry_failover_says_that_the_source_answers_as_the_command_itself_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], accepted: str | None, refused: bool
) -> None:
    there = stage()
    run_on(there, monkeypatch)
    failover_commands.failover(FILE, accept_loss=accepted, dry=True)
    said = "it would be refused: a answers, and `lockstep cutover` loses no record"
    assert (said in capsys.readouterr().err) is refused
    if refused:
        with pytest.raises(NotNow, match="a answers"):
            failover_commands.failover(FILE, accept_loss=accepted, yes="0")


@pytest.mark.parametrize("typed", ["29", "31", "99", "030", "unknown"])
def test_failover_refuses_a_number_other_than_the_predicted_one(typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = stage()
    look(there, 1000.0)
    there.world.source.reachable = there.here.reachable = False
    run_on(there, monkeypatch)
    with pytest.raises(NotNow, match=f"the predicted loss is 30, not {typed}"):
        failover_commands.failover(FILE, yes=typed)
    assert there.record().state is State.MIRRORING
    failover_commands.failover(FILE, yes="30")
    assert there.record().state is State.FAILED_OVER


@pytest.mark.parametrize(
    ("command", "way"),
    [
        (failover_commands.cutover, "`lockstep unfence` or run `lockstep fence` again to its end"),
        (failover_commands.failover, "a->b: interrupted: the flow is FAILING_OVER, `failover` is half done"),
    ],
    ids=["cutover", "failover"],
)
def test_a_command_that_is_interrupted_says_what_is_half_done_and_the_way_on(
    command: Says, way: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = stage()
    run_on(there, monkeypatch)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    def scene(*given: object, **options: object) -> Iterator[Scene]:
        yield replace(there.scene(), does=lambda scene: dict.fromkeys(Step, interrupted))

    monkeypatch.setattr(failover_run, "failover_session", contextmanager(scene))
    with pytest.raises(KeyboardInterrupt):
        command(FILE, yes=True) if command is failover_commands.cutover else command(FILE, accept_loss="0", yes="0")
    assert way in capsys.readouterr().err
