"""Any sequence of alters and deletes over the levels gives the value in force that KIP-226's precedence says."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.local.waiting import wait_for
from sinks.kafka.ports.cluster import Origin
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ConfigLevels
from tests.contract.acl_looks import broker_of
from tests.contract.level_looks import ONE, SOON, at, clear, levels_of, written
from tests.memory.memory_levels import MemoryLevels

NAME = "log.cleaner.delete.retention.ms"
STEPS = st.lists(
    st.tuples(st.sampled_from([ONE, DEFAULT_OF_ALL]), st.none() | st.sampled_from(["1000", "2000"])), max_size=6
)
"""Alters and deletes (None) of one config over the dynamic levels."""
BUILT_IN = "86400000"


def follow(levels: ConfigLevels, steps: list[tuple[ConfigEntity, str | None]], static: str | None = None) -> None:
    """Takes the steps, and compares what is in force with KIP-226's precedence."""
    clear(levels, [NAME])
    wanted: dict[ConfigEntity, str | None] = {}
    for entity, value in steps:
        assert levels.alter({entity: {NAME: value}}) == {entity: None}
        wanted[entity] = value
    by_level = (
        (wanted.get(ONE), Origin.BROKER),
        (wanted.get(DEFAULT_OF_ALL), Origin.CLUSTER),
        (static, Origin.STATIC),
        (BUILT_IN, Origin.DEFAULT),
    )
    expected = [(value, origin) for value, origin in by_level if value is not None]

    def has_come() -> bool:
        entry = at(levels, ONE)[NAME]
        # An earlier step may give the same levels, so a second answer may differ.
        return (written(entry), (entry.value, entry.origin)) == (expected, expected[0])

    wait_for(has_come, SOON, f"{NAME} to be {expected}")


@given(STEPS, st.none() | st.just("500"))
def test_any_steps_in_memory_end_in_the_value_that_precedence_says(
    steps: list[tuple[ConfigEntity, str | None]], static: str | None
) -> None:
    follow(MemoryLevels("b", static={NAME: static} if static else {}), steps, static)


@pytest.mark.kafka
@pytest.mark.spark
def test_any_steps_on_a_broker_end_in_the_value_that_precedence_says(request: pytest.FixtureRequest) -> None:
    levels = levels_of(broker_of(request))

    @settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
    @given(STEPS)
    def follow_on_broker(steps: list[tuple[ConfigEntity, str | None]]) -> None:
        follow(levels, steps)

    follow_on_broker()
    clear(levels, [NAME])
