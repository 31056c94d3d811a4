"""What can take another value of some of its properties while it runs (KIP-226, `Reconfigurable`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable

from streaming.errors import LockstepError


@runtime_checkable
class Reconfigurable(Protocol):
    """Kafka's interface of this name, for plug-ins: filters, listeners, providers, reporters.

    A plug-in of a flow that has these three methods can stay when its properties change, and gets them; one that
    has not is created again. A reporter of metrics stays in any case, and gets them if it has these. Both calls get
    every property that holds, also those that did not change.
    """

    def reconfigurable_configs(self) -> Collection[str]:
        """Names, without prefixes, of the properties that it takes while it runs.

        If another one changes, a plug-in of a flow is closed and created again with its flow; a reporter keeps its old
        value until the job restarts.
        """

    def validate_reconfiguration(self, properties: Mapping[str, str]) -> bool | None:
        """Raises anything, with what is to be mended, where it could not go on with these, or returns False; None and
        True agree. Changes nothing itself."""

    def reconfigure(self, properties: Mapping[str, str]) -> None:
        """Goes on with these. They were validated, and every other part of the job took them, too."""


def check_agrees(plugin: Reconfigurable, properties: Mapping[str, str]) -> None:
    """Raises what the plug-in objects with; LockstepError where it returned False."""
    if plugin.validate_reconfiguration(properties) is False:
        raise LockstepError("its validate_reconfiguration returned False")
