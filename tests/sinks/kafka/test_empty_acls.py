"""librdkafka shows a cluster without an authorizer as one without ACLs: an empty answer needs evidence."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation

from sinks.faults import NotSupported
from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.rd_acls import KafkaAcls
from streaming.errors import LockstepError


class WithoutAcls(Admin):
    """Of a cluster that shows no ACL. `deletes`: the code of its answer to a deletion; None deletes nothing."""

    def __init__(self, deletes: int | None) -> None:
        super().__init__("b", {"bootstrap.servers": "127.0.0.1:1"})
        self._deletes = deletes

    @property
    def client(self) -> Any:
        """Itself."""
        return self

    def call(self, api: str, request: Any) -> Any:
        return request()

    def describe_acls(self, which: Any, request_timeout: float) -> Future[list[Any]]:
        """As librdkafka's client does."""
        return _done([])

    def describe_cluster(self, **_: Any) -> Future[Any]:
        """As librdkafka's client does."""
        return _done(SimpleNamespace(authorized_operations=[AclOperation.DESCRIBE]))

    def describe_topics(self, *_: Any, **__: Any) -> dict[str, Future[Any]]:
        """As librdkafka's client does."""
        return {}

    def delete_acls(self, filters: Sequence[Any], request_timeout: float) -> dict[Any, Future[list[Any]]]:
        """As librdkafka's client does."""
        found: Future[list[Any]] = Future()
        if self._deletes is None:
            found.set_result([])
        else:
            found.set_exception(KafkaException(KafkaError(self._deletes)))
        return dict.fromkeys(filters, found)


def _done(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


@pytest.mark.parametrize("deletes", [None, KafkaError.CLUSTER_AUTHORIZATION_FAILED])
def test_an_authorizer_that_answers_has_no_acls(deletes: int | None) -> None:
    assert KafkaAcls(WithoutAcls(deletes)).describe() == []


def test_a_cluster_without_an_authorizer_is_not_supported() -> None:
    with pytest.raises(NotSupported):
        KafkaAcls(WithoutAcls(KafkaError.SECURITY_DISABLED)).describe()


@pytest.mark.parametrize(
    "deletes",
    [KafkaError.REQUEST_TIMED_OUT, KafkaError.NETWORK_EXCEPTION, KafkaError.NOT_CONTROLLER, KafkaError._TIMED_OUT],
)
def test_whether_there_is_an_authorizer_is_not_known_without_an_answer(deletes: int) -> None:
    with pytest.raises(LockstepError) as raised:
        KafkaAcls(WithoutAcls(deletes)).describe()
    assert not isinstance(raised.value, NotSupported)
