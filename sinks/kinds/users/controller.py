"""SCRAM users: those whom the synced ACLs name, polled as a whole; there are few."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence

from sinks.faults import ItemFault
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.users import Upsertion, UserFaults, UserReader, Users
from sinks.kinds.acls.survey import PrincipalsOfAcls, named_principals, principals_of
from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.polled_controller import ListedKind, PolledController, Surveyed
from sinks.kinds.users.rules import (
    NOT_OURS,
    PRINCIPAL,
    DesiredUsers,
    alike_users,
    desired_users,
    plan_users,
    users_of,
)
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Change, Key, Kind, Op, Outcome, ScramSpec
from sinks.model.plan import make_plan
from sinks.plugins.credential_provider import CredentialProvider, known_versions, provider_fault
from sinks.protocol.claims import Claim
from sinks.protocol.controller import PassContext, Sighting, Wanted

REST = 10.0
"""Seconds between two polls without a metadata-change signal: a new password of the provider gives none."""


class NamedByAcls:
    """The principals whose users are wanted.

    A job takes them from the ACLs' last comparison. A single pass polls users before ACLs are compared, and where ACLs
    are not synced now nobody compares them: there they are read for this alone.
    """

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly
        self._read_at: float | None = None

    def __call__(self, context: PassContext) -> Mapping[str, str] | None:
        """None while nobody knows. Raises as `AclReader.describe`."""
        shared, confirms = self._assembly.principals, Kind.SCRAM_USER in context.confirming
        told = self._assembly.is_enabled(Kind.ACL) and Kind.ACL not in context.idle and not self._assembly.once
        if told and not confirms:
            return shared.current
        read_at = self._read_at
        # Asked for twice in a pass: for what the kind depends on, and for its plan.
        anew = confirms and read_at != context.now
        if read_at is None or context.everything or anew or context.now - read_at >= REST:
            self._read_at = context.now
            source = self._assembly.source.acls
            shared.current = principals_of(self._assembly.settings, source, context.listed, afresh=confirms)
        return shared.current


class ListedUsers(ListedKind):
    """The kind `scram-user` of one flow."""

    kind, needs = Kind.SCRAM_USER, "reading SCRAM users needs DESCRIBE on the CLUSTER of both sides"
    rest, signalled_rest = REST, REST

    def __init__(self, assembly: Assembly, provider: CredentialProvider) -> None:
        self._assembly, self._provider, self._named = assembly, provider, NamedByAcls(assembly)

    def inputs(self, context: PassContext) -> Hashable | None:
        """The principals whose users are wanted."""
        principals = self._named(context)
        return None if principals is None else frozenset(principals.items())

    def survey(self, context: PassContext) -> Surveyed:
        """As `survey_users`."""
        assembly, named = self._assembly, self._named(context) or {}
        sides, claim = (assembly.source.users, assembly.target.users), assembly.claim(Kind.SCRAM_USER)
        return survey_users(assembly.settings, *sides, named, self._provider, context.ledger, claim)

    def look_up(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """As `look_up_users`."""
        principals = _named_now(self._assembly, context, keys)
        if principals is None:
            return {}
        return look_up_users(self._assembly.settings, self._assembly.source.users, principals, keys)


class RevokedUsers(ListedKind):
    """The users that Lockstep made, where `sync.full.acl.enabled` was turned off: it deletes them."""

    kind, needs = ListedUsers.kind, ListedUsers.needs
    rest, signalled_rest = REST, REST

    def __init__(self, assembly: Assembly) -> None:
        self._assembly = assembly

    def survey(self, context: PassContext) -> Surveyed:
        """As `survey_revoked`."""
        return survey_revoked(self._assembly.settings, self._assembly.target.users, context.ledger)

    def look_up(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """As `look_up_revoked`."""
        principals = _named_now(self._assembly, context, keys)
        return {} if principals is None else look_up_revoked(self._assembly.source.users, principals, keys)


def _named_now(assembly: Assembly, context: PassContext, keys: Collection[Key]) -> PrincipalsOfAcls | None:
    asked = {f"{PRINCIPAL}{user}" for user, _ in keys}
    return named_principals(assembly.settings, assembly.source.acls, context.listed, asked)


def assemble(assembly: Assembly) -> Assembled:
    """The kind `scram-user` of one flow."""
    provider = assembly.settings.provider
    if provider is not None:
        listed: ListedKind = ListedUsers(assembly, provider)
    elif assembly.is_enabled(Kind.ACL) and not assembly.settings.acls.full:
        listed = RevokedUsers(assembly)
    else:
        # Without a provider that the file asks for, nothing is known of users.
        return Assembled()
    controller = PolledController(assembly.settings.flow, listed)
    return Assembled([controller], {Kind.SCRAM_USER: UserWriter(assembly.target.users, provider)})


CHANGED = ItemFault("CREDENTIAL_PROVIDER", "the password was changed while it was written", retriable=True)


class UserWriter:
    """Writes changes of the kind `scram-user` that have one operation."""

    def __init__(self, target: Users, provider: CredentialProvider | None) -> None:
        """`provider`: None for who only deletes."""
        self._target, self._provider = target, provider

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """One outcome for each change. Raises ClusterUnreachable, RightsMissing, NotSupported."""
        if changes[0].op is Op.DELETE:
            faults = self._target.delete([change.key for change in changes])
            return [Outcome(change, faults[change.key]) for change in changes]
        faults = self._upsert(changes)
        return [Outcome(change, faults[change.key]) for change in changes]

    def _upsert(self, changes: Sequence[Change]) -> UserFaults:
        faults: UserFaults = {}
        upsertions: list[Upsertion] = []
        for change in changes:
            found = self._password(change)
            if isinstance(found, ItemFault):
                faults[change.key] = found
            else:
                upsertions.append(found)
        return faults | self._target.upsert(upsertions)

    def _password(self, change: Change) -> Upsertion | ItemFault:
        """What to write; a fault where the provider does not know the password that was planned with."""
        user, mechanism = change.key
        if self._provider is None or not isinstance(change.after, ScramSpec):
            return CHANGED
        try:
            credential = self._provider.credential(change.after.known_as or user)
        except Exception as error:  # noqa: BLE001 - whatever a plug-in raises is its users' alone
            return provider_fault(error)
        if credential is None or credential.version != change.after.version:
            return CHANGED
        return Upsertion(user, mechanism, change.after.iterations, credential.password)


# Observe, desire, plan for the SCRAM users that ACLs name: what of one flow differs now. Writes nothing.


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
    items = "SCRAM user that its ACLs name"
    shown = Wanted(Kind.SCRAM_USER, desired.wanted, len(upstream), items, owned | written.keys(), kept=created - owned)
    return Surveyed(plan, present, shown, alike_users(desired, downstream, written))


def survey_revoked(settings: FlowSettings, target: UserReader, ledger: Ledger) -> Surveyed:
    """The plan where the file asks for no SCRAM users any more: those that Lockstep made go, as the ACLs do that it
    made with them. Asks no cluster where there are none. Raises as `survey_users`."""
    acls, kind = settings.acls, Kind.SCRAM_USER
    created, begun = ledger.owned(kind), ledger.unsettled(kind)
    # The file decides here, and not what the source shows.
    owned = {key for key in created if f"{PRINCIPAL}{key[0]}" not in acls.protected}
    wanted = Wanted(kind, (), 1, "SCRAM user", created, kept=created - owned)
    if not created | begun:
        return Surveyed(make_plan(settings.flow, []), None, wanted)
    there = target.describe({user for user, _ in created | begun})
    present = {(user, mechanism) for user, mechanisms in there.items() for mechanism in mechanisms}
    changes, _ = plan_users(DesiredUsers(), there, ledger.versions(kind), owned, acls.deletes)
    return Surveyed(make_plan(settings.flow, changes, existing={kind: len(owned & present)}), present, wanted)


def look_up_revoked(source: UserReader, named: PrincipalsOfAcls, keys: Collection[Key]) -> dict[Key, Sighting]:
    """Whether the source still has these users of the target, so that only the file left them out."""
    asked = {user for user, _ in keys}
    names = {known_as: user for known_as, user in users_of(named.all).items() if user in asked}
    upstream = source.describe(names.keys()) if names else {}
    there = {(names[known_as], mechanism) for known_as, ways in upstream.items() for mechanism in ways}
    return {key: Sighting.LEFT_OUT if key in there else Sighting.GONE for key in keys}


def look_up_users(
    settings: FlowSettings, source: UserReader, named: PrincipalsOfAcls, keys: Collection[Key]
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
