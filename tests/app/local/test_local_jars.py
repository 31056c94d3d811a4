"""Kafka's jars are fetched once, whole or not at all: told with a `java` that plays Ivy's part."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from app.local.jars import ARTIFACTS, KAFKA, kafka_jars
from streaming.errors import LockstepError

# Makes one jar for each dependency of the ivy.xml where -retrieve says, and notes every run.
IVY = """#!{python}
import re, sys
from pathlib import Path
arguments = dict(zip(sys.argv, sys.argv[1:]))
if "-version" in sys.argv:
    sys.exit('openjdk version "17.0.15"')
with open("{runs}", "a") as runs:
    runs.write(arguments["-ivy"] + "\\n")
pattern = arguments["-retrieve"]
for name, version in re.findall(r'name="(.*?)" rev="(.*?)"', Path(arguments["-ivy"]).read_text()):
    jar = Path(pattern.replace("[artifact]", name).replace("[revision]", version).replace("[ext]", "jar"))
    jar.parent.mkdir(exist_ok=True)
    jar.write_text(name)
    print("\\t[SUCCESSFUL ] " + name)
    {then}
"""


@pytest.fixture
def ivy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where every run of Ivy is noted."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    return tmp_path / "runs"


def set_up(ivy: Path, then: str = "pass") -> None:
    """`then`: what Ivy does after each jar."""
    program = ivy.parent / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(IVY.format(python=sys.executable, runs=ivy, then=then))
    program.chmod(0o755)


def test_jars_are_fetched_in_one_go_and_only_once(ivy: Path, tmp_path: Path) -> None:
    set_up(ivy)
    expected = [f"{name}-{version}.jar" for _, name, version in sorted(ARTIFACTS, key=lambda artifact: artifact[1])]
    for _ in range(2):
        assert [path.name for path in kafka_jars(tmp_path / "root")] == expected
    assert len(ivy.read_text().splitlines()) == 1
    assert {path.name for path in (tmp_path / "root").iterdir()} == {"lock", f"kafka-{KAFKA}"}


def test_who_comes_while_another_fetches_waits_for_what_he_fetched(ivy: Path, tmp_path: Path) -> None:
    set_up(ivy)
    found: list[list[Path]] = []
    threads = [threading.Thread(target=lambda: found.append(kafka_jars(tmp_path / "root"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1] == found[2] != []
    assert len(ivy.read_text().splitlines()) == 1


@pytest.mark.parametrize("then", ["sys.exit('no route to the host')", "print('no route to the host'); break"])
def test_a_download_that_fails_leaves_nothing_and_says_what_to_mend_and_what_ivy_said(
    ivy: Path, tmp_path: Path, then: str
) -> None:
    """By its exit code, or by jars that are missing although it claims success."""
    set_up(ivy, then)
    with pytest.raises(LockstepError, match=r"(?s)Maven Central must be within reach.*no route to the host"):
        kafka_jars(tmp_path / "root")
    assert {path.name for path in (tmp_path / "root").iterdir()} == {"lock"}


def test_jars_that_somebody_put_there_need_no_download(ivy: Path, tmp_path: Path) -> None:
    jar = tmp_path / f"kafka-{KAFKA}" / "own.jar"
    jar.parent.mkdir()
    jar.touch()
    assert kafka_jars(tmp_path) == [jar]
    assert not ivy.exists()
