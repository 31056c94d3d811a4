"""Samples how far a broker has followed its cluster's metadata log, in a thread of its own.

A KRaft broker's ApiVersions response says as `finalized_features_epoch` the offset of the log up to which the broker
knows the cluster (Kafka's `KRaftMetadataCache.features`). So the sample grows with the log and needs no right. A broker
answers by itself, at a third of the cost of `DescribeQuorum`, and can at once describe what changed.
`sinks.kafka.metadata_beat` derives the signal from the samples.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from sinks.kafka.jvm.java_admin import JavaAdmin
from sinks.kafka.jvm.java_errors import java_error
from sinks.kafka.metadata_beat import MetadataBeat
from streaming.errors import LockstepError

log = logging.getLogger(__name__)

FAST = 0.1
"""Seconds between two samples while the rhythm is learnt, and for `BUSY_FOR` seconds after that and after a signal."""

BUSY_FOR = 10.0

SLOW_LEAST, SLOW_MORE = 0.3, 0.2
"""Seconds between two samples while nothing changes: at least the first number, and up to the second one more. The
length varies evenly, so that samples are never in step with the beat."""

GOLDEN = 0.618034
"""Golden ratio. The fractional parts of its multiples fill the range between 0 and 1 evenly."""

BACKWARDS_FOR = 5.0
"""Seconds after which a shorter log is another one. Until then the answer may be of a broker that is behind the
others."""

TIMEOUT_MS = 5_000

API = "ApiVersions"
KRAFT_FEATURE = "metadata.version"
"""A feature that each cluster in KRaft mode has (KIP-778)."""


class JvmMetadataSignal:
    """A `MetadataSignal` by `Admin.describeFeatures` (KIP-584). On brokers without KRaft `works` stays False."""

    def __init__(
        self,
        admin: JavaAdmin,
        on_signal: Callable[[], None] = lambda: None,
    ) -> None:
        """`admin`: a client for this signal alone, so that samples do not wait for other answers. The signal closes
        it."""
        self._admin, self._on_signal = admin, on_signal
        self._beat, self._pace = MetadataBeat(), SamplePace()
        self._longest_log, self.highest_epoch = HighestLength(), -1
        self._lock = threading.Lock()
        self._records = 0
        self._works = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"metadata-signal-{admin.alias}", daemon=True)
        self._thread.start()

    @property
    def works(self) -> bool:
        return self._works

    def take_signalled(self) -> int:
        with self._lock:
            records, self._records = self._records, 0
        return records

    def close(self) -> None:
        self._end.set()
        self._thread.join(TIMEOUT_MS / 1000)

    def _run(self) -> None:
        try:
            client = self._admin.client
        except LockstepError as error:
            log.warning("the metadata log is not followed: %s", error)
            return
        unit = self._admin.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        try:
            while not self._end.wait(self._pace.next(time.monotonic(), self._beat.is_known)):
                self._sample(client, unit)
        except Py4JError as error:
            # The JVM is going down with the job, which waits for no more signals.
            log.debug("%s: following its metadata log ended: %s", self._admin.alias, error)
        finally:
            self._works = False
            self._admin.close()

    def _sample(self, client: Any, unit: Any) -> None:
        try:
            epoch = client.describeFeatures().featureMetadata().get(TIMEOUT_MS, unit).finalizedFeaturesEpoch()
        except Py4JJavaError as error:
            self._admin.count(self._admin.alias, API, java_error(error.java_exception.toString()).code)
            self._beat, self._works = MetadataBeat(), False
            return
        self._admin.count(self._admin.alias, API, "ok")
        if not epoch.isPresent():
            self._beat, self._works = MetadataBeat(), False
            return
        with self._lock:
            now = time.monotonic()
            self.highest_epoch = max(self.highest_epoch, epoch.get())
            records = self._beat.sample(now, self._longest_log.of(now, epoch.get()))
            # What came while the rhythm was learnt was not signalled yet.
            records += int(self._beat.is_known and not self._works)
            self._records += records
            self._works = self._beat.is_known
        if records:
            self._pace.note_signalled(now)
            self._on_signal()


def follows_metadata_log(admin: JavaAdmin) -> bool:
    """Whether brokers are in KRaft mode and so tell how far they follow the metadata log. In ZooKeeper mode they tell
    an epoch that does not move."""
    features = admin.call(API, lambda client: client.describeFeatures().featureMetadata())
    return bool(features.finalizedFeatures().containsKey(KRAFT_FEATURE))


class SamplePace:
    """Seconds until the next sample: short while samples help, longer while nothing changes. Pure."""

    def __init__(self) -> None:
        self._signalled = float("-inf")
        self._number = 0

    def note_signalled(self, now: float) -> None:
        """Note that something changed: another change may follow soon."""
        self._signalled = now

    def next(self, now: float, is_known: bool) -> float:
        """Returns the seconds until the next sample. `is_known`: whether the rhythm of the log is."""
        if not is_known:
            # Once it is known, sample fast for a while longer: the first guess is a rough one.
            self._signalled = now
        if now - self._signalled < BUSY_FOR:
            return FAST
        self._number += 1
        return SLOW_LEAST + SLOW_MORE * (self._number * GOLDEN % 1)


class HighestLength:
    """The highest length that any broker told. Brokers follow the log at different paces. Pure."""

    def __init__(self) -> None:
        self._highest = -1
        self._lower_since: float | None = None

    def of(self, now: float, length: int) -> int:
        """Returns the highest length so far. If the log has been shorter for a while, it is another log and its length
        counts."""
        if length >= self._highest:
            self._highest, self._lower_since = length, None
            return length
        if self._lower_since is None:
            self._lower_since = now
        if now - self._lower_since >= BACKWARDS_FOR:
            self._highest, self._lower_since = length, None
        return self._highest
