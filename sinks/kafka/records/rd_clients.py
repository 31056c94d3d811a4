"""How confluent-kafka's clients of one cluster are made, and how they log in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer

from sinks.faults import NoRecords
from sinks.kafka.jvm.java_token import Token
from sinks.kafka.records.client_config import client_config
from sinks.kafka.records.error_codes import error_of, raised
from sinks.kafka.security.sasl import OAUTH, WHAT_NEEDS_RECORDS

LACKS: Final = "No provider for SASL mechanism"
"""librdkafka's text if it was built without a SASL mechanism."""

BUILD: Final = (
    "The confluent-kafka that is installed was built without GSSAPI. Install one that was: build librdkafka with "
    "libsasl2 and `./configure --enable-gssapi`, then `pip install --no-binary confluent-kafka confluent-kafka`"
)

Own = Mapping[str, object]
Client = TypeVar("Client", Consumer, Producer)


class RdClients:
    """Creates librdkafka clients of one cluster. Raises LockstepError for wrong client settings. What librdkafka lacks
    is reported when a client is created.

    `token`: called by an OAUTHBEARER login, at its start and whenever the token is about to expire.
    """

    def __init__(self, alias: str, properties: Mapping[str, str], token: Callable[[], Token]) -> None:
        self._alias, self._token = alias, token
        self._lack: NoRecords | None = None
        self._config: dict[str, Any] = {}
        try:
            self._config = dict(client_config(alias, properties))
        except NoRecords as lack:
            self._lack = lack
        if self._config.get("sasl.mechanism") == OAUTH:
            self._config["oauth_cb"] = self._answer

    def made(self, kind: type[Client], own: Own) -> Client:
        """Returns a new client with these settings. Raises NoRecords, RightsMissing, and LockstepError if it cannot log
        in."""
        if self._lack is not None:
            raise NoRecords(str(self._lack))
        logs_in_by_token = "oauth_cb" in self._config
        if logs_in_by_token:
            # Here Java tells why there is no token; librdkafka drops what the callback raises.
            self._token()
        try:
            client = kind({**self._config, **own})
        except KafkaException as exception:
            error = error_of(exception)
            if error is None:
                raise
            if LACKS in error.str():
                raise NoRecords(f"cluster {self._alias}: {BUILD}. {WHAT_NEEDS_RECORDS}") from exception
            raise raised(self._alias, "logging in", error) from exception
        if logs_in_by_token:
            # Before 2.13 the callback runs only in a poll, and a first request would wait for it in vain. From 2.13 on
            # the constructor sleeps a second before it looks for the token, which has been there for 995 ms.
            client.poll(0)
        return client

    def _answer(self, _: str) -> tuple[str, float, str, dict[str, str]]:
        token = self._token()
        return token.value, token.expires_s, token.principal, token.extensions
