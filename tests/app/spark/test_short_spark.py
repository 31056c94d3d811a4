"""How Spark is started for a command that reads little."""

from __future__ import annotations

from app.local.java import QUICK_START
from app.spark.spark_session import FEW_OFFSETS, is_short, quick
from app.spark.submit_options import JAVA_OPTIONS

QUICK = " ".join(QUICK_START)


def test_only_what_is_known_to_read_little_is_a_short_run() -> None:
    assert [is_short(offsets) for offsets in (None, 0, FEW_OFFSETS - 1, FEW_OFFSETS)] == [False, True, True, False]


def test_what_somebody_says_to_the_jvm_comes_behind_what_a_short_run_says_and_so_wins() -> None:
    said = {JAVA_OPTIONS: "-XX:TieredStopAtLevel=4", "spark.master": "local[1]"}
    assert quick(said) == {JAVA_OPTIONS: f"{QUICK} -XX:TieredStopAtLevel=4", "spark.master": "local[1]"}
    assert quick({}) == {JAVA_OPTIONS: QUICK}
