"""HTTP servers of tests, each on a free port of this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SLOW = 5.0
"""Seconds that a silent server takes at most; more than a listener or a reporter waits."""


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """Its port, while it answers with this handler."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@dataclass
class AnsweringServer:
    """Answers with `statuses` in turn, 200 when there are none left; `silent`: with nothing.

    `path`: of its address. `requests`: method, path, headers and body of each.
    """

    path: str
    statuses: list[int] = field(default_factory=list)
    silent: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, str, Mapping[str, str], bytes]] = field(default_factory=list)
    port: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"


@contextmanager
def answering_server(path: str) -> Iterator[AnsweringServer]:
    """While it listens."""
    known, done = AnsweringServer(path), threading.Event()

    class Requests(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            known.requests.append((self.command, self.path, dict(self.headers), body))
            if known.silent.is_set():
                done.wait(SLOW)
                return
            self.send_response(known.statuses.pop(0) if known.statuses else 200)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self) -> None:
            self.do_PUT()

        def do_GET(self) -> None:
            known.requests.append((self.command, self.path, dict(self.headers), b""))

        def log_message(self, format: str, *args: object) -> None:
            """Not on stderr."""

    with served(Requests) as known.port:
        yield known
        done.set()
