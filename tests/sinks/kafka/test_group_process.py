"""The process that asks coordinators: what becomes of it, and of who asks, when there is no answer."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any

import psutil
import pytest

from app.local.ports import free_ports
from app.local.waiting import wait_for
from sinks.faults import ClusterUnreachable, CoordinatorUnavailable
from sinks.kafka.librdkafka import admin as admins
from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.group_process import STARTS, GroupProcess

SOON = 60.0
CALLS: dict[str, tuple[Any, ...]] = {"names": (), "committed": (["g"],), "members": (["g"],), "allowed": (["g"],)}
PASSWORD = "pass-phrase-of-nobody"


def silent() -> dict[str, str]:
    """A cluster of which nobody answers, and a short limit."""
    return {"bootstrap.servers": f"127.0.0.1:{free_ports(1)[0]}", "default.api.timeout.ms": "1000"}


@pytest.fixture
def counted() -> list[tuple[str, str, str]]:
    return []


@pytest.fixture
def process(counted: list[tuple[str, str, str]]) -> Iterator[GroupProcess]:
    with closing(GroupProcess(Admin("b", silent(), lambda *request: counted.append(request)))) as made:
        yield made


@pytest.mark.parametrize("method", CALLS)
def test_no_answer_is_trouble_of_coordinators_and_ends_the_process(
    process: GroupProcess, counted: list[tuple[str, str, str]], method: str
) -> None:
    with pytest.raises(CoordinatorUnavailable, match=r"cluster b: .*; is b\.bootstrap\.servers right"):
        process.call(method, *CALLS[method])
    assert process.pid is None
    assert [alias for alias, _, _ in counted] == ["b"]


def test_a_silent_cluster_costs_a_limited_number_of_processes(process: GroupProcess) -> None:
    for _ in range(STARTS):
        with pytest.raises(CoordinatorUnavailable, match="bootstrap"):
            process.call("names")
    with pytest.raises(CoordinatorUnavailable, match=f"{STARTS} times"):
        process.call("names")


def test_a_process_that_is_killed_over_a_call_that_reads_is_replaced(process: GroupProcess) -> None:
    killed = killer(process)
    with pytest.raises(CoordinatorUnavailable, match=r"is b\.bootstrap\.servers right"):
        process.call("names")
    killed.join(SOON)


def test_a_process_that_is_killed_over_a_commit_is_said_to_be_so_and_nothing_is_sent_twice(
    process: GroupProcess,
) -> None:
    killed = killer(process)
    with pytest.raises(CoordinatorUnavailable, match="commit of groups: the client's process was ended by SIGKILL"):
        process.call("commit", {"g": {}})
    killed.join(SOON)


def killer(process: GroupProcess) -> threading.Thread:
    """Kills the process as soon as there is one."""

    def kill() -> None:
        pid = wait_for(lambda: process.pid, SOON, "the process to start")
        with suppress(psutil.NoSuchProcess):
            psutil.Process(pid).kill()

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


PROGRAM = """
import sys, threading, time
from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.group_process import GroupProcess
process = GroupProcess(Admin("b", {"bootstrap.servers": sys.argv[1], "default.api.timeout.ms": "20000"}))
threading.Thread(target=process.call, args=("names",)).start()
while process.pid is None:
    time.sleep(0.01)
print(process.pid, flush=True)
time.sleep(60)
"""


def test_it_ends_when_whoever_asks_is_killed() -> None:
    command = [sys.executable, "-c", PROGRAM, silent()["bootstrap.servers"]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert psutil.pid_exists(pid)
        parent.kill()
    wait_for(lambda: not psutil.pid_exists(pid), SOON, "the process to end")


def test_no_secret_is_on_its_command_line_or_in_its_environment() -> None:
    jaas = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{PASSWORD}";'
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    with closing(GroupProcess(Admin("b", silent() | login))) as process:
        asking = threading.Thread(target=lambda: suppressed(process))
        asking.start()
        child = psutil.Process(wait_for(lambda: process.pid, SOON, "the process to start"))
        shown = [*child.cmdline(), *child.environ().values()]
        asking.join(SOON)
    assert not [word for word in shown if PASSWORD in word]


def suppressed(process: GroupProcess) -> None:
    with suppress(ClusterUnreachable):
        process.call("names")


def test_an_admin_client_that_got_no_answer_is_replaced_but_not_for_each_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admin = Admin("b", silent())
    first = admin.client
    assert admin.client is first
    with pytest.raises(ClusterUnreachable):
        admin.call("Metadata", lambda: admin.client.list_topics(timeout=admin.timeout))
    assert admin.client is first
    monkeypatch.setattr(admins, "REPLACED_EVERY", 0.0)
    second = admin.client
    assert second is not first
    assert admin.client is second
