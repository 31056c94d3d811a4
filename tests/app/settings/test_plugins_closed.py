"""A plug-in that has `close()` is closed once, whatever it was made for; one that goes on is not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.lazy_commands import app
from app.job.running_job import AdoptedFlows, in_force
from app.overrides.with_overrides import load_with_overrides
from app.settings import ConfigurationError, Settings, load
from streaming.flow import Flow

AB, BA = Flow("a", "b"), Flow("b", "a")
BASE = """clusters=a,b
a.bootstrap.servers=a:1
b.bootstrap.servers=b:1
a->b.enabled=true
"""
PLUGINS = """
from lockstep.filters import DefaultGroupFilter
from lockstep.listeners import DefaultTopicListener
from lockstep.policies import DefaultReplicationPolicy

class Closed:
    made, closed = [], []
    def __init__(self):
        super().__init__()
        self.made.append(type(self).__name__)
    def close(self): self.closed.append(type(self).__name__)

class Policy(Closed, DefaultReplicationPolicy): ...

class Groups(Closed, DefaultGroupFilter): ...

class Listener(Closed, DefaultTopicListener): ...

class Refuses(Groups):
    def configure(self, properties): raise ValueError("no")

class Stays(Groups):
    def reconfigurable_configs(self): return {"my.size"}
    def validate_reconfiguration(self, properties): return properties.get("my.size") != "0"
    def reconfigure(self, properties): ...

class Fails(Groups):
    def close(self):
        super().close()
        raise OSError("t0ps3cr3t")

class Provider(Closed):
    def credential(self, user): return None
"""
THREE = """replication.policy.class=acme_closed:Policy
group.filter.class=acme_closed:Groups
topic.listener.class=acme_closed:Listener
"""
NAMES = ["Groups", "Listener", "Policy"]


class Plugins:
    """The classes of a user's, and what became of their instances."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "mirror.properties"
        (folder / "acme_closed.py").write_text(PLUGINS)

    def load(self, lines: str, *flows: str, before: Settings | None = None) -> Settings:
        self.path.write_text(BASE + lines)
        return load(self.path, flows, before=before)

    @property
    def made(self) -> list[str]:
        return sorted(sys.modules["acme_closed"].Closed.made)

    @property
    def closed(self) -> list[str]:
        return sorted(sys.modules["acme_closed"].Closed.closed)


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plugins]:
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Plugins(tmp_path)
    sys.modules.pop("acme_closed", None)


def test_settings_close_every_plugin_once_however_often_they_are_closed(plugins: Plugins) -> None:
    provider = "lockstep.credential.provider.class=acme_closed:Provider\nsync.full.acl.enabled=true\n"
    settings = plugins.load(THREE + provider)
    assert (plugins.made, plugins.closed) == ([*NAMES, "Provider"], [])
    for _ in range(2):
        settings.close()
    assert plugins.closed == [*NAMES, "Provider"]


def test_file_with_a_mistake_elsewhere_closes_what_was_made_for_it(plugins: Plugins) -> None:
    with pytest.raises(ConfigurationError):
        plugins.load(THREE + "lockstep.observe.rate=many\n")
    assert plugins.closed == plugins.made == NAMES


@pytest.mark.parametrize("broken", ["topic.filter.class=no.such:Class\n", "lockstep.acl.principal.mapping=RULE:(\n"])
def test_flow_that_cannot_be_made_closes_the_plugins_that_could(plugins: Plugins, broken: str) -> None:
    with pytest.raises(ConfigurationError):
        plugins.load(THREE + broken)
    assert plugins.closed == plugins.made == NAMES


def test_plugin_that_cannot_be_configured_is_closed(plugins: Plugins) -> None:
    with pytest.raises(ConfigurationError, match="configure failed"):
        plugins.load("group.filter.class=acme_closed:Refuses\n")
    assert plugins.closed == ["Refuses"]


def test_flow_that_was_not_asked_for_is_closed_and_the_other_is_not(plugins: Plugins) -> None:
    settings = plugins.load(THREE + "b->a.enabled=true\nb->a.group.filter.class=acme_closed:Stays\n", "a->b")
    assert plugins.closed == ["Listener", "Policy", "Stays"]
    assert [one.flow for one in settings.flows] == [AB]


@pytest.mark.parametrize("lines", ["my.size=2\n", "my.size=0\n", "my.size=2\nlockstep.http.port=many\n"])
def test_plugin_that_goes_on_after_a_reload_is_not_closed_whether_the_reload_fails_or_not(
    plugins: Plugins, lines: str
) -> None:
    basis = "group.filter.class=acme_closed:Stays\n"
    before = plugins.load(basis + "my.size=1\n")
    try:
        after = plugins.load(basis + lines, before=before)
    except ConfigurationError:
        after = before
    after.close(before)
    assert plugins.closed == []
    before.close()
    assert plugins.closed == plugins.made == ["Stays"] * len(plugins.made)


def test_overrides_that_make_a_flow_anew_close_what_was_made_without_them(plugins: Plugins) -> None:
    plugins.path.write_text(BASE + THREE)
    found = load_with_overrides(plugins.path, read=lambda _: {AB: {("topics",): "orders"}})  # type: ignore[dict-item]
    assert plugins.closed == NAMES
    found.close()
    assert plugins.closed == plugins.made


def test_close_that_raises_is_logged_without_its_text_and_the_others_are_closed(
    plugins: Plugins, caplog: pytest.LogCaptureFixture
) -> None:
    plugins.load(THREE.replace("acme_closed:Groups", "acme_closed:Fails")).close()
    assert plugins.closed == ["Fails", "Listener", "Policy"]
    assert "acme_closed:Fails could not be closed: OSError" in caplog.text
    assert "t0ps3cr3t" not in caplog.text


def test_listener_that_was_handed_over_is_left_to_whoever_calls_it(plugins: Plugins) -> None:
    settings = plugins.load(THREE)
    (flow,) = settings.flows
    flow.closing.hand_over(flow.listeners.topics)
    settings.close()
    assert plugins.closed == ["Groups", "Policy"]


def test_command_closes_its_plugins_when_it_ends(plugins: Plugins) -> None:
    plugins.path.write_text(BASE + THREE)
    said = CliRunner().invoke(app, ["rights", "--config", str(plugins.path), "--principal", "User:x"])
    assert said.exit_code == 0, said.output
    assert plugins.closed == plugins.made == NAMES


def test_settings_that_are_replaced_before_a_flow_is_built_from_them_are_closed(plugins: Plugins) -> None:
    flows = [plugins.load(f"group.filter.class=acme_closed:{name}\n").flows[0] for name in ("Stays", "Groups", "Fails")]
    running, replaced, newest = flows
    adopted = AdoptedFlows()
    adopted.adopt([running])
    adopted.built(running)
    adopted.adopt([replaced])
    adopted.adopt([replaced])
    adopted.adopt([newest])
    assert plugins.closed == []
    adopted.built(newest)
    assert plugins.closed == ["Groups"], "those in force are closed with the flow that was built from them"
    running.close()
    adopted.close()
    assert plugins.closed == ["Fails", "Groups", "Stays"]


def test_settings_that_wait_when_the_job_ends_are_closed(plugins: Plugins) -> None:
    adopted = AdoptedFlows()
    adopted.adopt(plugins.load(THREE).flows)
    adopted.close()
    assert plugins.closed == NAMES


def test_flow_that_a_running_job_takes_over_with_a_restart_alone_is_closed(plugins: Plugins) -> None:
    before = plugins.load("")
    after = plugins.load("b->a.enabled=true\nb->a.group.filter.class=acme_closed:Groups\n", before=before)
    assert plugins.closed == []
    in_force(before, after)
    assert plugins.closed == plugins.made == ["Groups"]
