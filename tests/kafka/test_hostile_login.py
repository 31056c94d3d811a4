"""A broker that asks for one iteration of SCRAM gets no proof of the password, which a dictionary would break."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from app.wiring import admin_of
from sinks.kafka.jvm.jvm_login import can_log_in

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36
SUPPORTED = ((API_VERSIONS, 0, 0), (SASL_HANDSHAKE, 1, 1), (SASL_AUTHENTICATE, 0, 0))
UNSUPPORTED_VERSION = 35
MECHANISM = "SCRAM-SHA-512"
SALT = "c2FsdA=="


@dataclass
class HostileBroker:
    """Speaks Kafka's protocol as far as the first answer of a login. `said`: what clients sent to log in."""

    iterations: int
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.getsockname()[1]}"

    def _serve(self) -> None:
        while True:
            try:
                client = self.server.accept()[0]
            except OSError:
                return
            with client, client.makefile("rb") as requests:
                while len(size := requests.read(4)) == 4:
                    client.sendall(self._answer(requests.read(struct.unpack(">i", size)[0])))

    def _answer(self, request: bytes) -> bytes:
        key, version, correlation, client = struct.unpack(">hhih", request[:10])
        body = request[10 + max(0, client) :]
        if key == API_VERSIONS:
            rows = b"".join(struct.pack(">hhh", *row) for row in SUPPORTED)
            answer = struct.pack(">hi", UNSUPPORTED_VERSION if version else 0, len(SUPPORTED)) + rows
        elif key == SASL_HANDSHAKE:
            answer = struct.pack(">hih", 0, 1, len(MECHANISM)) + MECHANISM.encode()
        else:
            message = body[4:].decode()
            self.said.append(message)
            nonce = message.rpartition("r=")[2]
            first = f"r={nonce}hostile,s={SALT},i={self.iterations}".encode()
            answer = struct.pack(">hhi", 0, -1, len(first)) + first
        return struct.pack(">ii", 4 + len(answer), correlation) + answer

    @property
    def proofs(self) -> list[str]:
        """What a dictionary could be tried on."""
        return [message for message in self.said if ",p=" in message]


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[HostileBroker]:
    found = HostileBroker(request.param)
    yield found
    found.server.close()


@pytest.mark.parametrize(("broker", "proves"), [(1, False), (4095, False), (4096, True)], indirect=["broker"])
def test_a_password_is_proven_for_4096_iterations_at_least(broker: HostileBroker, proves: bool) -> None:
    properties = {
        "bootstrap.servers": broker.address,
        "security.protocol": "SASL_PLAINTEXT",
        "default.api.timeout.ms": "60000",
    }
    said = can_log_in(admin_of("a", properties), "alice", "hush", MECHANISM)
    assert said is not None
    assert broker.said
    assert bool(broker.proofs) is proves, broker.said
    if not proves:
        assert "fewer than 4096 iterations" in said
