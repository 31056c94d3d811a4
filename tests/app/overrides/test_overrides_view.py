"""Every level of a property of Lockstep, the one in force first, and no secret in any of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.configs_tool.precedence import ConfigView
from app.overrides.overridable import overridable_keys
from app.overrides.view import Source, default_views, flow_views
from app.overrides.with_overrides import SECRET, override_of
from app.properties.scoped_keys import Properties
from app.settings.load import read_properties
from sinks.ledger.overrides import InLedger, Override
from streaming.errors import LockstepError
from streaming.flow import Flow

AB, BA = Flow("a", "b"), Flow("b", "a")
BASE = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\nb->a.enabled=true\n"
FILE = "m.properties"
PASSWORD = "t0ps3cr3t"
HOOK = "lockstep.listener.webhook.secret"
RATE = "lockstep.observe.rate"
INTERVAL = "refresh.topics.interval.seconds"


def properties_of(folder: Path, lines: str = "", **environ: str) -> Properties:
    path = folder / FILE
    path.write_text(BASE + lines)
    return read_properties(path, environ)


def stored(flow: dict[str, str] | None = None, all_flows: dict[str, str] | None = None) -> InLedger:
    """A ledger with these overrides; passwords encoded."""
    levels = {"flow": flow or {}, "": all_flows or {}}
    return {
        (level, name): override_of(name, value, {SECRET: "the secret of this test"}, literal=True).to_text()
        for level, values in levels.items()
        for name, value in values.items()
    }


def of_flow(ledger: InLedger, properties: Properties, name: str, every: bool = False) -> ConfigView:
    views = {view.name: view for view in flow_views(AB, ledger, properties, FILE, every)}
    return views[name]


def told(view: ConfigView) -> list[tuple[str, str | None]]:
    return [(level.where, level.value) for level in view.levels]


def test_levels_come_the_one_in_force_first_each_with_its_place(tmp_path: Path) -> None:
    ledger = stored({RATE: "7"}, {RATE: "8"})
    view = of_flow(ledger, properties_of(tmp_path, "lockstep.observe.rate=9\n"), RATE)
    assert told(view) == [
        ("override of the flow", "7"),
        ("override of all flows", "8"),
        ("m.properties:6", "9"),
        ("built-in default", "0"),
    ]
    assert [level.source for level in view.levels] == ["FLOW", "ALL_FLOWS", "FILE", "DEFAULT"]


def test_people_see_the_value_its_levels_and_what_a_deletion_falls_back_to(tmp_path: Path) -> None:
    view = of_flow(stored({RATE: "7"}), properties_of(tmp_path, "a->b.lockstep.observe.rate=9\n"), RATE)
    assert list(view.lines()) == [
        "lockstep.observe.rate=7",
        "  * override of the flow: 7",
        "    m.properties:6: 9",
        "    built-in default: 0",
        "    deleted here, it falls back to 9 (m.properties:6)",
    ]


def test_programs_see_the_shape_that_configs_of_brokers_have(tmp_path: Path) -> None:
    document = of_flow(stored({"topics": "orders"}), properties_of(tmp_path), "topics").as_json()
    default = {"source": "DEFAULT", "value": ".*", "where": "built-in default"}
    own = {"source": "FLOW", "value": "orders", "where": "override of the flow"}
    assert document == {
        "name": "topics",
        "value": "orders",
        "source": "FLOW",
        "read_only": False,
        "sensitive": False,
        "levels": [own | {"in_force": True}, default | {"in_force": False}],
        "falls_back_to": default,
    }


def test_line_that_holds_for_the_flow_is_shown_not_one_that_it_wins_over(tmp_path: Path) -> None:
    properties = properties_of(
        tmp_path, "topics=one\na->b.topics=two\nlockstep.topics=three\nb->a.lockstep.topics=four\n"
    )
    assert told(of_flow({}, properties, "topics", every=True))[0] == ("m.properties:8", "three")


@pytest.mark.parametrize(
    ("flow", "all_flows", "falls_back_to"),
    [
        ({RATE: "7"}, {RATE: "8"}, Source.ALL_FLOWS),
        ({RATE: "7"}, {}, Source.DEFAULT),
        ({}, {RATE: "8"}, None),
    ],
)
def test_only_what_is_set_at_the_place_itself_falls_back(
    tmp_path: Path, flow: dict[str, str], all_flows: dict[str, str], falls_back_to: Source | None
) -> None:
    back = of_flow(stored(flow, all_flows), properties_of(tmp_path), RATE).falls_back_to
    assert (back and back.source) == falls_back_to


def test_default_of_all_flows_falls_back_to_the_file_of_all_flows(tmp_path: Path) -> None:
    ledgers = dict.fromkeys((AB, BA), stored({RATE: "7"}, {RATE: "8"}))
    (view,) = default_views(
        ledgers, properties_of(tmp_path, "a->b.lockstep.observe.rate=1\nlockstep.observe.rate=9\n"), FILE, False
    )
    assert told(view) == [("override of all flows", "8"), ("m.properties:7", "9"), ("built-in default", "0")]
    assert view.falls_back_to == view.levels[1]


def test_custom_key_is_hidden_for_it_might_be_a_secret_and_may_fall_back_to_nothing(tmp_path: Path) -> None:
    view = of_flow(stored({"my.size": "3"}), properties_of(tmp_path), "my.size")
    assert list(view.lines()) == ["my.size=[hidden]  (sensitive)", "  * override of the flow: [hidden]"]
    assert view.as_json()["falls_back_to"] is None


def test_without_all_only_what_is_overridden_is_shown_and_with_it_all_that_can_be(tmp_path: Path) -> None:
    properties, ledger = properties_of(tmp_path, "topics=orders\n"), stored({"my.size": "3"}, {RATE: "8"})
    shown = [view.name for view in flow_views(AB, ledger, properties, FILE, False)]
    assert shown == [RATE, "my.size"]
    names = {key.name for key in overridable_keys()} | {"my.size"}
    assert [view.name for view in flow_views(AB, ledger, properties, FILE, True)] == sorted(names)
    assert [view.name for view in default_views({AB: ledger}, properties, FILE, False)] == [RATE]
    of_all = [view.name for view in default_views({AB: ledger}, properties, FILE, True)]
    assert of_all == sorted(names - {"my.size"})


def test_secrets_are_hidden_at_every_level_in_text_and_json(tmp_path: Path) -> None:
    ledger = stored({HOOK: PASSWORD}, {HOOK: PASSWORD})
    properties = properties_of(tmp_path, f"{HOOK}={PASSWORD}\n")
    of_all = default_views({AB: ledger, BA: stored()}, properties, FILE, False)
    for view in (of_flow(ledger, properties, HOOK), *of_all):
        text = "\n".join(view.lines())
        assert text.startswith(f"{HOOK}=[hidden]  (sensitive)\n")
        everything = text + json.dumps(view.as_json()) + repr(view)
        assert PASSWORD not in everything
        assert "encryptedPassword" not in everything
        assert {level["value"] for level in view.as_json()["levels"]} == {None}
    assert "built-in default: -" in text


def test_secret_that_is_set_nowhere_is_shown_as_not_set(tmp_path: Path) -> None:
    lines = list(of_flow({}, properties_of(tmp_path), HOOK, every=True).lines())
    assert lines == [f"{HOOK}=-  (sensitive)", "  * built-in default: -"]


def test_references_are_shown_as_they_are_written_for_what_they_lead_to_may_be_secret(tmp_path: Path) -> None:
    properties = properties_of(tmp_path, "topics = a,${env:MORE}\n", MORE=PASSWORD)
    view = of_flow(stored({"topics": "${env:MORE}"}), properties, "topics")
    assert told(view)[:2] == [("override of the flow", "${env:MORE}"), ("m.properties:6", "a,${env:MORE}")]


def test_key_that_acts_with_the_prefix_alone_is_not_in_force_without_it(tmp_path: Path) -> None:
    properties = properties_of(tmp_path, f"{INTERVAL}=5\na->b.{INTERVAL}=6\n")
    assert told(of_flow({}, properties, INTERVAL, every=True)) == [("built-in default", None)]
    properties = properties_of(tmp_path, f"a->b.{INTERVAL}=6\nlockstep.{INTERVAL}=7\n")
    assert told(of_flow({}, properties, INTERVAL, every=True))[0] == ("m.properties:7", "7")


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("sync.topic.configs.enabled", "true"),
        ("refresh.topics.interval.seconds", None),
        ("lockstep.listener.timeout", "10"),
        ("lockstep.full.comparison.interval", "60"),
        ("replication.factor", "2"),
        ("use.defaults.from", "target"),
        ("groups", ".*"),
    ],
)
def test_defaults_are_written_as_a_file_would_have_them(tmp_path: Path, name: str, default: str | None) -> None:
    assert told(of_flow({}, properties_of(tmp_path), name, every=True)) == [("built-in default", default)]


def test_default_that_is_the_same_in_all_flows_is_shown_once_and_others_name_their_flow(tmp_path: Path) -> None:
    properties = properties_of(tmp_path)

    def shown(a_to_b: dict[str, str], b_to_a: dict[str, str]) -> list[tuple[str, str | None]]:
        ledgers = {BA: stored(all_flows=b_to_a), AB: stored(all_flows=a_to_b)}
        return told(default_views(ledgers, properties, FILE, False)[0])[:-1]

    assert shown({RATE: "8"}, {RATE: "8"}) == [("override of all flows", "8")]
    assert shown({RATE: "8"}, {RATE: "9"}) == [
        ("override of all flows, in a->b", "8"),
        ("override of all flows, in b->a", "9"),
    ]
    assert shown({}, {RATE: "9"}) == [("override of all flows, in b->a", "9")]
    assert shown({HOOK: PASSWORD}, {HOOK: PASSWORD}) == [("override of all flows", None)]
    assert shown({HOOK: PASSWORD}, {}) == [("override of all flows, in a->b", None)]


def test_damaged_override_is_told_by_its_name_when_it_is_looked_at(tmp_path: Path) -> None:
    with pytest.raises(LockstepError, match="the override of topics in the ledger is damaged"):
        flow_views(AB, {("flow", "topics"): Override("x").to_text()[1:]}, properties_of(tmp_path), FILE, False)
