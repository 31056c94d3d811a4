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
from bench.drill.programs import LOCKSTEP, WRITERS, committing_job, mm2_properties
from bench.groups_page import RESULTS, section
from bench.groups_pair import BEGINNING, RECORDS, WITHIN, Pair, copied, pair_of
from bench.load import POLL
from bench.pass_cost import pass_cost
from streaming.errors import LockstepError

MEAN_GAP: Final = 1.0
"""Seconds between two commits on average; the gaps are distributed exponentially."""

AT_END, BEHIND = "at the end", "behind it"


@dataclass(frozen=True, slots=True)
class Size:
    """`commits` that are timed in each way, among `groups`; `many`: groups of the pass; `idle`: its seconds."""

    topics: int = 50
    groups: int = 1000
    commits: int = 100
    many: int = 10_000
    idle: float = 60.0


FULL: Final = Size()
SMOKE: Final = Size(topics=5, groups=50, commits=6, many=200, idle=10.0)


def measure_groups(size: Size, writers: Sequence[str], *, many: bool) -> dict[str, Any]:
    """`{"groups": …, "topics": …, "ages": {way: seconds}, "pass": …}`; ways by who commits and where the groups are."""
    found: dict[str, Any] = {"groups": size.groups, "topics": size.topics, "ages": {}}
    with (
        tempfile.TemporaryDirectory(prefix="lockstep-bench-groups-") as folder,
        pair_of(Path(folder), size.topics) as pair,
    ):
        for writer in writers:
            with _started(pair, writer, f"age-{writer}"):
                found["ages"] |= _ages(pair, writer, size)
        if many:
            found["pass"] = _many(pair, size)
    return found


def save(path: Path, found: Mapping[str, Any]) -> None:
    """So that the page can be written again."""
    path.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


@contextmanager
def _started(pair: Pair, writer: str, groups: str) -> Iterator[LocalJob | None]:
    """MM2, everything copied, and the job where it is the one to commit."""
    properties = mm2_properties(pair.clusters, writer, "age-.*", f"{groups}-.*")
    with ExitStack() as stack:
        stack.enter_context(LocalMirror(properties, pair.root / f"mirror-{groups}"))
        wait_for(lambda: copied(pair), WITHIN, "MM2 to copy all records")
        yield stack.enter_context(committing_job(pair.root / groups, properties)) if writer == LOCKSTEP else None


def _groups(prefix: str, count: int) -> dict[str, int]:
    return {f"{prefix}-{number:05d}": number for number in range(count)}


def _ages(pair: Pair, writer: str, size: Size) -> dict[str, list[float]]:
    """Seconds by way. MM2 knows no offsets from before it was started, but at the end of a log."""
    groups, chance = _groups(f"age-{writer}", size.groups), random.Random(size.groups)
    pair.commit(groups, BEGINNING)
    places = (AT_END, BEHIND) if writer == LOCKSTEP else (AT_END,)
    chosen = chance.sample(sorted(groups), size.commits * len(places) + 1)
    first = {chosen[-1]: groups[chosen[-1]]}
    pair.commit(first, RECORDS)
    wait_for(lambda: pair.synced(first), WITHIN, "a first commit to be synced")
    ages: dict[str, list[float]] = {}
    for number, place in enumerate(places):
        these = {name: groups[name] for name in chosen[number * size.commits : (number + 1) * size.commits]}
        ages[f"{writer}, {place}"] = Watch(pair).run(these, place, chance)
    return ages


@dataclass
class Watch:
    """Commits one group after the other on the source, and looks at the target for those under way."""

    pair: Pair
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
                offset = RECORDS if place == AT_END else chance.randrange(RECORDS * 3 // 4, RECORDS)
                self.pair.commit({name: number}, offset)
                with self._lock:
                    self._pending[name] = (number, time.monotonic())
            wait_for(lambda: not self._pending, WITHIN, f"the last of {len(groups)} commits to be synced")
        finally:
            stop.set()
            watcher.join()
        return self.seconds

    def _look(self, stop: threading.Event) -> None:
        while not stop.wait(POLL):
            with self._lock:
                pending = dict(self._pending)
            if pending:
                arrived, now = (
                    self.pair.synced({name: number for name, (number, _) in pending.items()}),
                    time.monotonic(),
                )
                with self._lock:
                    self.seconds += [now - self._pending.pop(name)[1] for name in arrived]


def _many(pair: Pair, size: Size) -> dict[str, Any]:
    groups = _groups("age-many", size.many)
    pair.commit(groups, BEGINNING)
    with _started(pair, LOCKSTEP, "age-many") as job:
        if job is None:
            raise LockstepError("the pass over many groups needs the job")
        one = dict([next(iter(groups.items()))])
        pair.commit(one, RECORDS)
        wait_for(lambda: pair.synced(one), WITHIN, "a first commit to be synced")
        return {"groups": size.many, **pass_cost(job, lambda: _all_at_once(pair, groups), size.idle)}


def _all_at_once(pair: Pair, groups: Mapping[str, int]) -> float:
    """Seconds from the last commit's answer until the target has all."""
    pair.commit(groups, RECORDS)
    start, left = time.monotonic(), dict(groups)

    def none_left() -> bool:
        # Those that have not arrived are looked at, a few at a time: the looks are requests to the target as well.
        few = dict(list(left.items())[:200])
        for name in pair.synced(few):
            del left[name]
        return not left

    wait_for(none_left, 2 * WITHIN, f"the offsets of {len(groups)} groups to be synced")
    return time.monotonic() - start


def main(
    writers: Annotated[str, typer.Option(help="Whose offsets, comma separated.")] = ",".join(WRITERS),
    many: Annotated[bool, typer.Option(help="Whether the pass over many groups is measured.")] = True,
    smoke: Annotated[bool, typer.Option(help="Few groups and commits: a minute or two for each writer.")] = False,
    out: Annotated[Path, typer.Option(help="The file for the results.")] = RESULTS,
) -> None:
    """Measures, saves, and prints what came out."""
    chosen = writers.split(",")
    if unknown := set(chosen) - set(WRITERS):
        raise typer.BadParameter(f"{', '.join(unknown)}: of {', '.join(WRITERS)}", param_hint="--writers")
    found = measure_groups(SMOKE if smoke else FULL, chosen, many=many)
    save(out, found)
    sys.stdout.write(section(found))


if __name__ == "__main__":
    typer.run(main)
