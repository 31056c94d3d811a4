"""One row of the matrix: two clusters, an MM2 and the job, and every command between them as a user would type it.

A step that fails is kept with what it said, and the row goes on where it can.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any, Final

import javaproperties
import orjson

from app.local.broker import Node
from app.local.java import QUICK_START, JavaProcess
from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror
from app.local.ports import HOST, free_ports
from app.local.startable import logging_options
from app.local.waiting import wait_for
from bench.every_kind import GROUP, HERE, NAME, THERE, EveryKind, every_kind
from bench.matrix.releases import MIRRORS, RELEASES, is_zookeeper
from bench.pair import BenchPair, intervals, job_of, lockstep, make_topics, started_pair
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.model.changes import Kind
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

SOON: Final = 300.0
ENDS_WITHIN: Final = 300.0
"""Seconds for a command: the slowest waits for MM2."""

RECORDS: Final = 20
BACK: Final = f"{NAME}-back"
"""A topic of the target, which the way back copies."""

INTERNAL: Final = (f"{NAME}.own.internal", f"{NAME}-own-internal")
"""Topics of an application that MM2 3 takes for internal ones, and MM2 4 does not."""

QUICK_MM2: Final = {
    **intervals(1, "emit.heartbeats", "emit.checkpoints", "refresh.topics", "refresh.groups"),
    "offset.lag.max": "0",
    "offset.flush.interval.ms": "1000",
}

OK, FAILED = "ok", "failed"


@dataclass(frozen=True)
class VersionRow:
    """Names of releases: brokers of source and target, and MM2."""

    source: str
    target: str
    mirror: str

    @property
    def name(self) -> str:
        return f"{self.source}:{self.target}:{self.mirror}"

    @property
    def copies_internal(self) -> bool:
        """Whether MM2 copies the topics of `INTERNAL` (KIP-1074)."""
        return not self.mirror.startswith("3")


@dataclass
class RowStep:
    """One step. `said`: what it said where it failed, and what is worth reading where not."""

    name: str
    result: str
    seconds: float
    said: list[str] = field(default_factory=list)


class StepFailed(Exception):
    """Its arguments are the lines that were said."""


@dataclass
class RowClusters:
    """What a row works with. `steps`: those that are over; `kept`: kinds that the source has."""

    row: VersionRow
    clusters: BenchPair
    mirror: LocalMirror
    job: LocalJob
    kinds: EveryKind
    steps: list[RowStep] = field(default_factory=list)
    kept: list[Kind] = field(default_factory=list)

    def lockstep(self, *words: str, config: Path | None = None, codes: Sequence[int] = (0,)) -> dict[str, Any]:
        """What a command printed. Raises StepFailed where it ended with another code."""
        file = str(config or self.job.config)
        try:
            done = lockstep(*words, "--config", file, "-o", "json", within=ENDS_WITHIN)
        except TimeoutExpired:
            raise StepFailed(f"`lockstep {' '.join(words)}` did not end within {ENDS_WITHIN:g} s") from None
        said = [line for line in done.stderr.splitlines() if line.strip()]
        if done.returncode not in codes or "Traceback" in done.stderr:
            raise StepFailed(f"`lockstep {' '.join(words)}`: exit code {done.returncode}", *said[-6:])
        printed: dict[str, Any] = orjson.loads(done.stdout) if done.stdout.strip() else {}
        return printed

    @contextmanager
    def step(self, name: str) -> Iterator[list[str]]:
        """Records it, with the lines that are appended to what it yields; nothing is raised but Ctrl-C."""
        said: list[str] = []
        begun, result = time.monotonic(), OK
        try:
            yield said
        except (StepFailed, LockstepError) as error:
            result = FAILED
            said += error.args if isinstance(error, StepFailed) else [str(error)]
        self.steps.append(RowStep(name, result, round(time.monotonic() - begun, 1), said))
        sys.stderr.write(f"{self.row.name} {name}: {result} {self.steps[-1].seconds:.1f} s {said or ''}\n")

    def command_step(self, name: str, *words: str, config: Path | None = None) -> None:
        """A command whose answer says nothing else."""
        with self.step(name):
            self.lockstep(*words, config=config)

    def wait_until_copied(self) -> None:
        kinds = self.kinds
        copied = f"MM2 to copy the records of {NAME}"
        wait_for(lambda: 0 < end(kinds.source, HERE) <= end(kinds.target, THERE), SOON, copied)


def write(side: ClusterPorts, topic: str = NAME) -> None:
    side.cluster.append_log(topic, [(b"%d" % number, b"v") for number in range(RECORDS)])


def end(side: ClusterPorts, where: TopicPartition) -> int:
    """Of a partition; 0 where it is not known."""
    side.cluster.list_topics()
    return side.groups.latest([where]).items.get(where, 0)


def run(row: VersionRow, root: Path) -> dict[str, Any]:
    """All steps of a row, as `page` shows them."""
    begun = time.monotonic()
    with pair(row, root) as made:
        for part in (prepare, look, keep, ready, move, lose_source, lead_back):
            part(made)
        made.job.stop()
    seconds = round(time.monotonic() - begun, 1)
    today = datetime.now(tz=timezone.utc).date().isoformat()
    jars = {"source": RELEASES[row.source], "target": RELEASES[row.target], "mirror": MIRRORS[row.mirror]}
    versions = {side: one.name.removeprefix("kafka-") for side, one in jars.items()}
    about = {**asdict(row), "versions": versions, "date": today, "seconds": seconds}
    return {**about, "steps": [asdict(one) for one in made.steps]}


@contextmanager
def pair(row: VersionRow, root: Path) -> Iterator[RowClusters]:
    """Clusters that run, and a file with every kind; neither MM2 nor the job has started."""
    a, b = (
        (ZookeeperCluster if is_zookeeper(name) else LocalCluster)(
            alias, root / alias, heap="384m", java_options=QUICK_START, jars=RELEASES[name]
        )
        for name, alias in ((row.source, "a"), (row.target, "b"))
    )
    begun = time.monotonic()
    with started_pair(a, b, root) as clusters:
        begins = RowStep("brokers start", OK, round(time.monotonic() - begun, 1))
        own = {"lockstep.failover.fence.proof": "1 second", "lockstep.trigger.interval": "2 seconds"}
        kinds = every_kind(clusters)
        properties = clusters.properties(**kinds.keys(), **QUICK_MM2, **own)
        mirror = LocalMirror(properties, root / "mirror", java_options=QUICK_START, jars=MIRRORS[row.mirror])
        job = job_of(properties, root)
        try:
            yield RowClusters(row, clusters, mirror, job, kinds, [begins])
        finally:
            job.stop()
            mirror.stop()


def prepare(made: RowClusters) -> None:
    with made.step("source has topics, a group"):
        names = (NAME, *INTERNAL)
        make_topics(made.clusters.source, dict.fromkeys(names, TopicSpec(1, 1)))
        for name in names:
            write(made.kinds.source, name)
    made.kinds.offset = end(made.kinds.source, HERE)
    for kind, change in made.kinds.changes(made.kinds.offset).items():
        with made.step(f"source: {kind.value}"):
            _change(change)
            made.kept.append(kind)


def look(made: RowClusters) -> None:
    """What writes nothing, and `apply`. MM2 starts meanwhile."""
    with made.step("validate") as said:
        said += [row["message"] for row in made.lockstep("validate")["warnings"]]
    made.mirror.start(wait=False)
    for words, codes in ((("plan",), (0, 3)), (("apply", "--yes"), (0,))):
        with made.step(words[0]) as said:
            found = made.lockstep(*words, codes=codes)["flows"][0]
            said += [f"{row['kind']}: {row['reason']}" for row in [*found["refused"], *found["errors"]]]
    with made.step("MM2 copies"):
        made.mirror.wait_until_ready()
        made.wait_until_copied()
        if made.row.copies_internal:
            copies, target = [TopicPartition(f"a.{name}", 0) for name in INTERNAL], made.kinds.target
            wait_for(lambda: all(end(target, copy) for copy in copies), SOON, f"MM2 to copy {INTERNAL}")
    # A group has an offset on the target once its records are there.
    made.command_step("apply again", "apply", "--yes")
    for kind in made.kept:
        with made.step(f"applied: {kind.value}"):
            _wait_until_equal(made, kind)
    if not made.row.copies_internal:
        with made.step("topics without a copy"):
            # `preflight` names the topics that MM2 leaves out, and then the file does.
            checks = made.lockstep("preflight", codes=(0, 3))["flows"][0]["checks"]
            named = [row["figure"] for row in checks if row["name"] == "topics without a copy"]
            if not any(all(name in figure for name in INTERNAL) for figure in named):
                raise StepFailed("preflight does not name them")
            with made.job.config.open("a") as file:
                file.write(f"topics.exclude = mm2.*[.]internal, .*[.]replica, __.*, {', '.join(INTERNAL)}\n")


def keep(made: RowClusters) -> None:
    """The running job, and a change of each kind."""
    with made.step("job starts"):
        made.job.start()
        made.job.wait_until_compared()
    made.wait_until_copied()
    write(made.kinds.source)
    made.kinds.offset = end(made.kinds.source, HERE)
    for kind, change in made.kinds.changes(made.kinds.offset).items():
        if kind in made.kept:
            with made.step(f"job: {kind.value}"):
                _change(change)
                _wait_until_equal(made, kind)
    with made.step("offsets") as said:
        rows = made.lockstep("offsets", "--group", GROUP)["flows"][0]["offsets"]
        said += [f"{row['verdict']} by {row['method']}" for row in rows]
    with made.step("status") as said:
        flow = made.lockstep("status", codes=(0, 4))["flows"][0]
        said += [flow["state"]]
        said += [f"{kind}: {row['task']}: {row['reason']}" for kind, row in flow["kinds"].items() if row["reason"]]
        if flow["state"] != "LIVE":
            raise StepFailed(flow["reason"])
    made.command_step("verify", "verify")


def ready(made: RowClusters) -> None:
    """Could the flow fail over?"""
    with made.step("preflight") as said:
        flow = made.lockstep("preflight", codes=(0, 3))["flows"][0]
        said += [f"{row['name']}: {row['figure']}" for row in flow["checks"] if row["result"] != "OK"]
        if not flow["ready"]:
            raise StepFailed


def _change(change: Callable[[], Iterable[object]]) -> None:
    faults = [str(fault) for fault in change() if fault is not None]
    if faults:
        raise StepFailed(f"the source refuses the change: {faults[0]}")


def _wait_until_equal(made: RowClusters, kind: Kind) -> None:
    wait_for(lambda: made.kinds.equal(kind), SOON, f"the target to have the change of {kind.value}")


def move(made: RowClusters) -> None:
    """A planned failover, and back to mirroring without one."""
    made.command_step("cutover", "cutover", "--yes", "--within", "60")
    with made.step("failback"):
        made.lockstep("failback", "--out", str(made.clusters.root / "first-back.properties"))
        made.lockstep("failback", "--done", "--yes", "unknown")


def lose_source(made: RowClusters) -> None:
    """The source is killed while it is written to."""
    write(made.kinds.source)
    made.clusters.a.kill()
    with made.step("failover, source dead") as said:
        found = made.lockstep("failover", "--dry-run")["flows"][0]["prediction"]
        said.append(f"predicts {found['records']}")
        made.lockstep("failover", "--yes", "unknown" if found["records"] is None else str(found["records"]))


def lead_back(made: RowClusters) -> None:
    """The source comes back, and the way back with an MM2 of its own."""
    root = made.clusters.root
    reverse = root / "back.properties"
    with made.step("source comes back"):
        made.clusters.a.start()
    made.command_step("failback, counted", "failback", "--discard", "1000000", "--out", str(reverse))
    made.mirror.stop()
    made.kinds.target.cluster.create_topics({BACK: TopicSpec(1, 1)})
    with LocalMirror({}, root / "back", java_options=QUICK_START, file=reverse, jars=MIRRORS[made.row.mirror]):
        made.command_step("way back: apply", "apply", "--yes", config=reverse)
        with made.step("way back: cutover"):
            write(made.kinds.target, BACK)
            made.lockstep("cutover", "--yes", "--within", "60", config=reverse)
        made.command_step("way back: offsets --reverse --execute", "offsets", "--reverse", "--execute", "--yes")
        made.command_step("failback --done", "failback", "--done")


MAIN: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
KRAFT_ONLY: Final = ("process.roles", "node.id", "controller.")
"""How properties begin that brokers in ZooKeeper mode refuse."""

ZOOKEEPER_MODE: Final[Mapping[str, str]] = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    # What a killed broker left there would keep it from coming back for longer than a row takes until then.
    "zookeeper.session.timeout.ms": "4000",
    # A broker waits so long for ZooKeeper, which starts at the same time.
    "zookeeper.connection.timeout.ms": "60000",
}


class ZookeeperCluster(LocalCluster):
    """As a cluster in KRaft mode, with a ZooKeeper of its own, which outlives a killed broker."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._port = free_ports(1)[0]
        self._zookeeper: JavaProcess | None = None

    def stop(self) -> None:
        """Brokers first: they tell ZooKeeper that they go."""
        super().stop()
        if self._zookeeper is not None:
            self._zookeeper.stop()
            self._zookeeper = None

    def _prepare(self, classpath: Sequence[Path]) -> None:
        for node in self._nodes:
            self._write(node)
        if self._zookeeper is None:
            file = self._folder / "zookeeper.properties"
            own = {
                "dataDir": str(self._folder / "zookeeper"),
                "clientPort": str(self._port),
                "clientPortAddress": HOST,
                "admin.enableServer": "false",
                # The least session that it grants is two of them, the most twenty.
                "tickTime": "1000",
            }
            file.write_text(javaproperties.dumps(own, timestamp=False), encoding="latin-1")
            options = ["-Xmx256m", "-XX:+UseSerialGC", *logging_options(self._folder)]
            log = self._folder / "zookeeper.log"
            self._zookeeper = JavaProcess(MAIN, [str(file)], classpath, log, options)

    def _properties(self, node: Node) -> dict[str, str]:
        kept = {name: value for name, value in super()._properties(node).items() if not name.startswith(KRAFT_ONLY)}
        for name in ("listeners", "advertised.listeners"):
            kept[name] = ",".join(one for one in kept[name].split(",") if not one.startswith("CONTROLLER:"))
        own = {"broker.id": str(node.id), "zookeeper.connect": f"{HOST}:{self._port}"}
        return {**kept, **ZOOKEEPER_MODE, **own}
