"""After the first comparison of all each topic is compared once more, in turns."""

from __future__ import annotations

from sinks.kinds.topics.second_comparison import AT_ONCE, IN_TURN, SecondComparison

MANY = [f"t{number:04}" for number in range(2 * AT_ONCE + 1)]


def owed(topics: list[str]) -> SecondComparison:
    built = SecondComparison()
    built.owe(topics)
    return built


def test_every_topic_has_one_turn_and_no_turn_has_more_than_a_request_describes() -> None:
    built = owed(MANY)
    turns = [built.turn(()) for _ in range(3)]
    assert [len(turn) for turn in turns] == [AT_ONCE, AT_ONCE, 1]
    assert set().union(*turns) == set(MANY)
    assert not built.is_owed


def test_topic_that_was_not_compared_once_yet_keeps_its_turn() -> None:
    built = owed(["x", "y"])
    assert built.turn({"x"}) == {"y"}
    assert built.is_owed
    assert built.turn(()) == {"x"}


def test_topic_that_is_gone_is_not_waited_for() -> None:
    built = owed(["x", "y"])
    assert built.without(["y"]) == {"x"}
    assert built.turn(()) == {"y"}
    assert not built.is_owed


def test_topics_that_are_owed_one_again_and_again_keep_no_other_from_its_turn() -> None:
    built, first = owed(MANY), MANY[:AT_ONCE]
    turns = set[str]()
    for _ in range(4):
        turns |= built.turn(())
        built.owe(first)
    assert turns == set(MANY)


def test_with_each_full_comparison_the_next_few_are_owed_one_until_all_were_and_then_the_first_again() -> None:
    built, topics = SecondComparison(), MANY[: 2 * IN_TURN + 1]
    turns = []
    for _ in range(4):
        built.owe_some(topics)
        turns.append(built.turn(()))
    assert [len(turn) for turn in turns] == [IN_TURN, IN_TURN, 1, IN_TURN]
    assert set().union(*turns[:3]) == set(topics)
    assert turns[3] == turns[0]


def test_without_topics_nothing_is_owed() -> None:
    built = SecondComparison()
    built.owe_some(())
    assert not built.is_owed
