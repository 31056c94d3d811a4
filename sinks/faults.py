"""Faults of a cluster as values and as exceptions.

A fault that concerns one item (a topic, a key) is data: an `ItemFault` beside that item. Only what stops a whole
kind or a whole flow is raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from streaming.errors import LockstepError


@dataclass(frozen=True, slots=True)
class ItemFault:
    """Why one item could not be read or written. `code` is Kafka's own error name, e.g. `POLICY_VIOLATION`."""

    code: str
    message: str
    retriable: bool = False

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


class ClusterUnreachable(LockstepError):
    """No answer from a cluster within the time limit. Retriable: the next pass tries again."""


class CoordinatorUnavailable(ClusterUnreachable):
    """The coordinators of groups gave no answer, or not all of them did; the cluster may answer everything else."""


class RightsMissing(LockstepError):
    """The cluster denied a whole request. Terminal for the kind that met it, until the right is granted."""


class WrongCluster(LockstepError):
    """A bootstrap address answers with another cluster id than the one pinned at first contact. Terminal."""


class LedgerUntrusted(LockstepError):
    """The ledger is gone, damaged, not compacted, not signed, or of a newer version. Terminal until somebody looked."""


class IncrementalUnsupported(LockstepError):
    """The broker lacks IncrementalAlterConfigs (API key 44, Kafka 2.3; KIP-339)."""


class NotSupported(LockstepError):
    """The cluster has no such thing at all, e.g. no authorizer (SECURITY_DISABLED). Terminal for the kind, no error."""


class DigestMismatch(LockstepError):
    """The plan made now is not the plan that was reviewed."""


K = TypeVar("K")


V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Observed(Generic[K, V]):
    """What was seen, and for what could not be seen, why. Nothing is planned for a key in `errors`."""

    items: Mapping[K, V]
    errors: Mapping[K, ItemFault] = field(default_factory=dict)
