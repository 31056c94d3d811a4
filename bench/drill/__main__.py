"""`python -m bench.drill`: failovers tried out on one pair of clusters, with one MM2 and one job.

A round is topics, groups and writers; MM2 killed and started again or not; and what each group would meet.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Final, Generic, TypeVar

import typer

from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror
from app.local.waiting import WaitedTooLong, wait_for
from bench.drill.outcome_rows import AFTER, CALM, DURING, DrillSeries, rows
from bench.drill.snapshot import ISOLATION, Loss, Snapshot, Target, losses, read_logs
from bench.drill.source_load import CLEANER, TOPIC_KINDS, Commits, Load, Topic, readers
from bench.failover_figures_page import LOSSES, PREDICTIONS, write
from bench.pair import HEARTBEATS, BenchPair, intervals, make_topics, pair_of, remote, running
from bench.saved_figures import say
from sinks.kafka.ports.cluster import TopicSpec

SECONDS: Final = 12.0
SETTLE: Final = 10.0
"""See `DrillSeries.size`."""

COPIED_WITHIN: Final = 300.0
"""Seconds for whatever MM2 has to do."""

KEYS: Final = {
    **intervals(1, "refresh.topics", "refresh.groups", "emit.checkpoints"),
    **HEARTBEATS,
    "topics": "drill-.*",
    "groups": "drill-.*",
    "a->b.consumer.isolation.level": ISOLATION,
    # The job writes MM2's offset-syncs to the ledger with its full comparisons; a round is over before the default one.
    "lockstep.full.comparison.interval": "5 seconds",
}


def main(
    rounds: Annotated[int, typer.Option(help="How many, fifty an hour; MM2 is killed in every other.")] = 50,
    out: Annotated[Path, typer.Option(help="The file for the results; the page is written beside it.")] = LOSSES,
) -> None:
    """Plays the rounds, saves after each, and writes the page. A round that does not come to its end is left out."""
    found = DrillSeries({"seconds": SECONDS, "groups": 1, "settle": SETTLE}, 0, [], [], 0, 0, [])
    with (
        pair_of("drill", overrides=CLEANER) as pair,
        pair.mirror(**KEYS) as mirror,
        pair.committing_job(**KEYS) as job,
    ):
        for number in range(rounds):
            kill = number % 2 == 1
            say(f"round {number + 1} of {rounds}{', MM2 is killed' if kill else ''}")
            try:
                DrillRound(pair, mirror, job, number).play(found, kill=kill)
            except WaitedTooLong as error:
                say(f"left out: {error}")
                found.rounds += 1
                found.failed.append(str(error))
            found.save(out)
    sys.stdout.write(write(out, PREDICTIONS if out.name == PREDICTIONS.name else LOSSES))


class DrillRound:
    """One round, on topics and with groups of its own."""

    def __init__(self, pair: BenchPair, mirror: LocalMirror, job: LocalJob, number: int) -> None:
        self._pair, self._mirror, self._job, self._number = pair, mirror, job, number
        self._chance = random.Random(number)
        # An earlier round that came to no end may have left it dead.
        mirror.start()
        self._topics = [Topic(f"drill-{number:03d}-{kind.name}", kind) for kind in TOPIC_KINDS]
        make_topics(
            pair.source, {one.name: TopicSpec(one.kind.partitions, 1, one.kind.configs) for one in self._topics}
        )
        self._partitions = [where for topic in self._topics for where in topic.partitions]
        self._readers = readers(self._topics, self._chance)
        self._commits = Commits(pair.source, self._readers, SECONDS, self._chance)
        first = number * len(self._topics)
        self._loads = [Load(pair.a.bootstrap, topic, seed) for seed, topic in enumerate(self._topics, start=first)]
        self._losses: list[Loss] = []

    def play(self, found: DrillSeries, *, kill: bool) -> None:
        """Adds what the round came to. Raises LockstepError, WaitedTooLong."""
        with closing(Target(self._pair.target, [one.group for one in self._readers], self._partitions)) as target:
            self._begin(target)
            during = self._write(target, kill=kill)
            after = self._caught_up(target)
        moments = [(AFTER if kill else CALM, after), *([(DURING, during)] if during else [])]
        source = read_logs(self._pair.a.bootstrap, dict.fromkeys(self._partitions, 0))
        copies = read_logs(self._pair.b.bootstrap, dict.fromkeys(map(remote, self._partitions), 0))
        found.rounds += 1
        found.losses += self._losses
        for name, seen in moments:
            found.rows += rows(self._number, name, self._readers, seen, source, copies)
        for topic in self._topics:
            for where in topic.partitions:
                written = {name for _, name in topic.written[where]}
                found.aborted += sum(name not in written for _, name in copies[remote(where)])
                found.cleaned += len(topic.written[where]) - len(source[where])

    def _begin(self, target: Target) -> None:
        names = {f"a.{topic.name}" for topic in self._topics}
        wait_for(lambda: names <= self._pair.target.list_topics().keys(), COPIED_WITHIN, "the remote topics")
        for one in self._loads:
            one.begin()
        count = len(self._partitions)
        wait_for(lambda: sum(map(bool, target.ends().values())) == count, COPIED_WITHIN, "first records to be copied")

    def _write(self, target: Target, *, kill: bool) -> Snapshot | None:
        """Clients write and commit for the round's time, and the source may be lost. With `kill`, what was seen while
        MM2 caught up."""
        during: Snapshot | None = None
        with running(*(one.run for one in self._loads)), running(self._commits.run):
            end = time.monotonic() + SECONDS
            time.sleep(SECONDS * self._chance.uniform(0.3, 0.7))
            self._losses += losses(self._number, CALM, self._pair, self._topics)
            if kill:
                self._mirror.kill()
                before = target.ends()
                self._mirror.start()
                wait_for(lambda: target.ends() != before, COPIED_WITHIN, "MM2 to copy again after it was killed")
                self._losses += losses(self._number, DURING, self._pair, self._topics)
                during = target.moment(self._commits)
            time.sleep(max(0.0, end - time.monotonic()))
        self._commits.commit(1.0)
        return during

    def _caught_up(self, target: Target) -> Snapshot:
        """When the last record of each partition is the last on the target, and offsets and ends have stood still."""
        last = {remote(where): topic.written[where][-1][1] for topic in self._topics for where in topic.partitions}

        def copied() -> bool:
            self._job.check()
            return target.last_copied(self._pair.b.bootstrap) == last

        wait_for(copied, COPIED_WITHIN, "the target to have the last records")
        still = Still(lambda: target.moment(self._commits), SETTLE)
        what = f"ends and offsets on the target to stand still for {SETTLE:g} s"
        wait_for(still, COPIED_WITHIN + SETTLE, what)
        self._job.check()
        return still.seen


T = TypeVar("T")


class Still(Generic[T]):
    """A condition for `wait_for`: what `look` gives, `seen` last, has been the same for so many seconds."""

    def __init__(self, look: Callable[[], T], seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        self._look, self._seconds, self._now = look, seconds, now
        self.seen, self._since = look(), now()

    def __call__(self) -> bool:
        seen = self._look()
        if seen != self.seen:
            self.seen, self._since = seen, self._now()
        return self._now() - self._since >= self._seconds


if __name__ == "__main__":
    typer.run(main)
