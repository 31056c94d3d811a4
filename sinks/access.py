"""Observe, desire, plan for ACLs: what of one flow differs now. Reads both clusters, writes nothing, keeps nothing.

`lockstep plan` calls it, and a micro-batch when a watch saw a difference.
"""

from __future__ import annotations

from collections.abc import Collection

from sinks.cluster.acls import AclReader
from sinks.errors import RightsMissing
from sinks.model import Key, Kind
from sinks.plan import Blind, Plan, make_plan
from sinks.resources.acl_patterns import SourceTopics
from sinks.resources.acls import desired_acls, plan_acls
from sinks.resources.topics import is_replicated
from sinks.settings import FlowSettings
from sinks.survey import Listed


def survey_acls(
    settings: FlowSettings, source: AclReader, target: AclReader, listed: Listed, owned: Collection[Key]
) -> Plan:
    """The plan for the kind `acl`; what may not be read is in its `errors`. Raises ClusterUnreachable, NotSupported."""
    try:
        bindings, existing = source.describe(), set(target.describe())
    except RightsMissing as error:
        return Plan(settings.flow, errors=(denied(error),))
    topics = SourceTopics(
        flow=settings.flow,
        policy=settings.policy,
        replicates=lambda topic: is_replicated(settings, topic),
        remote=listed.desired.remote,
        names=listed.source.keys(),
    )
    desired = desired_acls(bindings, settings.acls, topics)
    # A source that shows no ACL at all, or no topic, is taken for one that could not be seen.
    blank = bool(owned) and not (bindings and listed.source)
    reason = f"{settings.flow.source} shows no {'ACL' if listed.source else 'topic'}: none of the ACLs is deleted"
    return make_plan(
        settings.flow,
        plan_acls(desired, existing, set(owned), settings.acls.deletes and not blank),
        refused=desired.refused,
        errors=[Blind(Kind.ACL, reason)] if blank else [],
        existing={Kind.ACL: len(owned)},
        skipped={f"{reason} ACLs": count for reason, count in desired.skipped.items()},
        notes=desired.notes,
    )


def denied(error: RightsMissing) -> Blind:
    """ACLs that may not be read stop their own kind, not the flow."""
    return Blind(Kind.ACL, f"{error}; reading ACLs needs DESCRIBE on the CLUSTER of both sides")
