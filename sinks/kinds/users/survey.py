"""Observe, desire, plan for the SCRAM users that ACLs name: what of one flow differs now. Writes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from sinks.engine.claims import Claim
from sinks.engine.ledger import Ledger
from sinks.engine.model import Key, Kind
from sinks.engine.plan import Unobserved, make_plan
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.users import UserReader
from sinks.kinds.polled_controller import Surveyed
from sinks.kinds.users.credentials import CredentialProvider, known_versions
from sinks.kinds.users.rules import (
    NOT_OURS,
    PRINCIPAL,
    WantedUser,
    alike_users,
    desired_users,
    plan_users,
    users_of,
)


@dataclass(frozen=True)
class UserSurvey(Surveyed):
    """`users`: those that the target should have."""

    users: Mapping[Key, WantedUser] = field(default_factory=dict)


def survey_users(
    settings: FlowSettings,
    source: UserReader,
    target: UserReader,
    principals: Mapping[str, str],
    provider: CredentialProvider,
    ledger: Ledger,
    claim: Claim,
) -> UserSurvey:
    """The plan for the kind `scram-user`. Raises ClusterUnreachable, NotSupported, RightsMissing."""
    acls = settings.acls
    wanted = users_of(principals, acls.protected)
    created = ledger.owned(Kind.SCRAM_USER)
    owned = {key for key in created if f"{PRINCIPAL}{key[0]}" not in acls.protected}
    upstream = source.describe(wanted.keys())
    # Also those whose creation was begun, for they may be there though they are wanted no more; who is left out here
    # counts as gone, and is not Lockstep's any more.
    begun = ledger.unsettled(Kind.SCRAM_USER)
    downstream = target.describe({*wanted.values(), *(user for user, _ in created | begun)})
    desired = desired_users(wanted, upstream, known_versions(provider, upstream))
    # A source that shows none of the users that there were is taken for one that could not be seen.
    blank = bool(owned) and not upstream
    written, deletes = ledger.versions(Kind.SCRAM_USER), acls.deletes and not blank
    # Whom another flow of this job made and needs no more is kept by the one that does.
    ours = owned | (claim.left_by_others() & desired.wanted.keys())
    changes, refused = plan_users(desired, downstream, written, ours, deletes, acls.adopted)
    # Another flow of this job keeps the user, with the password of the same provider.
    others = {user for user, _ in claim.owned_by_others()}
    refused = [refusal for refusal in refused if refusal.reason != NOT_OURS or refusal.key[0] not in others]
    if not blank:
        claim.publish(desired.wanted, owned | written.keys(), shown=bool(upstream))
    changes, held = claim.hold(changes)
    reason = f"{settings.flow.source} shows no SCRAM user that its ACLs name: none is deleted"
    present = {(user, mechanism) for user, mechanisms in downstream.items() for mechanism in mechanisms}
    plan = make_plan(
        settings.flow,
        changes,
        refused=[*refused, *held],
        errors=[Unobserved(Kind.SCRAM_USER, reason)] if blank else [],
        existing={Kind.SCRAM_USER: len(owned & present)},
    )
    alike = partial(alike_users, desired, downstream, written)
    return UserSurvey(plan, present, alike=alike, users=desired.wanted)
