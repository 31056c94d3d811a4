"""Ten times as large: one job with four flows, and MM2 beside it, from 500 topics on: `python -m bench.scale`.

Five clusters of one broker: four sources with the same number of topics, groups and ACLs each, and one target. First
the job makes all of the target's topics and ACLs and syncs all groups. Then another job, with all in step, is timed and
priced. Then MM2 runs alone with the same four flows.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from app.local.local_mirror import LocalMirror, mirror_properties
from bench.pass_cost import resident
from bench.saved_figures import machine, read, save, say
from bench.scale_clusters import FLOWS, ScaleClusters, scale_clusters
from bench.scale_job import changed, first_contact, idle_cpu, steady
from bench.scale_page import FAST, PAGE, RESULTS, page
from streaming.errors import LockstepError

CHANGES: Final = (1.0, 40)
SELDOM: Final = (5.0, 30)
"""Mean seconds between two changes, and how many are timed."""

SELDOM_FROM: Final = 10_000
"""Topics from which on changes that are further apart are timed as well: it takes minutes."""

MIRROR_HEAP: Final = "1g"
INTERVALS: Final = ("sync.topic.configs", "sync.topic.acls", "refresh.topics")
PARTS: Final = ("first", "steady", "mm2")


def main(
    sizes: Annotated[str, typer.Option(help="Numbers of topics in all, comma separated.")] = "500,2000,10000",
    parts: Annotated[str, typer.Option(help="What is measured; `steady` needs what `first` made.")] = ",".join(PARTS),
    keep: Annotated[Path | None, typer.Option(help="Clusters stay in this folder, for another run.")] = None,
    out: Annotated[Path, typer.Option(help="The file for the results.")] = RESULTS,
    render: Annotated[bool, typer.Option("--render", help="Only write the page again.")] = False,
) -> None:
    """Measures, saves after each part, and writes the page."""
    found = read(out) or {"sizes": {}}
    if not render:
        found["facts"] = machine()
        for count in (int(size) for size in sizes.split(",")):
            timed = [CHANGES, *([SELDOM] if count >= SELDOM_FROM else [])]
            of_size = found["sizes"].setdefault(str(count), {})
            for name, result in _measured(count, parts.split(","), timed, keep):
                of_size[name] = result
                save(out, found)
    if out == RESULTS:
        PAGE.write_text(page(found))


def _measured(
    count: int, parts: Sequence[str], timed: Sequence[tuple[float, int]], keep: Path | None
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with _folder(keep, count) as root, scale_clusters(root, count) as clusters:
        for part in parts:
            say(f"{count:,} topics: {part}")
            try:
                if part == "first":
                    yield part, first_contact(clusters)
                elif part == "steady":
                    yield part, steady(clusters, timed, seed=1)
                else:
                    yield part, mirrored(clusters, timed, seed=2)
            except (TimeoutError, LockstepError) as error:
                say(f"left out: {error}")


@contextmanager
def _folder(keep: Path | None, count: int) -> Iterator[Path]:
    if keep is not None:
        root = keep / str(count)
        root.mkdir(parents=True, exist_ok=True)
        yield root
    else:
        with tempfile.TemporaryDirectory(prefix="lockstep-bench-scale-") as folder:
            yield Path(folder)


def mirrored(clusters: ScaleClusters, timed: Sequence[tuple[float, int]], seed: int) -> dict[str, Any]:
    """MM2 alone, its intervals at 1 s, the same four flows."""
    intervals = {f"{name}.interval.seconds": "1" for name in INTERVALS}
    properties = mirror_properties(clusters.bootstraps, FLOWS, **intervals)
    folder = clusters.root / f"mirror-{time.monotonic_ns()}"
    began = time.monotonic()
    with LocalMirror(properties, folder, heap=MIRROR_HEAP) as mirror:
        say(f"MM2's connectors started after {time.monotonic() - began:.1f} s")
        latencies = changed(clusters, timed, seed)
        cpu = idle_cpu(mirror.pids, clusters)
        return {"latencies": latencies, "cpu": cpu, "resident": dict(resident(mirror.pids)), "way": FAST}


if __name__ == "__main__":
    typer.run(main)
