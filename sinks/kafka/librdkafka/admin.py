"""What every admin request has in common: how it is sent, counted and settled, and what its errors mean."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from sinks.background import awaited
from sinks.faults import ClusterUnreachable, RightsMissing
from sinks.kafka.librdkafka.client_config import client_config
from sinks.kafka.librdkafka.error_codes import (
    REFUSED_LOGIN,
    UNANSWERED,
    UNREACHABLE,
    error_of,
    no_answer,
    raised,
    stops_request,
)
from sinks.kafka.librdkafka.reachability import reachability
from sinks.kafka.ports.cluster import CountRequest, count_nothing
from sinks.kafka.request_timeout import request_timeout
from streaming.errors import LockstepError

REPLACED_EVERY = 30.0
"""Seconds at least between two replacements of a client: a cluster that is down costs no client for each request."""

REFUSED_CONNECTION = "_TRANSPORT"
"""The result, in librdkafka's words, of a request to a cluster that refuses connections, or the login."""

T = TypeVar("T")
A = TypeVar("A")

PING_TOPIC = "__consumer_offsets"
"""Asking for one topic is cheap on a cluster of any size, and needs no right; it need not exist."""


class Admin:
    """librdkafka's admin client of one cluster, by its Java client properties. Opens no connection before a request.

    The modules beside this one (topics in `kafka_cluster`, ACLs, users) share it: one connection, one account. It may
    be used by several threads. `timeout`: seconds that a request may take.

    After a request that was not answered the client is replaced, as some versions of librdkafka never find their way
    back to a broker that restarted. No request is to hold on to `client`; none may go to a coordinator (see
    `group_process`).
    """

    def __init__(self, alias: str, properties: Mapping[str, str], count_request: CountRequest = count_nothing) -> None:
        self.alias, self.properties, self.count = alias, dict(properties), count_request
        self.timeout = request_timeout(alias, properties)
        self.config = client_config(alias, properties)
        self._reachability = reachability(alias, properties)
        self._lock = threading.Lock()
        self._client = self._new_client()
        self._made_at = time.monotonic()
        self._retired: list[tuple[float, AdminClient]] = []
        self._unanswered = False
        self._reason: KafkaError | None = None

    @property
    def client(self) -> AdminClient:
        """The client to send the next request through."""
        now, released = time.monotonic(), []
        with self._lock:
            if self._unanswered and now - self._made_at >= REPLACED_EVERY:
                self._retired.append((now, self._client))
                self._client, self._made_at, self._unanswered = self._new_client(), now, False
            # Another thread may wait for an answer that the old one still owes; its requests end with their timeout.
            released = [one for one in self._retired if now - one[0] > 2 * self.timeout]
            self._retired = [one for one in self._retired if one not in released]
            client = self._client
        released.clear()
        return client

    @property
    def unanswered(self) -> bool:
        """Whether a request went without an answer since the client was made or replaced."""
        return self._unanswered

    def settle(self, api: str, futures: Mapping[T, Future[Any]]) -> dict[T, tuple[Any, KafkaError | None]]:
        """Every future's value or error; raises when the request as a whole came to nothing.

        Raises ClusterUnreachable, RightsMissing.
        """
        settled: dict[T, tuple[Any, KafkaError | None]] = {}
        for item, future in futures.items():
            try:
                settled[item] = (awaited(future), None)
            except KafkaException as exception:
                settled[item] = (None, error_of(exception))
        errors = [error for _, error in settled.values() if error is not None]
        self.count(self.alias, api, "ok" if not errors else errors[0].name())
        self.mind(errors)
        if errors and len(errors) == len(settled) and stops_request(errors[0]):
            raise self._stopped(api, errors[0], self.timeout)
        return settled

    def call(self, api: str, request: Callable[[], A]) -> A:
        """The answer to a request that has but one. Raises ClusterUnreachable, RightsMissing."""
        asked = time.monotonic()
        # What happened to an earlier request says nothing of this one.
        self._client.poll(0)
        self._reason = None
        try:
            answer = self._reachability.answer(request, partial(self._login_refused, api))
        except (ClusterUnreachable, RightsMissing):
            self.count(self.alias, api, REFUSED_CONNECTION)
            self._unanswered = True
            raise
        except KafkaException as exception:
            error = error_of(exception)
            if error is None:
                raise
            self.count(self.alias, api, error.name())
            self.mind([error])
            stopped = self._stopped(api, error, time.monotonic() - asked)
            if isinstance(stopped, ClusterUnreachable):
                self._reachability.gave_up(str(stopped))
            raise stopped from exception
        self.count(self.alias, api, "ok")
        self._client.poll(0)
        self._reason = None
        return answer

    def _new_client(self) -> AdminClient:
        with_callback: dict[str, Any] = {**self.config, "error_cb": self._noticed}
        return AdminClient(with_callback)

    def mind(self, errors: Sequence[KafkaError]) -> None:
        """Whether one of them is the lack of an answer, after which the client is to be replaced."""
        if any(error.code() in UNREACHABLE for error in errors):
            self._unanswered = True

    def _noticed(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._reason = error

    def _login_refused(self, api: str) -> LockstepError | None:
        self._client.poll(0)
        refused = self._reason
        if refused is None or refused.code() not in REFUSED_LOGIN:
            return None
        return raised(self.alias, api, refused)

    def _stopped(self, api: str, error: KafkaError, waited: float) -> LockstepError:
        """A request says no more than that it timed out; why librdkafka cannot connect comes to its callback."""
        self._client.poll(0)
        reason, self._reason = self._reason, None
        if error.code() in UNREACHABLE and (refused := self._reachability.refused()) is not None:
            return refused
        if reason is None and error.code() in UNANSWERED:
            return no_answer(self.alias, self.properties["bootstrap.servers"], api, min(waited, self.timeout))
        return raised(self.alias, api, reason if reason is not None and error.code() in UNREACHABLE else error)
