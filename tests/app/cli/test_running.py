"""How commands ask the running job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from app.cli.lazy_commands import app
from app.cli.output import PENDING, WRONG_USAGE
from app.cli.running import JobRefused, NoJobAnswers, address, ask, ask_reload
from app.cli.status_command import of_job
from app.http.api import Server
from app.http.neighbour import is_job, refuse_beside_another_job
from app.local.ports import free_ports
from app.reloading import FileStatus
from app.settings import Settings, load
from tests.app.http.flows_shown import job_api
from tests.http_servers import served

BASE = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n"
TOKEN = "0123456789abcdef"


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server(job_api(), "127.0.0.1", 0, TOKEN)
    found.start()
    yield found
    found.stop()


def settings(folder: Path, port: int, lines: str = "") -> Settings:
    path = folder / "m.properties"
    path.write_text(f"{BASE}lockstep.http.port={port}\n{lines}")
    return load(path, environ={})


def port(server: Server) -> int:
    return int(server.address.rpartition(":")[2])


def test_a_command_sends_the_token_of_its_file(server: Server, tmp_path: Path) -> None:
    ours = settings(tmp_path, port(server), f"lockstep.http.token={TOKEN}\n")
    assert ask(ours.job, "GET", "/status", 20) == {"flows": [], "file": FileStatus().as_json()}
    assert ask(ours.job, "POST", "/look", 20, {"topics": []})["looked"] == {}


@pytest.mark.parametrize("lines", ["", "lockstep.http.token=another-token-of-mine\n"])
def test_another_token_is_said_to_be_wrong_and_is_not_shown(server: Server, tmp_path: Path, lines: str) -> None:
    with pytest.raises(JobRefused, match=r"does not accept this file's lockstep\.http\.token") as caught:
        ask_reload(settings(tmp_path, port(server), lines))
    assert "another-token" not in str(caught.value)


def test_what_the_job_refuses_is_told_in_its_own_words(server: Server, tmp_path: Path) -> None:
    ours = settings(tmp_path, port(server), f"lockstep.http.token={TOKEN}\n")
    with pytest.raises(JobRefused, match="this job has no such flow: x->y"):
        ask(ours.job, "POST", "/look", 20, {"flows": ["x->y"]})


def test_the_token_goes_through_no_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_ports(1)[0]}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    ours = settings(tmp_path, port(server), f"lockstep.http.token={TOKEN}\n")
    assert ask(ours.job, "GET", "/status", 20) == {"flows": [], "file": FileStatus().as_json()}


def test_where_nobody_listens_the_command_says_how_to_start_a_job(tmp_path: Path) -> None:
    with pytest.raises(NoJobAnswers, match=r" \(Connection refused\): start it with `lockstep run`"):
        ask_reload(settings(tmp_path, free_ports(1)[0]))


def test_a_job_at_any_free_port_cannot_be_asked(tmp_path: Path) -> None:
    with pytest.raises(NoJobAnswers, match=r"lockstep\.http\.port = 0: .* so no command can ask it"):
        ask_reload(settings(tmp_path, 0))


def test_a_server_of_somebody_else_is_called_no_job_of_ours(tmp_path: Path) -> None:
    with (
        served(BaseHTTPRequestHandler) as other,
        pytest.raises(NoJobAnswers, match=r"is not a job of Lockstep: set lockstep\.http\.host"),
    ):
        ask_reload(settings(tmp_path, other))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:1"),
        ("::1", "http://[::1]:1"),
        ("::", "http://127.0.0.1:1"),
        ("j.example", "http://j.example:1"),
    ],
)
def test_the_address_is_one_that_can_be_asked(tmp_path: Path, host: str, url: str) -> None:
    assert address(settings(tmp_path, 1, f"lockstep.http.host={host}\nlockstep.http.token={TOKEN}\n").job) == url


@pytest.mark.parametrize("wait", ["nan", "inf", "-1"])
def test_a_time_to_wait_that_never_ends_is_wrong_usage(wait: str) -> None:
    result = CliRunner().invoke(app, ["look", f"--wait={wait}"])
    assert result.exit_code == WRONG_USAGE
    assert "0 or more" in result.output


def test_status_says_that_the_job_refused_its_token_and_that_nothing_else_is_known(
    server: Server, tmp_path: Path
) -> None:
    settings(tmp_path, port(server))
    result = CliRunner().invoke(app, ["status", "--timeout=1", f"--config={tmp_path}/m.properties"])
    assert "lockstep.http.token: give both the same one; observing the clusters instead" in result.stderr


def test_a_job_of_other_flows_keeps_this_one_in_step_no_more_than_none_does(server: Server, tmp_path: Path) -> None:
    with pytest.raises(NoJobAnswers, match="has no flow a->b"):
        of_job(settings(tmp_path, port(server), f"lockstep.http.token={TOKEN}\n").job, ["a->b"])


def test_the_running_job_is_asked_while_its_file_is_broken(server: Server, tmp_path: Path) -> None:
    settings(tmp_path, port(server), f"lockstep.http.token={TOKEN}\n")
    path = tmp_path / "m.properties"
    path.write_text(f"{path.read_text()}lockstep.topic=x\nsync.topic.acls.enabled=perhaps\n")
    text = CliRunner().invoke(app, ["status", f"--config={path}"])
    assert text.exit_code == PENDING
    assert text.stdout.startswith("FILE REJECTED: the job keeps its earlier settings\n")
    assert "lockstep.topic" in text.stdout
    document = json.loads(CliRunner().invoke(app, ["status", "-o", "json", f"--config={path}"]).stdout)
    assert document["flows"] == []
    assert len(document["file"]["mistakes"]) == 2


def test_a_broken_file_is_wrong_usage_where_no_job_answers(tmp_path: Path) -> None:
    settings(tmp_path, free_ports(1)[0])
    path = tmp_path / "m.properties"
    path.write_text(f"{path.read_text()}lockstep.topic=x\n")
    result = CliRunner().invoke(app, ["status", f"--config={path}"])
    assert result.exit_code == WRONG_USAGE


IMPOSTOR = """
import os, socket
from http.server import BaseHTTPRequestHandler, HTTPServer
socket.getfqdn("127.0.0.1".encode("idna").decode())  # imports what another user may not read
os.setuid(65534)
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        print(self.path, self.headers.get("Authorization"), flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "29")
        self.end_headers()
        self.wfile.write(b'{"status": "up", "flows": []}')
server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_process_of_another_user_gets_no_token(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", IMPOSTOR], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as impostor:
        try:
            assert impostor.stdout is not None
            at = int(impostor.stdout.readline())
            ours = settings(tmp_path, at, f"lockstep.http.token={TOKEN}\n")
            with pytest.raises(NoJobAnswers, match="belongs to user id 65534"):
                ask(ours.job, "GET", "/status", 20)
            refuse_beside_another_job("127.0.0.1", at, TOKEN)
        finally:
            impostor.kill()
        assert TOKEN not in impostor.stdout.read()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_a_process_of_another_user_that_began_to_listen_a_moment_ago_is_no_job(version: str) -> None:
    program = IMPOSTOR.replace("def do_GET", f"protocol_version = {version!r}\n    def do_GET")
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as impostor:
        try:
            assert impostor.stdout is not None
            where = f"http://127.0.0.1:{int(impostor.stdout.readline())}"
            with httpx.Client(trust_env=False, timeout=60) as client:
                assert not is_job(client, where)
        finally:
            impostor.kill()


def test_a_job_of_ones_own_is_one(server: Server) -> None:
    with httpx.Client(trust_env=False, timeout=60) as client:
        assert is_job(client, server.address)


def test_a_program_that_is_no_job_gets_no_token(tmp_path: Path) -> None:
    asked: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers.get("Authorization"))
            self.send_response(404)
            self.end_headers()
            self.wfile.write(b"no such page")

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with served(Handler) as other:
        ours = settings(tmp_path, other, f"lockstep.http.token={TOKEN}\n")
        with pytest.raises(NoJobAnswers, match="is not a job of Lockstep"):
            ask(ours.job, "GET", "/status", 20)
    assert asked == [None]
