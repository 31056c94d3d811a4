"""SCRAM users: which the target needs, and the changes that create them (KIP-965).

| source, provider and target                                 | change                                        |
|-------------------------------------------------------------|-----------------------------------------------|
| needed, known to the provider, missing on the target        | create                                        |
| other iterations, or another version than written last      | update                                        |
| to be created or given other iterations, but not known      | none: refused, "no credential"                |
| on the target before, by another client, and not adopted    | none: refused, "exists on the target …"       |
| created by Lockstep, and the source or its ACLs need it no more | delete                                    |
| of a protected principal                                    | none                                          |

Lockstep owns a credential that it created or wrote a version of, also one that it adopted. It deletes only credentials
that it created.

The target needs a user who has a SCRAM credential on the source and whom a synced ACL names. Names and iterations are
the source's. If a mapping renames a user, the password is still the source user's.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from sinks.faults import Observed
from sinks.kafka.ports.acl_binding import WILDCARD
from sinks.ledger.adoption import Alike
from sinks.model.changes import Change, Key, Kind, Op, ScramSpec
from sinks.model.plan import Refusal
from sinks.model.principals import NOBODY, USER_TYPE, NamedPrincipals

NO_CREDENTIAL = "no credential"

NOT_OURS = (
    "exists on the target and is not Lockstep's; to let it have the source's password, name it in "
    "lockstep.scram.users.adopt"
)

UNPROVEN = (
    "no client can see whether its password is the source's; name the user in lockstep.scram.users.adopt, so that "
    "Lockstep writes the password, and adopt it then"
)

Iterations = Mapping[str, Mapping[str, int]]
"""Iterations by user, by mechanism."""


@dataclass(frozen=True, slots=True)
class WantedUser:
    """A credential that the target should have."""

    known_as: str
    """Name of the user on the source, by which the provider knows the password."""
    iterations: int
    version: str | None = None
    """Version of the provider's password; None if the provider has none."""
    reason: str = NO_CREDENTIAL
    """Why the user is refused while `version` is None."""


@dataclass(frozen=True)
class DesiredUsers:
    """Wanted credentials by user and mechanism. `refused`: users of the source that would get the same name on the
    target."""

    wanted: Mapping[Key, WantedUser] = field(default_factory=dict)
    refused: tuple[Refusal, ...] = ()


def users_of(principals: Mapping[str, str], protected: NamedPrincipals = NOBODY) -> dict[str, str]:
    """Returns the users among principals of synced ACLs: name on the target by name on the source.

    Principals of other types, and `User:*`, cannot log in. Protected users are left alone.
    """
    return {
        source.removeprefix(USER_TYPE): target.removeprefix(USER_TYPE)
        for source, target in principals.items()
        if _is_user(source) and _is_user(target) and target not in protected
    }


def _is_user(principal: str) -> bool:
    return principal.startswith(USER_TYPE) and principal[len(USER_TYPE) :] not in ("", WILDCARD)


def desired_users(target_names: Mapping[str, str], source: Iterations, versions: Observed[str, str]) -> DesiredUsers:
    """Returns the credentials that the target should have. `target_names`: the result of `users_of`. `versions`: by the
    source's user.

    If two users of the source get one name on the target, both are refused, because it is unknown whose password
    counts.
    """
    by_target: dict[str, list[str]] = {}
    for user in sorted(target_names.keys() & source.keys()):
        by_target.setdefault(target_names[user], []).append(user)
    wanted: dict[Key, WantedUser] = {}
    refused: list[Refusal] = []
    for target, users in by_target.items():
        fault = versions.errors.get(users[0])
        reason = str(fault) if fault else NO_CREDENTIAL
        if len(users) > 1:
            reason = (
                f"{' and '.join(users)} of the source are all {target} on the target; map them to names of their own"
            )
        for user in users:
            for mechanism, iterations in source[user].items():
                version = versions.items.get(user) if len(users) == 1 else None
                wanted[target, mechanism] = WantedUser(user, iterations, version, reason)
                if len(users) > 1:
                    refused.append(Refusal(Kind.SCRAM_USER, Op.CREATE, (target, mechanism), reason))
    return DesiredUsers(wanted, tuple(dict.fromkeys(refused)))


SEE_CREDENTIALS = "see what the credential store knows: `lockstep credentials list`"


def plan_users(
    desired: DesiredUsers,
    target: Iterations,
    written: Mapping[Key, str],
    owned: AbstractSet[Key],
    deletes: bool = True,
    adopted: NamedPrincipals = NOBODY,
) -> tuple[list[Change], list[Refusal]]:
    """Returns the changes to write, and refusals.

    `written`: versions that were written last. `owned`: keys that Lockstep created. `adopted`: users that get their
    password although they existed before; other such users are refused. A failure of the provider is always reported,
    because changed passwords cannot be seen then.
    """
    changes: list[Change] = []
    refused = list(desired.refused)
    shared = {refusal.key for refusal in refused}
    for key, wanted in desired.wanted.items():
        before = _spec(target, key, written)
        if key in shared:
            continue
        needs_write = before is None or before.iterations != wanted.iterations
        if _is_foreign(target, key, owned | written.keys()) and f"{USER_TYPE}{key[0]}" not in adopted:
            if needs_write or wanted.version is not None:
                refused.append(Refusal(Kind.SCRAM_USER, _op(before), key, NOT_OURS))
        elif wanted.version is not None:
            after = ScramSpec(wanted.iterations, wanted.version, wanted.known_as)
            changes += [Change(Kind.SCRAM_USER, key, before, after)] if before != after else []
        elif needs_write or wanted.reason != NO_CREDENTIAL:
            refused.append(Refusal(Kind.SCRAM_USER, _op(before), key, wanted.reason, remedy=SEE_CREDENTIALS))
    if deletes:
        surplus = ((key, _spec(target, key, written)) for key in owned if key not in desired.wanted)
        changes += [Change(Kind.SCRAM_USER, key, spec, None) for key, spec in surplus if spec is not None]
    return changes, refused


def alike_users(desired: DesiredUsers, target: Iterations, written: Mapping[Key, str]) -> Alike:
    """Returns the credentials that have the source's iterations on the target and whose password Lockstep wrote
    (`written`)."""
    items: dict[Key, str] = {}
    refused: dict[Key, str] = {}
    for key, wanted in desired.wanted.items():
        before = _spec(target, key, written)
        if before is None or before.iterations != wanted.iterations:
            continue
        if wanted.version is not None and before.version == wanted.version:
            items[key] = ""
        else:
            refused[key] = UNPROVEN
    return Alike(items, refused)


def _op(before: ScramSpec | None) -> Op:
    return Op.CREATE if before is None else Op.UPDATE


def _is_foreign(target: Iterations, key: Key, ours: AbstractSet[Key]) -> bool:
    """Whether another client created the credential. A missing mechanism belongs to the owner of the user's other
    ones."""
    user, mechanism = key
    existing = target.get(user, {})
    if mechanism in existing:
        return key not in ours
    return bool(existing) and not any((user, other) in ours for other in existing)


def _spec(users: Iterations, key: Key, written: Mapping[Key, str]) -> ScramSpec | None:
    user, mechanism = key
    iterations = users.get(user, {}).get(mechanism)
    return None if iterations is None else ScramSpec(iterations, written.get(key, ""))
