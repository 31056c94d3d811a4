"""All rounds, on one pair of clusters with one MM2 and one job."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import orjson
from pydantic import TypeAdapter

from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror, mirror_properties
from app.local.waiting import WaitedTooLong
from app.wiring import open_cluster
from bench.drill.outcome_rows import Row
from bench.drill.round import DrillSize, Ground, Played, play
from bench.drill.snapshot import Loss
from bench.drill.source_load import CLEANER
from bench.topic_changes import job_of

LOCKSTEP, MM2 = WRITERS = ("lockstep", "mm2")
"""Who commits on the target: never both."""

EVERY_SECOND: Final = ("refresh.topics", "refresh.groups", "emit.checkpoints", "sync.group.offsets")


def mm2_properties(clusters: Mapping[str, str], writer: str, topics: str, groups: str, **more: str) -> dict[str, str]:
    """MM2's file, for bootstrap servers by alias; checkpoints are on for both writers. `more`: further keys."""
    every_second = {f"{name}.interval.seconds": "1" for name in EVERY_SECOND}
    own = {
        "topics": topics,
        "groups": groups,
        "emit.checkpoints.enabled": "true",
        "sync.group.offsets.enabled": str(writer == MM2).lower(),
        # MM2's own default: the heartbeats that the flow a->b copies.
        "b->a.emit.heartbeats.enabled": "true",
    }
    return mirror_properties(clusters, ["a->b"], **(every_second | own | more))


@contextmanager
def committing_job(folder: Path, properties: Mapping[str, str]) -> Iterator[LocalJob]:
    """The job on MM2's file, committing on the target; it has compared everything once."""
    own = {"lockstep.sync.group.offsets.enabled": "true"}
    with job_of({**properties, **own}, folder) as job:
        job.wait_until_compared()
        yield job


RESULTS: Final = Path("benchmarks-drill.json")
FULL: Final = DrillSize(seconds=40.0, groups=4, settle=10.0)
SMOKE: Final = DrillSize(seconds=10.0, groups=1, settle=4.0)
MANY: Final = DrillSize(seconds=12.0, groups=1, settle=10.0)
"""For dozens of rounds."""


SYNCS_KEPT_EVERY: Final = "5 seconds"
"""The job writes MM2's offset-syncs to the ledger with its full comparisons; a round is over before the default one."""


@dataclass(frozen=True, slots=True)
class Way:
    """`writer` of the offsets on the target; `read_committed`: MM2's consumer leaves out what was aborted; `verified`:
    exact offsets of `verify` are tried as well, which needs the job's ledger."""

    writer: str = LOCKSTEP
    read_committed: bool = True
    verified: bool = False


@dataclass(frozen=True)
class DrillSeries:
    """What was found; `failed`: why rounds have no result.

    `aborted`: records of aborted transactions that MM2 copied. `cleaned`: those that compaction took from the source.
    """

    way: Way
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


def drill(rounds: int, way: Way, size: DrillSize, save: Path, first: int = 0) -> DrillSeries:
    """Saves after each round; every other one kills MM2. One that does not come to its end is told, and left out.

    `first`: the number of the first round, which what is random in it comes from.
    """
    found = DrillSeries(way, size, 0, [], [], 0, 0, [])
    with tempfile.TemporaryDirectory(prefix="lockstep-drill-") as folder, _ground(Path(folder), way) as ground:
        for number in range(first, first + rounds):
            kill = number % 2 == 1
            sys.stderr.write(f"round {number + 1} of {first + rounds}{', MM2 is killed' if kill else ''}\n")
            try:
                found = found.after(play(ground, size, number, kill=kill))
            except WaitedTooLong as error:
                sys.stderr.write(f"left out: {error}\n")
                found = replace(found, rounds=found.rounds + 1, failed=[*found.failed, str(error)])
            found.save(save)
    return found


@contextmanager
def _ground(root: Path, way: Way) -> Iterator[Ground]:
    with ExitStack() as stack:
        clusters = {alias: LocalCluster(alias, root / alias, heap="768m", overrides=CLEANER) for alias in "ab"}
        a, b = (stack.enter_context(cluster) for cluster in clusters.values())
        source, target = (open_cluster(alias, {"bootstrap.servers": one.bootstrap}) for alias, one in clusters.items())
        for client in (source, target):
            stack.callback(client.close)
        isolation = "read_committed" if way.read_committed else "read_uncommitted"
        properties = mm2_properties(
            {"a": a.bootstrap, "b": b.bootstrap},
            way.writer,
            topics="drill-.*",
            groups="drill-.*",
            **{"a->b.consumer.isolation.level": isolation, "lockstep.full.comparison.interval": SYNCS_KEPT_EVERY},
        )
        mirror = stack.enter_context(LocalMirror(properties, root / "mirror"))
        job = stack.enter_context(committing_job(root / "job", properties)) if way.writer == LOCKSTEP else None
        config = root / "job" / "mirror.properties" if job and way.verified else None
        yield Ground(a, b, source, target, mirror, job.check if job else _nothing, isolation, config)


def _nothing() -> None:
    """There is no job that could end."""
