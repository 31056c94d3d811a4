"""Writes a new password of a user to the clusters and to the store.

1. Reads the clusters, and reports errors before it writes.
2. Stores the new password as pending, beside the current one.
3. Writes it to the targets, then to the sources. A target that refuses does no harm: clients log in at the source.
4. Makes it the current one.

After an interruption, run it again: it writes the pending password everywhere. Until the end the running job sees the
old version, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.credentials.store import CredentialStore
from sinks.kafka.ports.users import Upsertion, Users
from sinks.plugins.credential_provider import Credential
from streaming.errors import LockstepError, WrongUsage, prefixed


@dataclass(frozen=True)
class UserCluster:
    """A cluster on which the user is called `user`. `is_source`: it is the source of a flow. `to_write`: False if it is
    only read."""

    alias: str
    users: Users
    user: str
    is_source: bool
    to_write: bool = True


@dataclass(frozen=True, slots=True)
class Written:
    cluster: str
    user: str
    mechanism: str
    iterations: int


OnWritten = Callable[[Written, str | None], None]
"""Called with a credential, and with the reason if the cluster refused it."""


class RotationInterrupted(LockstepError):
    """A cluster refused the new password. The store keeps it as pending."""


def rotate(
    store: CredentialStore,
    user: str,
    password: str | None,
    clusters: Sequence[UserCluster],
    *,
    otherwise: Mapping[str, int] | None = None,
    anew: bool = False,
    tell: OnWritten = lambda written, error: None,
) -> list[Written]:
    """Writes a password to the clusters, then to the store. Continues with a pending password if there is one.

    `password`: None if there must be a pending one. `otherwise`: mechanisms and iterations of a user that no cluster
    has; None if a cluster must have it. `anew`: replace the pending password. `tell`: called at once for each
    credential, also with the reason if a cluster refused it. Raises RotationInterrupted, LockstepError.
    """
    wanted = _wanted(user, clusters, otherwise)
    pending = _pending(store, user, password, anew)
    written: list[Written] = []
    for cluster in sorted((one for one in clusters if one.to_write), key=lambda one: one.is_source):
        written += _write(cluster, wanted[cluster.alias, cluster.user], pending, tell)
    store.promote(user, pending.version)
    return written


def _pending(store: CredentialStore, user: str, password: str | None, anew: bool) -> Credential:
    pending = None if anew else store.pending(user)
    if pending is None:
        if password is None:
            raise WrongUsage(f"{user} has no pending password: give a new one")
        return store.begin(user, password, anew=anew)
    if password not in (None, pending.password):
        raise WrongUsage(
            f"another new password of {user} is not on all clusters yet. Finish it first: run the command without a "
            f"password. Or replace it with `lockstep credentials set {user} --both`"
        )
    return pending


def _wanted(
    user: str, clusters: Sequence[UserCluster], otherwise: Mapping[str, int] | None
) -> dict[tuple[str, str], Mapping[str, int]]:
    """Returns the iterations of each mechanism, by cluster alias and user. Targets also get the mechanisms of the
    sources.

    Every mechanism that the user has must be written. One that was left out would still accept the old password.
    """
    found = {
        (cluster.alias, cluster.user): cluster.users.describe([cluster.user]).get(cluster.user, {})
        for cluster in clusters
    }
    sources = _joined(found[cluster.alias, cluster.user] for cluster in clusters if cluster.is_source)
    common = sources or _joined(found.values()) or otherwise
    if not common:
        aliases = " and ".join(dict.fromkeys(cluster.alias for cluster in clusters))
        raise WrongUsage(f"{user} is not a SCRAM user of {aliases}: `lockstep credentials set {user} --both` makes one")
    return {
        (cluster.alias, cluster.user): own if own and cluster.is_source else {**own, **common}
        for cluster in clusters
        for own in (found[cluster.alias, cluster.user],)
    }


def _joined(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return {mechanism: iterations for one in found for mechanism, iterations in one.items()}


def _write(cluster: UserCluster, wanted: Mapping[str, int], pending: Credential, tell: OnWritten) -> list[Written]:
    upsertions = [Upsertion(cluster.user, name, iterations, pending.password) for name, iterations in wanted.items()]
    again = f"the password stays pending: `lockstep credentials rotate {pending.user}` continues with it"
    try:
        faults = cluster.users.upsert(upsertions)
    except LockstepError as error:
        for one in upsertions:
            tell(_written(cluster, one), str(error))
        raise RotationInterrupted(f"{error}; {again}") from error
    for one in upsertions:
        tell(_written(cluster, one), str(faults[one.key]) if faults[one.key] else None)
    for one in upsertions:
        if fault := faults[one.key]:
            raise RotationInterrupted(
                prefixed(f"cluster {cluster.alias}", f"{one.user} {one.mechanism}: {fault}; {again}")
            )
    return [_written(cluster, one) for one in upsertions]


def _written(cluster: UserCluster, one: Upsertion) -> Written:
    return Written(cluster.alias, one.user, one.mechanism, one.iterations)
