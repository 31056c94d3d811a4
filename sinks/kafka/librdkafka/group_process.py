"""Requests about groups in a process of their own, because librdkafka does not outlive a coordinator that goes away.

Every version of librdkafka so far ends the whole process when a request timed out while its coordinator was not to be
found, and the coordinator is found later (`rd_kafka_enq_once_del_source_return: Assertion 'eonce->refcnt > 0' failed`;
librdkafka issues 3663 and 4605, pull request 5397), and when a broker answers OffsetFetch with NOT_COORDINATOR (issue
5040). To end the client in time is no way out: that can fail the same assertion. `python -m bench.client_restart` shows
the first. So these requests leave from a process that may go down alone, and that is ended without ceremony after a
request that was not answered; the next request starts another.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from signal import Signals
from typing import Any

from sinks.faults import ClusterUnreachable, CoordinatorUnavailable
from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.group_program import STARTED, Call, CallAnswer, Setup
from sinks.kafka.ports.permitted import ask_again
from sinks.kafka.request_timeout import longest_write

GRACE = 30.0
"""Seconds that a start, and that an answer to who reads beyond its requests' time may take: half a second if idle."""

GROUP_PROCESS_ENDS_WITHIN = 5.0
"""Seconds; without ceremony after them."""

STARTS, WITHIN = 4, 10.0
"""Processes that may be started in so many seconds, for a cluster that is silent or a client that goes down."""

READ_ONLY = frozenset({"names", "committed", "members", "allowed"})
"""What may be asked once more where the process went down over it."""

START = "import sys; sys.path[:] = filter(None, sys.path); from {module} import main; main(int(sys.argv[1]))"
"""Modules come from where they do in this program, never from the folder that it happens to be started in."""


class GroupProcess:
    """The process for one cluster; started by the first call. It may be used by several threads, which take turns."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._started: list[float] = []

    @property
    def pid(self) -> int | None:
        """Of the process; None while there is none."""
        return self._running.pid if self._running is not None else None

    def call(self, method: str, *arguments: Any) -> Any:
        """What a method of GroupRequests returns. Raises what it raises; CoordinatorUnavailable, RightsMissing."""
        with self._lock:
            try:
                return self._call(method, arguments)
            except _Down:
                if method not in READ_ONLY:
                    raise
                return self._call(method, arguments)

    def close(self) -> None:
        """Ends the process."""
        with self._lock:
            self._discard()

    def _call(self, method: str, arguments: tuple[Any, ...]) -> Any:
        answer = self._answer(Call(method, arguments))
        for request in answer.counted:
            self._admin.count(*request)
        if answer.last:
            self._discard()
        if isinstance(answer.error, ClusterUnreachable):
            raise CoordinatorUnavailable(str(answer.error))
        if answer.error is not None:
            raise answer.error
        return answer.value

    def _answer(self, call: Call) -> CallAnswer:
        alias, reads = self._admin.alias, call.method in READ_ONLY
        limit = 2 * self._admin.timeout + GRACE if reads else longest_write(alias, self._admin.properties)
        try:
            running = self._running = self._running or self._new()
            if running.started():
                if not reads:
                    # It may have waited for others, and for the start.
                    ask_again()
                running.connection.send(call)
                if running.connection.poll(limit):
                    answer: CallAnswer = running.connection.recv()
                    return answer
        except (EOFError, OSError) as error:
            raise _Down(f"cluster {alias}: {call.method} of groups: the client's process {self._discard()}") from error
        self._discard()
        raise CoordinatorUnavailable(f"cluster {alias}: {call.method} of groups: no answer within {limit:g} s")

    def _new(self) -> _Running:
        now = time.monotonic()
        self._started = [moment for moment in self._started if now - moment < WITHIN]
        if len(self._started) >= STARTS:
            raise CoordinatorUnavailable(
                f"cluster {self._admin.alias}: its client for groups was started {STARTS} times within {WITHIN:g} s"
            )
        self._started.append(now)
        return _Running(Setup(self._admin.alias, self._admin.properties))

    def _discard(self) -> str:
        """How it ended."""
        running, self._running = self._running, None
        return running.end() if running is not None else "is not there"


class _Down(CoordinatorUnavailable):
    """The process went down over a call."""


class _Running:
    """A process that runs, and the connection to it. It ends with this program, however that ends."""

    def __init__(self, setup: Setup) -> None:
        ours, theirs = socket.socketpair()
        module = Setup.__module__
        try:
            with theirs:
                process = subprocess.Popen(
                    [sys.executable, "-c", START.format(module=module), str(theirs.fileno())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(_absolute(sys.path))},
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,  # a terminal's Ctrl-C is for who asks
                )
        except BaseException:
            ours.close()
            raise
        self.pid = process.pid
        self.connection = Connection(ours.detach())
        self._end = weakref.finalize(self, _end, self.connection, process)
        self._started = False
        self.connection.send(setup)

    def started(self) -> bool:
        """Whether it is ready for a call, within GRACE. Raises EOFError, OSError where it is gone."""
        if not self._started and self.connection.poll(GRACE):
            self._started = self.connection.recv() == STARTED
        return self._started

    def end(self) -> str:
        return self._end() or "ended"


def _end(connection: Connection, process: subprocess.Popen[bytes]) -> str:
    """Says how it ended by itself, if it did."""
    connection.close()
    if process.stdin is not None:
        process.stdin.close()
    try:
        code = process.wait(GROUP_PROCESS_ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    return f"was ended by {Signals(-code).name}" if code < 0 else f"ended with {code}"


def _absolute(path: Iterable[str]) -> list[str]:
    return [str(Path(entry).resolve()) for entry in path]
