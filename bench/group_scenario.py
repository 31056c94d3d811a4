"""How old a synced offset is, beside MM2's own sync; and what a pass over many groups costs the job."""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import orjson
import typer

from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror
from app.local.waiting import wait_for
from bench.cost import cost
from bench.drill.programs import LOCKSTEP, MM2, committing_job, mm2_properties
from bench.groups_page import RESULTS, section
from bench.groups_pair import BEGINNING, RECORDS, WITHIN, GroupsPair, copied, others_commit, pair_of
from bench.pass_cost import pass_cost
from bench.topic_changes import TARGET_POLL_INTERVAL
from streaming.errors import LockstepError

MEAN_GAP: Final = 1.0
"""Seconds between two commits on average; the gaps are distributed exponentially."""

AT_END, BEHIND, BUSY = "at the end", "behind it", "at the end, while others commit"


@dataclass(frozen=True, slots=True)
class GroupsSize:
    """`commits` that are timed in each way, among `groups`; `many`: groups of the pass; `idle`: its seconds.

    `others`: commits a second of groups that are not timed, in the second half.
    """

    topics: int = 50
    groups: int = 1000
    commits: int = 100
    many: int = 10_000
    idle: float = 60.0
    others: float = 200.0


FULL: Final = GroupsSize()
SMOKE: Final = GroupsSize(topics=5, groups=50, commits=6, many=200, idle=10.0, others=20.0)

LOOKED_AT, REST = 500, 0.25
"""Groups that are looked at together, and seconds until the next look where one of them was missing."""

WAYS: Final = {LOCKSTEP: "poll", "stream": "stream", MM2: None}
"""By who commits: `lockstep.group.offsets.source` of the job, None where it is MM2."""


def measure_groups(size: GroupsSize, ways: Sequence[str], many: Sequence[str]) -> dict[str, Any]:
    """`{"groups": …, "topics": …, "ages": {way: seconds}, "cpu": {way: …}, "passes": {way: …}}`.

    Ways are those of `WAYS` and where the groups are; `cpu`: the job's CPU seconds a minute meanwhile. `many`: ways of
    the pass over many groups.
    """
    found: dict[str, Any] = {"groups": size.groups, "topics": size.topics, "others": size.others, "ages": {}, "cpu": {}}
    with (
        tempfile.TemporaryDirectory(prefix="lockstep-bench-groups-") as folder,
        pair_of(Path(folder), size.topics) as pair,
    ):
        for way in ways:
            with _started(pair, way, f"age-{way}") as job:
                _ages(pair, way, size, job, found)
        found["passes"] = {way: _many(pair, way, size) for way in many}
    return found


def save(path: Path, found: Mapping[str, Any]) -> None:
    """So that the page can be written again."""
    path.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


@contextmanager
def _started(pair: GroupsPair, way: str, groups: str) -> Iterator[LocalJob | None]:
    """MM2, everything copied, and the job where it is the one to commit."""
    source = WAYS[way]
    properties = mm2_properties(pair.clusters, MM2 if source is None else LOCKSTEP, "age-.*", f"{groups}-.*")
    with ExitStack() as stack:
        stack.enter_context(LocalMirror(properties, pair.root / f"mirror-{groups}"))
        wait_for(lambda: copied(pair), WITHIN, "MM2 to copy all records")
        if source is None:
            yield None
        else:
            own = properties | {"lockstep.group.offsets.source": source}
            yield stack.enter_context(committing_job(pair.root / groups, own))


def _groups(prefix: str, count: int) -> dict[str, int]:
    return {f"{prefix}-{number:05d}": number for number in range(count)}


def _ages(pair: GroupsPair, way: str, size: GroupsSize, job: LocalJob | None, found: dict[str, Any]) -> None:
    """MM2 knows no offsets from before it was started, but at the end of a log."""
    groups, chance = _groups(f"age-{way}", size.groups), random.Random(size.groups)
    pair.commit(groups, BEGINNING)
    places = (AT_END, BEHIND, BUSY) if job else (AT_END, BUSY)
    chosen = chance.sample(sorted(groups), size.commits * len(places) + 1)
    first = {chosen[-1]: groups[chosen[-1]]}
    pair.commit(first, RECORDS)
    wait_for(lambda: pair.synced(first), WITHIN, "a first commit to be synced")
    for number, place in enumerate(places):
        these = {name: groups[name] for name in chosen[number * size.commits : (number + 1) * size.commits]}
        others = {name: number for name, number in groups.items() if name not in chosen} if place == BUSY else {}
        before, start = cost(job.pids) if job else None, time.monotonic()
        with others_commit(pair, others, size.others):
            found["ages"][f"{way}, {place}"] = CommitWatch(pair).run(these, place, chance)
        if job and before:
            used = cost(job.pids).since(before).cpu_seconds
            found["cpu"][f"{way}, {place}"] = 60 * used / (time.monotonic() - start)


@dataclass
class CommitWatch:
    """Commits one group after the other on the source, and looks at the target for those under way."""

    pair: GroupsPair
    seconds: list[float] = field(default_factory=list)
    _pending: dict[str, tuple[int, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, groups: Mapping[str, int], place: str, chance: random.Random) -> list[float]:
        """From each commit's answer until the target has it. Raises WaitedTooLong when one does not arrive."""
        stop = threading.Event()
        watcher = threading.Thread(target=self._look, args=(stop,), daemon=True)
        watcher.start()
        try:
            for name, number in groups.items():
                # Commits come at random moments: a matter of time, not of a condition.
                stop.wait(chance.expovariate(1 / MEAN_GAP))
                offset = chance.randrange(RECORDS * 3 // 4, RECORDS) if place == BEHIND else RECORDS
                self.pair.commit({name: number}, offset)
                with self._lock:
                    self._pending[name] = (number, time.monotonic())
            wait_for(lambda: not self._pending, WITHIN, f"the last of {len(groups)} commits to be synced")
        finally:
            stop.set()
            watcher.join()
        return self.seconds

    def _look(self, stop: threading.Event) -> None:
        while not stop.wait(TARGET_POLL_INTERVAL):
            with self._lock:
                pending = dict(self._pending)
            if pending:
                arrived, now = (
                    self.pair.synced({name: number for name, (number, _) in pending.items()}),
                    time.monotonic(),
                )
                with self._lock:
                    self.seconds += [now - self._pending.pop(name)[1] for name in arrived]


def _many(pair: GroupsPair, way: str, size: GroupsSize) -> dict[str, Any]:
    groups = _groups(f"age-many-{way}", size.many)
    pair.commit(groups, BEGINNING)
    with _started(pair, way, f"age-many-{way}") as job:
        if job is None:
            raise LockstepError("the pass over many groups needs the job")
        one = dict([next(iter(groups.items()))])
        pair.commit(one, RECORDS)
        wait_for(lambda: pair.synced(one), WITHIN, "a first commit to be synced")
        found = pass_cost(job, lambda: _all_at_once(pair, groups), size.idle)
        return {"groups": size.many, **found}


def _all_at_once(pair: GroupsPair, groups: Mapping[str, int]) -> float:
    """Seconds from the last commit's answer until the target has all."""
    pair.commit(groups, RECORDS)
    start, left = time.monotonic(), list(groups.items())
    deadline = start + 2 * WITHIN
    while left:
        # A few at a time, and seldom: the looks are requests to the target as well.
        few, left = dict(left[:LOOKED_AT]), left[LOOKED_AT:]
        missing = few.keys() - pair.synced(few)
        left += [(name, groups[name]) for name in missing]
        if time.monotonic() > deadline:
            raise LockstepError(f"{len(left)} of {len(groups)} groups were not synced within {2 * WITHIN:g} s")
        if missing:
            time.sleep(REST)
    return time.monotonic() - start


def main(
    ways: Annotated[str, typer.Option(help="Who commits, comma separated.")] = ",".join(WAYS),
    many: Annotated[str, typer.Option(help="The ways of the pass over many groups.")] = f"{LOCKSTEP},stream",
    smoke: Annotated[bool, typer.Option(help="Few groups and commits: a minute or two for each way.")] = False,
    out: Annotated[Path, typer.Option(help="The file for the results.")] = RESULTS,
) -> None:
    """Measures, saves, and prints what came out."""
    chosen, of_many = ([way for way in text.split(",") if way] for text in (ways, many))
    if unknown := {*chosen, *of_many} - WAYS.keys():
        raise typer.BadParameter(f"{', '.join(unknown)}: of {', '.join(WAYS)}", param_hint="--ways")
    found = measure_groups(SMOKE if smoke else FULL, chosen, of_many)
    save(out, found)
    sys.stdout.write(section(found))


if __name__ == "__main__":
    typer.run(main)
