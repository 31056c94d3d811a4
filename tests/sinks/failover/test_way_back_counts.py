"""What `failback` counts on the source behind the takeover, where offsets or equal records could hide some."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sinks.failover import cut_reader, predicted_loss
from sinks.failover.commands import cutover, failover
from sinks.failover.uncopied_records import Arrival, arrivals_at_takeover
from sinks.failover.unreplicated import SHORTER, unreplicated
from sinks.kafka.ports.record_reader import Stamp
from sinks.ledger.failover_record import State
from sinks.ledger.kept_divergences import divergences
from streaming.mm2.records import TopicPartition
from tests.memory.memory_records import MemoryLog
from tests.sinks.failover.scenes import Stage, stage

Y0, COPY = TopicPartition("y", 0), TopicPartition("a.y", 0)


def failed_over(built: Stage, loss: int) -> Stage:
    """While the source answers."""
    built.mirrors = False
    failover(built.scene(answers=True), accept_loss=loss, agreed=lambda prediction: None)
    return built


def purged(built: Stage, records: int = 1) -> Stage:
    """Clients write to the copy, whose retention deletes all that it had at the takeover."""
    copy = built.there.logs[COPY]
    end = copy.end
    for number in range(records):
        copy.append(b"client", b"%d" % number, 9000)
    copy.cut(end)
    return built


def values(built: Stage) -> list[bytes | None]:
    """Of the records that only the source has."""
    return [one.value for records in unreplicated(built.scene()).records.values() for one in records]


@pytest.mark.parametrize("offsets", [1, 40])
def test_markers_hide_no_lost_record_where_the_copys_retention_passed_the_takeover(offsets: int) -> None:
    built = stage()
    for number in range(5):
        built.here.logs[Y0].append(b"t", b"tx%d" % number, timestamp=5000 + number).skip(offsets)
    purged(failed_over(built, 5))
    assert values(built) == [b"tx%d" % number for number in range(5)]


def test_records_that_came_since_the_takeover_are_counted_behind_the_lost_ones() -> None:
    built = stage()
    built.here.logs[Y0].append(b"t", b"lost", timestamp=5000).skip()
    purged(failed_over(built, 1))
    built.here.logs[Y0].append(b"t", b"late", timestamp=9500)
    assert values(built) == [b"lost", b"late"]


def test_no_copied_record_is_counted_where_the_copys_retention_passed_the_takeover() -> None:
    built = stage()
    built.here.logs[Y0].skip(3)
    assert values(purged(failed_over(built, 0))) == []


def test_records_of_clients_are_not_read_where_the_source_got_none(monkeypatch: pytest.MonkeyPatch) -> None:
    built = purged(failed_over(stage(), 0), records=9)
    monkeypatch.setattr(cut_reader, "CUT_LIMITS", cut_reader.CUT_LIMITS._replace(most=5))
    assert values(built) == []


def test_what_a_shorter_source_alone_has_is_unknown_where_the_copys_retention_passed_the_takeover() -> None:
    built = purged(failed_over(stage(), 0))
    log = built.here.logs[Y0] = MemoryLog()
    log.append(b"new", b"topic", 9500)
    assert unreplicated(built.scene()).problems == {Y0: SHORTER}


def test_a_source_that_does_not_tell_its_end_is_unknown_where_the_copys_retention_passed_the_takeover() -> None:
    built = purged(failed_over(stage(), 0))
    del built.here.logs[Y0]
    assert list(unreplicated(built.scene()).problems) == [Y0]


def ticking() -> Stage:
    """All records of y are equal, and the target sets their timestamps."""
    built = stage()
    here, there = MemoryLog(), MemoryLog()
    built.here.logs[Y0], built.there.logs[COPY] = here, there
    for number in range(10):
        here.append(b"k", b"tick", timestamp=1000 + number)
        there.append(b"k", b"tick", timestamp=5000 + number, stamp=Stamp.APPEND)
    built.mirrors = False
    return built


@pytest.mark.parametrize("cut", [False, True], ids=["old records are there", "retention took the old records"])
def test_equal_records_that_came_after_the_takeover_are_not_taken_for_copied(cut: bool) -> None:
    built = ticking()
    built.choices = replace(built.choices, accepted=frozenset({"y"}))
    assert cutover(built.scene()).state is State.PROMOTED
    for number in range(5):
        built.here.logs[Y0].append(b"k", b"tick", timestamp=9000 + number)
    if cut:
        built.here.logs[Y0].cut(10)
    assert values(built) == [b"tick"] * 5


def test_lost_records_that_equal_the_last_copied_one_are_counted_once_retention_took_that_one() -> None:
    built = stage()
    for number in range(6):
        built.here.logs[Y0].append(b"k", b"tick", timestamp=5000)
        if not number:
            built.copy()
    failed_over(built, 5)
    built.here.logs[Y0].cut(11)
    assert values(built) == [b"tick"] * 5


def test_records_that_came_while_the_loss_was_counted_are_not_taken_for_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built = stage()

    def counted(*given: object) -> dict[TopicPartition, Arrival]:
        found = arrivals_at_takeover(*given)  # type: ignore[arg-type]  # handed on as they are
        built.write("y")
        return found

    monkeypatch.setattr(predicted_loss, "arrivals_at_takeover", counted)
    purged(failed_over(built, 0))
    assert list(divergences(built.ledger())["y"].lost) == [1]
    assert values(built) == [b"10", b"11"]
