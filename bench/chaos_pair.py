"""What chaos falls on: two clusters, MM2 and the job between them, and foreign items on the target."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import psutil

from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from app.local.local_mirror import LocalMirror, mirror_properties
from app.local.waiting import wait_for
from bench.every_kind import HERE, KEYS, NAME, THERE, USER, EveryKind, KindsSide, credential_keys, every_kind, tried
from bench.job_file import write_job_file
from sinks.kafka.ports.acl_binding import LITERAL, TOPIC, AclBinding
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL
from sinks.kafka.ports.users import Upsertion
from sinks.kinds.quotas.quota_port import Entity
from sinks.kinds.quotas.rules import keys_of
from sinks.ledger.audit_events import read_audit
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Key, Kind
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

STARTS_WITHIN: Final = 600.0
THEIRS: Final = "theirs"
AUDIT: Final = "lockstep-audit.a.internal"
LEDGER: Final = "lockstep-ledger.a.internal"
RECORDS_A_CHANGE: Final = 7

MIRROR: dict[str, str] = {
    "refresh.topics.interval.seconds": "5",
    "emit.checkpoints.interval.seconds": "1",
    "emit.heartbeats.interval.seconds": "1",
    "offset.lag.max": "10",
    "lockstep.scram.users.adopt": USER,
}
"""Of the properties file: MM2 as fast as it goes, and a user that stays ours when the ledger was reset."""


@dataclass
class ChaosPair:
    """`chance`: what is random. `topics`: further topics of the source, `written`: records on the source's topic."""

    a: LocalCluster
    b: LocalCluster
    mirror: LocalMirror
    job: LocalJob
    kinds: EveryKind
    config: Path
    chance: random.Random
    topics: list[str] = field(default_factory=list)
    written: int = 0

    def cluster(self, alias: str) -> LocalCluster:
        """By its alias."""
        return self.a if alias == "a" else self.b

    def change(self) -> None:
        """Changes something of every kind on the source, and the group has read all of it. Raises LockstepError."""
        records = [(b"%d" % (self.written + number), b"v") for number in range(RECORDS_A_CHANGE)]
        source = self.kinds.source.ports
        source.cluster.append_log(NAME, records)
        self.written += RECORDS_A_CHANGE
        seen = source.groups.ends([HERE])
        if HERE not in seen.items:
            raise LockstepError(f"the end of {HERE} on a: {seen.errors.get(HERE)}")
        self.kinds.change(seen.items[HERE].end)
        self.topics.append(f"{NAME}-{self.kinds.step}")

    def missing(self) -> dict[str, str]:
        """What is not equal; empty once MM2 has copied everything, too."""
        try:
            target = self.kinds.target.ports
            last = target.cluster.read_log(THERE.topic, 1)
            if [key for key, _ in last] != [b"%d" % (self.written - 1)]:
                return {"records": f"MM2 is at {last}"}
            self.kinds.offset = target.groups.ends([THERE]).items[THERE].end
            absent = {f"a.{name}" for name in self.topics} - target.cluster.list_topics().keys()
            hosts = self._hosts(self.kinds.source, NAME) - self._hosts(self.kinds.target, THERE.topic)
            found = {kind.value: why for kind, why in self.kinds.missing().items()}
            left = {"topics that are missing": sorted(absent), "hosts without their ACL": sorted(hosts)}
            return {**found, **{what: str(these) for what, these in left.items() if these}}
        except (LockstepError, KeyError) as error:
            return {"an answer": str(error)}

    @staticmethod
    def _hosts(side: KindsSide, topic: str) -> set[str]:
        """Those from which the user may read."""
        return {
            one.host
            for one in side.ports.acls.describe()
            if (one.principal, one.resource_name) == (f"User:{USER}", topic)
        }

    def foreign(self) -> dict[str, Any]:
        """The foreign items on the target, as they are now. Raises LockstepError."""
        side, where = self.kinds.target, TopicPartition(THEIRS, 0)
        cluster, groups = side.ports.cluster, side.ports.groups
        configs = cluster.describe_topic_configs([THEIRS]).items.get(THEIRS, {})
        levels = side.levels.describe([DEFAULT_OF_ALL]).items[DEFAULT_OF_ALL]
        return {
            "topic": (cluster.topic_ids([THEIRS]), configs["retention.ms"].value, cluster.read_log(THEIRS)),
            "acl": foreign_acl() in side.ports.acls.describe(),
            "user": side.ports.users.describe([THEIRS]),
            "quota": side.quotas.describe().get(Entity(THEIRS)),
            "broker config": levels["background.threads"].value,
            "group": groups.committed([THEIRS]).items[THEIRS].get(where),
        }

    def untold(self) -> list[str]:
        """What Lockstep created on the target without an audit event. Raises LockstepError."""
        side = self.kinds.target
        told = {(event.kind, event.key) for event in read_audit(AUDIT, side.ports.cluster)}
        there: dict[Kind, set[Key]] = {
            # MM2 makes some of the topics.
            Kind.TOPIC: Ledger(LEDGER, side.ports.cluster, None, None).owned(Kind.TOPIC),
            Kind.ACL: {one.key for one in side.ports.acls.describe() if one.principal == f"User:{USER}"},
            Kind.SCRAM_USER: {(USER, mechanism) for mechanism in side.ports.users.describe([USER]).get(USER, {})},
            Kind.CLIENT_QUOTA: {key for key in keys_of(side.quotas.describe()) if key[0] == USER},
        }
        return [f"{kind} {key}" for kind, keys in there.items() for key in keys if (kind.value, key) not in told]

    def kill_job(self) -> None:
        """SIGKILL to all of its processes."""
        self.signal_job(signal.SIGKILL)
        self.job.stop()

    def signal_job(self, number: signal.Signals) -> None:
        """Sends the signal to all processes of the job. Spark's are in a process group of their own."""
        for pid in self.job.pids:
            with suppress(psutil.NoSuchProcess):
                first = psutil.Process(pid)
                for process in (first, *first.children(recursive=True)):
                    with suppress(psutil.NoSuchProcess):
                        process.send_signal(number)


def foreign_acl() -> AclBinding:
    """A foreign ACL, on a topic that Lockstep keeps in step."""
    return AclBinding(TOPIC, THERE.topic, LITERAL, f"User:{THEIRS}", "*", "READ", "ALLOW")


def _put_foreign(kinds: EveryKind) -> None:
    side = kinds.target
    cluster = side.ports.cluster
    cluster.create_topics({THEIRS: TopicSpec(1, 1, (("retention.ms", "123456789"),))})
    wait_for(lambda: THEIRS in cluster.list_topics(), STARTS_WITHIN, f"{THEIRS} to be listed")
    cluster.append_log(THEIRS, [(b"%d" % number, b"v") for number in range(5)])
    side.ports.acls.create([foreign_acl()])
    side.ports.users.upsert([Upsertion(THEIRS, "SCRAM-SHA-256", 4096, "their own")])
    side.quotas.alter({Entity(THEIRS): {"producer_byte_rate": 7.0}})
    side.levels.alter({DEFAULT_OF_ALL: {"background.threads": "11"}})
    side.ports.groups.commit({THEIRS: {TopicPartition(THEIRS, 0): 3}})


@contextmanager
def chaos_pair(root: Path, seed: int) -> Iterator[ChaosPair]:
    """Everything is up and equal, and the foreign items are there."""
    with ExitStack() as stack:
        a, b = (LocalCluster(alias, root / alias, heap="512m") for alias in "ab")
        for cluster in (a, b):
            stack.callback(cluster.stop)
            cluster.start(wait=False)
            cluster.wait_until_ready(STARTS_WITHIN)
        keys = {**KEYS, **MIRROR, **credential_keys(root / "passwords")}
        properties = mirror_properties({"a": a.bootstrap, "b": b.bootstrap}, ["a->b"], **keys)
        config, port = write_job_file(properties, root)
        kinds = stack.enter_context(every_kind(config, 1))
        kinds.source.ports.cluster.create_topics({NAME: TopicSpec(1, 1)})
        _put_foreign(kinds)
        mirror = LocalMirror(properties, root / "mirror")
        stack.callback(mirror.stop)
        mirror.start(wait=False)
        mirror.wait_until_ready(STARTS_WITHIN)
        job = stack.enter_context(LocalJob(config, port, root / "job.log"))
        made = ChaosPair(a, b, mirror, job, kinds, config, random.Random(seed))
        wait_for(partial(tried, made.change), STARTS_WITHIN, "the source to take a first change")
        wait_for(lambda: not made.missing(), STARTS_WITHIN, "source and target to be equal before the first fault")
        yield made
