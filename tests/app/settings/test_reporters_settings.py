"""`metric.reporters` in the properties: ours are made or kept, MM2's are left to MM2, and no client gets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.docs_pages import LABELS
from app.properties.check import check
from app.properties.config_providers import resolve_all
from app.properties.keys import JMX_REPORTER
from app.properties.mistakes import Findings
from app.properties.parse import parse
from app.properties.scoped_keys import Properties
from app.properties.shown_values import hidden_texts
from app.settings.load import reporters
from sinks.engine.metrics import FAMILIES
from sinks.notify.metrics_reporting import MetricsReporter
from sinks.notify.push_gateway import PushGatewayReporter
from streaming.flow import Flow

PUSH = "lockstep.reporters:PushGatewayReporter"
PUSHING = f"lockstep.metric.reporters={PUSH}\nlockstep.metric.push.url="
PLUGINS = """
class Remembers:
    def configure(self, properties): self.properties = dict(properties)
    def init(self, registry): ...

class Refuses(Remembers):
    def configure(self, properties): raise ValueError(f"cannot use {properties['acme.password']}")

class Picky(Remembers):
    def reconfigurable_configs(self): return ["acme.rate"]
    def validate_reconfiguration(self, properties):
        if properties["acme.rate"] == "0": raise ValueError(f"0 is too slow for {properties['acme.password']}")
    def reconfigure(self, properties): raise AssertionError("before all of the file was checked")

class Declines(Picky):
    def validate_reconfiguration(self, properties): return False

class Lacks:
    def close(self): ...
"""


@pytest.fixture(autouse=True)
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of a user's, where Python finds it."""
    (tmp_path / "acme_reporters.py").write_text(PLUGINS)
    monkeypatch.syspath_prepend(tmp_path)


class Read:
    """What became of a file's lines."""

    def __init__(self, lines: str, before: dict[str, MetricsReporter] | None = None) -> None:
        self.findings = Findings("f")
        entries = resolve_all(parse(lines.encode(), self.findings), {}, self.findings)
        self.properties = Properties(entries, ("a", "b"), self.findings)
        self.findings.hide(hidden_texts(self.properties))
        check(self.properties)
        self.reporters = reporters(self.properties, before or {})

    @property
    def mistakes(self) -> list[str]:
        return [str(mistake) for mistake in self.findings.mistakes]

    @property
    def warnings(self) -> list[str]:
        return [str(warning) for warning in self.findings.warnings]


@pytest.mark.parametrize("lines", ["", "metric.reporters=\n", f"metric.reporters={JMX_REPORTER}\n"])
def test_a_file_of_mm2s_has_no_reporters_of_ours_and_nothing_is_wrong_with_it(lines: str) -> None:
    read = Read(lines)
    assert (read.reporters, read.mistakes, read.warnings) == ({}, [], [])


def test_another_java_class_is_a_warning_and_ours_beside_it_is_made() -> None:
    read = Read("metric.reporters=com.acme.Reporter, acme_reporters:Remembers\n")
    assert list(read.reporters) == ["acme_reporters:Remembers"]
    assert read.mistakes == []
    (said,) = read.warnings
    assert said == (
        "f:1: metric.reporters: com.acme.Reporter is for MM2 alone; "
        "Lockstep's own reporters are written package.module:Class"
    )


@pytest.mark.parametrize("name", ["com.acme.Reporter", JMX_REPORTER])
def test_a_java_class_behind_the_prefix_is_a_mistake(name: str) -> None:
    (said,) = Read(f"\nlockstep.metric.reporters={name}\n").mistakes
    assert said.startswith(f"f:2: lockstep.metric.reporters: {name} is a Java class, for MM2 alone")


def test_behind_the_prefix_the_list_wins_over_the_bare_one_which_is_mm2s_affair_then() -> None:
    read = Read("metric.reporters=com.acme.Reporter\nlockstep.metric.reporters=acme_reporters:Remembers\n")
    assert (list(read.reporters), read.mistakes, read.warnings) == (["acme_reporters:Remembers"], [], [])


def test_a_class_that_is_listed_twice_is_made_once() -> None:
    assert list(Read("metric.reporters=acme_reporters:Remembers,acme_reporters:Remembers\n").reporters) == [
        "acme_reporters:Remembers"
    ]


def test_a_reporter_is_configured_with_what_holds_for_all_flows() -> None:
    read = Read(
        "metric.reporters=acme_reporters:Remembers\nacme.rate=1\nlockstep.topics=ours\ntopics=mm2\na->b.topics=flow\n"
        "b.sasl.jaas.config=hush\nlockstep.observe.rate=5\n"
    )
    made = read.reporters["acme_reporters:Remembers"]
    expected = {
        "metric.reporters": "acme_reporters:Remembers",
        "acme.rate": "1",
        "topics": "ours",
        "lockstep.observe.rate": "5",
    }
    assert vars(made)["properties"] == read.properties.of_job() == expected


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("acme_reporters:Lacks", "acme_reporters:Lacks (metric.reporters) lacks init of MetricsReporter"),
        ("acme_reporters:Absent", "acme_reporters has no Absent"),
        ("acme_nowhere:Reporter", "acme_nowhere does not import, is it on PYTHONPATH?"),
        ("acme_reporters:Refuses", "configure failed: ValueError: cannot use [hidden]"),
    ],
)
def test_a_class_that_cannot_serve_is_a_mistake_in_its_line_and_shows_no_secret(name: str, said: str) -> None:
    read = Read(f"acme.password=hunter2\nlockstep.metric.reporters={name}\n")
    (mistake,) = read.mistakes
    assert mistake.startswith(f"f:2: lockstep.metric.reporters: {name}")
    assert said in mistake
    assert "hunter2" not in mistake
    assert read.reporters == {}


def test_names_that_are_no_classes_are_a_mistake_that_is_told_once() -> None:
    (said,) = Read("lockstep.metric.reporters=my reporter\n").mistakes
    assert "'my reporter' is not allowed; allowed: classes, separated by commas" in said


def test_the_shipped_reporter_is_made_and_what_it_needs_is_a_mistake_told_once() -> None:
    read = Read(f"{PUSHING}http://gateway:9091\n")
    assert isinstance(read.reporters[PUSH], PushGatewayReporter)
    assert (read.mistakes, read.warnings) == ([], [])
    (said,) = Read(f"lockstep.metric.reporters={PUSH}\n").mistakes
    assert said.startswith("f:1: lockstep.metric.reporters: lockstep.metric.push.url is missing")
    (said,) = Read(f"{PUSHING}http://gateway:9091\nlockstep.metric.push.interval=often\n").mistakes
    assert said.startswith("f:3: lockstep.metric.push.interval: 'often' is not allowed")


def test_one_that_runs_goes_on_and_one_beside_it_is_made() -> None:
    before = Read("metric.reporters=acme_reporters:Remembers,acme_reporters:Picky\nacme.rate=1\n").reporters
    after = Read(
        f"metric.reporters=acme_reporters:Picky,{PUSH}\nacme.rate=2\nlockstep.metric.push.url=http://g:1\n", before
    ).reporters
    assert list(after) == ["acme_reporters:Picky", PUSH]
    assert after["acme_reporters:Picky"] is before["acme_reporters:Picky"]


def test_what_a_running_one_objects_to_is_a_mistake_before_anything_changes_and_shows_no_secret() -> None:
    lines = "metric.reporters=acme_reporters:Picky\nacme.password=hunter2\nacme.rate="
    before = Read(f"{lines}1\n").reporters
    (said,) = Read(f"{lines}0\n", before).mistakes
    assert said == (
        "f:1: metric.reporters: acme_reporters:Picky rejects the new properties: ValueError: 0 is too slow for [hidden]"
    )


def test_a_running_one_that_returns_false_objects_as_one_that_raises_does() -> None:
    lines = "metric.reporters=acme_reporters:Declines\nacme.rate="
    before = Read(f"{lines}1\n").reporters
    (said,) = Read(f"{lines}2\n", before).mistakes
    assert said.endswith("rejects the new properties: its validate_reconfiguration returned False")


def test_the_push_reporters_new_address_is_checked_before_it_counts() -> None:
    before = Read(f"{PUSHING}http://gateway:9091\n").reporters
    assert Read(f"{PUSHING}http://other:9091\n", before).reporters == before
    (said,) = Read(f"{PUSHING}other:9091\n", before).mistakes
    assert "lockstep.metric.push.url: its value is no address of a web server" in said


@pytest.mark.parametrize("prefix", ["", "lockstep.", "a.", "a.admin.", "a->b.source.admin.", "lockstep.a.admin."])
@pytest.mark.parametrize("role", ["admin", "consumer", "producer"])
def test_no_client_gets_reporters_wherever_they_are_written(prefix: str, role: str) -> None:
    written = f"{prefix.replace('admin', role)}metric.reporters={PUSH}\na.{role}.metrics.num.samples=3\n"
    found = Read(written).properties
    for flow in (None, Flow("a", "b")):
        assert found.client(role, "a", flow) == {"metrics.num.samples": "3"}


def test_every_label_of_a_metric_is_explained_and_no_other() -> None:
    assert set(LABELS) == {label for family in FAMILIES for label in family.labels}
