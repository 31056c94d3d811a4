"""SCRAM users: those whom the synced ACLs name, polled as a whole; there are few."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping

from sinks.engine.model import Key, Kind
from sinks.kinds.acls.survey import named_principals, principals_of
from sinks.kinds.assembly import Assembled, Assembly
from sinks.kinds.controller import PassContext, Sighting
from sinks.kinds.polled_controller import PolledController, Rules, Surveyed
from sinks.kinds.users.rules import PRINCIPAL
from sinks.kinds.users.survey import look_up_revoked, look_up_users, survey_revoked, survey_users
from sinks.kinds.users.writer import UserWriter

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
        shared = self._assembly.principals
        if self._assembly.is_enabled(Kind.ACL) and Kind.ACL not in context.idle and not self._assembly.once:
            return shared.current
        if self._read_at is None or context.everything or context.now - self._read_at >= REST:
            self._read_at = context.now
            shared.current = principals_of(self._assembly.settings, self._assembly.source.acls, context.listed)
        return shared.current


def assemble(assembly: Assembly) -> Assembled:
    """The kind `scram-user` of one flow."""
    provider = assembly.settings.provider
    if provider is None:
        # Without a provider that the file asks for, nothing is known of users.
        revokes = assembly.is_enabled(Kind.ACL) and not assembly.settings.acls.full
        return _revoking(assembly) if revokes else Assembled()
    named = NamedByAcls(assembly)

    def inputs(context: PassContext) -> Hashable | None:
        principals = named(context)
        return None if principals is None else frozenset(principals.items())

    def survey(context: PassContext) -> Surveyed:
        source, target = assembly.source.users, assembly.target.users
        claim = assembly.claim(Kind.SCRAM_USER)
        return survey_users(assembly.settings, source, target, named(context) or {}, provider, context.ledger, claim)

    def look_up(context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        source = assembly.source
        asked = {f"{PRINCIPAL}{user}" for user, _ in keys}
        principals = named_principals(assembly.settings, source.acls, context.listed, asked)
        return {} if principals is None else look_up_users(assembly.settings, source.users, principals, keys)

    rules = Rules(
        kind=Kind.SCRAM_USER,
        survey=survey,
        look_up=look_up,
        inputs=inputs,
        rest=REST,
        signalled_rest=REST,
        needs="reading SCRAM users needs DESCRIBE on the CLUSTER of both sides",
    )
    writer = UserWriter(assembly.target.users, provider)
    return Assembled([PolledController(assembly.settings.flow, rules)], {Kind.SCRAM_USER: writer})


def _revoking(assembly: Assembly) -> Assembled:
    """Takes away the users that Lockstep made, where `sync.full.acl.enabled` was turned off."""
    settings, source, target = assembly.settings, assembly.source, assembly.target

    def look_up(context: PassContext, keys: Collection[Key]) -> Mapping[Key, Sighting]:
        asked = {f"{PRINCIPAL}{user}" for user, _ in keys}
        principals = named_principals(settings, source.acls, context.listed, asked)
        return {} if principals is None else look_up_revoked(source.users, principals, keys)

    rules = Rules(
        kind=Kind.SCRAM_USER,
        survey=lambda context: survey_revoked(settings, target.users, context.ledger),
        look_up=look_up,
        rest=REST,
        signalled_rest=REST,
        needs="reading SCRAM users needs DESCRIBE on the CLUSTER of both sides",
    )
    writer = UserWriter(target.users, None)
    return Assembled([PolledController(settings.flow, rules)], {Kind.SCRAM_USER: writer})
