"""What librdkafka does with translated stores before a server of TLS: whom it trusts, what it shows."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from app.local.waiting import wait_for
from sinks.kafka.records.client_config import client_config
from tests.certificates import Signed, key_store, signed, trust_store

SOON = 60.0
PASSWORD = "s3cret"
ROOT = signed("root", authority=True)
ISSUER = signed("issuer", ROOT, authority=True)
CLIENT = signed("client", ISSUER)
OTHER = signed("other", authority=True)
SERVER = signed("server", ROOT, names=("localhost",))


@dataclass
class Door:
    """A server on a free port that asks clients for a certificate. It trusts the root alone."""

    port: int
    came_in: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def serve(listener: socket.socket, context: ssl.SSLContext, door: Door) -> None:
    """Until the listener is closed."""
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            try:
                with context.wrap_socket(connection, server_side=True) as secured:
                    door.came_in.append(str(secured.getpeercert()))
            except (ssl.SSLError, OSError) as error:
                door.failed.append(str(error))


def context_of(folder: Path, own: Signed) -> ssl.SSLContext:
    file = folder / "server.pem"
    file.write_text(own.pem + own.key_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    context.load_verify_locations(cadata=ROOT.pem)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        found = Door(listener.getsockname()[1])
        arguments = (listener, context_of(tmp_path, SERVER), found)
        threading.Thread(target=serve, args=arguments, daemon=True).start()
        yield found
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def knock(door: Door, folder: Path, trusted: Signed, host: str = "localhost", **more: str) -> None:
    """A client of PKCS12 stores comes to the door, and goes on trying until it is known what becomes of it."""
    (folder / "trust.p12").write_bytes(trust_store([OTHER, trusted], PASSWORD))
    (folder / "own.p12").write_bytes(key_store(CLIENT, [ISSUER], PASSWORD))
    properties = {
        "bootstrap.servers": f"{host}:{door.port}",
        "security.protocol": "SSL",
        "ssl.truststore.location": str(folder / "trust.p12"),
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.location": str(folder / "own.p12"),
        "ssl.keystore.password": PASSWORD,
    }
    client = AdminClient(dict(client_config("a", properties | more)))

    def heard() -> bool:
        client.poll(0.05)
        return bool(door.came_in or door.failed)

    wait_for(heard, SOON, "the server to hear from the client")


def test_a_client_shows_its_certificate_with_those_between_it_and_the_root(door: Door, tmp_path: Path) -> None:
    knock(door, tmp_path, ROOT)
    assert "client" in door.came_in[0]


def test_a_server_that_nobody_trusted_signed_is_left(door: Door, tmp_path: Path) -> None:
    knock(door, tmp_path, OTHER)
    assert not door.came_in
    assert "unknown ca" in door.failed[0].lower().replace("_", " ")


def test_a_server_of_another_name_is_left(door: Door, tmp_path: Path) -> None:
    knock(door, tmp_path, ROOT, "127.0.0.1")
    assert door.failed
    assert not door.came_in


def test_a_server_of_another_name_is_taken_where_names_are_not_checked(door: Door, tmp_path: Path) -> None:
    knock(door, tmp_path, ROOT, "127.0.0.1", **{"ssl.endpoint.identification.algorithm": ""})
    assert door.came_in
