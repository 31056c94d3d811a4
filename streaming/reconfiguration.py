"""Interface of plug-ins whose properties may change while they run (KIP-226, `Reconfigurable`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable

from streaming.errors import LockstepError


@runtime_checkable
class Reconfigurable(Protocol):
    """Kafka's interface of this name, for plug-ins: filters, listeners, providers, reporters.

    A plug-in of a flow with these three methods can stay when its properties change, and gets the new ones. Without
    them it is created again. A reporter of metrics always stays, and gets new properties if it has these methods. Both
    calls get all properties, also unchanged ones.
    """

    def reconfigurable_configs(self) -> Collection[str]:
        """Names, without prefixes, of the properties that the plug-in takes while it runs.

        If another property changes, a plug-in of a flow is closed and created again with its flow. A reporter keeps its
        old value until the job restarts.
        """

    def validate_reconfiguration(self, properties: Mapping[str, str]) -> bool | None:
        """Raises, or returns False, if the plug-in could not go on with these properties. The exception says what to
        mend. None and True agree. Changes nothing."""

    def reconfigure(self, properties: Mapping[str, str]) -> None:
        """Go on with these properties. They were validated, and every other part of the job accepted them."""


def check_agrees(plugin: Reconfigurable, properties: Mapping[str, str]) -> None:
    """Raises the plug-in's objection to new properties; LockstepError if it returned False."""
    if plugin.validate_reconfiguration(properties) is False:
        raise LockstepError("its validate_reconfiguration returned False")
