"""A job whose JVM is killed ends, whatever it does at that moment, between two clusters that answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.local.local_cluster import LocalCluster, started
from tests.jvm_kills import Moment, kill_at
from tests.kafka.staging import write_properties
from tests.quick_java import QUICK_KAFKA

LEADS = "a->b: leads, as"
"""The log of a job that compares."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalCluster, LocalCluster]]:
    folder = tmp_path_factory.mktemp("pair")
    a, b = (LocalCluster(alias, folder / alias, heap="256m", java_options=QUICK_KAFKA) for alias in "ab")
    with started(a, b):
        yield a, b


@pytest.mark.endurance
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("moment", [Moment.PASSES, Moment.PREFLIGHT, Moment.RELOAD, Moment.END])
def test_a_job_at_work_whose_jvm_is_killed_ends_and_says_so_last(
    pair: tuple[LocalCluster, LocalCluster], tmp_path: Path, moment: Moment, seed: int
) -> None:
    config = write_properties(
        tmp_path, *pair, "orders.*", **{"lockstep.failover.preflight.interval.seconds": "1", "tasks.max": "1"}
    )
    kill_at(moment, seed, config, tmp_path / "log", lambda said: LEADS in said)
