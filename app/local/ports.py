"""Finds free ports of this machine, and asks without a client library whether a broker serves clients at one."""

from __future__ import annotations

import random
import socket
import struct
from contextlib import ExitStack
from typing import Final

HOST: Final = "127.0.0.1"

CANDIDATES = range(15000, 32000)
"""Ports below those that Linux, macOS and Windows give to outgoing connections. So a port stays free while its broker
restarts."""


_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Returns this many different free ports of 127.0.0.1. Never returns a port twice, because a broker that still
    starts does not listen yet."""
    found: list[int] = []
    with ExitStack() as stack:
        for port in random.sample(CANDIDATES, len(CANDIDATES)):
            if len(found) == count:
                break
            if port in _given:
                continue
            probe = stack.enter_context(socket.socket())
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            found.append(port)
    _given.update(found)
    return found


METADATA, VERSION, CORRELATION = 3, 1, 1
PROBE_CLIENT = b"lockstep-probe"
PROBE_TIMEOUT = 2.0
"""Seconds for the connection, and again for each part of the answer."""

NO_TOPICS = struct.pack(">i", 0)


def brokers_known_at(port: int, host: str = HOST) -> int:
    """Returns the number of live brokers that the broker at this address knows; 0 while it does not answer.

    Sends a Metadata request of version 1, which Kafka 0.10 to 4.3 support. The answer lists a broker once the
    controller has admitted it.
    """
    header = struct.pack(">hhih", METADATA, VERSION, CORRELATION, len(PROBE_CLIENT)) + PROBE_CLIENT
    request = header + NO_TOPICS
    try:
        with socket.create_connection((host, port), PROBE_TIMEOUT) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as answer:
                _length, _correlation, brokers = struct.unpack(">iii", answer.read(12))
    except (OSError, struct.error):  # struct.error: the connection ended within the answer
        return 0
    return int(brokers)
