"""The job's HTTP server.

| path           |                                                        |
|----------------|--------------------------------------------------------|
| `/`            | the page, for people                                   |
| `/api/v1/…`    | the page's data, as JSON: `app.http.openapi`           |
| `/status`      | the document of `lockstep status`                      |
| `/metrics`     | Prometheus' text format                                |
| `/health`      | 200 while the job's main loop turns                    |
| `/ready`       | 200 if every flow was compared and none is stopped     |
| `POST /look`   | asks for a pass now                                    |
| `POST /reload` | reads the properties file and the flows' ledgers again |

`app.http.protection` decides which requests are answered.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any, Protocol, TypeVar

import anyio
import anyio.to_thread
import orjson
import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.addresses import base_url
from app.http.neighbour import refuse_beside_another_job
from app.http.openapi import API_BASE, LIMIT, MOST, OPERATIONS, document
from app.http.page import page_routes
from app.http.page_history import FlowHistory
from app.http.protection import HEALTH, READY, Protection, RequestRules, as_json
from app.reloading import Reloading
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.engine.status import FlowState, Task
from sinks.model.times import utc_now, utc_text
from streaming.errors import LockstepError
from streaming.flow import Flow

T = TypeVar("T")

RELOAD_WITHIN = 90.0
"""Seconds that a request may wait for a reload: a query that restarts lets its batch end first."""

MAX_BODY = 1024 * 1024
"""Size limit of a request's body, in bytes."""

BODY_WITHIN = 10.0
"""Seconds in which a request's body must arrive."""

MAX_WAITERS = 8
"""Requests that may wait at once, each in a thread. The next one is refused."""

MAX_CONNECTIONS = 100


async def _read(request: Request) -> bytes:
    """Returns the request's body. Raises HTTPException if it is too large or too slow."""
    content = bytearray()
    try:
        with anyio.fail_after(BODY_WITHIN):
            async for chunk in request.stream():
                content += chunk
                if len(content) > MAX_BODY:
                    raise HTTPException(413, f"a body may have at most {MAX_BODY} bytes")
    except TimeoutError:
        raise HTTPException(408, f"the body did not arrive within {BODY_WITHIN:g} s") from None
    except ClientDisconnect:
        # Without this the log would get a traceback each time.
        raise HTTPException(408, "the connection ended before the body came") from None
    return bytes(content)


async def _said(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    response = as_json({"error": error.detail}, error.status_code)
    response.headers.update(error.headers or {})
    return response


class Pulse(Protocol):
    """The job's own health. The server's thread asks for it."""

    def is_alive(self) -> bool:
        """Returns whether the job's main loop turned lately."""

    def streams(self) -> bool:
        """Returns True unless one of the job's queries is stalled."""

    def checks(self) -> bool:
        """Returns True unless one of the job's preflights hangs."""


class Api:
    """The answers of the running job to HTTP requests.

    `histories`: recent changes and samples by flow. `spark_ui`: the address of Spark's own page, if it has one.
    """

    def __init__(
        self,
        tasks: Mapping[Flow, FlowTask],
        metrics: Metrics,
        reloading: Reloading,
        *,
        histories: Mapping[Flow, FlowHistory],
        spark_ui: str | None,
        pulse: Pulse,
    ) -> None:
        self._tasks, self._metrics, self._reloading = tasks, metrics, reloading
        self._histories, self._spark_ui, self._pulse = histories, spark_ui, pulse
        self._waiters = 0

    def application(self, rules: RequestRules) -> Starlette:
        return Starlette(
            middleware=[Middleware(Protection, rules=rules)],
            exception_handlers={HTTPException: _said},
            routes=[
                *page_routes(),
                *(Route(API_BASE + operation.path, getattr(self, operation.method)) for operation in OPERATIONS),
                Route(HEALTH, self.health),
                Route(READY, self.ready),
                Route("/metrics", self.metrics),
                Route("/status", self.status),
                Route("/look", self.look, methods=["POST"]),
                Route("/reload", self.reload, methods=["POST"]),
            ],
        )

    async def health(self, _: Request) -> Response:
        """Answers 200 while the job's main loop turns, else 503: then a supervisor should restart the process.

        A hanging preflight is mentioned but needs no restart: passes continue, and its answers are UNKNOWN.
        """
        alive, checks = self._pulse.is_alive(), self._pulse.checks()
        document = {"status": "up" if alive else "hangs", "preflights": "up" if checks else "hang"}
        return as_json(document, 200 if alive else 503)

    async def ready(self, _: Request) -> Response:
        """Answers 200 once every flow had a pass, unless one is stopped or on standby or a query is stalled. Else 503.

        `/status` tells the reason.
        """
        stopped = any(task.stands_by or task.status().state is FlowState.ERROR for task in self._tasks.values())
        ready = not stopped and self._pulse.streams() and all(history.passes for history in self._histories.values())
        return as_json({"ready": ready}, 200 if ready else 503)

    async def metrics(self, _: Request) -> Response:
        """Answers with the metrics in Prometheus' text format, after an update of the flows' states."""
        for task in self._tasks.values():
            self._metrics.status(task.status())
        return Response(generate_latest(self._metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def status(self, _: Request) -> Response:
        """Answers with the document of `lockstep status`."""
        for task in self._tasks.values():
            task.note_watched()
        flows = [task.status().as_json() for _, task in sorted(self._tasks.items())]
        return as_json({"flows": flows, "file": self._reloading.file.as_json()})

    async def look(self, request: Request) -> Response:
        """Asks for a pass. Body: `{"topics": [...], "flows": ["a->b"], "wait_seconds": 10}`, all optional; no topics:
        all."""
        try:
            body = LookBody.parse(await _read(request))
        except ValueError as error:
            return as_json({"error": f"the body is wrong: {error}"}, 400)
        if unknown := body.flows - set(self._tasks):
            return as_json(
                {"error": f"this job has no such flow: {', '.join(sorted(flow.name for flow in unknown))}"}, 404
            )
        looked = {}
        with self._waiter():
            for flow in sorted(body.flows or set(self._tasks)):
                looked[flow.name] = await anyio.to_thread.run_sync(
                    self._tasks[flow].request_pass, body.topics, body.wait
                )
        return as_json({"looked": looked, **self._left_over(looked)})

    def _left_over(self, flows: Collection[str]) -> dict[str, Any]:
        """Returns by flow what a pass left out of step: paused kinds, drift by kind, kinds not compared, its error."""
        found = {flow.name: task.status() for flow, task in self._tasks.items() if flow.name in flows}
        kinds = {name: status.kinds.items() for name, status in found.items()}
        paused = {name: [kind.value for kind, one in rows if one.task is Task.PAUSED] for name, rows in kinds.items()}
        drift = {name: {kind.value: one.drift for kind, one in rows if one.drift} for name, rows in kinds.items()}
        unseen = {name: {k.value: one.reason for k, one in rows if one.is_uncompared} for name, rows in kinds.items()}
        stopped = {name: status.reason for name, status in found.items() if status.state is FlowState.ERROR}
        return {
            "paused": {name: rows for name, rows in paused.items() if rows},
            "drift": {name: rows for name, rows in drift.items() if rows},
            "not_compared": {name: rows for name, rows in unseen.items() if rows},
            "stopped": stopped,
        }

    @contextmanager
    def _waiter(self) -> Iterator[None]:
        """Counts a waiting request. Raises HTTPException if too many wait. The server's thread alone calls it."""
        if self._waiters >= MAX_WAITERS:
            raise HTTPException(503, f"{MAX_WAITERS} requests wait already: try again later", {"Retry-After": "5"})
        self._waiters += 1
        try:
            yield
        finally:
            self._waiters -= 1

    async def reload(self, request: Request) -> Response:
        """Reads the properties file again. Answers 409 with the mistakes if it has some. Ignores the body."""
        await _read(request)
        with self._waiter():
            reloaded = await anyio.to_thread.run_sync(self._reloading.ask, RELOAD_WITHIN)
        if reloaded is None:
            return as_json({"error": f"the reload took longer than {RELOAD_WITHIN:g} s"}, 503)
        return as_json(reloaded.as_json(), 200 if reloaded.error is None else 409)

    # `/api/v1`: what the page shows, as JSON. Each method answers the operation of its name in `app.http.openapi`.

    @cached_property
    def _version(self) -> str:
        return version("lockstep-kafka")

    async def openapi(self, _: Request) -> Response:
        return as_json(document(self._version))

    async def flows(self, _: Request) -> Response:
        found = [self._flow(flow) for flow in sorted(self._tasks)]
        about = {"version": self._version, "now": utc_text(utc_now()), "spark_ui": self._spark_ui}
        return as_json({**about, "file": self._reloading.file.as_json(), "flows": found})

    async def flow(self, request: Request) -> Response:
        return as_json(self._flow(self._named(request)))

    def _flow(self, flow: Flow) -> dict[str, Any]:
        self._tasks[flow].note_watched()
        status, history = self._tasks[flow].status(), self._histories[flow]
        return {
            "name": flow.name,
            **status.as_json(),
            "readiness": status.readiness().as_json(),
            "topics": len(history.remote()),
            "verdicts": status.groups.verdicts if status.groups else {},
        }

    def _named(self, request: Request) -> Flow:
        """Returns the flow in the path. Raises HTTPException if this job has no such flow."""
        try:
            flow = Flow.parse(request.path_params["flow"])
        except (LockstepError, ValueError):
            raise HTTPException(404, 'flows are written as "a->b"') from None
        if flow not in self._tasks:
            raise HTTPException(404, f"this job has no such flow: {flow.name}")
        return flow

    def _query(self, request: Request, filter_name: str = "") -> tuple[Flow, PageQuery]:
        """Returns the flow, and which rows of it a request asks for. Raises HTTPException."""
        flow = self._named(request)
        try:
            return flow, PageQuery.parse(request.query_params, filter_name)
        except ValueError as error:
            raise HTTPException(400, str(error)) from None

    async def history(self, request: Request) -> Response:
        samples = self._histories[self._named(request)].samples()
        return as_json({"samples": [sample.as_json() for sample in samples]})

    async def changes(self, request: Request) -> Response:
        flow, query = self._query(request, "kind")
        rows = self._histories[flow].changes()
        return as_json(paged(query, rows, lambda row: row, texts=_texts_of_change, value=lambda row: str(row["kind"])))

    async def refused(self, request: Request) -> Response:
        flow, query = self._query(request, "kind")
        rows = [refusal for kind in self._tasks[flow].status().kinds.values() for refusal in kind.refused]
        return as_json(
            paged(
                query,
                rows,
                lambda row: row.as_json() | {"remedy": row.remedy},
                texts=lambda row: (row.label, row.reason),
                value=lambda row: row.kind.value,
            )
        )

    async def offsets(self, request: Request) -> Response:
        """Answers where each group would continue. Works in a thread, because there may be a hundred thousand rows."""
        flow, query = self._query(request, "verdict")
        return as_json(await anyio.to_thread.run_sync(self._offsets, flow, query))

    def _offsets(self, flow: Flow, query: PageQuery) -> dict[str, Any]:
        groups = self._tasks[flow].status().groups
        rows = sorted(groups.rows if groups else (), key=lambda row: (row.group, row.topic))
        return paged(
            query,
            rows,
            lambda row: row.as_json(),
            texts=lambda row: (row.group, row.topic),
            value=lambda row: row.verdict,
        )

    async def topics(self, request: Request) -> Response:
        flow, query = self._query(request)
        rows = sorted(self._histories[flow].remote().items())
        return as_json(paged(query, rows, lambda row: {"upstream": row[0], "remote": row[1]}, texts=lambda row: row))


def _texts_of_change(row: Mapping[str, Any]) -> list[str]:
    return [*map(str, row["key"].values()), str(row["before"]), str(row["after"]), row["result"], row["error"] or ""]


class Server:
    """Serves in a thread of its own. `port` 0 takes a free one; `address` is the bound one."""

    def __init__(self, api: Api, host: str, port: int, token: str | None = None) -> None:
        """`token`: what every request must carry. Raises LockstepError if the address cannot be bound."""
        config = uvicorn.Config(
            api.application(RequestRules(host, token)),
            host=host,
            port=port,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MAX_CONNECTIONS,
            http=PromptConnection,
        )
        self._server = uvicorn.Server(config)
        try:
            self._socket = config.bind_socket()
        except SystemExit as error:
            refuse_beside_another_job(host, port, token)
            raise LockstepError(
                f"lockstep.http.host={host}, lockstep.http.port={port}: another program uses this address, or this "
                "machine does not have it: choose a free address of this machine"
            ) from error
        self.address = base_url(host, self._socket.getsockname()[1])
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="http", daemon=True)

    def start(self) -> None:
        """Starts the thread and returns at once."""
        self._thread.start()

    @property
    def answered(self) -> int:
        """The number of requests so far."""
        return self._server.server_state.total_requests

    def stop(self) -> None:
        """Stops the server. Returns when its thread has ended, after 5 s at the latest."""
        self._server.should_exit = True
        self._thread.join(5)
        self._socket.close()


MAX_WAIT = 300.0
"""Seconds that a request may wait for a pass."""


@dataclass(frozen=True, slots=True)
class LookBody:
    """The body of `/look`. Empty `topics` or `flows` mean all. `wait`: seconds."""

    topics: tuple[str, ...] = ()
    flows: frozenset[Flow] = frozenset()
    wait: float = 0.0

    @classmethod
    def parse(cls, content: bytes) -> LookBody:
        """Returns the parsed body. Raises ValueError that says what is wrong."""
        try:
            body = orjson.loads(content or b"{}")
        except ValueError:
            raise ValueError("it is not JSON") from None
        if not isinstance(body, dict):
            raise ValueError("it is not an object")
        try:
            flows = frozenset(Flow.parse(name) for name in _words(body, "flows"))
        except LockstepError:
            raise ValueError('flows are written as "a->b"') from None
        wait = body.get("wait_seconds", 0)
        if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not (math.isfinite(wait) and wait >= 0):
            raise ValueError("wait_seconds must be a number of seconds, 0 or more")
        return cls(_words(body, "topics"), flows, float(min(wait, MAX_WAIT)))


def _words(body: Mapping[str, Any], name: str) -> tuple[str, ...]:
    words = body.get(name, [])
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{name} must be a list of names")
    return tuple(words)


# A list in pages: which rows a request asks for, and the document that answers it.


@dataclass(frozen=True, slots=True)
class PageQuery:
    """The rows that a request asks for. `search`: lower-case text that a row must contain. `only`: the value that the
    row's filter column must have; "" for any."""

    offset: int = 0
    limit: int = LIMIT
    search: str = ""
    only: str = ""

    @classmethod
    def parse(cls, parameters: Mapping[str, str], filter_name: str = "") -> PageQuery:
        """Parses the query parameters. `filter_name`: the parameter for `only`. Raises ValueError that says what is
        wrong."""
        return cls(
            _number(parameters, "offset", 0),
            min(MOST, _number(parameters, "limit", LIMIT)),
            parameters.get("search", "").strip().lower(),
            parameters.get(filter_name, ""),
        )


def _number(parameters: Mapping[str, str], name: str, default: int) -> int:
    text = parameters.get(name, str(default))
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise ValueError(f"{name} must be a number, 0 or more")
    return int(text)


def paged(
    query: PageQuery,
    rows: Sequence[T],
    shown: Callable[[T], Mapping[str, Any]],
    *,
    texts: Callable[[T], Sequence[str]],
    value: Callable[[T], str] = lambda row: "",
) -> dict[str, Any]:
    """Returns one page of the rows that match. `texts`: the strings of a row that the search looks in. `value`: the
    string of a row that the filter compares. `shown`: the document of a row; called only for the page.

    In the result: `total`: all rows; `found`: rows that match; `values`: how many rows that match the search have each
    value.
    """
    searched = [row for row in rows if not query.search or any(query.search in text.lower() for text in texts(row))]
    values: dict[str, int] = {}
    for row in searched:
        values[value(row)] = values.get(value(row), 0) + 1
    found = [row for row in searched if not query.only or value(row) == query.only]
    page = found[query.offset : query.offset + query.limit]
    return {
        "total": len(rows),
        "found": len(found),
        "offset": query.offset,
        "limit": query.limit,
        "values": dict(sorted(values.items())),
        "rows": [shown(row) for row in page],
    }


# A connection to the job's server that must not wait for ever for its next request.
#
# uvicorn has a time-out between two requests, but none before a request's first byte or within its head. A hundred
# silent connections would be all that `limit_concurrency` allows.


HEAD_WITHIN = 10.0
"""Seconds in which the whole head of a request must arrive."""


class PromptConnection(H11Protocol):
    """A connection that ends if the next request's head comes too late, or if it waits longest, also for a body, and
    others need room."""

    _timer: asyncio.TimerHandle | None = None
    _waits_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begins to wait for a request. If too many connections wait, closes the oldest of them."""
        super().connection_made(transport)
        self._wait()
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            waiting = [one for one in self.connections if isinstance(one, PromptConnection) and one._waits]
            min(waiting, key=lambda one: one._waits_since)._end()

    @property
    def _waits(self) -> bool:
        """Whether the head or the body of a request is still to come."""
        lacks_body = self.cycle is not None and self.cycle.more_body and not self.cycle.response_complete
        return self._timer is not None or lacks_body

    def data_received(self, data: bytes) -> None:
        """A request whose head is there has all its time; for its body `_read` waits."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._wait_no_more()

    def on_response_complete(self) -> None:
        """Waits for the next request, unless it has arrived already."""
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._wait_no_more()
        self._waits_since = self.loop.time()
        self._timer = self.loop.call_later(HEAD_WITHIN, self._end)

    def _wait_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._wait_no_more()
        self.transport.abort()
