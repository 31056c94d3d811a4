"""How soon an ACL that is granted or revoked on the source is so on the target, with many ACLs there: beside MM2."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence

from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from app.local.waiting import wait_for
from bench.pair import BenchPair
from bench.saved_figures import p99_verdict, quantiles, table
from bench.scenario import Scenario, bench_of, started
from bench.topic_changes import topic_name
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.acl_binding import LITERAL, TOPIC, AclBinding
from sinks.model.changes import ALLOW

TOPICS = 500
ACLS = 10_000
AT_ONCE = 1_000
ARRIVES_WITHIN = 300.0

WAYS = (
    Scenario("Lockstep, default", own={"sync.full.acl.enabled": "true"}),
    Scenario("MM2, intervals of 5 s", mirror=5),
)

Seconds = dict[str, dict[str, list[float]]]
"""By way, by `granted` and `revoked`: seconds from the answer on the source until the target had it."""


def measure_acls(changes: int) -> Seconds:
    """Each way on the same clusters, one after the other."""
    measured: Seconds = {}
    with bench_of(TOPICS) as pair:
        grant_all(pair.source, [read_acl(f"User:app-{n}", topic_name(n % TOPICS)) for n in range(ACLS)])
        for way in WAYS:
            with started(pair, way):
                measured[way.name] = _changes(pair, way, changes)
    return measured


def grant_all(cluster: KafkaCluster, many: Sequence[AclBinding]) -> None:
    """So many in a request that it takes no second."""
    for start in range(0, len(many), AT_ONCE):
        cluster.acls.create(many[start : start + AT_ONCE])


def read_acl(principal: str, topic: str) -> AclBinding:
    return AclBinding(TOPIC, topic, LITERAL, principal, "*", "READ", ALLOW)


def _changes(pair: BenchPair, way: Scenario, changes: int) -> dict[str, list[float]]:
    target, chance = AdminClient({"bootstrap.servers": pair.b.bootstrap}), random.Random(1)
    name = "lockstep" if way.is_lockstep else "mm2"
    acl_seconds(pair.source, target, read_acl(f"User:{name}-first", topic_name(0)), chance)
    seconds: dict[str, list[float]] = {"granted": [], "revoked": []}
    for number in range(changes):
        one = read_acl(f"User:{name}-{number}", topic_name(chance.randrange(TOPICS)))
        seconds["granted"].append(acl_seconds(pair.source, target, one, chance))
        # MM2 revokes nothing, so there is nothing to wait for.
        if way.is_lockstep:
            seconds["revoked"].append(acl_seconds(pair.source, target, one, chance, revoke=True))
    return seconds


def acl_seconds(
    source: KafkaCluster,
    target: AdminClient,
    acl: AclBinding,
    chance: random.Random,
    mean_gap: float = 1.0,
    *,
    revoke: bool = False,
) -> float:
    """Grants or revokes the ACL on the source after a random pause. Returns seconds from the answer until the target
    has it, or has it no more. Raises WaitedTooLong."""
    time.sleep(chance.expovariate(1 / mean_gap))
    if revoke:
        source.acls.delete([acl])
    else:
        source.acls.create([acl])
    start = time.monotonic()
    wanted = AclBindingFilter(
        ResourceType.TOPIC,
        f"{source.alias}.{acl.resource_name}",
        ResourcePatternType.LITERAL,
        acl.principal,
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    what = f"{acl.principal} to be {'gone' if revoke else 'there'}"
    wait_for(lambda: bool(target.describe_acls(wanted).result()) is not revoke, ARRIVES_WITHIN, what)
    return time.monotonic() - start


HEAD = "| changes | p50 | p90 | p99 | max | goal: p99 ≤ 3 s"
GOAL = 3.0


def section(seconds: Mapping[str, Mapping[str, list[float]]]) -> str:
    """Its part of the page."""
    changes, rows = max(len(times["granted"]) for times in seconds.values()), []
    for name, by_change in seconds.items():
        for what, times in by_change.items():
            if times:
                goal = p99_verdict(times, GOAL) if name.startswith("Lockstep") else "-"
                rows.append([f"{name}: {what}", str(len(times)), *quantiles(times), goal])
    return (
        f"## ACLs\n{ACLS:,} ACLs of {TOPICS} topics on the source; {changes} of new principals are granted, and "
        "revoked, one after the other, at random moments (1 s apart on average). Seconds until `DescribeAcls` on the "
        f"target shows it (looked at every 50 ms). MM2 revokes nothing.\n\n{table(HEAD, rows)}\n"
    )
