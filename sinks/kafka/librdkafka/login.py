"""Whether a user can log in: a client of its own tries it, with that user's name and password."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from sinks.kafka.librdkafka.admin import PING_TOPIC
from sinks.kafka.librdkafka.client_config import client_config
from sinks.kafka.librdkafka.error_codes import LOGIN, error_of
from sinks.kafka.ports.users import LoginTrial
from sinks.kafka.request_timeout import LONGEST, request_timeout
from streaming.errors import LockstepError

PASS_TIMEOUT = 5.0
"""Seconds until a cluster that does not answer counts as one, where a pass waits."""

WRONG = "invalid credentials"
"""What a broker says of a wrong password (`SaslServerAuthenticator`), and of nothing else."""

ONE_REQUEST = 0.5
"""Seconds that one request waits before the client is asked what went wrong."""

WITH_LOGIN = frozenset({"SASL_PLAINTEXT", "SASL_SSL"})
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def can_log_in(
    alias: str, properties: Mapping[str, str], user: str, password: str, mechanism: str, within: float = LONGEST
) -> str | None:
    """None when the user gets in, else why not. `properties`: the cluster's own, of which all but the login is taken.

    `within`: seconds; less where a request to the cluster may take less.

    Neither what comes back nor what is raised shows the password. Raises LockstepError for properties that cannot be
    used.
    """
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in WITH_LOGIN:
        return f"{alias}.security.protocol={protocol}: nobody logs in there; it takes a listener with SASL to try"
    own = {name: value for name, value in properties.items() if not name.startswith("sasl.")}
    words = (word.translate(ESCAPES) for word in (user, password))
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    jaas = '{} required username="{}" password="{}";'.format(module, *words)
    noticed: list[KafkaError] = []
    config: dict[str, Any] = dict(client_config(alias, {**own, "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}))
    config["error_cb"] = noticed.append
    return _tried(AdminClient(config), noticed, min(within, request_timeout(alias, properties)))


def try_login(alias: str, properties: Mapping[str, str], user: str, password: str, mechanism: str) -> LoginTrial:
    """The same where a pass waits for it: whether this is the user's password, if that can be told. Raises nothing."""
    try:
        reason = can_log_in(alias, properties, user, password, mechanism, PASS_TIMEOUT)
    except LockstepError as error:
        return LoginTrial(None, str(error))
    if reason is None:
        return LoginTrial(True)
    return LoginTrial(False if WRONG in reason else None, reason)


def _tried(client: AdminClient, noticed: list[KafkaError], timeout: float) -> str | None:
    deadline = time.monotonic() + timeout
    last = "no answer"
    while time.monotonic() < deadline:
        try:
            client.list_topics(topic=PING_TOPIC, timeout=min(ONE_REQUEST, timeout))
            return None
        except KafkaException as exception:
            error = error_of(exception)
            if error is None:
                raise LockstepError(f"the client failed: {type(exception).__name__}") from None
            last = error.str()
        # Why it is in vain comes to the callback, and only while the client is polled.
        client.poll(0)
        for error in noticed:
            if error.code() in LOGIN:
                return error.str()
            last = error.str()
    return f"no answer within {timeout:g} s: {last}"
