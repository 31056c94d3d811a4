"""What a storm of faults is made of."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from bench.chaos import FAULTS, drawn


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
