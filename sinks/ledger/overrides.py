"""Properties of Lockstep in a flow's ledger that override its properties file (KIP-226). Pure.

| level, the strongest first | where                                                       |
|----------------------------|-------------------------------------------------------------|
| of the flow                | the flow's ledger, `["OVERRIDE", "flow", NAME]`             |
| default of all flows       | every flow's ledger, `["OVERRIDE", "", NAME]`               |
| the file                   | its lines, by their own precedence                          |
| built-in default           | the table of keys                                           |

Each flow reads only its own ledger, so every ledger holds the default of all flows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import orjson

from sinks.model.changes import Key
from streaming.errors import LockstepError

InLedger = Mapping[Key, str]
"""The overrides of a ledger by (level, name), as texts."""


class OverrideLevel(str, Enum):
    """The level of an override. The value is the level's name in the ledger's key."""

    FLOW = "flow"
    ALL = ""


VALUE, ENCODED, REFERENCE = "value", "encoded", "reference"


@dataclass(frozen=True, slots=True)
class Override:
    """An override's value: plain, a password as the encoder made it (KIP-226, "Securing passwords"), or a reference
    that jobs resolve."""

    value: str = field(repr=False)
    encoded: bool = False
    reference: bool = False

    def to_text(self) -> str:
        kind = ENCODED if self.encoded else REFERENCE if self.reference else VALUE
        return orjson.dumps({kind: self.value}).decode()

    @classmethod
    def from_text(cls, name: str, text: str) -> Override:
        """Returns the override in a ledger's text. Raises LockstepError for a damaged text; the error names the
        property and shows nothing of the text."""
        try:
            ((kind, value),) = orjson.loads(text).items()
        except (ValueError, AttributeError):
            kind, value = "", None
        if kind not in (VALUE, ENCODED, REFERENCE) or not isinstance(value, str):
            raise LockstepError(f"the override of {name} in the ledger is damaged: delete it, or write it again")
        return cls(value, kind == ENCODED, kind == REFERENCE)


def texts_at(stored: InLedger, level: OverrideLevel) -> dict[str, str]:
    """Returns the texts at one level by name, also damaged ones. Leaves out properties of a later version."""
    return {key[1]: text for key, text in sorted(stored.items()) if len(key) == 2 and key[0] == level.value}


def at_level(stored: InLedger, level: OverrideLevel) -> dict[str, Override]:
    """Returns the overrides at one level, by name. Raises LockstepError."""
    return {name: Override.from_text(name, text) for name, text in texts_at(stored, level).items()}


def effective(stored: InLedger) -> dict[str, Override]:
    """Returns the overrides that apply to the flow, by name: its own first, else the default of all flows. Raises
    LockstepError."""
    return at_level(stored, OverrideLevel.ALL) | at_level(stored, OverrideLevel.FLOW)


def altered(stored: InLedger, level: OverrideLevel, wanted: Mapping[str, Override | None]) -> dict[Key, str]:
    """Returns the ledger's overrides after an alteration. `wanted`: by name; None deletes an override."""
    after = dict(stored)
    for name, override in wanted.items():
        if override is None:
            after.pop((level.value, name), None)
        else:
            after[level.value, name] = override.to_text()
    return after
