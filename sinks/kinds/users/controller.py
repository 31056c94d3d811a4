"""Polls and compares SCRAM users as one list: the users that the synced ACLs name."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sinks.every_kind.comparison import Comparison, Wanted
from sinks.every_kind.controller import PassContext, Sighting, sightings
from sinks.faults import ItemFault, Observed
from sinks.kafka.ports.users import Upsertion, Users
from sinks.kinds.acls.survey import named_principals, principals_of
from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.polled_controller import REST, PolledController
from sinks.kinds.users.rules import (
    NOT_OURS,
    Iterations,
    alike_users,
    desired_users,
    plan_users,
    users_of,
)
from sinks.model.changes import Change, Key, Kind, Op, Outcome, ScramSpec
from sinks.model.plan import make_plan
from sinks.model.principals import USER_TYPE
from sinks.plugins.credential_provider import CredentialProvider, known_versions, provider_fault


class UserController(PolledController["SeenUsers"]):
    """The kind `scram-user` of one flow."""

    kind, needs = Kind.SCRAM_USER, "reading SCRAM users needs DESCRIBE on the CLUSTER of both sides"

    def __init__(self, assembly: Assembly, provider: CredentialProvider | None) -> None:
        """`provider`: None to delete the users that Lockstep created, after `sync.full.acl.enabled` was turned off."""
        super().__init__(assembly.settings.flow)
        self._assembly, self._provider = assembly, provider
        self._acls_read_at: float | None = None

    def inputs(self, context: PassContext) -> Hashable | None:
        """Returns the principals whose users are wanted."""
        if self._provider is None:
            return super().inputs(context)
        principals = self._named_by_acls(context)
        return None if principals is None else frozenset(principals.items())

    def _named_by_acls(self, context: PassContext) -> Mapping[str, str] | None:
        """Returns the principals whose users are wanted; None while unknown. Raises as `AclReader.describe`.

        A job takes them from the last comparison of ACLs. A single pass polls users before ACLs, or does not compare
        ACLs at all. Then this method reads the ACLs.
        """
        shared, confirms = self._assembly.principals, Kind.SCRAM_USER in context.confirming
        told = Kind.ACL in self._assembly.settings.synced and Kind.ACL not in context.idle and not self._assembly.once
        if told and not confirms:
            return shared.current
        read_at = self._acls_read_at
        # Asked for twice in a pass: for what the kind depends on, and for its plan.
        anew = confirms and read_at != context.now
        if read_at is None or context.everything or anew or context.now - read_at >= REST:
            self._acls_read_at = context.now
            source = self._assembly.source.acls
            shared.current = principals_of(self._assembly.settings, source, context.listed, afresh=confirms)
        return shared.current

    def read(self, context: PassContext) -> SeenUsers:
        """Read the users of both sides. A user that is not wanted counts as gone, and is no longer Lockstep's.

        Without a provider, reads only the target's users that Lockstep created. If there are none, sends no request.
        """
        assembly, ledger, kind = self._assembly, context.ledger, Kind.SCRAM_USER
        # Also where no ACL needs them now, and where their creation was only begun.
        made = {user for user, _ in ledger.owned(kind) | ledger.unsettled(kind)}
        if self._provider is None:
            return SeenUsers({}, {}, assembly.target.users.describe(made) if made else {}, Observed({}))
        wanted = users_of(self._named_by_acls(context) or {}, assembly.settings.acls.protected)
        upstream = assembly.source.users.describe(wanted.keys())
        downstream = assembly.target.users.describe({*wanted.values(), *made})
        return SeenUsers(wanted, upstream, downstream, known_versions(self._provider, upstream))

    def difference_of(self, context: PassContext, seen: SeenUsers) -> Comparison:
        settings, ledger, wishes = self._assembly.settings, context.ledger, self._assembly.wishes
        acls, kind, flow = settings.acls, Kind.SCRAM_USER, settings.flow
        created = ledger.owned(kind)
        owned = {key for key in created if f"{USER_TYPE}{key[0]}" not in acls.protected}
        desired = desired_users(seen.wanted, seen.upstream, seen.versions)
        written = ledger.versions(kind)
        # Whom another flow of this job made and needs no more is kept by the one that does.
        ours = owned | (wishes.left_by_others(flow, kind) & desired.wanted.keys())
        changes, refused = plan_users(desired, seen.downstream, written, ours, acls.deletes, acls.adopted)
        # Another flow of this job keeps the user, with the password of the same provider.
        others = {user for user, _ in wishes.owned_by_others(flow, kind)}
        refused = [refusal for refusal in refused if refusal.reason != NOT_OURS or refusal.key[0] not in others]
        present: dict[Key, str] = {
            (user, mechanism): "" for user, ways in seen.downstream.items() for mechanism in ways
        }
        plan = make_plan(flow, changes, refused=refused, existing={kind: len(owned & present.keys())})
        if self._provider is None:
            # The file decides here, and not what the source shows.
            shown, items, told = 1, "SCRAM user", created
        else:
            shown, items, told = len(seen.upstream), "SCRAM user that its ACLs name", owned | written.keys()
        wanted = Wanted(kind, desired.wanted, shown, items, told, kept=created - owned)
        return Comparison(plan, {kind: present}, wanted, alike=alike_users(desired, seen.downstream, written))

    def second_look(self, context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        """Returns whether the source has these users of the target now, and whether its ACLs name them. Without a
        provider, a user that the source still has counts as left out by the file."""
        assembly, settings = self._assembly, self._assembly.settings
        asked = {user for user, _ in keys}
        principals = {f"{USER_TYPE}{user}" for user in asked}
        named = named_principals(settings, assembly.source.acls, context.listed, principals)
        if named is None:
            return {}
        names = {known_as: user for known_as, user in users_of(named.all).items() if user in asked}
        upstream = assembly.source.users.describe(names.keys()) if names else {}
        # Which of these credentials of the target the source has now, with the user's name there.
        there = {(names[known_as], mechanism): known_as for known_as, ways in upstream.items() for mechanism in ways}
        if self._provider is None:
            return sightings(keys, (), there)
        synced = users_of(named.synced, settings.acls.protected)
        wanted = {key for key, known_as in there.items() if known_as in synced}
        return sightings(keys, wanted, {key for key in there if f"{USER_TYPE}{key[0]}" in named.held})


def assemble(assembly: Assembly) -> Assembled:
    settings, provider = assembly.settings, assembly.settings.provider
    if provider is None and (Kind.ACL not in settings.synced or settings.acls.full):
        # Without a provider that the file asks for, nothing is known of users.
        return Assembled()
    write = partial(write_users, assembly.target.users, provider)
    return Assembled([UserController(assembly, provider)], {Kind.SCRAM_USER: write})


CHANGED = ItemFault("CREDENTIAL_PROVIDER", "the password was changed while it was written", retriable=True)


def write_users(target: Users, provider: CredentialProvider | None, changes: Sequence[Change]) -> list[Outcome]:
    """Write changes that have one operation. `provider`: None if all of them are deletions. Raises ClusterUnreachable,
    RightsMissing, NotSupported."""
    if changes[0].op is Op.DELETE:
        faults = target.delete([change.key for change in changes])
    else:
        found = {change.key: _upsertion(change, provider) for change in changes}
        faults = {key: one for key, one in found.items() if isinstance(one, ItemFault)}
        faults |= target.upsert([one for one in found.values() if isinstance(one, Upsertion)])
    return [Outcome(change, faults[change.key]) for change in changes]


def _upsertion(change: Change, provider: CredentialProvider | None) -> Upsertion | ItemFault:
    """Returns what to write, or a fault if the provider no longer knows the password that was planned."""
    user, mechanism = change.key
    if provider is None or not isinstance(change.after, ScramSpec):
        return CHANGED
    try:
        credential = provider.credential(change.after.known_as or user)
    except Exception as error:  # noqa: BLE001 - whatever a plug-in raises is its users' alone
        return provider_fault(error)
    if credential is None or credential.version != change.after.version:
        return CHANGED
    return Upsertion(user, mechanism, change.after.iterations, credential.password)


# What of the SCRAM users that ACLs name differs now.


@dataclass(frozen=True)
class SeenUsers:
    """The users of both sides."""

    wanted: Mapping[str, str]
    """Name on the target by name on the source."""
    upstream: Iterations
    """Credentials on the source."""
    downstream: Iterations
    """Credentials on the target, also of users that Lockstep created."""
    versions: Observed[str, str]
    """Versions of the passwords that the provider knows."""
