"""What every admin request has in common: how it is sent, counted and settled, and what its errors mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from sinks.kafka.librdkafka.client_config import client_config
from sinks.kafka.librdkafka.error_codes import UNREACHABLE, error_of, raised, stops_request
from sinks.kafka.ports.cluster import CountRequest, count_nothing
from streaming.errors import LockstepError

TIMEOUT = 15.0
"""Seconds that one request may take; a batch waits no longer for a cluster that is silent."""

T = TypeVar("T")
A = TypeVar("A")


class Admin:
    """librdkafka's admin client of one cluster, by its Java client properties. Opens no connection before a request.

    The modules beside this one (topics in `kafka`, ACLs, users, groups) share it: one connection, one account.
    """

    def __init__(self, alias: str, properties: Mapping[str, str], count_request: CountRequest = count_nothing) -> None:
        self.alias = alias
        self._count = count_request
        self.config = client_config(alias, properties)
        with_callback: dict[str, Any] = {**self.config, "error_cb": self._noticed}
        self.client = AdminClient(with_callback)
        self._reason: KafkaError | None = None

    def settle(self, api: str, futures: Mapping[T, Future[Any]]) -> dict[T, tuple[Any, KafkaError | None]]:
        """Every future's value or error; raises when the request as a whole came to nothing.

        Raises ClusterUnreachable, RightsMissing.
        """
        settled: dict[T, tuple[Any, KafkaError | None]] = {}
        for item, future in futures.items():
            try:
                settled[item] = (future.result(), None)
            except KafkaException as exception:
                settled[item] = (None, error_of(exception))
        errors = [error for _, error in settled.values() if error is not None]
        self._count(self.alias, api, "ok" if not errors else errors[0].name())
        if errors and len(errors) == len(settled) and stops_request(errors[0]):
            raise self._stopped(api, errors[0])
        return settled

    def call(self, api: str, request: Callable[[], A]) -> A:
        """The answer to a request that has but one. Raises ClusterUnreachable, RightsMissing."""
        try:
            answer = request()
        except KafkaException as exception:
            error = error_of(exception)
            if error is None:
                raise
            self._count(self.alias, api, error.name())
            raise self._stopped(api, error) from exception
        self._count(self.alias, api, "ok")
        self.client.poll(0)
        self._reason = None
        return answer

    def _noticed(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._reason = error

    def _stopped(self, api: str, error: KafkaError) -> LockstepError:
        """A request says no more than that it timed out; why librdkafka cannot connect comes to its callback."""
        self.client.poll(0)
        reason, self._reason = self._reason, None
        return raised(self.alias, api, reason if reason is not None and error.code() in UNREACHABLE else error)
