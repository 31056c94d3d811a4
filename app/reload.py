"""What changed in the properties file of a running job, and what follows from it. Pure.

All of a file is checked before any of it counts: `app.settings.load` raises with every mistake, and the job goes on
with what it had (KIP-226: validate first, then reconfigure).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.properties.keys import TABLE, Live, Scope
from app.properties.known import flow_names, kafka_names, role_names, top_names
from app.properties.mistakes import is_secret
from app.properties.places import PREFIX, Place
from app.settings import Settings
from streaming.settings import Flow

MASKED = "[hidden]"


@dataclass(frozen=True, slots=True)
class Difference:
    """A line that is new, gone or another one. `live` None: nothing of Lockstep's reads it.

    `before`, `after`: None for absence; the values of secrets are masked. `flows`: those that it holds for.
    """

    key: str
    before: str | None
    after: str | None
    live: Live | None
    flows: frozenset[Flow]

    def __str__(self) -> str:
        sides = ("not set" if side is None else side for side in (self.before, self.after))
        return f"{self.key}: {' -> '.join(sides)}" + (f" ({self.live.value})" if self.live is Live.JOB else "")


def differences(before: Settings, after: Settings) -> list[Difference]:
    """Every line that differs, sorted by key."""
    flows = frozenset(one.flow for one in before.flows)
    aliases = before.clusters.keys() | after.clusters.keys()
    return sorted(_each(before.values, after.values, flows, aliases), key=lambda difference: difference.key)


def _each(
    old: Mapping[Place, str], new: Mapping[Place, str], flows: frozenset[Flow], aliases: Iterable[str]
) -> Iterator[Difference]:
    for where in old.keys() | new.keys():
        before, after = old.get(where), new.get(where)
        if before != after:
            concerned = frozenset({where.scope}) & flows if isinstance(where.scope, Flow) else flows
            hidden = is_secret(where.name)
            yield Difference(
                _written(where), _shown(before, hidden), _shown(after, hidden), _live(where, aliases), concerned
            )


def _live(where: Place, aliases: Iterable[str]) -> Live | None:
    key = TABLE.get(where.name)
    if key is not None:
        return None if isinstance(where.scope, Flow) and key.scope is Scope.JOB else key.live
    if where.scope in set(aliases) or where.name in kafka_names()["client"] | role_names():
        # A client's setting: connections are made when the job starts.
        return Live.JOB
    # What Kafka does not know may be a plug-in's, which is made anew with the flow.
    return None if where.name in flow_names() | top_names() else Live.FLOW


def _written(where: Place) -> str:
    scope = where.scope.name if isinstance(where.scope, Flow) else where.scope
    prefix = PREFIX if where.ours and not where.name.startswith(PREFIX) else ""
    return f"{scope}.{prefix}{where.name}" if scope else prefix + where.name


def _shown(value: str | None, hidden: bool) -> str | None:
    return MASKED if hidden and value is not None else value
