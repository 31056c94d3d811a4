"""Writes SCRAM users: the cluster makes its keys from the password that the provider knows."""

from __future__ import annotations

from collections.abc import Sequence

from sinks.engine.model import Change, Op, Outcome, ScramSpec
from sinks.faults import ItemFault
from sinks.kafka.ports.users import Upsertion, UserFaults, Users
from sinks.kinds.users.credentials import CredentialProvider, provider_fault

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
