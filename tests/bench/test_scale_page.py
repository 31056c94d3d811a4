"""The page on ten times as large."""

from __future__ import annotations

from typing import Any

from bench.scale import page

FACTS = {"cores": 2, "memory_gib": 24, "python": "3.11.7"}


def size(factor: float, **parts: Any) -> dict[str, Any]:
    """All of one size; every figure of Lockstep is `factor`."""
    cpu = {"job": factor, "sources": factor, "target": factor}
    memory = {"jvm": factor * 2**20, "python": factor * 2**20}
    seconds = {"compared": factor}
    return {
        "first": {"seconds": seconds | {"groups synced": factor, "groups moved": factor}, "peak": memory},
        "steady": {
            "first": seconds | {"groups compared": factor},
            "full_later": {"one": [factor], "all": [factor]},
            "latencies": {"1": [factor], "5": [factor]},
            "acls": [factor],
            "cpu": cpu,
            "resident": memory,
            "peak": memory,
        },
        "mm2": {
            "latencies": {"1": [8.0], "5": [8.0]},
            "cpu": {"job": 10.0, "sources": 10.0, "target": 10.0},
            "resident": {"jvm": 500 * 2**20, "python": 0},
        },
    } | parts


def made(**sizes: dict[str, Any]) -> str:
    return page({"facts": FACTS, "sizes": {name.strip("_"): of for name, of in sizes.items()}})


def test_each_figure_says_how_it_grows_from_the_smallest_size_to_the_largest() -> None:
    text = made(_10000=size(6.0), _500=size(2.0))
    assert "| | 500 topics | 10,000 topics | grows by |" in text
    assert "| empty target: topics, configs and ACLs made, by the end of the first pass | 2.00 | 6.00 | 3.0 |" in text


def test_what_was_not_measured_at_a_size_is_a_dash() -> None:
    small = size(2.0)
    del small["steady"]["latencies"]["5"], small["mm2"]
    text = made(_500=small, _10000=size(6.0))
    assert "| Lockstep, one in 5 s: p50 | - | 6.00 | - |" in text
    assert "| MM2, intervals of 1 s: MM2 | - | 10.00 | - |" in text


def test_goals_are_those_of_the_largest_size_and_say_by_how_much_they_are_missed() -> None:
    text = made(_500=size(100.0), _10000=size(6.0))
    assert "## Goals at 10,000 topics" in text
    assert "| one change in 5 s: p99, to MM2's at 1 s | ≤ 1.00 of MM2's | 0.75 | reached |" in text
    assert "| CPU of an idle minute, together, to MM2's at 1 s | ≤ 0.33 of MM2's | 0.60 | missed by 0.27 |" in text
    assert "| one change a second: p99 | ≤ 5.00 s | 6.00 | missed by 1.00 |" in text


def test_goals_of_what_was_not_measured_say_so() -> None:
    large = size(6.0)
    del large["mm2"]
    assert "| one change in 5 s: p99, to MM2's at 1 s | ≤ 1.00 of MM2's | - | not measured |" in made(_10000=large)
