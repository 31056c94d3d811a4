"""Finds out who listens at the job's address: whose process it is, and which flows another job of Lockstep leads.

While no job runs, any user of the machine can take its port. Linux shows the owner of a socket. So Lockstep sends the
token only to processes of this user, of root and of the job's own user. Other systems do not show the owner.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from socket import SOCK_STREAM, getaddrinfo
from typing import Any

import httpx

from app.addresses import base_url, reached_at
from app.http.protection import HEALTH
from streaming.errors import LockstepError

NEIGHBOUR_ANSWERS_WITHIN = 3.0
"""Seconds after which a silent program does not count as a job of Lockstep."""


LISTENS, CONNECTED = "0A", "01"
"""`TCP_LISTEN` and `TCP_ESTABLISHED` in Linux's tables."""

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""Linux's tables of all sockets of this machine. Other systems have none."""

Address = IPv4Address | IPv6Address


def sockets(table: str, state: str) -> Iterator[tuple[tuple[Address, int], tuple[Address, int], int]]:
    """Yields own end, other end and user id of each socket in this state. `table`: text of one of TABLES."""
    for row in (line.split() for line in table.splitlines()[1:]):
        if row[3] == state:
            yield _end(row[1]), _end(row[2]), int(row[7])


def _end(text: str) -> tuple[Address, int]:
    """Returns address and port of one end of a socket. An IPv4 address mapped into IPv6 becomes IPv4."""
    address, _, port = text.partition(":")
    words = [bytes.fromhex(address[start : start + 8])[::-1] for start in range(0, len(address), 8)]
    return _plain(ip_address(b"".join(words))), int(port, 16)


def _plain(address: Address) -> Address:
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def listeners(table: str, port: int) -> Iterator[tuple[Address, int]]:
    """Yields address and user id of each socket in the table that listens at this port."""
    for (address, at), _, uid in sockets(table, LISTENS):
        if at == port:
            yield address, uid


def users_at(host: str, port: int) -> frozenset[int]:
    """Returns the user ids of the processes that listen there. Raises OSError, ValueError if they cannot be found
    out."""
    addresses = {ip_address(str(found[4][0])) for found in getaddrinfo(host.strip("[]"), port, type=SOCK_STREAM)}
    found = [one for table in TABLES for one in listeners(table.read_text(), port)]
    exact = [uid for address, uid in found if address in addresses]
    return frozenset(exact or [uid for address, uid in found if address.is_unspecified])


def strangers(host: str, port: int, state: Path | None = None) -> frozenset[int]:
    """Returns the user ids of processes that listen there and must not get the token; empty on another machine.

    `state`: a folder of the job. Its owner is the job's user.
    """
    try:
        return users_at(host, port) - trusted_users(state)
    except (OSError, ValueError):
        return frozenset()


def trusted_users(state: Path | None) -> frozenset[int]:
    """Returns the user ids that may get the token: this user, root, and the owner of the job's folder.

    A relative folder does not count: it depends on where the command runs. A folder within one that other users may
    write does not count either, because any of them could have created it.
    """
    owner = {state.stat().st_uid} if state is not None and state.exists() and _is_safe(state) else set()
    return frozenset({0, os.geteuid()} | owner)


def _is_safe(state: Path) -> bool:
    above = {*state.parents, *state.resolve().parents}
    return state.is_absolute() and not any(folder.stat().st_mode & 0o022 for folder in above)


def _is_of_stranger(answer: httpx.Response, state: Path | None) -> bool:
    """Returns whether a stranger's process has the other end of this connection: the listener may have changed
    since."""
    stream = answer.extensions["network_stream"]
    try:
        ours, theirs = (
            (_plain(ip_address(found[0])), found[1])
            for found in (stream.get_extra_info(end) for end in ("client_addr", "server_addr"))
        )
        rows = [row for table in TABLES for row in sockets(table.read_text(), CONNECTED)]
        users = {uid for own, other, uid in rows if (own, other) == (theirs, ours)}
        return bool((users or users_at(str(theirs[0]), theirs[1])) - trusted_users(state))
    except (OSError, ValueError, TypeError):
        return False


def refuse_beside_another_job(host: str, port: int, token: str | None) -> None:
    """Raises LockstepError if a job of Lockstep answers there, with the flows that it leads."""
    reached = reached_at(host)
    known = bool(port) and not strangers(reached, port)
    flows = _flows_at(base_url(reached, port), token) if known else None
    if flows is not None:
        leads = "; ".join(_led(flows)) or "it leads no flow now"
        raise LockstepError(
            f"lockstep.http.host={host}, lockstep.http.port={port}: a job of Lockstep's answers there already: "
            f"{leads}. End that one first. A standby job on the same machine needs a properties file of its own, "
            "with lockstep.http.port=0"
        )


def _flows_at(address: str, token: str | None) -> list[Mapping[str, Any]] | None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        # No proxy of the environment's: the token is for the job alone.
        with httpx.Client(trust_env=False, timeout=NEIGHBOUR_ANSWERS_WITHIN) as client:
            if not is_job(client, address):
                return None
            flows = client.get(f"{address}/status", headers=headers).raise_for_status().json()["flows"]
        return [flow for flow in flows if flow["source"] and flow["target"]]
    except (httpx.HTTPError, ValueError, TypeError, KeyError):
        return None


def is_job(client: httpx.Client, address: str, state: Path | None = None) -> bool:
    """Returns whether the server there says, without a token, that it is a job, and is not a stranger's. `state`: as
    `strangers`.

    The client keeps the connection for the next request. Raises httpx.HTTPError.
    """
    try:
        with client.stream("GET", f"{address}{HEALTH}") as answer:
            is_strangers = _is_of_stranger(answer, state)
            answer.read()
        return not is_strangers and "status" in answer.json()
    except (ValueError, TypeError):
        return False


def _led(flows: list[Mapping[str, Any]]) -> Iterator[str]:
    for flow in flows:
        if leader := flow.get("leader"):
            name = f"{flow['source']}->{flow['target']}"
            yield f"{leader['client']} on {leader['host']} leads {name} since {leader['since']}"
