"""What protects the target: which clusters are meant, who may write the ledger, and what a plan may delete."""

from __future__ import annotations

from app.properties.keys.key import Key, KeyScope, Live
from app.properties.value_types import TEXT, ValueType, integer, items, number

SHORTEST_SECRET = 16


def _secret(text: str) -> str:
    if len(text) < SHORTEST_SECRET:
        raise ValueError("too short")
    return text


OPENABLE = ("addresses", "classes", "deletions", "limits", "mappings", "references")


def _groups(text: str) -> tuple[str, ...]:
    return tuple(OPENABLE[OPENABLE.index(word)] for word in items(text))


CLUSTER_ID: Key[str | None] = Key(
    "lockstep.cluster.id",
    TEXT,
    None,
    "Lockstep",
    "Id of the cluster that the alias's address must lead to. Without it, the id at first contact counts.",
    KeyScope.CLUSTER,
)
LEDGER_SECRET: Key[str | None] = Key(
    "lockstep.ledger.secret",
    ValueType(_secret, f"at least {SHORTEST_SECRET} characters"),
    None,
    "Lockstep",
    "Secret that signs each entry of the ledger. Entries without that signature are refused (safety.md).",
)
LEDGER_REPLICATION_FACTOR: Key[int | None] = Key(
    "lockstep.ledger.replication.factor",
    integer(1, 32767, besides=(-1,)),
    None,
    "Lockstep",
    "Replicas of the ledger when it is created. -1: the broker's default. Unset: one per broker, 3 at most.",
)
AUDIT_REPLICATION_FACTOR: Key[int | None] = Key(
    "lockstep.audit.replication.factor",
    integer(1, 32767, besides=(-1,)),
    None,
    "Lockstep",
    "Replicas of the audit topic when it is created. -1: the broker's default. Unset: one per broker, 3 at most.",
)
OVERRIDES_ALLOWED: Key[tuple[str, ...]] = Key(
    "lockstep.overrides.allowed",
    ValueType(_groups, f"a list of {', '.join(OPENABLE)}", OPENABLE),
    (),
    "Lockstep",
    "What overrides in the ledger may set besides harmless keys: safety.md lists the keys of each word (configs.md).",
    KeyScope.JOB,
    live=Live.JOB,
)
MAX_DELETE_PERCENT = Key(
    "lockstep.limits.max.delete.percent",
    number(0, 100),
    30.0,
    "Lockstep",
    "Percent of a kind's owned items that one plan may delete. More is refused until `lockstep apply --force`.",
)
MAX_DELETE_MINIMUM = Key(
    "lockstep.limits.max.delete.minimum",
    integer(0, unit="items"),
    10,
    "Lockstep",
    "Fewer owned items than this count as this many: with 10 and 30 percent, up to 3 deletions are allowed.",
)
MAX_CREATE = Key(
    "lockstep.limits.max.create",
    integer(1, unit="items"),
    50_000,
    "Lockstep",
    "Most items of a kind that the job creates within an hour; topics count by partitions. More is held "
    "until `lockstep apply --force`.",
)
