"""A file on this machine with the cluster ids that a flow had at first contact. It complements the ledger on the
target.

If an address leads to a new, empty cluster, there is no ledger that could tell. The file can.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from sinks.faults import LedgerUntrusted
from sinks.lock_file import locked
from streaming.errors import LockstepError
from streaming.flow import Flow

FILE = "cluster-ids.json"
"""Name of the file, in the folder of `lockstep.checkpoint.dir`."""


@dataclass(frozen=True)
class Pins:
    """The cluster ids of a flow's aliases at first contact, and the name of the ledger's topic then."""

    ids: Mapping[str, str]
    ledger: str


class PinFile:
    """A JSON file for all flows of this machine. Only its owner can read it. Each write replaces it as a whole."""

    def __init__(self, path: Path, create: bool) -> None:
        """`create`: create a missing file, as the job does. A command writes the file only if it exists and is
        writable."""
        self._path, self._create = path, create

    @property
    def where(self) -> str:
        """The path, for messages."""
        return str(self._path)

    def of(self, flow: Flow) -> Pins | None:
        """Returns the pins of a flow. Raises LedgerUntrusted if the file cannot be read."""
        found = self._read().get(flow.name)
        if found is None:
            return None
        try:
            return Pins({str(alias): str(one) for alias, one in found["ids"].items()}, str(found["ledger"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise self._damaged() from error

    def keep(self, flow: Flow, pins: Pins | None) -> None:
        """Write the pins; None deletes them. Raises LockstepError if the job cannot write the file. A command that
        cannot leaves the file as it is."""
        if not self._create and not os.access(self._path, os.W_OK):
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # One writer at a time, of all flows and processes.
            with locked(self._path.with_suffix(".lock")):
                flows = self._read()
                flows.pop(flow.name, None)
                if pins is not None:
                    flows[flow.name] = {"ids": dict(pins.ids), "ledger": pins.ledger}
                self._write(flows)
        except OSError as error:
            if self._create:
                raise LockstepError(f"the clusters' ids could not be kept in {self._path}: {error}") from error

    def _read(self) -> dict[str, Any]:
        try:
            found = orjson.loads(self._path.read_bytes())["flows"]
        except FileNotFoundError:
            return {}
        except PermissionError as error:
            if self._create:
                raise LedgerUntrusted(
                    f"{self._path}, where the clusters' ids are kept, cannot be read: {error}"
                ) from error
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._damaged() from error
        if not isinstance(found, dict):
            raise self._damaged()
        return found

    def _damaged(self) -> LedgerUntrusted:
        return LedgerUntrusted(
            f"{self._path}, where the clusters' ids are kept, is damaged: nothing is written. Look whether all "
            "addresses in the properties file are right, then delete it"
        )

    def _write(self, flows: Mapping[str, Any]) -> None:
        # mkstemp makes it 0600; the new file is on the disk before it takes the old one's place.
        handle, name = tempfile.mkstemp(prefix=f".{self._path.name}.", dir=self._path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(orjson.dumps({"flows": flows}, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(self._path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
