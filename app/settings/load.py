"""Loads the settings of a file, and reports all its mistakes at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import cast

from app.addresses import is_loopback
from app.plugins import load_plugin
from app.properties import keys
from app.properties.check import check
from app.properties.config_providers import config_providers, resolve_all
from app.properties.keys import CLUSTERS, HTTP_HOST, HTTP_TOKEN, OFFSET_SYNCS_LOCATION, POLICY
from app.properties.mistakes import ConfigurationError, Findings, PropertyLine, WrongFlow
from app.properties.parse import read
from app.properties.scoped_keys import Properties, scoped_key
from app.properties.shown_values import hidden_texts, shown_keys
from app.settings.cluster_sections import (
    addresses,
    aliases,
    check_ambiguous,
    check_servers,
    check_shared_servers,
    cluster_settings,
)
from app.settings.contradictions import (
    check_broker_configs,
    check_collisions,
    check_cycles,
    check_mm2_lines,
)
from app.settings.flow_sections import chosen_flows, enabled_flows, flow_settings
from app.settings.job_settings import (
    USUAL,
    ClusterSettings,
    JobSettings,
    Overrides,
    Reading,
    Settings,
    override_entries,
)
from app.settings.plugin_reconfiguration import flow_that_stays
from sinks.flow_settings import FlowSettings
from sinks.notify.metrics_reporting import MetricsReporter
from sinks.secret_values import is_secret
from streaming.errors import LockstepError
from streaming.flow import Flow
from streaming.mm2.internal_topic_names import InternalTopics
from streaming.reconfiguration import Reconfigurable, check_agrees


def load(
    path: Path,
    flows: Sequence[str] = (),
    *,
    environ: Mapping[str, str] = os.environ,
    overrides: Overrides | None = None,
    before: Settings | None = None,
    reading: Reading = USUAL,
) -> Settings:
    """Returns the settings of a file, for the named flows or all. Raises ConfigurationError with every mistake.

    `overrides`: win over the file. `before`: settings of the running job; unchanged parts are kept. The caller closes
    the settings. If this raises, it closes the plug-ins itself, as it does for flows that were not asked for.
    """
    properties = read_properties(path, environ, overrides)
    findings = properties.findings
    check(properties, strict=reading.strict)
    check_ambiguous(properties)
    clusters = {alias: cluster_settings(properties, alias) for alias in properties.aliases}
    enabled = enabled_flows(properties)
    _check_lines(properties, clusters, enabled)
    with ExitStack() as unused:
        built = _build_flows(properties, clusters, enabled, before, unused)
        check_collisions(properties, built)
        check_cycles(properties, built)
        check_broker_configs(properties, built)
        check_internal_topics(properties, clusters, built)
        reporting = reporters(properties, before.reporters if before is not None else {})
        sound = not findings.mistakes
        chosen = chosen_flows(enabled, flows, findings)
        findings.raise_if_any(WrongFlow if sound else ConfigurationError)
        unused.pop_all()
    return Settings(
        clusters={alias: settings.within(reading.timeout) for alias, settings in clusters.items()},
        flows=_chosen_of(built, chosen, before),
        job=_job(properties),
        warnings=findings.warnings,
        overrides=_overrides(properties, clusters, enabled, reading.timeout),
        values=properties.values(),
        reporters=reporting,
        job_properties=properties.of_job(),
        plugin_properties={flow: properties.of_flow(flow) for flow in chosen},
        shown=shown_keys(properties),
        hidden=hidden_texts(properties),
        left_out=tuple(one for one in built if one.flow not in chosen),
    )


def _chosen_of(
    built: Sequence[FlowSettings], chosen: Sequence[Flow], before: Settings | None
) -> tuple[FlowSettings, ...]:
    """Returns the flows that were asked for, and closes the others."""
    for one in built:
        if one.flow not in chosen:
            _close_unless_running(one, before)
    return tuple(one for one in built if one.flow in chosen)


def load_job(path: Path) -> JobSettings:
    """Returns the settings of the whole job, even if the file has mistakes: a wrong line counts as missing. Raises
    ConfigurationError if it is not a properties file."""
    return _job(read_properties(path, os.environ))


def read_properties(path: Path, environ: Mapping[str, str], overrides: Overrides | None = None) -> Properties:
    """Returns the lines of a file, with references resolved. Raises ConfigurationError if it is not a properties
    file."""
    findings = Findings(str(path))
    entries = resolve_all(read(path, findings), environ, findings)
    if not entries:
        findings.raise_if_any()
    properties = Properties(entries, aliases(entries, findings), findings)
    providers = config_providers(entries, environ, findings)
    properties.override(override_entries(overrides or {}, providers, findings))
    findings.hide(hidden_texts(properties))
    return properties


def _check_lines(properties: Properties, clusters: Mapping[str, ClusterSettings], enabled: Sequence[Flow]) -> None:
    for settings in clusters.values():
        check_servers(properties, settings)
    check_shared_servers(properties, clusters, enabled)
    _check_http(properties)
    _check_samples(properties)
    for flow in enabled:
        check_mm2_lines(properties, flow)


def _build_flows(
    properties: Properties,
    clusters: Mapping[str, ClusterSettings],
    enabled: Sequence[Flow],
    before: Settings | None,
    unused: ExitStack,
) -> list[FlowSettings]:
    """Returns the flows without a mistake, each with the topic names of the others. `unused`: gets callbacks that close
    the new ones."""
    built = []
    for flow in enabled:
        staying = flow_that_stays(before, flow, properties) if before is not None else None
        if (one := staying or flow_settings(properties, flow)) is not None:
            built.append(one)
            unused.callback(_close_unless_running, one, before)
    for at, one in enumerate(built):
        internal = knowing(one, built, clusters)
        upstream = frozenset(other.source for other in enabled if other.target == one.flow.source)
        built[at] = _knowing_the_others(one, internal, upstream, properties, before)
        unused.callback(_close_unless_running, built[at], before)
    return built


def _close_unless_running(flow: FlowSettings, before: Settings | None) -> None:
    if not _is_running(flow, before):
        flow.close()


def _is_running(flow: FlowSettings, before: Settings | None) -> bool:
    return before is not None and any(flow is running for running in before.flows)


def _knowing_the_others(
    flow: FlowSettings,
    internal: InternalTopics,
    upstream: frozenset[str],
    properties: Properties,
    before: Settings | None,
) -> FlowSettings:
    """Returns the flow with the internal topics of the other flows on its target, and the sources of the flows into its
    source.

    A running flow that lacks one of them must be replaced. A running flow that also knows a flow that is gone can stay.
    """
    if not _is_running(flow, before):
        return replace(flow, internal=internal, upstream_aliases=upstream)
    known = flow.internal
    protects = known.on_target >= internal.on_target and known.mm2s_on_target >= internal.mm2s_on_target
    if protects and flow.upstream_aliases >= upstream:
        return flow
    made = flow_settings(properties, flow.flow)
    return replace(made or flow, internal=internal, upstream_aliases=upstream)


def _job(properties: Properties) -> JobSettings:
    return JobSettings(
        trigger_interval=properties.get(keys.TRIGGER_INTERVAL),
        pass_min_interval=properties.get(keys.PASS_MIN_INTERVAL),
        checkpoint_dir=properties.get(keys.CHECKPOINT_DIR),
        http_host=properties.get(keys.HTTP_HOST),
        http_port=properties.get(keys.HTTP_PORT),
        http_token=properties.get(keys.HTTP_TOKEN),
        log_format=properties.get(keys.LOG_FORMAT),
    )


def _overrides(
    properties: Properties, clusters: Mapping[str, ClusterSettings], flows: Sequence[Flow], timeout: float | None
) -> dict[tuple[Flow, str], ClusterSettings]:
    found = {
        (flow, alias): cluster_settings(properties, alias, flow)
        for flow in flows
        for alias in (flow.source, flow.target)
    }
    return {where: one.within(timeout) for where, one in found.items() if one != clusters[where[1]]}


def _check_http(properties: Properties) -> None:
    """Reports a mistake if other machines can reach the HTTP server and the file sets no `lockstep.http.token`."""
    if not is_loopback(properties.get(HTTP_HOST)) and not properties.entry(HTTP_TOKEN.name):
        properties.mistake(
            properties.entry(HTTP_HOST.name),
            f"is not a loopback address, so other machines can reach the job: set {HTTP_TOKEN.name}, "
            "best as a reference such as ${env:LOCKSTEP_HTTP_TOKEN}",
        )


SAMPLE = "replace-me"
"""The beginning of the secrets in conf/kubernetes, which everybody can read."""


def _check_samples(properties: Properties) -> None:
    """Reports secrets that still have the sample's value."""
    for entry in properties.by_key.values():
        if SAMPLE in entry.value and (entry.is_referred or is_secret(entry.key)):
            properties.mistake(entry, "holds the sample's secret, which everybody can read: set your own")


# The metrics reporters of a file (`metric.reporters`, KIP-226): made, or kept from before and asked first.
#
# MM2 and Kafka's clients read the same key. A class without a colon is Java's, and theirs: it is left alone in the bare
# key, and a mistake behind the prefix, which only Lockstep reads.


READ = (
    keys.METRIC_REPORTERS,
    keys.PUSH_URL,
    keys.PUSH_INTERVAL,
    keys.PUSH_JOB,
    keys.PUSH_USERNAME,
    keys.PUSH_PASSWORD,
)
"""Keys that must be valid before a reporter is created. `check` reports mistakes in them."""

OUR_REPORTERS = "Lockstep's own reporters are written package.module:Class"


def reporters(properties: Properties, before: Mapping[str, MetricsReporter]) -> dict[str, MetricsReporter]:
    """Returns reporters by the class that the file names, each once. `before`: running reporters; one of the same class
    stays.

    A running `Reconfigurable` reporter validates the new properties. Its objection, and a class that cannot be loaded,
    is a mistake at the key's line.
    """
    entry = properties.entry(keys.METRIC_REPORTERS.name)
    if entry is None or not all(properties.is_sound(key.name) for key in READ):
        return {}
    found = {
        reference: _reporter(reference, before.get(reference), entry, properties)
        for reference in _references(properties, entry)
    }
    return {reference: reporter for reference, reporter in found.items() if reporter is not None}


def _references(properties: Properties, entry: PropertyLine) -> Iterator[str]:
    ours = scoped_key(entry.key, properties.aliases).ours
    for reference in properties.get(keys.METRIC_REPORTERS):
        if ":" in reference:
            yield reference
        elif ours:
            properties.mistake(
                entry, f"{reference} is a Java class, for MM2 alone: {OUR_REPORTERS}; without the prefix it may stay"
            )
        elif reference != keys.JMX_REPORTER:
            properties.warn(entry, f"{reference} is for MM2 alone; {OUR_REPORTERS}")


def _reporter(
    reference: str, running: MetricsReporter | None, entry: PropertyLine, properties: Properties
) -> MetricsReporter | None:
    try:
        values = properties.of_job()
        if running is None:
            return cast(MetricsReporter, load_plugin(reference, MetricsReporter, values))
        if isinstance(running, Reconfigurable):
            check_agrees(running, values)
    except Exception as error:  # noqa: BLE001 - a reporter of the user's may raise anything
        said = str(error) if isinstance(error, LockstepError) else f"{type(error).__name__}: {error}"
        refused = said if running is None else f"{reference} rejects the new properties: {said}"
        properties.mistake(entry, refused)
        return None
    return running


# Topics of one flow that concern another: MM2's, which no two may share, and Lockstep's own on one target.


HEARTBEATS = "heartbeats"
"""The internal topic whose records name their flow. All other internal topics belong to one flow by their name."""


def topics_of(flow: FlowSettings) -> dict[str, tuple[str, str]]:
    """Returns the cluster alias and name of each internal topic, by its role."""
    internal: InternalTopics = flow.internal
    source, target = internal.offset_syncs_cluster, flow.flow.target
    return {
        "offset-syncs": (source, internal.offset_syncs),
        "checkpoints": (target, internal.checkpoints),
        "ledger": (target, internal.ledger),
        "audit": (target, internal.audit),
        "topics": (target, internal.topics),
        "groups": (target, internal.groups),
        HEARTBEATS: (target, internal.heartbeats),
    }


def check_internal_topics(
    properties: Properties, clusters: Mapping[str, ClusterSettings], flows: Iterable[FlowSettings]
) -> None:
    """Notes a mistake for each internal topic that two flows, or two roles of one flow, would share on one cluster."""
    topics = [(flow.flow, role, *where) for flow in flows for role, where in topics_of(flow).items()]
    for (first, role, alias, name), (flow, other_role, other_alias, other_name) in combinations(topics, 2):
        both_heartbeats = role == other_role == HEARTBEATS
        if name != other_name or both_heartbeats or not _is_same(clusters, alias, other_alias):
            continue
        moved = (
            f", or write {OFFSET_SYNCS_LOCATION.name} for one of them" if "offset-syncs" in (role, other_role) else ""
        )
        properties.mistake(
            properties.entry(POLICY.name, flow) or properties.entry(CLUSTERS.name),
            f"{name} on {other_alias} would hold the {role} of {first.name} and the {other_role} of {flow.name}. Each "
            f"would take the other's for its own. Choose a {POLICY.name} that makes other names{moved}, or leave one "
            "flow out",
            POLICY.name,
        )


def _is_same(clusters: Mapping[str, ClusterSettings], one: str, other: str) -> bool:
    return one == other or not addresses(clusters[one]).isdisjoint(addresses(clusters[other]))


def knowing(
    flow: FlowSettings, flows: Iterable[FlowSettings], clusters: Mapping[str, ClusterSettings]
) -> InternalTopics:
    """Returns the flow's internal topics, and those that the file's other flows have on the same target. Each flow's
    policy names its own."""
    there = [
        (one, name)
        for one in flows
        if one.flow != flow.flow
        for alias, name in topics_of(one).values()
        if _is_same(clusters, alias, flow.flow.target)
    ]
    lockstep = {name for one, name in there if name in one.internal.ours}
    mm2 = {name for one, name in there} - lockstep
    lockstep |= {name for one, _ in there for name in one.internal.former_ledgers}
    return replace(flow.internal, of_other_flows=tuple(sorted(lockstep)), mm2s_of_other_flows=tuple(sorted(mm2)))
