"""`lockstep run` says in a line why Spark does not start; both clusters refuse connections, which is no reason."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from app.local.jar_sets import PROJECT
from app.local.jars import connector_jars
from tests.silent_clusters import LOCKSTEP
from tests.spark.test_run_ended import properties

TOOLS = ("bash", "dirname")
"""What Spark's scripts need; Java is none of them."""


def run(folder: Path, **environment: str) -> tuple[int, str]:
    """Its exit code, and what it says last."""
    connector_jars()
    own = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PYSPARK_SUBMIT_ARGS")}
    command = [*LOCKSTEP, "run", "--config", str(properties(folder))]
    said = subprocess.run(command, env=own | environment, capture_output=True, text=True, timeout=300, check=False)
    assert "Traceback" not in said.stderr, said.stderr
    return said.returncode, said.stderr.splitlines()[-1]


@pytest.mark.endurance
@pytest.mark.parametrize("submitted", [True, False])
def test_a_spark_master_that_is_down_ends_in_one_sentence(tmp_path: Path, submitted: bool) -> None:
    master, config = "spark://127.0.0.1:9", str(properties(tmp_path))
    by_submit = [str(PROJECT / "spark-submit.sh"), "--master", master, "--", "--config", config]
    options = {} if submitted else {"PYSPARK_SUBMIT_ARGS": f"--master {master} pyspark-shell"}
    command = by_submit if submitted else [*LOCKSTEP, "run", "--config", config]
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"} | options
    # spark-submit passes on to stdout whatever its Python process says.
    ended = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False
    )
    said = ended.stdout
    assert ended.returncode == 1, said
    assert "Traceback" not in said, said
    # Spark's own log may say after it that Spark does not sign off.
    told = [line for line in said.splitlines() if line.startswith("Spark does not start: ")]
    assert len(told) == 1, said
    assert f"no master answers at {master}" in told[0]


def test_a_machine_without_java_is_told_which_one_to_install(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for tool in TOOLS:
        (programs / tool).symlink_to(str(shutil.which(tool)))
    code, last = run(tmp_path, PATH=str(programs))
    assert (code, last) == (1, "no java on PATH: install Java 17, 21 or 25, and set JAVA_HOME to it")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("--nonsense pyspark-shell", "its options come from PYSPARK_SUBMIT_ARGS"),
        ("--master nonsense pyspark-shell", "Spark does not start: "),
    ],
)
def test_options_that_spark_does_not_take_are_a_line(tmp_path: Path, options: str, why: str) -> None:
    code, last = run(tmp_path, PYSPARK_SUBMIT_ARGS=options)
    assert code == 1
    assert why in last
