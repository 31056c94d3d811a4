"""The lists of a cluster in memory, which are not shown or whose writes fail: ACLs, users, quotas, configs, groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sinks.faults import ItemFault, Observed
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import AclFaults
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ConfigValues, Levels
from sinks.kafka.ports.groups import GroupFaults, Offsets
from sinks.kafka.ports.users import Upsertion, UserFaults
from sinks.kinds.quotas.quota_port import Entity, Quotas, QuotaValues
from sinks.kinds.quotas.rules import keys_of
from sinks.model.changes import Key, Kind
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_groups import MemoryGroups
from tests.memory.memory_levels import MemoryLevels
from tests.memory.memory_quotas import MemoryQuotas
from tests.memory.memory_users import MemoryUsers
from tests.sinks.machine.hazards import Hazard

T = TypeVar("T")


@dataclass
class FaultyAcls(MemoryAcls):
    """ACLs that are not shown, or not written."""

    hazard: Hazard = field(default_factory=Hazard)

    def describe(self) -> list[AclBinding]:
        found = self.hazard.shown(self.alias, Kind.ACL, super().describe())
        return [] if Kind.ACL in self.hazard.blank else found

    def create(self, bindings: Collection[AclBinding]) -> AclFaults:
        return self._noted(lambda: MemoryAcls.create(self, bindings))

    def delete(self, bindings: Collection[AclBinding]) -> AclFaults:
        return self._noted(lambda: MemoryAcls.delete(self, bindings))

    def _noted(self, write: Callable[[], T]) -> T:
        return self.hazard.perhaps(_noted(self.hazard, Kind.ACL, lambda: {one.key: "" for one in self.bindings}, write))


@dataclass
class FaultyUsers(MemoryUsers):
    """Users that are not shown, or not written."""

    hazard: Hazard = field(default_factory=Hazard)

    def describe(self, users: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        found = self.hazard.shown(self.alias, Kind.SCRAM_USER, super().describe())
        shown = {user: ways for user, ways in found.items() if users is None or user in users}
        return {} if Kind.SCRAM_USER in self.hazard.blank else shown

    def upsert(self, upsertions: Sequence[Upsertion]) -> UserFaults:
        return self._noted(lambda: MemoryUsers.upsert(self, upsertions))

    def delete(self, keys: Collection[Key]) -> UserFaults:
        return self._noted(lambda: MemoryUsers.delete(self, keys))

    def _noted(self, write: Callable[[], T]) -> T:
        return self.hazard.perhaps(_noted(self.hazard, Kind.SCRAM_USER, lambda: dict(self.stored), write))


@dataclass
class FaultyQuotas(MemoryQuotas):
    """Quotas that are not shown, or not written."""

    hazard: Hazard = field(default_factory=Hazard)

    def describe(self) -> Quotas:
        found = self.hazard.shown(self.alias, Kind.CLIENT_QUOTA, super().describe())
        return {} if Kind.CLIENT_QUOTA in self.hazard.blank else found

    def alter(self, wanted: QuotaValues) -> dict[Entity, ItemFault | None]:
        write = _noted(
            self.hazard,
            Kind.CLIENT_QUOTA,
            lambda: keys_of(MemoryQuotas.describe(self)),
            lambda: MemoryQuotas.alter(self, wanted),
        )
        return self.hazard.perhaps(write)


@dataclass
class FaultyLevels(MemoryLevels):
    """Cluster-wide configs that are not shown, or not written."""

    hazard: Hazard = field(default_factory=Hazard)

    def describe(self, places: Collection[ConfigEntity]) -> Observed[ConfigEntity, Levels]:
        seen = super().describe(places)
        if DEFAULT_OF_ALL in places and DEFAULT_OF_ALL in seen.items:
            default = self.hazard.shown(self.alias, Kind.BROKER_CONFIG, seen.items[DEFAULT_OF_ALL])
            seen = Observed({**seen.items, DEFAULT_OF_ALL: default}, seen.errors)
        blank = Kind.BROKER_CONFIG in self.hazard.blank
        # The default comes from another broker than the configs that follow it.
        shown = {place: {} if blank and place == DEFAULT_OF_ALL else levels for place, levels in seen.items.items()}
        return Observed(shown, seen.errors)

    def alter(
        self, wanted: Mapping[ConfigEntity, ConfigValues], validate_only: bool = False
    ) -> dict[ConfigEntity, ItemFault | None]:
        write = _noted(
            self.hazard,
            Kind.BROKER_CONFIG,
            lambda: {("", name): value for name, value in self.set_at.get(DEFAULT_OF_ALL, {}).items()},
            lambda: MemoryLevels.alter(self, wanted, validate_only),
        )
        return self.hazard.perhaps(write)


@dataclass
class FaultyGroups(MemoryGroups):
    """Groups whose offsets are not written."""

    hazard: Hazard = field(default_factory=Hazard)

    def commit(self, offsets: Mapping[str, Offsets]) -> GroupFaults:
        write = _noted(self.hazard, Kind.GROUP_OFFSET, self.rows, lambda: MemoryGroups.commit(self, offsets))
        return self.hazard.perhaps(write)

    def rows(self) -> dict[Key, object]:
        """Each offset by the key of its change."""
        return {
            (group, where.topic, str(where.partition)): offset
            for group, offsets in self.offsets.items()
            for where, offset in offsets.items()
        }


def _noted(
    hazard: Hazard, kind: Kind, there: Callable[[], Mapping[Key, object]], write: Callable[[], T]
) -> Callable[[], T]:
    def noted() -> T:
        before = there()
        done = write()
        hazard.note(kind, before, there())
        return done

    return noted
