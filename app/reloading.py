"""Lets a running job read its file again: after a change of the file, at SIGHUP, and on request."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.private_files import file_stamp
from app.properties.keys import Live
from app.properties.mistakes import SANE_KEY
from app.properties.scoped_keys import PREFIX, ScopedKey, live
from app.settings import ConfigurationError, Settings
from sinks.model.times import utc_now, utc_text
from sinks.secret_values import IN_PLACE_OF_SECRET
from streaming.errors import LockstepError
from streaming.flow import Flow

# What changed in the properties file of a running job, and what follows from it. Pure.
#
# All of a file is checked before any of it counts: `app.settings.load` raises with every mistake, and the job goes on
# with what it had (KIP-226: validate first, then reconfigure).


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """A line of the file that was added, removed or changed.

    `key`: as written; `name`: without its scope. `before`, `after`: the values, None if the line is absent. They may be
    secret: `app.properties.shown_values` tells which may be shown. `live`: how the change takes effect; None if
    Lockstep does not read this key. `flows`: the flows that the line holds for.
    """

    key: str
    name: str
    before: str | None
    after: str | None
    live: Live | None
    flows: frozenset[Flow]

    def __str__(self) -> str:
        sides = ("not set" if side is None else side for side in (self.before, self.after))
        return f"{self.key}: {' -> '.join(sides)}" + (f" ({self.live.value})" if self.live is Live.JOB else "")


def changed_lines(before: Settings, after: Settings) -> list[ChangedLine]:
    """Returns every line that differs, sorted by key."""
    flows = frozenset(one.flow for one in before.flows)
    aliases = {*before.clusters, *after.clusters}
    found: list[ChangedLine] = []
    for where in before.values.keys() | after.values.keys():
        if before.values.get(where) != after.values.get(where):
            concerned = frozenset({where.scope}) & flows if isinstance(where.scope, Flow) else flows
            old, new = _shown(before, where), _shown(after, where)
            found.append(ChangedLine(_written(where), where.name, old, new, live(where, aliases), concerned))
    return sorted(found, key=lambda line: line.key)


def _written(where: ScopedKey) -> str:
    scope = where.scope.name if isinstance(where.scope, Flow) else where.scope
    prefix = PREFIX if where.ours and not where.name.startswith(PREFIX) else ""
    key = f"{scope}.{prefix}{where.name}" if scope else prefix + where.name
    # The rest of a value whose line lost its backslash looks like a key.
    return key if SANE_KEY.fullmatch(key) else IN_PLACE_OF_SECRET


def _shown(settings: Settings, where: ScopedKey) -> str | None:
    value = settings.values.get(where)
    return value if value is None or where in settings.shown else IN_PLACE_OF_SECRET


log = logging.getLogger(__name__)


Adopt = Callable[[Settings, Sequence[ChangedLine]], Settings]
"""Takes the settings that the file has now and the changed lines. Returns the settings then in force."""


@dataclass(frozen=True)
class Reloaded:
    """The result of one reading of the file: the changed lines, or why the job rejected the file."""

    changed: tuple[str, ...] = ()
    error: str | None = None

    def as_json(self) -> dict[str, object]:
        """Returns the document of `lockstep reload`."""
        return {"changed": list(self.changed), "error": self.error}


@dataclass(frozen=True)
class FileStatus:
    """Whether the running job uses the current content of its file.

    `mistakes`: why the job rejected the file, at `rejected_since`; it keeps its earlier settings. `needs_restart`:
    lines changed since the job started that take effect only with a restart.
    """

    mistakes: tuple[str, ...] = ()
    rejected_since: datetime | None = None
    needs_restart: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Returns `file` of the document of `lockstep status`."""
        return {
            "rejected_since": utc_text(self.rejected_since) if self.rejected_since else None,
            "mistakes": list(self.mistakes),
            "needs_restart": list(self.needs_restart),
        }


class Reloading:
    """Reads the file again when it changed, and on request. The job's main thread calls `tick`; any thread may call the
    rest."""

    def __init__(
        self,
        path: Path,
        reread: Callable[[Settings], Settings],
        settings: Settings,
        adopt: Adopt,
        rejected: Callable[[bool], None],
    ) -> None:
        """`rejected`: called after each reading, with whether the job rejected the file."""
        self._path, self._reread, self._settings, self._adopt = path, reread, settings, adopt
        self._started, self._rejected, self._file = settings, rejected, FileStatus()
        self._read = self._seen = file_stamp(path)
        self._requested = threading.Event()
        self._done = threading.Condition()
        self._count = 0
        self._last = Reloaded()

    def request(self) -> None:
        """Makes the next tick read the file, even an unchanged one: a file that it refers to may have changed."""
        self._requested.set()

    def ask(self, wait: float) -> Reloaded | None:
        """Requests a reading and returns its result; None if that took more than `wait` seconds."""
        with self._done:
            goal = self._count + 1
            self.request()
            return self._last if self._done.wait_for(lambda: self._count >= goal, wait) else None

    @property
    def file(self) -> FileStatus:
        """Returns the status after the last reading."""
        return self._file

    def tick(self) -> None:
        """Reads the file if due. Called twice a second. Waits one tick after a change: the file may be half written."""
        before, self._seen = self._seen, file_stamp(self._path)
        steady = self._seen == before
        if self._requested.is_set() or (steady and self._seen != self._read):
            self._requested.clear()
            self._read = self._seen
            self._reload()

    def _reload(self) -> None:
        """Reads the file. An error ends neither the job nor a request that waits for the result."""
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
