"""Every level of a config is shown in KIP-226's order, and what holds once the entity's own is deleted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.configs_tool.precedence import ConfigView, LevelView, views
from sinks.kafka.ports.cluster import Origin
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ResourceType
from tests.memory.memory_levels import MemoryLevels

ONE = ConfigEntity(ResourceType.BROKER, "1")
TOPIC = ConfigEntity(ResourceType.TOPIC, "orders")


def view(levels: MemoryLevels, entity: ConfigEntity, name: str) -> ConfigView:
    """One config of an entity."""
    return next(row for row in views(entity, levels.describe([entity]).items[entity], every=True) if row.name == name)


def test_only_what_is_set_at_the_place_is_listed_unless_all_is_wanted() -> None:
    levels = MemoryLevels("b", set_at={ONE: {"num.io.threads": "7"}, DEFAULT_OF_ALL: {"background.threads": "11"}})
    seen = levels.describe([ONE]).items[ONE]
    assert [row.name for row in views(ONE, seen)] == ["num.io.threads"]
    assert len(views(ONE, seen, every=True)) == len(seen)


def test_text_marks_the_level_in_force_and_tells_what_a_deletion_falls_back_to() -> None:
    levels = MemoryLevels("b", set_at={ONE: {"num.io.threads": "7"}, DEFAULT_OF_ALL: {"num.io.threads": "9"}})
    assert list(view(levels, ONE, "num.io.threads").lines()) == [
        "num.io.threads=7",
        "  * broker: 7",
        "    cluster-wide default: 9",
        "    built-in default: 8",
        "    deleted here, it falls back to 9 (cluster-wide default)",
    ]


def test_a_topic_shows_the_brokers_synonym() -> None:
    levels = MemoryLevels("b", topics={"orders"}, set_at={DEFAULT_OF_ALL: {"log.retention.ms": "9"}})
    row = view(levels, TOPIC, "retention.ms")
    assert row.falls_back_to is None
    assert "  * cluster-wide default: 9  log.retention.ms" in list(row.lines())
    levels.alter({TOPIC: {"retention.ms": "5"}})
    assert view(levels, TOPIC, "retention.ms").falls_back_to == LevelView(
        Origin.CLUSTER.value, "9", "cluster-wide default", False, "log.retention.ms"
    )


def test_read_only_and_sensitive_ones_are_marked_and_secrets_never_shown() -> None:
    name = "listener.name.x.ssl.keystore.password"
    levels = MemoryLevels("b", set_at={ONE: {name: "hush"}}, static={"node.id": "1"})
    assert next(view(levels, ONE, "node.id").lines()) == "node.id=1  (read-only)"
    row = view(levels, ONE, name)
    assert next(row.lines()) == f"{name}=[hidden]  (sensitive)"
    assert "hush" not in f"{row} {row.as_json()}"


@given(st.none() | st.just("7"), st.none() | st.just("9"), st.none() | st.just("6"))
def test_a_deletion_comes_to_what_it_was_said_to_fall_back_to(
    own: str | None, default: str | None, static: str | None
) -> None:
    name = "num.io.threads"
    set_at = {entity: {name: value} for entity, value in ((ONE, own), (DEFAULT_OF_ALL, default)) if value}
    levels = MemoryLevels("b", set_at=set_at, static={name: static} if static else {})
    before = view(levels, ONE, name)
    levels.alter({ONE: {name: None}})
    after = view(levels, ONE, name)
    assert (before.falls_back_to is not None) is (own is not None)
    if before.falls_back_to:
        assert (after.in_force.value, after.in_force.source) == (
            before.falls_back_to.value,
            before.falls_back_to.source,
        )
