"""One round: topics, groups, writers; MM2 killed and started again or not; and what each group would meet.

And what all rounds came to, with its file.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

import orjson
from pydantic import TypeAdapter

from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror
from app.local.waiting import wait_for
from bench.drill.outcome_rows import AFTER, CALM, DURING, Row, aborted, rows
from bench.drill.readers import Commits, readers
from bench.drill.snapshot import Logs, Loss, Snapshot, Target, cut, losses, read_logs, remote
from bench.drill.source_load import Load, Topic, create, running
from bench.pair import BenchPair

T = TypeVar("T")


class Still(Generic[T]):
    """A condition for `wait_for`: what `look` gives, `seen` last, has been the same for so many seconds."""

    def __init__(self, look: Callable[[], T], seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._look, self._seconds, self._now = look, seconds, now
        self.seen, self._since = look(), now()

    def __call__(self) -> bool:
        """Looks again."""
        seen = self._look()
        if seen != self.seen:
            self.seen, self._since = seen, self._now()
        return self._now() - self._since >= self._seconds


COPIED_WITHIN = 300.0
"""Seconds for whatever MM2 has to do."""

NAME = "drill-{:03d}"


@dataclass(frozen=True)
class DrillSize:
    """`seconds` of writing (at least), `groups` for each topic and place, `settle`: seconds without a change that
    count as the end of catching up."""

    seconds: float
    groups: int
    settle: float


@dataclass(frozen=True)
class Ground:
    """What all rounds share."""

    pair: BenchPair
    mirror: LocalMirror
    job: LocalJob


@dataclass(frozen=True)
class Played:
    """What a round came to. `aborted`: records of aborted transactions that MM2 copied; `cleaned`: compacted away."""

    rows: list[Row]
    losses: list[Loss]
    aborted: int
    cleaned: int


def play(ground: Ground, size: DrillSize, number: int, *, kill: bool) -> Played:
    """One round, on topics and with groups of its own. Raises LockstepError, WaitedTooLong."""
    chance = random.Random(number)
    # An earlier round that came to no end may have left it dead.
    ground.mirror.start()
    topics = create(ground.pair.source, NAME.format(number))
    found = readers(topics, size.groups, chance)
    commits = Commits(ground.pair.source, found, size.seconds, chance)
    commits.begin()
    loads = [
        Load(ground.pair.a.bootstrap, topic, seed) for seed, topic in enumerate(topics, start=number * len(topics))
    ]
    partitions = [where for topic in topics for where in topic.partitions]
    with closing(Target(ground.pair.target, [one.group for one in found], partitions)) as target:
        _begin(ground, target, loads, topics)
        writing = _Writing(ground, target, commits, topics, number)
        during = writing.run(size, loads, chance, kill=kill)
        after = _caught_up(ground, target, size, commits, topics)
    moments = [(AFTER if kill else CALM, after), *([(DURING, during)] if during else [])]
    source = read_logs(ground.pair.a.bootstrap, dict.fromkeys(partitions, 0))
    copies = read_logs(ground.pair.b.bootstrap, dict.fromkeys(map(remote, partitions), 0))
    copied: Logs = {where: copies[remote(where)] for where in partitions}
    judged = [row for name, seen in moments for row in rows(number, name, found, seen, source, copied)]
    cleaned = sum(len(topic.written[where]) - len(source[where]) for topic in topics for where in topic.partitions)
    return Played(judged, writing.losses, aborted(found, copied), cleaned)


def _begin(ground: Ground, target: Target, loads: Sequence[Load], topics: Sequence[Topic]) -> None:
    names = {f"a.{topic.name}" for topic in topics}
    wait_for(lambda: names <= ground.pair.target.list_topics().keys(), COPIED_WITHIN, "the remote topics")
    for one in loads:
        one.begin()
    count = sum(topic.kind.partitions for topic in topics)
    wait_for(lambda: sum(map(bool, target.ends().values())) == count, COPIED_WITHIN, "first records to be copied")


@dataclass
class _Writing:
    """The time in which clients write and commit, and the source may be lost; `losses` as they were then."""

    ground: Ground
    target: Target
    commits: Commits
    topics: Sequence[Topic]
    number: int
    losses: list[Loss] = field(default_factory=list)

    def run(self, size: DrillSize, loads: Sequence[Load], chance: random.Random, *, kill: bool) -> Snapshot | None:
        """For the round's time; with `kill`, what was seen while MM2 caught up."""
        during: Snapshot | None = None
        writers = {f"load-{number}": load.run for number, load in enumerate(loads)}
        with running(writers), running({"commits": self.commits.run}):
            end = time.monotonic() + size.seconds
            _pass(size.seconds * chance.uniform(0.3, 0.7))
            self._lose(CALM)
            if kill:
                during = self._kill()
            _pass(end - time.monotonic())
        self.commits.finish()
        return during

    def _kill(self) -> Snapshot:
        ground = self.ground
        ground.mirror.kill()
        before = self.target.ends()
        ground.mirror.start()
        wait_for(lambda: self.target.ends() != before, COPIED_WITHIN, "MM2 to copy again after it was killed")
        self._lose(DURING)
        return self.target.moment(self.commits)

    def _lose(self, moment: str) -> None:
        seen = cut(self.ground.pair, self.topics)
        self.losses += losses(self.number, moment, self.ground.pair, self.topics, seen)


def _pass(seconds: float) -> None:
    # The load is a matter of time: nothing comes about that could be waited for.
    threading.Event().wait(max(0.0, seconds))


def _caught_up(ground: Ground, target: Target, size: DrillSize, commits: Commits, topics: Sequence[Topic]) -> Snapshot:
    """When the last record of each partition is the last on the target, and offsets and ends have stood still."""
    last = {where: topic.written[where][-1][1] for topic in topics for where in topic.partitions}

    def copied() -> bool:
        ground.job.check()
        return target.last_copied(ground.pair.b.bootstrap) == last

    wait_for(copied, COPIED_WITHIN, "the target to have the last records")
    still = Still(lambda: target.moment(commits), size.settle)
    what = f"ends and offsets on the target to stand still for {size.settle:g} s"
    wait_for(still, COPIED_WITHIN + size.settle, what)
    ground.job.check()
    return still.seen


@dataclass(frozen=True)
class DrillSeries:
    """What was found; `failed`: why rounds have no result.

    `aborted`: records of aborted transactions that MM2 copied. `cleaned`: those that compaction took from the source.
    """

    size: DrillSize
    rounds: int
    rows: list[Row]
    losses: list[Loss]
    aborted: int
    cleaned: int
    failed: list[str]

    def after(self, played: Played) -> DrillSeries:
        """With one more round."""
        return replace(
            self,
            rounds=self.rounds + 1,
            rows=self.rows + played.rows,
            losses=self.losses + played.losses,
            aborted=self.aborted + played.aborted,
            cleaned=self.cleaned + played.cleaned,
        )

    def save(self, path: Path) -> None:
        """Everything, so that the table can be written again."""
        document = asdict(replace(self, rows=[], losses=[]))
        del document["rows"], document["losses"]
        rows, losses = (b",\n".join(map(orjson.dumps, found)) for found in (self.rows, self.losses))
        path.parent.mkdir(parents=True, exist_ok=True)
        # A row a line: a thousand of them, each spread over ten, would be no file to look at.
        path.write_bytes(
            orjson.dumps(document)[:-1] + b',\n"losses": [\n' + losses + b'\n],\n"rows": [\n' + rows + b"\n]}\n"
        )


def read(path: Path) -> DrillSeries | None:
    """What `DrillSeries.save` wrote; None where there is no file."""
    return TypeAdapter(DrillSeries).validate_json(path.read_bytes()) if path.exists() else None
