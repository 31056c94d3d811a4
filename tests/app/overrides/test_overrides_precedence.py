"""Which of seven levels holds: two of overrides over four of the file over the built-in default (KIP-226)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.overrides.with_overrides import load_with_overrides
from app.properties import keys
from sinks.flow_settings import FlowSettings
from sinks.ledger.overrides import Override, OverrideLevel, altered
from sinks.model.changes import Kind
from streaming.flow import Flow

AB, BA = Flow("a", "b"), Flow("b", "a")
BASE = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\nb->a.enabled=true\n"
BASE += "lockstep.overrides.allowed=kinds\n"
TOPICS = tuple(f"of.{number}" for number in range(6))


def topics_of(flow: FlowSettings) -> str:
    """The one topic that its filter takes; any other where it takes all."""
    taken = [topic for topic in TOPICS if flow.topic_filter.should_replicate_topic(topic)]
    return taken[0] if len(taken) == 1 else ".*"


@dataclass(frozen=True)
class Case:
    """A key, whether Lockstep reads it without its prefix, a text for each level, and what holds as text."""

    name: str
    bare: bool
    texts: tuple[str, ...]
    in_force: Callable[[FlowSettings], str]
    default: str


NUMBERS = tuple(map(str, range(1, 7)))
CASES = (
    Case("observe.rate", False, NUMBERS, lambda flow: str(flow.pace.observe_rate), "0"),
    Case("topics", True, TOPICS, topics_of, ".*"),
    Case("replication.factor", True, NUMBERS, lambda flow: str(flow.replication_factor), "2"),
    Case(
        keys.SYNC_TOPIC_CONFIGS.name,
        True,
        ("true", "false", "false", "true", "true", "false"),
        lambda flow: str(flow.enabled[Kind.TOPIC_CONFIG]).lower(),
        "true",
    ),
    Case(
        keys.REFRESH_TOPICS_INTERVAL.name,
        False,
        NUMBERS,
        lambda flow: f"{flow.pace.intervals.get(Kind.TOPIC, 0):g}",
        "0",
    ),
)

FLOW, ALL = "flow's ledger", "all flows"
FILE = ("a->b.lockstep.{}", "lockstep.{}", "a->b.{}", "{}")
LEVELS = (FLOW, ALL, *FILE)
"""The strongest first."""
BARE = frozenset(FILE[2:])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("file") / "m.properties"


def loaded(path: Path, case: Case, present: set[str]) -> dict[Flow, FlowSettings]:
    """With the key at these levels."""
    texts = {level: text for level, text in zip(LEVELS, case.texts, strict=True) if level in present}
    path.write_text(BASE + "".join(f"{line.format(case.name)}={texts[line]}\n" for line in FILE if line in texts))
    name = case.name if f"lockstep.{case.name}" not in keys.TABLE else f"lockstep.{case.name}"
    of_all = altered({}, OverrideLevel.ALL, {name: Override(texts[ALL])} if ALL in texts else {})
    own = altered(of_all, OverrideLevel.FLOW, {name: Override(texts[FLOW])} if FLOW in texts else {})
    found = load_with_overrides(path, environ={}, read=lambda _: {AB: own, BA: of_all})
    return {one.flow: one for one in found.flows}


def expected(case: Case, levels: list[str]) -> str:
    """The text of the strongest of these levels that counts."""
    strongest = next((level for level in levels if case.bare or level not in BARE), None)
    return case.default if strongest is None else case.texts[LEVELS.index(strongest)]


@settings(max_examples=80, deadline=None)
@given(case=st.sampled_from(CASES), present=st.sets(st.sampled_from(LEVELS)))
def test_the_strongest_level_that_is_set_holds_and_the_other_flow_knows_nothing_of_this_ones_own(
    path: Path, case: Case, present: set[str]
) -> None:
    flows = loaded(path, case, present)
    assert case.in_force(flows[AB]) == expected(case, [level for level in LEVELS if level in present])
    of_other = (ALL, "lockstep.{}", "{}")
    assert case.in_force(flows[BA]) == expected(case, [level for level in of_other if level in present])
