"""The flows of a file: which are enabled, and the settings of each, policy and filters built."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from app.plugins import load_plugin
from app.properties import keys
from app.properties.keys import Key
from app.properties.mistakes import Findings
from app.properties.scoped_keys import Properties
from app.properties.shown import hidden_texts
from app.settings.acl_settings import acl_rules, check_full, check_principals, credential_provider, disabled_reasons
from app.settings.cluster_sections import check_aliases, cluster_settings
from app.settings.contradictions import READ_BY, check_flow, check_plugins
from app.settings.safety_settings import failover_rules, safety
from sinks.engine.model import Kind
from sinks.failover.listener import FailoverListener
from sinks.flow_settings import AclRules, FlowSettings, Incremental, Limits, Listeners, Pace, Verifying
from sinks.kinds.users.credentials import CredentialProvider
from sinks.notify.replication_listeners import GroupListener, TopicListener
from sinks.plugin_closing import close_plugin
from streaming.errors import LockstepError
from streaming.flow import Flow
from streaming.mm2.internal_topics import InternalTopics, internal_topics
from streaming.mm2.replication_filters import ConfigPropertyFilter, GroupFilter, TopicFilter
from streaming.mm2.replication_policy import ReplicationPolicy
from streaming.mm2.topic_names import check_topic_name
from streaming.nearest import nearest

PLUGINS: Mapping[Key[str], Any] = {
    keys.POLICY: ReplicationPolicy,
    keys.TOPIC_FILTER: TopicFilter,
    keys.GROUP_FILTER: GroupFilter,
    keys.CONFIG_FILTER: ConfigPropertyFilter,
    keys.TOPIC_LISTENER: TopicListener,
    keys.GROUP_LISTENER: GroupListener,
    keys.FAILOVER_LISTENER: FailoverListener,
}
"""What a class named in the file must be."""

INTERVALS: Mapping[Kind, Key[int | None]] = {
    kind: keys.TABLE[kind.row.interval_key] for kind in Kind if kind.row.interval_key
}


def enabled_flows(properties: Properties, findings: Findings) -> tuple[Flow, ...]:
    """The enabled flows, sorted; that there is none is a mistake."""
    aliases = properties.aliases
    pairs = [Flow(source, target) for source in aliases for target in aliases if source != target]
    found = tuple(sorted(flow for flow in pairs if properties.get(keys.ENABLED, flow)))
    if found or any(_hides_flows(mistake.key, aliases) for mistake in findings.mistakes):
        return found
    if not pairs:
        listed = properties.entry(keys.CLUSTERS.name)
        findings.mistake(listed, "names one cluster only: a flow needs a source and a target, e.g. clusters=a,b")
        return ()
    written = next((entry for flow in pairs if (entry := properties.entry(keys.ENABLED.name, flow))), None)
    name = f"{pairs[0].name}.{keys.ENABLED.name}"
    findings.mistake(written, f"no flow is enabled: write e.g. {name}=true", written.key if written else name)
    return ()


def _hides_flows(key: str, aliases: Sequence[str]) -> bool:
    """Whether a mistake in this key may be why no flow is enabled: to say that, too, would help nobody."""
    return key in aliases or key.endswith((keys.ENABLED.name, keys.CLUSTERS.name, "->"))


def chosen_flows(enabled: Sequence[Flow], wanted: Sequence[str], findings: Findings) -> tuple[Flow, ...]:
    """Those that were asked for; all, if none was. One that is not enabled is a mistake."""
    names = {flow.name: flow for flow in enabled}
    chosen = set()
    for text in wanted:
        try:
            name = Flow.parse(text).name
        except (LockstepError, ValueError) as error:
            findings.mistake(None, f"--flow {text}: {error}")
            continue
        if name in names:
            chosen.add(names[name])
        else:
            findings.mistake(None, not_enabled(name, names))
    return tuple(sorted(chosen)) if wanted else tuple(enabled)


def not_enabled(name: str, enabled: Collection[str]) -> str:
    """What to say of a `--flow` that the file does not enable."""
    near = nearest(name, enabled)
    hint = f"; nearest: {near}" if near else ""
    return f"--flow {name}: this flow is not enabled in the file; enabled: {', '.join(enabled) or 'none'}{hint}"


def flow_settings(properties: Properties, flow: Flow, findings: Findings) -> FlowSettings | None:
    """The settings of a flow, to be closed by the caller; None where a mistake leaves no policy, filter or name."""
    check_flow(properties, flow, findings)
    check_full(properties, flow, findings)
    with ExitStack() as unused:
        plugins = {key: _plugin(properties, flow, key, findings) for key in PLUGINS}
        for plugin in plugins.values():
            unused.callback(close_plugin, plugin)
        if None in plugins.values():
            return None
        internal = _internal_topics(properties, flow, plugins[keys.POLICY], findings)
        acls, provider = acl_rules(properties, flow, findings), credential_provider(properties, flow, findings)
        unused.callback(close_plugin, provider)
        if internal is None or acls is None:
            return None
        settings = _settings(properties, flow, plugins, internal, acls, provider, findings)
        check_principals(properties, flow, settings.enabled, findings)
        check_plugins(properties, settings, findings)
        unused.pop_all()
    return settings


def _settings(
    properties: Properties,
    flow: Flow,
    plugins: Mapping[Key[str], Any],
    internal: InternalTopics,
    acls: AclRules,
    provider: CredentialProvider | None,
    findings: Findings,
) -> FlowSettings:
    enabled = {kind: _is_enabled(properties, flow, kind) for kind in Kind} | {Kind.SCRAM_USER: provider is not None}
    return FlowSettings(
        flow=flow,
        policy=plugins[keys.POLICY],
        topic_filter=plugins[keys.TOPIC_FILTER],
        group_filter=plugins[keys.GROUP_FILTER],
        config_filter=plugins[keys.CONFIG_FILTER],
        internal=internal,
        enabled=enabled,
        disabled_reasons=disabled_reasons(properties, flow, findings),
        heartbeats_replication=properties.get(keys.HEARTBEATS_REPLICATION, flow),
        incremental=Incremental(properties.get(keys.USE_INCREMENTAL, flow)),
        replication_factor=properties.get(keys.REPLICATION_FACTOR, flow),
        topic_deletes=properties.get(keys.TOPIC_DELETES, flow),
        emit_checkpoints=properties.get(keys.EMIT_CHECKPOINTS, flow),
        matching=properties.get(keys.OFFSET_TRANSLATION, flow) == "matched",
        isolation=cluster_settings(properties, flow.source, flow).consumer.get("isolation.level", "read_uncommitted"),
        listeners=_listeners(properties, flow, plugins[keys.TOPIC_LISTENER], plugins[keys.GROUP_LISTENER]),
        broker_configs=properties.get(keys.BROKER_CONFIG_PROPERTIES, flow),
        acls=acls,
        provider=provider,
        pace=_pace(properties, flow),
        limits=Limits(
            properties.get(keys.MAX_DELETE_PERCENT, flow),
            properties.get(keys.MAX_DELETE_MINIMUM, flow),
            properties.get(keys.MAX_CREATE, flow),
        ),
        safety=safety(properties, flow),
        failover=failover_rules(properties, flow, plugins[keys.FAILOVER_LISTENER]),
        verifying=Verifying(properties.get(keys.VERIFY_ENABLED, flow), properties.get(keys.VERIFY_RATE, flow)),
    )


def _is_enabled(properties: Properties, flow: Flow, kind: Kind) -> bool:
    return any(properties.get(keys.TABLE[switch.name], flow) for switch in kind.row.enabled_by)


def _listeners(properties: Properties, flow: Flow, topics: TopicListener, groups: GroupListener) -> Listeners:
    return Listeners(topics, groups, properties.get(keys.LISTENER_TIMEOUT, flow), hidden_texts(properties))


def _pace(properties: Properties, flow: Flow) -> Pace:
    return Pace(
        observe_share=properties.get(keys.OBSERVE_SHARE, flow),
        observe_rate=properties.get(keys.OBSERVE_RATE, flow),
        full_comparison_interval=properties.get(keys.FULL_COMPARISON_INTERVAL, flow),
        shard_topics=properties.get(keys.SHARD_TOPICS, flow),
        heartbeat_timeout=properties.get(keys.HEARTBEAT_TIMEOUT, flow),
        intervals=_intervals(properties, flow),
    )


def _intervals(properties: Properties, flow: Flow) -> dict[Kind, float]:
    """Seconds between two polls of a kind, where the file has them with the prefix."""
    given = {kind: properties.get(key, flow) for kind, key in INTERVALS.items()}
    return {kind: float(seconds) for kind, seconds in given.items() if seconds is not None}


def _plugin(properties: Properties, flow: Flow, key: Key[str], findings: Findings) -> Any:
    if not all(properties.is_sound(read.name, flow) for read in (key, *READ_BY[key])):
        return None
    try:
        return load_plugin(properties.get(key, flow), PLUGINS[key], properties.of_flow(flow))
    except LockstepError as error:
        entry = properties.entry(key.name, flow)
        findings.mistake(entry, str(error), entry.key if entry else key.name)
        return None


def _internal_topics(
    properties: Properties, flow: Flow, policy: ReplicationPolicy, findings: Findings
) -> InternalTopics | None:
    try:
        check_aliases(properties, flow, policy, findings)
        internal = internal_topics(policy, flow, properties.get(keys.OFFSET_SYNCS_LOCATION, flow))
        for name in (internal.checkpoints, internal.offset_syncs, internal.heartbeats, *internal.ours):
            check_topic_name(name)
    except LockstepError as error:
        findings.mistake(properties.entry(keys.CLUSTERS.name), f"{flow.name}: {error}")
        return None
    except Exception as error:  # noqa: BLE001 - a policy of the user's may raise anything
        chosen = properties.entry(keys.POLICY.name, flow)
        findings.mistake(chosen, f"the policy failed to name topics of {flow.name}: {type(error).__name__}: {error}")
        return None
    return internal
