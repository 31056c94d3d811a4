"""Checks which rights of a flow are granted, by asking the clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from functools import partial

from app.rights.flow_rights import EVERY, PROBED_NAME, Right, rights_of_flow
from app.wiring import FlowClusters
from sinks.background import awaited, begun
from sinks.every_kind.listing import Listed
from sinks.faults import NoAnswer
from sinks.flow_settings import FlowSettings
from sinks.kafka.jvm.jvm_rights import ask_allowed
from sinks.kafka.ports.acls import Allowed
from sinks.kafka.ports.groups import GroupReader
from sinks.kinds.offsets.polled_groups import chosen_groups
from sinks.kinds.shared_listings import list_both
from streaming.message_words import number_of


class RightVerdict(str, Enum):
    """Whether a right is granted. UNKNOWN: the cluster cannot tell it yet."""

    GRANTED = "granted"
    MISSING = "missing"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class RightFinding:
    right: Right
    verdict: RightVerdict
    reason: str = ""


def right_findings(
    rights: Iterable[Right], allowed: Mapping[str, Allowed], replicated: Mapping[str, Collection[str]], probe: str
) -> list[RightFinding]:
    """Returns a finding for each right. `allowed`: the clusters' answers by alias. `replicated`: names of replicated
    topics by alias. `probe`: a remote topic's name."""
    return [_check(right, allowed[right.cluster], replicated[right.cluster], probe) for right in rights]


def _check(right: Right, allowed: Allowed, replicated: Collection[str], probe: str) -> RightFinding:
    if right.resource_type == "CLUSTER":
        granted = right.operation in allowed.cluster
        return RightFinding(right, RightVerdict.GRANTED if granted else RightVerdict.MISSING)
    if right.resource_type == "GROUP":
        return _of_groups(right, allowed)
    if right.resource_type == "TRANSACTIONAL_ID":
        return RightFinding(right, RightVerdict.UNKNOWN, "Kafka does not report rights on transactional ids")
    literal = right.pattern_type == "LITERAL" and right.resource_name != EVERY
    created = right.resource_name if literal else probe
    if right.operation == "CREATE" and created in allowed.creatable:
        return RightFinding(right, RightVerdict.GRANTED if allowed.creatable[created] else RightVerdict.MISSING)
    return _of_topic(right, allowed) if literal else _of_topics(right, allowed, replicated)


def _of_groups(right: Right, allowed: Allowed) -> RightFinding:
    groups = {group: words for group, words in allowed.groups.items() if _matches(right, group)}
    seen = {group: words for group, words in groups.items() if isinstance(words, frozenset)}
    hidden = sum(words == "GROUP_AUTHORIZATION_FAILED" for words in groups.values())
    lacking = sorted(group for group, words in seen.items() if right.operation not in words)
    if hidden:
        return RightFinding(right, RightVerdict.MISSING, "DESCRIBE on the groups is missing")
    if lacking:
        return RightFinding(right, RightVerdict.MISSING, f"on {len(lacking)} of {len(seen)} groups, e.g. {lacking[0]}")
    if not seen:
        return RightFinding(right, RightVerdict.UNKNOWN, "the cluster shows no such group")
    return RightFinding(right, RightVerdict.GRANTED)


def _matches(right: Right, group: str) -> bool:
    if right.pattern_type == "PREFIXED":
        return group.startswith(right.resource_name)
    return right.resource_name in (EVERY, group)


def _of_topic(right: Right, allowed: Allowed) -> RightFinding:
    seen = allowed.topics.get(right.resource_name, "UNKNOWN_TOPIC_OR_PART")
    if isinstance(seen, frozenset):
        return RightFinding(right, RightVerdict.GRANTED if right.operation in seen else RightVerdict.MISSING)
    if seen == "TOPIC_AUTHORIZATION_FAILED":
        return RightFinding(right, RightVerdict.MISSING, "DESCRIBE on the topic is missing")
    return RightFinding(right, RightVerdict.UNKNOWN, "the topic does not exist yet")


def _of_topics(right: Right, allowed: Allowed, replicated: Collection[str]) -> RightFinding:
    seen = {name: words for name in replicated if isinstance(words := allowed.topics.get(name), frozenset)}
    lacking = sorted(name for name, words in seen.items() if right.operation not in words)
    if lacking:
        return RightFinding(right, RightVerdict.MISSING, f"on {len(lacking)} of {len(seen)} topics, e.g. {lacking[0]}")
    if not seen:
        return RightFinding(right, RightVerdict.UNKNOWN, "no such topic exists, or DESCRIBE on it is missing")
    return RightFinding(right, RightVerdict.GRANTED, f"on {number_of(len(seen), 'topic')} that can be seen")


def check_rights(
    flow: FlowSettings, clusters: FlowClusters, rights: Sequence[Right] | None = None, listed: Listed | None = None
) -> list[RightFinding]:
    """Returns which of these rights the clusters grant. `rights`: None for all that the job needs. Writes nothing.
    Raises LockstepError.

    `listed`: topics of both clusters; None: list them now.
    """
    required = rights_of_flow(flow) if rights is None else rights
    listed = listed or list_both(flow, clusters.source, clusters.target)
    remote = listed.desired.remote
    visible = {flow.flow.source: set(remote), flow.flow.target: set(remote.values()) & listed.target.keys()}
    groups = asked_groups(flow, clusters.source.groups, required)
    probe = flow.policy.format_remote_topic(flow.flow.source, PROBED_NAME)
    allowed: dict[str, Future[Allowed]] = {}
    for cluster, topics in zip((clusters.source, clusters.target), visible.values(), strict=True):
        alias = cluster.alias
        mine = [right for right in required if right.cluster == alias and right.resource_type == "TOPIC"]
        named = {right.resource_name for right in mine if right.pattern_type == "LITERAL"} - {EVERY}
        made = {right.resource_name for right in mine if right.operation == "CREATE"} & named
        if any(right.operation == "CREATE" and right.resource_name not in named for right in mine):
            made.add(probe)
        ask = partial(ask_allowed, cluster.admin, topics | named, made, groups)
        allowed[alias] = begun(ask, f"rights {alias}")
    return right_findings(required, {alias: awaited(one) for alias, one in allowed.items()}, visible, probe)


def asked_groups(flow: FlowSettings, source: GroupReader, required: Sequence[Right]) -> set[str]:
    """Returns the groups whose rights show the `required` ones. If the source does not list its groups: the groups that
    a right names.

    Asking only for the probe would report a right as granted although no group was seen. Raises RightsMissing.
    """
    of_groups = [right for right in required if right.resource_type == "GROUP"]
    named = {right.resource_name for right in of_groups if right.pattern_type == "LITERAL"} - {EVERY}
    if len(named) == len({right.resource_name for right in of_groups}):
        return named
    try:
        return {PROBED_NAME, *named, *chosen_groups(flow, source.names())}
    except NoAnswer:
        return named
