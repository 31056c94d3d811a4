"""A reporter that pushes to a Prometheus Pushgateway, for jobs that Prometheus cannot scrape: `run --once` under cron.

It sends all metrics to `/metrics/job/<job>` (PUT) at an interval, and once at the end. They replace the metrics of the
last push, so two jobs with one gateway need two names.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from urllib.error import HTTPError

from prometheus_client import CollectorRegistry, push_to_gateway
from prometheus_client.exposition import basic_auth_handler

from streaming.durations import seconds_of
from streaming.errors import LockstepError

log = logging.getLogger(__name__)

PUSH_URL_NAME = "lockstep.metric.push.url"
INTERVAL = "lockstep.metric.push.interval"
JOB = "lockstep.metric.push.job"
USERNAME = "lockstep.metric.push.username"
PASSWORD = "lockstep.metric.push.password"
DEFAULTS: Mapping[str, str] = {PUSH_URL_NAME: "", INTERVAL: "15 seconds", JOB: "lockstep", USERNAME: "", PASSWORD: ""}

GATEWAY_ANSWERS_WITHIN = 3.0
"""Seconds for each step of a push. So a push that hangs and the last push fit in the ten seconds that a close may
take."""

GATEWAY_ADDRESS = re.compile(
    r"(?P<server>https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?)(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?"
)
"""An address without user, query and fragment. prometheus_client itself checks nothing."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """Address, interval (seconds) and job name of the pushes. `server`: the part of `url` that a log may show."""

    url: str = field(repr=False)
    server: str
    interval: float
    job: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)


class PushGatewayReporter:
    """A class for `metric.reporters`. All of its keys can be changed while it runs."""

    _gateway: Gateway
    _thread: threading.Thread

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._ending = self._outage = False

    def configure(self, properties: Mapping[str, str]) -> None:
        """Read its keys. Raises LockstepError that names the key, and shows neither address nor password."""
        self._gateway = gateway_of(properties)

    def reconfigurable_configs(self) -> Collection[str]:
        """All of its keys: each push reads them once."""
        return tuple(DEFAULTS)

    def validate_reconfiguration(self, properties: Mapping[str, str]) -> None:
        """Check new properties. Raises LockstepError as `configure` does."""
        gateway_of(properties)

    def reconfigure(self, properties: Mapping[str, str]) -> None:
        """Use these properties from the next push on. The new interval counts from the last push."""
        gateway = gateway_of(properties)
        with self._changed:
            self._gateway = gateway
            self._changed.notify_all()

    def init(self, registry: CollectorRegistry) -> None:
        """Start. The first push comes after one interval, so metrics of an earlier run stay until then."""
        # A daemon, so that a gateway that hangs does not keep the process from ending.
        self._thread = threading.Thread(target=self._run, args=(registry,), name="push", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Push once more. Returns when that is done, or after the time of two pushes."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join(2 * GATEWAY_ANSWERS_WITHIN)

    def _run(self, registry: CollectorRegistry) -> None:
        while self._interval_passed():
            self._push(registry)
        self._push(registry)

    def _interval_passed(self) -> bool:
        """Returns True after the interval, False at the end, whichever comes first."""
        begun = time.monotonic()
        with self._changed:
            while not self._ending:
                left = begun + self._gateway.interval - time.monotonic()
                if left <= 0:
                    return True
                self._changed.wait(min(left, threading.TIMEOUT_MAX))
        return False

    def _push(self, registry: CollectorRegistry) -> None:
        gateway = self._gateway
        login = partial(basic_auth_handler, username=gateway.username, password=gateway.password)
        try:
            push_to_gateway(gateway.url, gateway.job, registry, timeout=GATEWAY_ANSWERS_WITHIN, handler=login)
        except Exception as error:  # noqa: BLE001 - whatever one push raises, the next may go well
            if not self._outage:
                log.warning(
                    "the Pushgateway at %s does not take metrics: %s. Lockstep logs this once until it does",
                    gateway.server,
                    _reason(error),
                )
            self._outage = True
        else:
            if self._outage:
                log.info("the Pushgateway at %s takes metrics again", gateway.server)
            self._outage = False


def gateway_of(properties: Mapping[str, str]) -> Gateway:
    """Read the gateway from properties. Raises LockstepError that names the key, and shows neither address nor
    password."""
    values = {name: properties.get(name, "").strip() or default for name, default in DEFAULTS.items()}
    password = properties.get(PASSWORD, "")
    if bool(values[USERNAME]) != bool(password):
        raise LockstepError(f"{USERNAME} and {PASSWORD} belong together: set both, or neither")
    try:
        interval = seconds_of(values[INTERVAL])
    except ValueError:
        raise LockstepError(f'{INTERVAL}: its value must be a time above zero, for example "15 seconds"') from None
    url = values[PUSH_URL_NAME]
    return Gateway(url, _server(url), interval, values[JOB], values[USERNAME] or None, password or None)


def _server(url: str) -> str:
    if not url:
        raise LockstepError(
            f"{PUSH_URL_NAME} is missing: set it to the address of a Pushgateway, e.g. http://pushgateway.example.com:9091"
        )
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise LockstepError(f"{PUSH_URL_NAME}: it holds a user or a password. Set {USERNAME} and {PASSWORD} instead")
    match = GATEWAY_ADDRESS.fullmatch(url)
    if match is None or not 0 < int(match["port"] or 80) < 65536:
        raise LockstepError(
            f"{PUSH_URL_NAME}: its value is no address of a web server; allowed: http://HOST… and "
            "https://HOST…, without ? and #"
        )
    return match["server"]


def _reason(error: Exception) -> str:
    if isinstance(error, HTTPError):
        with error:
            return f"it answered {error.code}"
    # Texts of other errors may repeat what was sent.
    return f"{type(error).__name__}: {error}" if isinstance(error, OSError) else type(error).__name__
