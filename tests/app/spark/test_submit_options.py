"""What spark-submit is started with: Lockstep's defaults, what the user gave, and the Kafka connector."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.local.jar_sets import PROJECT
from app.local.jars import named_jars
from app.spark.submit_options import (
    JAVA_OPTIONS,
    SPARK_DEFAULTS,
    UnsupportedDeployMode,
    class_archive,
    defaults,
    given_by,
    split_environment,
    submit_options,
    with_lockstep,
)
from streaming.errors import LockstepError

CONNECTOR = [Path("/jars/spark-sql-kafka-0-10_2.13-4.2.0.jar"), Path("/jars/kafka-clients-3.9.2.jar")]
OURS = ",".join(map(str, CONNECTOR))
OTHER = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.2"


def merged(*options: str) -> dict[str, str]:
    return with_lockstep(given_by(options).all(), lambda: CONNECTOR)


def no_connector() -> Sequence[Path]:
    raise AssertionError("nothing is to be fetched")


def test_without_options_the_defaults_hold_and_the_connector_comes_as_files() -> None:
    properties = merged()
    assert properties.items() >= defaults().items()
    assert properties["spark.jars"] == OURS
    assert "spark.jars.packages" not in properties


@pytest.mark.parametrize(
    "options",
    [
        ["--conf", "spark.sql.shuffle.partitions=7"],
        ["-c", "spark.sql.shuffle.partitions=7"],
        ["--conf=spark.sql.shuffle.partitions=7"],
    ],
)
def test_what_is_given_wins_over_a_default(options: list[str]) -> None:
    assert merged(*options)["spark.sql.shuffle.partitions"] == "7"


@pytest.mark.parametrize("options", [["--jars", "/a.jar,/b.jar"], ["--conf", "spark.jars=/a.jar,/b.jar"]])
def test_jars_of_the_users_are_there_beside_the_connector(options: list[str]) -> None:
    assert merged(*options)["spark.jars"] == f"/a.jar,/b.jar,{OURS}"


@pytest.mark.parametrize(
    "options",
    [
        ["--packages", OTHER],
        ["--packages", f"org.acme:acme:1,{OTHER}"],
        ["--conf", f"spark.jars.packages={OTHER}"],
        ["--jars", "/opt/spark-sql-kafka-0-10_2.13-4.0.2.jar"],
    ],
)
def test_a_connector_that_the_user_names_takes_the_place_of_ours(options: list[str]) -> None:
    properties = with_lockstep(given_by(options).all(), no_connector)
    assert OURS not in properties.get("spark.jars", "")


def test_jars_of_the_environment_are_there_for_every_command_and_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars = [tmp_path / "one.jar", tmp_path / "two.jar"]
    for jar in jars:
        jar.write_bytes(b"")
    monkeypatch.setenv("LOCKSTEP_JARS", ", ".join(map(str, jars)))
    assert named_jars() == jars
    assert merged()["spark.jars"] == f"{jars[0]},{jars[1]},{OURS}"
    assert merged("--packages", OTHER)["spark.jars"] == f"{jars[0]},{jars[1]}"


def test_jar_of_the_environment_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_JARS", str(tmp_path / "none.jar"))
    with pytest.raises(LockstepError, match=r"LOCKSTEP_JARS names .*none\.jar"):
        merged()


def test_a_package_that_is_no_connector_leaves_ours_in_place() -> None:
    assert merged("--packages", "org.acme:acme:1")["spark.jars"] == OURS


def test_java_options_of_the_users_come_behind_ours_and_so_win() -> None:
    ours, *_, theirs = merged("--driver-java-options", "-Dlog4j2.configurationFile=mine")[JAVA_OPTIONS].split(" ")
    assert ours.endswith("/log4j2.properties")
    assert theirs == "-Dlog4j2.configurationFile=mine"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCKSTEP_HOME", str(tmp_path))
    place = class_archive()
    place.parent.mkdir(mode=0o755)
    place.touch(0o644)
    return place


def test_classes_come_from_an_archive_that_is_there(archive: Path) -> None:
    assert f"-XX:SharedArchiveFile={archive}" in merged()[JAVA_OPTIONS].split(" ")
    archive.unlink()
    assert "Archive" not in merged()[JAVA_OPTIONS]


def test_an_archive_that_another_user_could_write_is_not_used(archive: Path) -> None:
    archive.chmod(0o664)
    assert "Archive" not in merged()[JAVA_OPTIONS]
    archive.chmod(0o644)
    archive.parent.chmod(0o777)
    assert "Archive" not in merged()[JAVA_OPTIONS]


@pytest.mark.parametrize("option", ["-XX:SharedArchiveFile=/mine.jsa", "-XX:ArchiveClassesAtExit=/mine.jsa"])
def test_what_the_user_says_of_archives_wins(archive: Path, option: str) -> None:
    assert str(archive) not in merged("--driver-java-options", option)[JAVA_OPTIONS]


@pytest.mark.parametrize("options", [["--deploy-mode", "cluster"], ["--conf", "spark.submit.deployMode=cluster"]])
def test_the_deploy_mode_cluster_is_refused_with_the_way_to_do_it(options: list[str]) -> None:
    with pytest.raises(UnsupportedDeployMode, match=r"client mode.*a pod of its own"):
        with_lockstep(given_by(options).all(), no_connector)


def test_the_deploy_mode_client_is_what_it_is_anyway() -> None:
    assert merged("--deploy-mode", "client")["spark.submit.deployMode"] == "client"


def test_other_options_are_passed_on_in_their_order() -> None:
    options = ["--master", "spark://h:7077", "--conf", "spark.executor.memory=2g", "--verbose", "--name", "x"]
    told = submit_options(options, lambda: CONNECTOR)
    assert told[:2] == ["--properties-file", str(SPARK_DEFAULTS)]
    assert told[-5:] == ["--master", "spark://h:7077", "--verbose", "--name", "x"]
    assert {"spark.executor.memory=2g", f"spark.jars={OURS}"} < set(told)


def test_a_properties_file_stays_a_file_and_defaults_fill_what_it_leaves_out(tmp_path: Path) -> None:
    """What is in it may be secret: it is not to be shown by `ps`."""
    file = tmp_path / "spark.conf"
    file.write_text("spark.authenticate.secret hush\nspark.sql.shuffle.partitions 7\n")
    told = submit_options(["--properties-file", str(file)], lambda: CONNECTOR)
    assert told[:2] == ["--properties-file", str(file)]
    assert not [word for word in told if "hush" in word or "shuffle.partitions" in word]
    assert "spark.sql.adaptive.enabled=false" in told
    assert f"spark.jars={OURS}" in told


def test_a_properties_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LockstepError, match=r"--properties-file .*nowhere\.conf cannot be read"):
        submit_options(["--properties-file", str(tmp_path / "nowhere.conf")], no_connector)


def test_options_in_pyspark_submit_args_win_and_what_sets_no_property_stays_there() -> None:
    arguments = "--master 'local[3]' --conf spark.sql.shuffle.partitions=7 --jars /a.jar pyspark-shell"
    properties, left = split_environment(arguments, lambda: CONNECTOR)
    assert left == ["--load-spark-defaults", "--master", "local[3]", "pyspark-shell"]
    assert properties["spark.sql.shuffle.partitions"] == "7"
    assert properties["spark.jars"] == f"/a.jar,{OURS}"


def test_without_pyspark_submit_args_spark_gets_the_word_that_it_insists_on() -> None:
    properties, left = split_environment("", lambda: CONNECTOR)
    assert (left, properties["spark.jars"]) == (["--load-spark-defaults", "pyspark-shell"], OURS)


@pytest.mark.parametrize(
    ("options", "authenticates"),
    [
        ([], "true"),
        (["--master", "local[2]"], "true"),
        (["--conf", "spark.authenticate=false"], "false"),
        (["--master", "spark://h:7077"], None),
    ],
)
def test_a_driver_that_is_all_of_spark_authenticates_its_rpc(options: list[str], authenticates: str | None) -> None:
    properties, _ = split_environment(" ".join([*options, "pyspark-shell"]), lambda: CONNECTOR)
    assert properties.get("spark.authenticate") == authenticates
    asked = submit_options(options, lambda: CONNECTOR)
    assert (f"spark.authenticate={authenticates}" in asked) is (authenticates is not None)


def test_spark_submit_sh_ends_with_exit_code_2_before_anything_starts() -> None:
    command = [str(PROJECT / "spark-submit.sh"), "--master", "spark://nowhere:7077", "--deploy-mode", "cluster"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 2
    assert run.stderr.startswith("--deploy-mode cluster is not supported")
    assert len(run.stderr.splitlines()) == 1
