"""A cutover between real clusters over a transaction that its producer left open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import KafkaException, Producer

from app.local.broker import RESTRICTED
from app.local.waiting import wait_for
from sinks.kafka.ports.acl_binding import AclBinding
from tests.kafka.failover.failovers import SOON, Flow

USER = f"User:{RESTRICTED[0]}"


@contextmanager
def transaction(flow: Flow, topic: str, name: str) -> Iterator[Producer]:
    """A record in an open transaction of a producer that obeys ACLs."""
    ids = AclBinding("TRANSACTIONAL_ID", name, "LITERAL", USER, "*", "WRITE", "ALLOW")
    assert not any(flow.a.acls.create([ids]).values())
    wait_for(lambda: ids in flow.a.acls.describe(), SOON, "the broker to know the ACL")
    java = flow.clusters.a.client_properties(RESTRICTED)
    login = {"sasl.mechanism": "PLAIN", "sasl.username": RESTRICTED[0], "sasl.password": RESTRICTED[1]}
    address = {"bootstrap.servers": java["bootstrap.servers"], "security.protocol": "SASL_PLAINTEXT"}
    producer = Producer({**address, **login, "transactional.id": name, "transaction.timeout.ms": 600_000})
    producer.init_transactions(SOON)
    producer.begin_transaction()
    producer.produce(topic, b"undecided", partition=0)
    assert producer.flush(SOON) == 0
    try:
        yield producer
    finally:
        flow.a.acls.delete([ids])


def test_a_cutover_names_an_open_transaction_and_goes_on_once_it_is_committed(flow: Flow, unique: str) -> None:
    topic = f"leaving-{unique}-x"
    flow.make_topic(topic)
    with transaction(flow, topic, unique) as producer:
        refused = flow.run("cutover", "--yes", "--within", "1")
        assert refused.returncode == 1
        assert f"{unique} (producer id" in refused.stderr
        assert f"in {topic}-0 from offset 1" in refused.stderr
        assert flow.record().state == "FENCED"
        # The fence denies no commit.
        committing = threading.Timer(3, producer.commit_transaction)
        committing.start()
        done = flow.asked("cutover", "--yes")
        committing.join()
    assert done["state"] == "PROMOTED"
    assert flow.end(topic, 0, copy=True) == 2


def test_on_request_the_transaction_is_aborted_and_its_producer_learns_of_it(flow: Flow, unique: str) -> None:
    topic = f"leaving-{unique}-x"
    flow.make_topic(topic)
    with transaction(flow, topic, unique) as producer:
        done = flow.run("cutover", "--yes", "--abort-transactions")
        assert done.returncode == 0, done.stderr
        assert f"the transaction of {unique} is aborted" in done.stderr
        with pytest.raises(KafkaException):
            producer.commit_transaction(SOON)
