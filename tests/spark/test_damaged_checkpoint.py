"""Which failures of Spark's mean that a checkpoint cannot be read, shown by damaging checkpoints that Spark wrote."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.local.waiting import wait_for
from streaming.query import QueryRefused, start_query
from streaming.query_plan import QueryPlan
from streaming.query_restarts import QueryFailure, Restarts

WITHIN = 180.0


def clock_alone(folder: Path) -> QueryPlan:
    return QueryPlan("b", (), 1.0, folder)


def trace_of_a_run(spark: SparkSession, folder: Path) -> str | None:
    """The stack trace of the failure, whether Spark refuses to start the query or the query fails."""
    try:
        query = start_query(spark, clock_alone(folder), lambda batch, number: None, once=True)
    except QueryRefused as refused:
        return str(refused)
    wait_for(lambda: not query.is_active(), WITHIN, "the query to end")
    return query.trace()


def failures(spark: SparkSession, folder: Path) -> list[QueryFailure]:
    """Of two runs, one after the other."""
    restarts = Restarts()
    return [restarts.diagnose(trace) for _ in range(2) if (trace := trace_of_a_run(spark, folder)) is not None]


@pytest.fixture(scope="module")
def sound(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoint of two batches."""
    folder = tmp_path_factory.mktemp("sound")
    assert [trace_of_a_run(spark, folder) for _ in range(2)] == [None, None]
    return folder


@pytest.fixture
def copied(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "copy"))


def write(path: Path, text: str) -> None:
    """With the checksum that Hadoop keeps beside a file gone, so that the text itself is read."""
    path.write_text(text)
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


def add_a_source(checkpoint: Path) -> None:
    offsets = checkpoint / "offsets" / "1"
    write(offsets, offsets.read_text() + '\n{"topic":{"0":1}}')


def cut_in_half(checkpoint: Path) -> None:
    offsets = checkpoint / "offsets" / "1"
    write(offsets, offsets.read_text()[: offsets.stat().st_size // 2])


def lose_a_line(checkpoint: Path) -> None:
    offsets = checkpoint / "offsets" / "1"
    write(offsets, offsets.read_text().rpartition("\n")[0] + "\nnonsense")


def count_on(checkpoint: Path) -> None:
    write(checkpoint / "offsets" / "7", (checkpoint / "offsets" / "1").read_text())


DAMAGES: dict[str, Callable[[Path], object]] = {
    "offsets that are none": lambda at: write(at / "offsets" / "1", "garbage"),
    "offsets that fail their checksum": lambda at: (at / "offsets" / "1").write_text("garbage"),
    "offsets that are empty": lambda at: write(at / "offsets" / "1", ""),
    "offsets cut off": cut_in_half,
    "offsets of another source": lose_a_line,
    "offsets of a source too many": add_a_source,
    "offsets of a later Spark": lambda at: write(at / "offsets" / "1", "v9\n{}"),
    "offsets with a gap": count_on,
    "offsets lost": lambda at: shutil.rmtree(at / "offsets"),
    "commits that are none": lambda at: write(at / "commits" / "1", "garbage"),
    "commits that are empty": lambda at: write(at / "commits" / "1", ""),
    "metadata that is garbage": lambda at: write(at / "metadata", "garbage"),
    "metadata that is empty": lambda at: write(at / "metadata", ""),
    "metadata that fails its checksum": lambda at: (at / "metadata").write_text("garbage"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
def test_a_damaged_checkpoint_is_told_from_other_trouble(
    spark: SparkSession, copied: Path, damage: Callable[[Path], object]
) -> None:
    damage(clock_alone(copied).checkpoint)
    *_, last = failures(spark, copied)
    assert last.unreadable, last.reason


def test_commits_lost_are_no_failure(spark: SparkSession, copied: Path) -> None:
    shutil.rmtree(clock_alone(copied).checkpoint / "commits")
    assert failures(spark, copied) == []


def test_a_sink_that_raises_says_nothing_of_the_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    def broken(batch: object, number: int) -> None:
        raise RuntimeError("the sink is broken")

    query = start_query(spark, clock_alone(tmp_path), broken, once=True)
    wait_for(lambda: not query.is_active(), WITHIN, "the query to fail")
    assert Restarts().diagnose(query.trace() or "") == QueryFailure(
        "RuntimeError: the sink is broken", unreadable=False
    )


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with no room left."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k,nr_inodes=64", "none", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root may mount a small file system")
    try:
        (folder / "ballast").write_bytes(bytes(16 * 1024))
        yield folder
    finally:
        # Spark's stream thread may still hold a file open.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_says_nothing_of_the_checkpoint(spark: SparkSession, full_disk: Path) -> None:
    *_, last = failures(spark, full_disk)
    assert "No space left on device" in last.reason
    assert not last.unreadable
