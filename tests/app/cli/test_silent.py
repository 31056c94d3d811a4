"""Clusters that take connections and never answer: a command waits for both at once, and says which said nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.lazy_commands import app
from tests.silent_clusters import SilentClusters

TIMEOUT = 6
"""Seconds. A command that waits for one cluster after the other asks the second so much later."""


@pytest.fixture
def clusters() -> Iterator[SilentClusters]:
    with SilentClusters("a", "b") as clusters:
        yield clusters


@pytest.fixture
def silent(clusters: SilentClusters, tmp_path: Path) -> Path:
    """The properties of a flow between two of them."""
    file = clusters.properties(tmp_path, ["a->b"])
    file.write_text(f"{file.read_text()}lockstep.checkpoint.dir={tmp_path}/checkpoints\n")
    return file


@pytest.mark.parametrize("words", [["plan"], ["validate"], ["preflight"], ["fence"]], ids=" ".join)
def test_two_clusters_that_say_nothing_cost_the_time_of_one(
    words: list[str], clusters: SilentClusters, silent: Path
) -> None:
    begun = time.monotonic()
    with ThreadPoolExecutor() as threads:
        asked = [threads.submit(clusters.accept, alias) for alias in ("a", "b")]
        said = CliRunner().invoke(app, [*words, "--config", str(silent), "--timeout", str(TIMEOUT)])
        first, second = sorted(one.result() for one in asked)
    assert second - first < TIMEOUT <= time.monotonic() - begun
    assert said.exit_code == 1
    assert said.output.count(f"gave no answer to DescribeCluster within {TIMEOUT} s; ") == 2
    for alias in ("a", "b"):
        assert said.output.count(f"is {alias}.bootstrap.servers right, and the cluster up?") == 1


@pytest.mark.parametrize("words", [["audit"], ["pause", "acl"]], ids=" ".join)
def test_what_did_not_answer_is_said_in_our_words_with_its_address_and_how_long(words: list[str], silent: Path) -> None:
    said = CliRunner().invoke(app, [*words, "--config", str(silent), "--timeout", "1"])
    (address,) = (line.partition("=")[2] for line in silent.read_text().splitlines() if line.startswith("b.boot"))
    assert re.search(
        rf"cluster b: {address} gave no answer to \w+ within 1 s; is b\.bootstrap\.servers right", said.output
    )
    assert "Local:" not in said.output
