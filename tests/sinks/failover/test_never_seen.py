"""On the way back, what was never seen before the failover counts as not copied unless its copy tells otherwise."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sinks.failover.commands import failover
from sinks.failover.failing_back import failback
from sinks.failover.record_matching import ReadLimits
from sinks.failover.unreplicated import Unreplicated
from sinks.ledger.failover_record import FailoverRecord, NotNow, State
from sinks.ledger.kept_divergences import divergences
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import put_topic
from tests.sinks.failover.scenes import Stage, look, stage

Setting = Callable[[], Stage]


def nothing_kept() -> Stage:
    """No job ever kept the ends of the source."""
    built = stage()
    built.mirrors = False
    built.write("y", 0, 5)
    return built


def a_new_topic() -> Stage:
    """Made after the job saw the source last."""
    return grown("z", 0)


def a_new_partition() -> Stage:
    """Added after the job saw the source last."""
    return grown("y", 1)


def one_that_goes_on() -> Stage:
    """Seen before, and written since."""
    built = seen()
    built.write("y", 0, 5)
    return built


def seen() -> Stage:
    """The job saw the source last, and nothing is copied any more."""
    built = stage()
    look(built, 1000.0)
    built.mirrors = False
    return built


def grown(topic: str, partition: int) -> Stage:
    """Then this partition came, with records."""
    built = seen()
    put_topic(built.world.source, topic)
    built.world.source.topics[topic].partitions = partition + 1
    built.here.logs[TopicPartition(topic, partition)] = MemoryLog()
    built.write(topic, partition, 5)
    return built


def answering(built: Stage, answers: bool) -> None:
    for one in (built.world.source, built.world.source_acls, built.here):
        one.reachable = answers


def taken_over(built: Stage) -> Stage:
    answering(built, False)
    failover(built.scene(answers=False), accept_loss=None, agreed=lambda found: None)
    answering(built, True)
    return built


def led_back(built: Stage, handed: list[Unreplicated] | None = None) -> FailoverRecord:
    export = None if handed is None else handed.append
    return failback(built.scene(), export=export, discard=None, write_reverse=lambda: None)


@pytest.mark.parametrize("setting", [nothing_kept, a_new_topic, a_new_partition])
def test_records_that_nobody_had_seen_before_the_failover_are_counted_on_the_way_back(setting: Setting) -> None:
    built, handed = taken_over(setting()), list[Unreplicated]()
    with pytest.raises(NotNow, match="has 5 records that never reached b"):
        led_back(built)
    assert led_back(built, handed).state is State.REVERSING
    assert handed[0].count == 5


def test_where_copies_end_is_kept_although_no_job_ever_kept_the_ends_of_the_source() -> None:
    built = taken_over(nothing_kept())
    assert {topic: (list(one.ends), list(one.known)) for topic, one in divergences(built.ledger()).items()} == {
        "x": ([10, 10], [-1, -1]),
        "y": ([10], [-1]),
    }


def test_what_clients_wrote_behind_a_copy_does_not_hide_what_the_source_alone_has() -> None:
    built = taken_over(nothing_kept())
    for number in range(9):
        built.there.logs[TopicPartition("a.y", 0)].append(b"a client's", b"%d" % number, 99_999)
    with pytest.raises(NotNow, match="has 5 records that never reached b"):
        led_back(built)


@pytest.mark.parametrize(("clients", "copied", "left"), [(0, 0, 5), (0, 3, 2), (4, 3, 2), (4, 5, 0)])
def test_copy_that_came_after_the_takeover_tells_what_of_it_was_copied(clients: int, copied: int, left: int) -> None:
    built = taken_over(a_new_topic())
    put_topic(built.world.target, "a.z")
    log = built.there.logs[TopicPartition("a.z", 0)] = MemoryLog()
    for record in built.here.logs[TopicPartition("z", 0)].records[:copied]:
        log.append(record.key, record.value, record.timestamp)
    for number in range(clients):
        log.append(b"a client's", b"%d" % number, 99_999)
    handed = list[Unreplicated]()
    assert led_back(built, handed).state is State.REVERSING
    assert sum(one.count for one in handed) == left


def test_topic_of_the_target_alone_does_not_stand_in_the_way_back() -> None:
    built = taken_over(stage_with_a_strangers_topic())
    assert led_back(built).state is State.REVERSING


def stage_with_a_strangers_topic() -> Stage:
    built = stage()
    put_topic(built.world.target, "a.gone")
    built.there.logs[TopicPartition("a.gone", 0)] = MemoryLog()
    return built


def test_topic_whose_partitions_the_source_does_not_list_is_not_taken_for_copied() -> None:
    built = taken_over(stage())
    put_topic(built.world.source, "z", 1)
    built.world.source.topics["z"].partitions = 0
    with pytest.raises(NotNow, match="for example z"):
        led_back(built)


@pytest.mark.parametrize(
    ("setting", "advice"),
    [(a_new_topic, r"add it to topics\.exclude"), (one_that_goes_on, r"kafka-delete-records\.sh")],
)
def test_partition_with_too_many_records_to_hold_is_named_with_what_helps(
    setting: Setting, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = taken_over(setting())
    monkeypatch.setattr("sinks.failover.cut_reader.CUT_LIMITS", ReadLimits(most=4, seconds=300.0))
    with pytest.raises(LockstepError, match=rf"[zy]-0 on a has more than 4 records to read.*{advice}"):
        led_back(built)
