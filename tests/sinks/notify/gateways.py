"""A server that stands in for a Prometheus Pushgateway."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SLOW = 5.0
"""Seconds that the slow gateway takes at most; more than the reporter waits."""


@dataclass
class Gateway:
    """A Pushgateway that answers with `statuses` in turn, 200 when there are none left; `silent`: with nothing."""

    statuses: list[int] = field(default_factory=list)
    silent: threading.Event = field(default_factory=threading.Event)
    requests: list[tuple[str, str, Mapping[str, str], str]] = field(default_factory=list)
    port: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/t0ps3cr3t/"


@contextmanager
def gateway_on_a_free_port() -> Iterator[Gateway]:
    """While it listens."""
    known, done = Gateway(), threading.Event()

    class Requests(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            known.requests.append((self.command, self.path, dict(self.headers), body))
            if known.silent.is_set():
                done.wait(SLOW)
                return
            self.send_response(known.statuses.pop(0) if known.statuses else 200)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            known.requests.append((self.command, self.path, dict(self.headers), ""))

        def log_message(self, format: str, *args: object) -> None:
            """Not on stderr."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    known.port = listening.server_port
    thread = threading.Thread(target=listening.serve_forever, args=(0.05,))
    thread.start()
    yield known
    done.set()
    listening.shutdown()
    thread.join()
    listening.server_close()
