"""Whatever happens between passes, the target ends in step, and then nothing is written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.faults import (
    ClusterUnreachable,
)
from sinks.flow_settings import Pace
from tests.sinks.builders import World, flow_settings, overrides_of, put_topic, set_config

INTERVAL = 60.0

NAMES = st.sampled_from(["x", "y", "z"])


KEYS = st.sampled_from(["retention.ms", "retention.bytes", "cleanup.policy"])


VALUES = st.none() | st.sampled_from(["1", "2"])


ACTIONS = st.lists(
    st.tuples(st.just("source"), NAMES, KEYS, VALUES)
    | st.tuples(st.just("target"), NAMES, KEYS, VALUES)
    | st.tuples(st.sampled_from(["drop", "restart", "silent", "wait"]), NAMES, KEYS, VALUES),
    max_size=12,
)


def happen(world: World, action: str, topic: str, name: str, value: str | None) -> None:
    """One thing that may happen between two passes, then a pass."""
    if action == "source":
        set_config(world.source, topic, name, value)
    elif action == "target" and f"a.{topic}" in world.target.topics:
        set_config(world.target, f"a.{topic}", name, value)
    elif action == "drop":
        world.target.topics.pop(f"a.{topic}", None)
    elif action == "restart":
        world.restart()
    elif action == "silent":
        world.target.reachable = False
        with pytest.raises(ClusterUnreachable):
            world.run_pass()
        world.target.reachable = True
    world.run_pass(after=INTERVAL if action == "wait" else 1.0)


@given(ACTIONS, st.sampled_from([0, 2, 1000]))
@settings(max_examples=60, deadline=None)
def test_whatever_happens_the_target_is_in_step_after_a_full_comparison_and_then_quiet(
    actions: list[tuple[str, str, str, str | None]], rate: int
) -> None:
    world = World(flow_settings(pace=Pace(observe_rate=rate)))
    for topic in ("x", "y", "z"):
        put_topic(world.source, topic)
    world.settle()
    for action, topic, name, value in actions:
        happen(world, action, topic, name, value)
    world.run_pass(after=INTERVAL)
    world.settle()
    for topic in ("x", "y", "z"):
        assert overrides_of(world.target, f"a.{topic}") == overrides_of(world.source, topic)
    assert world.run_pass(after=INTERVAL).outcomes == ()
    assert world.target.writes == 0
