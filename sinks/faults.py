"""Faults of a cluster as values and as exceptions.

A fault that concerns one item (a topic, a key) is data: an `ItemFault` beside that item. Only what stops a whole
kind or a whole flow is raised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from streaming.errors import LockstepError

DENIED = frozenset(
    {
        "TOPIC_AUTHORIZATION_FAILED",
        "CLUSTER_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED",
        "RightsMissing",
    }
)
"""Codes of faults for which a right is missing. The last one means that a whole request was denied."""


GRANT = "grant it: `lockstep rights --principal …` prints the commands, `lockstep validate --rights` what is missing"

REMEDY_OF_CODE: Mapping[str, str] = {
    **dict.fromkeys(DENIED, GRANT),
    "POLICY_VIOLATION": "allow it in the target's policy, or name the config in config.properties.exclude",
    "INVALID_CONFIG": "change the value on the source to one that the target's version takes, or name the config in "
    "config.properties.exclude",
    "INVALID_REPLICATION_FACTOR": "set replication.factor to what the target's brokers can hold",
    "NOT_ENOUGH_REPLICAS": "set replication.factor to what the target's brokers can hold",
    "SECURITY_DISABLED": "configure an authorizer on the cluster, or turn this kind off",
}
"""What to do about a fault, by Kafka's name of the error. Other faults say it themselves, or Lockstep retries them."""


JAVA_CLASSES = re.compile(r"^(?:(?:[a-z]\w*\.)+[A-Z]\w*: )+|\b(?:org\.apache\.kafka|java|kafka)(?:\.\w+)+: ")
"""Class names that Java puts before the message of an exception, at the start of a text or within it."""

INTERNALS = re.compile(r"\bRequest\(processor=|\b(?:org\.apache\.kafka|java|kafka)(?:\.\w+)+")
"""The broker's own objects and classes in a message, which tell an operator nothing."""


def broker_text(said: str | None) -> str:
    """Returns the error text `said` of a broker or client in words for an operator; "" if nothing of it helps."""
    text = JAVA_CLASSES.sub("", said or "").strip()
    return "" if text == "null" or INTERNALS.search(text) else text


@dataclass(frozen=True, slots=True)
class ItemFault:
    """Why one item could not be read or written. `code`: Kafka's error name, e.g. `POLICY_VIOLATION`. `unknown`: the
    request was sent and not answered, so it may have been carried out."""

    code: str
    message: str
    retriable: bool = False
    unknown: bool = False

    @property
    def is_denied(self) -> bool:
        """Whether a right is missing, so that a retry succeeds once the operator grants it."""
        return self.code in DENIED

    @property
    def remedy(self) -> str | None:
        """What to do; None if the message says it."""
        return REMEDY_OF_CODE.get(self.code)

    def needing(self, operation: str, resource_type: str, name: str) -> ItemFault:
        """Returns the fault with the missing right in place of the broker's text. Other faults are returned
        unchanged."""
        if not self.is_denied:
            return self
        return replace(self, message=f"{operation} on {resource_type} {name} is missing")

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


WHAT_IT_NEEDS = (
    "`lockstep validate` names what the cluster or a client lacks; docs/compatibility.md says which versions have it"
)


class NoAnswer(LockstepError):
    """A request was not answered. If it writes, it may have been carried out. Retriable: the next pass tries again."""


class JavaGone(NoAnswer):
    """The Java process that asks clusters has ended. This says nothing about a cluster."""

    code = "JAVA_GONE"
    remedy = "run the command again; if that stays so, check whether the machine is out of memory"


class ClusterUnreachable(NoAnswer):
    """A cluster did not answer within the time limit. `both`: both clusters of a flow did not."""

    code = "CLUSTER_UNREACHABLE"
    remedy = (
        "check that the cluster is up, and that bootstrap.servers of its alias leads there: `lockstep validate`. If "
        "the source is lost, `lockstep failover --dry-run` says what a failover would lose"
    )

    def __init__(self, message: str, both: bool = False) -> None:
        super().__init__(message)
        self.both = both


def where_it_is(alias: str) -> str:
    """Returns what to check if a cluster does not answer. `alias`: as messages call the cluster, perhaps an address."""
    named = "this address" if ":" in alias else f"{alias}.bootstrap.servers"
    return f"is {named} right, and the cluster up?"


class CoordinatorUnavailable(ClusterUnreachable):
    """Some or all coordinators of groups did not answer. The cluster may answer everything else."""

    code = "COORDINATOR_UNAVAILABLE"
    remedy = (
        "try again; if that stays so, check that all brokers of the cluster are up. If the source is lost, "
        "`lockstep failover --accept-loss` asks none of its coordinators"
    )


class RightsMissing(LockstepError):
    """The cluster denied a whole request. Terminal for the kind that sent it, until the right is granted."""

    code = "RIGHTS_MISSING"
    remedy = "`lockstep validate --rights` lists what is missing, `lockstep rights` prints what grants it"


class WrongCluster(LockstepError):
    """A bootstrap address leads to another cluster id than the one pinned at first contact. Terminal."""

    code = "WRONG_CLUSTER"
    remedy = "first make sure where the address leads: `lockstep validate` shows both cluster ids; see docs/safety.md"


class LedgerUntrusted(LockstepError):
    """The ledger is gone, damaged, not compacted, not signed, or of a newer version. An operator must mend it."""

    code = "LEDGER_UNTRUSTED"
    remedy = "read docs/safety.md first: the flow writes nothing until its ledger is in order"


class NotLeading(LockstepError):
    """Another process leads the flow, so this one writes nothing. `live`: this process has heard from that one since it
    began to listen."""

    remedy = "`lockstep status` names the process that leads; this one takes over once that one ends"

    def __init__(self, message: str, live: bool = False) -> None:
        super().__init__(message)
        self.live = live


class IncrementalUnsupported(LockstepError):
    """The broker lacks IncrementalAlterConfigs (API key 44, Kafka 2.3; KIP-339)."""

    code = "NOT_SUPPORTED"
    remedy = WHAT_IT_NEEDS


class NotSupported(LockstepError):
    """The cluster does not have the feature, e.g. no authorizer (SECURITY_DISABLED). Terminal for the kind, and no
    error."""

    code = "NOT_SUPPORTED"
    remedy = WHAT_IT_NEEDS


class NoRecords(LockstepError):
    """Java's client accepts a cluster's settings, but librdkafka has no counterpart to them. Records cannot be read or
    written. Admin requests go on."""

    code = "NOT_SUPPORTED"
    remedy = WHAT_IT_NEEDS


class DigestMismatch(LockstepError):
    """The plan made now differs from the plan that was reviewed."""

    code = "PLAN_CHANGED"
    remedy = "run `lockstep plan` again, and apply what it shows now"


K = TypeVar("K")


V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Observed(Generic[K, V]):
    """What could be read, and for each other key the reason in `errors`. Nothing is planned for a key in `errors`."""

    items: Mapping[K, V]
    errors: Mapping[K, ItemFault] = field(default_factory=dict)
