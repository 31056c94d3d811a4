"""The oldest brokers and MM2 that most run: `validate`, `plan`, `apply`, `preflight` with every kind.

`make endurance` has the newest, and `make matrix` more versions, the job, and the failover.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.matrix.row import OK, VersionRow, look, pair, prepare, ready

OLD, NEWEST = VersionRow("3.9", "3.9", "3.9"), VersionRow("4.4", "4.4", "4.3")


@pytest.mark.parametrize(
    "row", [pytest.param(OLD, id=OLD.name), pytest.param(NEWEST, id=NEWEST.name, marks=pytest.mark.endurance)]
)
def test_every_kind_is_applied_and_the_flow_could_fail_over(row: VersionRow, tmp_path: Path) -> None:
    with pair(row, tmp_path) as made:
        for part in (prepare, look, ready):
            part(made)
    assert [(step.name, step.said) for step in made.steps if step.result != OK] == []
