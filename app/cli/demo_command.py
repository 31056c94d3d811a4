"""`lockstep demo`: runs two clusters, MM2 at its defaults and the job, and times changes of the source."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from app.cli.output import DONE, FAILED, complain, print_line, print_table
from app.local.jar_sets import home, is_checkout
from app.local.local_cluster import LocalCluster, started
from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror, mirror_properties, with_discovery
from app.local.ports import free_ports
from app.local.waiting import WaitedTooLong, wait_for
from app.private_files import replace_file
from app.wiring import admin_of, open_cluster
from sinks.kafka.jvm.jvm_login import can_log_in
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.users import Upsertion
from sinks.kafka.records.member import Member
from sinks.lock_file import locked
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

DEMO_FOLDER = home() / "demo"
CONFIG = DEMO_FOLDER / "mirror.properties"
"""The properties file of both MM2 and the job."""

CHECKS_EVERY = 1.0
"""Seconds between two checks whether the job and MM2 still run."""

ARRIVES_WITHIN = 60.0
EXCLUDED = "follower.replication.throttled.replicas"
"""A config that MM2's default `config.properties.exclude` excludes. Cruise Control sets it while it moves replicas
(KIP-894)."""

HEARTBEATS = {"b->a.emit.heartbeats.enabled": "true"}
"""MM2's default for b->a: it writes heartbeats to `a`, so that the flow a->b has some to copy."""


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Keep everything running, and print what to try.")] = False,
) -> None:
    """Starts two local clusters, MM2 and the job, and times changes of the source."""
    raise typer.Exit(DONE if run_demo(keep) else FAILED)


def run_demo(keep: bool) -> bool:
    """Runs the demo. Returns whether all changes arrived and the excluded config survived. `keep`: run until Ctrl-C."""
    with _alone(), ExitStack() as stack:
        shutil.rmtree(DEMO_FOLDER, ignore_errors=True)
        DEMO_FOLDER.mkdir(parents=True)
        complain("starting the clusters a and b ...")
        a, b = (LocalCluster(alias, DEMO_FOLDER / alias) for alias in ("a", "b"))
        stack.enter_context(started(a, b))
        clients = [open_cluster(one.alias, {"bootstrap.servers": one.bootstrap}) for one in (a, b)]
        source, target = (stack.enter_context(closing(client)) for client in clients)
        source.create_topics(DEMO_TOPICS)
        port = free_ports(1)[0]
        properties = _properties({"a": a.bootstrap, "b": b.bootstrap}, port)
        complain(f"starting MirrorMaker 2 with its default intervals and {_shown(CONFIG)} ...")
        mirror = LocalMirror(properties, DEMO_FOLDER / "mirror", file=CONFIG)
        stack.callback(mirror.stop)
        mirror.start(wait=False)
        starter = "./spark-submit.sh" if is_checkout() else "lockstep run"
        complain(f"starting the job with {starter} and the same file ...")
        job = stack.enter_context(LocalJob(CONFIG, port, DEMO_FOLDER / "job.log"))
        job.wait_until_compared(mirror.check)
        mirror.wait_until_ready()
        complain(f"its page is at {job.address}/")

        def check() -> None:
            job.check()
            mirror.check()

        good = _show(a, source, b, target, check)
        if keep:
            stay(what_to_try(job, a, b), {"the job": job.check, "MM2": mirror.check}, threading.Event())
    return good


def _show(
    a: LocalCluster, source: KafkaCluster, b: LocalCluster, target: KafkaCluster, check: Callable[[], None]
) -> bool:
    """Changes the source and prints what arrived. Returns whether all did. `check`: raises if the job or MM2 ended."""
    rows, good = _changes(source, target, check)
    print_table("", ("change on a", "seconds until b had it", "MM2's own interval"), rows)
    survived = override(target, "a.orders", EXCLUDED) == "*"
    print_line(f"{EXCLUDED} set on b by another tool: {'survived' if survived else 'LOST'}")
    listener = {"bootstrap.servers": b.sasl_bootstrap, "security.protocol": "SASL_PLAINTEXT"}
    with closing(admin_of(b.alias, listener)) as admin:
        refused = can_log_in(admin, USER, PASSWORD, MECHANISM)
    print_line(f"{USER} logs in on b with the password of a: {refused or 'yes'}")
    skipped, twice = _move_group(a, source, b, target)
    print_line(
        f"the group {DEMO_GROUP} read {READ} of {RECORDS} records on a and went on with b: "
        f"{skipped} skipped, {twice} read twice"
    )
    return good and survived and refused is None and skipped == 0


def _properties(clusters: Mapping[str, str], port: int) -> dict[str, str]:
    """Returns the properties of MM2 and the job, and writes them to `CONFIG`."""
    # A file for each user, as Kubernetes mounts secrets.
    passwords = DEMO_FOLDER / "passwords"
    passwords.mkdir()
    replace_file(passwords / USER, PASSWORD.encode())
    own = {
        "sync.topic.configs.enabled": "false",
        "lockstep.sync.topic.configs.enabled": "true",
        "sync.topic.acls.enabled": "false",
        "sync.full.acl.enabled": "true",
        "lockstep.credential.provider.class": "lockstep.credentials:DirectoryCredentialProvider",
        "lockstep.credential.store": str(passwords),
        "lockstep.sync.group.offsets.enabled": "true",
        "lockstep.http.port": str(port),
        "lockstep.checkpoint.dir": str(DEMO_FOLDER / "checkpoints"),
    }
    properties = with_discovery(mirror_properties(clusters, ["a->b"], **HEARTBEATS, **own))
    CONFIG.write_text("".join(f"{name} = {value}\n" for name, value in properties.items()))
    return properties


def _changes(
    source: KafkaCluster, target: KafkaCluster, check: Callable[[], None]
) -> tuple[list[tuple[str, str, str]], bool]:
    """Makes each change on the source and times its arrival. Returns the rows, and whether all arrived in time.

    `check`: raises if the job or MM2 has ended.
    """

    def has_arrived(step: DemoStep) -> bool:
        check()
        return step.arrived(target)

    target.alter_topic_configs({"a.orders": {EXCLUDED: "*"}})
    rows, good = [], True
    for step in STEPS:
        start = time.monotonic()
        step.change(source)
        try:
            wait_for(partial(has_arrived, step), ARRIVES_WITHIN, step.what)
            rows.append((step.what, f"{time.monotonic() - start:.1f}", step.mm2))
        except WaitedTooLong:
            rows.append((step.what, f"not within {ARRIVES_WITHIN:g}", step.mm2))
            good = False
    return rows, good


def what_to_try(job: LocalJob, a: LocalCluster, b: LocalCluster) -> list[str]:
    """Returns lines for the operator of a running demo: addresses, a change to make and where to see it, commands."""
    lockstep = ".venv/bin/lockstep" if is_checkout() else "lockstep"
    config = f"--config {_shown(CONFIG)}"
    of_topic = f"{lockstep} configs {config} --cluster"
    return [
        "Everything is still running; Ctrl-C ends it.",
        f"  the page    {job.address}/",
        f"  brokers     a: {a.bootstrap}, b: {b.bootstrap}",
        f"  logs        {_shown(DEMO_FOLDER)}/job.log, mirror/mirror.log",
        "Change something on a, and see it on b, on the page and in the audit:",
        f"  {of_topic} a --alter --topic orders --add-config retention.ms=86400000",
        f"  {of_topic} b --describe --topic a.orders",
        "Or try:",
        *(f"  {lockstep} {command} {config}" for command in ("status", "topics", "offsets", "plan", "audit")),
        "Or kill the job or MM2, ask for the status, and start the job again:",
        f"  {lockstep} run {config}",
    ]


def stay(lines: Sequence[str], checks: Mapping[str, Callable[[], None]], over: threading.Event) -> None:
    """Prints the lines and waits for Ctrl-C or `over`. The clusters stay after the job or MM2 has ended, for
    inspection.

    `checks`: each raises LockstepError once its process has ended.
    """
    for line in ("", *lines):
        print_line(line)
    sys.stdout.flush()
    running = dict(checks)
    while not over.wait(CHECKS_EVERY):
        for name, check in list(running.items()):
            try:
                check()
            except LockstepError:
                del running[name]
                print_line(f"{name} has ended. The clusters stay until Ctrl-C.")
                sys.stdout.flush()


def _shown(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _alone() -> AbstractContextManager[object]:
    """Locks the demo's folder. Raises LockstepError if another demo runs, because this one would delete its folder."""
    DEMO_FOLDER.parent.mkdir(parents=True, exist_ok=True)
    lock = DEMO_FOLDER.with_suffix(".lock")
    try:
        return locked(lock, within=0)
    except BlockingIOError as error:
        raise LockstepError(f"another demo runs in {DEMO_FOLDER}: end it first") from error
    except OSError as error:
        raise LockstepError(f"the demo's lock {lock} cannot be opened: {error.strerror}; delete it") from error


# A consumer group of the demo that moves from one cluster to the other.


DEMO_GROUP = "billing"
DEMO_TOPIC = "customers"
RECORDS, READ = 500, 333
WITHIN = 60.0
RECORDS_AT_ONCE = 500


def _move_group(a: LocalCluster, source: KafkaCluster, b: LocalCluster, target: KafkaCluster) -> tuple[int, int]:
    """Writes records to the topic, reads some as a group on the source, and the rest as the same group on the target.

    Returns how many records the group skipped, and how many it read twice.
    """
    records = [b"customer-%d" % number for number in range(RECORDS)]
    source.append_log(DEMO_TOPIC, [(record, b"v") for record in records])
    there = TopicPartition(f"a.{DEMO_TOPIC}", 0)
    wait_for(
        lambda: there in (ends := target.groups.ends([there]).items) and ends[there].end >= RECORDS,
        WITHIN,
        f"MM2 to copy the records of {DEMO_TOPIC}",
    )
    before = _read("a", a.bootstrap, DEMO_TOPIC, READ)
    wait_for(
        lambda: there in target.groups.committed([DEMO_GROUP]).items.get(DEMO_GROUP, {}),
        WITHIN,
        f"the offset of {DEMO_GROUP} on b",
    )
    after = _read("b", b.bootstrap, there.topic, None)
    return len(set(records) - set(before) - set(after)), len(set(before) & set(after))


def _read(alias: str, bootstrap: str, topic: str, count: int | None) -> list[bytes]:
    """Reads the next `count` records as the group (None: all that are left) and commits. Returns their keys."""
    with closing(Member(alias, {"bootstrap.servers": bootstrap}, DEMO_GROUP, topic)) as member:

        def enough() -> bool:
            member.read(RECORDS_AT_ONCE if count is None else count - len(member.keys))
            return member.at_end if count is None else len(member.keys) >= count

        wait_for(enough, WITHIN, f"records of {topic} for the group {DEMO_GROUP}")
        member.commit()
        return member.keys


# What the demo changes on the source, and how it sees that the target has it.


MM2_INTERVAL = "600 s"
"""MM2's default of the intervals for configs, topics and ACLs (`sync.topic.configs.interval.seconds` and its like)."""

NEVER_SEEN = "never"
"""Shown for what MM2 never copies: ALLOW WRITE, ACLs of prefixes and groups, users, and the removal of an ACL."""

DEMO_TOPICS: Mapping[str, TopicSpec] = {
    "orders": TopicSpec(3, 1, (("retention.ms", "604800000"),)),
    "payments": TopicSpec(3, 1, (("max.message.bytes", "2000000"),)),
    "customers": TopicSpec(1, 1, (("cleanup.policy", "compact"),)),
}


@dataclass(frozen=True)
class DemoStep:
    what: str
    change: Callable[[KafkaCluster], object]
    arrived: Callable[[KafkaCluster], bool]
    mm2: str = MM2_INTERVAL


def _acl(text: str) -> AclBinding:
    """Parses an ACL such as `ALLOW WRITE User:shop TOPIC orders LITERAL`."""
    permission, operation, principal, resource_type, name, pattern = text.split()
    return AclBinding(resource_type, name, pattern, principal, "*", operation, permission)


def _grant(text: str) -> Callable[[KafkaCluster], object]:
    return lambda cluster: cluster.acls.create([_acl(text)])


def _allows(text: str) -> Callable[[KafkaCluster], bool]:
    return lambda cluster: _acl(text) in cluster.acls.describe()


def _set(topic: str, name: str, value: str | None) -> Callable[[KafkaCluster], object]:
    return lambda cluster: cluster.alter_topic_configs({topic: {name: value}})


def override(cluster: KafkaCluster, topic: str, name: str) -> str | None:
    entry = cluster.describe_topic_configs([topic]).items.get(topic, {}).get(name)
    return entry.value if entry is not None and entry.is_override else None


def _has(topic: str, name: str, value: str | None) -> Callable[[KafkaCluster], bool]:
    return lambda cluster: topic in cluster.list_topics() and override(cluster, topic, name) == value


USER, MECHANISM, PASSWORD = "shop", "SCRAM-SHA-512", "the demo's own secret"
"""The user that logs in on the target at the end. Its password is on the source, and in a folder that the job reads."""

STEPS = (
    DemoStep("config set", _set("payments", "retention.ms", "3600000"), _has("a.payments", "retention.ms", "3600000")),
    DemoStep("config changed", _set("orders", "retention.ms", "7200000"), _has("a.orders", "retention.ms", "7200000")),
    DemoStep("config removed", _set("payments", "retention.ms", None), _has("a.payments", "retention.ms", None)),
    DemoStep(
        "new topic, with a config",
        lambda cluster: cluster.create_topics({"refunds": TopicSpec(2, 1, (("retention.ms", "1800000"),))}),
        _has("a.refunds", "retention.ms", "1800000"),
    ),
    DemoStep(
        "partitions added",
        lambda cluster: cluster.create_partitions({"orders": 6}),
        lambda cluster: cluster.list_topics().get("a.orders") == 6,
    ),
    DemoStep(
        "ALLOW WRITE",
        _grant("ALLOW WRITE User:shop TOPIC orders LITERAL"),
        _allows("ALLOW WRITE User:shop TOPIC a.orders LITERAL"),
        NEVER_SEEN,
    ),
    DemoStep(
        "SCRAM user",
        lambda cluster: cluster.users.upsert([Upsertion(USER, MECHANISM, 8192, PASSWORD)]),
        lambda cluster: cluster.users.describe([USER]) == {USER: {MECHANISM: 8192}},
        NEVER_SEEN,
    ),
    DemoStep(
        "ACL of a prefix",
        _grant("ALLOW READ User:reports TOPIC pay PREFIXED"),
        _allows("ALLOW READ User:reports TOPIC a.pay PREFIXED"),
        NEVER_SEEN,
    ),
    DemoStep(
        "ACL of a group",
        _grant("ALLOW READ User:reports GROUP nightly LITERAL"),
        _allows("ALLOW READ User:reports GROUP nightly LITERAL"),
        NEVER_SEEN,
    ),
    DemoStep(
        "ACL revoked",
        lambda cluster: cluster.acls.delete([_acl("ALLOW READ User:reports TOPIC pay PREFIXED")]),
        lambda cluster: not _allows("ALLOW READ User:reports TOPIC a.pay PREFIXED")(cluster),
        NEVER_SEEN,
    ),
)
