"""A marker of its own in every place of a properties file that may hold a secret, and where none may turn up."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import psutil

from app.local.ports import free_ports
from tests.certificates import signed
from tests.kafka.staging import command_line, family_of

REST = "/api/v1/applications"
UI_PAGES = ("/", "/environment/", "/executors/", "/jobs/", "/SQL/", "/StreamingQuery/", REST)
SPARKS_OWN = ("spark-*", "blockmgr-*", "lockstep-*", "artifact-*", "snappy-*")
"""Folders that Spark and the script make for temporary files."""


@dataclass
class Markers:
    """Texts that are found nowhere else, by where each was put."""

    by_place: dict[str, str] = field(default_factory=dict)

    def new(self, place: str) -> str:
        """Another one."""
        return self.by_place.setdefault(place, f"mrk{secrets.token_hex(10)}")

    def found_in(self, texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Where a text (name, content) has a marker: its place, and the text's name."""
        return [
            (place, name) for name, content in texts for place, marker in self.by_place.items() if marker in content
        ]


def lines_of(markers: Markers, folder: Path) -> dict[str, str]:
    """Lines of a properties file with secrets of every sort. None keeps the job from working."""
    new, closed = markers.new, free_ports(2)
    referred = folder / "secrets.properties"
    referred.write_text(
        f"listener={new('a file of references')}\nprincipal=User:{new('a reference in a key of ours')}\n"
    )
    client = signed("a client of b")
    body = client.key_pem.splitlines()[2]
    markers.by_place["a private key in PEM"] = body
    pem = {"keystore.type": "PEM", "keystore.key": client.key_pem, "keystore.certificate.chain": client.pem}
    return {
        **{f"b.ssl.{name}": text for name, text in pem.items()},
        "lockstep.http.token": new("the server's token"),
        "password.encoder.secret": new("the encoder's secret"),
        "password.encoder.old.secret": new("the encoder's old secret"),
        "lockstep.credential.store": str(folder / "run" / "credentials"),
        "lockstep.topic.listener.class": "sinks.notify.webhook:WebhookListener",
        "lockstep.listener.webhook.url": f"http://127.0.0.1:{closed[0]}/{new('the path of a webhook')}",
        "lockstep.listener.webhook.secret": f"${{file:{referred}:listener}}",
        "lockstep.metric.reporters": "sinks.notify.push_gateway:PushGatewayReporter",
        "lockstep.metric.push.url": f"http://127.0.0.1:{closed[1]}/{new('the path of a gateway')}",
        "lockstep.metric.push.interval": "1 second",
        "lockstep.metric.push.username": "pusher",
        "lockstep.metric.push.password": new("the password of a gateway"),
        "lockstep.acl.principals.exclude": f"${{file:{referred}:principal}}",
        "acme.api.key": new("a plug-in's key"),
        "acme.pwd": new("a plug-in's password"),
        "acme.size": new("a plug-in's setting"),
        "acme.address": f"https://user:{new('user info in a URL')}@127.0.0.1/",
        "a.schema.registry.basic.auth.user.info": f"user:{new('user info of a client')}",
        "a.sasl.login.token": new("a token of a client"),
    }


def listening(pids: Iterable[int]) -> list[tuple[str, int]]:
    """Addresses on which these processes and their descendants listen."""
    return [
        (connection.laddr.ip.removeprefix("::ffff:"), connection.laddr.port)
        for pid in pids
        for process in family_of(pid)
        for connection in _connections(process)
        if connection.status == psutil.CONN_LISTEN
    ]


def _connections(process: psutil.Process) -> list[Any]:
    """No connection where it ended since it was found: what Spark and the job start for a moment."""
    try:
        return list(process.net_connections("tcp"))
    except psutil.NoSuchProcess:
        return []


def spark_says(addresses: Iterable[tuple[str, int]]) -> Iterator[tuple[str, str]]:
    """Pages and REST API of the Spark UI, whichever of these addresses has it."""
    with httpx.Client(trust_env=False, timeout=900, follow_redirects=True) as client:
        base = _spark_ui(client, list(addresses))
        (app,) = (one["id"] for one in client.get(base + REST).json())
        details = (f"{REST}/{app}/{what}" for what in ("environment", "jobs", "sql?details=true&length=500"))
        for path in (*UI_PAGES, *details):
            yield f"Spark's {path}", client.get(base + path).text


def _spark_ui(client: httpx.Client, addresses: list[tuple[str, int]]) -> str:
    """Its address. What is no HTTP server never answers, and the first answer of the UI's REST API takes seconds."""
    for limit in (5, 20, 60):
        for host, port in addresses:
            with suppress(httpx.HTTPError):
                if client.get(f"http://{host}:{port}{REST}", timeout=limit).is_success:
                    return f"http://{host}:{port}"
    raise AssertionError(f"none of {addresses} is Spark's UI")


def files_since(start: datetime, *folders: Path) -> Iterator[tuple[str, str]]:
    """Files that were written below these folders, and what Spark and the JVM made for temporary use."""
    temporary = Path(tempfile.gettempdir())
    made = (path for pattern in SPARKS_OWN for path in temporary.glob(pattern) if path.is_dir())
    for top in (*folders, *made, *(path for path in temporary.iterdir() if path.is_file())):
        for path in _below(top) if top.is_dir() else (top,):
            with suppress(OSError):
                if path.is_file() and path.stat().st_mtime >= start.timestamp() - 1 and path.stat().st_size < 2**26:
                    yield str(path), path.read_text("latin-1")


def _below(top: Path) -> Iterator[Path]:
    """Its files. Other processes may delete folders meanwhile."""
    return (Path(folder, name) for folder, _, names in os.walk(top) for name in names)


def command_lines(pids: Iterable[int]) -> Iterator[tuple[str, str]]:
    """The command lines of processes and all their descendants."""
    for pid in pids:
        for process in family_of(pid):
            yield f"the command line of {process.pid}", " ".join(command_line(process))
