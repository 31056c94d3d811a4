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
    "The id of the cluster that the alias's address must lead to, written as a.lockstep.cluster.id; without it, the "
    "one that it led to at first contact.",
    KeyScope.CLUSTER,
)
LEDGER_SECRET: Key[str | None] = Key(
    "lockstep.ledger.secret",
    ValueType(_secret, f"at least {SHORTEST_SECRET} characters"),
    None,
    "Lockstep",
    "What each entry of the ledger is signed with; entries without that signature are then refused.",
)
LEDGER_REPLICATION_FACTOR: Key[int | None] = Key(
    "lockstep.ledger.replication.factor",
    integer(1, 32767, besides=(-1,)),
    None,
    "Lockstep",
    "How many replicas the ledger is created with; -1: the broker's default; without it as many as the target "
    "has brokers, at most 3.",
)
AUDIT_REPLICATION_FACTOR: Key[int | None] = Key(
    "lockstep.audit.replication.factor",
    integer(1, 32767, besides=(-1,)),
    None,
    "Lockstep",
    "How many replicas the audit topic is created with; -1: the broker's default; without it as many as the "
    "target has brokers, at most 3.",
)
OVERRIDES_ALLOWED: Key[tuple[str, ...]] = Key(
    "lockstep.overrides.allowed",
    ValueType(_groups, f"a list of {', '.join(OPENABLE)}", OPENABLE),
    (),
    "Lockstep",
    "What overrides (configs.md), which are kept in the ledger, may set although whoever may write that topic "
    "could misuse it: safety.md lists the keys. Without it, all of these hold from this file alone.",
    KeyScope.JOB,
    live=Live.JOB,
)
MAX_DELETE_PERCENT = Key(
    "lockstep.limits.max.delete.percent",
    number(0, 100),
    30.0,
    "Lockstep",
    "How many percent of what Lockstep owns of a kind one plan may delete; more is refused, unless `lockstep "
    "apply --force` writes it.",
)
MAX_DELETE_MINIMUM = Key(
    "lockstep.limits.max.delete.minimum",
    integer(0, unit="items"),
    10,
    "Lockstep",
    "Where Lockstep owns fewer items of a kind than this, those percent are taken of this number: with 10 and "
    "30 percent, up to 3 items may be deleted at once.",
)
MAX_CREATE = Key(
    "lockstep.limits.max.create",
    integer(1, unit="items"),
    50_000,
    "Lockstep",
    "How many items of a kind the job creates within an hour, of topics their partitions. More is held, unless "
    "`lockstep apply --force` writes it: a source that was made to flood the target is stopped there.",
)
