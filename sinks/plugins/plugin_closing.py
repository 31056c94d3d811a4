"""Closes each plug-in once: its maker closes it, unless another object took that over."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

log = logging.getLogger(__name__)


def close_plugin(plugin: object) -> None:
    """Call the plug-in's `close()` if it has one. The log shows only the class of an exception, because its text may
    hold a secret."""
    close = getattr(plugin, "close", None)
    if not callable(close):
        return
    try:
        close()
    except Exception as error:  # noqa: BLE001 - a plug-in of the user's may raise anything
        name = f"{type(plugin).__module__}:{type(plugin).__qualname__}"
        log.warning("%s could not be closed: %s", name, type(error).__name__)


class PluginClosing:
    """Closes each plug-in of a flow once. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By id, since a plug-in may be unhashable; with the object, so that no other one gets its id.
        self._gone: dict[int, object] = {}

    def hand_over(self, plugin: object) -> None:
        """Note that another object closes this plug-in."""
        self._first(plugin)

    def close(self, plugins: Iterable[object]) -> None:
        """Close the plug-ins that are neither closed nor handed over."""
        for plugin in plugins:
            if self._first(plugin):
                close_plugin(plugin)

    def _first(self, plugin: object) -> bool:
        with self._lock:
            first = id(plugin) not in self._gone
            self._gone[id(plugin)] = plugin
            return first
