"""Tries a config on one broker before all brokers get it (the third goal of KIP-226).

- Validates the value at both levels, remembers the old value, and sets the new one on the canary.
- Watches the canary for a time: it must answer and use the value, and no further partition may be offline or
  under-replicated.
- If all is well, makes the value the cluster-wide default and removes the canary's override.
- Otherwise (trouble, an error, or the operator's Ctrl-C) restores both levels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.configs_tool.alter import (
    Alteration,
    ConcurrentAlteration,
    Wait,
    checked,
    described,
    holds,
    known_configs,
    named,
    validate,
    write,
)
from app.configs_tool.precedence import own_levels
from sinks.faults import RightsMissing
from sinks.kafka.ports.cluster import Partitions, Replicas
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ConfigLevels, ConfigValues, ResourceType
from streaming.errors import LockstepError, WrongUsage
from streaming.message_words import first_names, number_of

WATCH_EVERY = 1.0
TAKE_BACK_EVERY, TAKE_BACK_TRIES = 2.0, 30
"""Seconds between two tries to restore, and the limit of tries: a broker that restarts is back within a minute."""


Note = Callable[[str], None]
"""Takes a line about the canary's progress."""


class TakenBack(LockstepError):
    """The canary failed or was ended. All configs are as before."""


class NotTakenBack(LockstepError):
    """Restoring the old value failed. The message names the entity that still has the new one, and the command that
    restores it."""


@dataclass(frozen=True)
class Canary:
    """The trial of a config on one broker. `seconds`: how long it is watched. `wait`: returns early if the user ends
    it. `pause`: always waits, because a restore must finish."""

    levels: ConfigLevels
    partitions: Partitions
    wait: Wait
    pause: Callable[[float], None]
    note: Note
    seconds: float

    def run(self, broker: str, wanted: ConfigValues, custom: bool = False) -> Alteration:
        """Tries the configs on the broker, then makes them the default of all. Returns the alteration of the default.

        Raises WrongUsage before anything is written, TakenBack, NotTakenBack, LockstepError.
        """
        entity = ConfigEntity(ResourceType.BROKER, broker)
        default, notes = checked(DEFAULT_OF_ALL, wanted, known_configs(self.levels, DEFAULT_OF_ALL), custom)
        override, _ = checked(entity, wanted, known_configs(self.levels, entity), custom)
        for note in notes:
            self.note(note)
        for alteration in (override, default):
            _raise_if_lost_for_good(alteration)
            validate(self.levels, alteration)
        written: list[Alteration] = []
        try:
            before = self.partitions.replicas()
            self._write(override, written)
            self._watch(override, before)
            self._promote(override, default, written)
        except LockstepError as error:
            self._take_back(written, str(error))
            if not written:
                raise
            raise TakenBack(f"{error}; taken back: everything is as it was before") from error
        return default

    def _write(self, alteration: Alteration, written: list[Alteration]) -> None:
        if self.wait(0):
            raise LockstepError("the canary was stopped before its time was over")
        # Noted first: a write whose answer is lost may have been done.
        written.append(alteration)
        try:
            shown = write(self.levels, alteration, self.wait)
        except (ConcurrentAlteration, RightsMissing, WrongUsage):
            # These say that nothing was written.
            written.pop()
            raise
        if not shown:
            raise LockstepError(f"{named(alteration.entity)} does not show what was written")

    def _watch(self, override: Alteration, before: Replicas) -> None:
        self.note(f"{named(override.entity)} has the new value; watching for {self.seconds:g} s (Ctrl-C takes it back)")
        left = self.seconds
        while True:
            self._check(override, before)
            if left <= 0:
                return
            if self.wait(min(left, WATCH_EVERY)):
                raise LockstepError("the canary was stopped before its time was over")
            left -= WATCH_EVERY

    def _check(self, override: Alteration, before: Replicas) -> None:
        if not holds(override.entity, override.wanted, described(self.levels, override.entity)):
            raise LockstepError(f"{named(override.entity)} has another value now: another client altered it")
        now = self.partitions.replicas()
        for what, new in (
            ("offline", now.offline - before.offline),
            ("under-replicated", now.under_replicated - before.under_replicated),
        ):
            if new:
                found = number_of(len(new), f"partition is {what} that was", f"partitions are {what} that were")
                raise LockstepError(f"{found} not before: {first_names([str(one) for one in sorted(new)])}")

    def _promote(self, override: Alteration, default: Alteration, written: list[Alteration]) -> None:
        self._write(default, written)
        self.note("the value is the cluster-wide default now; removing the override")
        own = own_levels(override.entity, described(self.levels, override.entity))
        removal = {name: None for name in override.wanted if name in own}
        fault = self.levels.alter({override.entity: removal})[override.entity]
        if fault is not None:
            raise LockstepError(f"{named(override.entity)}: its override cannot be removed: {fault}")

    def _take_back(self, written: list[Alteration], reason: str) -> None:
        for alteration in reversed(written):
            self.note(f"{reason}; taking it back on {named(alteration.entity)}")
            back = _back(alteration, self.levels, self.pause)
            if back is not None:
                then = _command(alteration)
                raise NotTakenBack(f"{reason}; and it cannot be taken back: {back}. Once that is mended, run: {then}")


def _back(alteration: Alteration, levels: ConfigLevels, pause: Callable[[float], None]) -> str | None:
    """Restores an entity with many tries. Returns why that failed; None if it succeeded."""
    own = own_levels(alteration.entity, alteration.known.before)
    wanted = {name: own.get(name) for name in alteration.wanted}
    reason = ""
    for number in range(TAKE_BACK_TRIES):
        if number:
            pause(TAKE_BACK_EVERY)
        try:
            # The broker that would be asked what is set may not have heard of the write yet.
            fault = levels.alter({alteration.entity: wanted})[alteration.entity]
        except LockstepError as error:
            reason = str(error)
            continue
        if fault is None:
            return None
        reason = str(fault)
    return reason


def _raise_if_lost_for_good(alteration: Alteration) -> None:
    own = own_levels(alteration.entity, alteration.known.before)
    if hidden := [name for name in alteration.wanted if name in own and own[name] is None]:
        raise WrongUsage(
            f"{named(alteration.entity)}: {', '.join(hidden)}: is set already, and brokers hide secrets, so --canary "
            "could not restore it; alter it without --canary"
        )
    if deleted := [name for name, value in alteration.wanted.items() if value is None]:
        raise WrongUsage(f"{', '.join(deleted)}: --canary tries values out: it goes with --add-config only")


def _command(alteration: Alteration) -> str:
    own = own_levels(alteration.entity, alteration.known.before)
    entity = f"--entity-name {alteration.entity.name}" if alteration.entity.name else "--entity-default"
    begin = f"lockstep configs --alter --entity-type brokers {entity}"
    added = ",".join(f"{name}=[{own[name]}]" for name in alteration.wanted if name in own)
    deleted = ",".join(name for name in alteration.wanted if name not in own)
    return begin + (f" --add-config '{added}'" if added else "") + (f" --delete-config {deleted}" if deleted else "")
