"""The dashboard says nothing that Grafana's own schema does not know: what it cannot hold, Grafana would leave out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from app.local.jars import PROJECT

pytest.importorskip("grafana_foundation_sdk", reason="Grafana's schema needs Python 3.11")

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

DASHBOARD = PROJECT / "conf" / "grafana" / "lockstep.json"

BESIDE_THE_SCHEMA = {"definition", "titleFormat"}
"""What Grafana writes into its exports and its schema lacks: a variable's query for people, Prometheus' annotations."""


def lost(said: Any, held: Any, where: str = "") -> Iterator[str]:
    """What of `said` is not in `held`."""
    if isinstance(said, dict) and isinstance(held, dict):
        for key, value in said.items():
            yield from lost(value, held.get(key), f"{where}.{key}") if key in held else [f"{where}.{key}"]
    elif isinstance(said, list) and isinstance(held, list) and len(said) == len(held):
        for number, (one, other) in enumerate(zip(said, held, strict=True)):
            yield from lost(one, other, f"{where}[{number}]")
    elif said != held:
        yield where


def held(document: Any) -> Any:
    """What Grafana's types keep of it, with the types of its panels and of Prometheus' queries."""
    plugins.register_default_plugins()
    return json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(document)))


def test_grafanas_schema_knows_all_that_the_dashboard_says() -> None:
    text = DASHBOARD.read_text()
    found = list(lost(json.loads(text), held(json.loads(text))))
    assert {name.rpartition(".")[2] for name in found} <= BESIDE_THE_SCHEMA, found


def test_a_key_that_grafana_does_not_know_is_noticed() -> None:
    wrong = json.loads(DASHBOARD.read_text())
    panel = next(one for one in wrong["panels"] if one["type"] == "timeseries")
    panel["fieldConfig"]["defaults"].setdefault("custom", {})["lineWith"] = 1
    panel["tarets"] = []
    found = {name.rpartition(".")[2] for name in lost(wrong, held(json.loads(json.dumps(wrong))))}
    assert found - BESIDE_THE_SCHEMA == {"lineWith", "tarets"}
