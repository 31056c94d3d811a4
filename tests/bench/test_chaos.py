"""What a storm of faults is made of, and what the page says of storms."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bench.chaos import FAULTS, drawn, section


@given(st.integers(), st.integers(1, 6))
def test_faults_at_the_same_time_touch_different_things_and_those_of_hands_come_first(seed: int, most: int) -> None:
    chosen = drawn(random.Random(seed), most)
    assert 1 <= len(chosen) <= most
    touched = [fault.touches for fault in chosen.values()]
    assert len(touched) == len(set(touched))
    lasting = [fault.lasts for fault in chosen.values()]
    assert lasting == sorted(lasting)


def test_every_fault_is_drawn_sooner_or_later() -> None:
    chance = random.Random(1)
    assert {name for _ in range(500) for name in drawn(chance, 4)} == FAULTS.keys()


def fault(name: str, storm: int, seconds: float | None) -> dict[str, Any]:
    return {"storm": storm, "fault": name, "seconds": seconds, "missing": {} if seconds else {"acl": "1, not 2"}}


STORMS = [fault("x", 1, 3.0), fault("y", 1, 3.0), fault("x", 3, 9.0), fault("y", 4, None), fault("z", 4, None)]


def test_faults_that_were_there_at_once_are_one_storm_whose_time_counts_once() -> None:
    said = section({"seed": 1, "asked": 5, "faults": STORMS, "equal": True, "foreign": [], "untold": []})
    assert "5 faults in 3 storms of up to 2 at once" in said
    assert "Until equal, median 6.0 s, slowest 9.0 s. Storms given up: 1." in said


def test_table_of_chaos_has_each_fault_with_its_median_and_what_was_given_up() -> None:
    missing = {10.0: {}, 20.0: {}, None: {"group-offset": "3, not 10"}}
    faults = [
        {"storm": storm, "fault": "kill -9 of MM2", "seconds": one, "missing": left}
        for storm, (one, left) in enumerate(missing.items())
    ]
    page = section({"seed": 1, "asked": 3, "faults": faults, "equal": True, "foreign": [], "untold": ["acl x"]})
    assert "| kill -9 of MM2 | 3 | 15.0 s | 20.0 s | 1 |" in page
    assert "event in the audit topic: 1." in page
    assert "equal after a later storm: group-offset 3, not 10." in page
