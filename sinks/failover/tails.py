"""Counts a partition's records that are not on the target yet: finds the target's last record on the source. Pure.

MM2 keeps a partition's order. So the records behind the target's last record were not copied. Records are compared by
timestamp, key and value. With `LogAppendTime` on the target they are compared without the timestamp. Transaction
markers do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from sinks.kafka.ports.record_reader import Record, Stamp

TAIL_RECORDS = 16
"""Records at the end of a log that are compared. Several, because neighbours may be equal."""


class Fingerprint(NamedTuple):
    """The parts of a record that are compared. `timestamp` in ms."""

    offset: int
    timestamp: int
    appended: bool
    digest: bytes


def fingerprint_of(record: Record) -> Fingerprint:
    """Returns the fingerprint of a record."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in (record.key, record.value):
        hashed.update(b"-" if part is None else len(part).to_bytes(8, "big") + part)
    return Fingerprint(record.offset, record.timestamp, record.stamp is Stamp.APPEND, hashed.digest())


def same(here: Fingerprint, there: Fingerprint) -> bool:
    """Whether one record is the copy of the other."""
    timed = here.timestamp == there.timestamp or here.appended or there.appended
    return timed and here.digest == there.digest


class Behind(NamedTuple):
    """Records behind the target's last. `records`: their number, `exact` or an upper bound. The timestamp (ms) is that
    of the first of them; `since` is its offset on the source."""

    records: int
    oldest: int | None
    exact: bool
    since: int | None = None


def _rest(rest: Sequence[Fingerprint], *, exact: bool) -> Behind:
    first = rest[0] if rest else None
    return Behind(len(rest), first.timestamp if first else None, exact, first.offset if first else None)


def behind(source: Sequence[Fingerprint], target: Sequence[Fingerprint], *, whole: bool = True) -> Behind | None:
    """Returns what lies behind the target's last record; None if that record is not among the source's.

    `source`: the source's records, to its end. `target`: the last records on the target. The last record may occur more
    than once. Then the place counts where most of the records before it match as well. Of equal places the first
    counts, so that the result is never too small. Not `whole`: the source has earlier records. Returns None also where
    those may decide.
    """
    if not target:
        return _rest(source, exact=True)
    candidates = [(_alike(source[: at + 1], target), at) for at, one in enumerate(source) if same(one, target[-1])]
    if not candidates:
        return None
    most = max(alike for alike, _ in candidates)
    if not whole and not _is_decided(candidates, most):
        return None
    best = [at for alike, at in candidates if alike == most]
    rest = source[best[0] + 1 :]
    return _rest(rest, exact=len(best) == 1)


def _is_decided(candidates: Sequence[tuple[int, int]], most: int) -> bool:
    """Whether earlier records cannot change the result: one place matches a whole window, and all others differ within
    the records at hand."""
    return most >= TAIL_RECORDS and sum(alike in (most, at + 1) for alike, at in candidates) == 1


def _alike(source: Sequence[Fingerprint], target: Sequence[Fingerprint]) -> int:
    """Returns how many records at the ends of both are the same."""
    count = 0
    for here, there in zip(reversed(source), reversed(target), strict=False):
        if not same(here, there):
            break
        count += 1
    return count


def behind_at_most(source: Sequence[Fingerprint], target: Sequence[Fingerprint], *, before: int) -> Behind:
    """Returns what can lie behind the target's last record, which the source lost. An upper bound.

    Timestamps say nothing of it: producers set them, and their order is not that of the log. What lies behind the
    newest record that both have is counted. Without such a record all of the source is, the `before` offsets that were
    not read as well. The target's timestamps must be the source's.
    """
    for one in reversed(target):
        if (at := next((at for at, here in enumerate(source) if same(here, one)), None)) is not None:
            return _rest(source[at + 1 :], exact=False)
    rest = _rest(source, exact=False)
    since = None if rest.since is None else rest.since - before
    return rest._replace(records=rest.records + before, since=since)
