"""Checks the clusters of a file, their aliases and addresses, and returns their client settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from app.properties.keys import CLUSTERS, SEPARATOR
from app.properties.mistakes import Findings, PropertyLine
from app.properties.scoped_keys import Properties
from app.properties.value_types import items
from app.settings.job_settings import ClusterSettings
from streaming.flow import Flow
from streaming.message_words import nearest
from streaming.mm2.replication_policy import PROBED_TOPIC, ReplicationPolicy

LEGAL_ALIAS = re.compile(r"[a-zA-Z0-9._-]+")
RESERVED = frozenset({"lockstep"})
HOST_AND_PORT = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
"""Kafka's `Utils.HOST_PORT_PATTERN`: host (1), port (2)."""
SERVERS = "bootstrap.servers"


def aliases(entries: Mapping[str, PropertyLine], findings: Findings) -> tuple[str, ...]:
    """Returns the usable aliases in `clusters`, each once, in the file's order."""
    entry = entries.get(f"lockstep.{CLUSTERS.name}") or entries.get(CLUSTERS.name)
    if entry is None or not items(entry.value):
        near = nearest(CLUSTERS.name, (key for key in entries if "." not in key), 0.7)
        like = f" Is {near} in line {entries[near].line} meant?" if near and near != CLUSTERS.name else ""
        message = "is missing: name the aliases of your clusters, e.g. clusters=a,b"
        findings.mistake(entry, message + ("." + like if like else ""), CLUSTERS.name)
        return ()
    if entry.problem is not None:
        findings.mistake(entry, entry.problem)
        return ()
    found = tuple(dict.fromkeys(items(entry.value)))
    if len(found) < len(items(entry.value)):
        findings.warn(entry, "names an alias twice")
    return tuple(alias for alias in found if _is_sound(alias, entry, findings))


def _is_sound(alias: str, entry: PropertyLine, findings: Findings) -> bool:
    if not LEGAL_ALIAS.fullmatch(alias):
        findings.mistake(
            entry, f"{alias!r} cannot be an alias: it becomes part of topics' names; allowed: a-z A-Z 0-9 . _ -"
        )
    elif alias in RESERVED:
        findings.mistake(
            entry, f"{alias} cannot be an alias: it is the prefix of Lockstep's own keys; rename the cluster"
        )
    else:
        return True
    return False


def check_ambiguous(properties: Properties) -> None:
    """Notes a mistake for an alias that extends another with a dot: `a.b.KEY` could also be the key `b.KEY` of the
    cluster `a`."""
    entry = properties.entry(CLUSTERS.name)
    for alias in properties.aliases:
        for other in properties.aliases:
            if other.startswith(f"{alias}."):
                properties.mistake(
                    entry, f"{other} begins with {alias} and a dot: {other}.KEY could be a key of either; rename one"
                )


def check_aliases(properties: Properties, flow: Flow, policy: ReplicationPolicy) -> None:
    """Notes a mistake for an alias that the policy cannot find in the names that it makes. With a dot as separator, it
    finds `us` for `us.east`."""
    for alias in (flow.source, flow.target):
        for topic in (PROBED_TOPIC, policy.heartbeats_topic()):
            remote = policy.format_remote_topic(alias, topic)
            found = alias if remote == topic else policy.topic_source(remote)
            if found not in (alias, None):
                properties.mistake(
                    properties.entry(SEPARATOR.name, flow) or properties.entry(CLUSTERS.name),
                    f"the policy takes the remote topic {remote} for one of {found}, not of {alias}, so Lockstep "
                    f"could not detect cycles. Rename the cluster, or choose a {SEPARATOR.name} that is in no alias",
                )
                return


def cluster_settings(properties: Properties, alias: str, flow: Flow | None = None) -> ClusterSettings:
    """Returns a cluster's client properties in all roles. MM2's `admin.timeout.ms` limits each call of an Admin."""
    limit = properties.entry("admin.timeout.ms", flow)
    limits = {"default.api.timeout.ms": limit.value} if limit is not None and limit.problem is None else {}
    return ClusterSettings(
        alias,
        admin=limits | properties.client("admin", alias, flow),
        consumer=properties.client("consumer", alias, flow),
        producer=properties.client("producer", alias, flow),
    )


def check_servers(properties: Properties, settings: ClusterSettings) -> None:
    """Checks that a cluster has addresses, and that they look like addresses."""
    alias = settings.alias
    entry = properties.at(alias, True, SERVERS) or properties.at(alias, False, SERVERS) or properties.entry(SERVERS)
    if not items(settings.bootstrap_servers):
        if entry is None or entry.problem is None:
            listed = properties.entry(CLUSTERS.name)
            properties.mistake(entry or listed, _missing(properties, alias), f"{alias}.{SERVERS}")
        return
    for number, address in enumerate(items(settings.bootstrap_servers), 1):
        match = HOST_AND_PORT.fullmatch(address)
        if match is None or not match[1] or not 0 < int(match[2]) < 65536:
            properties.mistake(
                entry, f"address {number} is not an address: write host:port, several separated by commas"
            )


def _missing(properties: Properties, alias: str) -> str:
    lines = {where.name: entry.line for where, entry in properties.by_key.items() if where.scope == alias}
    near = nearest(SERVERS, lines, 0.7)
    meant = f"; is {alias}.{near} in line {lines[near]} meant?" if near else ""
    return f"is missing: write the addresses of {alias}'s brokers, e.g. {alias}.{SERVERS}=host1:9092,host2:9092{meant}"


def check_shared_servers(
    properties: Properties, clusters: Mapping[str, ClusterSettings], flows: Iterable[Flow]
) -> None:
    """Notes a mistake for a flow whose source and target share an address."""
    for flow in flows:
        source, target = (addresses(clusters[alias]) for alias in (flow.source, flow.target))
        if shared := sorted(source & target):
            properties.mistake(
                properties.at(flow.target, False, SERVERS) or properties.entry(SERVERS),
                f"{flow.source} and {flow.target} are one cluster, because {shared[0]} is an address of both: "
                "source and target must differ",
                f"{flow.target}.{SERVERS}",
            )


def addresses(settings: ClusterSettings) -> set[str]:
    """Returns the broker addresses of a cluster in the file, as `host:port`."""
    return {address.rpartition("://")[2].lower() for address in items(settings.bootstrap_servers)}
