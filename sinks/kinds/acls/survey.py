"""Observe, desire, plan for ACLs and the SCRAM users that they name: what of one flow differs now. Writes nothing.

`lockstep plan` calls it, and a micro-batch when a watch saw a difference.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sinks.engine.model import Key, Kind
from sinks.engine.plan import Plan, Unobserved, make_plan
from sinks.faults import RightsMissing
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.acls import AclReader
from sinks.kinds.acls.patterns import SourceTopics
from sinks.kinds.acls.rules import desired_acls, plan_acls
from sinks.kinds.topics.rules import is_replicated
from sinks.kinds.topics.survey import Listed


@dataclass(frozen=True)
class AclSurvey:
    """`principals`: of those whose ACLs are synced, the name on the source to that on the target; None: not seen."""

    plan: Plan
    principals: Mapping[str, str] | None = None


def survey_acls(
    settings: FlowSettings, source: AclReader, target: AclReader, listed: Listed, owned: Collection[Key]
) -> AclSurvey:
    """The plan for the kind `acl`; what may not be read is in its `errors`. Raises ClusterUnreachable, NotSupported."""
    try:
        bindings, existing = source.describe(), set(target.describe())
    except RightsMissing as error:
        return AclSurvey(Plan(settings.flow, errors=(denied(error),)))
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
    plan = make_plan(
        settings.flow,
        plan_acls(desired, existing, set(owned), settings.acls.deletes and not blank),
        refused=desired.refused,
        errors=[Unobserved(Kind.ACL, reason)] if blank else [],
        existing={Kind.ACL: len(owned)},
        skipped={f"{reason} ACLs": count for reason, count in desired.skipped.items()},
        notes=desired.notes,
    )
    return AclSurvey(plan, None if blank else desired.principals)


def denied(error: RightsMissing) -> Unobserved:
    """ACLs that may not be read stop their own kind, not the flow."""
    return Unobserved(Kind.ACL, f"{error}; reading ACLs needs DESCRIBE on the CLUSTER of both sides")
