"""A job whose JVM is killed ends, whatever it does at that moment. Both clusters refuse connections."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.local.jar_sets import PROJECT
from tests.jvm_kills import COMPARED, Moment, kill_at
from tests.spark.test_run_ended import properties

SUBMITTED = (str(PROJECT / "spark-submit.sh"), "--", "--config")
"""The JVM starts the driver's Python process, not the other way round."""

WITHOUT_CLUSTERS = (Moment.START, Moment.PASSES, Moment.RELOAD, Moment.END)


@pytest.mark.parametrize(
    ("moment", "seed"),
    [(moment, 0) for moment in WITHOUT_CLUSTERS]
    + [pytest.param(one, n, marks=pytest.mark.endurance) for n in range(1, 20) for one in WITHOUT_CLUSTERS],
)
def test_a_job_whose_jvm_is_killed_ends_and_says_so_last(tmp_path: Path, moment: Moment, seed: int) -> None:
    kill_at(moment, seed, properties(tmp_path), tmp_path / "log", lambda said: COMPARED in said)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.endurance)])
def test_so_does_one_that_spark_submit_started(tmp_path: Path, seed: int) -> None:
    config, log = properties(tmp_path), tmp_path / "log"
    kill_at(Moment.PASSES, seed, config, log, lambda said: COMPARED in said, SUBMITTED)
