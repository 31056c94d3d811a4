"""The job's own little server.

| path           |                                                        |
|----------------|--------------------------------------------------------|
| `/`            | the status page, for people                            |
| `/status`      | the same as JSON                                       |
| `/metrics`     | Prometheus' text format                                |
| `POST /look`   | look now                                               |
| `POST /reload` | read the properties file and the flows' ledgers again  |
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import anyio.to_thread
import orjson
import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from app.http.page import status_page
from app.job.reloading import Reloading
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from streaming.errors import LockstepError
from streaming.flow import Flow

MAX_WAIT = 300.0
"""Seconds that a request may wait for a look."""

RELOAD_WITHIN = 90.0
"""Seconds: a query that is restarted lets its batch end first."""


def _json(document: object, status: int = 200) -> Response:
    return Response(orjson.dumps(document), status, media_type="application/json")


class Api:
    """What the running job answers."""

    def __init__(self, tasks: Mapping[Flow, FlowTask], metrics: Metrics, reloading: Reloading | None = None) -> None:
        self._tasks, self._metrics, self._reloading = tasks, metrics, reloading

    def application(self) -> Starlette:
        """The routes."""
        return Starlette(
            routes=[
                Route("/", self.page),
                Route("/metrics", self.metrics),
                Route("/status", self.status),
                Route("/look", self.look, methods=["POST"]),
                Route("/reload", self.reload, methods=["POST"]),
            ]
        )

    async def page(self, _: Request) -> Response:
        """The status page."""
        return HTMLResponse(status_page(self._flows(), version("lockstep-kafka")))

    async def metrics(self, _: Request) -> Response:
        """Prometheus' text format."""
        return Response(generate_latest(self._metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def status(self, _: Request) -> Response:
        """The document of `lockstep status`."""
        return _json({"flows": self._flows()})

    def _flows(self) -> list[dict[str, Any]]:
        return [task.status().as_json() for _, task in sorted(self._tasks.items())]

    async def look(self, request: Request) -> Response:
        """Body: `{"topics": [...], "flows": ["a->b"], "wait_seconds": 10}`, all optional; no topics: all."""
        try:
            body = orjson.loads(await request.body() or b"{}")
            topics = [str(topic) for topic in body.get("topics", [])]
            wait = min(float(body.get("wait_seconds", 0)), MAX_WAIT)
            flows = {Flow.parse(name) for name in body.get("flows", [])} or set(self._tasks)
        except (ValueError, TypeError, AttributeError, LockstepError) as error:
            return _json({"error": f"the body is not understood: {error}"}, 400)
        if unknown := flows - set(self._tasks):
            return _json({"error": f"no such flow here: {', '.join(sorted(flow.name for flow in unknown))}"}, 404)
        looked = {}
        for flow in sorted(flows):
            looked[flow.name] = await anyio.to_thread.run_sync(self._tasks[flow].look, topics, wait)
        return _json({"looked": looked})

    async def reload(self, _: Request) -> Response:
        """Reads the properties file again; 409 with the mistakes where it has some."""
        if self._reloading is None:
            return _json({"error": "this job does not read its file again"}, 404)
        reloaded = await anyio.to_thread.run_sync(self._reloading.ask, RELOAD_WITHIN)
        if reloaded is None:
            return _json({"error": f"the file was not read within {RELOAD_WITHIN:g} s"}, 503)
        return _json(reloaded.as_json(), 200 if reloaded.error is None else 409)


class Server:
    """Serves in a thread of its own. `port` 0 takes a free one; `address` is what was bound."""

    def __init__(self, api: Api, host: str, port: int) -> None:
        config = uvicorn.Config(api.application(), host=host, port=port, log_level="warning", access_log=False)
        self._server = uvicorn.Server(config)
        self._socket = self._bind(config, host, port)
        self.address = f"http://{host}:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="http", daemon=True)

    @staticmethod
    def _bind(config: uvicorn.Config, host: str, port: int) -> socket.socket:
        try:
            return config.bind_socket()
        except SystemExit as error:
            raise LockstepError(
                f"lockstep.http.host={host}, lockstep.http.port={port}: this address is taken or not ours; name "
                "another port, or 0 for a free one"
            ) from error

    def start(self) -> None:
        """Returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Returns when the thread has ended, after 5 s at the latest."""
        self._server.should_exit = True
        self._thread.join(5)
        self._socket.close()
