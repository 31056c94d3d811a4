"""SCRAM users in memory that keep Kafka's rules, for tests; the same contract as Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from sinks.faults import ItemFault, NotSupported
from sinks.kafka.ports.cluster import Key
from sinks.kafka.ports.users import Upsertion, UserFaults
from tests.memory.memory_cluster import permit

LEAST, MOST = 4096, 16384
"""The iterations that Kafka takes."""

UserPolicy = Callable[[Upsertion], str | None]
"""Why the cluster refuses this one, or None."""


def _no_policy(upsertion: Upsertion) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Stored:
    """What this cluster keeps of a credential; a real one keeps no password."""

    iterations: int
    password: str = field(repr=False)


@dataclass
class MemoryUsers:
    """`writes` counts write requests; `denied` names the operations (`describe`, `alter`) that are not permitted.
    `supported`: whether brokers know the requests.

    Not `reachable`, it answers nothing.
    """

    alias: str
    stored: dict[Key, Stored] = field(default_factory=dict)
    policy: UserPolicy = _no_policy
    denied: set[str] = field(default_factory=set)
    reachable: bool = True
    supported: bool = True
    writes: int = 0

    def describe(self, users: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        self._check("describe")
        found: dict[str, dict[str, int]] = {}
        for (user, mechanism), stored in self.stored.items():
            if users is None or user in users:
                found.setdefault(user, {})[mechanism] = stored.iterations
        return found

    def upsert(self, upsertions: Sequence[Upsertion]) -> UserFaults:
        self._write(upsertions)
        faults = {one.key: self._refusal(one) for one in upsertions}
        for one in upsertions:
            if faults[one.key] is None:
                self.stored[one.key] = Stored(one.iterations, one.password)
        return faults

    def delete(self, keys: Collection[Key]) -> UserFaults:
        self._write(keys)
        for key in keys:
            self.stored.pop(key, None)
        return dict.fromkeys(keys)

    def logs_in(self, user: str, password: str, mechanism: str) -> bool:
        """Whether this is the user's password."""
        stored = self.stored.get((user, mechanism))
        return stored is not None and stored.password == password

    def _refusal(self, one: Upsertion) -> ItemFault | None:
        if not LEAST <= one.iterations <= MOST:
            wrong = "few" if one.iterations < LEAST else "many"
            return ItemFault("UNACCEPTABLE_CREDENTIAL", f"Too {wrong} iterations")
        reason = self.policy(one)
        return ItemFault("POLICY_VIOLATION", reason) if reason else None

    def _write(self, items: Collection[object]) -> None:
        if items:
            self._check("alter")
            self.writes += 1

    def _check(self, operation: str) -> None:
        permit(self.alias, self.reachable, self.denied, operation)
        if not self.supported:
            raise NotSupported(f"{self.alias}: its brokers know no SCRAM users (in-memory cluster)")
