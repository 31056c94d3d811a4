"""Whether a cluster can be connected to at all: found out with plain sockets, beside the client that waits for it.

Clients wait their whole time limit for brokers that refuse every connection, or every login, for that may pass. An
operator and a pass are better off with the reason soon.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillWaiting
from typing import Final, TypeVar

from sinks.background import begun
from sinks.faults import ClusterUnreachable, where_it_is
from sinks.kafka.request_timeout import request_timeout
from streaming.errors import LockstepError

PATIENCE: Final = 1.0
"""Seconds that an answer may take before somebody looks whether there can be one."""

CHECK_EVERY: Final = 0.5
REFUSED_FOR: Final = 2.0
"""Seconds that all addresses must refuse, or the login: a broker that restarts is not given up at once."""

CONNECTS_WITHIN: Final = 1.0
"""Seconds for a connection to a cluster that gave no answer the last time."""

JUST_NOW: Final = 1.0
"""Seconds; a command asks a cluster several things in a row, and a job waits longer before it tries again."""

A = TypeVar("A")


def addresses(servers: str) -> list[tuple[str, int]]:
    """Of `bootstrap.servers`: host and port of each; what is no address is left out."""
    found = []
    for one in servers.split(","):
        host, _, port = one.strip().rpartition(":")
        if host and port.isdigit():
            found.append((host.rpartition("//")[2].strip("[]"), int(port)))
    return found


def trouble(servers: str, within: float) -> str | None:
    """Why none of the addresses can be connected to; None where one of them can. `within`: seconds for each."""
    reasons = []
    for host, port in addresses(servers):
        try:
            socket.create_connection((host, port), within).close()
        except OSError as error:
            reasons.append(f"{host}:{port}: {_said(error)}")
        else:
            return None
    return ", ".join(reasons) or None


def refusal(servers: str) -> str | None:
    """Why all the addresses refuse; None where one of them takes its time, or a connection."""
    for host, port in addresses(servers):
        try:
            socket.create_connection((host, port), CHECK_EVERY).close()
        except (ConnectionRefusedError, socket.gaierror):
            continue
        except OSError:
            return None
        return None
    return trouble(servers, CHECK_EVERY)


def let_in() -> LockstepError | None:
    """For clients that nobody has refused."""
    return None


def _said(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "does not answer"
    return "refuses connections" if isinstance(error, ConnectionRefusedError) else str(error.strerror or error)


class Reachability:
    """Of one cluster, for all who ask it in this process; of several threads."""

    def __init__(self, alias: str, servers: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._alias, self._servers, self._clock = alias, servers, clock
        self._silent = False
        self._gave_up: tuple[float, str] | None = None

    def gave_up(self, reason: str) -> None:
        """A request has waited its whole time limit: whoever asks the same right afterwards need not do so, too."""
        self._gave_up = self._clock(), reason

    def refused(self) -> ClusterUnreachable | None:
        """What to raise where all its addresses refuse connections now."""
        reason = refusal(self._servers)
        return None if reason is None else self._unreachable(reason)

    def watch(self) -> None:
        """Finds out in the background whether it refuses connections: who asks it next need not wait to know."""

        def look() -> None:
            until = self._clock() + REFUSED_FOR - CHECK_EVERY
            while refusal(self._servers) is not None:
                if self._clock() >= until:
                    self._silent = True
                    return
                time.sleep(CHECK_EVERY)

        begun(look, f"refuses {self._alias}")

    def answer(self, request: Callable[[], A], login: Callable[[], LockstepError | None] = let_in) -> A:
        """What a request comes to, which any broker of the cluster can answer. `login`: the last refusal of one.

        Raises what it raises, and ClusterUnreachable once all addresses have refused connections for REFUSED_FOR, or
        what `login` returns for so long; where the cluster gave no answer the last time, as soon as none of the
        addresses can be connected to, and at once for JUST_NOW after `gave_up`.
        """
        if self._gave_up is not None and self._clock() - self._gave_up[0] < JUST_NOW:
            raise ClusterUnreachable(self._gave_up[1])
        if self._silent and (reason := trouble(self._servers, CONNECTS_WITHIN)) is not None:
            raise self._unreachable(reason)
        self._silent = True
        answer = self._unless_refused(begun(request, f"request {self._alias}"), login)
        self._silent = False
        return answer

    def _unless_refused(self, answer: Future[A], login: Callable[[], LockstepError | None]) -> A:
        refused_since: float | None = None
        wait = PATIENCE
        while True:
            try:
                return answer.result(wait)
            except StillWaiting:
                if answer.done():
                    raise
            error, now, wait = self.refused() or login(), self._clock(), CHECK_EVERY
            if error is None:
                refused_since = None
            elif refused_since is None:
                refused_since = now
                self._watch_others()
            elif now - refused_since >= REFUSED_FOR:
                raise error

    def _watch_others(self) -> None:
        """Where one cluster is down the other often is as well: both are found out in the time of one."""
        for other in list(_KNOWN.values()):
            if other is not self and not other._silent:
                other.watch()

    def _unreachable(self, reason: str) -> ClusterUnreachable:
        return ClusterUnreachable(f"cluster {self._alias}: {reason}; {where_it_is(self._alias)}")


def check_reachable(alias: str, properties: Mapping[str, str]) -> None:
    """For clients that are slow to find it out. Raises ClusterUnreachable where no address can be connected to."""
    servers = properties.get("bootstrap.servers", "")
    within = request_timeout(alias, properties) / max(1, len(addresses(servers)))
    if (reason := trouble(servers, within)) is not None:
        raise ClusterUnreachable(f"cluster {alias}: {reason}; {where_it_is(alias)}")


_KNOWN: dict[tuple[str, str], Reachability] = {}


def reachability(alias: str, properties: Mapping[str, str]) -> Reachability:
    """That of the cluster of these client properties: one for all clients of this process."""
    servers = properties.get("bootstrap.servers", "")
    return _KNOWN.setdefault((alias, servers), Reachability(alias, servers))
