"""An alteration of overrides tells what it does in each ledger, and no secret."""

from __future__ import annotations

from app.overrides.view import DAMAGED_OVERRIDE, DIFFERS, OverrideAlteration
from sinks.ledger.audit import SettingChange
from sinks.ledger.overrides import Override, OverrideLevel
from sinks.secret_values import IN_PLACE_OF_SECRET
from streaming.flow import Flow

AB, BA, CA = Flow("a", "b"), Flow("b", "a"), Flow("c", "a")
SECRET = "lockstep.listener.webhook.secret"


def alteration(
    level: OverrideLevel, flows: list[Flow], before: dict[Flow, dict[tuple[str, ...], str]]
) -> OverrideAlteration:
    """Of topics, and of a secret."""
    wanted = {"topics": "orders", SECRET: "t0ps3cr3t", "groups": None}
    kept = {"topics": Override("orders"), SECRET: Override("c0d3d", encoded=True), "groups": None}
    return OverrideAlteration(level, flows, before, wanted, kept)


def test_only_the_ledgers_concerned_change_and_others_stay_as_they_are_known() -> None:
    own: dict[tuple[str, ...], str] = {("flow", "groups"): '{"value": "g"}', ("", "groups"): '{"value": "h"}'}
    done = alteration(OverrideLevel.FLOW, [AB], {AB: own, BA: own})
    assert done.after[BA] == own
    assert done.after[AB] == {
        ("", "groups"): '{"value": "h"}',
        ("flow", "topics"): '{"value":"orders"}',
        ("flow", SECRET): '{"encoded":"c0d3d"}',
    }
    assert done.entries[("flow", "groups")] is None


def test_audit_has_what_changes_in_each_ledger_with_secrets_hidden() -> None:
    before: dict[Flow, dict[tuple[str, ...], str]] = {AB: {("", "topics"): '{"value": "orders"}'}, BA: {}}
    done = alteration(OverrideLevel.ALL, [AB, BA], before)
    hidden = SettingChange(SECRET, None, IN_PLACE_OF_SECRET)
    assert done.changes(AB) == [hidden]
    assert done.changes(BA) == [SettingChange("topics", None, "orders"), hidden]
    assert alteration(OverrideLevel.FLOW, [BA], before).changes(BA)[0].name == "b->a.topics"


def test_rows_say_where_ledgers_differ_and_what_is_damaged() -> None:
    differ = alteration(OverrideLevel.ALL, [AB, BA], {AB: {("", "topics"): '{"value": "x"}'}, BA: {}})
    damaged = alteration(OverrideLevel.ALL, [AB], {AB: {("", "topics"): "{"}})
    assert differ.rows()[0] == {"name": "topics", "before": DIFFERS, "after": "orders"}
    assert damaged.rows()[0] == {"name": "topics", "before": DAMAGED_OVERRIDE, "after": "orders"}
    assert differ.rows()[1] == {"name": SECRET, "before": None, "after": IN_PLACE_OF_SECRET}
    assert "t0ps3cr3t" not in repr(differ)
