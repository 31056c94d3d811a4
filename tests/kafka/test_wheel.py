"""Lockstep installed from a wheel, in a folder that holds nothing but a properties file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from app.local.jar_sets import NEWEST_CONNECTOR, PROJECT
from tests.conftest import Clusters
from tests.kafka.staging import client_of, create, wait_until_shown, write_properties

SOURCES = ("app", "lockstep", "sinks", "streaming", "pyproject.toml", "README.md", "LICENSE")
WITHIN = 600
"""Seconds; the first start fetches Spark's Kafka connector."""

POM = """<project><modelVersion>4.0.0</modelVersion><groupId>{}</groupId><artifactId>{}</artifactId>
<version>{}</version></project>
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of programs of an environment that has the wheel, and borrows its dependencies from this one."""
    folder = tmp_path_factory.mktemp("wheel")
    source, environment = folder / "source", folder / "environment"
    source.mkdir()
    for name in SOURCES:
        there = PROJECT / name
        if there.is_dir():
            shutil.copytree(there, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(there, source)
    pip = [sys.executable, "-m", "pip", "--quiet"]
    _run([*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source)], folder)
    shutil.rmtree(source)
    venv.create(environment, with_pip=False)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment), "platbase": str(environment)}))
    # Names a folder alone: the files there that lead back to this checkout are not read.
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    wheel = next(folder.glob("lockstep_kafka-*.whl"))
    python = environment / "bin" / "python"
    _run([*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)], folder)
    yield environment / "bin"


def _run(command: list[str], folder: Path, **own: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LOCKSTEP_HOME")}
    return subprocess.run(
        command, cwd=folder, env=environment | own, capture_output=True, text=True, check=False, timeout=WITHIN
    )


def poisoned_home(folder: Path) -> Mapping[str, str]:
    """Variables of a user whose Maven has seen the connector's POMs, and never fetched their jars."""
    for organisation, name, version in NEWEST_CONNECTOR.jars.artifacts:
        there = folder / ".m2" / "repository" / Path(*organisation.split(".")) / name / version
        there.mkdir(parents=True)
        (there / f"{name}-{version}.pom").write_text(POM.format(organisation, name, version))
    return {"HOME": str(folder), "JAVA_TOOL_OPTIONS": f"-Duser.home={folder}"}


def test_a_wheel_works_in_an_empty_folder_whatever_mavens_cache_holds(
    installed: Path, clusters: Clusters, tmp_path: Path, unique: str
) -> None:
    """Fetches the connector with its first command, plans, runs, and has then nothing left to do."""
    topic, folder = f"{unique}-orders", tmp_path / "empty"
    folder.mkdir()
    config = write_properties(folder, clusters.a, clusters.b, topic)
    home = poisoned_home(tmp_path / "home")

    def lockstep(*arguments: str) -> subprocess.CompletedProcess[str]:
        return _run([str(installed / "lockstep"), *arguments, "--config", config.name], folder, **home)

    with client_of(clusters.a) as source, client_of(clusters.b) as target:
        create(source, topic, 2, {"retention.ms": "3600000"})
        validated, planned = lockstep("validate"), lockstep("plan")
        assert (validated.returncode, planned.returncode) == (0, 3), validated.stderr + planned.stderr
        ran = lockstep("run", "--once")
        assert ran.returncode == 0, ran.stderr
        assert "4 of 4 jars" in validated.stderr
        assert "4 of 4 jars" not in ran.stderr
        wait_until_shown(target, f"a.{topic}", 2, {"retention.ms": "3600000"})
        assert len(list((folder / ".lockstep" / "jars" / NEWEST_CONNECTOR.jars.name).glob("*.jar"))) == 4
        again = lockstep("plan")
        assert again.returncode == 0, again.stdout


def test_the_installed_code_is_that_of_the_wheel(installed: Path, tmp_path: Path) -> None:
    """Not of the checkout that its dependencies are borrowed from; else the test above would show nothing."""
    code = "import app, lockstep, importlib.metadata as m; print(app.__file__, m.version('lockstep-kafka'))"
    said = _run([str(installed / "python"), "-c", code], tmp_path).stdout
    assert said.startswith(f"{installed.parent}/")
    assert str(PROJECT) not in said
