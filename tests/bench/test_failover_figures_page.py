"""The page of measured failovers: what counts as right, and that it is written from what was saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from bench import cutover
from bench.drill import __main__ as drill
from bench.drill.outcome_rows import CALM, DURING, DrillSeries, read
from bench.drill.snapshot import Loss
from bench.failover_figures_page import CUTOVER, LOSSES, PAGE, PREDICTIONS, write
from bench.saved_figures import save


def loss(counted: int | None = 3, measured: int = 3, **other: Any) -> Loss:
    made = {"exact": True, "predicted": 3, "measured_known": 3, "moment": CALM, "topic": "busy"} | other
    return Loss(round=0, counted=counted, measured=measured, **made)


def series(*found: Loss, rounds: int = 1) -> DrillSeries:
    return DrillSeries({"seconds": 1.0, "groups": 1, "settle": 1.0}, rounds, [], list(found), 0, 0, [])


def written(folder: Path, *found: Loss, cells: int = 7) -> list[list[str]]:
    """The rows of the table with so many cells a row."""
    series(*found).save(folder / LOSSES.name)
    text = write(folder / CUTOVER.name, CUTOVER)
    assert (folder / PAGE).read_text() == text
    lines = [line for line in text.splitlines() if line.count("|") == cells + 1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_a_count_that_says_it_is_exact_is_right_only_where_it_is_equal(tmp_path: Path) -> None:
    rows = written(tmp_path, loss(), loss(counted=5), loss(counted=2), loss(counted=None))
    assert rows[0][3] == "1 of 3"
    assert rows[0][5:7] == ["1", "1"]


def test_at_most_so_many_is_right_where_it_is_no_less(tmp_path: Path) -> None:
    rows = written(tmp_path, loss(counted=5, exact=False), loss(counted=2, exact=False))
    assert (rows[0][3], rows[0][4], rows[0][6]) == ("0 of 0", "1 of 2", "1")


def test_a_prediction_is_compared_with_what_the_job_had_seen(tmp_path: Path) -> None:
    unknown = loss(predicted=None, measured_known=None)
    rows = written(tmp_path, loss(), loss(predicted=9), loss(predicted=1), unknown, cells=9)
    assert rows[0] == [f"{CALM}, busy (3)", "3", "3", "1 of 3", "1", "6", "6", "1", "2"]


def test_predictions_stand_as_a_run_of_their_own_measured_them(tmp_path: Path) -> None:
    series(loss(), loss(predicted=4), rounds=2).save(tmp_path / PREDICTIONS.name)
    rows = written(tmp_path, loss(), cells=9)
    assert rows[0][3] == "1 of 2"
    assert f"--rounds 2 --out bench/figures/{PREDICTIONS.name}`: 2 rounds" in (tmp_path / PAGE).read_text()


def test_each_moment_and_topic_has_a_row_and_all_have_the_last(tmp_path: Path) -> None:
    rows = written(tmp_path, loss(), loss(moment=DURING), loss(topic="quiet"))
    assert [row[0] for row in rows] == [f"{CALM}, busy (1)", f"{DURING}, busy (1)", f"{CALM}, quiet (1)", "all (3)"]


def test_losses_are_read_as_they_were_saved(tmp_path: Path) -> None:
    written(tmp_path, loss(), loss(counted=None, predicted=None))
    saved = read(tmp_path / LOSSES.name)
    assert saved is not None
    assert saved.losses == [loss(), loss(counted=None, predicted=None)]


STEPS = {"DENY_WRITES": 1.26, "command": 12.0, "opening": 0.5}
SECONDS = {"cutover": STEPS, "preflight": {"first": {"seconds": 2.0, "cpu": 1.0}}, "fence": STEPS}


def test_seconds_of_a_cutover_stand_by_step(tmp_path: Path) -> None:
    save(tmp_path / CUTOVER.name, {"topics": 500, "fenced": 2000} | SECONDS)
    text = write(tmp_path / CUTOVER.name, CUTOVER)
    assert "| DENY_WRITES | 1.3 |" in text
    assert "| first | 2.0 | 1.0 |" in text
    assert "a fence of 2,000 topics" in text


def test_a_cutover_with_a_file_of_its_own_is_on_the_page_beside_what_was_saved_of_drills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    series(loss()).save(tmp_path / LOSSES.name)
    monkeypatch.setattr(cutover, "_measured", lambda topics, fenced: SECONDS)
    cutover.main(7, 9, tmp_path / "own.json")
    page = (tmp_path / PAGE).read_text()
    assert "a cutover of 7 topics" in page
    assert "## What would be lost" in page
    assert capsys.readouterr().out == page


@pytest.mark.parametrize(("name", "counts"), [("own.json", True), (PREDICTIONS.name, False)])
def test_a_drill_with_a_file_of_its_own_is_on_the_page_and_one_of_predictions_in_their_place(
    name: str, counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drill, "pair_of", MagicMock())
    monkeypatch.setattr(drill, "DrillRound", MagicMock())
    drill.main(1, tmp_path / name)
    page = (tmp_path / PAGE).read_text()
    assert "## What is predicted without the source" in page
    assert ("## What would be lost" in page) == counts
