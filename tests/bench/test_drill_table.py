"""Rows of the drill, the lines of its table, its goals, and its file."""

from __future__ import annotations

import random
from pathlib import Path

from bench.drill.__main__ import Still
from bench.drill.outcome_rows import AFTER, CALM, DURING, DrillSeries, Row, goals, read, rows
from bench.drill.snapshot import Snapshot
from bench.drill.source_load import ANYWHERE, END, NEAR, PLACES, TOPIC_KINDS, DrillReader, Topic
from bench.failover_figures_page import groups_section
from bench.pair import remote
from streaming.mm2.records import TopicPartition

BUSY = TOPIC_KINDS[0]
HERE = TopicPartition("drill-busy", 0)
OTHER = TopicPartition("drill-busy", 1)


def row(
    place: str = NEAR,
    mm2: tuple[int, int] | None = (0, 100),
    ours: tuple[int, int] | None = (0, 0),
    moment: str = CALM,
    topic: str = "busy",
) -> Row:
    return Row(1, moment, topic, place, 0, mm2, ours)


def drill(*found: Row, failed: str = "") -> DrillSeries:
    return DrillSeries(
        {"seconds": 40.0, "groups": 4, "settle": 10.0}, 2, list(found), [], 3, 500, [failed] if failed else []
    )


def reader(place: str = END) -> DrillReader:
    topic = Topic("drill-busy", BUSY)
    topic.written[HERE] = [(0, 100), (1, 101), (3, 102)]
    topic.written[OTHER] = [(0, 200)]
    return DrillReader("g", topic, place, behind=2, stops=0.5)


def test_line_counts_skipped_records_and_takes_median_and_most_of_those_read_twice() -> None:
    page = groups_section(drill(row(ours=(1, 4)), row(ours=(2, 8)), row(ours=(0, 30)), row(ours=None)))
    assert "| near the end, busy (4) | 0 | 100 | 100 | 0 | 3 | 8 | 30 | 1 | 0 | 0 |" in page


def test_lines_come_by_moment_then_place() -> None:
    page = groups_section(drill(row(moment=DURING), row(ANYWHERE), row(END, moment=AFTER), row(END)))
    starts = ("### ", *(f"| {place}" for place in PLACES))
    lines = [line.split(" (")[0] for line in page.splitlines() if line.startswith(starts)]
    assert lines == [
        "### MM2 not killed",
        "| at the end, busy",
        "| anywhere, busy",
        "### MM2 killed and restarted, the target has caught up",
        "| at the end, busy",
        "### MM2 killed, just restarted and still catching up",
        "| near the end, busy",
    ]


def test_side_without_any_offset_has_no_median() -> None:
    assert "| near the end, busy (2) | 0 | 100 | 100 | 0 | 0 | - | - | 2 |" in groups_section(
        drill(row(ours=None), row(ours=None))
    )


def test_goals_are_reached_by_exact_offsets() -> None:
    assert [good for _, _, good in goals([row(END, (0, 6)), row(), row(ANYWHERE)])] == [True, True, True]


def test_one_skipped_record_misses_the_first_goal_at_any_moment() -> None:
    (skipped, _, _) = goals([row(ours=(1, 0), moment=DURING)])
    assert skipped[-1] is False


def test_one_record_read_twice_at_the_end_misses_the_second_goal_only_once_mm2_has_caught_up() -> None:
    assert [good for _, _, good in goals([row(END, ours=(0, 1))])][1] is False
    assert [good for _, _, good in goals([row(END, ours=(0, 1), moment=DURING)])][1] is True


def test_median_above_a_tenth_of_mm2_misses_the_third_goal() -> None:
    assert [good for _, _, good in goals([row(ours=(0, 11))])][2] is False
    assert [good for _, _, good in goals([row(ours=(0, 10))])][2] is True


def test_row_compares_what_a_group_needs_with_what_it_gets_in_each_partition() -> None:
    one = reader()
    source = {HERE: [(0, 100), (1, 101), (3, 102)], OTHER: [(0, 200)]}
    here, other = remote(HERE), remote(OTHER)
    target = {here: [(0, 100), (1, 101), (2, 102)], other: [(0, 200)]}
    seen = Snapshot({"g": {HERE: 1, OTHER: 1}}, {"g": {here: 2}}, {"g": {here: 0, other: 1}}, {here: 3, other: 1})
    assert list(rows(7, CALM, [one], seen, source, target)) == [
        Row(7, CALM, "busy", END, 0, checkpoint=(0, 1), synced=(1, 0)),
        Row(7, CALM, "busy", END, 0, checkpoint=(0, 0), synced=None),
    ]


def test_results_are_read_as_they_were_saved(tmp_path: Path) -> None:
    whole = drill(row(ours=None), row(END), failed="gave up after 3 s of waiting for the target")
    whole.save(tmp_path / "drill.json")
    assert read(tmp_path / "drill.json") == whole


def test_no_results_where_there_is_no_file(tmp_path: Path) -> None:
    assert read(tmp_path / "drill.json") is None


def test_page_shows_a_table_for_each_moment_and_says_what_was_left_out() -> None:
    page = groups_section(drill(row(), row(moment=AFTER), failed="gave up after 3 s of waiting for the target"))
    assert page.count("| groups |") == 2
    assert "| near the end, busy (1) | 0 | 100 | 100 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |" in page
    assert "A round came to no end and is left out: gave up after 3 s of waiting for the target." in page


def test_reader_near_the_end_stays_behind_and_never_goes_back() -> None:
    one = reader(NEAR)
    one.advance(0.1, random.Random(1))
    assert one.positions() == {HERE: 1, OTHER: 0}
    one.topic.written[HERE] = one.topic.written[HERE][:2]
    one.advance(0.2, random.Random(1))
    assert one.positions() == {HERE: 1, OTHER: 0}


def test_reader_at_the_end_has_the_offset_after_the_last_record() -> None:
    one = reader(END)
    one.advance(0.1, random.Random(1))
    assert one.positions() == {HERE: 4, OTHER: 1}


def test_reader_anywhere_stops_at_its_moment() -> None:
    one = reader(ANYWHERE)
    one.advance(0.5, random.Random(1))
    assert one.positions() == {HERE: 0, OTHER: 0}


def test_still_is_what_has_not_changed_for_long_enough() -> None:
    seen, now = iter([1, 1, 2, 2, 2]), iter([0.0, 4.0, 5.0, 5.0, 9.0, 10.0])
    still = Still(lambda: next(seen), 5.0, lambda: next(now))
    assert [still(), still(), still(), still()] == [False, False, False, True]
    assert still.seen == 2
