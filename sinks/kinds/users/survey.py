"""Observe, desire, plan for the SCRAM users that ACLs name: what of one flow differs now. Writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from sinks.engine.claims import Claim
from sinks.engine.ledger import Ledger
from sinks.engine.model import Key, Kind
from sinks.engine.plan import make_plan
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.users import UserReader
from sinks.kinds.acls.survey import NamedPrincipals
from sinks.kinds.controller import Sighting, Wanted
from sinks.kinds.polled_controller import Surveyed
from sinks.kinds.users.credentials import CredentialProvider, known_versions
from sinks.kinds.users.rules import (
    NOT_OURS,
    PRINCIPAL,
    DesiredUsers,
    alike_users,
    desired_users,
    plan_users,
    users_of,
)


def survey_users(
    settings: FlowSettings,
    source: UserReader,
    target: UserReader,
    principals: Mapping[str, str],
    provider: CredentialProvider,
    ledger: Ledger,
    claim: Claim,
) -> Surveyed:
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
    written = ledger.versions(Kind.SCRAM_USER)
    # Whom another flow of this job made and needs no more is kept by the one that does.
    ours = owned | (claim.left_by_others() & desired.wanted.keys())
    changes, refused = plan_users(desired, downstream, written, ours, acls.deletes, acls.adopted)
    # Another flow of this job keeps the user, with the password of the same provider.
    others = {user for user, _ in claim.owned_by_others()}
    refused = [refusal for refusal in refused if refusal.reason != NOT_OURS or refusal.key[0] not in others]
    present = {(user, mechanism) for user, mechanisms in downstream.items() for mechanism in mechanisms}
    plan = make_plan(
        settings.flow,
        changes,
        refused=refused,
        existing={Kind.SCRAM_USER: len(owned & present)},
    )
    alike = partial(alike_users, desired, downstream, written)
    items = "SCRAM user that its ACLs name"
    shown = Wanted(Kind.SCRAM_USER, desired.wanted, len(upstream), items, owned | written.keys())
    return Surveyed(plan, present, shown, alike=alike)


def survey_revoked(settings: FlowSettings, target: UserReader, ledger: Ledger) -> Surveyed:
    """The plan where the file asks for no SCRAM users any more: those that Lockstep made go, as the ACLs do that it
    made with them. Asks no cluster where there are none. Raises as `survey_users`."""
    acls, kind = settings.acls, Kind.SCRAM_USER
    created, begun = ledger.owned(kind), ledger.unsettled(kind)
    # The file decides here, and not what the source shows.
    wanted = Wanted(kind, (), 1, "SCRAM user", created)
    if not created | begun:
        return Surveyed(make_plan(settings.flow, []), None, wanted)
    there = target.describe({user for user, _ in created | begun})
    present = {(user, mechanism) for user, mechanisms in there.items() for mechanism in mechanisms}
    owned = {key for key in created if f"{PRINCIPAL}{key[0]}" not in acls.protected}
    changes, _ = plan_users(DesiredUsers(), there, ledger.versions(kind), owned, acls.deletes)
    return Surveyed(make_plan(settings.flow, changes, existing={kind: len(owned & present)}), present, wanted)


def look_up_revoked(source: UserReader, named: NamedPrincipals, keys: Collection[Key]) -> dict[Key, Sighting]:
    """Whether the source still has these users of the target, so that only the file left them out."""
    asked = {user for user, _ in keys}
    names = {known_as: user for known_as, user in users_of(named.all).items() if user in asked}
    upstream = source.describe(names.keys()) if names else {}
    there = {(names[known_as], mechanism) for known_as, ways in upstream.items() for mechanism in ways}
    return {key: Sighting.LEFT_OUT if key in there else Sighting.GONE for key in keys}


def look_up_users(
    settings: FlowSettings, source: UserReader, named: NamedPrincipals, keys: Collection[Key]
) -> dict[Key, Sighting]:
    """What the source says of these users of the target now: whether it has them, and its ACLs name them. Raises as
    `survey_users`."""
    asked = {user for user, _ in keys}
    names = {known_as: user for known_as, user in users_of(named.all).items() if user in asked}
    upstream = source.describe(names.keys()) if names else {}
    synced = users_of(named.synced, settings.acls.protected)
    there = {(names[known_as], mechanism): known_as for known_as, ways in upstream.items() for mechanism in ways}
    wanted = {key for key, known_as in there.items() if known_as in synced}

    def said(key: Key) -> Sighting:
        if key in wanted:
            return Sighting.WANTED
        held = key in there and f"{PRINCIPAL}{key[0]}" in named.held
        return Sighting.LEFT_OUT if held else Sighting.GONE

    return {key: said(key) for key in keys}
