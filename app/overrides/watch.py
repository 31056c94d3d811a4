"""When a running job must take over overrides that were written to a ledger meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from app.overrides.closed import refusals, refused_text
from sinks.ledger.ledger import Entry, Ledger
from sinks.ledger.overrides import InLedger
from streaming.errors import LockstepError
from streaming.flow import Flow


class OverridesUnknown(LockstepError):
    """A flow that has overrides, and was started while its ledger could not be read."""


class OverridesRefused(LockstepError):
    """A flow whose ledger holds overrides that break the rules of the file."""


class OverrideWatch:
    """Compares what each flow's ledger holds with what the job's settings were made from.

    `see` is called by the flows' passes, `differing` and `adopt` by the job's own thread.
    """

    def __init__(self, used: Mapping[Flow, InLedger | None], opened: Collection[str] = ()) -> None:
        """`used`: None for a flow whose ledger could not be read. `opened`: what the file lets overrides say."""
        self._used, self._opened = dict(used), opened
        self._seen: dict[Flow, InLedger] = {}
        self._reported: dict[Flow, InLedger] = {}

    def see(self, flow: Flow, ledger: Ledger) -> None:
        """Raises OverridesUnknown: without its overrides, a flow would do what it must not do.

        Raises OverridesRefused for overrides that nobody can have written by the rules of the file.
        """
        self._seen[flow] = seen = ledger.values(Entry.OVERRIDE)
        if wrong := refusals(seen, self._opened):
            raise OverridesRefused(f"{flow.name} does nothing: {refused_text(wrong)}")
        if self._used.get(flow) is None and seen:
            raise OverridesUnknown(
                f"{flow.name} waits until the {len(seen)} overrides in its ledger are in force; if it keeps "
                "waiting, the log says what is wrong with them"
            )

    def differing(self) -> frozenset[Flow]:
        """The flows whose ledger holds something else than is in force; each such content counts once."""
        differ = {flow: seen for flow, seen in dict(self._seen).items() if seen != (self._used.get(flow) or {})}
        reported, self._reported = self._reported, dict(differ)
        return frozenset(flow for flow, seen in differ.items() if reported.get(flow) != seen)

    def unknown(self, flow: Flow) -> bool:
        """Whether the flow's settings were made without its ledger."""
        return self._used.get(flow) is None

    def adopt(self, used: Mapping[Flow, InLedger | None]) -> None:
        """The settings are made from these now."""
        self._used = dict(used)
