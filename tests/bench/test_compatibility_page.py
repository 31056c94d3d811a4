"""docs/compatibility.md says what worked between which versions, and what was said where it did not."""

from __future__ import annotations

from typing import Any

from bench.matrix.__main__ import render


def row(*steps: tuple[str, str, str]) -> dict[str, Any]:
    return {
        "source": "2.8-zookeeper",
        "target": "4.3",
        "mirror": "3.9",
        "versions": {"source": "2.8.2", "target": "4.3.1", "mirror": "3.9.2"},
        "date": "2026-11-23",
        "seconds": 61.4,
        "steps": [{"name": name, "result": result, "seconds": 1.24, "said": [said]} for name, result, said in steps],
    }


def test_a_row_whose_steps_all_worked_shows_versions_modes_and_seconds() -> None:
    page = render({"one": row(("plan", "ok", ""), ("job: acl", "ok", ""))})
    assert "| 2.8.2 ZooKeeper | 4.3.1 KRaft | 3.9.2 | all 2 | 61 |" in page
    assert "| 2.8.2 ZooKeeper → 4.3.1 KRaft, 3.9.2 | 1.2 |" in page
    assert "2026-11-23" in page


def test_a_step_that_failed_is_named_with_what_the_command_said() -> None:
    page = render({"one": row(("plan", "ok", ""), ("job: acl", "failed", "no authorizer"))})
    assert "1 of 2; not job: acl" in page
    assert "- job: acl: `no authorizer`" in page
