"""A new password for a user, on clusters and in the store.

1. The clusters are looked at: what is wrong there is said before anything is written.
2. The store keeps the new password as under way; the one in force stays.
3. The targets get it, then the sources: a target that refuses has hurt nobody, for clients log in at the source.
4. The store takes it as the one in force.

Wherever that is interrupted, the store knows the password that some cluster may have already, and doing it again
writes the same one everywhere. Until the end the running job sees the old version, and writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.credentials.store import CredentialStore
from sinks.kafka.ports.users import Upsertion, Users
from sinks.kinds.users.credentials import Credential
from streaming.errors import LockstepError, WrongUsage


@dataclass(frozen=True)
class UserCluster:
    """A cluster on which a user is known, as `user`. `is_source`: of a flow; not `to_write`: it is looked at only."""

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


Tell = Callable[[Written, str | None], None]
"""Called with a credential and, where the cluster has not taken it, why."""


def tell_nobody(written: Written, error: str | None) -> None:
    """Nobody has to know."""


class RotationInterrupted(LockstepError):
    """A cluster did not take the new password; the store keeps it as under way."""


def rotate(
    store: CredentialStore,
    user: str,
    password: str | None,
    ends: Sequence[UserCluster],
    *,
    otherwise: Mapping[str, int] | None = None,
    anew: bool = False,
    tell: Tell = tell_nobody,
) -> list[Written]:
    """Writes a password to the ends, then the store; continues with the one under way if there is one.

    `password` None: there must be one under way. `otherwise`: mechanisms and iterations of a user that no end has;
    None: there must be one. `anew`: a password under way is given up for this one. `tell`: is told of each credential
    at once, also of one that a cluster did not take, with the reason. Raises RotationInterrupted, LockstepError.
    """
    wanted = _wanted(user, ends, otherwise)
    pending = _pending(store, user, password, anew)
    written: list[Written] = []
    for end in sorted((one for one in ends if one.to_write), key=lambda one: one.is_source):
        written += _write(end, wanted[end.alias, end.user], pending, tell)
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
    user: str, ends: Sequence[UserCluster], otherwise: Mapping[str, int] | None
) -> dict[tuple[str, str], Mapping[str, int]]:
    """By end, the iterations of each mechanism: a source's own, and on a target those of the sources as well.

    All that a cluster has are written: a mechanism left out would let the old password in.
    """
    found = {(end.alias, end.user): end.users.describe([end.user]).get(end.user, {}) for end in ends}
    sources = _joined(found[end.alias, end.user] for end in ends if end.is_source)
    common = sources or _joined(found.values()) or otherwise
    if not common:
        aliases = " and ".join(dict.fromkeys(end.alias for end in ends))
        raise WrongUsage(f"{user} is no SCRAM user of {aliases}: `lockstep credentials set {user} --both` makes one")
    return {
        (end.alias, end.user): own if own and end.is_source else {**own, **common}
        for end in ends
        for own in (found[end.alias, end.user],)
    }


def _joined(found: Iterable[Mapping[str, int]]) -> dict[str, int]:
    return {mechanism: iterations for one in found for mechanism, iterations in one.items()}


def _write(end: UserCluster, wanted: Mapping[str, int], pending: Credential, tell: Tell) -> list[Written]:
    upsertions = [Upsertion(end.user, name, iterations, pending.password) for name, iterations in wanted.items()]
    again = f"the password is under way: `lockstep credentials rotate {pending.user}` goes on with it"
    try:
        faults = end.users.upsert(upsertions)
    except LockstepError as error:
        for one in upsertions:
            tell(_written(end, one), str(error))
        raise RotationInterrupted(f"{error}; {again}") from error
    for one in upsertions:
        tell(_written(end, one), str(faults[one.key]) if faults[one.key] else None)
    for one in upsertions:
        if fault := faults[one.key]:
            raise RotationInterrupted(f"cluster {end.alias}: {one.user} {one.mechanism}: {fault}; {again}")
    return [_written(end, one) for one in upsertions]


def _written(end: UserCluster, one: Upsertion) -> Written:
    return Written(end.alias, one.user, one.mechanism, one.iterations)
