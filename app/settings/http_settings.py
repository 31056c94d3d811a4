"""The job's own server: its clients must prove who they are where that is more than this machine."""

from __future__ import annotations

from app.http.request_rules import is_loopback
from app.properties.keys import HTTP_HOST, HTTP_TOKEN
from app.properties.mistakes import Findings
from app.properties.scoped_keys import Properties


def check_http(properties: Properties, findings: Findings) -> None:
    """A server that others can reach needs a token."""
    if not is_loopback(properties.get(HTTP_HOST)) and not properties.entry(HTTP_TOKEN.name):
        findings.mistake(
            properties.entry(HTTP_HOST.name),
            f"is no loopback address, so others can ask the job: set {HTTP_TOKEN.name}, best as a reference such as "
            "${env:LOCKSTEP_HTTP_TOKEN}",
        )
