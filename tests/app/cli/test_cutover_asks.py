"""`cutover` says what it will fence, and how many groups move, before it does anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer

from app.cli import failover_commands, failover_run
from app.cli.failover_run import FailoverRun
from app.cli.output import Output
from app.failover_session import FailoverCall
from sinks.failover.commands import drain, fence
from sinks.failover.scene import Scene
from sinks.ledger.failover_record import NotNow, State
from streaming.errors import WrongUsage
from tests.sinks.builders import put_topic
from tests.sinks.failover.scenes import Stage, stage

FILE = Path("mm2.properties")


class Terminal:
    """Standard input of an operator who answers."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A flow with two groups, on which commands run."""
    there = stage()
    there.world.source_groups.active |= {"g1": 0, "g2": 1}

    @contextmanager
    def opened(*given: Any, **options: Any) -> Iterator[Scene]:
        yield there.scene()

    def called(config: Path, flow: object, output: Output, call: FailoverCall, *, dry: bool) -> FailoverRun:
        settings: Any = None
        return FailoverRun(settings, there.world.settings, output, call, dry)

    monkeypatch.setattr(failover_run, "failover_session", opened)
    monkeypatch.setattr(failover_commands, "called", called)
    return there


def test_without_a_terminal_nothing_is_done_unless_somebody_said_yes(
    built: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    before = built.world.source.writes, built.world.target.writes
    with pytest.raises(WrongUsage, match="say --yes"):
        failover_commands.cutover(FILE)
    assert (built.record().state, (built.world.source.writes, built.world.target.writes)) == (State.MIRRORING, before)
    said = capsys.readouterr().err
    assert "denies everybody to write 2 topics on a: x, y" in said
    assert "last offsets of 2 groups on b" in said
    failover_commands.cutover(FILE, yes=True)
    assert built.record().state is State.PROMOTED


@pytest.mark.parametrize("agrees", [False, True])
def test_on_a_terminal_it_asks(built: Stage, monkeypatch: pytest.MonkeyPatch, agrees: bool) -> None:
    asked: list[str] = []

    def confirm(text: str, *, abort: bool, err: bool) -> None:
        asked.append(text)
        if not agrees:
            raise typer.Abort

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr(typer, "confirm", confirm)
    if agrees:
        failover_commands.cutover(FILE)
    else:
        with pytest.raises(typer.Abort):
            failover_commands.cutover(FILE)
    assert asked == ["Cut over a->b?"]
    assert built.record().state is (State.PROMOTED if agrees else State.MIRRORING)


def test_what_is_fenced_already_is_said(built: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    fence(built.scene())
    with pytest.raises(WrongUsage):
        failover_commands.cutover(FILE)
    assert "2 topics on a are fenced already: x, y" in capsys.readouterr().err


def test_how_many_groups_there_are_is_unknown_where_nobody_tells(
    built: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    built.world.source_groups.reachable = False
    with pytest.raises(WrongUsage):
        failover_commands.cutover(FILE)
    assert "how many groups it moves is unknown: a: no answer" in capsys.readouterr().err


def test_a_flow_that_has_taken_over_asks_nothing(built: Stage) -> None:
    failover_commands.cutover(FILE, yes=True)
    failover_commands.cutover(FILE)


def test_a_dry_run_says_the_same(built: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    failover_commands.cutover(FILE, dry=True, output=Output.JSON)
    (flow,) = orjson.loads(capsys.readouterr().out)["flows"]
    assert (flow["topics"], flow["groups"]) == (["x", "y"], 2)
    failover_commands.cutover(FILE, dry=True)
    assert "last offsets of 2 groups on b" in capsys.readouterr().err


def test_a_dry_promotion_is_refused_where_the_promotion_would_be(built: Stage) -> None:
    fence(built.scene())
    drain(built.scene())
    put_topic(built.world.source, "new", 1)
    put_topic(built.world.target, "a.new", 1)
    with pytest.raises(NotNow, match="new can be written on a"):
        failover_commands.promote(FILE, dry=True)
    assert built.record().state is State.DRAINED
