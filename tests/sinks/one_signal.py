"""A metadata-change signal that tests give by hand."""

from __future__ import annotations

from dataclasses import replace

from tests.sinks.builders import World


class OneSignal:
    """Tells what is put into it once; `works` says whether silence means that nothing changed."""

    def __init__(self, *, works: bool = True) -> None:
        self.works, self.records, self.highest_epoch = works, 0, -1

    def take_signalled(self) -> int:
        """Records since this was last asked."""
        records, self.records = self.records, 0
        return records

    def close(self) -> None:
        """Nothing to close."""


def with_signal(world: World, *, works: bool = True) -> OneSignal:
    """The world's source has one from now on."""
    signal = OneSignal(works=works)
    world.reconcile._components = replace(world.reconcile._components, signal=signal)
    return signal
