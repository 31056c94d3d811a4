"""Alerts and dashboard name what there is: metrics that the job exports, names of MM2's, sections of docs/alerts.md."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.local.jars import PROJECT
from sinks.engine.metrics import FAMILIES
from sinks.ledger.failover_record import ENDED
from tests.conf.promql import metrics_in, tokens

ALERTS = PROJECT / "conf" / "prometheus" / "alerts.yml"
FIRE = PROJECT / "tests" / "conf" / "alerts-fire.yml"
DASHBOARD = PROJECT / "conf" / "grafana" / "lockstep.json"
DOCS = PROJECT / "docs" / "alerts.md"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
]
PANELS: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]

OF_RECORDS = ("replication_latency_ms_avg", "record_age_ms_max", "record_rate", "byte_rate")
OF_MM2 = {
    *(f"kafka_connect_mirror_mirrorsourceconnector_{name}" for name in OF_RECORDS),
    "kafka_connect_mirror_mirrorcheckpointconnector_checkpoint_latency_ms_avg",
    *(f"kafka_connect_plugins_{name}" for name in (*OF_RECORDS, "checkpoint_latency_ms_avg")),
}
"""As Prometheus' JMX exporter named the metrics of MM2 4.3.1 with conf/prometheus/mm2-jmx-exporter.yml and
`metric.names.formats = legacy,new`."""


EXPORTER = PROJECT / "conf" / "prometheus" / "mm2-jmx-exporter.yml"


def test_every_metric_of_mm2_is_of_an_object_that_the_exporter_includes() -> None:
    names = yaml.safe_load(EXPORTER.read_text())["includeObjectNames"]
    patterns = [re.fullmatch(r"([\w.]+):(?:type=([\w-]+),)?\*", name) for name in names]
    begins = [
        "_".join([found[1].replace(".", "_"), *([found[2].replace("-", "_")] if found[2] else [])]) + "_"
        for found in patterns
        if found is not None
    ]
    assert len(begins) == len(names)
    assert [name for name in OF_MM2 if not name.startswith(tuple(begins))] == []


def exported() -> dict[str, set[str]]:
    """Each sample that Prometheus can have, with its labels."""
    found: dict[str, set[str]] = {}
    for family in FAMILIES:
        endings = ("_bucket", "_sum", "_count") if family.type == "histogram" else ("",)
        found |= {family.name + ending: set(family.labels) for ending in endings}
    return found


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)
    for panel in PANELS:
        yield from (target["expr"] for target in panel.get("targets", ()))
    for variable in json.loads(DASHBOARD.read_text())["templating"]["list"]:
        if variable["type"] == "query":
            yield re.fullmatch(r"label_values\((\w+), \w+\)", variable["definition"])[1]  # type: ignore[index]


def test_every_metric_that_alerts_and_dashboard_name_is_exported_by_the_job_or_by_mm2() -> None:
    known = exported().keys() | OF_MM2
    for expression in expressions():
        assert metrics_in(expression) <= known, expression


def test_every_metric_of_the_job_is_on_the_dashboard() -> None:
    shown = set().union(*map(metrics_in, expressions()))
    families = {family.name for family in FAMILIES}
    assert {name for name in families if not any(one.startswith(name) for one in shown)} == set()


def test_labels_that_are_selected_and_shown_are_those_of_the_metric() -> None:
    labels = exported()
    for expression in expressions():
        words = tokens(expression)
        for name, bracket in itertools.pairwise(words):
            if bracket != "{" or name not in labels:
                continue
            begin = words.index("{", words.index(name))
            selector = words[begin : words.index("}", begin)]
            used = {word for word, after in itertools.pairwise(selector) if after in ("=", "=~", "!=", "!~")}
            assert used <= labels[name], expression


@pytest.mark.parametrize("wrong", ["rate(x[5m]", "x) > 1", "x{a=1]", "x § y"])
def test_an_expression_that_cannot_be_right_is_noticed(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"nothing|not closed"):
        metrics_in(wrong)


def test_metrics_are_told_from_functions_labels_and_words() -> None:
    expression = 'sum by (a, b) (rate(x_total{c="d"}[5m])) / on (a) group_left (e) max by (a) (y offset 1h) > bool z'
    assert metrics_in(expression) == {"x_total", "y", "z"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_every_alert_says_how_bad_it_is_and_leads_to_its_section(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"]["summary"] and rule["annotations"]["description"]
    assert rule["annotations"]["runbook_url"] == f"docs/alerts.md#{rule['alert'].lower()}"
    section = DOCS.read_text().split(f"\n## {rule['alert']}\n")[1].split("\n## ")[0]
    assert re.findall(r"^\*\*(\w[\w ]*)\*\*:", section, re.MULTILINE) == ["Means", "Look at", "Do"]


def test_no_section_is_left_of_an_alert_that_is_gone() -> None:
    assert re.findall(r"^## (\w+)$", DOCS.read_text(), re.MULTILINE) == [rule["alert"] for rule in RULES]


def test_panels_do_not_cover_each_other_and_each_says_what_it_shows() -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in PANELS:
        at = panel["gridPos"]
        assert panel["type"] == "row" or panel["description"]
        for cell in itertools.product(range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])):
            assert cell[0] < 24
            assert taken.setdefault(cell, panel["title"]) == panel["title"]


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_is_silent() -> None:
    """Which promtool tries, where it is there."""
    cases = [case for one in yaml.safe_load(FIRE.read_text())["tests"] for case in one["alert_rule_test"]]
    for expected in (True, False):
        tried = {case["alertname"] for case in cases if ("exp_alerts" in case) is expected}
        assert tried == {rule["alert"] for rule in RULES}


def test_what_silences_alerts_after_a_failover_is_every_state_in_which_a_flow_has_ended() -> None:
    silencing = [rule for rule in RULES if "lockstep_failover_state" in rule["expr"]]
    assert len(silencing) == 4
    for rule in silencing:
        (states,) = re.findall(r'lockstep_failover_state\{state=~"([A-Z_|]+)"\} == 1', rule["expr"])
        assert set(states.split("|")) == {state.value for state in ENDED}


def promtool(*arguments: str, folder: Path = PROJECT) -> None:
    path = shutil.which("promtool")
    if path is None:
        pytest.skip("promtool is not on PATH")
    done = subprocess.run([path, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_takes_the_rules() -> None:
    promtool("check", "rules", str(ALERTS))


def test_promtool_sees_them_fire_and_be_silent_as_written() -> None:
    promtool("test", "rules", FIRE.name, folder=FIRE.parent)
