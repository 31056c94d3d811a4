"""A client that speaks just enough of Kafka's protocol to see a certificate and to log in, on its own connection."""

from __future__ import annotations

import socket
import ssl
import struct
from types import TracebackType

METADATA, SASL_HANDSHAKE, API_VERSIONS, DESCRIBE_CONFIGS = 3, 17, 18, 32
TIMEOUT = 180.0


class Connection:
    """One connection to a listener, with TLS or without; it trusts any certificate, and tells which it got."""

    def __init__(self, address: str, *, tls: bool = False) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), TIMEOUT)
        self.certificate: bytes | None = None
        if tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            wrapped = context.wrap_socket(self._socket)
            self._socket, self.certificate = wrapped, wrapped.getpeercert(binary_form=True)

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def lives(self) -> bool:
        """Whether the broker answers a request here."""
        return self._request(API_VERSIONS)[4:6] == b"\0\0"

    def knows(self, topic: str) -> bool:
        """Whether the broker itself has heard of a topic, whatever the others have."""
        name = topic.encode()
        answer = self._request(METADATA, struct.pack(">ih", 1, len(name)) + name)
        return b"\0\0" + struct.pack(">h", len(name)) + name in answer

    def logs_in(self, user: str, password: str) -> bool:
        """With SASL/PLAIN; False where the broker refuses."""
        assert self._request(SASL_HANDSHAKE, struct.pack(">h", 5) + b"PLAIN")[4:6] == b"\0\0"
        try:
            return self._exchange(f"\0{user}\0{password}".encode()) == b""
        except (OSError, struct.error):
            return False

    def configs(self, resource_type: int, name: str) -> bytes:
        """What the broker itself says of a resource's configs and their synonyms, undecoded (version 1)."""
        resource = struct.pack(">bh", resource_type, len(name)) + name.encode() + struct.pack(">i", -1)
        answer = self._request(DESCRIBE_CONFIGS, struct.pack(">i", 1) + resource + b"\1", version=1)
        # After the correlation id and the throttle time.
        return answer[8:]

    def _request(self, api: int, body: bytes = b"", version: int = 0) -> bytes:
        client = b"tests"
        return self._exchange(struct.pack(">hhih", api, version, 1, len(client)) + client + body)

    def _exchange(self, message: bytes) -> bytes:
        self._socket.sendall(struct.pack(">i", len(message)) + message)
        (length,) = struct.unpack(">i", self._read(4))
        return self._read(length)

    def _read(self, length: int) -> bytes:
        data = b""
        while len(data) < length and (part := self._socket.recv(length - len(data))):
            data += part
        return data


def configs_at(address: str, resource_type: int, name: str) -> bytes:
    """As the broker at a plaintext listener tells them."""
    with Connection(address) as connection:
        return connection.configs(resource_type, name)


def knows_topic(address: str, topic: str) -> bool:
    """Whether the broker at a plaintext listener has heard of a topic."""
    with Connection(address) as connection:
        return connection.knows(topic)
