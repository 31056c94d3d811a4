"""What is permitted lasts for one request: a write that takes longer asks once more, or is given up."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import pytest

from app.local.java_gateway import process_jvm
from app.local.ports import free_ports
from sinks.faults import ClusterUnreachable, NotLeading
from sinks.kafka.jvm.java_admin import JavaAdmin, K, Settled
from sinks.kafka.jvm.java_token import Token
from sinks.kafka.jvm.jvm_acls import ACLS_IN_A_REQUEST, JvmAcls
from sinks.kafka.jvm.jvm_groups import GROUPS_IN_A_REQUEST, JvmGroups
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.permitted import ask_again, permitted
from sinks.kafka.records.rd_clients import RdClients
from sinks.kafka.records.rd_logs import Log
from sinks.kafka.request_timeout import DEFAULT, WRITE_GRACE_S, longest_write
from streaming.mm2.records import TopicPartition


def silent() -> dict[str, str]:
    """A cluster that does not answer."""
    return {"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}", "default.api.timeout.ms": "1000"}


def no_token() -> Token:
    """Of a cluster where no client logs in with one."""
    raise AssertionError("no client logs in here")


class LeadsFor:
    """A permit for so many requests."""

    def __init__(self, requests: int) -> None:
        self.left = requests

    def __call__(self) -> None:
        if not self.left:
            raise NotLeading("another leads")
        self.left -= 1


class Counting(JavaAdmin):
    """Of a cluster that does all that it is asked to; `sent`: how many items, by request."""

    def __init__(self) -> None:
        super().__init__("b", silent(), process_jvm)
        self.sent: list[int] = []

    def write(self, api: str, keys: Sequence[K], request: Callable[[Any], Any]) -> Settled[K]:
        """Nothing is sent."""
        self.sent.append(len(keys))
        return Settled(keys, {}, None)


class Appends:
    """The one method of a cluster that appends."""

    def __init__(self, log: Log) -> None:
        self.append_log = log.append


def test_acls_beyond_one_request_are_not_written_once_another_leads() -> None:
    admin = Counting()
    bindings = [AclBinding("TOPIC", f"t{n}", "LITERAL", "User:x", "*", "READ", "ALLOW") for n in range(3000)]
    assert len(bindings) > 2 * ACLS_IN_A_REQUEST
    with pytest.raises(NotLeading):
        permitted(JvmAcls(admin), LeadsFor(2)).create(bindings)
    assert len(admin.sent) < 3
    permitted(JvmAcls(admin), LeadsFor(100)).create(bindings)
    JvmAcls(admin).create(bindings)


def test_append_that_was_permitted_is_given_up_before_another_may_lead() -> None:
    log = Log("b", RdClients("b", silent(), no_token), 0.2)
    with pytest.raises(ClusterUnreachable, match=r"within 0\.2 s"):
        permitted(Appends(log), lambda: None).append_log("x", [(b"k", b"v")])


def test_log_that_does_not_answer_is_given_up_after_the_time_of_a_request() -> None:
    log = Log("b", RdClients("b", silent(), no_token), 0.2)
    began = time.monotonic()
    for read in (lambda: log.read("x"), lambda: log.read_from("x", 0)):
        with closing(log), pytest.raises(ClusterUnreachable):
            read()
    assert time.monotonic() - began < 60.0


def test_groups_beyond_one_request_are_not_committed_once_another_leads() -> None:
    admin = Counting()
    groups, where = JvmGroups(admin), TopicPartition("t", 0)
    many = {f"g{number}": {where: 1} for number in range(3 * GROUPS_IN_A_REQUEST)}
    with pytest.raises(NotLeading):
        permitted(groups, LeadsFor(2)).commit(many)
    assert len(admin.sent) < 3
    assert permitted(groups, LeadsFor(100)).commit(many) == {group: {where: None} for group in many}


def test_what_is_not_permitted_by_anybody_asks_nobody() -> None:
    ask_again()


def test_permitted_write_takes_a_request_s_time_and_a_little_more() -> None:
    assert longest_write("b", {}) == DEFAULT + WRITE_GRACE_S
    assert longest_write("b", {"default.api.timeout.ms": "2000"}) == 2.0 + WRITE_GRACE_S
