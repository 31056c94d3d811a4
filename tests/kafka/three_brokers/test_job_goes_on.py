"""The running job while one of three brokers is away, on either side, in the midst of its passes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest

from app.local.broker import RESTRICTED
from app.local.local_job import LocalJob
from app.local.waiting import wait_for
from sinks.faults import ClusterUnreachable
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.ledger.audit import read_audit
from sinks.model.changes import Kind
from streaming.mm2.records import TopicPartition
from tests.kafka.failover.failovers import SOURCE, Flow, values
from tests.kafka.staging import flow_of
from tests.kafka.three_brokers.conftest import LEDGER, Trios, away, controller, coordinator, leader, writing

pytestmark = pytest.mark.endurance

TOPIC, GROUP = "leaving-job", "leaving-group"
HERE, THERE = TopicPartition(TOPIC, 0), TopicPartition(f"{SOURCE}.{TOPIC}", 0)

ARRIVES_WITHIN = 300.0
"""Seconds, on a busy machine; a second or two on an idle one."""

MORE = 5
"""Changes that were made after a broker had died, and that the target must have before that broker is back."""


@dataclass
class Changing:
    """ACLs that the source has taken, and how far the group has read there."""

    flow: Flow
    stop: Event = field(default_factory=Event)
    acls: list[AclBinding] = field(default_factory=list)
    read: int = 0

    def run(self) -> None:
        """One change after another; the next one is made when the target has the last but ten."""
        while not self.stop.wait(0.2):
            if len(self.acls) < len(self.arrived()) + 2 * MORE:
                self.change()

    def change(self) -> None:
        number = len(self.acls)
        host = f"10.0.{number // 250}.{number % 250}"
        acl = AclBinding("TOPIC", TOPIC, "LITERAL", "User:reader", host, "READ", "ALLOW")
        try:
            if self.flow.a.acls.create([acl]) != {acl: None}:
                return
            self.acls.append(acl)
        except ClusterUnreachable:
            return
        self.commit()

    def commit(self) -> bool:
        """Commits how far the group has read: to just before the last record. Returns whether that was acknowledged."""
        try:
            end = self.flow.end(TOPIC, 0) - 1
            if any(self.flow.a.groups.commit({GROUP: {HERE: end}})[GROUP].values()):
                return False
        except ClusterUnreachable:
            return False
        self.read = end
        return True

    def arrived(self) -> set[str]:
        """The hosts of those that the target has."""
        try:
            listed = self.flow.b.acls.describe()
        except ClusterUnreachable:
            return set()
        return {acl.host for acl in listed if (acl.principal, acl.resource_name) == ("User:reader", THERE.topic)}


@contextmanager
def changing(flow: Flow) -> Iterator[Changing]:
    made = Changing(flow)
    thread = Thread(target=made.run)
    thread.start()
    try:
        yield made
    finally:
        made.stop.set()
        thread.join(ARRIVES_WITHIN)
    assert not thread.is_alive()


@pytest.fixture
def job(trios: Trios, tmp_path: Path) -> Iterator[LocalJob]:
    flow = trios.flow
    flow.make_topic(TOPIC, 1, 3)
    with LocalJob(flow.config, trios.port, tmp_path / "job.log") as job:
        job.wait_until_compared()
        yield job


def roles(flow: Flow) -> Mapping[str, tuple[str, Callable[[], int]]]:
    """By what a broker does: its cluster, and who does it now."""
    return {
        "the ledger's leader": ("b", lambda: leader(flow.b, LEDGER)),
        "the group's coordinator on the target": ("b", lambda: coordinator(flow.b, GROUP)),
        "the leader of MM2's copy": ("b", lambda: leader(flow.b, THERE.topic)),
        "the target's controller": ("b", lambda: controller(flow.b)),
        "the topic's leader": ("a", lambda: leader(flow.a, TOPIC)),
        "the group's coordinator on the source": ("a", lambda: coordinator(flow.a, GROUP)),
        "the source's controller": ("a", lambda: controller(flow.a)),
    }


def test_nothing_is_lost_and_the_job_goes_on_while_one_broker_after_another_is_killed(
    trios: Trios, job: LocalJob
) -> None:
    flow = trios.flow
    with writing(flow, TOPIC, RESTRICTED) as written, changing(flow) as made:
        for role, (alias, who) in roles(flow).items():
            cluster = flow.clusters.a if alias == "a" else flow.clusters.b
            wait_for(lambda: len(made.arrived()) >= MORE, ARRIVES_WITHIN, f"changes to arrive before {role} dies")
            with away(cluster, who()):
                since, records = len(made.acls), len(written.values)
                last = f"10.0.{(since + MORE) // 250}.{(since + MORE) % 250}"
                wait_for(lambda host=last: host in made.arrived(), ARRIVES_WITHIN, f"changes to arrive without {role}")
                wait_for(
                    lambda n=records: len(written.values) > n, ARRIVES_WITHIN, f"records to be taken without {role}"
                )
            job.check()
    wait_for(made.commit, ARRIVES_WITHIN, "a last commit of the group to be acknowledged")
    wait_for(lambda: flow_of(job)["state"] == "LIVE", ARRIVES_WITHIN, "the flow to be LIVE")
    acls_are_kept(flow, made)
    wait_for(
        lambda: {*values(flow.clusters.b, THERE)} >= {*values(flow.clusters.a, HERE)}, ARRIVES_WITHIN, "all copies"
    )
    originals, copies = values(flow.clusters.a, HERE), values(flow.clusters.b, THERE)
    assert {*written.values} <= {*originals}
    # MM2 sends records twice when a broker dies, so offsets differ on both sides.
    begin = wait_for(
        partial(skips_nothing, flow, originals[made.read :], copies), ARRIVES_WITHIN, f"{GROUP} to be moved"
    )
    assert copies[begin[0]] == originals[made.read]
    assert flow.run("plan").returncode == 0


def skips_nothing(flow: Flow, unread: Sequence[bytes | None], copies: Sequence[bytes | None]) -> tuple[int] | None:
    """Where the group goes on on the target, once all that it has not read on the source lies behind it there."""
    position = flow.b.groups.committed([GROUP]).items[GROUP].get(THERE)
    if position is None or copies[position : position + 1] != unread[:1]:
        return None
    assert {*unread} <= {*copies[position:]}
    return (position,)


def acls_are_kept(flow: Flow, made: Changing) -> None:
    """Each arrived, is owned, and is in the audit topic."""
    wait_for(lambda: made.arrived() == {acl.host for acl in made.acls}, ARRIVES_WITHIN, "every ACL to arrive")
    due = {acl.key for acl in flow.b.acls.describe() if acl.principal == "User:reader"}
    assert len(due) == len(made.acls)
    # The job writes both after the ACLs.
    wait_for(lambda: due <= flow.ledger().owned(Kind.ACL), ARRIVES_WITHIN, "the ledger to own every ACL")
    wait_for(lambda: due <= audited(flow), ARRIVES_WITHIN, "every ACL's creation to be in the audit topic")


def audited(flow: Flow) -> set[Hashable]:
    """The ACLs that were created according to the audit topic."""
    events = read_audit(f"lockstep-audit.{SOURCE}.internal", flow.b)
    return {event.key for event in events if (event.kind, event.op, event.result) == ("acl", "create", "applied")}
