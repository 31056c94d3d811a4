"""Samples the length of a cluster's metadata log in a thread of its own (see `sinks.kafka.metadata_beat`)."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from sinks.kafka.jvm.java_admin import cause_of, java_admin
from sinks.kafka.metadata_beat import MetadataBeat
from sinks.kafka.ports.cluster import CountRequest
from streaming.errors import LockstepError

log = logging.getLogger(__name__)

EVERY = 0.1
"""Seconds between two samples: several in a beat of 0.5 s, so that a record between two beats is heard."""

SETTLED = 0.15
"""Seconds from a signal until brokers are asked for it: they follow the controller's log a little later."""

TIMEOUT_MS = 5_000

NEVER = frozenset({"UnsupportedVersionException", "ClusterAuthorizationException", "UnknownTopicOrPartitionException"})
"""Answers that stay so: ZooKeeper brokers, a service that hides its quorum, no DESCRIBE on the CLUSTER."""


class QuorumSignal:
    """Samples `Admin.describeMetadataQuorum` (KIP-595, KIP-836). Without the right or the API it is never quiet."""

    def __init__(
        self,
        alias: str,
        gateway: Any,
        properties: Mapping[str, str],
        count_request: CountRequest,
        on_news: Callable[[], None] = lambda: None,
    ) -> None:
        self._alias, self._jvm, self._count = alias, gateway.jvm, count_request
        self._properties = dict(properties)
        self._on_news = on_news
        self._pulse = MetadataBeat()
        self._lock = threading.Lock()
        self._records = 0
        self._heard_at = 0.0
        self._quiet = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._listen, name=f"metadata-signal-{alias}", daemon=True)
        self._thread.start()

    @property
    def quiet(self) -> bool:
        """Whether no signal means that nothing changed."""
        return self._quiet

    def news(self) -> int:
        """Records beyond the beat since this was last asked; waits up to SETTLED where the last came just now."""
        with self._lock:
            settled = SETTLED - (time.monotonic() - self._heard_at) if self._records else 0.0
        if settled > 0:
            self._end.wait(settled)
        with self._lock:
            records, self._records = self._records, 0
        return records

    def close(self) -> None:
        """Ends the thread."""
        self._end.set()
        self._thread.join(TIMEOUT_MS / 1000)

    def _listen(self) -> None:
        try:
            admin = java_admin(self._alias, self._jvm, self._properties)
        except LockstepError as error:
            log.warning("its metadata log is not listened to: %s", error)
            return
        unit = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        try:
            while not self._end.wait(EVERY):
                if not self._sample(admin, unit):
                    return
        except Py4JError as error:
            # The JVM is going down with the job; nobody listens any more.
            log.debug("%s: listening ended: %s", self._alias, error)
        finally:
            self._quiet = False
            with suppress(Py4JError):
                admin.close(self._jvm.java.time.Duration.ofMillis(TIMEOUT_MS))

    def _sample(self, admin: Any, unit: Any) -> bool:
        """False when there is no use in asking again."""
        try:
            length = admin.describeMetadataQuorum().quorumInfo().get(TIMEOUT_MS, unit).highWatermark()
        except Py4JJavaError as error:
            cause = cause_of(error)
            self._count(self._alias, "DescribeQuorum", cause)
            self._pulse, self._quiet = MetadataBeat(), False
            if cause in NEVER:
                log.info(
                    "cluster %s: the length of the metadata log cannot be read (%s), so topics are only polled in "
                    "turn; DESCRIBE on the CLUSTER would let changes be noticed sooner",
                    self._alias,
                    cause,
                )
            return cause not in NEVER
        self._count(self._alias, "DescribeQuorum", "ok")
        with self._lock:
            now = time.monotonic()
            if records := self._pulse.heard(now, length):
                self._records += records
                self._heard_at = now
            self._quiet = self._pulse.quiet
        if records:
            self._on_news()
        return True
