"""All known keys: Lockstep's, MM2's, a Connect worker's, a client's. Any other name is probably misspelt."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import orjson

from app.properties.keys import TABLE, KeyScope
from streaming.message_words import nearest
from streaming.mm2.replication_filters import DEPRECATED

NAMES_FILE = Path(__file__).resolve().parent / "kafka-names.json"
ROLES = ("admin", "consumer", "producer")
ENDS = ("source", "target")

OUR_KEYS = frozenset(name for name in TABLE if name.startswith("lockstep."))
"""Keys whose own name begins with `lockstep.`: there the prefix does not override MM2's key."""

RENAMED: Mapping[str, str] = {old: new for new, old in DEPRECATED.items()}
"""New names by the names from before Kafka 4.0. Lockstep's filters still read the old names; MM2 does not."""

FAMILIES = (
    "config.providers.",
    "config.storage.",
    "header.converter.",
    "key.converter.",
    "listeners.https.",
    "admin.listeners.https.",
    "metrics.context.",
    "offset.storage.",
    "predicates.",
    "status.storage.",
    "topic.creation.",
    "transforms.",
    "value.converter.",
)
"""Prefixes after which MM2 and Connect accept any name."""

NEAR_ENOUGH = 0.7
"""Similarity (0 to 1) from which a message suggests a known key for an unknown one."""

SURE = 0.9
"""Similarity (0 to 1) from which even a name with a prefix of FAMILIES counts as misspelt."""


@cache
def kafka_names() -> Mapping[str, frozenset[str]]:
    """Returns the names of Kafka's own settings by role: `client` (what MM2 takes from `a.KEY`), `admin`, `consumer`,
    `producer`, `mirror`, `worker`.
    """
    data = orjson.loads(NAMES_FILE.read_bytes())
    names = {kind: frozenset(data[kind]) for kind in ("client", *ROLES, "mirror", "worker")}
    return {kind: own | names["client"] if kind in ROLES else own for kind, own in names.items()}


@cache
def role_names() -> frozenset[str]:
    """Returns the names `admin.KEY`, `consumer.KEY`, `producer.KEY`."""
    return frozenset(f"{role}.{name}" for role in ROLES for name in kafka_names()[role])


@cache
def cluster_names() -> frozenset[str]:
    """Returns the names that may follow an alias: client settings, and the worker's settings for that cluster."""
    overrides = frozenset(f"{role}.override.{name}" for role in ROLES for name in kafka_names()[role])
    ours = frozenset(name for name, key in TABLE.items() if key.scope is KeyScope.CLUSTER)
    return kafka_names()["client"] | kafka_names()["worker"] | role_names() | overrides | ours


@cache
def flow_names() -> frozenset[str]:
    """Returns the names that may follow a flow."""
    ends = frozenset(f"{end}.{name}" for end in ENDS for name in role_names())
    ends |= frozenset(f"{end}.cluster.{name}" for end in ENDS for name in kafka_names()["client"])
    ours = frozenset(name for name, key in TABLE.items() if key.scope is KeyScope.FLOW)
    overrides = frozenset(f"{role}.override.{name}" for role in ROLES for name in kafka_names()[role])
    return (kafka_names()["mirror"] | ours | role_names() | ends | overrides | kafka_names()["client"]) - {"clusters"}


@cache
def top_names() -> frozenset[str]:
    """Returns the names that may stand without alias and flow."""
    own = frozenset(name for name, key in TABLE.items() if key.scope is not KeyScope.CLUSTER)
    return own | kafka_names()["mirror"] | kafka_names()["worker"] | kafka_names()["client"]


@cache
def read_names() -> frozenset[str]:
    """Returns the keys that Lockstep reads and that may carry its prefix: its own, some of MM2's, and client
    settings."""
    clients = kafka_names()["client"] | role_names()
    ends = frozenset(f"{end}.{name}" for end in ENDS for name in role_names())
    ends |= frozenset(f"{end}.cluster.{name}" for end in ENDS for name in kafka_names()["client"])
    return frozenset(TABLE) | frozenset(RENAMED) | clients | ends


def is_for_mm2_alone(name: str) -> bool:
    """Returns whether MM2 or its Connect worker knows this key and Lockstep does not read it."""
    known = top_names() | cluster_names() | flow_names()
    return name not in read_names() and (name in known or name.startswith(FAMILIES))


def slip(name: str, names: frozenset[str]) -> str | None:
    """Returns the known name most like an unknown one; "" if none is similar; None if the name itself is known."""
    if name in names:
        return None
    if name.startswith(FAMILIES):
        return nearest(name, names, SURE, slips=0)
    return nearest(name, names, NEAR_ENOUGH) or ""


def slip_behind_prefix(name: str, names: frozenset[str]) -> str | None:
    """Returns what `slip` returns, for a name behind the prefix `lockstep.`, which is part of the names of Lockstep's
    own keys."""
    found = slip(name, names)
    if found is None:
        return None
    own = {one.removeprefix("lockstep."): one for one in OUR_KEYS}
    near = nearest(name, names | own.keys(), NEAR_ENOUGH) or ""
    return own.get(near, near) or found
