"""A second job at the address of one that runs: it is told who leads, and not to take another address."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from app.http.api import Server
from app.http.neighbour import listeners, refuse_beside_another_job, strangers, trusted_users, users_at
from sinks.engine.flow_task import FlowTask
from sinks.engine.metrics import Metrics
from sinks.ledger.lease import Leader
from streaming.errors import LockstepError
from tests.app.http.flows_shown import job_api
from tests.sinks.builders import FLOW
from tests.sinks.scripted_pass import ScriptedPass

HOST, TOKEN = "127.0.0.1", "0123456789abcdef"
LEADER = Leader("lockstep-run-7", "h", datetime(2024, 2, 29, 12, tzinfo=timezone.utc), age=0.0)


@pytest.fixture
def port() -> Iterator[int]:
    """Of a job that leads a flow, and wants the token."""
    scripted, metrics = ScriptedPass(), Metrics("1")
    scripted.leadership.leader = LEADER
    task = FlowTask(scripted, metrics)  # type: ignore[arg-type]  # stands in for the pass
    server = Server(job_api({FLOW: task}), HOST, 0, TOKEN)
    server.start()
    yield int(server.address.rpartition(":")[2])
    server.stop()


def test_second_job_with_the_address_of_another_is_told_who_leads(port: int) -> None:
    with pytest.raises(LockstepError, match=r"lockstep-run-7 on h leads a->b since 2024-02-29T12:00:00Z. End that one"):
        refuse_beside_another_job(HOST, port, TOKEN)
    with pytest.raises(LockstepError, match="lockstep-run-7 on h leads a->b"):
        Server(job_api(), HOST, port, TOKEN)


def test_address_of_another_program_is_said_to_be_that(port: int) -> None:
    """A job that does not take this token is another program for all that can be known."""
    refuse_beside_another_job(HOST, port, "another token, as long")
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        with pytest.raises(LockstepError, match="another program uses this address"):
            Server(job_api(), HOST, taken.getsockname()[1])


def test_address_that_is_free_is_no_trouble() -> None:
    refuse_beside_another_job(HOST, 0, None)
    with socket.socket() as free:
        free.bind((HOST, 0))
        refuse_beside_another_job(HOST, free.getsockname()[1], None)


TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:24F8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   1: 00000000:24F8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 2 1 0 100 0 0 10 0
   2: 0100007F:24F8 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1002        0 3 1 0 100 0 0 10 0
   3: 0100007F:24F9 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1003        0 4 1 0 100 0 0 10 0
"""
TABLE_6 = """  sl  local_address   remote_address   st tx_queue rx_queue tr uid
   0: 00000000000000000000000001000000:24F8 00000000000000000000000000000000:0000 0A 0:0 00:0 0  1004  0 5
"""


def test_linux_says_whose_a_listening_socket_is() -> None:
    assert [(str(address), uid) for address, uid in listeners(TABLE, 0x24F8)] == [
        ("127.0.0.1", 1000),
        ("0.0.0.0", 1001),
    ]
    assert [(str(address), uid) for address, uid in listeners(TABLE_6, 0x24F8)] == [("::1", 1004)]


def test_a_socket_of_ones_own_is_no_strangers() -> None:
    with socket.create_server((HOST, 0)) as own:
        assert strangers(HOST, own.getsockname()[1]) == frozenset()
        assert strangers("localhost", own.getsockname()[1]) == frozenset()
    assert strangers("no-such-host.invalid", 9464) == frozenset()


def folder_of_stranger(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, relative to the current one, that belongs neither to root nor to this process."""
    folder = Path("state")
    folder.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    if os.getuid() == 0:
        os.chown(folder, 65534, -1)
    return folder


def test_owner_of_a_state_folder_gets_the_token_only_if_nobody_else_could_have_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative folder is whatever lies where the command happens to run; and every user may make one in /tmp."""
    monkeypatch.chdir(tmp_path)
    folder = folder_of_stranger(monkeypatch)
    tmp_path.chmod(0o777)
    assert trusted_users(folder) == trusted_users(folder.absolute()) == trusted_users(None) == {0, 12345}
    assert trusted_users(Path("/proc/self")) == {0, 12345, os.getuid()}


MAPPED = """  sl  local_address                         remote_address                        st tx rx tr tm->when retrnsmt   uid
   0: 0000000000000000FFFF00000100007F:24F8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 65534 0 77 1
   1: 0000000000000000FFFF000000000000:24F9 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 65534 0 78 1
"""  # noqa: E501  # Linux's own lines


def test_a_socket_of_ipv6_that_listens_at_an_address_of_ipv4_has_that_address() -> None:
    assert [str(address) for address, _ in listeners(MAPPED, 0x24F8)] == [HOST]
    assert [str(address) for address, _ in listeners(MAPPED, 0x24F9)] == ["0.0.0.0"]


@pytest.mark.parametrize("address", [f"::ffff:{HOST}", "::ffff:0.0.0.0", "::"])
def test_who_listens_by_ipv6_at_an_address_of_ipv4_is_found(address: str) -> None:
    with socket.socket(socket.AF_INET6) as listener:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((address, 0))
        listener.listen()
        assert users_at(HOST, listener.getsockname()[1]) == {os.geteuid()}
