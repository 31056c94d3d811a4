"""Loads the plug-in classes that a file names: Kafka's by Java name, others by `package.module:Class`.

Plug-ins are policies, filters, listeners, providers and reporters. The package `lockstep` exports their protocols and
the classes that Lockstep ships. A class is created without arguments and may have `configure(properties)`. It gets all
properties of its flow; a reporter serves the whole job and gets those that hold for all flows.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.properties import keys
from app.properties.keys import MIRROR, Key
from sinks.notify.metrics_reporting import MetricsReporter
from sinks.plugins.credential_provider import CredentialProvider, close_nothing, version_of_credential
from sinks.plugins.listeners import (
    DefaultFailoverListener,
    DefaultGroupListener,
    DefaultTopicListener,
    FailoverListener,
    GroupListener,
    TopicListener,
)
from sinks.plugins.plugin_closing import close_plugin
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

ABSTRACT = "__abstractmethods__"
MOST_OF_A_POLICY = "lockstep.policies.BaseReplicationPolicy"


@dataclass(frozen=True)
class PluginKind:
    """How to load the class that the property `key` names. `shipped`: Lockstep's classes, by Kafka's names. `reads`:
    further keys that Kafka's own class reads. `defaults`: methods that a class may leave out."""

    key: Key[Any]
    shipped: tuple[type, ...] = ()
    reads: tuple[Key[Any], ...] = ()
    defaults: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


PLUGIN_KINDS: Mapping[type, PluginKind] = {
    ReplicationPolicy: PluginKind(
        keys.POLICY,
        (DefaultReplicationPolicy, IdentityReplicationPolicy),
        (keys.SEPARATOR, keys.INTERNAL_SEPARATOR),
    ),
    TopicFilter: PluginKind(keys.TOPIC_FILTER, (DefaultTopicFilter,), (keys.TOPICS, keys.TOPICS_EXCLUDE)),
    GroupFilter: PluginKind(keys.GROUP_FILTER, (DefaultGroupFilter,), (keys.GROUPS, keys.GROUPS_EXCLUDE)),
    ConfigPropertyFilter: PluginKind(
        keys.CONFIG_FILTER,
        (DefaultConfigPropertyFilter,),
        (keys.CONFIG_EXCLUDE, keys.USE_DEFAULTS_FROM),
        {"should_replicate_source_default": lambda self, name: False},
    ),
    TopicListener: PluginKind(keys.TOPIC_LISTENER, (DefaultTopicListener,)),
    GroupListener: PluginKind(keys.GROUP_LISTENER, (DefaultGroupListener,)),
    FailoverListener: PluginKind(keys.FAILOVER_LISTENER, (DefaultFailoverListener,)),
    CredentialProvider: PluginKind(
        keys.CREDENTIAL_PROVIDER, defaults={"version": version_of_credential, "close": close_nothing}
    ),
    MetricsReporter: PluginKind(keys.METRIC_REPORTERS, defaults={"close": close_nothing}),
}
"""How to load a class, by the protocol that it must implement."""


def load_plugin(reference: str, protocol: type, properties: Mapping[str, str]) -> Any:
    """Creates the class and configures it. `reference`: its name in the file. `protocol`: a key of PLUGIN_KINDS.

    Raises PluginError, which names the class, the property and what it lacks. Passes on a LockstepError of `configure`.
    Closes an instance that failed to configure; the caller closes any other.
    """
    kind = PLUGIN_KINDS[protocol]
    named = f"{reference} ({kind.key.name})"
    shipped = {f"{MIRROR}{one.__name__}": one for one in kind.shipped}
    cls = shipped.get(reference) or _imported(reference, kind.key.name)
    absent = [name for name in _methods(protocol) if not _has(cls, protocol, name)]
    if lacking := [name for name in absent if name not in kind.defaults]:
        hint = f"; {MOST_OF_A_POLICY} has most of them" if protocol is ReplicationPolicy else ""
        raise PluginError(f"{named} lacks {', '.join(lacking)} of {protocol.__name__}{hint}")
    if absent:
        cls = type(cls.__name__, (cls,), {name: kind.defaults[name] for name in absent})
    plugin = _call(f"{named} could not be created", cls)
    if callable(getattr(plugin, "configure", None)):
        try:
            _call(f"{named}: configure failed", lambda: plugin.configure(properties))
        except LockstepError:
            close_plugin(plugin)
            raise
    return plugin


def _imported(reference: str, key: str) -> type:
    named = f"{reference} ({key})"
    module, colon, name = reference.partition(":")
    if not (colon and module and name):
        raise PluginError(
            f"Lockstep cannot load {named}. Write a Java class other than Kafka's own in Python, and "
            f"name it as package.module:Class. With the prefix, as lockstep.{key}, MM2 keeps its own"
        )
    imported = _call(
        f"{named}: {module} does not import, is it on PYTHONPATH?", lambda: importlib.import_module(module)
    )
    try:
        found = operator.attrgetter(name)(imported)
    except AttributeError as error:
        raise PluginError(f"{named}: {module} has no {name}") from error
    if not isinstance(found, type):
        raise PluginError(f"{named}: {name} is not a class")
    return found


def _methods(protocol: type) -> list[str]:
    return [name for name, member in vars(protocol).items() if callable(member) and not name.startswith("_")]


def _has(cls: type, protocol: type, name: str) -> bool:
    """Returns whether the class implements the method, neither inherited from the protocol nor abstract."""
    method = getattr(cls, name, None)
    return callable(method) and method is not vars(protocol)[name] and name not in getattr(cls, ABSTRACT, ())


def _call(failed: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except LockstepError:
        raise
    except Exception as error:
        raise PluginError(f"{failed}: {type(error).__name__}: {error}") from error
