"""Observe, desire, plan for ACLs and the SCRAM users that they name: what of one flow differs now. Writes nothing.

`lockstep plan` calls it, and a micro-batch when a watch saw a difference.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sinks.cluster.acls import AclReader
from sinks.cluster.users import UserReader
from sinks.credentials import CredentialProvider, known_versions
from sinks.errors import RightsMissing
from sinks.ledger import Ledger
from sinks.model import Key, Kind
from sinks.plan import Blind, Plan, make_plan
from sinks.resources.acl_patterns import SourceTopics
from sinks.resources.acls import desired_acls, plan_acls
from sinks.resources.topics import is_replicated
from sinks.resources.users import desired_users, plan_users, users_of
from sinks.settings import FlowSettings
from sinks.survey import Listed


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
        errors=[Blind(Kind.ACL, reason)] if blank else [],
        existing={Kind.ACL: len(owned)},
        skipped={f"{reason} ACLs": count for reason, count in desired.skipped.items()},
        notes=desired.notes,
    )
    return AclSurvey(plan, None if blank else desired.principals)


def survey_users(
    settings: FlowSettings,
    source: UserReader,
    target: UserReader,
    principals: Mapping[str, str],
    provider: CredentialProvider,
    ledger: Ledger,
) -> Plan:
    """The plan for the kind `scram-user`. Raises ClusterUnreachable, NotSupported."""
    owned, needed = ledger.owned(Kind.SCRAM_USER), users_of(principals)
    try:
        upstream = source.describe(needed.keys())
        downstream = target.describe({*needed.values(), *(user for user, _ in owned)})
    except RightsMissing as error:
        reason = f"{error}; reading SCRAM users needs DESCRIBE on the CLUSTER of both sides"
        return Plan(settings.flow, errors=(Blind(Kind.SCRAM_USER, reason),))
    desired = desired_users(needed, upstream, known_versions(provider, upstream))
    # A source that shows none of the users that there were is taken for one that could not be seen.
    blank = bool(owned) and not upstream
    changes, refused = plan_users(
        desired, downstream, ledger.versions(Kind.SCRAM_USER), owned, settings.acls.deletes and not blank
    )
    reason = f"{settings.flow.source} shows no SCRAM user that its ACLs name: none is deleted"
    return make_plan(
        settings.flow,
        changes,
        refused=refused,
        errors=[Blind(Kind.SCRAM_USER, reason)] if blank else [],
        existing={Kind.SCRAM_USER: len(owned)},
    )


def denied(error: RightsMissing) -> Blind:
    """ACLs that may not be read stop their own kind, not the flow."""
    return Blind(Kind.ACL, f"{error}; reading ACLs needs DESCRIBE on the CLUSTER of both sides")
