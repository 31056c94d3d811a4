"""Tests with plain sockets whether a cluster can be connected to, before Java's client is asked.

If brokers refuse every connection, Java's client waits its whole time limit, because that may pass. An operator and a
pass need the reason soon. A cluster that answered its last request is asked without a test.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from sinks.faults import ClusterUnreachable, where_it_is
from streaming.errors import prefixed

CHECK_EVERY: Final = 0.25
REFUSED_FOR: Final = 2.0
"""Seconds for which all addresses must refuse before a cluster counts as down: a broker may be restarting."""

NODES_PROBED: Final = 3
"""Brokers that are tried beside the bootstrap addresses, in turn."""

SHORT_DEADLINE: Final = 4.0
"""Seconds for a request to a cluster that answered before, where no address connects now."""

CONNECTS_WITHIN: Final = 1.0
"""Seconds for a connection to a cluster that gave no answer the last time."""

JUST_NOW: Final = 1.0
"""Seconds after a request without an answer in which the next ones fail at once. A command asks a cluster several
things in a row; a job waits longer before it tries again."""


def addresses(servers: str) -> list[tuple[str, int]]:
    """Returns host and port of each entry of `bootstrap.servers`, once. Malformed entries are left out."""
    found = []
    for one in servers.split(","):
        host, _, port = one.strip().rpartition(":")
        if host and port.isdigit():
            found.append((host.rpartition("//")[2].strip("[]"), int(port)))
    return list(dict.fromkeys(found))


def _tried(servers: str) -> Iterator[tuple[str, OSError | None]]:
    """Yields each address, and why it accepts no connection; None if it accepts one."""
    for host, port in addresses(servers):
        try:
            socket.create_connection((host, port), CONNECTS_WITHIN).close()
        except OSError as error:
            yield f"{host}:{port}", error
        else:
            yield f"{host}:{port}", None


def trouble(servers: str) -> str | None:
    """Returns why no address accepts a connection; None if one does."""
    reasons = []
    for where, error in _tried(servers):
        if error is None:
            return None
        reasons.append(f"{where}: {_said(error)}")
    return ", ".join(reasons) or None


def refusal(servers: str) -> str | None:
    """Returns why all addresses refuse connections; None if one of them accepts one or does not answer."""
    all_refuse = all(isinstance(error, (ConnectionRefusedError, socket.gaierror)) for _, error in _tried(servers))
    return trouble(servers) if all_refuse else None


def refusing(servers: str) -> list[str]:
    """Returns the addresses that refuse connections now, perhaps of a single broker that is down."""
    return [where for where, error in _tried(servers) if isinstance(error, ConnectionRefusedError)]


def _said(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "does not answer"
    return "refuses connections" if isinstance(error, ConnectionRefusedError) else str(error.strerror or error)


class Reachability:
    """Whether one cluster can be reached, for all clients of this process. Thread-safe."""

    def __init__(
        self,
        alias: str,
        servers: str,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._alias, self._servers, self._clock, self._sleep = alias, servers, clock, sleep
        self._answered: bool | None = None
        """Whether the last request was answered; None before the first one."""
        self._gave_up: tuple[float, str] | None = None
        self._nodes: list[str] = []

    def learn(self, nodes: Iterable[tuple[str, int]]) -> None:
        """Note the brokers that the cluster has now, by host and port. The bootstrap address may belong to one that
        restarts."""
        self._nodes = [f"[{host}]:{port}" for host, port in nodes]

    def _addresses(self) -> str:
        nodes = self._nodes
        self._nodes = nodes[NODES_PROBED:] + nodes[:NODES_PROBED]
        return ",".join([self._servers, *nodes[:NODES_PROBED]])

    def deadline(self, seconds: float) -> float:
        """Returns the seconds that a reading request may take.

        Raises ClusterUnreachable as `check`, but only while no broker of the cluster is known. A client that knows
        other brokers may still get an answer.
        """
        self._raise_if_just_given_up()
        try:
            self.check(seconds)
        except ClusterUnreachable:
            if not self._nodes:
                raise
            return min(seconds, SHORT_DEADLINE)
        return seconds

    def _raise_if_just_given_up(self) -> None:
        if self._gave_up is not None and self._clock() - self._gave_up[0] < JUST_NOW:
            raise ClusterUnreachable(self._gave_up[1])

    def answered(self) -> None:
        """Note that a request was answered. The next one needs no check."""
        self._answered, self._gave_up = True, None

    def gave_up(self, reason: str) -> None:
        """Note that a request waited its whole time limit. The next one fails at once for a moment."""
        self._answered, self._gave_up = False, (self._clock(), reason)

    def refusal(self) -> str | None:
        """Returns why all addresses refuse connections now; None if one of them accepts one or does not answer."""
        return refusal(self._addresses())

    def check(self, within: float = REFUSED_FOR, *, look: bool = False) -> None:
        """Check before a request that the cluster can be connected to. `within`: seconds that the request may take.
        `look`: check even if the last request was answered.

        Raises ClusterUnreachable once all addresses have refused connections for REFUSED_FOR. If the last request was
        not answered, it raises as soon as no address accepts a connection. For JUST_NOW after `gave_up` it raises at
        once.
        """
        if self._answered and not look:
            return
        self._raise_if_just_given_up()
        reason = trouble(self._addresses()) if self._answered is False else self._refused_for(min(within, REFUSED_FOR))
        if reason is not None:
            self._answered = False
            raise ClusterUnreachable(prefixed(f"cluster {self._alias}", f"{reason}; {where_it_is(self._alias)}"))

    def _refused_for(self, seconds: float) -> str | None:
        until = self._clock() + seconds
        while (reason := self.refusal()) is not None and self._clock() < until:
            self._sleep(CHECK_EVERY)
        return reason


_KNOWN: dict[tuple[str, str], Reachability] = {}


def reachability(alias: str, servers: str) -> Reachability:
    """Returns the one Reachability of this process for the cluster at these addresses."""
    return _KNOWN.setdefault((alias, servers), Reachability(alias, servers))
