"""A file that is read again: what can stay as it is does, and Reconfigurable plug-ins are asked first, then told."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from app.settings import ConfigurationError, Settings, load
from app.settings.job_settings import Reference
from app.settings.plugin_reconfiguration import can_stay, changed_names, reconfigure_plugins
from sinks.flow_settings import FlowSettings
from streaming.flow import Flow

AB, BA = Flow("a", "b"), Flow("b", "a")
BASE = """clusters=a,b
a.bootstrap.servers=a:1
b.bootstrap.servers=b:1
a->b.enabled=true
b->a.enabled=true
topic.filter.class=filters_by_size:BySize
my.size=3
"""
PAGE = Path(__file__).resolve().parents[3] / "docs" / "plugins.md"


class File:
    """A properties file as a running job reads it again."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "mirror.properties"
        self.path.write_text(BASE)
        self.settings = load(self.path)

    def again(self, text: str, **given: Any) -> Settings:
        self.path.write_text(text)
        return load(self.path, before=self.settings, **given)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> File:
    """A file that names the class of the documentation."""
    example = re.search(r"```python\n(class BySize.*?)```", PAGE.read_text(), re.DOTALL)
    assert example is not None
    (tmp_path / "filters_by_size.py").write_text(example[1])
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "filters_by_size", raising=False)
    return File(tmp_path)


def of(settings: Settings, flow: Flow) -> FlowSettings:
    return next(one for one in settings.flows if one.flow == flow)


def test_flow_that_nothing_changed_for_stays(file: File) -> None:
    after = file.again(BASE + "a->b.topics=orders\n")
    assert of(after, BA) is of(file.settings, BA)
    assert of(after, AB) is not of(file.settings, AB)


def test_keys_that_take_a_restart_of_the_job_and_those_of_others_make_nothing_anew(file: File) -> None:
    after = file.again(BASE + "lockstep.http.port=1\ntasks.max=4\na.security.protocol=PLAINTEXT\n")
    assert of(after, AB) is of(file.settings, AB)


@pytest.mark.parametrize("line", ["lockstep.trigger.interval=2 seconds", "lockstep.pass.min.interval=1 second"])
def test_a_key_that_no_flow_reads_makes_no_flow_anew(file: File, line: str) -> None:
    after = file.again(f"{BASE}{line}\n")
    assert of(after, AB) is of(file.settings, AB)


def test_reconfigurable_plugin_stays_and_is_told_once_everything_is_known_to_be_sound(file: File) -> None:
    after = file.again(BASE.replace("my.size=3", "my.size=5"))
    flow = of(after, AB)
    assert flow is of(file.settings, AB)
    assert flow.topic_filter.should_replicate_topic("abc"), "told before all of the file was adopted"
    reconfigure_plugins(flow, {"my.size"}, after.plugin_properties[AB])
    assert flow.topic_filter.should_replicate_topic("abcde")


def test_objection_of_a_plugin_is_a_mistake_in_its_line_and_nothing_changes(file: File) -> None:
    with pytest.raises(ConfigurationError, match=r":7: my\.size: BySize rejects it: my\.size must be") as error:
        file.again(BASE.replace("my.size=3", "my.size=many"))
    assert len(error.value.mistakes) == 1
    assert of(file.settings, AB).topic_filter.should_replicate_topic("abc")


def test_plugin_that_returns_false_objects_as_one_that_raises_does(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("filters_by_size.BySize.validate_reconfiguration", lambda plugin, properties: False)
    with pytest.raises(ConfigurationError, match=r":7: my\.size: BySize rejects it: .* returned False"):
        file.again(BASE.replace("my.size=3", "my.size=5"))


def test_another_key_beside_those_that_a_plugin_takes_makes_the_flow_anew(file: File) -> None:
    after = file.again(BASE.replace("my.size=3", "my.size=5\nmy.other=1"))
    assert of(after, AB) is not of(file.settings, AB)
    assert of(after, AB).topic_filter.should_replicate_topic("abcde")


def test_plugin_that_fails_after_all_is_logged_without_its_values(file: File, caplog: pytest.LogCaptureFixture) -> None:
    flow = of(file.settings, AB)
    reconfigure_plugins(flow, {"my.size"}, {"my.size": "t0ps3cr3t"})
    assert "a->b: BySize accepted the new values but failed to apply them: ValueError" in caplog.text
    assert "t0ps3cr3t" not in caplog.text


def test_overrides_win_over_every_line_of_the_file(file: File) -> None:
    text = BASE + "a->b.lockstep.sync.topic.configs.enabled=true\nlockstep.a->b.observe.rate=7\n"
    values = {"my.size": "2", "sync.topic.configs.enabled": "false", "lockstep.observe.rate": "9"}
    after = file.again(text, overrides={AB: values})
    enabled = {kind.value: enabled for kind, enabled in of(after, AB).enabled.items()}
    assert (enabled["topic-config"], of(after, AB).pace.observe_rate) == (False, 9)
    assert after.plugin_properties[AB]["my.size"] == "2"
    assert after.plugin_properties[BA]["my.size"] == "3"


def test_override_that_is_no_value_is_a_mistake_that_names_the_ledger(file: File) -> None:
    with pytest.raises(ConfigurationError) as error:
        file.again(BASE, overrides={AB: {"lockstep.observe.rate": "many"}})
    assert str(error.value).startswith("the ledger of a->b: a->b.lockstep.observe.rate: ")


def test_references_in_overrides_are_looked_up_where_the_job_runs(file: File) -> None:
    after = file.again(BASE, overrides={AB: {"my.size": Reference("${env:SIZE}")}}, environ={"SIZE": "8"})
    assert after.plugin_properties[AB]["my.size"] == "8"


def test_names_that_differ_are_those_of_the_flow_and_of_all(file: File) -> None:
    after = file.again(BASE.replace("my.size=3", "my.size=4") + "a->b.my.key=1\nb->a.my.other=2\n")
    names = changed_names(file.settings, after.values, AB)
    assert names == {"my.size", "my.key"}
    assert not can_stay(of(file.settings, AB), names)
    assert can_stay(of(file.settings, AB), {"my.size"})
