"""After the first comparison of all each topic is compared once more, in turns."""

from __future__ import annotations

from sinks.flow_settings import Pace
from sinks.kinds.topics.second_comparison import AT_ONCE, IN_TURN, WITH_ALL, SecondComparison
from sinks.model.changes import Kind
from tests.sinks.builders import World, flow_settings, put_topic

MANY = [f"t{number:04}" for number in range(2 * AT_ONCE + 1)]


def owed(topics: list[str]) -> SecondComparison:
    built = SecondComparison()
    built.owe(topics)
    return built


def test_every_topic_has_one_turn_and_no_turn_has_too_many() -> None:
    built = owed(MANY)
    turns = [built.turn((), everything=False) for _ in range(3)]
    assert [len(turn) for turn in turns] == [AT_ONCE, AT_ONCE, 1]
    assert set().union(*turns) == set(MANY)
    assert not built.is_owed


def test_more_have_their_turn_than_are_owed_one_anew_where_only_full_comparisons_take_any() -> None:
    many = [f"t{number:04}" for number in range(3 * WITH_ALL)]
    built, waiting, rounds = owed(many), {*many}, 0
    while len(turn := built.turn((), everything=True)) > IN_TURN:
        waiting -= turn
        built.owe_some(many)
        rounds += 1
    assert WITH_ALL > AT_ONCE > IN_TURN
    assert waiting == set()
    assert rounds <= len(many) / (WITH_ALL - IN_TURN) + 1


def test_topic_that_was_not_compared_once_yet_keeps_its_turn() -> None:
    built = owed(["x", "y"])
    assert built.turn({"x"}, everything=False) == {"y"}
    assert built.is_owed
    assert built.turn((), everything=False) == {"x"}


def test_topic_that_is_gone_is_not_waited_for() -> None:
    built = owed(["x", "y"])
    assert built.without(["y"]) == {"x"}
    assert built.turn((), everything=False) == {"y"}
    assert not built.is_owed


def test_topics_that_are_owed_one_again_and_again_keep_no_other_from_its_turn() -> None:
    built, first = owed(MANY), MANY[:AT_ONCE]
    turns = set[str]()
    for _ in range(4):
        turns |= built.turn((), everything=False)
        built.owe(first)
    assert turns == set(MANY)


def test_with_each_full_comparison_the_next_few_are_owed_one_until_all_were_and_then_the_first_again() -> None:
    built, topics = SecondComparison(), MANY[: 2 * IN_TURN + 1]
    turns = []
    for _ in range(4):
        built.owe_some(topics)
        turns.append(built.turn((), everything=False))
    assert [len(turn) for turn in turns] == [IN_TURN, IN_TURN, 1, IN_TURN]
    assert set().union(*turns[:3]) == set(topics)
    assert turns[3] == turns[0]


def test_no_pass_is_due_at_once_for_topics_whose_kind_rests() -> None:
    world = World(flow_settings(pace=Pace(observe_rate=0, intervals={Kind.TOPIC_CONFIG: 60.0})))
    put_topic(world.source, "x")
    world.run_pass()
    assert world.run_pass().due > world.clock.now


def test_without_topics_nothing_is_owed() -> None:
    built = SecondComparison()
    built.owe_some(())
    assert not built.is_owed


def test_topics_that_come_and_go_keep_no_other_from_its_turn() -> None:
    lasting = MANY[: 3 * IN_TURN]
    built, turns = SecondComparison(), set[str]()
    for number in range(40):
        built.owe_some([*lasting, *(f"z{number}-{one:03}" for one in range(IN_TURN))])
        turn = built.turn((), everything=True)
        turns |= turn if number >= 20 else set()
    assert set(lasting) <= turns
