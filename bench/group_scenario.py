"""How old a synced offset is, beside MM2's own sync; and what a pass over many groups costs the job."""

from __future__ import annotations

import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer

from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror
from app.local.waiting import wait_for
from bench.cost import cost
from bench.drill.programs import LOCKSTEP, MM2, committing_job, mm2_properties
from bench.groups_page import RESULTS, section
from bench.groups_pair import BEGINNING, RECORDS, WITHIN, GroupsPair, copied, others_commit, pair_of
from bench.pass_cost import pass_cost
from bench.saved_figures import save, say
from bench.topic_changes import Arrivals
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


def no_keeping(found: Mapping[str, Any]) -> None:
    """For who takes what is returned."""


FULL: Final = GroupsSize()
SMOKE: Final = GroupsSize(topics=5, groups=50, commits=6, many=200, idle=10.0, others=20.0)

LOOK_EVERY, AT_ONCE = 0.2, 1000
"""Seconds between two looks at many groups, and groups in one look."""

MM2_DEFAULTS: Final = {"emit.checkpoints.interval.seconds": "60", "refresh.groups.interval.seconds": "600"}
"""Where MM2 is not timed: every second it would ask for all groups one by one, on the same two cores."""

WAYS: Final = (LOCKSTEP, MM2)
"""Who commits."""


def measure_groups(
    size: GroupsSize, ways: Sequence[str], many: Sequence[str], keep: Callable[[Mapping[str, Any]], None] = no_keeping
) -> dict[str, Any]:
    """`{"groups": …, "topics": …, "ages": {way: seconds}, "cpu": {way: …}, "passes": {way: …}}`.

    The keys are `WAYS` with the groups' places. `cpu`: the job's CPU seconds a minute meanwhile. `many`: ways of
    the pass over many groups. `keep`: gets what there is after each of them, also where one fails.
    """
    found: dict[str, Any] = {"groups": size.groups, "topics": size.topics, "others": size.others}
    found |= {"mm2_defaults": True, "ages": {}, "cpu": {}, "passes": {}}
    with (
        tempfile.TemporaryDirectory(prefix="lockstep-bench-groups-") as folder,
        pair_of(Path(folder), size.topics) as pair,
    ):
        for way in ways:
            try:
                with _started(pair, way, f"age-{way}") as job:
                    _ages(pair, way, size, job, found)
            finally:
                keep(found)
        for way in many:
            found["passes"][way] = _many(pair, way, size)
            keep(found)
    return found


@contextmanager
def _started(pair: GroupsPair, way: str, groups: str) -> Iterator[LocalJob | None]:
    """MM2, everything copied, and the job where it is the one to commit."""
    more = {} if way == MM2 else MM2_DEFAULTS
    say(f"{way}: MM2 starts, and copies all records")
    properties = mm2_properties(pair.clusters, way, "age-.*", f"{groups}-.*", **more)
    with ExitStack() as stack:
        stack.enter_context(LocalMirror(properties, pair.root / f"mirror-{groups}"))
        wait_for(lambda: copied(pair), WITHIN, "MM2 to copy all records")
        if way == MM2:
            yield None
        else:
            say(f"{way}: the job starts, and compares everything")
            yield stack.enter_context(committing_job(pair.root / groups, properties))


def _groups(prefix: str, count: int) -> dict[str, int]:
    return {f"{prefix}-{number:05d}": number for number in range(count)}


def _ages(pair: GroupsPair, way: str, size: GroupsSize, job: LocalJob | None, found: dict[str, Any]) -> None:
    """MM2 knows no offsets from before it was started, but at the end of a log."""
    groups, chance = _groups(f"age-{way}", size.groups), random.Random(size.groups)
    pair.commit(groups, BEGINNING)
    places = (AT_END, BEHIND, BUSY) if job else (AT_END, BUSY)
    # The others are compared before the last one.
    last = dict([list(groups.items())[-1]])
    _sync_one(pair, way, last)
    # Where MM2 copies many partitions at once it leaves offset-syncs out, and but for the end there is no answer then.
    able = pair.synced(groups, past=-1) if job else groups.keys()
    chosen = chance.sample(sorted(able - last.keys()), size.commits * len(places))
    for number, place in enumerate(places):
        these = {name: groups[name] for name in chosen[number * size.commits : (number + 1) * size.commits]}
        others = {name: number for name, number in groups.items() if name not in chosen} if place == BUSY else {}
        before, start = cost(job.pids) if job else None, time.monotonic()
        say(f"{way}, {place}: {size.commits} commits, one after the other")
        arrivals = Arrivals(pair.synced)
        found["ages"][f"{way}, {place}"] = arrivals.seconds
        with others_commit(pair, others, size.others):
            _commit_in_turn(pair, these, place, chance, arrivals)
        if job and before:
            used = cost(job.pids).since(before).cpu_seconds
            found["cpu"][f"{way}, {place}"] = 60 * used / (time.monotonic() - start)


def _commit_in_turn(
    pair: GroupsPair, groups: Mapping[str, int], place: str, chance: random.Random, arrivals: Arrivals[int]
) -> None:
    """Commits one group after the other on the source. Raises WaitedTooLong when one does not arrive."""
    with arrivals:
        for name, number in groups.items():
            # Commits come at random moments: a matter of time, not of a condition.
            threading.Event().wait(chance.expovariate(1 / MEAN_GAP))
            pair.commit({name: number}, chance.randrange(RECORDS * 3 // 4, RECORDS) if place == BEHIND else RECORDS)
            arrivals.expect(name, number)
        arrivals.wait(WITHIN)


def _many(pair: GroupsPair, way: str, size: GroupsSize) -> dict[str, Any]:
    groups = _groups(f"age-many-{way}", size.many)
    pair.commit(groups, BEGINNING)
    with _started(pair, way, f"age-many-{way}") as job:
        if job is None:
            raise LockstepError("the pass over many groups needs the job")
        (first, *others) = groups.items()
        _sync_one(pair, way, dict([first]))
        found = pass_cost(job, lambda: _all_at_once(pair, dict(others)), size.idle)
        return {"groups": size.many, **found}


def _sync_one(pair: GroupsPair, way: str, one: Mapping[str, int]) -> None:
    """Returns when the program that commits is at work. The group will not be committed again."""
    start = time.monotonic()
    pair.commit(one, RECORDS)
    wait_for(lambda: pair.synced(one), WITHIN, "a first commit to be synced")
    say(f"{way}: a first commit was synced after {time.monotonic() - start:.1f} s")


def _all_at_once(pair: GroupsPair, groups: Mapping[str, int]) -> float:
    """Seconds from the last commit's answer until the target has all."""
    start, left = time.monotonic(), dict(groups)
    pair.commit(groups, RECORDS)
    committed = time.monotonic()
    say(f"{len(groups):,} groups committed within {committed - start:.1f} s")

    def done() -> bool:
        # Few at a time: what the bench asks for costs the target as much as what the job asks for.
        threading.Event().wait(LOOK_EVERY)
        for name in pair.synced(dict(islice(left.items(), AT_ONCE))):
            del left[name]
        return not left

    wait_for(done, 2 * WITHIN, f"the offsets of {len(groups)} groups to be synced")
    seconds = time.monotonic() - committed
    say(f"the last was there {seconds:.1f} s later")
    return seconds


def _end(number: int, frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def main(
    ways: Annotated[str, typer.Option(help="Who commits, comma separated.")] = ",".join(WAYS),
    many: Annotated[str, typer.Option(help="The ways of the pass over many groups.")] = LOCKSTEP,
    groups: Annotated[int, typer.Option(help="Groups of that pass.")] = FULL.many,
    smoke: Annotated[bool, typer.Option(help="Few groups and commits: a minute or two for each way.")] = False,
    out: Annotated[Path, typer.Option(help="The file for the results.")] = RESULTS,
) -> None:
    """Measures, saves after each way, and prints what came out."""
    chosen, of_many = ([way for way in text.split(",") if way] for text in (ways, many))
    if unknown := {*chosen, *of_many} - set(WAYS):
        raise typer.BadParameter(f"{', '.join(unknown)}: of {', '.join(WAYS)}", param_hint="--ways")
    # What was started is stopped then as well, and what was measured is kept.
    signal.signal(signal.SIGTERM, _end)
    found = measure_groups(SMOKE if smoke else replace(FULL, many=groups), chosen, of_many, partial(save, out))
    sys.stdout.write(section(found))


if __name__ == "__main__":
    typer.run(main)
