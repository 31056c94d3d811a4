"""`/api/v1`: what the page shows, as JSON. Reads only; `app.http.openapi` has the table of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from importlib.metadata import version
from typing import Any

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.http.openapi import API_BASE, OPERATIONS, document
from app.http.page_history import FlowHistory
from app.http.paging import PageQuery, paged
from app.http.protection import as_json
from sinks.engine.flow_task import FlowTask
from sinks.engine.status import FlowStatus
from sinks.every_kind.comparison import GroupRow
from sinks.model.plan import Refusal
from sinks.model.times import utc_now, utc_text
from streaming.errors import LockstepError
from streaming.flow import Flow


class FlowApi:
    """Of one job. `histories`: of each of its flows. `spark_ui`: the address of Spark's own page, if it has one.

    `file`: says how the job stands to its properties file.
    """

    def __init__(
        self,
        tasks: Mapping[Flow, FlowTask],
        histories: Mapping[Flow, FlowHistory],
        spark_ui: str | None = None,
        file: Callable[[], dict[str, object] | None] = lambda: None,
    ) -> None:
        self._tasks, self._histories, self._spark_ui, self._file = tasks, histories, spark_ui, file

    def routes(self) -> list[Route]:
        """One for each operation of the table."""
        return [Route(API_BASE + operation.path, getattr(self, operation.method)) for operation in OPERATIONS]

    @cached_property
    def _version(self) -> str:
        return version("lockstep-kafka")

    async def openapi(self, _: Request) -> Response:
        """The description of all of this."""
        return as_json(document(self._version))

    async def flows(self, _: Request) -> Response:
        """Every flow."""
        found = [self._flow(flow) for flow in sorted(self._tasks)]
        about = {"version": self._version, "now": utc_text(utc_now()), "spark_ui": self._spark_ui}
        return as_json({**about, "file": self._file(), "flows": found})

    async def flow(self, request: Request) -> Response:
        """One flow."""
        return as_json(self._flow(self._named(request)))

    def _flow(self, flow: Flow) -> dict[str, Any]:
        self._tasks[flow].note_watched()
        status, history = self._tasks[flow].status(), self._histories[flow]
        verdicts = status.groups.verdicts if status.groups else {}
        return {
            "name": flow.name,
            **status.as_json(),
            "readiness": status.readiness().as_json(),
            "topics": len(history.remote()),
            "verdicts": verdicts,
        }

    def _named(self, request: Request) -> Flow:
        """Raises HTTPException where this job has no such flow."""
        try:
            flow = Flow.parse(request.path_params["flow"])
        except (LockstepError, ValueError):
            raise HTTPException(404, 'flows are written as "a->b"') from None
        if flow not in self._tasks:
            raise HTTPException(404, f"no such flow here: {flow.name}")
        return flow

    def _query(self, request: Request, filter_name: str = "") -> tuple[Flow, PageQuery]:
        """Raises HTTPException."""
        flow = self._named(request)
        try:
            return flow, PageQuery.parse(request.query_params, filter_name)
        except ValueError as error:
            raise HTTPException(400, str(error)) from None

    async def history(self, request: Request) -> Response:
        """The last hour."""
        samples = self._histories[self._named(request)].samples()
        return as_json({"samples": [sample.as_json() for sample in samples]})

    async def changes(self, request: Request) -> Response:
        """What the job changed."""
        flow, query = self._query(request, "kind")
        rows = self._histories[flow].changes()
        return as_json(paged(query, rows, lambda row: row, texts=_texts_of_change, value=lambda row: str(row["kind"])))

    async def refused(self, request: Request) -> Response:
        """What is not tried, and what to do."""
        flow, query = self._query(request, "kind")
        rows = _refusals(self._tasks[flow].status())
        return as_json(
            paged(
                query, rows, _with_remedy, texts=lambda row: (row.label, row.reason), value=lambda row: row.kind.value
            )
        )

    async def offsets(self, request: Request) -> Response:
        """Where each group would continue. In a thread: there may be a hundred thousand rows."""
        flow, query = self._query(request, "verdict")
        return as_json(await anyio.to_thread.run_sync(self._offsets, flow, query))

    def _offsets(self, flow: Flow, query: PageQuery) -> dict[str, Any]:
        groups = self._tasks[flow].status().groups
        rows = sorted(groups.rows if groups else (), key=lambda row: (row.group, row.topic))
        return paged(
            query, rows, _row_of_group, texts=lambda row: (row.group, row.topic), value=lambda row: row.verdict
        )

    async def topics(self, request: Request) -> Response:
        """What is replicated."""
        flow, query = self._query(request)
        rows = sorted(self._histories[flow].remote().items())
        return as_json(paged(query, rows, lambda row: {"upstream": row[0], "remote": row[1]}, texts=lambda row: row))


def _texts_of_change(row: Mapping[str, Any]) -> list[str]:
    return [*map(str, row["key"].values()), str(row["before"]), str(row["after"]), row["result"], row["error"] or ""]


def _refusals(status: FlowStatus) -> list[Refusal]:
    return [refusal for of_kind in status.kinds.values() for refusal in of_kind.refused]


def _with_remedy(refusal: Refusal) -> dict[str, Any]:
    return {**refusal.as_json(), "remedy": refusal.remedy}


def _row_of_group(row: GroupRow) -> dict[str, Any]:
    return row.as_json()
