"""Client quotas (KIP-546): which the target should have, and the difference. Pure.

| source and target                                                        | change                                |
|--------------------------------------------------------------------------|---------------------------------------|
| on the source, missing on the target                                     | create                                |
| another value                                                            | update                                |
| created by Lockstep, no longer on the source                             | delete                                |
| of a user whom `lockstep.acl.principals` leaves out                      | none                                  |
| of a protected principal                                                 | none                                  |
| a name that brokers of Kafka 4 do not know                               | none: skipped and counted             |

Users are filtered and renamed like principals of ACLs. Client ids, addresses and defaults stay unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from sinks.kinds.quotas.quota_port import Entity, Quotas
from sinks.model.changes import Change, Key, Kind, Op
from sinks.model.plan import Refusal
from sinks.model.principals import NOBODY, USER_TYPE, NamedPrincipals, PrincipalFilter, PrincipalMapping
from sinks.model.registry import ABSENT

OF_CLIENTS = frozenset({"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"})
OF_ADDRESSES = frozenset({"connection_creation_rate"})
"""Kafka's five quotas (`QuotaConfig`) of clients and of addresses, in this order: bytes a second, bytes a second,
percent of a thread, partitions changed a second, connections a second."""

TWO_BECOME_ONE = "two users of the source would become this one on the target, with different quotas"


@dataclass(frozen=True)
class DesiredQuotas:
    """The quotas that the target should have. `wanted`: values by key. `refused`: quotas that the target cannot have.
    `skipped`: number of quotas that are not copied, by reason."""

    wanted: Mapping[Key, float] = field(default_factory=dict)
    refused: tuple[Refusal, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)


def keys_of(quotas: Quotas) -> dict[Key, float]:
    """Returns each quota by its key: user, client id, address, name."""
    return {(*entity, name): value for entity, values in quotas.items() for name, value in values.items()}


def is_protected(key: Key, protected: NamedPrincipals) -> bool:
    """Whether the quota belongs to a protected user of the target."""
    return key[0] not in ("", ABSENT) and USER_TYPE + key[0] in protected


def desired_quotas(
    source: Quotas, principals: PrincipalFilter, mapping: PrincipalMapping, protected: NamedPrincipals = NOBODY
) -> DesiredQuotas:
    wanted: dict[Key, float] = {}
    refused: dict[Key, Refusal] = {}
    skipped: Counter[str] = Counter()
    for key, value in sorted(keys_of(source).items()):
        if key[-1] not in (OF_CLIENTS if key[2] == ABSENT else OF_ADDRESSES):
            skipped["client quotas that Kafka 4 does not know"] += 1
            continue
        user = _user(key[0], principals, mapping)
        if user is None:
            skipped["client quotas of users that are left out"] += 1
            continue
        there = (user, *key[1:])
        if is_protected(there, protected):
            skipped["client quotas of protected users"] += 1
            continue
        if wanted.get(there, value) != value:
            refused[there] = Refusal(Kind.CLIENT_QUOTA, Op.CREATE, there, TWO_BECOME_ONE)
        wanted.setdefault(there, value)
    left = {key: value for key, value in wanted.items() if key not in refused}
    return DesiredQuotas(left, tuple(refused.values()), skipped)


def _user(name: str, principals: PrincipalFilter, mapping: PrincipalMapping) -> str | None:
    """Returns the user's name on the target; None if the user is left out."""
    if name in ("", ABSENT):
        return name
    principal = USER_TYPE + name
    mapped = mapping.map(principal) if principals.should_sync(principal) else None
    return None if mapped is None else mapped.removeprefix(USER_TYPE)


def plan_quotas(desired: DesiredQuotas, target: Quotas, owned: Collection[Key]) -> Iterator[Change]:
    """Returns the changes. `owned`: keys of quotas that Lockstep created; unwanted ones among them are deleted."""
    existing = keys_of(target)
    refused = {refusal.key for refusal in desired.refused}
    for key, value in desired.wanted.items():
        before = existing.get(key)
        if before != value:
            yield Change(
                Kind.CLIENT_QUOTA, key, None if before is None else as_float_text(before), as_float_text(value)
            )
    for key in set(owned) & existing.keys() - desired.wanted.keys() - refused:
        yield Change(Kind.CLIENT_QUOTA, key, as_float_text(existing[key]), None)


def as_float_text(value: float) -> str:
    """Returns a quota's value as kafka-configs shows it: `1024.0`."""
    return str(float(value))


def entity_of(key: Key) -> Entity:
    return Entity(*key[:3])
