"""Lists the topics of a cluster once for all flows of a job that need them.

Otherwise each pass of each flow into a target would list all its topics. For 10,000 topics that takes 50 to 80 ms of
the interpreter, and as much of the broker.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from functools import partial

from sinks.background import awaited, begun
from sinks.every_kind.listing import DesiredTopics, Freshness, Listed
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Reader
from sinks.kinds.desired_topics import desired_topics

TARGET_LISTED_FOR = {Freshness.ALL_NOW: 0.0, Freshness.ALL: 5.0, Freshness.SOURCE_NOW: 15.0, Freshness.QUIET: 15.0}
"""Seconds for which a target's listing may be reused. No signal tells of the target's changes, so a change that another
client makes there waits for a pass anyway."""

ALL = frozenset({Freshness.ALL_NOW, Freshness.ALL})


_Listing = tuple[float, Future[Mapping[str, int]]]
"""When a listing began, and its future result."""


class SharedListings:
    """Topic listings that all flows of a job share. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._newest: dict[Hashable, _Listing] = {}

    def topics(self, client: Hashable, reader: Reader, within: float) -> Mapping[str, int]:
        """Returns partition counts by topic, from a listing that began at most `within` seconds ago, or from a new one.

        `client`: callers with the same value share listings; another account may see other topics. Raises
        ClusterUnreachable, RightsMissing.
        """
        with self._lock:
            newest, now = self._newest.get(client), self._clock()
            lists = newest is None or now - newest[0] > within
            if newest is None or lists:
                newest = self._newest[client] = now, Future()
        if lists:
            self._list(client, reader, newest)
        return awaited(newest[1])

    def _list(self, client: Hashable, reader: Reader, listing: _Listing) -> None:
        try:
            listing[1].set_result(reader.list_topics())
        except BaseException as error:  # noqa: BLE001 - raised for all who wait for it
            with self._lock:
                # A later caller asks again.
                if self._newest.get(client) is listing:
                    del self._newest[client]
            listing[1].set_exception(error)


class FlowListing:
    """Lists the topics of one flow, as seldom as its passes allow."""

    def __init__(
        self, settings: FlowSettings, source: Reader, target: Reader, shared: SharedListings, client: Hashable
    ):
        """`client`: identifies the account for the target's listings, as in `SharedListings.topics`."""
        self._settings, self._source, self._target = settings, source, target
        self._shared, self._client = shared, client
        self._listed: Mapping[str, int] = {}
        self._desired = DesiredTopics({})

    def list_topics(self, freshness: Freshness = Freshness.ALL_NOW) -> Listed:
        """List topics of both clusters. Raises ClusterUnreachable, RightsMissing."""
        within = TARGET_LISTED_FOR[freshness]
        if freshness in ALL:
            there = begun(partial(self._shared.topics, self._client, self._target, within), "topics of the target")
            source: Mapping[str, int] = self._source.list_topics()
            target = awaited(there)
        else:
            source = self._listed if freshness is Freshness.QUIET else self._source.list_topics()
            target = self._shared.topics(self._client, self._target, within)
        if freshness in ALL or source != self._listed:
            self._listed, self._desired = source, desired_topics(source, self._settings)
        return Listed(source, target, self._desired, self._source.listed_ids)


def list_both(settings: FlowSettings, source: Reader, target: Reader) -> Listed:
    """List topics of both clusters now. Raises ClusterUnreachable, RightsMissing."""
    return FlowListing(settings, source, target, SharedListings(), target.alias).list_topics()
