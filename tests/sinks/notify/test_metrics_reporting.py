"""Reporters come, go and change while the job runs; none of them can break it, delay it for long, or tell a secret."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from app.local.jars import PROJECT
from app.local.waiting import wait_for
from sinks.engine.metrics import Metrics
from sinks.notify.metrics_reporting import MetricsReporter, Reporters
from tests.sinks.notify.reporting import IMPATIENT, QUICK, SOON, Counts, Failing, Hanging, Remembers, Tunable, called


@pytest.fixture
def registry() -> CollectorRegistry:
    return Metrics("1.2.3").registry


@pytest.fixture
def counts() -> Counts:
    return Counts()


@pytest.fixture
def running(registry: CollectorRegistry, counts: Counts) -> Iterator[Reporters]:
    reporters = Reporters(registry, counts.add, QUICK)
    yield reporters
    reporters.close()


def test_a_reporter_that_is_new_gets_the_registry_that_is_shown(
    running: Reporters, registry: CollectorRegistry
) -> None:
    reporter = Remembers()
    running.adopt({"acme:R": reporter})
    called(reporter, "init")
    assert reporter.registry is registry


def test_a_reporter_that_is_gone_is_closed_before_adopting_ends_and_one_that_stays_is_left_alone(
    running: Reporters,
) -> None:
    goes, stays, comes = Remembers(), Remembers(), Remembers()
    running.adopt({"acme:Goes": goes, "acme:Stays": stays})
    running.adopt({"acme:Stays": stays, "acme:Comes": comes})
    assert goes.calls == ["init", "close"]
    called(comes, "init")
    called(stays, "init")


def test_another_instance_of_a_class_takes_the_place_of_the_one_before(running: Reporters) -> None:
    before, after = Remembers(), Remembers()
    running.adopt({"acme:R": before})
    running.adopt({"acme:R": after})
    assert before.calls == ["init", "close"]
    called(after, "init")


@settings(deadline=None, max_examples=30)  # each example starts threads
@given(st.lists(st.sets(st.sampled_from("abc")), max_size=6))
def test_whatever_is_wanted_in_turn_each_one_begins_and_ends_as_often_as_it_comes_and_goes(
    lists: list[set[str]],
) -> None:
    known = {name: Remembers() for name in "abc"}
    running = Reporters(CollectorRegistry(), patience=QUICK)
    for wanted in lists:
        running.adopt({name: known[name] for name in sorted(wanted)})
    assert running.close()
    for name, reporter in known.items():
        times = sum(there for there, _ in groupby(name in wanted for wanted in lists))
        assert reporter.calls == ["init", "close"] * times


def test_closing_closes_all_of_them_once(running: Reporters) -> None:
    reporters = {f"acme:R{number}": Remembers() for number in range(3)}
    running.adopt(reporters)
    assert running.close()
    assert running.close()
    assert [one.calls for one in reporters.values()] == [["init", "close"]] * 3


def test_one_that_can_be_reconfigured_is_told_when_a_property_that_it_names_differs_and_only_then(
    running: Reporters,
) -> None:
    reporter = Tunable()
    for properties in (
        {"acme.rate": "1"},
        {"acme.rate": "1", "topics": "x"},
        {"acme.rate": "2", "topics": "x"},
        {"topics": "y"},
    ):
        running.adopt({"acme:T": reporter}, properties)
        wait_for(lambda: reporter.calls, SOON, "the reporter to begin")
        if properties.get("acme.rate") != "1":
            told = partial(reporter.was_told, properties.get("acme.rate"))
            wait_for(told, SOON, "the reporter to be told")
    running.close()
    assert reporter.calls == ["init", "reconfigure 2", "reconfigure None", "close"]


def test_what_changed_before_it_began_it_is_told_as_well(running: Reporters) -> None:
    hanging = Hanging("init")
    reporter = Tunable(hanging)
    running.adopt({"acme:T": reporter}, {"acme.rate": "1"})
    running.adopt({"acme:T": reporter}, {"acme.rate": "2"})
    hanging.go.set()
    called(reporter, "init", "reconfigure 2")


def test_one_that_cannot_goes_on_as_it_is(running: Reporters) -> None:
    reporter = Remembers()
    running.adopt({"acme:R": reporter}, {"acme.rate": "1"})
    running.adopt({"acme:R": reporter}, {"acme.rate": "2"})
    running.close()
    assert reporter.calls == ["init", "close"]


@pytest.mark.parametrize("error", [OSError("no route"), SystemExit(3)])
def test_what_init_raises_is_counted_logged_once_and_init_is_called_again(
    running: Reporters, counts: Counts, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    reporter, other = Remembers(Failing("init", 3, error)), Remembers()
    running.adopt({"acme:R": reporter, "acme:Other": other})
    called(reporter, "init")
    called(other, "init")
    assert counts == {"acme:R": 3}
    (said,) = caplog.messages
    assert said.startswith("the metrics reporter acme:R failed, and is called again in ")
    assert f"{type(error).__name__}: {error}" in said


def test_what_reconfigure_raises_is_tried_again_even_if_the_value_before_comes_back(
    running: Reporters, counts: Counts
) -> None:
    failing = Failing("reconfigure", 1000, OSError("half way"))
    reporter = Tunable(failing)
    running.adopt({"acme:T": reporter}, {"acme.rate": "1"})
    called(reporter, "init")
    running.adopt({"acme:T": reporter}, {"acme.rate": "2"})
    wait_for(lambda: counts["acme:T"], SOON, "the failure")
    running.adopt({"acme:T": reporter}, {"acme.rate": "1"})
    failing.left = 0
    wait_for(lambda: reporter.calls[-1] == "reconfigure 1", SOON, "the reporter to be told what holds")


def test_what_close_raises_is_counted_and_logged_and_closes_the_others(
    running: Reporters, counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    reporter, other = Remembers(Failing("close", 1, OSError("still busy"))), Remembers()
    running.adopt({"acme:R": reporter, "acme:Other": other})
    assert running.close()
    assert other.calls == ["init", "close"]
    assert counts == {"acme:R": 1}
    assert "the metrics reporter acme:R could not be closed: OSError: still busy" in caplog.text


def test_one_that_never_began_is_not_closed(running: Reporters) -> None:
    reporter = Remembers(Failing("init", 1000, OSError("no route")))
    running.adopt({"acme:R": reporter})
    assert running.close()
    assert reporter.calls == []


@pytest.mark.parametrize("call", ["init", "close"])
def test_one_that_hangs_is_counted_and_left_behind_and_holds_up_no_other(
    registry: CollectorRegistry, counts: Counts, caplog: pytest.LogCaptureFixture, call: str
) -> None:
    hanging = Hanging(call)
    reporter, other = Remembers(hanging), Remembers()
    reporters = Reporters(registry, counts.add, IMPATIENT)
    reporters.adopt({"acme:R": reporter, "acme:Other": other})
    called(other, "init")
    assert not reporters.close()
    assert hanging.entered.wait(SOON)
    assert "the metrics reporter acme:R did not end within 0.05 s and is left behind" in caplog.text
    assert counts["acme:R"] >= 1
    hanging.go.set()
    called(reporter, "init", "close")
    called(other, "init", "close")


def test_no_log_shows_a_secret_of_today_or_of_before(
    running: Reporters, counts: Counts, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    reporter = Tunable(Failing("reconfigure", 1, ValueError("cannot log in with hunter2, nor with hunter1")))
    running.adopt({"acme:T": reporter}, {"acme.rate": "1"}, ["hunter1"])
    called(reporter, "init")
    running.adopt({"acme:T": reporter}, {"acme.rate": "2"}, ["hunter2", "x"])
    wait_for(lambda: counts["acme:T"], SOON, "the failure")
    running.close()
    assert "ValueError: cannot log in with [hidden], nor with [hidden]" in caplog.text
    assert "hunter" not in caplog.text


def test_the_reporter_in_the_documentation_is_one(tmp_path: Path, running: Reporters, counts: Counts) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (PROJECT / "docs" / "plugins.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(next(block for block in blocks if "class TextFile" in block), names)
    reporter: MetricsReporter = names["TextFile"]()
    first, second = tmp_path / "first.prom", tmp_path / "second.prom"
    names["TextFile"].configure(reporter, {"acme.metrics.file": str(first)})
    running.adopt({"acme:TextFile": reporter}, {"acme.metrics.file": str(first)})
    running.adopt({"acme:TextFile": reporter}, {"acme.metrics.file": str(second)})
    assert running.close()
    assert 'lockstep_build_info{version="1.2.3"} 1.0' in second.read_text()
    assert not first.exists()
    assert not counts
