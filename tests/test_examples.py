"""`make fuzz` tries more than `make test`, also where a test says how many examples it wants."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.examples import multiply


def test_test_with_examples_of_its_own_tries_as_many_times_more() -> None:
    tried = []

    @settings(max_examples=3, database=None)
    @given(st.integers())
    def some(number: int) -> None:
        tried.append(number)

    multiply(some, None, 10)
    some()
    assert len(tried) == 30


def test_machine_with_examples_of_its_own_tries_as_many_times_more() -> None:
    class Counting(RuleBasedStateMachine):
        @rule()
        def step(self) -> None:
            """Nothing."""

    case = Counting.TestCase
    case.settings = settings(max_examples=3)
    multiply(None, case, 10)
    assert case.settings.max_examples == 30
