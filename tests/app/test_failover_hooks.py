"""Who is told of a failover's states, and what that may cost: nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.cli import failover_run
from app.cli.failover_run import call_hooks
from app.cli.output import Output
from app.failover_session import FailoverCall, claim_of_this_process, may_be_alive
from app.local.waiting import wait_for
from sinks.flow_settings import FailoverRules
from sinks.ledger.failover_record import Begun, FailoverRecord, State
from streaming.errors import WrongUsage
from tests.sinks.builders import flow_settings

BEFORE, AFTER = FailoverRecord(State.DRAINED), FailoverRecord(State.PROMOTED, begun=Begun("ann", "now", "a move"))


class Listener:
    def __init__(self) -> None:
        self.told: list[Mapping[str, Any]] = []

    def state_changed(self, state: Mapping[str, Any]) -> None:
        self.told.append(state)


class Broken:
    def state_changed(self, state: Mapping[str, Any]) -> None:
        raise ValueError("no")


def tell(rules: FailoverRules) -> None:
    call_hooks(replace(flow_settings(), failover=rules), BEFORE, AFTER)


def program(folder: Path, script: str) -> str:
    path = folder / "hook.sh"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return str(path)


def test_listener_and_program_get_the_same_state(tmp_path: Path) -> None:
    listener = Listener()
    tell(FailoverRules(listener=listener, program=program(tmp_path, f"cat > {tmp_path}/state.json")))
    (state,) = listener.told
    assert (state["before"], state["state"], state["who"], state["why"]) == ("DRAINED", "PROMOTED", "ann", "a move")
    assert json.loads((tmp_path / "state.json").read_text()) == state


def test_a_hook_that_fails_is_logged_and_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tell(FailoverRules(listener=Broken(), program=program(tmp_path, "exit 3")))
    tell(FailoverRules(program=program(tmp_path, "sleep 60"), hook_seconds=0.2))
    tell(FailoverRules(program=str(tmp_path / "nothing")))
    assert len([record for record in caplog.records if "failed" in record.message]) == 4
    assert "lockstep.failover.program.path failed" in caplog.text


def test_what_a_slow_program_started_ends_with_it(tmp_path: Path) -> None:
    tell(FailoverRules(program=program(tmp_path, f"sleep 60 & echo $! > {tmp_path}/child; wait"), hook_seconds=2.0))
    child = int((tmp_path / "child").read_text())
    wait_for(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie", 10.0, "its end")


def test_a_program_that_cannot_be_run_is_told_before_anything_is_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = replace(flow_settings(), failover=FailoverRules(program="/no/such/program"))
    monkeypatch.setattr(failover_run, "one_flow", lambda config, flows: (None, flow))
    with pytest.raises(WrongUsage, match="this user cannot run /no/such/program"):
        failover_run.called(Path("mm2.properties"), None, Output.TEXT, FailoverCall())


@pytest.mark.parametrize(("pid", "alive"), [("9" * 30, False), ("²", True), ("0", True), ("", True)])
def test_a_claim_with_an_impossible_process_stops_no_command(pid: str, alive: bool) -> None:
    here, _, _ = claim_of_this_process().rpartition(":")
    assert may_be_alive(f"{here}:{pid}") is alive


def test_the_same_process_id_in_a_container_of_the_same_host_is_another_process() -> None:
    here, _, _ = claim_of_this_process().partition("/")
    elsewhere = f"{here}/0badc0de"
    assert claim_of_this_process().startswith(f"{here}/")
    assert not may_be_alive(f"{claim_of_this_process().rpartition(':')[0]}:{'9' * 30}")
    assert may_be_alive(f"{elsewhere}:{'9' * 30}")
    assert claim_of_this_process() != f"{elsewhere}:{os.getpid()}"


def test_claim_of_an_earlier_version_is_looked_up_by_its_host() -> None:
    here, _, _ = claim_of_this_process().partition("/")
    assert may_be_alive(f"{here}:{os.getpid()}")
    assert not may_be_alive(f"{here}:{'9' * 30}")
