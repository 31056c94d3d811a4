"""An alteration of overrides: what the ledgers hold after it, and how it is shown without secrets. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.overrides.overridable import is_hidden
from sinks.ledger.audit_events import SettingChange
from sinks.ledger.overrides import InLedger, Override, OverrideLevel, altered, texts_at
from sinks.model.changes import Key
from sinks.secret_values import HIDDEN
from streaming.errors import LockstepError
from streaming.flow import Flow

DIFFERS = "not the same everywhere"
DAMAGED_OVERRIDE = "damaged"


@dataclass(frozen=True)
class OverrideAlteration:
    """`flows`: those whose ledgers are written; `before`: what all ledgers hold that are known."""

    level: OverrideLevel
    flows: Sequence[Flow]
    before: Mapping[Flow, InLedger] = field(repr=False)
    wanted: Mapping[str, str | None] = field(repr=False)
    overrides: Mapping[str, Override | None] = field(repr=False)

    @property
    def after(self) -> dict[Flow, InLedger]:
        """What all ledgers hold then."""
        own = {flow: altered(self.before[flow], self.level, self.overrides) for flow in self.flows}
        return {**self.before, **own}

    @property
    def entries(self) -> dict[Key, str | None]:
        """What is put into each ledger; None is forgotten there."""
        return {
            (self.level.value, name): None if override is None else override.to_text()
            for name, override in self.overrides.items()
        }

    def changes(self, flow: Flow) -> list[SettingChange]:
        """For the flow's audit topic."""
        known = texts_at(self.before[flow], self.level)
        rows = [
            SettingChange(self._written(flow, name), _shown(name, known.get(name)), self._new(name))
            for name in self.wanted
        ]
        return [row for row in rows if row.before != row.after or row.after == HIDDEN]

    def rows(self) -> list[dict[str, str | None]]:
        """For people and programs."""
        return [{"name": name, "before": self._old(name), "after": self._new(name)} for name in self.wanted]

    def _written(self, flow: Flow, name: str) -> str:
        return f"{flow.name}.{name}" if self.level is OverrideLevel.FLOW else name

    def _old(self, name: str) -> str | None:
        values = {_shown(name, texts_at(self.before[flow], self.level).get(name)) for flow in self.flows}
        return values.pop() if len(values) == 1 else DIFFERS

    def _new(self, name: str) -> str | None:
        value = self.wanted[name]
        return HIDDEN if value is not None and is_hidden(name) else value


def _shown(name: str, text: str | None) -> str | None:
    if text is None or is_hidden(name):
        return None if text is None else HIDDEN
    try:
        found = Override.from_text(name, text)
        return HIDDEN if found.encoded else found.value
    except LockstepError:
        return DAMAGED_OVERRIDE
