"""When a running job reads its file again: when the file changed, at SIGHUP, and when it is asked to."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.job.changed_lines import ChangedLine, changed_lines
from app.private_files import file_stamp
from app.properties.keys import Live
from app.settings import ConfigurationError, Settings
from sinks.engine.times import utc_now, utc_text
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


@dataclass(frozen=True)
class FileStatus:
    """How the running job stands to its file.

    `mistakes`: why the job rejected the file, `rejected_since` then; the job goes on with what it had read before.
    `needs_restart`: lines that changed since the job started, and that only a restart takes up.
    """

    mistakes: tuple[str, ...] = ()
    rejected_since: datetime | None = None
    needs_restart: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """`file` of the document of `lockstep status`."""
        return {
            "rejected_since": utc_text(self.rejected_since) if self.rejected_since else None,
            "mistakes": list(self.mistakes),
            "needs_restart": list(self.needs_restart),
        }


class Reloading:
    """`tick` belongs to the job's own thread, `ask` and `request` to any."""

    def __init__(
        self,
        path: Path,
        reread: Callable[[Settings], Settings],
        settings: Settings,
        adopt: Adopt,
        rejected: Callable[[bool], None] = lambda rejected: None,
    ) -> None:
        """`rejected`: called with whether the file is, after each reading."""
        self._path, self._reread, self._settings, self._adopt = path, reread, settings, adopt
        self._started, self._rejected, self._file = settings, rejected, FileStatus()
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

    @property
    def file(self) -> FileStatus:
        """As of the last reading."""
        return self._file

    def tick(self) -> None:
        """Called twice a second. A file that is still being written is left for the next tick."""
        before, self._seen = self._seen, file_stamp(self._path)
        steady = self._seen == before
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
            mistakes = error.said if isinstance(error, ConfigurationError) else error.lines
            self._finish(Reloaded(error=reason), self._rejected_for(mistakes))
        except Exception as error:
            log.exception("%s was read again and is not used: a defect of Lockstep's, please report it", self._path)
            reason = f"{type(error).__name__} (a defect of Lockstep's; its log has the details)"
            self._finish(Reloaded(error=reason), self._rejected_for((reason,)))

    def _rejected_for(self, mistakes: Sequence[str]) -> FileStatus:
        return FileStatus(tuple(mistakes), self._file.rejected_since or utc_now(), self._file.needs_restart)

    def _reload_all(self) -> None:
        settings = self._reread(self._settings)
        found = [line for line in changed_lines(self._settings, settings) if line.live is not None]
        for line in found:
            log.log(logging.WARNING if line.live is Live.JOB else logging.INFO, "changed: %s", line)
        self._settings = self._adopt(settings, found)
        waiting = [line for line in changed_lines(self._started, self._settings) if line.live is Live.JOB]
        self._finish(Reloaded(tuple(str(line) for line in found)), FileStatus(needs_restart=tuple(map(str, waiting))))

    def _finish(self, reloaded: Reloaded, file: FileStatus) -> None:
        self._file = file
        self._rejected(file.rejected_since is not None)
        with self._done:
            self._last, self._count = reloaded, self._count + 1
            self._done.notify_all()
