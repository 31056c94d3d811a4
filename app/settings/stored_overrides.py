"""Properties that are kept in the ledgers and win over the file (KIP-226, dynamic over static)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.properties.config_providers import ConfigProvider, resolve
from app.properties.mistakes import Findings, PropertyLine
from app.properties.scoped_keys import PREFIX
from streaming.flow import Flow

Overrides = Mapping[Flow, Mapping[str, str]]
"""What is in force for each flow by the key's own name, whichever level it comes from."""


class Reference(str):
    """An override that is looked up where the job runs, such as `${file:PATH:KEY}`."""

    __slots__ = ()


class Decoded(str):
    """An override that its ledger keeps encoded: whatever its key, it is not shown."""

    __slots__ = ()


def override_entries(
    overrides: Overrides, providers: Mapping[str, ConfigProvider], findings: Findings
) -> Iterator[PropertyLine]:
    """As lines `a->b.lockstep.KEY`, the strongest that there are, each with a place of its own for mistakes."""
    for flow, values in overrides.items():
        for name, value in values.items():
            key = f"{flow.name}.{PREFIX}{name.removeprefix(PREFIX)}"
            entry = PropertyLine(
                key, value, 0, value, origin=f"the ledger of {flow.name}", encoded=isinstance(value, Decoded)
            )
            yield resolve(entry, providers, findings) if isinstance(value, Reference) else entry
