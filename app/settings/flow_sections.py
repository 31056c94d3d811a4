"""Builds the enabled flows of a file with their settings, policy and filters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from app.credentials.credential_providers import load_provider
from app.plugins import PLUGIN_KINDS, load_plugin
from app.properties import keys
from app.properties.keys import Key
from app.properties.mistakes import Findings
from app.properties.scoped_keys import Properties
from app.properties.shown_values import hidden_texts
from app.settings.cluster_sections import check_aliases, cluster_settings
from app.settings.contradictions import check_copier, check_flow, check_plugins, is_enabled
from sinks.flow_settings import (
    AclRules,
    Copier,
    FailoverRules,
    FlowSettings,
    Incremental,
    Limits,
    Listeners,
    Pace,
    Safety,
    Verifying,
)
from sinks.kafka.security.own_principal import OwnPrincipal, own_principal
from sinks.ledger.pins import FILE
from sinks.model.changes import Kind
from sinks.model.principals import ADOPT, PROTECTED, NamedPrincipals, PrincipalFilter, PrincipalMapping
from sinks.plugins.credential_provider import CredentialProvider
from sinks.plugins.listeners import FailoverListener, GroupListener, TopicListener
from sinks.plugins.plugin_closing import close_plugin
from streaming.errors import LockstepError, prefixed
from streaming.flow import Flow
from streaming.message_words import nearest_hint
from streaming.mm2.internal_topic_names import InternalTopics, internal_topics
from streaming.mm2.replication_filters import ConfigPropertyFilter, GroupFilter, TopicFilter
from streaming.mm2.replication_policy import ReplicationPolicy, check_topic_name

T = TypeVar("T")

PLUGINS: tuple[type, ...] = (
    *(ReplicationPolicy, TopicFilter, GroupFilter, ConfigPropertyFilter),
    *(TopicListener, GroupListener, FailoverListener),
)
"""The protocols of the classes that a flow's lines can name."""

INTERVALS: Mapping[Kind, Key[int | None]] = {
    kind: keys.TABLE[kind.row.interval_key] for kind in Kind if kind.row.interval_key
}


def enabled_flows(properties: Properties) -> tuple[Flow, ...]:
    """Returns the enabled flows, sorted. Notes a mistake if there is none."""
    aliases = properties.aliases
    pairs = [Flow(source, target) for source in aliases for target in aliases if source != target]
    found = tuple(sorted(flow for flow in pairs if properties.get(keys.ENABLED, flow)))
    if found or any(_hides_flows(mistake.key, aliases) for mistake in properties.findings.mistakes):
        return found
    if not pairs:
        listed = properties.entry(keys.CLUSTERS.name)
        properties.mistake(listed, "names one cluster only: a flow needs a source and a target, e.g. clusters=a,b")
        return ()
    written = next((entry for flow in pairs if (entry := properties.entry(keys.ENABLED.name, flow))), None)
    name = f"{pairs[0].name}.{keys.ENABLED.name}"
    properties.mistake(written, f"no flow is enabled: write e.g. {name}=true", written.key if written else name)
    return ()


def _hides_flows(key: str, aliases: Sequence[str]) -> bool:
    """Returns whether a mistake in this key may be why no flow is enabled. Then only that mistake is reported."""
    return key in aliases or key.endswith((keys.ENABLED.name, keys.CLUSTERS.name, "->"))


def chosen_flows(enabled: Sequence[Flow], wanted: Sequence[str], findings: Findings) -> tuple[Flow, ...]:
    """Returns the `wanted` flows, or all. A wanted flow that is not enabled is a mistake."""
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
    """Returns the message for a `--flow` that the file does not enable."""
    listed = f"{', '.join(enabled) or 'none'}{nearest_hint(name, enabled)}"
    return f"--flow {name}: this flow is not enabled in the file; enabled: {listed}"


def flow_settings(properties: Properties, flow: Flow) -> FlowSettings | None:
    """Returns the settings of a flow, which the caller closes; None if it has no policy, filter or topic name because
    of a mistake."""
    check_flow(properties, flow)
    check_full(properties, flow)
    with ExitStack() as unused:
        plugins = {protocol: _plugin(properties, flow, protocol) for protocol in PLUGINS}
        for plugin in plugins.values():
            unused.callback(close_plugin, plugin)
        if None in plugins.values():
            return None
        internal = _internal_topics(properties, flow, plugins[ReplicationPolicy])
        acls, provider = acl_rules(properties, flow), credential_provider(properties, flow)
        unused.callback(close_plugin, provider)
        if internal is None or acls is None:
            return None
        settings = _settings(properties, flow, plugins, internal, acls, provider)
        check_principals(properties, flow, settings.enabled)
        check_plugins(properties, settings)
        check_copier(properties, settings)
        unused.pop_all()
    return settings


def _settings(
    properties: Properties,
    flow: Flow,
    plugins: Mapping[type, Any],
    internal: InternalTopics,
    acls: AclRules,
    provider: CredentialProvider | None,
) -> FlowSettings:
    def get(key: Key[T]) -> T:
        return properties.get(key, flow)

    return FlowSettings(
        flow=flow,
        policy=plugins[ReplicationPolicy],
        topic_filter=plugins[TopicFilter],
        group_filter=plugins[GroupFilter],
        config_filter=plugins[ConfigPropertyFilter],
        internal=internal,
        enabled={kind: is_enabled(properties, flow, kind) for kind in Kind} | {Kind.SCRAM_USER: provider is not None},
        disabled_reasons=disabled_reasons(properties, flow),
        heartbeats_replication=get(keys.HEARTBEATS_REPLICATION),
        copier=Copier(get(keys.COPIER)),
        copier_keeps=_copier_keeps(properties, flow),
        incremental=Incremental(get(keys.USE_INCREMENTAL)),
        replication_factor=get(keys.REPLICATION_FACTOR),
        topic_deletes=get(keys.TOPIC_DELETES),
        emit_checkpoints=get(keys.EMIT_CHECKPOINTS),
        matching=get(keys.OFFSET_TRANSLATION) == "matched",
        isolation=cluster_settings(properties, flow.source, flow).consumer.get("isolation.level", "read_uncommitted"),
        listeners=Listeners(
            plugins[TopicListener], plugins[GroupListener], get(keys.LISTENER_TIMEOUT), hidden_texts(properties)
        ),
        broker_configs=get(keys.BROKER_CONFIG_PROPERTIES),
        acls=acls,
        provider=provider,
        pace=_pace(properties, flow),
        limits=Limits(get(keys.MAX_DELETE_PERCENT), get(keys.MAX_DELETE_MINIMUM), get(keys.MAX_CREATE)),
        safety=safety(properties, flow),
        failover=failover_rules(properties, flow, plugins[FailoverListener]),
        verifying=Verifying(get(keys.VERIFY_ENABLED), get(keys.VERIFY_RATE)),
    )


def _copier_keeps(properties: Properties, flow: Flow) -> frozenset[Kind]:
    preserving = properties.get(keys.COPIER, flow) == Copier.OFFSET_PRESERVING.value
    kept: tuple[str, ...] = properties.get(keys.COPIER_KEEPS, flow)
    return frozenset(map(Kind, kept)) if preserving else frozenset()


def _pace(properties: Properties, flow: Flow) -> Pace:
    # Only a key with the prefix has a value.
    intervals = {kind: properties.get(key, flow) for kind, key in INTERVALS.items()}
    return Pace(
        observe_share=properties.get(keys.OBSERVE_SHARE, flow),
        observe_rate=properties.get(keys.OBSERVE_RATE, flow),
        full_comparison_interval=properties.get(keys.FULL_COMPARISON_INTERVAL, flow),
        shard_topics=properties.get(keys.SHARD_TOPICS, flow),
        heartbeat_timeout=properties.get(keys.HEARTBEAT_TIMEOUT, flow),
        intervals={kind: float(seconds) for kind, seconds in intervals.items() if seconds is not None},
    )


def _plugin(properties: Properties, flow: Flow, protocol: type) -> Any:
    key, reads = PLUGIN_KINDS[protocol].key, PLUGIN_KINDS[protocol].reads
    if not all(properties.is_sound(read.name, flow) for read in (key, *reads)):
        return None
    try:
        return load_plugin(properties.get(key, flow), protocol, properties.of_flow(flow))
    except LockstepError as error:
        entry = properties.entry(key.name, flow)
        properties.mistake(entry, str(error), entry.key if entry else key.name)
        return None


def _internal_topics(properties: Properties, flow: Flow, policy: ReplicationPolicy) -> InternalTopics | None:
    try:
        check_aliases(properties, flow, policy)
        internal = internal_topics(policy, flow, properties.get(keys.OFFSET_SYNCS_LOCATION, flow))
        for name in (internal.checkpoints, internal.offset_syncs, internal.heartbeats, *internal.ours):
            check_topic_name(name)
    except LockstepError as error:
        properties.mistake(properties.entry(keys.CLUSTERS.name), prefixed(flow.name, error))
        return None
    except Exception as error:  # noqa: BLE001 - a policy of the user's may raise anything
        chosen = properties.entry(keys.POLICY.name, flow)
        properties.mistake(chosen, f"the policy failed to name topics of {flow.name}: {type(error).__name__}: {error}")
        return None
    return internal


def safety(properties: Properties, flow: Flow) -> Safety:
    """Returns the cluster ids in the file, the ledger's secret, and the path of the local file of ids."""
    name = keys.CLUSTER_ID.name
    said = {alias: properties.at(alias, True, name) for alias in (flow.source, flow.target)}
    return Safety(
        cluster_ids={alias: entry.value for alias, entry in said.items() if entry is not None},
        pins=properties.get(keys.CHECKPOINT_DIR) / FILE,
        ledger_secret=properties.get(keys.LEDGER_SECRET, flow),
        reverse_secret=properties.get(keys.LEDGER_SECRET, flow.reverse),
        ledger_factor=properties.get(keys.LEDGER_REPLICATION_FACTOR, flow),
        audit_factor=properties.get(keys.AUDIT_REPLICATION_FACTOR, flow),
    )


def failover_rules(properties: Properties, flow: Flow, listener: FailoverListener) -> FailoverRules:
    """Returns the limits of `preflight`, the duration of a fence's proof, and the failover listener and program."""
    return FailoverRules(
        max_loss=properties.get(keys.FAILOVER_MAX_LOSS, flow),
        max_loss_age=properties.get(keys.FAILOVER_MAX_LOSS_AGE, flow),
        max_drift=properties.get(keys.FAILOVER_MAX_DRIFT, flow),
        max_groups_skipping=properties.get(keys.FAILOVER_MAX_GROUPS_SKIPPING, flow),
        proof_seconds=properties.get(keys.FAILOVER_FENCE_PROOF, flow),
        ends_interval=properties.get(keys.FAILOVER_ENDS_INTERVAL, flow),
        preflight_interval=properties.get(keys.FAILOVER_PREFLIGHT_INTERVAL, flow),
        listener=listener,
        program=properties.get(keys.FAILOVER_PROGRAM, flow),
        hook_seconds=properties.get(keys.LISTENER_TIMEOUT, flow),
        copier_copies_acls=_copies_acls(properties, flow),
    )


def _copies_acls(properties: Properties, flow: Flow) -> bool:
    if properties.get(keys.COPIER, flow) == Copier.OFFSET_PRESERVING.value:
        return Kind.ACL.value in properties.get(keys.COPIER_KEEPS, flow)
    return properties.mm2_get(keys.SYNC_TOPIC_ACLS, flow)


# The settings of a flow's ACLs and SCRAM users: filters and mapping parsed, the provider of passwords made.


LISTS: tuple[Key[tuple[str, ...]], ...] = (
    keys.ACL_PRINCIPALS,
    keys.ACL_PRINCIPALS_EXCLUDE,
    keys.ACL_PROTECTED,
    keys.SCRAM_ADOPT,
)
NO_SECRET = (
    f"not enabled: set {keys.ENCODER_SECRET.name}, or another {keys.CREDENTIAL_PROVIDER.name}, so that passwords are "
    "known"
)


def acl_rules(properties: Properties, flow: Flow) -> AclRules | None:
    """Returns the rules of the ACL sync; None if a list or rule is malformed. Notes each mistake at its line."""
    lists = {key.name: _listed(properties, key, flow) for key in LISTS}
    texts = {**lists, keys.ACL_MAPPING.name: properties.get(keys.ACL_MAPPING, flow)}

    def made(by: Callable[[], T]) -> T | None:
        try:
            return by()
        except LockstepError as error:
            # The parsers name the key, as every finding does.
            name = next((name for name in texts if str(error).startswith(f"{name}:")), keys.ACL_MAPPING.name)
            properties.mistake(properties.entry(name, flow), str(error).removeprefix(f"{name}: "), name)
            return None

    principals = made(lambda: PrincipalFilter(lists))
    mapping = made(lambda: PrincipalMapping.parse(texts[keys.ACL_MAPPING.name]))
    known = [own.name for own in own_principals(properties, flow) if own.name]
    protected = made(lambda: NamedPrincipals(PROTECTED, lists[PROTECTED], known))
    adopted = made(lambda: NamedPrincipals(ADOPT, lists[ADOPT]))
    if principals is None or mapping is None or protected is None or adopted is None:
        return None
    full, deletes = properties.get(keys.SYNC_FULL_ACL, flow), properties.get(keys.ACL_DELETES, flow)
    stage = properties.get(keys.ACL_STAGE_WRITES, flow)
    wildcards = properties.get(keys.ACL_WILDCARD_DENIES, flow)
    return AclRules(full, deletes, principals, mapping, protected, adopted, stage, wildcards)


def own_principals(properties: Properties, flow: Flow) -> list[OwnPrincipal]:
    """Returns the job's principals on the target, in each role in which it connects, each once."""
    target = cluster_settings(properties, flow.target, flow)
    return list(dict.fromkeys(own_principal(client) for client in (target.admin, target.consumer, target.producer)))


def disabled_reasons(properties: Properties, flow: Flow) -> dict[Kind, str]:
    """Returns why SCRAM users are not synced although `sync.full.acl.enabled` asks for them. Also notes a warning."""
    default = properties.get(keys.CREDENTIAL_PROVIDER) == keys.CREDENTIAL_PROVIDER.default
    if not properties.get(keys.SYNC_FULL_ACL, flow) or not default or properties.get(keys.ENCODER_SECRET):
        return {}
    entry = properties.entry(keys.SYNC_FULL_ACL.name, flow)
    properties.warn(entry, f"the SCRAM users of {flow.name} are {NO_SECRET}")
    return {Kind.SCRAM_USER: NO_SECRET}


def check_principals(properties: Properties, flow: Flow, enabled: Mapping[Kind, bool]) -> None:
    """Warns if the job's own principal is unknown: then an ACL of the source could lock the job out of the target."""
    written = properties.entry(keys.ACL_PROTECTED.name, flow)
    if written is not None or not any(enabled.get(kind) for kind in Kind if kind.row.of_principals):
        return
    doubt = next((own.doubt for own in own_principals(properties, flow) if own.doubt), None)
    if doubt is not None:
        properties.warn(
            properties.entry(keys.ENABLED.name, flow),
            f"Lockstep cannot tell its own principal on {flow.target} ({doubt}), so an ACL of the source could lock it "
            f"out. Name it, and {flow.target}'s super users, in {keys.ACL_PROTECTED.name}",
            keys.ACL_PROTECTED.name,
        )


def check_full(properties: Properties, flow: Flow) -> None:
    """Warns of a file that enables ACLs without `sync.full.acl.enabled`. Then only MM2's ACLs are synced, without ALLOW
    WRITE."""
    asked, full = (properties.entry(key.name, flow) for key in (keys.SYNC_TOPIC_ACLS, keys.SYNC_FULL_ACL))
    if asked is None or full is not None or not properties.get(keys.SYNC_TOPIC_ACLS, flow):
        return
    properties.warn(
        asked,
        f"of the ACLs of {flow.name}, WRITE, prefixes, groups and transactional ids are left out, as are SCRAM users. "
        f"Write {keys.SYNC_FULL_ACL.name}=true to keep them too, or false if that is meant",
        keys.SYNC_FULL_ACL.name,
    )


def _listed(properties: Properties, key: Key[tuple[str, ...]], flow: Flow) -> str:
    words: tuple[str, ...] = properties.get(key, flow)
    return ",".join(words)


def credential_provider(properties: Properties, flow: Flow) -> CredentialProvider | None:
    """Returns the provider of SCRAM passwords; None if users are not synced, or if no provider is set up."""
    default = properties.get(keys.CREDENTIAL_PROVIDER) == keys.CREDENTIAL_PROVIDER.default
    if not properties.get(keys.SYNC_FULL_ACL, flow) or (default and not properties.get(keys.ENCODER_SECRET)):
        return None
    try:
        return load_provider(properties.of_flow(flow))
    except LockstepError as error:
        entry = properties.entry(keys.CREDENTIAL_PROVIDER.name, flow) or properties.entry(keys.ENCODER_SECRET.name)
        properties.mistake(entry, str(error), entry.key if entry else keys.CREDENTIAL_PROVIDER.name)
        return None
