"""A connection that is lost at the write leaves a place as it was or as it was to be, and the command says which."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from app.cli.output import FAILED
from app.local.waiting import wait_for
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ResourceType
from tests.kafka.configs_tool.conftest import SOON, Ran, Three
from tests.kafka.configs_tool.write_proxy import Act, at_writes, cut, nothing

pytestmark = pytest.mark.endurance

BEFORE = {"background.threads": "11", "log.cleaner.threads": "2"}
AFTER = {"background.threads": "12", "num.io.threads": "9"}
ADDED = ",".join(f"{name}={value}" for name, value in AFTER.items())
DEFAULTS = ("--alter", "--entity-type", "brokers", "--entity-default")
NAMES = BEFORE.keys() | AFTER.keys()

IMPATIENT = {"default.api.timeout.ms": "6000", "request.timeout.ms": "5000"}
"""A client that tries for six seconds: on a busy machine one answer may take two."""


@pytest.fixture
def place(three: Three) -> Iterator[Three]:
    """The cluster-wide default has two configs. One is to be changed, one deleted; a third is to come."""
    three.levels.alter({DEFAULT_OF_ALL: {**dict.fromkeys(NAMES), **BEFORE}})
    wait_for(lambda: own(three) == BEFORE, SOON, "the cluster-wide default to be as before")
    three.agree(ResourceType.BROKER, "")
    yield three
    three.levels.alter({DEFAULT_OF_ALL: dict.fromkeys(NAMES)})
    wait_for(lambda: own(three) == {}, SOON, "the cluster-wide default to be empty")


def own(three: Three) -> dict[str, str | None]:
    return {name: value for name, value in three.own(DEFAULT_OF_ALL).items() if name in NAMES}


def altered(three: Three, bootstrap: str) -> Ran:
    client = {"bootstrap.servers": bootstrap, **IMPATIENT}
    return three.run(*DEFAULTS, "--add-config", ADDED, "--delete-config", "log.cleaner.threads", client=client)


@pytest.mark.parametrize(
    ("before", "after", "said", "there"),
    [
        (cut, nothing, "so far nothing of it was written. Check once more with --describe", BEFORE),
        (nothing, cut, "--describe shows that all of it was written", AFTER),
    ],
    ids=["request", "answer"],
)
def test_lost_write_is_looked_up_and_told(
    place: Three, before: Act, after: Act, said: str, there: dict[str, str]
) -> None:
    with at_writes(place.cluster, before, after) as bootstrap:
        ran = altered(place, bootstrap)
    assert (ran.code, said in ran.err) == (FAILED, True), ran
    assert "the connection was lost while writing" in ran.err
    wait_for(lambda: own(place) == there, SOON, f"the cluster-wide default to have {there}")


@pytest.mark.parametrize(("arrives", "there"), [(False, BEFORE), (True, AFTER)], ids=["request", "answer"])
def test_where_nobody_answers_any_more_the_command_says_that_it_does_not_know(
    place: Three, arrives: bool, there: dict[str, str]
) -> None:
    with ExitStack() as proxies:

        def gone() -> None:
            proxies.close()
            cut()

        acts = (nothing, gone) if arrives else (gone, nothing)
        ran = altered(place, proxies.enter_context(at_writes(place.cluster, *acts)))
    assert (ran.code, "All of it was written, or nothing: check with --describe" in ran.err) == (FAILED, True), ran
    wait_for(lambda: own(place) == there, SOON, f"the cluster-wide default to have {there}")
