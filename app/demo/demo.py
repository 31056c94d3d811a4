"""`lockstep demo`: two clusters, MM2 at its defaults, the job, and a source that changes while it runs."""

from __future__ import annotations

import fcntl
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType

from app.cli.output import complain, print_line, print_table
from app.demo.demo_move import GROUP, READ, RECORDS, move
from app.demo.demo_steps import MECHANISM, PASSWORD, STEPS, TOPICS, USER, override
from app.local.certificates import write_private
from app.local.jar_sets import home, is_checkout
from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror, mirror_properties
from app.local.ports import free_ports
from app.local.waiting import WaitedTooLong, wait_for
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from sinks.kafka.librdkafka.login import can_log_in
from streaming.errors import LockstepError

FOLDER = home() / "demo"
ARRIVES_WITHIN = 60.0
EXCLUDED = "follower.replication.throttled.replicas"
"""In MM2's default `config.properties.exclude`; Cruise Control sets it while it moves replicas (KIP-894)."""

HEARTBEATS = {"b->a.emit.heartbeats.enabled": "true"}
"""MM2's own default: it writes heartbeats to `a` so that the flow a->b has some to copy."""


def demo(keep: bool) -> bool:
    """Runs it; True when everything arrived and the excluded key survived. `keep`: stays up until Ctrl-C."""
    with _ended_by_signals(), _alone(), ExitStack() as stack:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        complain("starting the clusters a and b ...")
        a, b = (LocalCluster(alias, FOLDER / alias) for alias in ("a", "b"))
        source, target = (_client(stack, cluster) for cluster in (a, b))
        source.create_topics(TOPICS)
        complain("starting MirrorMaker 2 with its default intervals ...")
        clusters = {"a": a.bootstrap, "b": b.bootstrap}
        stack.enter_context(LocalMirror(mirror_properties(clusters, ["a->b"], **HEARTBEATS), FOLDER / "mirror"))
        port = free_ports(1)[0]
        config = _properties(clusters, port)
        complain(f"starting the job with {'./spark-submit.sh' if is_checkout() else 'lockstep run'} ...")
        job = stack.enter_context(LocalJob(config, port, FOLDER / "job.log"))
        job.wait_until_compared()
        rows, good = _changes(source, target, job)
        print_table("", ("change on a", "seconds until b had it", "MM2's own interval"), rows)
        survived = override(target, "a.orders", EXCLUDED) == "*"
        print_line(f"{EXCLUDED} set on b by another tool: {'survived' if survived else 'LOST'}")
        refused = _log_in(b)
        print_line(f"{USER} logs in on b with the password of a: {refused or 'yes'}")
        moved = move(a, source, b, target)
        print_line(
            f"the group {GROUP} read {READ} of {RECORDS} records on a and went on with b: "
            f"{moved.skipped} skipped, {moved.twice} read twice"
        )
        if keep:
            _stay(config)
    return good and survived and refused is None and moved.skipped == 0


def _log_in(target: LocalCluster) -> str | None:
    listener = {"bootstrap.servers": target.sasl_bootstrap, "security.protocol": "SASL_PLAINTEXT"}
    return can_log_in(target.alias, listener, USER, PASSWORD, MECHANISM)


def _client(stack: ExitStack, cluster: LocalCluster) -> KafkaCluster:
    stack.enter_context(cluster)
    client = KafkaCluster(cluster.alias, {"bootstrap.servers": cluster.bootstrap})
    stack.callback(client.close)
    return client


def _passwords() -> Path:
    """A folder with a file for each user, as Kubernetes mounts secrets."""
    folder = FOLDER / "passwords"
    folder.mkdir()
    write_private(folder / USER, PASSWORD.encode())
    return folder


def _properties(clusters: Mapping[str, str], port: int) -> Path:
    own = {
        "sync.topic.configs.enabled": "false",
        "lockstep.sync.topic.configs.enabled": "true",
        "sync.topic.acls.enabled": "false",
        "sync.full.acl.enabled": "true",
        "lockstep.credential.provider.class": "lockstep.credentials:DirectoryCredentialProvider",
        "lockstep.credential.store": str(_passwords()),
        "lockstep.sync.group.offsets.enabled": "true",
        "lockstep.http.port": str(port),
        "lockstep.checkpoint.dir": str(FOLDER / "checkpoints"),
    }
    path = FOLDER / "mirror.properties"
    properties = mirror_properties(clusters, ["a->b"], **own)
    path.write_text("".join(f"{name} = {value}\n" for name, value in properties.items()))
    return path


def _changes(source: KafkaCluster, target: KafkaCluster, job: LocalJob) -> tuple[list[tuple[str, str, str]], bool]:
    target.alter_topic_configs({"a.orders": {EXCLUDED: "*"}})
    rows, good = [], True
    for step in STEPS:
        job.check()
        start = time.monotonic()
        step.change(source)
        try:
            wait_for(partial(step.arrived, target), ARRIVES_WITHIN, step.what)
            rows.append((step.what, f"{time.monotonic() - start:.1f}", step.mm2))
        except WaitedTooLong:
            rows.append((step.what, f"not within {ARRIVES_WITHIN:g}", step.mm2))
            good = False
    return rows, good


def _stay(config: Path) -> None:
    shown = config.relative_to(Path.cwd()) if config.is_relative_to(Path.cwd()) else config
    lockstep = ".venv/bin/lockstep" if is_checkout() else "lockstep"
    print_line()
    print_line("Everything is still running; Ctrl-C ends it. Try, in another terminal:")
    for command in ("status", "topics", "offsets", "plan", "audit"):
        print_line(f"  {lockstep} {command} --config {shown}")
    sys.stdout.flush()
    threading.Event().wait()


@contextmanager
def _alone() -> Iterator[None]:
    """Raises LockstepError where another demo runs: this one would delete its folder."""
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with FOLDER.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise LockstepError(f"another demo runs in {FOLDER}: end it first") from error
        yield


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM ends it like Ctrl-C: what was started is stopped, in order."""

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
