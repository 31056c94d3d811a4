"""One process leads a flow: a lease in its ledger, on a cluster in memory, with time that passes by hand."""

from __future__ import annotations

import pytest

from sinks.faults import ClusterUnreachable, NotLeading
from sinks.ledger.failover_record import FailoverRecord, State
from sinks.ledger.lease import EVIDENCE, MARGIN, RESERVED_SECONDS
from sinks.ledger.ledger_entries import FAILOVER_STATE, Entry, entry_record
from sinks.ledger.seal import Seal
from sinks.model.changes import Kind
from tests.sinks.builders import FLOW, NOON
from tests.sinks.engine.leases import SECONDS, TOPIC, Processes, SlowCluster


@pytest.fixture
def processes() -> Processes:
    return Processes()


def test_first_process_that_claims_leads_and_a_second_one_is_told_who(processes: Processes) -> None:
    first, second = processes.leading("first"), processes.lease("second")
    first.check()
    with pytest.raises(NotLeading, match="first on here"):
        processes.claim(second)
    with pytest.raises(NotLeading):
        second.check()
    assert (str(first.leader), first.leader and first.leader.here) == (str(second.leader), True)
    assert second.leader is not None and not second.leader.here


def test_lease_that_is_renewed_lasts(processes: Processes) -> None:
    first, second = processes.leading("first"), processes.lease("second")
    for _ in range(20):
        processes.pass_time(9.0, first)
        first.check()
        with pytest.raises(NotLeading):
            second.leads() or processes.claim(second)


def test_process_that_vanishes_is_followed_once_its_lease_is_over(processes: Processes) -> None:
    processes.leading("first")
    second = processes.lease("second")
    with pytest.raises(NotLeading, match="was not heard from yet"):
        processes.claim(second)
    processes.now += SECONDS + MARGIN - 0.1
    with pytest.raises(NotLeading):
        second.leads()
    processes.now += 0.1
    assert not second.leads()
    processes.claim(second)
    second.check()


def test_command_that_waits_for_the_lease_of_a_vanished_process_says_so_once(
    processes: Processes, caplog: pytest.LogCaptureFixture
) -> None:
    processes.leading("job")
    processes.claim(processes.lease("command", patience=90))
    told = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    (line,) = told
    assert line.startswith("job on here (since ")
    assert line.endswith(") led a->b and was not heard from; waiting until its lease ends")


def test_command_that_is_handed_the_lead_at_once_says_nothing(
    processes: Processes, caplog: pytest.LogCaptureFixture
) -> None:
    job = processes.leading("job")
    processes.claim(processes.lease("command", patience=90, meanwhile=job.tend))
    assert not [one for one in caplog.records if one.levelname == "WARNING"]


def test_process_that_ends_is_followed_at_once(processes: Processes) -> None:
    first, second = processes.leading("first"), processes.lease("second")
    with pytest.raises(NotLeading):
        processes.claim(second)
    first.close()
    assert not second.leads()
    processes.claim(second)
    second.check()


def test_process_that_was_stopped_beyond_its_lease_may_not_write_when_it_wakes(processes: Processes) -> None:
    """Before it has read that another leads, its evidence is too old; afterwards it knows."""
    first, second = processes.leading("first"), processes.lease("second")
    with pytest.raises(NotLeading):
        processes.claim(second)
    processes.now += SECONDS + MARGIN
    processes.claim(second)
    with pytest.raises(ClusterUnreachable, match="not confirmed"):
        first.check()
    with pytest.raises(NotLeading, match="second on here"):
        first.prove()
    with pytest.raises(NotLeading):
        first.check()
    second.tend()
    second.check()


def test_write_may_not_begin_when_its_request_could_outlast_the_lease(processes: Processes) -> None:
    first = processes.leading("first")
    processes.now += EVIDENCE - 0.1
    first.check()
    processes.now += 0.1
    with pytest.raises(ClusterUnreachable):
        first.check()
    first.prove()
    first.check()


def test_target_that_was_away_leaves_the_one_that_led_in_the_lead(processes: Processes) -> None:
    first = processes.leading("first")
    processes.target.reachable = False
    processes.now += 3600
    with pytest.raises(ClusterUnreachable):
        first.tend()
    with pytest.raises(ClusterUnreachable):
        first.check()
    processes.target.reachable = True
    assert first.leads()
    first.prove()


def test_whoever_asks_is_handed_the_lead_between_two_passes_and_gives_it_back(processes: Processes) -> None:
    job = processes.leading("job")
    command = processes.lease("command", patience=60, meanwhile=job.tend)
    with job.hold():
        started = processes.now
        with pytest.raises(NotLeading, match="job on here"):
            processes.claim(command)
        assert processes.now - started >= 60
        job.check()
    processes.claim(command)
    command.check()
    with pytest.raises(NotLeading, match="command on here"):
        job.leads()
    command.close()
    assert not job.leads()
    processes.claim(job)
    job.check()


def test_lead_that_was_handed_over_is_the_other_s_alone_for_a_while(processes: Processes) -> None:
    job, standby = processes.leading("job"), processes.lease("standby")
    with pytest.raises(NotLeading):
        processes.claim(standby)
    asks = processes.lease("asks", patience=1)
    with pytest.raises(NotLeading):
        processes.claim(asks)
    job.tend()
    for one in (job, standby):
        with pytest.raises(NotLeading, match="about to lead"):
            one.leads()
    processes.now += RESERVED_SECONDS
    assert not standby.leads()


def test_process_that_ended_its_lease_needs_a_claim_to_lead_again(processes: Processes) -> None:
    """What it knew is not to be trusted then, even if no other process led meanwhile."""
    first = processes.leading("first")
    first.close()
    with pytest.raises(NotLeading):
        first.check()


def test_claim_that_was_given_up_and_arrives_late_lets_nothing_be_written_before_the_next_one() -> None:
    """What the process knew before it led may be out of date; a claim makes it read the ledger anew."""
    target = SlowCluster("b", "id-of-b")
    processes = Processes(target)
    first = processes.lease("first")
    processes.ledger().create()
    target.holds_back = 1
    with pytest.raises(ClusterUnreachable):
        processes.claim(first)
    topic, records = target.late.pop()
    target.append_log(topic, records)
    assert not first.leads()
    with pytest.raises(NotLeading):
        first.check()
    processes.claim(first)
    first.check()


def test_release_that_somebody_wrote_again_gives_a_process_that_starts_no_lead() -> None:
    processes = Processes(secret="a secret of sixteen or more")
    processes.leading("before").close()
    log = processes.target.topics[TOPIC].records
    release = log[-1]
    first = processes.leading("first")
    processes.pass_time(60.0, first)
    log.append(release)
    second = processes.lease("second")
    with pytest.raises(NotLeading, match="first on here"):
        processes.claim(second)
    processes.pass_time(60.0, first, second)
    first.prove()
    with pytest.raises(NotLeading):
        second.leads()


def test_records_that_somebody_wrote_again_make_nobody_lead_twice() -> None:
    processes = Processes(secret="a secret of sixteen or more")
    processes.leading("before").close()
    job = processes.leading("job")
    log = processes.target.topics[TOPIC].records
    written = log[-2:]
    command = processes.lease("command", patience=30, meanwhile=job.tend)
    processes.claim(command)
    log.extend(written)
    processes.pass_time(60.0, job, command)
    command.prove()
    with pytest.raises(NotLeading):
        job.leads()


def test_whoever_holds_the_lead_twice_keeps_it_until_both_are_over(processes: Processes) -> None:
    command = processes.leading("command")
    job = processes.lease("job", patience=1)
    with command.hold():
        with command.hold():
            pass
        with pytest.raises(NotLeading):
            processes.claim(job)
        command.tend()
        command.check()
    command.tend()
    with pytest.raises(NotLeading):
        command.check()


def test_ledger_takes_what_the_one_that_leads_writes_and_nothing_of_another(processes: Processes) -> None:
    first, second = processes.leading("first"), processes.lease("second")
    with pytest.raises(NotLeading):
        processes.claim(second)
    processes.ledger(first).put({(Entry.PAUSED, ("acl",)): ""})
    with pytest.raises(NotLeading):
        processes.ledger(second).put({(Entry.PAUSED, ("topic",)): ""})
    assert processes.ledger().paused() == {Kind.ACL}


def test_process_that_leads_hears_of_each_step_of_a_failover_with_its_next_read_and_of_nothing_else(
    processes: Processes,
) -> None:
    heard: list[float] = []
    job = processes.lease("job", on_failover=lambda: heard.append(processes.now))
    processes.claim(job)
    processes.ledger().put({(Entry.PAUSED, ("acl",)): ""})
    processes.pass_time(3.0, job)
    assert heard == []
    processes.ledger().put({FAILOVER_STATE: FailoverRecord(State.FAILED_OVER).to_text()})
    processes.pass_time(3.0, job)
    assert heard == [1003.5]


def test_process_that_leads_hears_of_no_failover_that_the_ledgers_secret_did_not_sign(processes: Processes) -> None:
    processes.secret = "s3cret"
    heard: list[float] = []
    job = processes.lease("job", on_failover=lambda: heard.append(processes.now))
    processes.claim(job)
    step = entry_record(FAILOVER_STATE, FailoverRecord(State.FAILED_OVER).to_text(), NOON)
    forged = Seal(FLOW.name, "another").wrap(*step, 7)
    processes.target.append_log(TOPIC, [step, (step[0], forged), (step[0], None), (step[0], b"no Avro")])
    processes.pass_time(3.0, job)
    assert heard == []


def test_step_of_a_failover_that_is_written_again_and_again_is_heard_once(processes: Processes) -> None:
    processes.secret = "s3cret"
    heard: list[float] = []
    job = processes.lease("job", on_failover=lambda: heard.append(processes.now))
    processes.claim(job)
    seal = Seal(FLOW.name, processes.secret)
    texts = [FailoverRecord(state).to_text() for state in (State.FENCED, State.FAILED_OVER)]
    steps = [entry_record(FAILOVER_STATE, text, NOON) for text in texts]
    signed = [(key, seal.wrap(key, value, at)) for at, (key, value) in enumerate(steps, 7)]
    processes.target.append_log(TOPIC, signed)
    processes.pass_time(1.0, job)
    for replayed in (*signed, *reversed(signed)):
        processes.target.append_log(TOPIC, [replayed])
        processes.pass_time(1.0, job)
    assert len(heard) == 1
