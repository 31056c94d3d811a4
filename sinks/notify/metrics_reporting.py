"""Runs the classes of `metric.reporters` (KIP-226), which get the job's metrics, without harm to a pass.

Each reporter runs in a thread of its own. If it raises, Lockstep counts and logs that, and calls it again after 1 s, 2
s, 4 s … 5 minutes. If it hangs, Lockstep counts and logs that, and leaves its thread behind when it closes the
reporter.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from sinks.notify.notifier import CallResult, Notifier, Patience, end_together
from sinks.secret_values import without_secrets
from streaming.errors import LockstepError
from streaming.reconfiguration import Reconfigurable

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

CountFailure = Callable[[str], None]
"""Called for every call that failed or took too long, from any thread. Argument: the class as the file names it."""


class MetricsReporter(Protocol):
    """Kafka's `MetricsReporter`, which reads Prometheus' registry.

    A reporter may also have `configure(properties)`, which must not connect, and be `Reconfigurable`. Lockstep then
    calls it when one of its properties changes. Otherwise it keeps its first properties.
    """

    def init(self, registry: CollectorRegistry) -> None:
        """Called once with the registry that /metrics shows. Must return soon; the reporter's own threads read the
        registry at any time. If it raises, it is called again, so it should leave nothing behind."""

    def close(self) -> None:
        """Called once, if `init` succeeded. At the end of the job the metrics no longer change, so it may report them a
        last time."""


class ReporterFailed(LockstepError):
    """The error of a reporter, as text without secrets."""


class Reporters:
    """The running reporters, by class as the file names it. One thread calls `adopt` and `close`."""

    def __init__(
        self, registry: CollectorRegistry, count: CountFailure = lambda reporter: None, patience: Patience | None = None
    ) -> None:
        self.registry, self.count, self.patience = registry, count, patience or Patience()
        self._running: dict[str, _Running] = {}
        self.secrets: set[str] = set()

    def adopt(
        self,
        wanted: Mapping[str, MetricsReporter],
        properties: Mapping[str, str] | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        """Close reporters that are not in `wanted`, start new ones, and pass new properties to the others. Waits for a
        `close`, at most as long as one call may take.

        `wanted`: by class as the file names it. `properties`: of all reporters. `secrets`: texts that no log may show,
        from now on.
        """
        self.secrets |= set(secrets)
        self._end([name for name, one in self._running.items() if wanted.get(name) is not one.reporter])
        values = dict(properties or {})
        for name, reporter in wanted.items():
            if name not in self._running:
                self._running[name] = _Running(self, name, reporter, values)
            self._running[name].notifier.deliver(values)

    def close(self) -> bool:
        """Close all reporters. Returns whether all were closed within the time of one call."""
        return self._end(list(self._running))

    def _end(self, names: Iterable[str]) -> bool:
        gone = {name: self._running.pop(name) for name in names}
        left = end_together((one.notifier for one in gone.values()), self.patience.limit)
        for name, one in gone.items():
            if one.notifier.name in left:
                self.count(name)
        return not left


class _Running:
    """One reporter, and the thread in which it is called."""

    def __init__(self, owner: Reporters, name: str, reporter: MetricsReporter, properties: Mapping[str, str]) -> None:
        """`properties`: the reporter is configured with these."""
        self.reporter = reporter
        self._owner, self._name = owner, name
        self._begun = False
        self._known: Mapping[str, str] | None = properties
        self.notifier: Notifier[Mapping[str, str]] = Notifier(
            f"the metrics reporter {name}", self._take, self._close, self._counted, owner.patience
        )

    def _take(self, properties: Mapping[str, str]) -> None:
        with self._in_plain_words():
            if not self._begun:
                self.reporter.init(self._owner.registry)
                self._begun = True
            if isinstance(self.reporter, Reconfigurable) and self._concerned(self.reporter, properties):
                # Should it raise, it may have taken some of them.
                self._known = None
                self.reporter.reconfigure(properties)
            self._known = properties

    def _concerned(self, reporter: Reconfigurable, properties: Mapping[str, str]) -> bool:
        known = self._known
        names = reporter.reconfigurable_configs()
        return known is None or any(properties.get(name) != known.get(name) for name in names)

    def _close(self) -> None:
        if not self._begun:
            return
        try:
            with self._in_plain_words():
                self.reporter.close()
        except ReporterFailed:
            self._owner.count(self._name)
            raise

    def _counted(self, result: CallResult) -> None:
        if result is not CallResult.OK:
            self._owner.count(self._name)

    @contextmanager
    def _in_plain_words(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - a reporter of the user's may raise anything, SystemExit too
            plain = "".join(traceback.format_exception_only(error))
            shown = str(error) if isinstance(error, LockstepError) else plain
            raise ReporterFailed(without_secrets(shown, tuple(self._owner.secrets))) from None
