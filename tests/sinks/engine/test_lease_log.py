"""The rules of who leads, over records in the order in which all processes read them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sinks.ledger.lease import MARGIN, LeaseLog
from sinks.ledger.lease_records import Act, LeaseRecord, ReadRecord, decoded, encoded
from sinks.ledger.seal import Seal
from tests.sinks.builders import NOON

SECONDS = 25.0
SECRET = "a secret of sixteen or more"


def record(
    act: Act, holder: str, number: int, term: int, after: str | None = None, to: str | None = None
) -> ReadRecord:
    """What a process said."""
    found = LeaseRecord(act, holder, number, after, term, SECONDS, holder, "here", NOON, to)
    return ReadRecord(found.name, found)


def read(me: str, *records: ReadRecord, now: float = 0.0) -> LeaseLog:
    """What a process knows that read all of these; its own it wrote a second before."""
    log = LeaseLog(me, SECONDS)
    for one in records:
        mine = one.record is not None and one.record.holder == me
        log = log.taken(one, now, now - 1 if mine else None)
    return log


FIRST = record(Act.CLAIM, "x", 0, 1)
RENEWED = record(Act.RENEWAL, "x", 1, 1)


@pytest.mark.parametrize("me", ["x", "y", "z"])
def test_of_two_claims_after_the_same_record_the_first_counts(me: str) -> None:
    claims = [record(Act.CLAIM, name, 0, 2, after="x/0") for name in ("y", "z")]
    log = read(me, FIRST, *claims)
    assert log.leader == claims[0].record
    assert (log.mine is not None) == (me == "y")


def test_claim_does_not_count_when_the_one_that_leads_renewed_its_lease_in_the_meantime() -> None:
    claim = record(Act.CLAIM, "y", 0, 2, after="x/0")
    assert read("x", FIRST, RENEWED, claim).mine == 1
    assert read("y", FIRST, RENEWED, claim).mine is None


def test_claim_that_counts_ends_the_lead_of_the_one_before() -> None:
    claim = record(Act.CLAIM, "y", 0, 2, after="x/1")
    assert read("x", FIRST, RENEWED, claim).mine is None
    assert read("y", FIRST, RENEWED, claim).mine == 2


def test_renewal_of_one_that_lost_the_lead_changes_nothing() -> None:
    claim = record(Act.CLAIM, "y", 0, 2, after="x/0")
    assert read("y", FIRST, claim, RENEWED).mine == 2
    assert read("x", FIRST, claim, RENEWED).mine is None
    assert read("x", FIRST, claim, RENEWED).lasts(0.0) == 0.0


def test_whoever_slept_through_the_claim_learns_of_it_by_a_renewal() -> None:
    """Compaction leaves the newest record of a key alone."""
    assert read("x", FIRST, record(Act.RENEWAL, "y", 7, 2)).mine is None


def test_release_of_one_that_lost_the_lead_lets_nobody_claim() -> None:
    claim, late = record(Act.CLAIM, "y", 0, 2, after="x/0"), record(Act.RELEASE, "x", 1, 1)
    assert read("y", FIRST, claim, late).mine == 2
    assert not read("z", FIRST, claim, late).claimable(1.0)


def test_release_lets_everybody_claim_but_one_that_names_somebody_lets_only_that_one() -> None:
    ended, handed = record(Act.RELEASE, "x", 1, 1), record(Act.RELEASE, "x", 1, 1, to="z")
    assert read("y", FIRST, ended).claimable(0.0)
    assert not read("y", FIRST, handed).claimable(0.0)
    assert read("z", FIRST, handed).claimable(0.0)


def test_lease_lasts_from_when_its_record_was_begun_to_be_written() -> None:
    log = read("x", FIRST, now=10.0)
    assert log.lasts(9.0) == SECONDS
    assert log.lasts(9.0 + SECONDS) == 0.0


def test_silence_counts_from_when_the_newest_record_was_read_however_old_it_is() -> None:
    log = LeaseLog("y", SECONDS).begun(RENEWED, 100.0)
    assert not log.claimable(100.0 + SECONDS)
    assert log.claimable(100.0 + SECONDS + MARGIN)


def test_release_of_a_lower_term_that_is_the_newest_record_lets_nobody_claim_at_once() -> None:
    """Another client may have written it again, with the signature that it had."""
    again, led = record(Act.RELEASE, "x", 1, 1), record(Act.RENEWAL, "y", 7, 2).record
    assert led is not None
    log = LeaseLog("z", SECONDS).begun(again, 0.0, led)
    assert (log.leader, log.term, log.claimable(SECONDS)) == (led, 2, False)
    assert log.claimable(SECONDS + MARGIN)


def test_process_that_begins_behind_a_request_waits_for_the_lease_of_the_one_that_leads() -> None:
    found = RENEWED.record
    assert found is not None
    log = LeaseLog("y", SECONDS).begun(record(Act.REQUEST, "z", 0, 1), 0.0, replace(found, seconds=60.0))
    assert not log.claimable(60.0)
    assert log.claimable(60.0 + MARGIN)


def test_claim_that_is_written_again_leads_to_nothing() -> None:
    """Its term is not above the highest, though the record before it be written again as well."""
    asked, claimed = record(Act.REQUEST, "old", 0, 0), record(Act.CLAIM, "x", 0, 1, after="old/0")
    other = record(Act.CLAIM, "y", 0, 2, after="x/0")
    assert read("x", asked, claimed).mine == 1
    assert read("y", asked, claimed, other, asked, claimed).mine == 2
    assert read("x", asked, claimed, other, asked, claimed).mine is None


def test_silence_lasts_as_long_as_the_longer_of_both_leases() -> None:
    found = RENEWED.record
    assert found is not None
    longer = LeaseLog("y", SECONDS).begun(ReadRecord(found.name, replace(found, seconds=60.0)), 0.0)
    shorter = LeaseLog("y", SECONDS).begun(ReadRecord(found.name, replace(found, seconds=5.0)), 0.0)
    assert not longer.claimable(60.0)
    assert longer.claimable(60.0 + MARGIN)
    assert not shorter.claimable(SECONDS)


def test_request_wakes_nobody_and_silences_nobody() -> None:
    """One that leads no more does not live on by being asked."""
    log = read("y", FIRST, now=0.0).taken(record(Act.REQUEST, "z", 0, 1), 20.0)
    assert log.claimable(SECONDS + MARGIN)
    assert read("x", FIRST, record(Act.REQUEST, "z", 0, 1)).wanted_by == "z"


def test_record_survives_its_bytes_and_its_signature_is_of_its_flow() -> None:
    assert RENEWED.record is not None
    seal = Seal("a->b", SECRET)
    _, value = encoded("a->b", RENEWED.record, seal, 7)
    assert decoded("a->b", value, seal) == RENEWED
    assert decoded("a->b", value, Seal("a->b", SECRET + "!")) == ReadRecord("x/1", None)
    assert decoded("a->b", value, Seal("c->b", SECRET)) == ReadRecord("x/1", None)


@pytest.mark.parametrize("absurd", [{"seconds": 1e15}, {"seconds": float("nan")}, {"term": 2**63 - 1}, {"term": -1}])
def test_record_that_would_freeze_the_flow_is_a_damaged_one(absurd: dict[str, Any]) -> None:
    assert RENEWED.record is not None
    seal = Seal("a->b", SECRET)
    _, value = encoded("a->b", replace(RENEWED.record, **absurd), seal, 7)
    heard = decoded("a->b", value, seal)
    assert heard.record is None
    assert LeaseLog("y", SECONDS).begun(heard, 0.0).claimable(SECONDS + MARGIN)


@pytest.mark.parametrize("value", [b"", b"nonsense"])
def test_what_is_no_record_is_somebody_who_may_lead(value: bytes) -> None:
    heard = decoded("a->b", value, Seal("a->b"))
    assert heard.record is None
    assert not read("y", heard).claimable(SECONDS)
    assert read("y", heard).claimable(SECONDS + MARGIN)


def test_record_with_another_signature_neither_claims_nor_ends_a_lease() -> None:
    """The worst that it does is that no process leads."""
    log = read("x", FIRST)
    for act in (Act.CLAIM, Act.RELEASE, Act.RENEWAL):
        found = record(act, "forger", 0, 9, after=log.last)
        log = log.taken(ReadRecord(found.name, None), 0.0)
    assert log.mine == 1
    assert not log.given_up().claimable(SECONDS)
