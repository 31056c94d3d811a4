"""Commands of a failover that are killed (SIGKILL) around each of their steps, and run again, on real clusters."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.local.broker import RESTRICTED
from app.local.local_mirror import LocalMirror
from app.local.ports import free_ports
from app.local.waiting import wait_for
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.ledger.failover_record import State, Step
from sinks.ledger.ledger_entries import Entry
from streaming.mm2.records import TopicPartition
from tests.kafka.failover.failover_processes import Commands, Ended
from tests.kafka.failover.failovers import (
    SOON,
    SOURCE,
    TARGET,
    Flow,
    produce,
    producing,
    properties,
    values,
    write_file,
)

pytestmark = pytest.mark.endurance

CUTOVER = (
    Step.DENY_WRITES,
    Step.PROVE_FENCE,
    Step.AWAIT_RECORDS,
    Step.KEEP_DIVERGENCE,
    Step.LAST_OFFSETS,
    Step.GRANT_WRITES,
)
FAILOVER = (Step.KEEP_DIVERGENCE, Step.GRANT_WRITES)
FAILBACK = (Step.COUNT_LOST, Step.WRITE_REVERSE)


def killed_at(steps: Sequence[Step], flow: Flow, commands: Commands, *arguments: str, config: Path) -> Ended:
    """Killed before the first step is done, run again and killed after it, and so on, until it ends by itself."""
    for step in steps:
        for when in ("before", "after"):
            killed = commands.run(*arguments, config=config, at=step, when=when)
            assert killed.code == -signal.SIGKILL, killed.err
            assert flow.record().remaining[:1] == (step,), f"{step.name} {when}"
    return commands.run(*arguments, config=config)


def test_a_cutover_killed_around_each_step_ends_as_if_it_had_not_been(
    flow: Flow, commands: Commands, unique: str, tmp_path: Path
) -> None:
    topic, group = f"leaving-{unique}-x", f"leaving-{unique}"
    lines = properties(flow.clusters, **{"lockstep.checkpoint.dir": str(tmp_path), "lockstep.acl.stage.writes": "true"})
    config = write_file(tmp_path, lines, "staged.properties")
    flow.make_topic(topic)
    where, copy = TopicPartition(topic, 0), TopicPartition(f"{SOURCE}.{topic}", 0)
    wait_for(lambda: not any(flow.a.groups.commit({group: {where: 1}})[group].values()), SOON, "the group's commit")
    assert commands.run("apply", "--yes", "--force", config=config).code == 0
    with producing(flow.clusters.a, [topic]):
        done = killed_at(CUTOVER, flow, commands, "cutover", "--yes", config=config).flow()
    assert (done["state"], done["doing"]) == (State.PROMOTED, None)
    assert values(flow.clusters.b, copy) == values(flow.clusters.a, where) != []
    denied = [acl for acl in flow.a.acls.describe() if acl.permission == "DENY" and acl.resource_name == topic]
    assert [acl.key for acl in denied] == list(flow.ledger().fences())
    assert flow.ledger().values(Entry.STAGED) == flow.ledger().values(Entry.INTENT) == {}
    granted = AclBinding("TOPIC", copy.topic, "LITERAL", f"User:{RESTRICTED[0]}", "*", "WRITE", "ALLOW")
    assert list(flow.b.acls.describe()).count(granted) == 1
    assert flow.b.groups.committed([group]).items[group][copy] == 1
    again = commands.run("cutover", "--yes", config=config).flow()
    assert (again["state"], again["at"]) == (State.PROMOTED, done["at"])


def test_a_failover_and_the_way_back_killed_around_each_step_end_as_if_they_had_not_been(
    flow: Flow, commands: Commands, leaving: LocalMirror, unique: str, tmp_path: Path
) -> None:
    topic = f"leaving-{unique}-x"
    flow.make_topic(topic)
    leaving.stop()
    produce(flow.clusters.a, topic, 2, 7)
    flow.look_as_a_job_does()
    risk, counted = flow.preflight_as_a_job_does()
    assert (risk.trouble, risk.records, risk.exact) == (None, 14, True)
    assert [counted[TopicPartition(topic, number)] for number in range(2)] == [(8, 1, 7)] * 2
    gone = {f"{SOURCE}.bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}"}
    lines = properties(flow.clusters, **{"lockstep.checkpoint.dir": str(tmp_path)}) | gone
    without_source = write_file(tmp_path, lines, "without-source.properties")
    call = ("failover", "--yes", "14", "--why", "the source is gone")
    done = killed_at(FAILOVER, flow, commands, *call, config=without_source).flow()
    assert (done["state"], done["why"]) == (State.FAILED_OVER, "the source is gone")
    back = commands.run("failback", "--discard", "13", config=flow.config)
    assert back.code == 1
    assert f"has 14 records that never reached {TARGET}" in back.err
    reverse = tmp_path / "reverse.properties"
    call = ("failback", "--discard", "14", "--out", str(reverse))
    done = killed_at(FAILBACK, flow, commands, *call, config=flow.config).flow()
    assert done["state"] == commands.run("failback", config=flow.config).flow()["state"] == State.REVERSING
    assert f"{TARGET}->{SOURCE}.enabled=true" in reverse.read_text()
    refused = commands.run("failback", "--done", config=flow.config)
    assert refused.code == 1
    assert "say --yes unknown" in refused.err
    produce(flow.clusters.b, f"{SOURCE}.{topic}", 2, 3)
    call = ("failback", "--done", "--yes", "unknown")
    refused = commands.run(*call, config=flow.config)
    assert refused.code == 1
    assert f"{TARGET} has 6 records that never reached {SOURCE}" in refused.err
    call = (*call, "--discard", "6")
    done = killed_at([Step.LIFT_FENCE], flow, commands, *call, config=flow.config).flow()
    assert (done["state"], flow.ledger().values(Entry.DIVERGENCE)) == (State.MIRRORING, {})
    leaving.start()


def test_of_two_people_at_once_the_second_waits_and_who_is_taken_over_does_no_further_step(
    flow: Flow, commands: Commands, unique: str
) -> None:
    flow.make_topic(f"leaving-{unique}-x")
    first = commands.start("cutover", "--yes", config=flow.config, at=Step.AWAIT_RECORDS, sends="SIGSTOP")
    wait_for(first.is_stopped, SOON, "the first to stop in its cutover")
    refused = commands.run("cutover", "--yes", config=flow.config)
    assert refused.code == 1
    assert f":{first.pid} is running `" in refused.err
    done = commands.run("cutover", "--yes", "--take-over", "--why", "the first one hangs", config=flow.config).flow()
    assert done["state"] == State.PROMOTED
    first.go_on()
    late = first.wait()
    assert late.code == 1
    assert "another failover command works on this flow now" in late.err
    assert (flow.record().state, flow.record().begun.why) == (State.PROMOTED, "the first one hangs")
