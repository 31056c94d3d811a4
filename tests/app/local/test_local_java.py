"""Which `java` is taken, and what becomes of a main class: told with a `java` that is a shell script."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.local.java import JavaProcess, java, stop_all
from app.local.waiting import wait_for
from streaming.errors import LockstepError

SOON = 60.0


def fake_java(home: Path, version: str = "17.0.15", runs: str = 'echo "$@"') -> None:
    """A JAVA_HOME whose `java` says this version and runs this line of shell."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    said = f'echo "openjdk version \\"{version}\\" 2025-04-15" >&2; exit'
    program.write_text(f'#!/bin/sh\nif [ "$1" = -version ]; then {said}; fi\n{runs}\n')
    program.chmod(0o755)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "jdk"
    monkeypatch.setenv("JAVA_HOME", str(path))
    return path


def test_the_java_of_java_home_goes_before_that_of_the_path(home: Path) -> None:
    fake_java(home)
    assert java() == f"{home}/bin/java"


def test_a_java_home_without_java_is_named(home: Path) -> None:
    with pytest.raises(LockstepError, match=rf"no java in JAVA_HOME={home}: install Java 17, 21 or 25"):
        java()


def test_no_java_at_all_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LockstepError, match="no java on PATH: install Java 17, 21 or 25"):
        java()


@pytest.mark.parametrize(("version", "major"), [("11.0.2", 11), ("1.8.0_292", 1), ("24", 24)])
def test_a_java_that_spark_or_kafka_cannot_run_on_is_refused(home: Path, version: str, major: int) -> None:
    fake_java(home, version)
    with pytest.raises(LockstepError, match=rf"is Java {major}, 17, 21 or 25 is needed: set JAVA_HOME"):
        java()


@pytest.mark.parametrize("version", ["17.0.15", "21", "25"])
def test_java_17_21_and_25_are_taken(home: Path, version: str) -> None:
    fake_java(home, version)
    assert java() == f"{home}/bin/java"


def test_a_main_class_gets_its_options_class_path_and_arguments(home: Path, tmp_path: Path) -> None:
    fake_java(home)
    with JavaProcess("a.Main", ["x", "y"], [Path("/1.jar"), Path("/2.jar")], tmp_path / "log", ["-Xmx1m"]) as process:
        wait_for(process.succeeded, SOON, "the class to end")
        assert process.output() == "-Xmx1m -cp /1.jar:/2.jar a.Main x y\n"


def test_a_class_that_fails_is_an_error_with_its_exit_code_and_the_end_of_this_runs_output(
    home: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    log.write_text("of an earlier run\n")
    fake_java(home, runs="seq 100; echo broken; exit 7")
    with (
        JavaProcess("a.Main", [], [], log) as process,
        pytest.raises(
            LockstepError, match=rf"(?s)a\.Main ended with exit code 7; the end of {log}:\n82\n.*100\nbroken$"
        ),
    ):
        wait_for(process.succeeded, SOON, "the class to end")
    assert "of an earlier run" not in process.output()


def test_a_class_that_ends_although_it_should_serve_is_an_error_even_with_exit_code_0(
    home: Path, tmp_path: Path
) -> None:
    fake_java(home, runs="true")
    with JavaProcess("a.Main", [], [], tmp_path / "log") as process:
        wait_for(process.succeeded, SOON, "the class to end")
        with pytest.raises(LockstepError, match=r"a\.Main ended with exit code 0"):
            process.check()


def test_processes_are_stopped_together_and_at_the_end_of_a_with_block(home: Path, tmp_path: Path) -> None:
    fake_java(home, runs="exec sleep 600")
    with JavaProcess("a.First", [], [], tmp_path / "1") as first:
        others = [JavaProcess("a.Other", [], [], tmp_path / name) for name in ("2", "3")]
        assert all(process.runs for process in (first, *others))
        stop_all(others)
        assert [process.runs for process in (first, *others)] == [True, False, False]
    assert not first.runs
