"""TCP proxies in front of a broker that read requests and answers as they pass."""

from __future__ import annotations

import socket
import struct
import threading
from types import TracebackType
from typing import NamedTuple

API_VERSIONS = 18
INCREMENTAL_ALTER_CONFIGS = 44


class Request(NamedTuple):
    """A request's API key and version, and all of it without its length."""

    api: int
    version: int
    frame: bytes


class Proxy:
    """Listens on `port` and passes everything on to `upstream`. What it does in between, the two methods say."""

    def __init__(self, port: int, upstream: int) -> None:
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", port))
        self._open: list[socket.socket] = [self._listener]

    def passes(self, request: Request) -> bool:
        """Whether a request is to reach the broker; the connection is cut otherwise."""
        return True

    def answered(self, request: Request, answer: bytes) -> bytes | None:
        """The answer that the client gets; None to cut the connection instead."""
        return answer

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _cut(*self._open)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            broker = socket.create_connection(("127.0.0.1", self._upstream))
            self._open += [client, broker]
            asked: dict[int, Request] = {}
            threading.Thread(target=self._requests, args=(client, broker, asked), daemon=True).start()
            threading.Thread(target=self._responses, args=(broker, client, asked), daemon=True).start()

    def _requests(self, client: socket.socket, broker: socket.socket, asked: dict[int, Request]) -> None:
        while (frame := _frame(client)) is not None:
            api, version, correlation = struct.unpack_from(">hhi", frame)
            asked[correlation] = request = Request(api, version, frame)
            if not self.passes(request):
                break
            _send(broker, frame)
        _cut(client, broker)

    def _responses(self, broker: socket.socket, client: socket.socket, asked: dict[int, Request]) -> None:
        while (frame := _frame(broker)) is not None:
            answer = self.answered(asked.pop(struct.unpack_from(">i", frame)[0]), frame)
            if answer is None:
                break
            _send(client, answer)
        _cut(client, broker)


class ApiProxy(Proxy):
    """Hides one API: what a client meets at a broker that is too old for it.

    Only ApiVersions responses are changed (KIP-511: their header is always version 0, also where the body is flexible).
    """

    def __init__(self, port: int, upstream: int, hidden: int = INCREMENTAL_ALTER_CONFIGS) -> None:
        super().__init__(port, upstream)
        self._hidden = hidden

    def answered(self, request: Request, answer: bytes) -> bytes | None:
        return hide(answer, request.version, self._hidden) if request.api == API_VERSIONS else answer


def hide(frame: bytes, version: int, hidden: int) -> bytes:
    """An ApiVersions response without one API key. From version 3 on the array is compact and entries carry tags."""
    head, body = frame[:6], frame[6:]
    if version >= 3:
        count, start, size = body[0] - 1, 1, 7
        if body[0] >= 0x80:
            count, start = (body[0] & 0x7F | body[1] << 7) - 1, 2
    else:
        count, start, size = struct.unpack_from(">i", body)[0], 4, 6
    entries = [body[start + i * size : start + (i + 1) * size] for i in range(count)]
    kept = [entry for entry in entries if struct.unpack_from(">h", entry)[0] != hidden]
    length = _varint(len(kept) + 1) if version >= 3 else struct.pack(">i", len(kept))
    return head + length + b"".join(kept) + body[start + count * size :]


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80, value >> 7])


def _frame(source: socket.socket) -> bytes | None:
    size = _exactly(source, 4)
    return None if size is None else _exactly(source, struct.unpack(">i", size)[0])


def _exactly(source: socket.socket, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        try:
            part = source.recv(size - len(data))
        except OSError:
            return None
        if not part:
            return None
        data += part
    return data


def _cut(*ends: socket.socket) -> None:
    """Shut down first: a thread that still reads there would keep a closed socket open."""
    for end in ends:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue
        finally:
            end.close()


def _send(sink: socket.socket, frame: bytes) -> None:
    try:
        sink.sendall(struct.pack(">i", len(frame)) + frame)
    except OSError:
        return
