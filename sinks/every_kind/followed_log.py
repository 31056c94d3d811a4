"""Finds out whether the brokers that answer for a cluster are cut off from its controller."""

from __future__ import annotations

import time
from collections.abc import Sequence

from sinks.kafka.ports.watches import MetadataEpochs, MetadataSignal
from streaming.errors import LockstepError

EPOCHS_GROW_WITHIN_S = 2.0
"""Seconds within which the metadata epoch of a broker grows if it follows its controller: four records at the default
of `metadata.max.idle.interval.ms`."""
EPOCH_POLL_INTERVAL_S = 0.1


class FollowedLog:
    """Tells whether the brokers of a source follow its metadata log.

    A broker that is cut off from the controller answers from old metadata, and its metadata epoch stands still. An
    active controller writes a record each 500 ms (`metadata.max.idle.interval.ms`, KIP-835).
    """

    def __init__(self, signal: MetadataSignal, asked: MetadataEpochs, patience_s: float = 0.0) -> None:
        """`asked`: reads the epochs of the brokers that take the second look. `patience_s`: seconds that `is_behind`
        waits for an epoch to grow."""
        self._signal, self._asked, self._patience_s = signal, asked, patience_s
        self._highest = -1

    def begin(self) -> None:
        """Begin a comparison. From now on, a broker's answer must be as new as any epoch seen so far."""
        self._highest = max(self._highest, self._signal.highest_epoch)

    def latest(self) -> int | None:
        """Returns the highest epoch known now; None if a broker does not answer."""
        return None if self._ask() is None else self._highest

    def is_behind(self, since: int | None) -> bool:
        """Whether a broker that answers now lags behind the log, or has not read beyond the epoch `since`."""
        until = time.monotonic() + self._patience_s
        while (stands := self._stands_still(since)) and time.monotonic() < until:
            time.sleep(EPOCH_POLL_INTERVAL_S)
        return stands

    def _stands_still(self, since: int | None) -> bool:
        known = self._highest
        epochs = self._ask()
        if epochs is None or since is None:
            return True
        # Brokers in ZooKeeper mode tell no epoch.
        return any(epoch < known or epoch <= since for epoch in epochs)

    def _ask(self) -> Sequence[int] | None:
        """Returns the epochs of the asked brokers; None if one does not answer."""
        try:
            epochs = self._asked()
        except LockstepError:
            return None
        self._highest = max((self._highest, *epochs))
        return epochs
