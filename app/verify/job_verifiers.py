"""Who compares records in a running job: a verifier for each flow that wants one, renewed with the flow's settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from app.settings import Settings
from app.verify.flow_verifier import FlowVerifier
from sinks.engine.flow_task import FlowTask
from sinks.flow_settings import FlowSettings
from streaming.flow import Flow

if TYPE_CHECKING:
    from streaming.verify.jobs import Session


class JobVerifiers:
    """Of one job; called from its own thread alone."""

    def __init__(self, tasks: Mapping[Flow, FlowTask], spark: Session) -> None:
        self._tasks, self._spark = tasks, spark
        self._runs = False
        self._running: dict[Flow, tuple[FlowSettings, FlowVerifier]] = {}

    @contextmanager
    def running(self, settings: Settings | None) -> Iterator[None]:
        """Compares for the length of a `with` block; None: not at all."""
        self._runs = settings is not None
        if settings is not None:
            self.adopt(settings)
        try:
            yield
        finally:
            for _, verifier in self._running.values():
                verifier.end()
            for _, verifier in self._running.values():
                verifier.join()

    def adopt(self, settings: Settings) -> None:
        """Goes on with these settings: what did not change goes on, all else begins again."""
        if not self._runs:
            return
        wanted = {flow.flow: flow for flow in settings.flows if flow.verifying.enabled}
        for flow, (before, verifier) in list(self._running.items()):
            if wanted.get(flow) is not before:
                verifier.end()
                verifier.join()
                del self._running[flow]
        for flow, one in wanted.items():
            if flow not in self._running:
                verifier = FlowVerifier(settings, one, self._tasks[flow], self._spark)
                self._running[flow] = one, verifier
                verifier.start()
