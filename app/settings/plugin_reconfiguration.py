"""Decides which flows of a running job stay when its file is read again (KIP-226, `Reconfigurable`).

| what differs for a flow                                  | what happens to it                              |
|----------------------------------------------------------|-------------------------------------------------|
| nothing                                                  | it stays                                        |
| only keys that its Reconfigurable plug-ins accept        | it stays, and they get the new values           |
| anything else                                            | its settings and all its plug-ins are replaced  |
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping

from app.properties.keys import REPLACES_FLOWS
from app.properties.scoped_keys import Properties, ScopedKey, live
from app.settings.job_settings import Settings
from sinks.flow_settings import FlowSettings
from streaming.flow import Flow
from streaming.reconfiguration import Reconfigurable, check_agrees

log = logging.getLogger(__name__)


def changed_names(before: Settings, after: Mapping[ScopedKey, str], flow: Flow) -> frozenset[str]:
    """Returns the changed keys that affect the flow's settings."""
    old, reporters = before.values, before.reporters.values()
    others = {name for one in reporters if isinstance(one, Reconfigurable) for name in one.reconfigurable_configs()}
    mine = [where for where in old.keys() | after.keys() if where.scope in (None, flow)]
    differ = (where for where in mine if old.get(where) != after.get(where) and where.name not in others)
    return frozenset(where.name for where in differ if live(where, ()) in REPLACES_FLOWS)


def reconfigure_plugins(flow: FlowSettings, names: Collection[str], properties: Mapping[str, str]) -> None:
    """Gives new values to the plug-ins of a flow that stays. Logs an exception and continues with the others."""
    for plugin in plugins_that_take(flow, names):
        try:
            plugin.reconfigure(properties)
        except Exception as error:  # noqa: BLE001 - a plug-in of the user's may raise anything
            # Its text may hold a value, and values may be secrets.
            name, kind = type(plugin).__name__, type(error).__name__
            log.error("%s: %s accepted the new values but failed to apply them: %s", flow.flow.name, name, kind)


def plugins_that_take(flow: FlowSettings, names: Collection[str]) -> Iterator[Reconfigurable]:
    """Yields the plug-ins of a flow that accept one of these keys while they run."""
    for plugin in flow.plugins:
        if isinstance(plugin, Reconfigurable) and not set(names).isdisjoint(plugin.reconfigurable_configs()):
            yield plugin


def can_stay(flow: FlowSettings, names: Collection[str]) -> bool:
    """Returns whether the flow can stay as it is although these keys change."""
    known = {name for plugin in plugins_that_take(flow, names) for name in plugin.reconfigurable_configs()}
    return set(names) <= known


def flow_that_stays(before: Settings, flow: Flow, properties: Properties) -> FlowSettings | None:
    """Returns the running flow if it can stay; None if it must be created again. Objections of its plug-ins are
    mistakes."""
    running = next((one for one in before.flows if one.flow == flow), None)
    names = changed_names(before, properties.values(), flow)
    if running is None or not can_stay(running, names):
        return None
    for plugin in plugins_that_take(running, names):
        try:
            check_agrees(plugin, properties.of_flow(flow))
        except Exception as error:  # noqa: BLE001 - a plug-in of the user's may raise anything
            name = min(names & set(plugin.reconfigurable_configs()))
            entry, reason = properties.entry(name, flow), str(error) or type(error).__name__
            said = f"{type(plugin).__name__} rejects it: {reason}"
            properties.mistake(entry, said, entry.key if entry else name)
    return running
