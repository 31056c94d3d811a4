"""The operations of `/api/v1`: one table, from which the routes and the OpenAPI document are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sinks.kinds.offsets.verdicts import Verdict
from sinks.model.changes import Kind

API_BASE = "/api/v1"

LIMIT, MOST = 50, 500
"""Rows of a page by default, and at most."""

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
MAYBE_TEXT: Schema = {"type": ["string", "null"]}
NUMBER: Schema = {"type": "number"}
MAYBE_NUMBER: Schema = {"type": ["number", "null"]}
COUNT: Schema = {"type": "integer", "minimum": 0}
MAYBE_COUNT: Schema = {"type": ["integer", "null"], "minimum": 0}
ANY: Schema = {}


def _object(**fields: Schema) -> Schema:
    return {"type": "object", "required": list(fields), "properties": fields}


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _page(row: Schema) -> Schema:
    values = {"type": "object", "additionalProperties": COUNT}
    return _object(total=COUNT, found=COUNT, offset=COUNT, limit=COUNT, values=values, rows=_list(row))


def _nullable(description: str, **fields: Schema) -> Schema:
    """Returns the schema of an object or null. Without `fields` its shape is open."""
    properties = {"properties": fields} if fields else {}
    return {"type": ["object", "null"], "description": description, **properties}


BOOLEAN: Schema = {"type": "boolean"}
MAYBE_BOOLEAN: Schema = {"type": ["boolean", "null"]}
FINDING = _object(about=TEXT, reason=TEXT, remedy=TEXT, blocks=BOOLEAN, blocks_failover=BOOLEAN)
ANSWER = {"enum": ["yes", "no", "unknown", "done"]}
READINESS = {
    **_object(
        answer=ANSWER,
        headline=TEXT,
        since=MAYBE_TEXT,
        failover=_object(answer=ANSWER, headline=TEXT, since=MAYBE_TEXT),
        findings=_list(FINDING),
    ),
    "description": "Two questions. answer, headline: could the flow be cut over now, without loss? failover: could the "
    "target take over without the source, and what would that lose? done: it has taken over.",
}
PREFLIGHT_SCHEMA = _nullable(
    "Result of the last preflight, null if none was made. Lists only checks with a problem.",
    ready=MAYBE_BOOLEAN,
    checked=TEXT,
    check_seconds=NUMBER,
    records_at_risk=MAYBE_NUMBER,
    exact=BOOLEAN,
    seconds_at_risk=MAYBE_NUMBER,
    read_twice=COUNT,
    not_well=_list(_object(name=TEXT, result=TEXT, figure=TEXT, limit=TEXT, remedy=TEXT)),
    trouble=MAYBE_TEXT,
    failover_loss=_nullable(
        "What a failover loses, even if the source does not answer; null: not determined.",
        records=MAYBE_NUMBER,
        exact=BOOLEAN,
        source_seen=MAYBE_TEXT,
        partitions_not_known=COUNT,
    ),
)
FILE = _nullable(
    "Whether the job uses its current properties file. If there are mistakes, the job rejected the file and keeps its "
    "earlier settings.",
    rejected_since=MAYBE_TEXT,
    mistakes=_list(TEXT),
    needs_restart=_list(TEXT),
)
FAILOVER_SCHEMA = {
    "type": "object",
    "properties": {
        "state": {**MAYBE_TEXT, "description": "null: not known, for `reason`; then who, why, at and doing are null."},
        **dict.fromkeys(("reason", "doing", "who", "why", "at"), MAYBE_TEXT),
        "remedy": {**MAYBE_TEXT, "description": "What to do about an unfinished command; null: there is none."},
        "preflight": PREFLIGHT_SCHEMA,
        "not_checked": _nullable(
            "Why it is unknown now whether the flow could fail over; null: it is known.",
            reason=TEXT,
            since=MAYBE_TEXT,
        ),
        "last_drill": _nullable("The document of `lockstep drill`, with who and at."),
        "lost_before_copying": {
            "description": "Most records that were lost before MM2 copied them, by retention or with a log's tail; "
            "null: the ledger cannot be read.",
            **_object(
                records=MAYBE_COUNT,
                topics=_list(_object(topic=TEXT, records=COUNT, partitions_not_known=COUNT, since=TEXT)),
            ),
        },
    },
}
STATUS = {
    "type": "object",
    "description": "A flow of `lockstep status -o json`, with whether its target could take over now.",
    "required": ["name", "source", "target", "state", "kinds", "readiness"],
    "properties": {
        **dict.fromkeys(("name", "source", "target", "state"), TEXT),
        "reason": MAYBE_TEXT,
        "error": _nullable("Of a flow in ERROR: code, message, remedy."),
        "leader": _nullable("Who leads the flow: client, host, since, here."),
        "failover": FAILOVER_SCHEMA,
        "heartbeat_age_seconds": MAYBE_NUMBER,
        "replication_latency_ms": MAYBE_NUMBER,
        "kinds": {"type": "object"},
        "verify": _nullable("The result of comparing the records, if the job does."),
        "readiness": READINESS,
        "topics": COUNT,
        "verdicts": {"type": "object", "additionalProperties": COUNT},
    },
}
CHANGE = _object(
    at=TEXT, kind=TEXT, op=TEXT, key={"type": "object"}, before=ANY, after=ANY, result=TEXT, error=MAYBE_TEXT
)
REFUSED_CHANGE = _object(kind=TEXT, op=TEXT, key={"type": "object"}, reason=TEXT, remedy=TEXT)
OFFSET = _object(
    group=TEXT,
    topic=TEXT,
    partition=COUNT,
    upstream_offset=MAYBE_NUMBER,
    downstream_offset=MAYBE_NUMBER,
    method=MAYBE_TEXT,
    error_bound=MAYBE_NUMBER,
    verdict=TEXT,
    reason=TEXT,
)
SAMPLE = _object(
    at=TEXT,
    heartbeat_age_seconds=MAYBE_NUMBER,
    latency_seconds=MAYBE_NUMBER,
    passes=COUNT,
    slowest_pass_seconds=MAYBE_NUMBER,
)


@dataclass(frozen=True, slots=True)
class Operation:
    """A GET below `API_BASE`. `method`: name of the method of `Api` that answers. `filter`: the parameter that filters
    the list, and its values. `paged`: it has `search`, `offset` and `limit`."""

    path: str
    method: str
    summary: str
    answer: Schema
    paged: bool = False
    filter: tuple[str, Sequence[str]] | None = None

    @property
    def of_flow(self) -> bool:
        return "{flow}" in self.path


def _list_of_flow(method: str, summary: str, row: Schema, filter: tuple[str, Sequence[str]] | None = None) -> Operation:
    return Operation(f"/flows/{{flow}}/{method}", method, summary, _page(row), True, filter)


KINDS = tuple(kind.value for kind in Kind)
VERDICTS = tuple(verdict.value for verdict in Verdict)
EVERY_FLOW = _object(version=TEXT, now=TEXT, spark_ui=MAYBE_TEXT, file=FILE, flows=_list(STATUS))

OPERATIONS: Sequence[Operation] = (
    Operation("/openapi.json", "openapi", "the description of this API, as OpenAPI 3.1", {"type": "object"}),
    Operation("/flows", "flows", "every flow: state, kinds, and whether its target could take over now", EVERY_FLOW),
    Operation("/flows/{flow}", "flow", "one flow", STATUS),
    Operation(
        "/flows/{flow}/history", "history", "the last hour, a point every ten seconds", _object(samples=_list(SAMPLE))
    ),
    _list_of_flow("changes", "what the job changed, the newest first", CHANGE, ("kind", KINDS)),
    _list_of_flow("refused", "refused changes, and what to do", REFUSED_CHANGE, ("kind", KINDS)),
    _list_of_flow("offsets", "where each group would continue, by partition", OFFSET, ("verdict", VERDICTS)),
    _list_of_flow("topics", "the replicated topics", _object(upstream=TEXT, remote=TEXT)),
)


def document(version: str) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {"title": "Lockstep", "version": version, "description": "State of a running job. Reads only."},
        "servers": [{"url": API_BASE}],
        "paths": {operation.path: {"get": _described(operation)} for operation in OPERATIONS},
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "password": {"type": "http", "scheme": "basic"},
            }
        },
        "security": [{"token": []}, {"password": []}, {}],
    }


def _described(operation: Operation) -> dict[str, Any]:
    answers: dict[str, Any] = {"200": _answer("as asked for", operation.answer)}
    error = _object(error=TEXT)
    if operation.of_flow:
        answers["404"] = _answer("no such flow in this job", error)
    if operation.paged:
        answers["400"] = _answer("a parameter that is not allowed", error)
    return {
        "operationId": operation.method,
        "summary": operation.summary,
        "parameters": list(_parameters(operation)),
        "responses": answers,
    }


def _answer(description: str, schema: Schema) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _parameters(operation: Operation) -> Sequence[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if operation.of_flow:
        found.append({"name": "flow", "in": "path", "required": True, "schema": TEXT, "example": "a->b"})
    if operation.filter is not None:
        name, values = operation.filter
        found.append({"name": name, "in": "query", "schema": {"enum": list(values)}})
    if operation.paged:
        found.append({"name": "search", "in": "query", "schema": TEXT, "description": "text that a row must contain"})
        found.append({"name": "offset", "in": "query", "schema": {**COUNT, "default": 0}})
        found.append({"name": "limit", "in": "query", "schema": {**COUNT, "default": LIMIT, "maximum": MOST}})
    return found
