"""Jars are fetched once, compared with checksums, whole or not at all: told with a `java` that plays Ivy's part."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.local import jar_sets
from app.local.jar_sets import CONNECTORS, KAFKA_JARS, PROJECT, SETS, JarSet, check_own, home
from app.local.jars import connector_for, fetched
from app.local.java_gateway import GatewayProcess
from sinks.background import begun
from streaming.errors import LockstepError
from tools.renew_checksums import renew

ARTIFACTS = (("org.acme", "one", "1.0"), ("org.acme", "two", "2.0"))
WITHIN = 60.0
NAMES = ["one-1.0.jar", "two-2.0.jar"]

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


@pytest.fixture
def jars(tmp_path: Path) -> JarSet:
    """Two artifacts, and the checksums of what Ivy makes of them."""
    sums = tmp_path / "checksums"
    sums.mkdir()
    lines = [f"{hashlib.sha256(name.split('-')[0].encode()).hexdigest()}  {name}\n" for name in NAMES]
    (sums / "acme-1.sha256").write_text("".join(lines))
    return JarSet("acme-1", ARTIFACTS, checksums=sums)


def set_up(ivy: Path, then: str = "pass") -> None:
    """`then`: what Ivy does after each jar."""
    program = ivy.parent / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(IVY.format(python=sys.executable, runs=ivy, then=then))
    program.chmod(0o755)


def test_jars_are_fetched_in_one_go_and_only_once(ivy: Path, jars: JarSet, tmp_path: Path) -> None:
    set_up(ivy)
    for _ in range(2):
        assert [path.name for path in fetched(jars, tmp_path / "root")] == NAMES
    assert len(ivy.read_text().splitlines()) == 1
    assert {path.name for path in (tmp_path / "root").iterdir()} == {"lock", "acme-1"}


def test_who_comes_while_another_fetches_waits_for_what_that_one_fetched(
    ivy: Path, jars: JarSet, tmp_path: Path
) -> None:
    set_up(ivy)
    found: list[list[Path]] = []
    threads = [threading.Thread(target=lambda: found.append(fetched(jars, tmp_path / "root"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] == found[1] == found[2] != []
    assert len(ivy.read_text().splitlines()) == 1


def test_a_link_in_place_of_the_lock_leaves_its_target_alone_and_is_named(
    ivy: Path, jars: JarSet, tmp_path: Path
) -> None:
    set_up(ivy)
    target = tmp_path / "target"
    target.write_text("kept")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "lock").symlink_to(target)
    with pytest.raises(LockstepError, match=r"lock of the jars' folder cannot be opened"):
        fetched(jars, tmp_path / "root")
    assert target.read_text() == "kept"


@pytest.mark.parametrize("then", ["sys.exit('no route to the host')", "print('no route to the host'); break"])
def test_a_download_that_fails_leaves_nothing_and_says_what_to_mend_and_what_ivy_said(
    ivy: Path, jars: JarSet, tmp_path: Path, then: str
) -> None:
    """By its exit code, or by jars that are missing although it claims success."""
    set_up(ivy, then)
    with pytest.raises(LockstepError, match=r"(?s)Maven Central must be within reach.*no route to the host"):
        fetched(jars, tmp_path / "root")
    assert {path.name for path in (tmp_path / "root").iterdir()} == {"lock"}


def test_what_a_killed_download_left_is_taken_away_by_the_next_one(ivy: Path, jars: JarSet, tmp_path: Path) -> None:
    set_up(ivy)
    (tmp_path / "jars" / "part-killed" / "cache").mkdir(parents=True)
    fetched(jars, tmp_path / "jars")
    assert sorted(path.name for path in (tmp_path / "jars").iterdir()) == [jars.name, "lock"]


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ("jar.write_text('changed')", r"one-1\.0\.jar is another file \(SHA-256 [0-9a-f]{64}\); two-2\.0\.jar is an"),
        ("jar.with_name('more.jar').write_text('more')", r"more\.jar is not in the list"),
    ],
)
def test_jars_that_are_not_those_of_the_list_are_not_used(
    ivy: Path, jars: JarSet, tmp_path: Path, then: str, said: str
) -> None:
    set_up(ivy, then)
    with pytest.raises(LockstepError, match=said):
        fetched(jars, tmp_path / "root")
    assert {path.name for path in (tmp_path / "root").iterdir()} == {"lock"}


def test_a_jar_that_the_list_has_and_the_download_lacks_is_missing(ivy: Path, jars: JarSet, tmp_path: Path) -> None:
    """One that another of the artifacts needs."""
    set_up(ivy)
    with jars.list_file.open("a") as sums:
        sums.write(f"{'0' * 64}  needed-3.jar\n")
    with pytest.raises(LockstepError, match=r"needed-3\.jar is missing"):
        fetched(jars, tmp_path / "root")


def put(folder: Path, jars: dict[str, str]) -> None:
    """Puts jars into a folder, by name."""
    folder.mkdir()
    for name, text in jars.items():
        (folder / name).write_text(text)


def test_jars_of_the_list_that_somebody_put_there_need_no_download(ivy: Path, jars: JarSet, tmp_path: Path) -> None:
    put(tmp_path / jars.name, dict(zip(NAMES, ("one", "two"), strict=True)))
    assert [path.name for path in fetched(jars, tmp_path)] == NAMES
    assert not ivy.exists()


@pytest.mark.parametrize(
    ("there", "said"),
    [
        ({"one-1.0.jar": "on", "two-2.0.jar": "two"}, r"one-1\.0\.jar is another file \(SHA-256 [0-9a-f]{64}\)\. Del"),
        ({"one-1.0.jar": "one"}, r"two-2\.0\.jar is missing"),
        ({}, r"one-1\.0\.jar is missing; two-2\.0\.jar is missing"),
    ],
)
def test_jars_that_lie_there_damaged_or_not_all_of_them_are_not_used(
    jars: JarSet, tmp_path: Path, there: dict[str, str], said: str
) -> None:
    put(tmp_path / jars.name, there)
    with pytest.raises(LockstepError, match=said):
        fetched(jars, tmp_path)


def pipe(place: Path) -> None:
    os.mkfifo(place)


def device(place: Path) -> None:
    place.symlink_to("/dev/zero")


@pytest.mark.parametrize("put_there", [pipe, device, Path.mkdir])
def test_what_is_no_regular_file_in_place_of_a_jar_is_named_and_not_waited_for(
    jars: JarSet, tmp_path: Path, put_there: Callable[[Path], None]
) -> None:
    put(tmp_path / jars.name, {NAMES[0]: "one"})
    put_there(tmp_path / jars.name / NAMES[1])
    with pytest.raises(LockstepError, match=r"(regular file|directory): .*two-2\.0\.jar\. Each must be a regular file"):
        begun(lambda: fetched(jars, tmp_path), "fetched").result(WITHIN)


def test_a_link_to_a_jar_of_the_list_counts_as_the_jar(jars: JarSet, tmp_path: Path) -> None:
    put(tmp_path / "elsewhere", {"two": "two"})
    put(tmp_path / jars.name, {NAMES[0]: "one"})
    (tmp_path / jars.name / NAMES[1]).symlink_to(tmp_path / "elsewhere" / "two")
    assert [path.name for path in fetched(jars, tmp_path)] == NAMES


def test_a_jar_that_is_replaced_after_its_first_use_is_not_used_again(ivy: Path, jars: JarSet, tmp_path: Path) -> None:
    set_up(ivy)
    fetched(jars, tmp_path / "root")[0].write_text("another")
    with pytest.raises(LockstepError, match=r"one-1\.0\.jar is another file"):
        fetched(jars, tmp_path / "root")


def test_a_jar_that_the_list_does_not_name_is_left_out(ivy: Path, jars: JarSet, tmp_path: Path) -> None:
    set_up(ivy)
    (fetched(jars, tmp_path / "root")[0].parent / "foreign.jar").write_text("foreign")
    assert [path.name for path in fetched(jars, tmp_path / "root")] == NAMES


def test_a_list_made_anew_is_the_one_that_downloads_are_compared_with(ivy: Path, jars: JarSet, tmp_path: Path) -> None:
    set_up(ivy, "jar.write_text('a new version')")
    renew(jars)
    assert [path.name for path in fetched(jars, tmp_path / "root")] == NAMES


@pytest.mark.parametrize("jars", SETS, ids=lambda jars: jars.name)
def test_every_shipped_list_names_the_artifacts_of_its_set(jars: JarSet) -> None:
    expected = jars.expected()
    assert expected.keys() >= {f"{name}-{version}.jar" for _, name, version in jars.artifacts}
    assert all(len(digest) == 64 for digest in expected.values())


def test_the_connector_is_four_jars_and_kafka_is_all_that_a_broker_needs() -> None:
    assert {len(connector.jars.expected()) for connector in CONNECTORS.values()} == {4}
    assert len(KAFKA_JARS.expected()) == 94


@pytest.mark.parametrize(("spark", "connector"), [("4.1.4", "4.1.1"), ("4.2.1", "4.2.0"), ("4.3.0", "4.2.0")])
def test_each_spark_gets_the_newest_connector_that_works_with_it(spark: str, connector: str) -> None:
    assert connector_for(spark).version == connector


@pytest.mark.parametrize("spark", ["4.0.5", "3.5.9", "5.0.0", "4"])
def test_a_spark_without_a_known_connector_is_refused_with_those_that_have_one(spark: str) -> None:
    with pytest.raises(LockstepError, match=re.escape(f"Spark {spark}: Lockstep runs on Spark 4.1, 4.2, 4.3")):
        connector_for(spark)


def test_jars_are_kept_in_the_checkout_unless_lockstep_home_names_a_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LOCKSTEP_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    assert home() == PROJECT / ".lockstep"
    monkeypatch.setenv("LOCKSTEP_HOME", "kept")
    assert home() == tmp_path / "kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_nothing_runs_from_a_folder_that_another_user_made(tmp_path: Path) -> None:
    folder = tmp_path / ".lockstep"
    check_own(folder)
    folder.mkdir()
    check_own(folder)
    (tmp_path / "link").symlink_to(folder)
    os.chown(tmp_path / "link", 65534, 65534, follow_symlinks=False)
    os.chown(tmp_path, 65534, 65534)
    check_own(folder)
    with pytest.raises(LockstepError, match="link belongs to another user"):
        check_own(tmp_path / "link")
    os.chown(folder, 65534, 65534)
    with pytest.raises(LockstepError, match=r"\.lockstep belongs to another user.*LOCKSTEP_HOME"):
        check_own(folder)


def test_nothing_runs_from_a_folder_that_every_user_may_write(tmp_path: Path) -> None:
    folder = tmp_path / ".lockstep"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(LockstepError, match="every user may write it"):
        check_own(folder)


def test_a_wheel_takes_no_jars_from_such_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LOCKSTEP_HOME", raising=False)
    monkeypatch.setattr(jar_sets, "PROJECT", tmp_path / "site-packages")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".lockstep").mkdir()
    (tmp_path / ".lockstep").chmod(0o777)
    with pytest.raises(LockstepError, match="every user may write it"):
        fetched(KAFKA_JARS)
    with pytest.raises(LockstepError, match="every user may write it"):
        GatewayProcess()
