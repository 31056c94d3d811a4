"""The program of the process that `group_process` starts: answers requests about groups until nobody asks any more."""

from __future__ import annotations

import os
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.group_requests import GroupRequests
from streaming.errors import LockstepError


class Setup(NamedTuple):
    """The first thing that the process is told. Not on its command line, as it holds secrets."""

    alias: str
    properties: dict[str, str]


class Call(NamedTuple):
    """A method of GroupRequests and its argument, if it takes one."""

    method: str
    arguments: tuple[Any, ...]


class CallAnswer(NamedTuple):
    """What came of a call, and each request that left as `CountRequest` has it.

    `last`: the client has a request that was not answered, and must not be used again.
    """

    value: Any
    error: LockstepError | None
    counted: list[tuple[str, str, str]]
    last: bool


STARTED = "started"
"""What it says first."""


def main(descriptor: int) -> None:
    """Serves on a connection that it was given open, until a `last` answer, or until its stdin is closed."""
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    connection = Connection(descriptor)
    last = False
    try:
        setup: Setup = connection.recv()
        counted: list[tuple[str, str, str]] = []
        admin = Admin(setup.alias, setup.properties, lambda *request: counted.append(request))
        requests = GroupRequests(admin)
        connection.send(STARTED)
        while not last:
            answer = _answer(requests, connection.recv(), admin, counted)
            last = answer.last
            connection.send(answer)
            counted.clear()
    except (EOFError, OSError):
        pass  # whoever asked is gone
    finally:
        # To destroy a client with an unanswered request ends in the same assertion as a late answer to it.
        os._exit(0)


def _end_with_stdin() -> None:
    # In the middle of a request, too: whoever asks may have been killed.
    sys.stdin.read()
    os._exit(0)


def _answer(requests: GroupRequests, call: Call, admin: Admin, counted: list[tuple[str, str, str]]) -> CallAnswer:
    value, stopped = None, None
    try:
        value = getattr(requests, call.method)(*call.arguments)
    except LockstepError as error:
        stopped = error
    except Exception as error:  # noqa: BLE001  what nobody thought of is told, not lost with the process
        stopped = LockstepError(f"cluster {admin.alias}: {call.method}: {type(error).__name__}: {error}")
    return CallAnswer(value, stopped, list(counted), admin.unanswered)
