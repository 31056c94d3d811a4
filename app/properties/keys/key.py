"""What is known of a key of the properties file."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from app.properties.value_types import ValueType

T = TypeVar("T")

MIRROR = "org.apache.kafka.connect.mirror."
POLL_INTERVAL_TEXT, NO_REST = "Seconds between two polls of", "Unset: Lockstep polls at its own pace."


class KeyScope(Enum):
    """Where a key holds."""

    JOB = "the whole job"
    FLOW = "a flow, or all of them"
    CLUSTER = "one cluster, behind its alias"


class Acts(Enum):
    """When a key makes a difference to Lockstep."""

    ALWAYS = "always"
    PREFIXED = "only with the prefix lockstep."


class Live(Enum):
    """What a running job does when the key changes in its file."""

    FLOW = "at once"
    QUERY = "at once; the query restarts"
    BATCH = "at once; no flow is renewed"
    REPORTERS = "at once; the reporters are told"
    JOB = "with a restart of the job"


REPLACES_FLOWS = frozenset({Live.FLOW, Live.QUERY})
"""What a flow's settings are made of: such a change replaces the flow, or reconfigures its plug-ins."""


@dataclass(frozen=True)
class Key(Generic[T]):
    """One key. `source`: whose it is (MM2, a KIP, or Lockstep)."""

    name: str
    type: ValueType[T]
    default: T
    source: str
    doc: str
    scope: KeyScope = KeyScope.FLOW
    acts: Acts = Acts.ALWAYS
    live: Live = Live.FLOW
