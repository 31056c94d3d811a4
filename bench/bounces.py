"""Whether a running job outlives brokers that go down without notice: `python -m bench.bounces --help`.

Two local clusters, the job between them with topics, configs, ACLs, broker configs and group offsets on. The brokers of
each are killed (SIGKILL) and started again at random moments; meanwhile the source changes. Printed are what the job
said of itself after each, and how long it took after the last until the target had the last change of every kind. Exit
1 where that was longer than LIMIT, or where the job ended.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from app.local.local_mirror import mirror_properties
from app.local.ports import free_ports
from app.local.waiting import WaitedTooLong, wait_for
from sinks.faults import ClusterUnreachable
from sinks.kafka.librdkafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.acl_binding import LITERAL, TOPIC, AclBinding
from sinks.kafka.ports.cluster import TopicSpec
from streaming.mm2.codec import encode_offset_sync
from streaming.mm2.records import OffsetSync, TopicPartition

NAME, GROUP = "bounced", "bounced-group"
HERE, THERE = TopicPartition(NAME, 0), TopicPartition(f"a.{NAME}", 0)
SYNCS = "mm2-offset-syncs.b.internal"
RECORDS = 1000
LIMIT = 30.0
"""Seconds from when the last cluster serves again until the target has everything."""

GIVEN_UP_AFTER = 300.0
"""Seconds; how late it is, is worth knowing too."""

KEYS: Mapping[str, str] = {
    "topics": NAME,
    "groups": GROUP,
    "sync.group.offsets.enabled": "true",
    "lockstep.sync.broker.configs.enabled": "true",
    "emit.checkpoints.enabled": "false",
    "lockstep.emit.checkpoints.enabled": "true",
}


@dataclass
class Pair:
    """Both clusters and the job; `step` numbers the changes of the source."""

    a: LocalCluster
    b: LocalCluster
    source: KafkaCluster
    target: KafkaCluster
    job: LocalJob
    step: int = 0
    missing: set[str] = field(default_factory=set)

    def change(self) -> None:
        """Changes something of every kind on the source. Raises ClusterUnreachable."""
        self.step += 1
        self.source.alter_topic_configs({NAME: {"retention.ms": self._retention}})
        self.source.acls.create([self._acl(NAME)])
        fault = self.source.groups.commit({GROUP: {HERE: self.step}})[GROUP][HERE]
        if fault is not None:
            raise ClusterUnreachable(f"the offset was not committed: {fault}")
        self.source.append_log(SYNCS, [encode_offset_sync(OffsetSync(HERE, self.step, self.step))])

    def equal(self) -> bool:
        """Whether the target has the last change of every kind; if not, `missing` says of which it has not."""
        try:
            configs = self.target.describe_topic_configs([THERE.topic]).items.get(THERE.topic, {})
            retention = configs["retention.ms"].value if configs else None
            offset = self.target.groups.committed([GROUP]).items.get(GROUP, {}).get(THERE, -1)
            acls = self.target.acls.describe()
        except ClusterUnreachable as error:
            self.missing = {str(error)}
            return False
        has = {
            "topic-config": retention == self._retention,
            "group-offset": offset == self.step,
            "acl": self._acl(THERE.topic) in acls,
        }
        self.missing = {kind for kind, there in has.items() if not there}
        return not self.missing

    def says(self) -> str:
        """What the job says of itself."""
        self.job.check()
        flows = self.job.status().get("flows", [])
        return "; ".join(f"{flow['state']} {flow['reason'] or ''}".strip() for flow in flows) or "no answer"

    @property
    def _retention(self) -> str:
        return str(86_400_000 + self.step)

    def _acl(self, topic: str) -> AclBinding:
        return AclBinding(TOPIC, topic, LITERAL, f"User:bounce-{self.step}", "*", "READ", "ALLOW")


@contextmanager
def pair(root: Path, brokers: int) -> Iterator[Pair]:
    """Clusters with a topic whose records are on both, as if MM2 had copied them, and the job, once all is equal."""
    with ExitStack() as stack:
        a, b = (stack.enter_context(LocalCluster(alias, root / alias, brokers, heap="384m")) for alias in "ab")
        source, target = (KafkaCluster(one.alias, one.client_properties()) for one in (a, b))
        stack.callback(source.close)
        stack.callback(target.close)
        records = [(b"%d" % number, b"v") for number in range(RECORDS)]
        for client, topic in ((source, NAME), (target, THERE.topic)):
            client.create_topics({topic: TopicSpec(1, brokers)})
            wait_for(partial(_is_listed, client, topic), LIMIT, f"{topic} to be listed")
            client.append_log(topic, records)
        source.create_log(SYNCS, brokers, {"cleanup.policy": "compact"})
        port = free_ports(1)[0]
        own = {"lockstep.http.port": str(port), "lockstep.checkpoint.dir": str(root / "checkpoints")}
        keys = {**KEYS, **own, "replication.factor": str(brokers)}
        properties = mirror_properties({"a": a.bootstrap, "b": b.bootstrap}, ["a->b"], **keys)
        config = root / "mirror.properties"
        config.write_text("".join(f"{name} = {value}\n" for name, value in properties.items()))
        job = stack.enter_context(LocalJob(config, port, root / "job.log"))
        made = Pair(a, b, source, target, job)
        wait_for(partial(_changed, made), LIMIT, "the source to take a first change")
        job.wait_until_compared()
        wait_for(made.equal, GIVEN_UP_AFTER, "the target to be equal before the first bounce")
        yield made


def bounce(pair: Pair, cluster: LocalCluster, chance: random.Random) -> None:
    """Kills all of its brokers for a while, while the source changes if it can."""
    _pass(chance.uniform(0.0, 5.0))
    down = chance.uniform(1.0, 20.0)
    cluster.kill()
    with suppress(ClusterUnreachable):
        pair.change()
    _pass(down)
    cluster.start()
    with suppress(ClusterUnreachable):
        pair.change()
    _say(f"{cluster.alias} was away for {down:.0f} s: {pair.says()}")


def measure(brokers: int, bounces: int, seed: int) -> bool:
    """True where everything was equal in time."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="lockstep-bounces-") as folder, pair(Path(folder), brokers) as made:
        for _ in range(bounces):
            for cluster in chance.sample([made.a, made.b], 2):
                bounce(made, cluster, chance)
        since = time.monotonic()
        wait_for(partial(_changed, made), GIVEN_UP_AFTER, "the source to take a last change")
        with suppress(WaitedTooLong):
            wait_for(made.equal, GIVEN_UP_AFTER, "the target to be equal")
        seconds = time.monotonic() - since
        if made.missing:
            _say(f"not equal within {GIVEN_UP_AFTER:g} s: {', '.join(sorted(made.missing))}; {made.says()}")
            return False
        _say(f"equal {seconds:.1f} s after {2 * bounces} bounces of {brokers} broker(s) each; {made.says()}")
        return seconds <= LIMIT


def _is_listed(client: KafkaCluster, topic: str) -> bool:
    return topic in client.list_topics()


def _changed(pair: Pair) -> bool:
    with suppress(ClusterUnreachable):
        pair.change()
        return True
    return False


def _pass(seconds: float) -> None:
    # Not a wait for something: when and for how long brokers are away is what is varied.
    time.sleep(seconds)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.bounces", description=__doc__)
    parser.add_argument("--brokers", type=int, default=1, help="of each cluster")
    parser.add_argument("--bounces", type=int, default=10, help="of each cluster")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    options = parser.parse_args()
    _say(f"seed {options.seed}")
    sys.exit(0 if measure(options.brokers, options.bounces, options.seed) else 1)


if __name__ == "__main__":
    main()
