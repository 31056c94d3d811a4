"""The running job's rounds: what they find, in which order, within which bounds."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.kinds.offsets.exact_runs import Checked, Stretch, remember
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_reading import MirrorReading
from sinks.kinds.offsets.mirror_records import MirrorTopics
from sinks.ledger.ledger_entries import Entry
from streaming.mm2.records import TopicPartition
from tests.sinks.verify.mirrored_log import MirroredLog, Record, mixes
from tests.sinks.verify.verified_world import NOON, ROUND, VerifiedWorld, counted, records


def end_of(log: MirroredLog) -> int:
    return max((one.offset + 1 for one in log.target), default=log.starts[1])


def found_by_rounds(logs: list[MirroredLog], seed: int) -> VerifiedWorld:
    """Some targets were half as long when the job began; its rounds go on until nothing is new."""
    dice = random.Random(seed)
    made = VerifiedWorld(rate=64 * dice.choice((20, 200)), least=dice.choice((7, 1000)))
    for log in logs:
        half = log.target[len(log.target) // 2].offset if log.target and dice.random() < 0.5 else end_of(log)
        made.put_log(log, target_end=half)
        made.sync(f"t{log.number}", *[pair for pair in log.syncs if pair[1] < half])
    made.run(3)
    for log in logs:
        made.put_log(log)
        made.sync(f"t{log.number}", *log.syncs)
    made.run(400)
    return made


def check(logs: list[MirroredLog], seed: int) -> None:
    made = found_by_rounds(logs, seed)
    for log in logs:
        assert made.differences(f"t{log.number}") == counted(log.expected), log.number


def is_distinct(log: MirroredLog) -> bool:
    """While one of several equal records waits, the records do not show which one was copied."""
    return len({one.without_place() for one in log.source}) == len(log.source)


def test_rounds_find_every_fault_of_two_hundred_mixes_and_no_other() -> None:
    check(mixes(13), 13)


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_rounds_find_every_fault_of_any_mix_and_no_other(seed: int) -> None:
    check([log for log in mixes(seed, 10) if is_distinct(log)], seed)


def moved(found: list[Record], by: int) -> list[Record]:
    """The same records at other offsets."""
    return [replace(one, offset=one.offset + by) for one in found]


def verdict(made: VerifiedWorld, topic: str = "orders") -> str:
    return made.progress.partitions[TopicPartition(topic, 0)].verdict(made.now)


def test_what_arrived_last_is_compared_before_what_was_there() -> None:
    made = VerifiedWorld(rate=64 * 50, least=100)
    made.put("orders", records(10_000), records(10_000))
    made.sync("orders", (0, 0), (9_950, 9_950))
    made.run()
    status = made.progress.status(made.now)
    assert status.through is not None
    assert status.through.timestamp() == NOON + ROUND
    assert (status.history or 0) < 0.2
    made.run(40)
    assert made.progress.status(made.now).history == 1.0


def test_no_more_is_read_than_the_rate_allows() -> None:
    made = VerifiedWorld(rate=64 * 10, least=10)
    made.put("orders", records(10_000), records(10_000))
    made.sync("orders", (0, 0), (9_990, 9_990))
    made.run(20)
    # What was saved up when it began, and 20 rounds.
    assert made.progress.records <= 10 * (2 + 20) * ROUND + 10
    assert made.progress.records >= 10 * 15 * ROUND


def test_a_partition_that_stands_still_while_its_source_moves_is_stalled_within_a_minute() -> None:
    made = VerifiedWorld()
    made.put("orders", records(100), records(100))
    made.sync("orders", (90, 90))
    made.run(2)
    for number in range(1, 6):
        made.put("orders", records(100 + number), records(100))
        made.run()
    assert verdict(made) == "STALLED"
    assert made.progress.status(made.now).stalled == ("orders-0",)
    made.put("orders", records(105), records(105))
    made.run()
    assert verdict(made) == "VERIFIED"


def test_a_partition_that_is_compared_slowly_is_not_stalled() -> None:
    made = VerifiedWorld(rate=64, least=10, cautious=20)
    shifted = [*records(100), *records(200, first=110)]
    made.put("orders", shifted, [*shifted[:100], *moved(shifted[100:], -10)])
    made.sync("orders", (0, 0))
    for _ in range(50):
        made.run()
        assert verdict(made) != "STALLED"


def test_offsets_without_a_record_do_not_stall_a_partition() -> None:
    """A transaction was aborted: the source's end moved, and there is nothing to copy."""
    made = VerifiedWorld()
    made.put("orders", records(100), records(100))
    made.sync("orders", (90, 90))
    made.run(2)
    made.put("orders", records(100), records(100), ends=(110, 100))
    made.run(8)
    assert verdict(made) == "VERIFIED"


def test_records_that_wait_are_not_read_again_and_again() -> None:
    made = VerifiedWorld()
    made.put("orders", records(500), records(100))
    made.sync("orders", (90, 90))
    made.run(3)
    before = made.budget.level(made.now)
    made.run()
    assert made.budget.level(made.now) >= before


SHIFTED = [*records(3_000), *records(3_000, first=3_010)]
"""A gap of the source shifts the distance in the middle of a window that is too long."""


def left_out() -> VerifiedWorld:
    """With a window that can neither be sliced nor be read at once."""
    made = VerifiedWorld(rate=64, least=10, cautious=20)
    made.world.ledger().put({(Entry.PAUSED, ("acl",)): ""})
    made.restart()
    made.put("orders", SHIFTED, [*SHIFTED[:3_000], *moved(SHIFTED[3_000:], -10)])
    made.sync("orders", (0, 0), (6_000, 5_990))
    made.run(5)
    return made


def test_what_can_neither_be_sliced_nor_read_at_once_is_said() -> None:
    made = left_out()
    assert verdict(made) == "UNVERIFIABLE"
    assert "`lockstep verify` compares them" in str(made.progress.status(made.now).reason)
    assert made.differences("orders") == {}


def test_what_was_too_large_is_forgotten_once_the_source_has_deleted_it() -> None:
    made = left_out()
    made.put("orders", SHIFTED[5_995:], moved(SHIFTED[5_995:], -10), starts=(6_005, 5_995))
    made.run(5)
    assert (verdict(made), made.progress.status(made.now).reason) == ("VERIFIED", None)


def test_what_was_too_large_is_forgotten_once_a_command_has_verified_it() -> None:
    made = left_out()
    world, memory, internal = made.world, OffsetMemory(), made.world.settings.internal
    MirrorReading(memory, MirrorTopics(internal.offset_syncs, world.source, internal.checkpoints, world.target)).load(
        world.ledger()
    )
    ids = world.source.topic_ids(["orders"]), world.target.topic_ids(["a.orders"])
    memory.recognize({"orders": "a.orders"}, *ids)
    compared = {TopicPartition("orders", 0): [Checked(Stretch(0, 6_000), whole=True)]}
    remember(world.ledger(), [], memory.histories.exact, memory.histories.position, compared)
    made.restart()
    made.run(2)
    assert (verdict(made), made.progress.status(made.now).reason) == ("VERIFIED", None)


def test_what_was_too_large_is_forgotten_once_later_syncs_cut_it_into_less() -> None:
    made = VerifiedWorld(rate=64, least=10, cautious=20)
    shifted = [*records(100), *records(200, first=110)]
    made.put("orders", shifted, [*shifted[:100], *moved(shifted[100:], -10)])
    made.sync("orders", (0, 0))
    made.run(50)
    assert verdict(made) == "UNVERIFIABLE"
    made.sync("orders", *((at, at - 10) for at in range(110, 310, 40)))
    made.run(50)
    assert verdict(made) == "VERIFIED"


def test_a_target_that_lost_its_tail_is_compared_from_its_start_once_more() -> None:
    made = VerifiedWorld()
    made.put("orders", records(100), records(100))
    made.sync("orders", (0, 0), (50, 50))
    made.run(3)
    made.put("orders", records(100), records(80))
    made.run(2)
    made.put("orders", records(110), [*records(80), *moved(records(10, first=100), -20)])
    made.run(3)
    assert made.differences("orders") == {"MISSING": 20}


def test_a_difference_is_forgotten_when_both_sides_have_deleted_it() -> None:
    made = VerifiedWorld()
    target = [*records(20), *moved(records(79, first=21), -1)]
    made.put("orders", records(100), target)
    made.sync("orders", (0, 0), (10, 10), (50, 49))
    made.run(3)
    assert made.differences("orders") == {"MISSING": 1}
    made.put("orders", records(50, first=50), target[49:], starts=(50, 49))
    made.run()
    assert made.differences("orders") == {}


def test_where_the_target_has_deleted_all_it_had_nothing_is_verified_until_something_is_compared() -> None:
    for syncs in ((), ((0, 0), (99, 99)), ((100, 100),)):
        made = VerifiedWorld()
        made.put("orders", records(100), [], starts=(0, 100))
        made.sync("orders", *syncs)
        made.run(3)
        assert verdict(made) == "UNVERIFIABLE"
        made.put("orders", records(120), records(20, first=100), starts=(0, 100))
        made.sync("orders", (110, 110))
        made.run(3)
        assert verdict(made) == "VERIFIED"
