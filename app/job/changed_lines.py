"""What changed in the properties file of a running job, and what follows from it. Pure.

All of a file is checked before any of it counts: `app.settings.load` raises with every mistake, and the job goes on
with what it had (KIP-226: validate first, then reconfigure).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from app.properties.keys import Live
from app.properties.live import live
from app.properties.mistakes import SANE_KEY
from app.properties.scoped_keys import PREFIX, ScopedKey
from app.settings import Settings
from sinks.secret_values import HIDDEN
from streaming.flow import Flow


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """A line that is new, gone or another one. `live` None: nothing of Lockstep's reads it.

    `key`: as written; `name`: without its scope. `before`, `after`: None for absence; `app.properties.shown` says which
    values are not hidden.
    `flows`: those that it holds for.
    """

    key: str
    name: str
    before: str | None
    after: str | None
    live: Live | None
    flows: frozenset[Flow]

    def __str__(self) -> str:
        sides = ("not set" if side is None else side for side in (self.before, self.after))
        return f"{self.key}: {' -> '.join(sides)}" + (f" ({self.live.value})" if self.live is Live.JOB else "")


def changed_lines(before: Settings, after: Settings) -> list[ChangedLine]:
    """Every line that differs, sorted by key."""
    flows = frozenset(one.flow for one in before.flows)
    aliases = {*before.clusters, *after.clusters}
    return sorted(_each(before, after, flows, aliases), key=lambda line: line.key)


def _each(before: Settings, after: Settings, flows: frozenset[Flow], aliases: Collection[str]) -> Iterator[ChangedLine]:
    for where in before.values.keys() | after.values.keys():
        if before.values.get(where) != after.values.get(where):
            concerned = frozenset({where.scope}) & flows if isinstance(where.scope, Flow) else flows
            old, new = _shown(before, where), _shown(after, where)
            yield ChangedLine(_written(where), where.name, old, new, live(where, aliases), concerned)


def _written(where: ScopedKey) -> str:
    scope = where.scope.name if isinstance(where.scope, Flow) else where.scope
    prefix = PREFIX if where.ours and not where.name.startswith(PREFIX) else ""
    key = f"{scope}.{prefix}{where.name}" if scope else prefix + where.name
    # The rest of a value whose line lost its backslash looks like a key.
    return key if SANE_KEY.fullmatch(key) else HIDDEN


def _shown(settings: Settings, where: ScopedKey) -> str | None:
    value = settings.values.get(where)
    return value if value is None or where in settings.shown else HIDDEN
