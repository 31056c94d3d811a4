"""Free TCP ports of this machine."""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

CANDIDATES = range(15000, 32000)
"""Below the ports that Linux, macOS and Windows give to outgoing connections: what is free here stays free while its
broker restarts."""


def free_ports(count: int) -> list[int]:
    """So many different ports of 127.0.0.1 that nobody listens on now."""
    found: list[int] = []
    with ExitStack() as stack:
        for port in random.sample(CANDIDATES, len(CANDIDATES)):
            if len(found) == count:
                break
            probe = stack.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    return found
