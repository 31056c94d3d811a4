"""Hears whether a cluster's metadata changed at all, without looking at it."""

from __future__ import annotations

from typing import Protocol


class MetadataSignal(Protocol):
    """Hears whether a cluster's metadata changed at all, without looking at it. A hint: it may miss a change."""

    @property
    def quiet(self) -> bool:
        """Whether no news means something; False where nothing can be heard."""

    def news(self) -> int:
        """How many changes there were since this was asked last."""

    def close(self) -> None: ...


class NoSignal:
    """Hears nothing: for clusters whose metadata log is not to be had."""

    quiet = False

    def news(self) -> int:
        return 0

    def close(self) -> None:
        """Nothing to let go of."""
