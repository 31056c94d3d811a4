"""Faults, one after another and several at once, on real brokers, MM2 and the job: `python -m bench.chaos --help`.

After each storm of faults the source changes, and the time until source and target are equal again is measured. At the
end foreign items on the target must be untouched, and the audit topic must have everything that Lockstep created there.
Exit 1 if one of these does not hold.
"""

from __future__ import annotations

import random
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Final

import psutil
import typer

from app.local.local_cluster import LocalCluster
from app.local.local_job import LocalJob
from app.local.local_mirror import REPLICATED, LocalMirror
from app.local.waiting import WaitedTooLong, wait_for
from bench.costs import family
from bench.every_kind import BROKER_CONFIG, CREDENTIAL, HERE, NAME, QUOTA, THERE, USER, EveryKind, every_kind, tried
from bench.pair import BenchPair, intervals, lockstep, make_topics, pair_of
from bench.saved_figures import FIGURES, lines, page_text, save, say
from sinks.kafka.ports.acl_binding import LITERAL, TOPIC, AclBinding
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL
from sinks.kafka.ports.users import Upsertion
from sinks.kinds.quotas.jvm_quotas import JvmQuotas
from sinks.kinds.quotas.quota_port import Entity
from sinks.kinds.quotas.rules import keys_of
from sinks.ledger.audit import read_audit
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Key, Kind
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

RESULTS: Final = FIGURES / "benchmarks-chaos.json"
MOST_AT_ONCE: Final = 4
LASTS: Final = (1.0, 12.0)
"""Seconds that faults last, between these."""

LIMIT: Final = 300.0
"""Seconds from when MM2 has copied the last records until all is equal; then it is given up, and the next one comes."""

COPIED_WITHIN: Final = 900.0
"""Seconds that MM2 may take to go on after a storm."""


def main(
    faults: Annotated[int, typer.Option(help="How many, at least.")] = 100,
    seed: Annotated[int, typer.Option(help="Of what is random.")] = 1,
    out: Annotated[Path, typer.Option(help="The file for the results.")] = RESULTS,
) -> None:
    """Plays the faults, saves after each storm, and prints what came out."""
    found: dict[str, Any] = {"seed": seed, "asked": faults, "faults": [], "equal": False, "foreign": [], "untold": []}
    with chaos_pair(seed) as pair:
        before = pair.foreign()
        while len(found["faults"]) < faults:
            found["faults"] += storm(pair, len(found["faults"]))
            save(out, found)
        found["equal"] = not pair.missing() or _seconds_until_equal(pair) is not None
        after = pair.foreign()
        found["foreign"] = [
            f"{name}: {before[name]}, then {after[name]}" for name in before if before[name] != after[name]
        ]
        found["untold"] = pair.untold()
    save(out, found)
    sys.stdout.write(section(found))
    raise typer.Exit(0 if found["equal"] and not found["foreign"] and not found["untold"] else 1)


def storm(pair: ChaosPair, number: int) -> list[dict[str, Any]]:
    """Some faults at once, and how long it took until all was equal again; None: longer than LIMIT."""
    chosen = drawn(pair.chance, MOST_AT_ONCE)
    say(f"{number + 1}: {', '.join(chosen)}")
    ends = [fault.begin(pair) for fault in chosen.values()]
    # Not a wait for something: how long faults last is what is varied.
    time.sleep(pair.chance.uniform(*LASTS))
    for end in filter(None, reversed(ends)):
        end()
    seconds = _seconds_until_equal(pair)
    pair.job.check()
    missing = pair.missing() if seconds is None else {}
    say(f"   equal after {seconds:.1f} s" if seconds is not None else f"   not equal: {missing}")
    return [{"storm": number + 1, "fault": name, "seconds": seconds, "missing": missing} for name in chosen]


def _seconds_until_equal(pair: ChaosPair) -> float | None:
    since = time.monotonic()
    wait_for(partial(tried, pair.change), STARTS_WITHIN, "the source to take a change")
    wait_for(lambda: not {"records", "an answer"} & pair.missing().keys(), COPIED_WITHIN, "MM2 to copy the records")
    try:
        wait_for(lambda: not pair.missing(), LIMIT, "source and target to be equal")
    except WaitedTooLong:
        return None
    return time.monotonic() - since


# What may go wrong: how each fault begins, and how it is over.
#
# A change by another client's hand is over at once. The job must undo it, or leave it alone.


End = Callable[[], None]


@dataclass(frozen=True)
class Fault:
    """`touches`: what it happens to; two faults at the same time touch different things. `begin`: returns what ends it;
    None: it is over at once. `lasts`: False where it is over at once. `weight`: how often."""

    touches: str
    begin: Callable[[ChaosPair], End | None]
    lasts: bool = True
    weight: int = 2


def _kill_job(pair: ChaosPair) -> End:
    send(pair.job.pids, signal.SIGKILL)
    pair.job.stop()
    return pair.job.start


def _kill_mirror(pair: ChaosPair) -> End:
    pair.mirror.kill()
    return partial(pair.mirror.start, wait=False)


def _kill_broker(alias: str, pair: ChaosPair) -> End:
    """One of its three: the others elect leaders, and clients find them."""
    broker = pair.chance.randint(1, BROKERS)
    pair.cluster(alias).kill_node(broker)
    return partial(pair.cluster(alias).start_node, broker)


def _kill_brokers(alias: str, pair: ChaosPair) -> End:
    cluster = pair.cluster(alias)
    cluster.kill()

    def start() -> None:
        cluster.start(wait=False)
        cluster.wait_until_ready(STARTS_WITHIN)

    return start


def _freeze(pids: Sequence[int]) -> End:
    send(pids, signal.SIGSTOP)
    return partial(send, pids, signal.SIGCONT)


def _freeze_broker(alias: str, pair: ChaosPair) -> End:
    return _freeze([pair.chance.choice(pair.cluster(alias).pids)])


def _by_hand(touches: str, change: Callable[[ChaosPair], None]) -> Fault:
    """A change that a cluster does not take is none."""

    def begin(pair: ChaosPair) -> None:
        tried(partial(change, pair))

    return Fault(touches, begin, lasts=False)


def _delete_a_topic(pair: ChaosPair) -> None:
    if len(pair.topics) > 1:
        name = pair.chance.choice(pair.topics[:-1])
        pair.topics.remove(name)
        pair.kinds.source.cluster.delete_topics([name])


def _recreate_a_topic(pair: ChaosPair) -> None:
    if len(pair.topics) > 1:
        name, cluster = pair.chance.choice(pair.topics[:-1]), pair.kinds.source.cluster
        cluster.delete_topics([name])
        wait_for(lambda: name not in cluster.list_topics(), 60.0, f"{name} to be gone")
        cluster.create_topics({name: TopicSpec(2, BROKERS)})


def _config_by_hand(pair: ChaosPair) -> None:
    pair.kinds.target.cluster.alter_topic_configs({THERE.topic: {"retention.ms": "777"}})


def _quota_by_hand(pair: ChaosPair) -> None:
    JvmQuotas(pair.kinds.target).alter({Entity(USER): {QUOTA: pair.chance.choice([None, 5.0])}})


def _broker_config_by_hand(pair: ChaosPair) -> None:
    pair.kinds.target.levels.alter({DEFAULT_OF_ALL: {BROKER_CONFIG: pair.chance.choice([None, "777"])}})


def _acls_by_hand(pair: ChaosPair) -> None:
    ours = _acls_of_user(pair.kinds.target)
    pair.kinds.target.acls.delete(pair.chance.sample(ours, min(3, len(ours))))


def _revoke_on_the_source(pair: ChaosPair) -> None:
    old = [one for one in _acls_of_user(pair.kinds.source) if one.resource_name == NAME]
    pair.kinds.source.acls.delete(pair.chance.sample(old, min(2, len(old))))


def _acls_of_user(side: ClusterPorts) -> list[AclBinding]:
    return [one for one in side.acls.describe() if one.principal == f"User:{USER}"]


def _user_by_hand(pair: ChaosPair) -> None:
    users = pair.kinds.target.users
    if pair.chance.random() < 0.5:
        users.delete([CREDENTIAL])
    else:
        users.upsert([Upsertion(*CREDENTIAL, 16384, "by hand")])


def _lose_ledger(pair: ChaosPair) -> None:
    """The flow must stop and say why. Then the bench does what the message says, as an operator would."""
    cluster = pair.kinds.target.cluster
    cluster.delete_topics([LEDGER])
    wait_for(lambda: _stopped(pair), STARTS_WITHIN, "the flow to stop, its ledger being gone")
    if LEDGER in cluster.list_topics():
        raise LockstepError(f"{LEDGER} was made anew, although it had been there")
    pair.job.stop()
    reset = ("ledger", "reset", "--yes", "--config", str(pair.job.config))
    lockstep(*reset, within=STARTS_WITHIN).check_returncode()
    pair.job.start()


def _stopped(pair: ChaosPair) -> bool:
    flows = pair.job.status().get("flows", [])
    return any(flow["state"] == "ERROR" and LEDGER in (flow["reason"] or "") for flow in flows)


FAULTS: Mapping[str, Fault] = {
    "kill -9 of the job": Fault("job", _kill_job),
    "the job frozen": Fault("job", lambda pair: _freeze(pair.job.pids)),
    "kill -9 of MM2": Fault("mirror", _kill_mirror),
    "MM2 frozen": Fault("mirror", lambda pair: _freeze(pair.mirror.pids)),
    "kill -9 of a broker of the source": Fault("a", partial(_kill_broker, "a")),
    "kill -9 of a broker of the target": Fault("b", partial(_kill_broker, "b")),
    "kill -9 of all brokers of the source": Fault("a", partial(_kill_brokers, "a"), weight=1),
    "kill -9 of all brokers of the target": Fault("b", partial(_kill_brokers, "b"), weight=1),
    "a broker of the source frozen": Fault("a", partial(_freeze_broker, "a")),
    "a broker of the target frozen": Fault("b", partial(_freeze_broker, "b")),
    "a topic of the source deleted": _by_hand("topics", _delete_a_topic),
    "a topic of the source recreated": _by_hand("topics", _recreate_a_topic),
    "ACLs revoked on the source": _by_hand("source's ACLs", _revoke_on_the_source),
    "a topic config altered on the target": _by_hand("config", _config_by_hand),
    "a quota altered on the target": _by_hand("quota", _quota_by_hand),
    "a broker config altered on the target": _by_hand("broker config", _broker_config_by_hand),
    "ACLs deleted on the target": _by_hand("ACLs", _acls_by_hand),
    "a user altered on the target": _by_hand("user", _user_by_hand),
    "the ledger deleted, then reset": Fault("job", _lose_ledger, lasts=False, weight=1),
}


def drawn(chance: random.Random, most: int) -> dict[str, Fault]:
    """At most `most` faults that touch different things, by name. Changes by hand come first, while clusters answer."""
    chosen: dict[str, Fault] = {}
    for _ in range(chance.randint(1, most)):
        touched = {fault.touches for fault in chosen.values()}
        left = [name for name, fault in FAULTS.items() if fault.touches not in touched]
        name = chance.choices(left, [FAULTS[one].weight for one in left])[0]
        chosen[name] = FAULTS[name]
    return dict(sorted(chosen.items(), key=lambda one: one[1].lasts))


# What chaos falls on: two clusters, MM2 and the job between them, and foreign items on the target.

STARTS_WITHIN: Final = 600.0
THEIRS: Final = "theirs"
AUDIT: Final = "lockstep-audit.a.internal"
LEDGER: Final = "lockstep-ledger.a.internal"
RECORDS_A_CHANGE: Final = 7

BROKERS: Final = 3
"""Of each cluster. One of them may be away."""

SURVIVES: Final = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "share.coordinator.state.topic.replication.factor": "3",
}
"""Brokers' properties."""

MIRROR: dict[str, str] = {
    "replication.factor": "3",
    **{f"{name}.replication.factor": "3" for name in REPLICATED},
    **intervals(5, "refresh.topics"),
    **intervals(1, "emit.checkpoints", "emit.heartbeats"),
    "offset.lag.max": "10",
    "lockstep.scram.users.adopt": USER,
}
"""Of the properties file: MM2 as fast as it goes, and a user that stays ours when the ledger was reset."""


@dataclass
class ChaosPair:
    """`topics`: further topics of the source. `written`: records on the source's topic."""

    clusters: BenchPair
    mirror: LocalMirror
    job: LocalJob
    kinds: EveryKind
    chance: random.Random
    topics: list[str] = field(default_factory=list)
    written: int = 0

    def cluster(self, alias: str) -> LocalCluster:
        return self.clusters.a if alias == "a" else self.clusters.b

    def change(self) -> None:
        """Changes something of every kind on the source, and the group has read all of it. Raises LockstepError."""
        records = [(b"%d" % (self.written + number), b"v") for number in range(RECORDS_A_CHANGE)]
        source = self.kinds.source
        source.cluster.append_log(NAME, records)
        self.written += RECORDS_A_CHANGE
        seen = source.groups.latest([HERE])
        if HERE not in seen.items:
            raise LockstepError(f"the end of {HERE} on a: {seen.errors.get(HERE)}")
        self.kinds.change(seen.items[HERE])
        self.topics.append(f"{NAME}-{self.kinds.step}")

    def missing(self) -> dict[str, str]:
        """What is not equal; empty once MM2 has copied everything, too."""
        try:
            target = self.kinds.target
            last = target.cluster.read_log(THERE.topic, 1)
            if [key for key, _ in last] != [b"%d" % (self.written - 1)]:
                return {"records": f"MM2 is at {last}"}
            self.kinds.offset = target.groups.latest([THERE]).items[THERE]
            absent = {f"a.{name}" for name in self.topics} - target.cluster.list_topics().keys()
            hosts = self._hosts(self.kinds.source, NAME) - self._hosts(target, THERE.topic)
            left = {"topics that are missing": sorted(absent), "hosts without their ACL": sorted(hosts)}
            return {**self.kinds.missing(), **{what: str(these) for what, these in left.items() if these}}
        except (LockstepError, KeyError) as error:
            return {"an answer": str(error)}

    @staticmethod
    def _hosts(side: ClusterPorts, topic: str) -> set[str]:
        """Those from which the user may read."""
        return {one.host for one in _acls_of_user(side) if one.resource_name == topic}

    def foreign(self) -> dict[str, Any]:
        """The foreign items on the target, as they are now. Raises LockstepError."""
        side, where = self.kinds.target, TopicPartition(THEIRS, 0)
        configs = side.cluster.describe_topic_configs([THEIRS]).items.get(THEIRS, {})
        levels = side.levels.describe([DEFAULT_OF_ALL]).items[DEFAULT_OF_ALL]
        return {
            "topic": (side.cluster.topic_ids([THEIRS]), configs["retention.ms"].value, side.cluster.read_log(THEIRS)),
            "acl": FOREIGN_ACL in side.acls.describe(),
            "user": side.users.describe([THEIRS]),
            "quota": JvmQuotas(side).describe().get(Entity(THEIRS)),
            "broker config": levels["background.threads"].value,
            "group": side.groups.committed([THEIRS]).items[THEIRS].get(where),
        }

    def untold(self) -> list[str]:
        """What Lockstep created on the target without an audit event. Raises LockstepError."""
        side = self.kinds.target
        told = {(event.kind, event.key) for event in read_audit(AUDIT, side.cluster)}
        there: dict[Kind, set[Key]] = {
            # MM2 makes some of the topics.
            Kind.TOPIC: Ledger(LEDGER, side.cluster, None, None).owned(Kind.TOPIC),
            Kind.ACL: {one.key for one in _acls_of_user(side)},
            Kind.SCRAM_USER: {(USER, mechanism) for mechanism in side.users.describe([USER]).get(USER, {})},
            Kind.CLIENT_QUOTA: {key for key in keys_of(JvmQuotas(side).describe()) if key[0] == USER},
        }
        return [f"{kind} {key}" for kind, keys in there.items() for key in keys if (kind.value, key) not in told]


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """The signal to these processes and all below them. Spark's are in a process group of their own."""
    for process in family(pids):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


FOREIGN_ACL: Final = AclBinding(TOPIC, THERE.topic, LITERAL, f"User:{THEIRS}", "*", "READ", "ALLOW")
"""On a topic that Lockstep keeps in step."""


@contextmanager
def chaos_pair(seed: int) -> Iterator[ChaosPair]:
    """Everything is up and equal, and the foreign items are there."""
    with pair_of("chaos", BROKERS, heap="384m", overrides=SURVIVES) as clusters:
        kinds = every_kind(clusters, BROKERS)
        keys = {**kinds.keys(), **MIRROR}
        make_topics(clusters.source, {NAME: TopicSpec(1, BROKERS)})
        side = kinds.target
        make_topics(side.cluster, {THEIRS: TopicSpec(1, BROKERS, (("retention.ms", "123456789"),))})
        side.cluster.append_log(THEIRS, [(b"%d" % number, b"v") for number in range(5)])
        side.acls.create([FOREIGN_ACL])
        side.users.upsert([Upsertion(THEIRS, "SCRAM-SHA-256", 4096, "their own")])
        JvmQuotas(side).alter({Entity(THEIRS): {"producer_byte_rate": 7.0}})
        side.levels.alter({DEFAULT_OF_ALL: {"background.threads": "11"}})
        side.groups.commit({THEIRS: {TopicPartition(THEIRS, 0): 3}})
        with clusters.mirror(**keys) as mirror, clusters.job(**keys) as job:
            made = ChaosPair(clusters, mirror, job, kinds, random.Random(seed))
            wait_for(partial(tried, made.change), STARTS_WITHIN, "the source to take a first change")
            wait_for(lambda: not made.missing(), STARTS_WITHIN, "source and target to be equal before the first fault")
            yield made


# Of bench/figures/benchmarks.md, the part on chaos.


def section(found: Mapping[str, Any]) -> str:
    faults = found["faults"]
    storms = [list(storm) for _, storm in groupby(faults, key=itemgetter("storm"))]
    seconds = [storm[0]["seconds"] for storm in storms if storm[0]["seconds"] is not None]
    left = dict.fromkeys(
        f"{kind} {why}" for one in faults if one["seconds"] is None for kind, why in one["missing"].items()
    )
    times = "Never equal."
    if seconds:
        times = f"Until equal, median {statistics.median(seconds):.1f} s, slowest {max(seconds):.1f} s."
    given_up = f"\n- Given up, and equal after a later storm: {', '.join(left)}." if left else ""
    return page_text("benchmarks")["Chaos"].format(
        asked=found["asked"],
        seed=found["seed"],
        faults=len(faults),
        storms=len(storms),
        most=max(map(len, storms)),
        equal="yes" if found["equal"] else "no",
        times=times,
        given_up=len(storms) - len(seconds),
        foreign=len(found["foreign"]),
        untold=len(found["untold"]),
        left=given_up,
        rows=lines(_by_fault(faults)),
    )


def _by_fault(faults: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    for name in sorted({one["fault"] for one in faults}):
        these = [one["seconds"] for one in faults if one["fault"] == name]
        known = [seconds for seconds in these if seconds is not None]
        figures = [f"{statistics.median(known):.1f} s", f"{max(known):.1f} s"] if known else ["-", "-"]
        yield [name, str(len(these)), *figures, str(len(these) - len(known))]


if __name__ == "__main__":
    typer.run(main)
