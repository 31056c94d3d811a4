"""Once the flow has drained a topic, its clients may write the copy: Lockstep changes the copy no more."""

from __future__ import annotations

import pytest

from sinks.engine.moved_copies import BEHIND_TAKEOVER, MOVED, refuse_moved
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.translation import Method
from sinks.ledger.kept_divergences import Divergence, divergences, keep_divergences, takeover_ends
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import Change, Kind, Op
from sinks.model.plan import make_plan
from streaming.errors import LockstepError
from tests.sinks.builders import World, config_change, flow_settings, overrides_of, put_topic, set_config
from tests.sinks.kinds.acls.acl_builders import acl
from tests.sinks.kinds.offsets.test_offsets_survey import AX, Stage
from tests.sinks.kinds.topics.test_deletions import observe

DRAINED = {"x": Divergence("a.x", [10], [10], [0], True)}
REMOTE_ACL = acl("ALLOW READ User:app TOPIC a.x")


def drained() -> World:
    """A flow that drained x, and goes on with y."""
    world = World(flow_settings(topic_deletes=True, enabled=(Kind.TOPIC, Kind.TOPIC_CONFIG, Kind.ACL)))
    world.source_acls.bindings.add(acl("ALLOW READ User:app TOPIC x"))
    for topic in "xy":
        put_topic(world.source, topic, retention_ms="9")
    world.settle()
    keep_divergences(world.ledger(), DRAINED)
    return world


@pytest.mark.parametrize(
    "damage", ['{"ends": null}', '{"remote": ["a"], "ends": [], "known": [], "lost": [], "exact": true}', "[]"]
)
def test_end_of_a_copy_that_no_command_wrote_is_not_trusted(damage: str) -> None:
    world = World()
    world.ledger().put({(Entry.DIVERGENCE, ("x",)): damage})
    with pytest.raises(LockstepError, match="where partitions diverged cannot be read"):
        divergences(world.ledger())


@pytest.mark.parametrize("restarts", [False, True], ids=["read before", "read after"])
def test_a_drained_topic_that_its_source_loses_stays_on_the_target(restarts: bool) -> None:
    world = drained()
    if restarts:
        world.restart()
    del world.source.topics["x"]
    del world.source.topics["y"]
    put_topic(world.source, "z")
    observe(world, 4)
    assert "a.x" in world.target.topics
    assert "a.y" not in world.target.topics


@pytest.mark.parametrize("restarts", [False, True], ids=["read before", "read after"])
def test_configs_and_acls_of_a_drained_topic_stay_whatever_becomes_of_the_old_one(restarts: bool) -> None:
    world = drained()
    if restarts:
        world.restart()
    set_config(world.source, "x", "retention.ms", "1")
    set_config(world.source, "y", "retention.ms", "1")
    world.source_acls.bindings = {acl("ALLOW READ User:other TOPIC y")}
    observe(world, 4)
    assert (overrides_of(world.target, "a.x"), overrides_of(world.target, "a.y")) == (
        {"retention.ms": "9"},
        {"retention.ms": "1"},
    )
    assert REMOTE_ACL in world.target_acls.bindings


@pytest.mark.parametrize("moved", [True, False])
def test_no_client_loses_its_access_on_the_target_once_clients_may_have_moved(moved: bool) -> None:
    """Groups, transactional ids and prefixes have no topic that would tell who moved."""
    world = drained()
    if not moved:
        world.ledger().put({(Entry.DIVERGENCE, ("x",)): None})
    texts = ["ALLOW READ User:app GROUP g", "ALLOW ALL User:app TRANSACTIONAL_ID tx", "ALLOW READ User:app TOPIC y"]
    world.source_acls.bindings |= {acl(text) for text in texts}
    world.source_acls.bindings.add(acl("ALLOW READ User:other TOPIC y"))
    observe(world, 2)
    there = {acl(text.replace("TOPIC y", "TOPIC a.y")) for text in texts}
    assert there <= world.target_acls.bindings
    world.source_acls.bindings -= {acl(text) for text in texts}
    observe(world, 4)
    assert (there & world.target_acls.bindings) == (there if moved else set())


def test_what_lockstep_does_not_do_for_a_drained_topic_is_refused_with_the_reason() -> None:
    world = drained()
    world.restart()
    set_config(world.source, "x", "retention.ms", "1")
    (refused,) = world.run_pass(everything=True).plan.refused
    assert (refused.kind, refused.key, refused.reason) == (Kind.TOPIC_CONFIG, ("a.x", "retention.ms"), MOVED)


def test_a_group_is_not_placed_behind_the_end_that_the_copy_had_when_its_clients_could_move() -> None:
    before, behind = (Change(Kind.GROUP_OFFSET, ("g", "a.x", "0"), 5, offset) for offset in (10, 11))
    other = Change(Kind.GROUP_OFFSET, ("g", "a.y", "0"), 5, 99)
    plan = refuse_moved(make_plan(flow_settings().flow, [before, other]), DRAINED)
    assert set(plan.changes) == {before, other}
    (refused,) = refuse_moved(make_plan(flow_settings().flow, [behind]), DRAINED).refused
    assert (refused.op, refused.reason, refused.passing) == (Op.UPDATE, BEHIND_TAKEOVER, True)


def test_other_topics_are_changed_as_before() -> None:
    change = config_change("a.y", "retention.ms", "1", "2")
    plan = make_plan(flow_settings().flow, [change])
    assert refuse_moved(plan, DRAINED) == plan


def test_a_group_at_the_end_of_the_source_goes_on_where_the_copy_ended_before_clients_wrote_it() -> None:
    built = Stage()
    built.on_b.logs[AX] = LogRange(0, 140)
    memory = built.memory()
    memory.takeover_ends = takeover_ends({"x": Divergence("a.x", [90], [100], [0], True)})
    (row,) = built.rows(memory=memory)
    assert (row.goes_on_at, row.as_json()["method"]) == (90, Method.TIP.value)
