"""The `ssl.` settings of a Java client in librdkafka's words.

| Java                                               | librdkafka                                              |
|----------------------------------------------------|---------------------------------------------------------|
| `ssl.truststore.*` of any type                     | `ssl.ca.pem`; without one, the system's certificates    |
| `ssl.keystore.*` of any type, `ssl.key.password`   | `ssl.certificate.pem`, `ssl.key.pem`, decrypted         |
| `ssl.endpoint.identification.algorithm`            | the same; empty is `none`                               |
| `ssl.protocol`, `ssl.enabled.protocols`            | left out: both sides take the newest that both know     |
| what chooses among Java's own implementations      | left out                                                |
| all others, e.g. `ssl.cipher.suites`               | NoRecords, which names them                             |
"""

from __future__ import annotations

from collections.abc import Mapping

from sinks.faults import NoRecords
from sinks.kafka.security.sasl import WHAT_NEEDS_RECORDS
from sinks.kafka.security.stores import key_pair, trusted_certificates
from streaming.errors import LockstepError

STORES = frozenset(
    {
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.key.password",
    }
)
HOSTNAME = "ssl.endpoint.identification.algorithm"
JAVA_ALONE = frozenset(
    {
        "ssl.enabled.protocols",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    }
)


def tls_config(properties: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's configuration of TLS. Raises LockstepError that names the Java key, NoRecords for what only Java
    has."""
    config = {HOSTNAME: _hostname(properties.get(HOSTNAME, "https"))}
    if trusted := trusted_certificates(properties):
        config["ssl.ca.pem"] = trusted
    if pair := key_pair(properties):
        config |= {"ssl.certificate.pem": pair.chain, "ssl.key.pem": pair.key}
    for name, value in properties.items():
        if name.startswith("ssl.") and value and name not in STORES | JAVA_ALONE | {HOSTNAME}:
            raise NoRecords(f"{name} has no counterpart in librdkafka. {WHAT_NEEDS_RECORDS}")
    return config


def _hostname(algorithm: str) -> str:
    if algorithm.lower() not in ("", "https"):
        raise LockstepError(f"{HOSTNAME}={algorithm} is unknown; allowed: https, or empty for no check of the name")
    return algorithm.lower() or "none"
