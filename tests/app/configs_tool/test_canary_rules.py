"""A canary ends with the value everywhere and no override, or with everything as it was."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import pytest

from app.configs_tool import canary
from app.configs_tool.canary import Canary, NotTakenBack, TakenBack
from sinks.faults import ItemFault, NoAnswer, Observed
from sinks.kafka.ports.cluster import Replicas
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ConfigValues, Levels, ResourceType
from streaming.errors import WrongUsage
from streaming.mm2.records import TopicPartition
from tests.memory.memory_levels import MemoryLevels

TWO = ConfigEntity(ResourceType.BROKER, "2")
NAME = "num.io.threads"
SET_AT = {TWO: {NAME: "5"}, DEFAULT_OF_ALL: {NAME: "6", "background.threads": "11"}}


@dataclass
class Stage:
    """Two brokers in memory; at the second of the watch in `at`, that happens."""

    at: dict[int, Callable[[Stage], None]] = field(default_factory=dict)
    levels: MemoryLevels = field(default_factory=lambda: MemoryLevels("b", up=("1", "2")))
    trouble: Replicas = field(default_factory=lambda: Replicas(2))
    ended: bool = False
    second: int = 0
    told: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        return []

    def replicas(self) -> Replicas:
        return self.trouble

    def wait(self, seconds: float) -> bool:
        if seconds >= 1:
            self.second += 1
            self.at.get(self.second, lambda stage: None)(self)
        return self.ended

    def pause(self, seconds: float) -> None:
        """Between tries to take back."""

    def run(self, wanted: ConfigValues, seconds: float = 3) -> None:
        Canary(self.levels, self, self.wait, self.pause, self.told.append, seconds).run("2", wanted)


@pytest.fixture(params=[{}, SET_AT], ids=["nothing set before", "set at both levels before"])
def set_at(request: pytest.FixtureRequest) -> dict[ConfigEntity, dict[str, str]]:
    return {entity: dict(own) for entity, own in request.param.items()}


def kept(levels: MemoryLevels) -> dict[ConfigEntity, dict[str, str]]:
    """What is set, without entities where nothing is."""
    return {entity: own for entity, own in levels.set_at.items() if own}


def end(stage: Stage) -> None:
    stage.ended = True


def lose_replicas(stage: Stage) -> None:
    stage.trouble = Replicas(2, under_replicated=frozenset(TopicPartition("orders", number) for number in (0, 1)))


def lose_leader(stage: Stage) -> None:
    stage.trouble = Replicas(2, offline=frozenset({TopicPartition("orders", 0)}))


def meddle(stage: Stage) -> None:
    stage.levels.alter({TWO: {NAME: "4"}})


def test_value_that_goes_well_becomes_the_default_and_the_override_goes(
    set_at: dict[ConfigEntity, dict[str, str]],
) -> None:
    stage = Stage(levels=MemoryLevels("b", up=("1", "2"), set_at=set_at))
    stage.run({NAME: "9"})
    assert stage.second == 3
    assert stage.levels.set_at[DEFAULT_OF_ALL][NAME] == "9"
    assert NAME not in stage.levels.set_at[TWO]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (end, "the canary was stopped before its time was over"),
        (lose_replicas, "2 partitions are under-replicated that were not before: orders-0, orders-1"),
        (lose_leader, "1 partition is offline that was not before: orders-0"),
        (meddle, "broker 2 has another value now: another client altered it"),
    ],
)
def test_value_that_goes_wrong_is_taken_back(
    set_at: dict[ConfigEntity, dict[str, str]], what: Callable[[Stage], None], said: str
) -> None:
    before = {entity: dict(own) for entity, own in set_at.items()}
    stage = Stage({2: what}, MemoryLevels("b", up=("1", "2"), set_at=set_at))
    with pytest.raises(TakenBack, match=f"{said}; taken back: everything is as it was before"):
        stage.run({NAME: "9"})
    assert kept(stage.levels) == before


def test_default_that_somebody_else_altered_meanwhile_stays_theirs() -> None:
    stage = Stage({1: lambda stage: stage.levels.alter({DEFAULT_OF_ALL: {NAME: "4"}}) and None})
    with pytest.raises(TakenBack, match="another client altered it meanwhile"):
        stage.run({NAME: "9"})
    assert kept(stage.levels) == {DEFAULT_OF_ALL: {NAME: "4"}}


class Behind(MemoryLevels):
    """Loses the answer to the write of the default, and its brokers have not heard of that write yet."""

    def describe(self, entities: Collection[ConfigEntity]) -> Observed[ConfigEntity, Levels]:
        seen = super().describe(entities)
        return Observed({one: {} if one == DEFAULT_OF_ALL else own for one, own in seen.items.items()}, seen.errors)

    def alter(
        self, wanted: Mapping[ConfigEntity, ConfigValues], validate_only: bool = False
    ) -> dict[ConfigEntity, ItemFault | None]:
        faults = super().alter(wanted, validate_only)
        if not validate_only and wanted.get(DEFAULT_OF_ALL, {}).get(NAME):
            raise NoAnswer("no answer")
        return faults


def test_default_of_which_no_broker_has_heard_yet_is_taken_back_all_the_same() -> None:
    stage = Stage(levels=Behind("b", up=("1", "2")))
    with pytest.raises(TakenBack, match="everything is as it was before"):
        stage.run({NAME: "9"})
    assert kept(stage.levels) == {}


def test_trouble_that_was_there_before_is_no_trouble() -> None:
    stage = Stage(trouble=Replicas(2, offline=frozenset({TopicPartition("old", 0)})))
    stage.run({NAME: "9"})
    assert stage.levels.set_at[DEFAULT_OF_ALL] == {NAME: "9"}


def test_broker_that_is_gone_for_a_while_gets_its_value_back_when_it_returns() -> None:
    stage = Stage({1: lambda stage: setattr(stage.levels, "up", ("1",))})
    stage.pause = lambda seconds: setattr(stage.levels, "up", ("1", "2"))  # type: ignore[method-assign]
    with pytest.raises(TakenBack, match="there is no broker 2"):
        stage.run({NAME: "9"})
    assert kept(stage.levels) == {}


def test_broker_that_stays_away_is_told_with_the_command_that_mends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary, "TAKE_BACK_TRIES", 2)
    stage = Stage({1: lambda stage: setattr(stage.levels, "up", ("1",))})
    with pytest.raises(NotTakenBack, match=r"--entity-type brokers --entity-name 2 --delete-config num\.io\.threads"):
        stage.run({NAME: "9"})


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({NAME: "0"}, "Value must be at least 1"),
        ({"listener.name.x.ssl.keystore.type": "JKS"}, "set it per broker"),
        ({NAME: None}, "goes with --add-config only"),
        ({"reporter.token": "new"}, "could not restore it"),
    ],
)
def test_what_cannot_be_tried_out_is_refused_before_anything_is_written(wanted: ConfigValues, said: str) -> None:
    set_at = {TWO: {"reporter.token": "old"}}
    stage = Stage(levels=MemoryLevels("b", up=("1", "2"), set_at=set_at))
    with pytest.raises(WrongUsage, match=said):
        stage.run(wanted)
    assert stage.levels.writes == 0
