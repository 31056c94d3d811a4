"""A new password for a user, on clusters and in the store.

1. The clusters are read: what is wrong there is said before anything is written.
2. The store keeps the new password as under way; the current one stays.
3. The targets get it, then the sources. A target that refuses does no harm, because clients log in at the source.
4. The store takes it as the current one.

Wherever this is interrupted, the store knows the password that some cluster may have already, and doing it again
writes the same one everywhere. Until the end the running job sees the old version, and writes nothing.
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
    """A cluster on which a user is known, as `user`. `is_source`: of a flow; not `to_write`: it is only read."""

    alias: str
    users: Users
    user: str
    is_source: bool
    to_write: bool = True


@dataclass(frozen=True, slots=True)
class Written:
    """A credential that a cluster has now."""

    cluster: str
    user: str
    mechanism: str
    iterations: int


OnWritten = Callable[[Written, str | None], None]
"""Called with a credential and, where the cluster has not taken it, why."""


def ignore_written(written: Written, error: str | None) -> None:
    """For a caller that does not report credentials."""


class RotationInterrupted(LockstepError):
    """A cluster did not take the new password; the store keeps it as under way."""


def rotate(
    store: CredentialStore,
    user: str,
    password: str | None,
    clusters: Sequence[UserCluster],
    *,
    otherwise: Mapping[str, int] | None = None,
    anew: bool = False,
    tell: OnWritten = ignore_written,
) -> list[Written]:
    """Writes a password to the clusters, then the store; continues with the one under way if there is one.

    `password` None: there must be one under way. `otherwise`: mechanisms and iterations of a user that no cluster has;
    None: there must be one. `anew`: a password under way is given up for this one. `tell`: is told of each credential
    at once, also of one that a cluster did not take, with the reason. Raises RotationInterrupted, LockstepError.
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
            raise WrongUsage(f"no new password of {user} is under way: give one")
        return store.begin(user, password, anew=anew)
    if password not in (None, pending.password):
        raise WrongUsage(
            f"another new password of {user} is under way: finish it first, without giving one, or give this one with "
            f"`lockstep credentials set {user} --both`"
        )
    return pending


def _wanted(
    user: str, clusters: Sequence[UserCluster], otherwise: Mapping[str, int] | None
) -> dict[tuple[str, str], Mapping[str, int]]:
    """Of each mechanism, by cluster and user, the iterations: a source's own, and on a target the sources' as well.

    All that a cluster has are written: a mechanism left out would let the old password in.
    """
    found = {
        (cluster.alias, cluster.user): cluster.users.describe([cluster.user]).get(cluster.user, {})
        for cluster in clusters
    }
    sources = _joined(found[cluster.alias, cluster.user] for cluster in clusters if cluster.is_source)
    common = sources or _joined(found.values()) or otherwise
    if not common:
        aliases = " and ".join(dict.fromkeys(cluster.alias for cluster in clusters))
        raise WrongUsage(f"{user} is no SCRAM user of {aliases}: `lockstep credentials set {user} --both` makes one")
    return {
        (cluster.alias, cluster.user): own if own and cluster.is_source else {**own, **common}
        for cluster in clusters
        for own in (found[cluster.alias, cluster.user],)
    }


def _joined(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return {mechanism: iterations for one in found for mechanism, iterations in one.items()}


def _write(cluster: UserCluster, wanted: Mapping[str, int], pending: Credential, tell: OnWritten) -> list[Written]:
    upsertions = [Upsertion(cluster.user, name, iterations, pending.password) for name, iterations in wanted.items()]
    again = f"the password is under way: `lockstep credentials rotate {pending.user}` goes on with it"
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
