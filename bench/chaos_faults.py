"""What may go wrong in `bench.chaos`: how each fault begins, and how it is over.

A change by another client's hand is over at once. The job must undo it, or leave it alone.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.local.waiting import wait_for
from bench.chaos_pair import LEDGER, STARTS_WITHIN, ChaosPair
from bench.every_kind import BROKER_CONFIG, CREDENTIAL, NAME, QUOTA, THERE, USER
from sinks.kafka.ports.cluster import TopicSpec
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL
from sinks.kafka.ports.users import Upsertion
from sinks.kinds.quotas.quota_port import Entity
from streaming.errors import LockstepError


def nothing(pair: ChaosPair) -> None:
    """The fault is over at once."""


@dataclass(frozen=True)
class Fault:
    """`touches`: what it happens to; two faults at the same time touch different things. `weight`: how often.
    `must_happen`: else a cluster that does not take it is no trouble."""

    touches: str
    begin: Callable[[ChaosPair], None]
    end: Callable[[ChaosPair], None] = nothing
    weight: int = 2
    must_happen: bool = True


def _kill_broker(alias: str) -> Fault:
    def end(pair: ChaosPair) -> None:
        pair.cluster(alias).start(wait=False)
        pair.cluster(alias).wait_until_ready(STARTS_WITHIN)

    return Fault(alias, lambda pair: pair.cluster(alias).kill(), end)


def _freeze_broker(alias: str) -> Fault:
    def send(pair: ChaosPair, number: signal.Signals) -> None:
        for pid in pair.cluster(alias).pids:
            os.kill(pid, number)

    return Fault(alias, lambda pair: send(pair, signal.SIGSTOP), lambda pair: send(pair, signal.SIGCONT))


def _freeze_mirror(pair: ChaosPair, number: signal.Signals) -> None:
    for pid in pair.mirror.pids:
        os.kill(pid, number)


def _delete_a_topic(pair: ChaosPair) -> None:
    if len(pair.topics) > 1:
        name = pair.chance.choice(pair.topics[:-1])
        pair.topics.remove(name)
        pair.kinds.source.ports.cluster.delete_topics([name])


def _recreate_a_topic(pair: ChaosPair) -> None:
    if len(pair.topics) > 1:
        name, cluster = pair.chance.choice(pair.topics[:-1]), pair.kinds.source.ports.cluster
        cluster.delete_topics([name])
        wait_for(lambda: name not in cluster.list_topics(), 60.0, f"{name} to be gone")
        cluster.create_topics({name: TopicSpec(2, 1)})


def _config_by_hand(pair: ChaosPair) -> None:
    pair.kinds.target.ports.cluster.alter_topic_configs({THERE.topic: {"retention.ms": "777"}})


def _quota_by_hand(pair: ChaosPair) -> None:
    pair.kinds.target.quotas.alter({Entity(USER): {QUOTA: pair.chance.choice([None, 5.0])}})


def _broker_config_by_hand(pair: ChaosPair) -> None:
    pair.kinds.target.levels.alter({DEFAULT_OF_ALL: {BROKER_CONFIG: pair.chance.choice([None, "777"])}})


def _acls_by_hand(pair: ChaosPair) -> None:
    ours = [one for one in pair.kinds.target.ports.acls.describe() if one.principal == f"User:{USER}"]
    pair.kinds.target.ports.acls.delete(pair.chance.sample(ours, min(3, len(ours))))


def _user_by_hand(pair: ChaosPair) -> None:
    users = pair.kinds.target.ports.users
    if pair.chance.random() < 0.5:
        users.delete([CREDENTIAL])
    else:
        users.upsert([Upsertion(*CREDENTIAL, 16384, "by hand")])


def _revoke_on_the_source(pair: ChaosPair) -> None:
    source = pair.kinds.source.ports.acls
    old = [one for one in source.describe() if one.principal == f"User:{USER}" and one.resource_name == NAME]
    source.delete(pair.chance.sample(old, min(2, len(old))))


def _lose_the_ledger(pair: ChaosPair) -> None:
    """The flow must stop and say why. Then the bench does what the message says, as an operator would."""
    cluster = pair.kinds.target.ports.cluster
    cluster.delete_topics([LEDGER])
    wait_for(lambda: _stopped(pair), STARTS_WITHIN, "the flow to stop, its ledger being gone")
    if LEDGER in cluster.list_topics():
        raise LockstepError(f"{LEDGER} was made anew, although it had been there")
    pair.job.stop()
    reset = [sys.executable, "-m", "app.main", "ledger", "reset", "--yes", "--config", str(pair.config)]
    subprocess.run(reset, check=True, capture_output=True, timeout=STARTS_WITHIN)
    pair.job.start()


def _stopped(pair: ChaosPair) -> bool:
    flows = pair.job.status().get("flows", [])
    return any(flow["state"] == "ERROR" and LEDGER in (flow["reason"] or "") for flow in flows)


FAULTS: Mapping[str, Fault] = {
    "kill -9 of the job": Fault("job", lambda pair: pair.kill_job(), lambda pair: pair.job.start()),
    "the job frozen": Fault(
        "job", lambda pair: pair.signal_job(signal.SIGSTOP), lambda pair: pair.signal_job(signal.SIGCONT)
    ),
    "kill -9 of MM2": Fault("mirror", lambda pair: pair.mirror.kill(), lambda pair: pair.mirror.start(wait=False)),
    "MM2 frozen": Fault(
        "mirror",
        lambda pair: _freeze_mirror(pair, signal.SIGSTOP),
        lambda pair: _freeze_mirror(pair, signal.SIGCONT),
    ),
    "kill -9 of the source's broker": _kill_broker("a"),
    "kill -9 of the target's broker": _kill_broker("b"),
    "the source's broker frozen": _freeze_broker("a"),
    "the target's broker frozen": _freeze_broker("b"),
    "a topic of the source deleted": Fault("topics", _delete_a_topic, must_happen=False),
    "a topic of the source recreated": Fault("topics", _recreate_a_topic, must_happen=False),
    "ACLs revoked on the source": Fault("source's ACLs", _revoke_on_the_source, must_happen=False),
    "a topic config altered on the target": Fault("config", _config_by_hand, must_happen=False),
    "a quota altered on the target": Fault("quota", _quota_by_hand, must_happen=False),
    "a broker config altered on the target": Fault("broker config", _broker_config_by_hand, must_happen=False),
    "ACLs deleted on the target": Fault("ACLs", _acls_by_hand, must_happen=False),
    "a user altered on the target": Fault("user", _user_by_hand, must_happen=False),
    "the ledger deleted, then reset": Fault("job", _lose_the_ledger, weight=1),
}


def drawn(chance: random.Random, most: int) -> dict[str, Fault]:
    """At most `most` faults that touch different things, by name. Changes by hand come first, while clusters answer."""
    chosen: dict[str, Fault] = {}
    for _ in range(chance.randint(1, most)):
        touched = {fault.touches for fault in chosen.values()}
        left = [name for name, fault in FAULTS.items() if fault.touches not in touched]
        name = chance.choices(left, [FAULTS[one].weight for one in left])[0]
        chosen[name] = FAULTS[name]
    return dict(sorted(chosen.items(), key=lambda one: one[1].end is not nothing))


def begun(pair: ChaosPair, fault: Fault) -> None:
    """Begins it; a change by hand that a cluster does not take is none."""
    try:
        fault.begin(pair)
    except LockstepError:
        if fault.must_happen:
            raise
