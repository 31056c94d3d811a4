"""Shows every level of a property of Lockstep, the one in force first, and the value after a deletion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from app.configs_tool.precedence import ConfigView, LevelView
from app.overrides.overridable import is_hidden, overridable_keys, permitted
from app.properties.keys import TABLE
from app.properties.scoped_keys import Properties, scoped_key
from sinks.ledger.audit import SettingChange
from sinks.ledger.overrides import InLedger, Override, OverrideLevel, altered, at_level, texts_at
from sinks.model.changes import Key
from sinks.secret_values import IN_PLACE_OF_SECRET
from streaming.errors import LockstepError
from streaming.flow import Flow


class Source(str, Enum):
    """The source of a value, the strongest first."""

    FLOW = "FLOW"
    ALL_FLOWS = "ALL_FLOWS"
    FILE = "FILE"
    DEFAULT = "DEFAULT"


SOURCE_WORDS = {
    Source.FLOW: "override of the flow",
    Source.ALL_FLOWS: "override of all flows",
    Source.DEFAULT: "built-in default",
}
LEVELS = {Source.FLOW: OverrideLevel.FLOW, Source.ALL_FLOWS: OverrideLevel.ALL}


def flow_views(flow: Flow, stored: InLedger, properties: Properties, file: str, every: bool) -> list[ConfigView]:
    """Returns the overrides of a flow; with `every`, all keys that can be overridden."""
    overrides = {source: at_level(stored, level) for source, level in LEVELS.items()}
    names = {name for at in overrides.values() for name in at} | _all_names(every, properties)
    return [_view(name, overrides, properties, flow, file, Source.FLOW) for name in sorted(names)]


def default_views(stored: Mapping[Flow, InLedger], properties: Properties, file: str, every: bool) -> list[ConfigView]:
    """Returns the defaults for all flows. If a flow's ledger has another default, or none, the value names that
    flow."""
    found = {flow: at_level(entries, OverrideLevel.ALL) for flow, entries in sorted(stored.items())}
    names = {name for at in found.values() for name in at} | _all_names(every, properties)
    return [_default_view(name, found, properties, file) for name in sorted(names)]


def _all_names(every: bool, properties: Properties) -> set[str]:
    opened = permitted(properties.of_job())
    return {key.name for key in overridable_keys(opened)} if every else set()


def _view(
    name: str,
    overrides: Mapping[Source, Mapping[str, Override]],
    properties: Properties,
    flow: Flow,
    file: str,
    own: Source,
) -> ConfigView:
    dynamic = [_level(name, source, _value_of(name, at[name])) for source, at in overrides.items() if name in at]
    return _of_levels(name, [*dynamic, *_static(name, properties, flow, file)], own)


def _of_levels(name: str, levels: Sequence[LevelView], own: Source) -> ConfigView:
    return ConfigView(name, levels[0], tuple(levels), own.value, is_hidden(name))


def _level(name: str, source: Source, value: str | None, where: str = "") -> LevelView:
    hidden = is_hidden(name) and source is not Source.DEFAULT
    return LevelView(source.value, value, where or SOURCE_WORDS[source], hidden)


def _default_view(
    name: str, found: Mapping[Flow, Mapping[str, Override]], properties: Properties, file: str
) -> ConfigView:
    of_all = Source.ALL_FLOWS
    here = {flow: at[name] for flow, at in found.items() if name in at}
    # One password is encoded in another way each time.
    alike = len(here) == len(found) and (is_hidden(name) or len(set(here.values())) == 1)
    shown = list(here.items())[:1] if alike else here.items()
    dynamic = [
        _level(name, of_all, _value_of(name, one), "" if alike else f"{SOURCE_WORDS[of_all]}, in {flow.name}")
        for flow, one in shown
    ]
    return _of_levels(name, [*dynamic, *_static(name, properties, None, file)], of_all)


def _static(name: str, properties: Properties, flow: Flow | None, file: str) -> Iterator[LevelView]:
    entry, key = properties.entry(name, flow), TABLE.get(name)
    if entry is not None and not (key and key.prefixed and not scoped_key(entry.key, properties.aliases).ours):
        text = entry.raw.strip() if entry.is_referred else entry.value
        yield _level(name, Source.FILE, _shown_value(name, text), f"{file}:{entry.line}")
    if key is not None:
        yield _level(name, Source.DEFAULT, default_text(key.default))


def _value_of(name: str, override: Override) -> str | None:
    return IN_PLACE_OF_SECRET if override.encoded and not is_hidden(name) else _shown_value(name, override.value)


def _shown_value(name: str, value: str) -> str | None:
    return None if is_hidden(name) else value


def default_text(value: object) -> str | None:
    """Returns a default as a file would have it; None if there is none."""
    if value is None or value in ((), ""):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


DIFFERS = "not the same everywhere"
DAMAGED_OVERRIDE = "damaged"


@dataclass(frozen=True)
class OverrideAlteration:
    """A change of overrides. `flows`: the flows whose ledgers are written. `before`: the content of all ledgers that
    could be read."""

    level: OverrideLevel
    flows: Sequence[Flow]
    before: Mapping[Flow, InLedger] = field(repr=False)
    wanted: Mapping[str, str | None] = field(repr=False)
    overrides: Mapping[str, Override | None] = field(repr=False)

    @property
    def after(self) -> dict[Flow, InLedger]:
        """Returns the content of all ledgers after the change."""
        own = {flow: altered(self.before[flow], self.level, self.overrides) for flow in self.flows}
        return {**self.before, **own}

    @property
    def entries(self) -> dict[Key, str | None]:
        """Returns the entries to write into each ledger; None deletes an entry."""
        return {
            (self.level.value, name): None if override is None else override.to_text()
            for name, override in self.overrides.items()
        }

    def changes(self, flow: Flow) -> list[SettingChange]:
        """Returns the changes for the flow's audit topic."""
        known = texts_at(self.before[flow], self.level)
        rows = [
            SettingChange(self._written(flow, name), _shown(name, known.get(name)), self._new(name))
            for name in self.wanted
        ]
        return [row for row in rows if row.before != row.after or row.after == IN_PLACE_OF_SECRET]

    def rows(self) -> list[dict[str, str | None]]:
        return [{"name": name, "before": self._old(name), "after": self._new(name)} for name in self.wanted]

    def _written(self, flow: Flow, name: str) -> str:
        return f"{flow.name}.{name}" if self.level is OverrideLevel.FLOW else name

    def _old(self, name: str) -> str | None:
        values = {_shown(name, texts_at(self.before[flow], self.level).get(name)) for flow in self.flows}
        return values.pop() if len(values) == 1 else DIFFERS

    def _new(self, name: str) -> str | None:
        value = self.wanted[name]
        return IN_PLACE_OF_SECRET if value is not None and is_hidden(name) else value


def _shown(name: str, text: str | None) -> str | None:
    if text is None or is_hidden(name):
        return None if text is None else IN_PLACE_OF_SECRET
    try:
        found = Override.from_text(name, text)
        return IN_PLACE_OF_SECRET if found.encoded else found.value
    except LockstepError:
        return DAMAGED_OVERRIDE
