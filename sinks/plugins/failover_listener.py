"""Who is told of each state that a failover reaches, to switch clients over: Lockstep moves no client and no DNS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class FailoverListener(Protocol):
    """It may also have `configure(properties)` and `close()`."""

    def state_changed(self, state: Mapping[str, Any]) -> None:
        """`source`, `target`, `before`, `state`, `doing`, `topics`, `who`, `why`, `at`: as `lockstep failover -o json`
        has them.

        Called by the command, in order, once for each state, after the ledger has it. What raises stops nothing.
        """


class DefaultFailoverListener:
    """Does nothing."""

    def state_changed(self, state: Mapping[str, Any]) -> None:
        """Nobody wants to know."""
