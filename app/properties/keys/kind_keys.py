"""The switches of kinds that no other file of this folder declares, from the registry of kinds."""

from __future__ import annotations

from collections.abc import Collection

from app.properties.keys.key import Key
from app.properties.value_types import BOOLEAN
from sinks.model.registry import Kind


def switches(declared: Collection[str]) -> dict[str, Key[bool]]:
    """By name, those that are not among the names `declared`."""
    return {
        switch.name: Key(switch.name, BOOLEAN, switch.default, switch.source, switch.doc)
        for kind in Kind
        for switch in kind.row.enabled_by
        if switch.name not in declared
    }
