"""`audit`: which events are asked for, and how they are written."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import orjson
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from app.cli.audit_command import EVENT_COLUMNS, AnswerWatch, EventFilter, _as_json, _row, _wanted
from app.cli.shared_options import BEGINNING
from sinks.ledger.audit import EVENT_KINDS, PAUSE, SETTING, Event
from sinks.model.changes import Kind
from tests.memory.memory_cluster import MemoryCluster

NOON = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)


def event(
    kind: str = "topic-config",
    key: tuple[str, ...] = ("a.orders", "retention.ms"),
    before: str | None = '"1"',
    after: str | None = '"2"',
) -> Event:
    return Event(NOON, "a", "b", "me@here", kind, "update", key, before, after, "sha256:0", "applied", None)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (EventFilter(BEGINNING), True),
        (EventFilter(NOON), True),
        (EventFilter(NOON + timedelta(seconds=1)), False),
        (EventFilter(BEGINNING, frozenset({"topic-config"})), True),
        (EventFilter(BEGINNING, frozenset({"acl", "topic"})), False),
        (EventFilter(BEGINNING, resource="orders"), True),
        (EventFilter(BEGINNING, resource="a.*"), True),
        (EventFilter(BEGINNING, resource="retention.m?"), True),
        (EventFilter(BEGINNING, resource="orders.*"), False),
        (EventFilter(BEGINNING, frozenset({"topic-config"}), "payments"), False),
    ],
)
def test_an_event_is_found_by_time_kind_and_resource(wanted: EventFilter, found: bool) -> None:
    assert wanted.has(event()) is found


def test_a_kind_that_there_is_not_is_refused_with_the_nearest() -> None:
    with pytest.raises(typer.BadParameter, match="nearest: topic-config"):
        _wanted(None, ["topic-confg"], None)
    assert _wanted(None, list(EVENT_KINDS), None).kinds == frozenset(EVENT_KINDS)


def test_values_are_encoded_once_and_times_are_written_as_everywhere() -> None:
    document = _as_json(event(before='"604800000"', after=None))
    assert (document["before"], document["after"]) == ("604800000", None)
    assert document["at"] == "2026-11-22T12:00:00Z"
    assert document["key"] == {"topic": "a.orders", "name": "retention.ms"}
    topic = _as_json(event(Kind.TOPIC.value, ("a.t",), None, '{"partitions":3}'))
    assert topic["after"] == {"partitions": 3}
    assert _as_json(event(SETTING, ("topics",)))["key"] == {"name": "topics"}


def test_a_kind_as_a_whole_has_no_key() -> None:
    paused = replace(event("acl", (), None, None), op=PAUSE)
    assert (_as_json(paused)["key"], _row(paused)[3:6]) == ({}, ("pause", "acl", ""))


def test_what_another_hand_wrote_is_shown_as_it_is() -> None:
    document = _as_json(event("odd", ("x", "y", "z"), "no json", None))
    assert (document["key"], document["before"]) == (["x", "y", "z"], "no json")


@pytest.mark.parametrize("depth", [9, 250, 300, 1000, 2000])
@pytest.mark.parametrize("nest", ["[{}]", '{{"x": {}}}'])
def test_what_is_nested_deeper_than_any_value_of_ours_is_shown_as_text_and_ends_no_command(
    depth: int, nest: str
) -> None:
    forged = "1"
    for _ in range(depth):
        forged = nest.format(forged)
    document = _as_json(event(before=forged, after=forged))
    assert (document["before"], document["after"]) == (forged, forged)
    orjson.dumps({"events": [document]})
    assert forged in _row(event(before=forged))


def test_people_see_the_values_without_quotes() -> None:
    at, flow, *_, key, before, after, result, error, _ = _row(event())
    assert (at, flow, key) == ("2026-11-22T12:00:00Z", "a->b", "a.orders retention.ms")
    assert (before, after, result, error) == ("1", "2", "applied", None)


def test_who_follows_hears_once_that_a_cluster_is_silent_and_that_it_answers_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = MemoryCluster("b")
    watch = AnswerWatch(cluster)
    for reachable in (True, False, False, True, True):
        cluster.reachable = reachable
        watch.check()
    silent, again = capsys.readouterr().err.splitlines()
    assert silent.startswith("b: no answer")
    assert again == "cluster b: answers again"


@given(st.sampled_from(EVENT_KINDS), st.lists(st.text(), max_size=9), st.none() | st.text())
def test_every_event_can_be_shown(kind: str, key: list[str], side: str | None) -> None:
    odd = event(kind, tuple(key), side, side)
    assert _as_json(odd)["kind"] == kind
    assert len(_row(odd)) == len(EVENT_COLUMNS)
