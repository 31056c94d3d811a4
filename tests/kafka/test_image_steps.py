"""The Dockerfile's steps for the job, in a fresh folder and environment: all but those that need root or Docker."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import venv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.local.jar_sets import NEWEST_CONNECTOR, PROJECT

DOCKERFILE = PROJECT / "conf" / "docker" / "Dockerfile"
STAGES = ("wheel", "job")
SYSTEM = ("apt-get ", "useradd ")
"""What begins a step that changes the system."""

PLACES = re.compile(r"(?<![\w/.])/(?=(?:wheels|source|opt|tmp|var)\b)")
WITHIN = 1200


@dataclass
class Image:
    """A folder that stands for the image's file system; `left_out`: steps that were not tried."""

    root: Path
    environment: dict[str, str]
    folder: Path = field(init=False)
    left_out: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder = self.root

    def place(self, path: str) -> Path:
        """Where a path of the image is here."""
        return self.root / path.lstrip("/") if path.startswith("/") else self.folder / path

    def step(self, instruction: str, text: str) -> None:
        """Carries out one instruction of a Dockerfile."""
        if instruction == "WORKDIR":
            self.folder = self.place(text)
            self.folder.mkdir(parents=True, exist_ok=True)
        elif instruction == "COPY":
            self.copy(shlex.split(text))
        elif instruction == "ENV":
            name, _, value = text.partition("=")
            self.environment[name] = PLACES.sub(f"{self.root}/", value)
        elif instruction == "RUN" and text.startswith(SYSTEM):
            self.left_out.append(text.split()[0])
        elif instruction == "RUN":
            self.run(PLACES.sub(f"{self.root}/", text))

    def copy(self, words: list[str]) -> None:
        """Of the checkout, or of what another stage left at the same place."""
        between = words[0].startswith("--from=")
        *sources, target = words[1:] if between else words
        for source in sources:
            there = self.place(source) if between else PROJECT / source
            goal = self.place(target)
            if there.is_dir() and there != goal:
                shutil.copytree(there, goal, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
            elif there != goal:
                goal.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(there, goal)

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """A command as a step runs it. It must succeed."""
        done = subprocess.run(
            ["sh", "-ec", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done


def steps(stage: str) -> Iterator[tuple[str, str]]:
    """Instructions of a stage, with continued lines joined."""
    text = re.sub(r"\\\n\s*", "", DOCKERFILE.read_text())
    (found,) = re.findall(rf"(?ms)^FROM \S+ AS {stage}$(.*?)(?=^FROM |\Z)", text)
    for line in found.splitlines():
        if line and not line.startswith("#"):
            instruction, _, rest = line.partition(" ")
            yield instruction, rest


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """What the steps make."""
    root = tmp_path_factory.mktemp("image")
    (root / "tmp").mkdir()
    venv.create(root / "venv", with_pip=True)
    # An image is built without the archives of classes that tests name in Spark's variables.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LOCKSTEP_", "PYTHON", "SPARK_"))}
    made = Image(root, kept | {"PATH": f"{root / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"})
    for stage in STAGES:
        made.folder = root
        for instruction, text in steps(stage):
            made.step(instruction, text)
    return made


@pytest.mark.endurance
def test_every_step_but_the_systems_own_makes_a_lockstep_that_starts(image: Image) -> None:
    assert image.left_out == ["apt-get", "useradd"]
    jars = {path.name for path in (image.root / "opt" / "lockstep" / "jars" / NEWEST_CONNECTOR.jars.name).iterdir()}
    assert jars == set(NEWEST_CONNECTOR.jars.expected())
    assert re.fullmatch(r"lockstep \d+\.\d+\.\d+\n", image.run("lockstep --version").stdout)
    assert str(image.root) in image.run("python -c 'import app; print(app.__path__[0])'").stdout


@pytest.mark.endurance
def test_the_images_own_command_names_the_file_that_is_not_mounted(image: Image) -> None:
    said = image.run("lockstep run --config etc/lockstep/mm2.properties 2>&1 || echo exit code $?").stdout
    assert "etc/lockstep/mm2.properties" in said
    assert "exit code 2" in said
