"""After the first comparison of all each key is compared once more, in turns."""

from __future__ import annotations

from collections.abc import Collection

from sinks.every_kind.kinds_agenda import AT_ONCE, IN_TURN, WITH_ALL, KeysToCompare
from sinks.flow_settings import Pace
from sinks.model.changes import Kind
from tests.sinks.builders import World, flow_settings, put_topic

MANY = [f"t{number:04}" for number in range(2 * AT_ONCE + 1)]


def started(keys: list[str]) -> KeysToCompare:
    """After the pass that compared all of them for the first time."""
    built = KeysToCompare()
    built.begin(keys, (), everything=True)
    built.differs(keys)
    built.all_polled(keys)
    compare(built)
    return built


def compare(built: KeysToCompare) -> set[str]:
    """Compares what is dirty, and says what that was."""
    dirty = set(built.dirty)
    built.compared(dirty, (), {}, 0.0)
    return dirty


def turn(built: KeysToCompare, there: Collection[str] = MANY, *, everything: bool = False) -> set[str]:
    """What a pass compares in which no poll finds anything."""
    built.begin(there, (), everything=everything)
    return compare(built)


def test_every_key_has_one_turn_and_no_turn_has_too_many() -> None:
    built = started(MANY)
    turns = [turn(built) for _ in range(3)]
    assert [len(one) for one in turns] == [AT_ONCE, AT_ONCE, 1]
    assert set().union(*turns) == set(MANY)
    assert not built.owed


def test_more_have_their_turn_than_are_owed_one_anew_where_only_full_comparisons_take_any() -> None:
    many = [f"t{number:04}" for number in range(3 * WITH_ALL)]
    built, waiting, rounds = started(many), {*many}, 0
    while len(compared := turn(built, many, everything=True)) > IN_TURN:
        waiting -= compared
        built.all_polled(many)
        rounds += 1
    assert WITH_ALL > AT_ONCE > IN_TURN
    assert waiting == set()
    assert rounds <= len(many) / (WITH_ALL - IN_TURN) + 1


def test_key_that_was_not_compared_once_yet_keeps_its_turn() -> None:
    built = started(["x", "y"])
    built.dirty.add("x")
    built.begin(["x", "y"], (), everything=False)
    assert (set(built.dirty), list(built.owed)) == ({"x", "y"}, ["x"])
    compare(built)
    assert turn(built, ["x", "y"]) == {"x"}


def test_key_that_is_gone_is_told_and_not_waited_for() -> None:
    built = started(["x", "y"])
    assert built.begin(["y"], (), everything=False) == {"x"}
    assert (built.dirty, built.owed) == ({"y"}, {})


def test_what_differs_is_compared_in_the_pass_after_its_first_comparison_too() -> None:
    built = started([])
    built.begin(["x"], (), everything=False)
    built.differs({"x"})
    # The first comparison came to nothing.
    built.begin(["x"], (), everything=False)
    assert [compare(built), turn(built, ["x"]), turn(built, ["x"])] == [{"x"}, {"x"}, set()]


def test_with_each_full_comparison_the_next_few_are_owed_one_until_all_were_and_then_the_first_again() -> None:
    built, keys = started([]), MANY[: 2 * IN_TURN + 1]
    turns = []
    for _ in range(4):
        built.all_polled(keys)
        turns.append(turn(built, keys))
    assert [len(one) for one in turns] == [IN_TURN, IN_TURN, 1, IN_TURN]
    assert set().union(*turns[:3]) == set(keys)
    assert turns[3] == turns[0]


def test_no_pass_is_due_at_once_for_topics_whose_kind_rests() -> None:
    world = World(flow_settings(pace=Pace(observe_rate=0, intervals={Kind.TOPIC_CONFIG: 60.0})))
    put_topic(world.source, "x")
    world.run_pass()
    assert world.run_pass().due > world.clock.now


def test_without_keys_nothing_is_owed() -> None:
    built = started([])
    built.all_polled(())
    assert not built.owed


def test_keys_that_come_and_go_keep_no_other_from_its_turn() -> None:
    lasting = MANY[: 3 * IN_TURN]
    built, turns = started([]), set[str]()
    for number in range(40):
        there = [*lasting, *(f"z{number}-{one:03}" for one in range(IN_TURN))]
        built.all_polled(there)
        compared = turn(built, there, everything=True)
        turns |= compared if number >= 20 else set()
    assert set(lasting) <= turns
