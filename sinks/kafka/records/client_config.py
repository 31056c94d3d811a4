"""Java client properties in librdkafka's words.

| Java                        | librdkafka                                                                      |
|-----------------------------|---------------------------------------------------------------------------------|
| names that both have        | as they are                                                                     |
| `security.protocol`         | as it is; what it does not use is not read, as in Java                          |
| `ssl.*` of SSL, SASL_SSL    | `security/tls.py`                                                               |
| `sasl.*` of SASL_*          | `security/sasl.py`                                                              |
| other names that Java has   | left out: they tune the Java client                                             |
"""

from __future__ import annotations

from collections.abc import Mapping

from sinks.kafka.security.sasl import sasl_config
from streaming.errors import LockstepError, prefixed

SAME = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "client.dns.lookup",
        "socket.connection.setup.timeout.ms",
        "reconnect.backoff.ms",
        "reconnect.backoff.max.ms",
        "retry.backoff.ms",
        "retry.backoff.max.ms",
        "metadata.max.age.ms",
        "connections.max.idle.ms",
    }
)
TLS_AND_SASL: Mapping[str, tuple[bool, bool]] = {
    "PLAINTEXT": (False, False),
    "SSL": (True, False),
    "SASL_PLAINTEXT": (False, True),
    "SASL_SSL": (True, True),
}
"""By security protocol: whether it has TLS, and whether it has a login."""


def client_config(alias: str, properties: Mapping[str, str]) -> dict[str, str | int]:
    """Returns librdkafka's configuration; it holds secrets. Reads key and trust stores from their files.

    Raises LockstepError for a wrong security setting, NoRecords for a setting without a counterpart.
    """
    # What goes wrong comes back with the request that it concerns; librdkafka would say it on stderr as well.
    config: dict[str, str | int] = {"topic.metadata.refresh.interval.ms": -1, "log_level": 0}
    config |= {name: value for name, value in properties.items() if name in SAME}
    if "bootstrap.servers" not in config:
        raise LockstepError(f"cluster {alias}: {alias}.bootstrap.servers is missing")
    try:
        return config | security_config(properties)
    except LockstepError as error:
        raise type(error)(prefixed(f"cluster {alias}", error)) from error


def security_config(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the security part of a client's configuration. Raises LockstepError that names the Java key and no
    secret."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in TLS_AND_SASL:
        raise LockstepError(f"security.protocol={protocol} is unknown; allowed: {', '.join(TLS_AND_SASL)}")
    has_tls, has_login = TLS_AND_SASL[protocol]
    config = {"security.protocol": protocol}
    if has_tls:
        # It imports cryptography, which every command would wait for.
        from sinks.kafka.security.tls import tls_config

        config |= tls_config(properties)
    if has_login:
        config |= sasl_config(properties)
    return config
