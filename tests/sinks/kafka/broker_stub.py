"""A broker that knows a few requests, and does with writes what a test says."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

API_VERSIONS, METADATA = 18, 3
CREATE_TOPICS, DELETE_TOPICS, INCREMENTAL_ALTER_CONFIGS = 19, 20, 44
UNSUPPORTED_VERSION = 35
LONGEST_WAIT_S = 60.0
APIS = (
    (API_VERSIONS, 0, 0),
    (METADATA, 4, 4),
    (CREATE_TOPICS, 2, 2),
    (DELETE_TOPICS, 1, 6),
    (INCREMENTAL_ALTER_CONFIGS, 0, 0),
)


def versions(error: int, apis: tuple[tuple[int, int, int], ...] = APIS) -> bytes:
    """ApiVersions in version 0: each API with its oldest and newest version."""
    return struct.pack(">hi", error, len(apis)) + b"".join(struct.pack(">hhh", *one) for one in apis)


class BrokerStub:
    """Listens on a port of its own, which it takes again when it is started once more.

    `writes`: the API of each write that came. It answers none: `on_write` is called with the connection. `listed`: the
    one broker of its cluster, if not itself. `quick`: an answer to
    Metadata waits while it is not set.
    """

    def __init__(
        self,
        on_write: Callable[[socket.socket], object] = lambda connection: None,
        listed: BrokerStub | None = None,
    ) -> None:
        self.writes: list[int] = []
        self._listed = listed or self
        self.quick = threading.Event()
        self.quick.set()
        self._on_write = on_write
        self._open: list[socket.socket] = []
        self._port = 0
        self.start()

    @property
    def address(self) -> str:
        """As in `bootstrap.servers`."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Takes connections."""
        self._server = socket.create_server(("127.0.0.1", self._port))
        self._port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._server,), daemon=True).start()

    def close(self) -> None:
        """Refuses connections from now on, and cuts those that there are."""
        for one in (self._server, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._open.clear()

    def _accept(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                self._open.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, struct.error, ValueError), connection.makefile("rwb") as stream:
            while size := stream.read(4):
                request = stream.read(struct.unpack(">i", size)[0])
                api, version, correlation = struct.unpack(">hhi", request[:8])
                if api not in (API_VERSIONS, METADATA):
                    self.writes.append(api)
                    self._on_write(connection)
                    continue
                if api == METADATA:
                    self.quick.wait(LONGEST_WAIT_S)
                known = versions(UNSUPPORTED_VERSION if version else 0)
                answer = struct.pack(">i", correlation) + (known if api == API_VERSIONS else self._metadata())
                stream.write(struct.pack(">i", len(answer)) + answer)
                stream.flush()

    def _metadata(self) -> bytes:
        """Of a cluster that has one broker, and no topic."""
        host, cluster = b"127.0.0.1", b"stub"
        node = struct.pack(f">ih{len(host)}sih", 1, len(host), host, self._listed._port, -1)
        return struct.pack(f">ii{len(node)}sh{len(cluster)}sii", 0, 1, node, len(cluster), cluster, 1, 0)
