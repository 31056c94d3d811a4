"""Java client properties in librdkafka's words.

| Java                                             | librdkafka                                          |
|--------------------------------------------------|-----------------------------------------------------|
| names that both have                             | as they are                                         |
| `sasl.jaas.config` of PLAIN or SCRAM             | `sasl.username`, `sasl.password`                    |
| `ssl.truststore.location`/`certificates` (PEM)   | `ssl.ca.location` / `ssl.ca.pem`                    |
| `ssl.endpoint.identification.algorithm` empty    | `none`                                              |
| other settings of security                       | an error that names them: they must not be ignored  |
| other names that only Java has                   | left out: they tune the Java client                 |
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from streaming.errors import LockstepError

SAME = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "client.dns.lookup",
        "security.protocol",
        "sasl.mechanism",
        "socket.connection.setup.timeout.ms",
        "reconnect.backoff.ms",
        "reconnect.backoff.max.ms",
        "retry.backoff.ms",
        "retry.backoff.max.ms",
        "metadata.max.age.ms",
        "connections.max.idle.ms",
        "ssl.key.password",
    }
)
SECURITY = ("ssl.", "sasl.")
HARMLESS = frozenset({"ssl.protocol", "ssl.enabled.protocols", "sasl.client.callback.handler.class"})
CREDENTIALS = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')
LOGIN_MODULES = ("PlainLoginModule", "ScramLoginModule")


def client_config(alias: str, properties: Mapping[str, str]) -> dict[str, str | int]:
    """librdkafka's configuration. Raises LockstepError for a security setting that has no counterpart here."""
    # What goes wrong comes back with the request that it concerns; librdkafka would say it on stderr as well.
    config: dict[str, str | int] = {"topic.metadata.refresh.interval.ms": -1, "log_level": 0}
    for name, value in properties.items():
        if name in SAME:
            config[name] = value
        elif name.startswith(SECURITY) and name not in HARMLESS:
            config |= _security(alias, name, value, properties)
    if "bootstrap.servers" not in config:
        raise LockstepError(f"cluster {alias}: {alias}.bootstrap.servers is missing")
    return config


def _security(alias: str, name: str, value: str, properties: Mapping[str, str]) -> dict[str, str | int]:
    if name == "sasl.jaas.config":
        return _jaas(alias, value)
    if name == "ssl.endpoint.identification.algorithm":
        return {name: value or "none"}
    if name in ("ssl.truststore.type", "ssl.keystore.type"):
        if value.upper() == "PEM":
            return {}
        raise LockstepError(f"cluster {alias}: {name}={value} is not supported yet: convert the store to PEM")
    if name == "ssl.truststore.certificates":
        return {"ssl.ca.pem": value}
    if name == "ssl.truststore.location" and properties.get("ssl.truststore.type", "").upper() == "PEM":
        return {"ssl.ca.location": value}
    if name == "ssl.keystore.certificate.chain":
        return {"ssl.certificate.pem": value}
    if name == "ssl.keystore.key":
        return {"ssl.key.pem": value}
    raise LockstepError(f"cluster {alias}: {name} has no counterpart in librdkafka yet; it would be ignored")


def _jaas(alias: str, value: str) -> dict[str, str | int]:
    found = {name: re.sub(r"\\(.)", r"\1", text) for name, text in CREDENTIALS.findall(value)}
    if not any(module in value for module in LOGIN_MODULES) or found.keys() != {"username", "password"}:
        raise LockstepError(
            f'cluster {alias}: sasl.jaas.config: PlainLoginModule or ScramLoginModule with username="…" and '
            'password="…" is what can be read'
        )
    return {"sasl.username": found["username"], "sasl.password": found["password"]}
