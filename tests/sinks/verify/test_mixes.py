"""Two hundred random mixes of faults with a fixed seed: each is found, and nothing else is."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.verify.partition_verdicts import PartitionReport, PartitionVerdict, VerifyLevel
from sinks.verify.record_checks import MOST_ROWS, compare_records
from tests.sinks.verify.memory_jobs import MemoryJobs
from tests.sinks.verify.mirrored_log import MIXES, MirroredLog, mixes, named


def checked(logs: list[MirroredLog], level: VerifyLevel, seed: int, most: int = MOST_ROWS) -> list[PartitionReport]:
    dice = random.Random(seed)
    jobs = MemoryJobs({f"t{log.number}": log.source for log in logs}, {f"a.t{log.number}": log.target for log in logs})
    plans = [log.plan(least=dice.choice((1, 5, 10_000)), cell=dice.choice((7, 1_000_000))) for log in logs]
    return compare_records(plans, level, lambda: jobs, most)


def check(logs: list[MirroredLog], level: VerifyLevel, seed: int) -> None:
    for log, report in zip(logs, checked(logs, level, seed), strict=True):
        if log.is_ambiguous:
            continue
        assert report.verdict is log.verdict, (log.number, report)
        if level is VerifyLevel.RECORDS:
            assert named(report.findings, log) == log.expected, (log.number, report)
            assert report.pending == log.pending, (log.number, report)


@pytest.mark.parametrize("level", [VerifyLevel.RECORDS, VerifyLevel.DIGESTS])
def test_every_fault_of_two_hundred_mixes_is_found_and_no_other(level: VerifyLevel) -> None:
    logs = mixes(13)
    assert sum(bool(log.found) for log in logs) > MIXES / 3
    check(logs, level, 13)


@settings(max_examples=50)
@given(st.integers(0, 2**32))
def test_every_fault_of_any_mix_is_found_and_no_other(seed: int) -> None:
    check(mixes(seed, 5), VerifyLevel.RECORDS, seed)


@settings(max_examples=100)
@given(st.integers(0, 2**32), st.integers(0, 60))
def test_however_few_rows_come_no_fault_is_called_whole_and_no_lost_record_pending(seed: int, most: int) -> None:
    logs = mixes(seed, 5)
    for log, report in zip(logs, checked(logs, VerifyLevel.RECORDS, seed, most), strict=True):
        if {name for name, _ in log.found} - {"DUPLICATE"}:
            assert not report.is_whole, (log.number, report)
        if report.verdict is PartitionVerdict.VERIFIED:
            assert not log.found, (log.number, report)
            # Of two equal records either one may have expired, and the other one may still have to come.
            alike = len(log.source) - len({record.without_place(log.times) for record in log.source})
            assert log.pending - alike <= report.pending <= log.pending, (log.number, report)


def test_runs_say_exactly_where_records_are() -> None:
    logs = mixes(13)
    for log, report in zip(logs, checked(logs, VerifyLevel.RECORDS, 13), strict=True):
        theirs = {record.offset: record for record in log.target}
        ours = {record.offset: record for record in log.source}
        for run in report.runs:
            for at in range(run.length):
                if (source := ours.get(run.upstream + at)) is not None:
                    copy = theirs[run.downstream + at]
                    assert source.without_place(log.times) == copy.without_place(log.times)
