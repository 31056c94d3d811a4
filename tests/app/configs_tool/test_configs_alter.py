"""An alteration leaves an entity as it was or as it was to be, and says which, whatever comes between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from app.configs_tool.alter import ConcurrentAlteration, Overwritten, checked, known_configs, validate, write
from sinks.faults import ClusterUnreachable, ItemFault, RightsMissing
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ConfigValues, ResourceType
from streaming.errors import LockstepError, WrongUsage
from tests.memory.memory_levels import MemoryLevels

ONE = ConfigEntity(ResourceType.BROKER, "1")
NAME = "num.io.threads"
SECRET = "listener.name.x.ssl.keystore.password"


@dataclass
class Cut(MemoryLevels):
    """A connection that breaks at a write: before it arrives, or after. `dead`: and stays broken."""

    arrives: bool = True
    dead: bool = False
    asked: list[bool] = field(default_factory=list)

    def alter(
        self, wanted: Mapping[ConfigEntity, ConfigValues], validate_only: bool = False
    ) -> dict[ConfigEntity, ItemFault | None]:
        if validate_only:
            return super().alter(wanted, True)
        if self.arrives:
            super().alter(wanted)
        self.reachable = not self.dead
        raise ClusterUnreachable("no answer")


@dataclass
class Shared(MemoryLevels):
    """Another client writes right behind every write: `theirs`."""

    theirs: Mapping[str, str | None] = field(default_factory=dict)
    lost: bool = False

    def alter(
        self, wanted: Mapping[ConfigEntity, ConfigValues], validate_only: bool = False
    ) -> dict[ConfigEntity, ItemFault | None]:
        faults = super().alter(wanted, validate_only)
        if not validate_only:
            super().alter(dict.fromkeys(wanted, self.theirs))
            if self.lost:
                raise ClusterUnreachable("no answer")
        return faults


def altered(
    levels: MemoryLevels, wanted: ConfigValues, entity: ConfigEntity = ONE, between: Callable[[], None] = lambda: None
) -> bool:
    """The pass of the command; `between`: what happens after the validation."""
    alteration, _ = checked(entity, wanted, known_configs(levels, entity))
    validate(levels, alteration)
    between()
    return write(levels, alteration, lambda seconds: False)


def test_what_was_written_is_waited_for_and_seen() -> None:
    levels = MemoryLevels("b")
    assert altered(levels, {NAME: "9"}) is True
    assert altered(levels, {NAME: None, "background.threads": "11"}) is True
    assert levels.set_at[ONE] == {"background.threads": "11"}


def test_rows_tell_before_and_after_and_no_secret() -> None:
    levels = MemoryLevels("b", set_at={ONE: {SECRET: "hush", NAME: "7"}})
    wanted = {SECRET: "hushed", NAME: None, "background.threads": "11"}
    alteration, _ = checked(ONE, wanted, known_configs(levels, ONE))
    assert [tuple(row.values()) for row in alteration.rows()] == [
        (SECRET, "update", "[hidden]", "[hidden]"),
        (NAME, "delete", "7", None),
        ("background.threads", "create", None, "11"),
    ]
    assert "hush" not in repr(alteration)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({NAME: "many"}, "Not a number"),
        ({NAME: "0"}, "must be at least 1"),
        ({NAME: "9", "node.id": "4"}, "server.properties"),
    ],
)
def test_what_is_wrong_is_refused_whole_before_the_write(wanted: ConfigValues, said: str) -> None:
    levels = MemoryLevels("b")
    with pytest.raises(WrongUsage, match=said) as raised:
        altered(levels, wanted)
    assert "nothing was written" in str(raised.value)
    assert (levels.writes, levels.set_at) == (0, {})


def test_entity_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(LockstepError, match="there is no broker 7; there are: 1, 2"):
        altered(MemoryLevels("b", up=("1", "2")), {NAME: "9"}, ConfigEntity(ResourceType.BROKER, "7"))
    with pytest.raises(LockstepError, match="topic x: "):
        altered(MemoryLevels("b"), {"retention.ms": "9"}, ConfigEntity(ResourceType.TOPIC, "x"))


def test_missing_right_is_told_and_nothing_written() -> None:
    levels = MemoryLevels("b", denied={"alter"})
    with pytest.raises(RightsMissing):
        altered(levels, {NAME: "9"})
    assert levels.set_at == {}


@pytest.mark.parametrize("other", ["8", None])
def test_two_who_alter_at_once_are_told_and_the_first_holds(other: str | None) -> None:
    levels = MemoryLevels("b", set_at={ONE: {NAME: "7"}})
    with pytest.raises(ConcurrentAlteration, match=r"num\.io\.threads is (8|not set), was 7; nothing was written"):
        altered(levels, {NAME: "9"}, between=lambda: levels.alter({ONE: {NAME: other}}) and None)
    assert levels.set_at[ONE].get(NAME) == other


@pytest.mark.parametrize(("lost", "begin"), [(False, "written, but"), (True, "connection was lost while writing")])
def test_who_is_overwritten_at_once_is_told_with_what_holds_now(lost: bool, begin: str) -> None:
    levels = Shared("b", set_at={ONE: {NAME: "7"}}, theirs={NAME: "8"}, lost=lost)
    with pytest.raises(
        LockstepError, match=rf"{begin}.*another client wrote at the same time.*{NAME} is 8, was 7"
    ) as told:
        altered(levels, {NAME: "9", "background.threads": "11"})
    assert "background" not in str(told.value)
    assert isinstance(told.value, Overwritten) is not lost


def test_another_config_that_is_written_right_behind_is_no_trouble() -> None:
    assert altered(Shared("b", theirs={"background.threads": "11"}), {NAME: "9"}) is True


def test_another_config_of_the_place_may_change_meanwhile() -> None:
    levels = MemoryLevels("b")
    assert altered(levels, {NAME: "9"}, between=lambda: levels.alter({ONE: {"background.threads": "11"}}) and None)


@pytest.mark.parametrize(
    ("arrives", "dead", "said"),
    [
        (True, False, "all of it was written"),
        (False, False, "nothing of it was written"),
        (True, True, "All of it was written, or nothing: check with --describe"),
    ],
)
def test_connection_lost_at_the_write_is_told_with_what_became_of_it(arrives: bool, dead: bool, said: str) -> None:
    with pytest.raises(LockstepError, match=said):
        altered(Cut("b", arrives=arrives, dead=dead), {NAME: "9"})


def test_default_of_all_is_checked_against_what_a_broker_has() -> None:
    levels = MemoryLevels("b", static={"node.id": "1"})
    with pytest.raises(WrongUsage, match=r"is num\.io\.threads meant"):
        altered(levels, {"num.io.treads": "9"}, DEFAULT_OF_ALL)
    assert altered(levels, {NAME: "9"}, DEFAULT_OF_ALL) is True
