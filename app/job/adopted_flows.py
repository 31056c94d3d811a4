"""Which settings of its flows a job has adopted, so that plug-ins are closed of those that never come into force.

A reload hands over other settings of a flow, and the flow's next pass is built from them. Should they be replaced
before, or the job end, nobody else would close what was made for them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from sinks.flow_settings import FlowSettings


class AdoptedFlows:
    """May be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[FlowSettings] = []
        self._running: list[FlowSettings] = []

    def adopt(self, flows: Iterable[FlowSettings]) -> None:
        """The newest settings; those that are known already go on as they are."""
        with self._lock:
            known = {id(one) for one in (*self._waiting, *self._running)}
            self._waiting += [one for one in flows if id(one) not in known]

    def built(self, flow: FlowSettings) -> None:
        """A flow was built from these, and closes their plug-ins with itself; those of older ones are closed now."""
        with self._lock:
            mine = [one for one in self._waiting if one.flow == flow.flow]
            older = mine[: next((at for at, one in enumerate(mine) if one is flow), 0)]
            gone = {id(one) for one in (*older, flow)}
            self._waiting = [one for one in self._waiting if id(one) not in gone]
            self._running = [one for one in self._running if one.flow != flow.flow] + [flow]
        for one in older:
            one.close()

    def close(self) -> None:
        """The job ends: closes what is not closed yet."""
        with self._lock:
            left = [*self._waiting, *self._running]
        for one in left:
            one.close()
