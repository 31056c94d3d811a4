"""What is permitted lasts for one request: a write that takes longer asks once more, or is given up."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import closing
from typing import Any

import pytest

from app.local.ports import free_ports
from sinks.faults import ClusterUnreachable, NotLeading
from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.group_process import GroupProcess
from sinks.kafka.librdkafka.rd_acls import ACLS_IN_A_REQUEST, KafkaAcls
from sinks.kafka.librdkafka.rd_logs import Log
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.permitted import ask_again, permitted
from sinks.kafka.request_timeout import BEYOND, DEFAULT, longest_write


def silent() -> dict[str, str]:
    """A cluster of which nobody answers."""
    return {"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}", "default.api.timeout.ms": "1000"}


class LeadsFor:
    """A permit for so many requests."""

    def __init__(self, requests: int) -> None:
        self.left = requests

    def __call__(self) -> None:
        if not self.left:
            raise NotLeading("another leads")
        self.left -= 1


class Answering(Admin):
    """Of a cluster that takes every ACL; `sent`: how many, by request."""

    def __init__(self) -> None:
        super().__init__("b", silent())
        self.sent: list[int] = []

    @property
    def client(self) -> Any:
        """Itself."""
        return self

    def create_acls(self, bindings: Sequence[Any], request_timeout: float) -> dict[Any, Future[None]]:
        """As librdkafka's client does."""
        self.sent.append(len(bindings))
        done: Future[None] = Future()
        done.set_result(None)
        return dict.fromkeys(bindings, done)


class Appends:
    """The one method of a cluster that appends."""

    def __init__(self, log: Log) -> None:
        self.append_log = log.append


class Commits:
    """The one method of groups that commits."""

    def __init__(self, process: GroupProcess) -> None:
        self._process = process

    def commit(self) -> object:
        """Of no offset."""
        return self._process.call("commit", {"g": {}})


def test_acls_beyond_one_request_are_not_written_once_another_leads() -> None:
    admin = Answering()
    bindings = [AclBinding("TOPIC", f"t{n}", "LITERAL", "User:x", "*", "READ", "ALLOW") for n in range(3000)]
    assert len(bindings) > 2 * ACLS_IN_A_REQUEST
    with pytest.raises(NotLeading):
        permitted(KafkaAcls(admin), LeadsFor(2)).create(bindings)
    assert len(admin.sent) < 3
    permitted(KafkaAcls(admin), LeadsFor(100)).create(bindings)
    KafkaAcls(admin).create(bindings)


def test_append_that_was_permitted_is_given_up_before_another_may_lead() -> None:
    log = Log("b", {"bootstrap.servers": silent()["bootstrap.servers"]}, 0.2)
    with pytest.raises(ClusterUnreachable, match=r"within 0\.2 s"):
        permitted(Appends(log), lambda: None).append_log("x", [(b"k", b"v")])


def test_log_that_does_not_answer_is_given_up_after_the_time_of_a_request() -> None:
    log = Log("b", {"bootstrap.servers": silent()["bootstrap.servers"]}, 0.2)
    began = time.monotonic()
    for read in (lambda: log.read("x"), lambda: log.read_from("x", 0)):
        with closing(log), pytest.raises(ClusterUnreachable):
            read()
    assert time.monotonic() - began < 10.0


def test_commit_asks_once_more_after_the_start_of_the_process_that_commits() -> None:
    with closing(GroupProcess(Admin("b", silent()))) as process, pytest.raises(NotLeading):
        permitted(Commits(process), LeadsFor(1)).commit()


def test_what_is_not_permitted_by_anybody_asks_nobody() -> None:
    ask_again()


def test_permitted_write_takes_a_request_s_time_and_a_little_more() -> None:
    assert longest_write("b", {}) == DEFAULT + BEYOND
    assert longest_write("b", {"default.api.timeout.ms": "2000"}) == 2.0 + BEYOND
