"""Metadata-change signals: whether a cluster's metadata changed at all, without polling it."""

from __future__ import annotations

from typing import Protocol


class MetadataSignal(Protocol):
    """Tells whether a cluster's metadata changed at all, without polling it. A hint: it may miss a change."""

    @property
    def works(self) -> bool:
        """Whether no signal means no change; False where no log can be watched."""

    def signalled(self) -> int:
        """How many changes were signalled since the last call."""

    def close(self) -> None: ...


class NoSignal:
    """Never signals: for clusters whose metadata log cannot be watched."""

    works = False

    def signalled(self) -> int:
        return 0

    def close(self) -> None:
        """Nothing to let go of."""
