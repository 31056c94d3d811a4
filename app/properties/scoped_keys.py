"""Finds what a line holds for, and which of several lines wins: MM2's precedence, with Lockstep's prefix above it.

Source: `MirrorMakerConfig.connectorBaseConfig` and `.clusterProps`, `MirrorConnectorConfig.sourceAdminConfig`. A key
with the prefix `lockstep.` wins over every key without it: `lockstep.KEY` even wins over `a->b.KEY`. So one line
enables a sync for Lockstep, whatever MM2's lines say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.properties.keys import METRIC_REPORTERS, TABLE, Key, KeyScope, Live, T
from app.properties.known import OUR_KEYS, flow_names, kafka_names, role_names, top_names
from app.properties.mistakes import Findings, PropertyLine
from streaming.flow import Flow

PREFIX = "lockstep."

Scope = Flow | str | None
"""What a key holds for: a flow, a cluster (its alias), or everything (None)."""


@dataclass(frozen=True, slots=True)
class ScopedKey:
    """A bare name with its scope. `ours`: it has the prefix, or its own name begins with `lockstep.`."""

    scope: Scope
    ours: bool
    name: str


def scoped_key(key: str, aliases: Iterable[str]) -> ScopedKey:
    """Splits a key as written. A key without a cluster or flow holds for all, whether known or not."""
    rest = key.removeprefix(PREFIX)
    ours = rest != key
    if key in OUR_KEYS or rest in top_names():
        return _named(None, ours, rest)
    longest_first = sorted(aliases, key=len, reverse=True)
    for source in longest_first:
        for target in longest_first:
            if source != target and rest.startswith(f"{source}->{target}."):
                return _named(Flow(source, target), ours, rest.removeprefix(f"{source}->{target}."))
    for alias in longest_first:
        if rest.startswith(f"{alias}."):
            return _named(alias, ours, rest.removeprefix(f"{alias}."))
    return _named(None, ours, rest)


def _named(scope: Scope, ours: bool, name: str) -> ScopedKey:
    bare = name.removeprefix(PREFIX)
    ours = ours or bare != name
    return ScopedKey(scope, ours, PREFIX + bare if ours and PREFIX + bare in OUR_KEYS else bare)


class Properties:
    """The resolved entries of a file by scope and name, and the mistakes found in them."""

    def __init__(self, entries: Mapping[str, PropertyLine], aliases: Sequence[str], findings: Findings) -> None:
        self.aliases, self.findings = tuple(aliases), findings
        self.mistake, self.warn = findings.mistake, findings.warn
        self.by_key: dict[ScopedKey, PropertyLine] = {}
        for entry in sorted(entries.values(), key=lambda entry: entry.line):
            where = scoped_key(entry.key, aliases)
            if earlier := self.by_key.get(where):
                findings.warn(
                    entry, f"says the same as {earlier.key} in line {earlier.line}; this one, the last, holds"
                )
            self.by_key[where] = entry

    def override(self, entries: Iterable[PropertyLine]) -> None:
        """Adds entries that win over the file. Their keys name a flow and have the prefix."""
        self.by_key |= {scoped_key(entry.key, self.aliases): entry for entry in entries}

    def values(self) -> dict[ScopedKey, str]:
        """Returns the resolved text of every line, with secrets."""
        return {where: entry.value for where, entry in self.by_key.items()}

    def at(self, scope: Scope, ours: bool, name: str) -> PropertyLine | None:
        return self.by_key.get(ScopedKey(scope, ours, name))

    def entry(self, name: str, flow: Flow | None = None) -> PropertyLine | None:
        """Returns the entry that Lockstep uses: one with the prefix wins over one without, then the flow's over the one
        for all flows."""
        return self._first(name, flow, (True, False))

    def mm2_entry(self, name: str, flow: Flow) -> PropertyLine | None:
        """Returns the entry that MM2 uses. MM2 does not know the prefix."""
        return self._first(name, flow, (False,))

    def _first(self, name: str, flow: Flow | None, layers: tuple[bool, ...]) -> PropertyLine | None:
        scopes = (None,) if flow is None else (flow, None)
        found = (self.at(scope, ours, name) for ours in layers for scope in scopes)
        return next((entry for entry in found if entry is not None), None)

    def get(self, key: Key[T], flow: Flow | None = None) -> T:
        """Returns the value that Lockstep uses; the default if there is none, or if it is a mistake."""
        entry = self.entry(key.name, flow)
        if entry is None or (key.prefixed and not scoped_key(entry.key, self.aliases).ours):
            return key.default
        return parsed(key, entry)

    def is_sound(self, name: str, flow: Flow | None = None) -> bool:
        """Returns whether the value is missing or allowed. `check` reports other values."""
        entry = self.entry(name, flow)
        if entry is None or name not in TABLE:
            return True
        try:
            TABLE[name].type.parse(entry.value)
        except ValueError:
            return False
        return entry.problem is None

    def mm2_get(self, key: Key[T], flow: Flow) -> T:
        entry = self.mm2_entry(key.name, flow)
        return key.default if entry is None else parsed(key, entry)

    def of_flow(self, flow: Flow) -> dict[str, str]:
        """Returns the properties for a flow's plug-in: every key that holds for the flow, by its bare name.

        `source.cluster.alias` and its like are always the flow's own, as in `MirrorMakerConfig.connectorBaseConfig`.
        """
        aliases = {"source.cluster.alias": flow.source, "target.cluster.alias": flow.target}
        return self._bare((None, flow)) | aliases

    def of_job(self) -> dict[str, str]:
        """Returns the properties for the job's plug-ins: every key that holds for all flows, by its bare name."""
        return self._bare((None,))

    def _bare(self, scopes: Sequence[Scope]) -> dict[str, str]:
        """Returns values by bare name. `scopes`: the weakest first."""
        values: dict[str, str] = {}
        for ours in (False, True):
            for scope in scopes:
                values |= {
                    where.name: entry.value
                    for where, entry in self.by_key.items()
                    if where.scope == scope and where.ours is ours and entry.problem is None
                }
        return values

    def client(self, role: str, alias: str, flow: Flow | None = None) -> dict[str, str]:
        """Returns the client properties of a cluster in a role (`admin`, `consumer`, `producer`). `flow`: None for
        those without a flow."""
        found: dict[str, PropertyLine] = {}
        for ours in (False, True):
            for slot in reversed(slots(role, alias, flow)):
                for where, entry in self.by_key.items():
                    if where.ours is ours and (name := slot.client_name(where)) is not None:
                        found[name] = entry
        return {name: entry.value for name, entry in sorted(found.items()) if entry.problem is None}


@dataclass(frozen=True, slots=True)
class Slot:
    """A place where client settings may stand: its scope, the prefix of the client's own name, and the names valid
    there."""

    scope: Scope
    prefix: str
    names: frozenset[str] | None = None

    def client_name(self, where: ScopedKey) -> str | None:
        """Returns the client's own name of a key in this place; None if the key does not belong to it."""
        name = where.name.removeprefix(self.prefix)
        if where.scope != self.scope or not where.name.startswith(self.prefix) or where.name in kafka_names()["mirror"]:
            return None
        if name == METRIC_REPORTERS.name:
            # confluent-kafka has no reporters; the JVM that asks has neither Python's nor, as a rule, MM2's.
            return None
        return name if self.names is None or name in self.names else None


def slots(role: str, alias: str, flow: Flow | None) -> tuple[Slot, ...]:
    """Returns the places where MM2 looks for a cluster's client settings, the strongest first.

    `a->b.admin.KEY` is weaker than the clusters' own settings, as in MM2. `a->b.source.admin.KEY` is stronger.
    """
    general = kafka_names()["client"]
    cluster = (Slot(alias, f"{role}."), Slot(alias, "", general), Slot(None, "", general))
    if flow is None:
        return cluster
    end = "source" if alias == flow.source else "target"
    return (
        Slot(flow, f"{end}.{role}."),
        *cluster,
        Slot(flow, f"{role}."),
        Slot(flow, f"{end}.cluster.", general),
    )


def parsed(key: Key[T], entry: PropertyLine) -> T:
    """Returns the value of an entry; the default if it is a mistake, which `check` reports."""
    if entry.problem is not None:
        return key.default
    try:
        return key.type.parse(entry.value)
    except ValueError:
        return key.default


def live(where: ScopedKey, aliases: Collection[str]) -> Live | None:
    """Returns what the running job does when this key changes; None if Lockstep does not read it. `aliases`: the
    clusters'."""
    key = TABLE.get(where.name)
    if key is not None:
        return None if isinstance(where.scope, Flow) and key.scope is KeyScope.JOB else key.live
    if where.scope in aliases or where.name in kafka_names()["client"] | role_names():
        # A client's setting: connections are made when the job starts.
        return Live.JOB
    # What Kafka does not know may be a plug-in's, which is told of it, or created again.
    return None if where.name in flow_names() | top_names() else Live.FLOW
