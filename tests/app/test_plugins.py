"""Policies and filters by the class that a file names."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.plugins import PLUGIN_KINDS, load_plugin
from streaming.errors import LockstepError, PluginError
from streaming.mm2.replication_filters import (
    ConfigPropertyFilter,
    DefaultConfigPropertyFilter,
    DefaultGroupFilter,
    DefaultTopicFilter,
    GroupFilter,
    TopicFilter,
)
from streaming.mm2.replication_policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy

MIRROR = "org.apache.kafka.connect.mirror."

PLUGINS = """
from lockstep.filters import ConfigPropertyFilter, TopicFilter
from lockstep.policies import BaseReplicationPolicy, DefaultReplicationPolicy

class Suffix(DefaultReplicationPolicy):
    def format_remote_topic(self, source_alias, topic):
        return f"{topic}@{source_alias}"

class TwoMethods(BaseReplicationPolicy):
    def format_remote_topic(self, source_alias, topic): return topic
    def upstream_topic(self, topic): return None

class NoPolicy:
    def format_remote_topic(self, source_alias, topic): return topic

class Remembers:
    def configure(self, properties): self.properties = dict(properties)
    def should_replicate_topic(self, topic): return topic in self.properties["topics"]

class BareHeir(TopicFilter):
    pass

class NotCallable:
    should_replicate_group = True

class OnlyProperties:
    __slots__ = ()
    def should_replicate_config_property(self, name): return True

class HeirOfTheProtocol(ConfigPropertyFilter):
    def should_replicate_config_property(self, name): return True

class CannotBeMade:
    def __init__(self, needed): ...
    def should_replicate_topic(self, topic): return True

class CannotBeConfigured:
    def configure(self, properties): raise KeyError("my.own.key")
    def should_replicate_topic(self, topic): return True

class Outer:
    class Inner:
        def should_replicate_group(self, group): return group == "inner"

def function(): ...
"""


@pytest.fixture(autouse=True)
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of a user's, and one with a slip in it, where Python finds them."""
    (tmp_path / "acme_plugins.py").write_text(PLUGINS)
    (tmp_path / "acme_broken.py").write_text("class Filter(:\n")
    monkeypatch.syspath_prepend(tmp_path)


def refused(reference: str, protocol: type) -> str:
    with pytest.raises(PluginError) as caught:
        load_plugin(reference, protocol, {})
    said = str(caught.value)
    assert reference in said
    assert PLUGIN_KINDS[protocol].key.name in said
    return said


@pytest.mark.parametrize(
    ("protocol", "cls"),
    [
        (ReplicationPolicy, DefaultReplicationPolicy),
        (ReplicationPolicy, IdentityReplicationPolicy),
        (TopicFilter, DefaultTopicFilter),
        (GroupFilter, DefaultGroupFilter),
        (ConfigPropertyFilter, DefaultConfigPropertyFilter),
    ],
)
def test_the_java_names_of_kafkas_own_classes_are_ours(protocol: type, cls: type) -> None:
    assert type(load_plugin(f"{MIRROR}{cls.__name__}", protocol, {})) is cls


def test_kafkas_classes_are_configured_with_the_flows_properties() -> None:
    policy = load_plugin(f"{MIRROR}DefaultReplicationPolicy", ReplicationPolicy, {"replication.policy.separator": "_"})
    assert policy.format_remote_topic("a", "orders") == "a_orders"


def test_a_users_class_is_made_and_configured() -> None:
    made = load_plugin("acme_plugins:Remembers", TopicFilter, {"topics": "orders"})
    assert made.should_replicate_topic("orders")
    assert load_plugin("acme_plugins:Suffix", ReplicationPolicy, {}).format_remote_topic("a", "t") == "t@a"


def test_a_class_may_stand_in_another() -> None:
    assert load_plugin("acme_plugins:Outer.Inner", GroupFilter, {}).should_replicate_group("inner")


@pytest.mark.parametrize("name", ["OnlyProperties", "HeirOfTheProtocol"])
def test_a_config_filter_that_says_nothing_of_defaults_leaves_them_to_the_target(name: str) -> None:
    made = load_plugin(f"acme_plugins:{name}", ConfigPropertyFilter, {})
    assert made.should_replicate_source_default("retention.ms") is False
    assert made.should_replicate_config_property("retention.ms") is True


@pytest.mark.parametrize(
    ("reference", "protocol", "said"),
    [
        ("com.acme.Policy", ReplicationPolicy, "lockstep.replication.policy.class"),
        (f"{MIRROR}DefaultGroupFilter", TopicFilter, "name it as package.module:Class"),
        (":Policy", ReplicationPolicy, "name it as package.module:Class"),
        ("acme_plugins:", TopicFilter, "name it as package.module:Class"),
        ("acme_nowhere:Filter", TopicFilter, "acme_nowhere does not import, is it on PYTHONPATH?: ModuleNotFoundError"),
        ("acme_broken:Filter", TopicFilter, "SyntaxError"),
        ("acme_plugins:Absent", TopicFilter, "acme_plugins has no Absent"),
        ("acme_plugins:function", TopicFilter, "function is not a class"),
        ("acme_plugins:BareHeir", TopicFilter, "lacks should_replicate_topic of TopicFilter"),
        ("acme_plugins:NotCallable", GroupFilter, "lacks should_replicate_group of GroupFilter"),
        ("acme_plugins:CannotBeMade", TopicFilter, "could not be created: TypeError"),
        ("acme_plugins:CannotBeConfigured", TopicFilter, "configure failed: KeyError: 'my.own.key'"),
        ("acme_plugins:TwoMethods", ReplicationPolicy, "lacks topic_source of ReplicationPolicy"),
        ("acme_plugins:NoPolicy", ReplicationPolicy, "lacks topic_source, upstream_topic, original_topic, "),
        ("acme_plugins:NoPolicy", ReplicationPolicy, "lockstep.policies.BaseReplicationPolicy has most of them"),
    ],
)
def test_a_class_that_cannot_serve_is_an_error_that_names_it_its_property_and_what_is_wrong(
    reference: str, protocol: type, said: str
) -> None:
    assert said in refused(reference, protocol)


def test_what_configure_says_to_mend_is_said_as_it_is() -> None:
    with pytest.raises(LockstepError, match=r"^topics: 'a\(' is no regular expression"):
        load_plugin(f"{MIRROR}DefaultTopicFilter", TopicFilter, {"topics": "a("})
