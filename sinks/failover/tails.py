"""How many of a partition's records are not on the target yet: its last record there, found on the source. Pure.

MM2 keeps a partition's order, so that what comes behind the target's last record is what was not copied. Records are
compared by timestamp, key and value; a topic with `LogAppendTime` on the target has timestamps of its own, and is
compared without. Markers of transactions are no records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from sinks.kafka.ports.record_reader import Record, Stamp

TAIL_RECORDS = 16
"""Records at the end of a log that are compared, so that equal records beside each other do no harm."""


class Fingerprint(NamedTuple):
    """What is kept of a record in order to compare it. `timestamp` in ms."""

    offset: int
    timestamp: int
    appended: bool
    digest: bytes


def fingerprint_of(record: Record) -> Fingerprint:
    """Of a record."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in (record.key, record.value):
        hashed.update(b"-" if part is None else len(part).to_bytes(8, "big") + part)
    return Fingerprint(record.offset, record.timestamp, record.stamp is Stamp.APPEND, hashed.digest())


def same(here: Fingerprint, there: Fingerprint) -> bool:
    """Whether one is the copy of the other."""
    timed = here.timestamp == there.timestamp or here.appended or there.appended
    return timed and here.digest == there.digest


class Behind(NamedTuple):
    """How many records come behind the target's last, the timestamp (ms) of the first of them, and whether that is
    certain; else it is the most that it can be. `since`: the first one's offset on the source."""

    records: int
    oldest: int | None
    exact: bool
    since: int | None = None


def _rest(rest: Sequence[Fingerprint], *, exact: bool) -> Behind:
    first = rest[0] if rest else None
    return Behind(len(rest), first.timestamp if first else None, exact, first.offset if first else None)


def behind(source: Sequence[Fingerprint], target: Sequence[Fingerprint], *, whole: bool = True) -> Behind | None:
    """`source`: the source's records, to its end; `target`: the last ones on the target. None: its last is not among
    the source's.

    Where the last record is found more than once, the place counts at which most of the records before it are the same
    as well; of equal places the first, so that the count is never too small. Not `whole`: the source has earlier
    records, so None also where those may decide.
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
    """Whether earlier records could change nothing: one place is the same over a whole window, and no other was the
    same until the records ran out."""
    return most >= TAIL_RECORDS and sum(alike in (most, at + 1) for alike, at in candidates) == 1


def _alike(source: Sequence[Fingerprint], target: Sequence[Fingerprint]) -> int:
    """How many records at the ends of both are the same."""
    count = 0
    for here, there in zip(reversed(source), reversed(target), strict=False):
        if not same(here, there):
            break
        count += 1
    return count


def later_than(source: Sequence[Fingerprint], target: Sequence[Fingerprint]) -> Behind:
    """Where the target's last record is not on the source any more: the younger records there, which is not exact.

    The target's timestamps must be the source's.
    """
    last = max(one.timestamp for one in target)
    return _rest([one for one in source if one.timestamp > last], exact=False)
