"""A partition and its copy as MM2 makes it, with faults put into the copy, and what is to be found.

Only records without a fault have syncs, so that they are as true as MM2's own.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.sync_history import History
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.partition_verdicts import Difference, FoundDifference, PartitionVerdict
from sinks.verify.windows import cut
from streaming.mm2.records import TopicPartition

MIXES = 200

FAULTS = ("drop", "double", "key", "value", "headers", "timestamp", "swap")
GROUP = 4
"""Records that a fault has for itself."""

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True)
class Record:
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None
    ms: int
    appended: bool = False

    def without_place(self, times: bool = True) -> Record:
        """All that two copies have in common."""
        return replace(self, offset=0, ms=self.ms if times else 0, appended=False)


@dataclass
class MirroredLog:
    """One partition. `found`: the name and the source's offset of each difference; `pending`: records to be copied.
    `syncs`: as MM2 wrote them. `times`: timestamps count; else the target's broker gave them.
    """

    number: int
    source: list[Record] = field(default_factory=list)
    target: list[Record] = field(default_factory=list)
    starts: tuple[int, int] = (0, 0)
    source_end: int = 0
    history: History | None = None
    syncs: list[tuple[int, int]] = field(default_factory=list)
    found: set[tuple[str, int]] = field(default_factory=set)
    pending: int = 0
    times: bool = True

    @property
    def verdict(self) -> PartitionVerdict:
        """A target that has deleted everything does not show what was copied to it."""
        if self.source and not self.target and self.starts[1]:
            return PartitionVerdict.UNVERIFIABLE
        return PartitionVerdict.DIFFERENT if self.found else PartitionVerdict.VERIFIED

    @property
    def is_ambiguous(self) -> bool:
        """Whether a pending record equals a copied one: then the records do not tell which of them is pending."""
        contents = [record.without_place(self.times) for record in self.source]
        copied = len(contents) - self.pending
        return not set(contents[copied:]).isdisjoint(contents[:copied])

    @property
    def expected(self) -> Counter[tuple[str, int]]:
        """`found`, of equal records the first."""
        return Counter((name, self.first(offset)) for name, offset in self.found)

    def first(self, offset: int) -> int:
        """The offset of the first record of the source that is equal to the one at this offset."""
        records = {record.offset: record for record in self.source}
        if offset not in records:
            return offset
        same = records[offset].without_place(self.times)
        return next(record.offset for record in self.source if record.without_place(self.times) == same)

    def plan(self, least: int, cell: int) -> PartitionPlan:
        ours = LogRange(self.starts[0], self.source_end)
        theirs = LogRange(self.starts[1], self.target[-1].offset + 1 if self.target else self.starts[1])
        pairs, restarts = (list(self.history.pairs()), self.history.restarts()) if self.history else ([], [])
        windows = cut(pairs, restarts, ours, theirs, least=least)
        topic = f"t{self.number}"
        return PartitionPlan(
            TopicPartition(topic, 0), TopicPartition(f"a.{topic}", 0), ours, theirs, windows, cell=cell
        )


def _text(dice: random.Random) -> bytes | None:
    return dice.choice((None, b"", b"k", b"%d" % dice.randrange(20)))


def _headers(dice: random.Random) -> Headers | None:
    return dice.choice((None, None, (("a", b"1"),), (("a", None), ("b", b"")), (("a", b""), ("b", None))))


def _written(dice: random.Random) -> tuple[list[Record], int]:
    """Records of the source, with holes where transactions ended or were aborted, and the end of the log."""
    found: list[Record] = []
    offset, ms, holes = 0, 1_700_000_000_000, dice.choice((0.0, 0.0, 0.1))
    for number in range(dice.choice((0, 3, 40, 40, 150, 150, 150))):
        if dice.random() < holes:
            offset += dice.randint(1, 3)
        ms += dice.choice((0, 1, 500))
        same = dice.random() < 0.1 and bool(found)
        value = found[-1].value if same else b"%d-" % number + (_text(dice) or b"")
        key, headers = (found[-1].key, found[-1].headers) if same else (_text(dice), _headers(dice))
        found.append(Record(offset, key, value, headers, found[-1].ms if same else ms))
        offset += 1
    return found, offset + (dice.randint(0, 2) if holes else 0)


def mixes(seed: int, count: int = MIXES) -> list[MirroredLog]:
    """So many, always the same for a seed."""
    dice = random.Random(seed)
    return [_mirrored_log(number, dice) for number in range(count)]


def named(findings: Sequence[FoundDifference], log: MirroredLog) -> Counter[tuple[str, int]]:
    """Findings as `MirroredLog.expected` has them."""
    found: Counter[tuple[str, int]] = Counter()
    for one in findings:
        if one.difference is Difference.UNVERIFIABLE:
            continue
        assert one.upstream is not None, one
        for at in range(one.upstream, one.upstream + one.count):
            name = f"CHANGED {', '.join(one.fields)}" if one.difference is Difference.CHANGED else one.difference.value
            found[name, log.first(_of_the_swap(at, log) if one.difference is Difference.REORDERED else at)] += 1
    return found


def _of_the_swap(at: int, log: MirroredLog) -> int:
    """Of two records that were exchanged either one is out of order."""
    return next((place for name, place in log.found if name == "REORDERED" and 0 <= at - place <= GROUP), at)


def _mirrored_log(number: int, dice: random.Random) -> MirroredLog:
    """One mix: nothing at all is wrong with a third of them."""
    log = MirroredLog(number)
    log.source, log.source_end = _written(dice)
    count = len(log.source)
    copied = count - (dice.randint(0, count) if dice.random() < 0.4 else 0)
    log.pending = count - copied
    log.times = dice.random() >= 0.1
    faults = {} if dice.random() < 0.3 else _faults(dice, log, copied)
    copies = [[record] for record in log.source[:copied]]
    for at, fault in faults.items():
        _break(copies, at, fault, log)
    clean = set(range(copied)) - {at + near for at in faults for near in range(2)}
    _copy(log, copies, clean, dice)
    if not log.times:
        log.target = [replace(one, ms=1_800_000_000_000 + one.offset, appended=True) for one in log.target]
    _delete_old(log, dice, faults)
    return log


def _faults(dice: random.Random, log: MirroredLog, copied: int) -> dict[int, str]:
    """Faults by index of the record. The first and the last records have none: there they cannot be told."""
    chosen: dict[int, str] = {}
    plain = [one.without_place(log.times) for one in log.source]
    for at in range(GROUP, copied - GROUP, GROUP):
        alone = all(plain[at] != plain[other] for other in (at - 1, at + 1, at + 2))
        if alone and plain[at + 1] != plain[at + 2] and dice.random() < 0.15:
            # Without timestamps a record whose value was changed is told by its key.
            untold = {"timestamp"} if log.source[at].key else {"timestamp", "value"}
            chosen[at] = dice.choice([fault for fault in FAULTS if log.times or fault not in untold])
    return chosen


def _break(copies: list[list[Record]], at: int, fault: str, log: MirroredLog) -> None:
    record = log.source[at]
    if fault == "drop":
        copies[at] = []
        log.found.add(("MISSING", record.offset))
    elif fault == "double":
        copies[at] = [record, record]
        log.found.add(("DUPLICATE", record.offset))
    elif fault == "swap":
        copies[at], copies[at + 1] = copies[at + 1], copies[at]
        log.found.add(("REORDERED", record.offset))
    else:
        other = {
            "key": replace(record, key=b"other" if record.key is None else None),
            "value": replace(record, value=(record.value or b"") + b"!"),
            "headers": replace(record, headers=(*(record.headers or ()), ("x", None))),
            "timestamp": replace(record, ms=record.ms + 86_400_000),
        }
        copies[at] = [other[fault]]
        log.found.add((f"CHANGED {fault}", record.offset))


def _copy(log: MirroredLog, copies: list[list[Record]], clean: set[int], dice: random.Random) -> None:
    """Writes the copies, with syncs; now and then MM2 is killed and sends the last ones again."""
    downstream, often, position = dice.choice((0, 0, 17)), dice.choice((0.0, 0.02, 0.2)), 0
    log.starts = (0, downstream)
    at, restart_at = 0, dice.randrange(GROUP, len(copies)) if len(copies) > 3 * GROUP and dice.random() < 0.2 else -1
    while at < len(copies):
        for copy in copies[at]:
            log.target.append(replace(copy, offset=downstream))
            downstream += 1
        if at in clean and dice.random() < often:
            position += 1
            _sync(log, log.source[at].offset, downstream - 1, position)
        if at == restart_at:
            back = next((one for one in range(at, max(0, at - 6), -1) if one not in clean), max(0, at - 6))
            again = [one for one in range(back + 2, at + 1) if one in clean]
            if again and again == list(range(again[0], at + 1)) and log.history is not None:
                log.found |= {("DUPLICATE", log.source[one].offset) for one in again}
                position += 1
                _sync(log, log.source[again[0]].offset, downstream, position)
                for one in again:
                    log.target.append(replace(log.source[one], offset=downstream))
                    downstream += 1
            restart_at = -1
        at += 1


def _sync(log: MirroredLog, upstream: int, downstream: int, position: int) -> None:
    log.syncs.append((upstream, downstream))
    if log.history is None:
        log.history = History(upstream, downstream, position)
    else:
        log.history.take(upstream, downstream, position)


def _delete_old(log: MirroredLog, dice: random.Random, faults: dict[int, str]) -> None:
    """Retention takes the beginning of a side, as far as nothing is wrong there."""
    sound = min((log.source[at].offset for at in faults), default=10**9)
    sound = min([sound, *(offset for _, offset in log.found)])
    side = dice.choice(("none", "none", "source", "target"))
    records = log.source if side == "source" else log.target
    most = min(sum(one.offset < sound - GROUP for one in log.source), len(log.source) - log.pending)
    if side == "none" or len(records) < 5 or most < 3:
        return
    lost = dice.randint(1, min(most, len(records) - 3) - 1)
    if side == "source":
        log.source, log.starts = log.source[lost:], (log.source[lost].offset, log.starts[1])
    else:
        log.target, log.starts = log.target[lost:], (log.starts[0], log.target[lost].offset)
