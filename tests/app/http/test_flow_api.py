"""`/api/v1` and the probes, as a client finds them; the answers have the shape that OpenAPI promises."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from app.http.api import Server
from app.http.openapi import API_BASE, OPERATIONS
from app.http.page import PAGE_FOLDER, page_files
from app.local.jar_sets import PROJECT
from sinks.engine.report import Report
from sinks.faults import NotLeading
from sinks.model.plan import SEE_PLAN, Plan
from tests.app.http.flows_shown import (
    GROUPS,
    HOSTILE,
    TARGET_DOWN,
    TOPICS,
    TROUBLED,
    WELL,
    Shown,
    every_state,
    job_api,
    one_in_step,
)

TOKEN = "0123456789abcdef"


def served(shown: Shown, token: str | None = None) -> Iterator[httpx.Client]:
    server = Server(job_api(shown.tasks, shown.histories), "127.0.0.1", 0, token)
    server.start()
    try:
        with httpx.Client(base_url=server.address, trust_env=False, timeout=60) as found:
            yield found
    finally:
        server.stop()


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    yield from served(every_state())


def wrong(answer: Any, schema: Mapping[str, Any], at: str = "$") -> list[str]:
    """Where an answer is not as its schema says: types, required fields, no others where all are named."""
    if "enum" in schema:
        return [] if answer in schema["enum"] else [at]
    types = schema.get("type", [])
    names = {
        str: "string",
        int: "integer",
        float: "number",
        bool: "boolean",
        dict: "object",
        list: "array",
        type(None): "null",
    }
    allowed = {types} if isinstance(types, str) else set(types)
    found = names[type(answer)]
    if allowed and found not in allowed and not (found == "integer" and "number" in allowed):
        return [f"{at} is {found}"]
    if found == "array":
        return [fault for number, one in enumerate(answer) for fault in wrong(one, schema["items"], f"{at}[{number}]")]
    if found == "object":
        fields = schema.get("properties", {})
        missing = [f"{at}.{name} is missing" for name in schema.get("required", ()) if name not in answer]
        return missing + [
            fault for name in answer if name in fields for fault in wrong(answer[name], fields[name], f"{at}.{name}")
        ]
    return []


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.method)
def test_every_answer_has_the_shape_that_is_promised(client: httpx.Client, operation: Any) -> None:
    for flow in (WELL, TROUBLED, TARGET_DOWN):
        answer = client.get(API_BASE + operation.path.replace("{flow}", flow.name))
        assert answer.status_code == 200
        assert wrong(answer.json(), operation.answer) == []


def test_the_document_has_every_path_and_every_parameter_that_is_used(client: httpx.Client) -> None:
    paths = client.get(f"{API_BASE}/openapi.json").json()["paths"]
    assert set(paths) == {operation.path for operation in OPERATIONS}
    used = set(
        re.findall(
            r"\b(?:get|set|delete)\(\"(\w+)\"|data-parameter\": \"(\w+)\"|filter: \[\"(\w+)\"",
            "".join(file.read_text() for file in PAGE_FOLDER.glob("*.js")),
        )
    )
    named = {parameter["name"] for path in paths.values() for parameter in path["get"]["parameters"]}
    assert {name for names in used for name in names if name} <= named


def test_ten_thousand_groups_and_a_thousand_topics_come_in_pages(client: httpx.Client) -> None:
    groups = client.get(f"{API_BASE}/flows/{WELL.name}/offsets", params={"offset": 9_990}).json()
    assert (groups["total"], len(groups["rows"]), groups["rows"][-1]["group"]) == (GROUPS, 10, "billing-09999")
    lost = client.get(f"{API_BASE}/flows/{WELL.name}/offsets", params={"verdict": "TOO_OLD"}).json()
    assert [row["group"] for row in lost["rows"]] == [
        "billing-00007",
        "billing-02507",
        "billing-05007",
        "billing-07507",
    ]
    topics = client.get(f"{API_BASE}/flows/{WELL.name}/topics", params={"search": "0042"}).json()
    assert (topics["total"], topics["rows"]) == (TOPICS, [{"upstream": "orders-0042", "remote": "madrid.orders-0042"}])


def test_what_is_refused_comes_with_what_to_do(client: httpx.Client) -> None:
    rows = client.get(f"{API_BASE}/flows/{TROUBLED.name}/refused").json()["rows"]
    assert [row["remedy"].split(",")[0] for row in rows] == ["allow it in the target's policy", SEE_PLAN.split(",")[0]]


def test_a_flow_that_is_not_there_and_a_parameter_without_sense_are_said(client: httpx.Client) -> None:
    for name in ("no->where", "nothing", "a->a"):
        assert client.get(f"{API_BASE}/flows/{name}").status_code == 404
    refused = client.get(f"{API_BASE}/flows/{WELL.name}/topics", params={"offset": "-1"})
    assert (refused.status_code, refused.json()) == (400, {"error": "offset must be a number, 0 or more"})


def test_nothing_of_it_can_be_written(client: httpx.Client) -> None:
    for operation in OPERATIONS:
        assert client.post(API_BASE + operation.path.replace("{flow}", WELL.name), json={}).status_code == 405


def test_a_job_is_ready_once_every_flow_was_compared_and_none_is_stopped(client: httpx.Client) -> None:
    assert client.get("/ready").status_code == 503
    for ready in served(one_in_step()):
        assert (ready.get("/ready").status_code, ready.get("/ready").json()) == (200, {"ready": True})


def test_a_job_whose_flow_another_process_leads_now_is_not_ready() -> None:
    shown = one_in_step()
    shown.add(WELL, None, NotLeading("another on there leads madrid->oslo"))
    shown.histories[WELL].passed(Report(Plan(WELL)))
    for standby in served(shown):
        assert (standby.get("/ready").status_code, standby.get("/ready").json()) == (503, {"ready": False})


def test_probes_need_neither_token_nor_name_and_everything_else_needs_both() -> None:
    for closed in served(one_in_step(), TOKEN):
        for path in ("/health", "/ready"):
            assert closed.get(path, headers={"Host": "10.1.2.3:9464"}).status_code == 200
            assert closed.post(path).status_code in (401, 405)
        for path in (*page_files(), *(API_BASE + operation.path for operation in OPERATIONS)):
            assert closed.get(path.replace("{flow}", WELL.name)).status_code == 401
            assert closed.get(path.replace("{flow}", WELL.name), headers={"Host": "evil.example"}).status_code == 421


def test_the_page_needs_nothing_from_anywhere_else_and_has_nothing_inline(client: httpx.Client) -> None:
    page = client.get("/")
    named = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
    assert set(named) >= {"/page/style.css", "/page/app.js"}
    for path in named:
        assert client.get(path).status_code == 200
    assert not re.search(r"<style|<script>|\son\w+=|\sstyle=", page.text)
    scripts = "".join(file.read_text() for file in PAGE_FOLDER.glob("*.js"))
    assert set(re.findall(r'from "\./([\w.]+)"', scripts)) < {file.name for file in PAGE_FOLDER.iterdir()}
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|https?://(?!www\.w3\.org)|eval\(", scripts
    )


def test_a_wheel_holds_every_file_of_the_page() -> None:
    packaged = re.search(r'^"app\.http\.page" = \[(.*)\]', (PROJECT / "pyproject.toml").read_text(), re.MULTILINE)
    assert packaged is not None
    assert {f"*{file.suffix}" for file in page_files().values()} == set(re.findall(r'"([^"]+)"', packaged[1]))


def test_a_name_that_looks_like_html_reaches_the_page_as_text(client: httpx.Client) -> None:
    answer = client.get(f"{API_BASE}/flows/{TROUBLED.name}/refused")
    assert answer.headers["content-type"] == "application/json"
    assert HOSTILE in answer.json()["rows"][1]["key"]["topic"]
