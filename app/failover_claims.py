"""Which process is at a command of the failover: `user@host/place:pid`, and whether it may still run."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

from sinks.ledger.audit import process_identity

CLAIM = re.compile(r"(?P<who>.*)@(?P<host>[^@/]*?)(?:/(?P<place>[0-9a-f]+))?:(?P<pid>[1-9][0-9]*)", re.DOTALL)


def place_of_this_process() -> str:
    """Where its pid means it alone: the kernel since its start, and the pid namespace (Linux). "" where none is shown.

    Containers with the host's network have its name as well, and pids of their own.
    """
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = Path("/proc/self/ns/pid").readlink()
    except (OSError, UnicodeDecodeError):
        return ""
    return hashlib.blake2b(f"{booted} {namespace}".encode(), digest_size=4).hexdigest()


def claim_of_this_process() -> str:
    """`user@host/place:pid`; without a place `user@host:pid`, as earlier versions wrote it."""
    place = place_of_this_process()
    return f"{process_identity()}{f'/{place}' if place else ''}:{os.getpid()}"


def may_be_alive(claim: str) -> bool:
    """Whether the process of a claim may still run: one of this host and place is looked up, others may."""
    found = CLAIM.fullmatch(claim)
    if found is None or found["host"] != process_identity().rpartition("@")[2]:
        return True
    if found["place"] not in (None, place_of_this_process()):
        return True
    with suppress(PermissionError):
        try:
            os.kill(int(found["pid"]), 0)
        except (ProcessLookupError, OverflowError):
            return False
    return True
