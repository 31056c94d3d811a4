"""`failback --done` begins only once the way back was cut over, as the ledger of that flow says on the source."""

from __future__ import annotations

import pytest

from sinks.failover import cut_reader
from sinks.failover.commands import cutover, failover, unfence
from sinks.failover.failing_back import failback, resume
from sinks.failover.journal import Journal
from sinks.failover.predicted_loss import ANY_LOSS
from sinks.failover.unreplicated import Unreplicated
from sinks.ledger.audit import Audit
from sinks.ledger.failover_record import Command, FailoverRecord, NotNow, State, Step
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from sinks.model.times import utc_text
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import NOON, put_topic
from tests.sinks.failover.scenes import ME, Died, Stage, mortal, stage

COPY = TopicPartition("a.x", 0)


def reversing() -> Stage:
    built = stage()
    cutover(built.scene())
    failback(built.scene(), export=None, discard=None, write_reverse=lambda: None)
    return built


def way_back_is(built: Stage, record: FailoverRecord) -> None:
    topic = built.world.settings.internal.reverse_ledger
    ledger = Ledger(topic, built.world.source, built.world.source, 1, lambda: NOON)
    ledger.put({(Entry.FAILOVER, ("state",)): record.to_text()})


@pytest.mark.parametrize("state", [State.PROMOTED, State.FAILED_OVER, State.INVALIDATED, State.REVERSING])
def test_flow_mirrors_again_once_the_way_back_has_taken_over(state: State) -> None:
    built = reversing()
    way_back_is(built, FailoverRecord(state, ended_at=built.record().ended_at))
    assert resume(built.scene()).state is State.MIRRORING


def test_way_back_that_was_cut_over_before_this_one_was_led_through_is_none() -> None:
    built = reversing()
    way_back_is(built, FailoverRecord(State.PROMOTED, ended_at="2020-01-01T00:00:00Z"))
    with pytest.raises(NotNow, match=r"from an earlier failover: b still leads.*--yes PROMOTED"):
        resume(built.scene())
    assert resume(built.scene(), typed="PROMOTED").state is State.MIRRORING


@pytest.mark.parametrize(
    "record",
    [
        FailoverRecord(),
        FailoverRecord(State.DRAINED),
        FailoverRecord(State.DRAINED, Command.PROMOTE),
        FailoverRecord(State.FAILING_OVER, Command.FAIL_OVER),
    ],
)
def test_flow_whose_target_still_leads_does_not_mirror_again_unless_that_state_is_typed_back(
    record: FailoverRecord,
) -> None:
    built = reversing()
    way_back_is(built, record)
    fenced = set(built.world.source_acls.bindings)
    for typed in (None, "unknown", "PROMOTED"):
        with pytest.raises(NotNow, match=f"b->a is {record.state}.*--yes {record.state}"):
            resume(built.scene(), typed=typed)
    assert (built.record().state, built.record().has_ended) == (State.REVERSING, True)
    assert built.world.source_acls.bindings == fenced
    assert resume(built.scene(), typed=str(record.state)).state is State.MIRRORING


def test_a_way_back_that_mirrors_is_told_as_that_and_with_both_ways_on() -> None:
    built = reversing()
    way_back_is(built, FailoverRecord())
    with pytest.raises(NotNow, match="b->a is MIRRORING: no cutover moved the lead back to a") as refused:
        resume(built.scene())
    assert "earlier time" not in str(refused.value)
    assert "run `lockstep cutover` with the file of b->a first" in str(refused.value)
    assert "If that says that there is nothing to cut over, or if clients write to a already" in str(refused.value)
    assert "confirm that with --yes MIRRORING" in str(refused.value)


def led_back() -> Stage:
    """A flow whose way back was cut over, and whose clients wrote three records to a copy since the takeover."""
    built = reversing()
    way_back_is(built, FailoverRecord(State.PROMOTED, ended_at=built.record().ended_at))
    for number in range(3):
        built.there.logs[COPY].append(b"new", b"%d" % number, timestamp=9000 + number)
    return built


def test_flow_does_not_mirror_again_over_records_that_mm2_never_copies_back() -> None:
    built = led_back()
    fenced = set(built.world.source_acls.bindings)
    for discard in (None, 2):
        with pytest.raises(NotNow, match=r"b has 3 records that never reached a: .*--export FOLDER.*--discard 3"):
            resume(built.scene(), discard=discard)
    assert "at most 3 records on b never reached a: a.x 3. MM2 does not copy these topics back" in built.said
    assert (built.record().state, built.world.source_acls.bindings) == (State.REVERSING, fenced)
    assert resume(built.scene(), discard=3).state is State.MIRRORING


def test_records_that_mm2_never_copies_back_can_be_exported() -> None:
    built, handed = led_back(), list[Unreplicated]()
    assert resume(built.scene(), export=handed.append).state is State.MIRRORING
    (found,) = handed
    assert [record.value for record in found.records[COPY]] == [b"0", b"1", b"2"]


@pytest.mark.parametrize(("after", "left"), [(False, 7), (True, 4)], ids=["before the fence is lifted", "after it"])
def test_records_that_came_to_copies_since_a_run_that_died_are_counted(after: bool, left: int) -> None:
    built = led_back()
    with pytest.raises(Died):
        resume(mortal(built.scene(), Step.LIFT_FENCE, after=after), discard=3)
    for number in range(4):
        built.there.logs[COPY].append(b"later", b"%d" % number, timestamp=9500 + number)
    with pytest.raises(NotNow, match=f"b has {left} records that never reached a"):
        resume(built.scene())
    assert resume(built.scene(), discard=left).state is State.MIRRORING


def test_what_mm2_copies_after_a_run_that_died_is_no_client_record() -> None:
    built = reversing()
    with pytest.raises(Died):
        resume(mortal(built.scene(), Step.LIFT_FENCE, after=True), typed="unknown")
    built.write("x", records=4)
    built.copy()
    assert resume(built.scene()).state is State.MIRRORING


def test_what_mm2_itself_copied_after_the_takeover_is_no_client_record() -> None:
    built = stage()
    cutover(built.scene())
    built.write("x", records=4, super_user=True)
    built.copy()
    failback(built.scene(), export=None, discard=0, write_reverse=lambda: None)
    assert resume(built.scene(), typed="unknown").state is State.MIRRORING


def test_records_on_a_copy_whose_end_was_not_told_at_the_takeover_are_counted() -> None:
    built = stage()
    built.there.leaderless = {COPY}
    failover(built.scene(answers=False), accept_loss=None, agreed=lambda prediction: None)
    built.there.leaderless = set()
    failback(built.scene(), export=None, discard=99, write_reverse=lambda: None)
    built.there.logs[COPY].append(b"new", b"client", timestamp=9000)
    with pytest.raises(NotNow, match="b has 1 record that never reached a"):
        resume(built.scene(), typed="unknown")


def test_records_in_a_partition_that_the_copy_got_since_the_takeover_are_counted() -> None:
    built = reversing()
    built.world.target.topics["a.y"].partitions = 2
    log = built.there.logs[TopicPartition("a.y", 1)] = MemoryLog()
    log.append(b"new", b"client", timestamp=9000)
    with pytest.raises(NotNow, match="b has 1 record that never reached a"):
        resume(built.scene(), typed="unknown")


@pytest.mark.parametrize("partitions", [None, 0, 1])
def test_records_on_a_copy_that_the_target_does_not_list_in_full_are_counted(partitions: int | None) -> None:
    built = led_back()
    built.there.logs[TopicPartition("a.x", 1)].append(b"new", b"client", timestamp=9000)
    if partitions is None:
        built.world.target.unseen.add("a.x")
    else:
        built.world.target.topics["a.x"].partitions = partitions
    with pytest.raises(NotNow, match="b has 4 records that never reached a"):
        resume(built.scene())


def test_records_on_a_copy_that_came_after_the_takeover_are_counted() -> None:
    built = led_back()
    put_topic(built.world.target, "a.new")
    log = built.there.logs[TopicPartition("a.new", 0)] = MemoryLog()
    log.append(b"new", b"client", timestamp=9000)
    with pytest.raises(NotNow, match="b has 4 records that never reached a"):
        resume(built.scene())


def test_records_of_a_copy_whose_topic_was_deleted_before_the_takeover_are_no_client_records() -> None:
    built = stage()
    put_topic(built.world.target, "a.old")
    log = built.there.logs[TopicPartition("a.old", 0)] = MemoryLog()
    log.append(b"old", b"kept for years", timestamp=9000)
    cutover(built.scene())
    failback(built.scene(), export=None, discard=None, write_reverse=lambda: None)
    assert resume(built.scene(), typed="unknown").state is State.MIRRORING


def test_a_new_copy_with_too_many_records_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    built = led_back()
    put_topic(built.world.target, "a.new")
    log = built.there.logs[TopicPartition("a.new", 0)] = MemoryLog()
    for number in range(9):
        log.append(b"new", b"%d" % number, timestamp=9000)
    monkeypatch.setattr(cut_reader, "CUT_LIMITS", cut_reader.CUT_LIMITS._replace(most=5))
    with pytest.raises(NotNow, match=r"for example a\.new-0: .*too many to hold at once.*--discard unknown"):
        resume(built.scene())
    assert resume(built.scene(), discard=ANY_LOSS).state is State.MIRRORING


def test_a_copy_that_was_deleted_after_the_takeover_has_no_records() -> None:
    built = led_back()
    del built.world.target.topics["a.x"]
    assert resume(built.scene()).state is State.MIRRORING


def test_a_copy_that_is_shorter_than_at_the_takeover_is_unknown() -> None:
    built = reversing()
    built.there.logs[COPY] = MemoryLog()
    with pytest.raises(NotNow, match=r"for example a\.x-0: it is shorter than at the takeover.*--discard unknown"):
        resume(built.scene(), typed="unknown")
    assert resume(built.scene(), typed="unknown", discard=ANY_LOSS).state is State.MIRRORING


def test_what_mm2_sends_again_after_the_takeover_is_no_client_record() -> None:
    built = reversing()
    log = built.there.logs[COPY]
    for record in log.records[-2:]:
        log.append(record.key, record.value, record.timestamp)
    assert resume(built.scene(), typed="unknown").state is State.MIRRORING


def test_copies_whose_end_is_unknown_keep_the_flow_from_mirroring_again() -> None:
    built = led_back()
    del built.there.logs[COPY]
    with pytest.raises(
        NotNow, match=r"for 1 partition of b it is unknown which records never reached a, for example a\.x-0"
    ):
        resume(built.scene(), discard=3)


@pytest.mark.parametrize("there", [b"damaged", None])
def test_where_nobody_can_tell_whether_the_source_leads_that_is_typed_back(there: bytes | None) -> None:
    built = reversing()
    if there is not None:
        topic = built.world.settings.internal.reverse_ledger
        way_back_is(built, FailoverRecord(State.PROMOTED))
        built.world.source.append_log(topic, [(b'["FAILOVER","state"]', there)])
    with pytest.raises(NotNow, match=r"it is unknown whether a leads again.*--yes unknown"):
        resume(built.scene())
    assert resume(built.scene(), typed="unknown").state is State.MIRRORING


def test_commands_after_the_way_back_do_not_make_it_one_of_an_earlier_time() -> None:
    built = reversing()
    built.now += 600
    way_back_is(built, FailoverRecord(State.PROMOTED, ended_at=utc_text(built.time())))
    built.now += 60
    unfence(built.scene())
    assert resume(built.scene()).state is State.MIRRORING


@pytest.mark.parametrize("commands", [(Command.UNFENCE,), (Command.INVALIDATE, Command.REVERSE)])
def test_what_is_made_up_for_after_an_earlier_way_back_is_no_way_back(commands: tuple[Command, ...]) -> None:
    built = stage()
    way_back_is(built, FailoverRecord(State.PROMOTED, ended_at=utc_text(built.time())))
    built.now += 86400
    cutover(built.scene())
    failback(built.scene(), export=None, discard=None, write_reverse=lambda: None)
    built.now += 600
    settings = built.world.settings
    ledger = Ledger(settings.internal.reverse_ledger, built.world.source, built.world.source, 1, built.time)
    audit = Audit(settings.internal.audit, built.world.source, 1, "me", built.time)
    for command in commands:
        journal = Journal(settings.flow.reverse, ledger, audit, ME, now=built.time)
        journal.begin(command)
        journal.run({step: (lambda: None) for step in Step})
    with pytest.raises(NotNow, match="from an earlier failover"):
        resume(built.scene())


def test_records_that_came_while_the_file_could_not_be_written_are_counted() -> None:
    built = stage()
    failover(built.scene(answers=True), accept_loss=ANY_LOSS, agreed=lambda prediction: None)

    def refuse() -> None:
        raise LockstepError("the file exists already")

    with pytest.raises(LockstepError, match="exists already"):
        failback(built.scene(), export=None, discard=None, write_reverse=refuse)
    built.write("x", 0, 7)
    with pytest.raises(NotNow, match="7 records"):
        failback(built.scene(), export=None, discard=None, write_reverse=lambda: None)
