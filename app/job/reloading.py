"""When a running job reads its file again: when the file changed, at SIGHUP, and when it is asked to."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.job.changed_lines import ChangedLine, changed_lines
from app.private_files import file_stamp
from app.properties.keys import Live
from app.settings import Settings
from streaming.errors import LockstepError

log = logging.getLogger(__name__)


Adopt = Callable[[Settings, Sequence[ChangedLine]], Settings]
"""Called with what the file says now, and how it differs; returns what holds from now on."""


@dataclass(frozen=True)
class Reloaded:
    """What became of one reading: the lines that differ, or the mistakes for which nothing changed."""

    changed: tuple[str, ...] = ()
    error: str | None = None

    def as_json(self) -> dict[str, object]:
        """The document of `lockstep reload`."""
        return {"changed": list(self.changed), "error": self.error}


class Reloading:
    """`tick` belongs to the job's own thread, `ask` and `request` to any."""

    def __init__(self, path: Path, reread: Callable[[Settings], Settings], settings: Settings, adopt: Adopt) -> None:
        self._path, self._reread, self._settings, self._adopt = path, reread, settings, adopt
        self._read = self._seen = file_stamp(path)
        self._requested = threading.Event()
        self._done = threading.Condition()
        self._count = 0
        self._last = Reloaded()

    def request(self) -> None:
        """At the next tick, whether the file changed or not: what it refers to may have."""
        self._requested.set()

    def ask(self, wait: float) -> Reloaded | None:
        """Requests it and returns what became of it; None where that took more than so many seconds."""
        with self._done:
            goal = self._count + 1
            self.request()
            return self._last if self._done.wait_for(lambda: self._count >= goal, wait) else None

    def tick(self) -> None:
        """Called twice a second. A file that is still being written is left for the next tick."""
        before, self._seen = self._seen, file_stamp(self._path)
        steady = self._seen == before and self._seen is not None
        if self._requested.is_set() or (steady and self._seen != self._read):
            self._requested.clear()
            self._read = self._seen
            self._reload()

    def _reload(self) -> None:
        """Whatever becomes of it, the job goes on, and whoever asked is answered."""
        try:
            self._reload_all()
        except LockstepError as error:
            reason = "; ".join(error.lines)
            log.error("%s was read again and is not used, nothing changed: %s", self._path, reason)
            self._finish(Reloaded(error=reason))
        except Exception as error:
            log.exception("%s was read again and is not used: a defect of Lockstep's, please report it", self._path)
            self._finish(Reloaded(error=f"{type(error).__name__} (a defect of Lockstep's; its log has the details)"))

    def _reload_all(self) -> None:
        settings = self._reread(self._settings)
        found = [line for line in changed_lines(self._settings, settings) if line.live is not None]
        for line in found:
            log.log(logging.WARNING if line.live is Live.JOB else logging.INFO, "changed: %s", line)
        self._settings = self._adopt(settings, found)
        self._finish(Reloaded(tuple(str(line) for line in found)))

    def _finish(self, reloaded: Reloaded) -> None:
        with self._done:
            self._last, self._count = reloaded, self._count + 1
            self._done.notify_all()
