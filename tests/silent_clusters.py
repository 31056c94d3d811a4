"""Clusters that take connections and never say a word, and the file of a command that asks them."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

LOCKSTEP = (sys.executable, "-m", "app.main")
ASKED_WITHIN = 180.0
"""Seconds until a command connects, on a busy machine."""


class SilentClusters:
    """By alias; `accept` returns once a client connects to one of them. The connections stay open."""

    def __init__(self, *aliases: str) -> None:
        self._stack = ExitStack()
        self._servers = {alias: self._stack.enter_context(socket.create_server(("127.0.0.1", 0))) for alias in aliases}

    def __enter__(self) -> SilentClusters:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def accept(self, alias: str) -> float:
        """When it was, as `time.monotonic` says it. Raises TimeoutError where no client connects."""
        server = self._servers[alias]
        server.settimeout(ASKED_WITHIN)
        self._stack.enter_context(server.accept()[0])
        return time.monotonic()

    def properties(self, folder: Path, flows: Sequence[str]) -> Path:
        """Without a warning: MM2 leaves to Lockstep what both could sync."""
        lines = [f"clusters={','.join(self._servers)}"]
        for alias, server in self._servers.items():
            lines.append(f"{alias}.bootstrap.servers=127.0.0.1:{server.getsockname()[1]}")
        for what in ("topic.configs", "topic.acls"):
            lines += [f"sync.{what}.enabled=false", f"lockstep.sync.{what}.enabled=true"]
        file = folder / "mm2.properties"
        file.write_text("\n".join([*lines, *(f"{flow}.enabled=true" for flow in flows), ""]))
        return file
