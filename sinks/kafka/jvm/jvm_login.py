"""Whether a user can log in: a client of its own tries it, with that user's name and password.

Through Java's client, and at a person's command alone. Each login is a proof of the password that whoever answers may
keep: Java's client gives none for fewer than 4096 iterations of SCRAM, where librdkafka proves it for one, which a
dictionary breaks. Source: `ScramSaslClient`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError

from sinks.kafka.jvm.java_admin import cause_of, java_admin, message_of, timeout_ms

WITH_LOGIN = frozenset({"SASL_PLAINTEXT", "SASL_SSL"})
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
WRONG = "invalid credentials"
"""What a broker says of a wrong password (`SaslServerAuthenticator`), and of nothing else."""

REFUSED = "SaslAuthenticationException"
CLOSES_AT_ONCE_MS = 0


def can_log_in(
    alias: str, jvm: Any, properties: Mapping[str, str], user: str, password: str, mechanism: str
) -> str | None:
    """None when the user gets in, else why not. `properties`: the cluster's own, of which all but the login is taken.

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
    admin = java_admin(alias, jvm, {**own, "sasl.mechanism": mechanism, "sasl.jaas.config": jaas})
    limit = timeout_ms(alias, properties)
    try:
        admin.describeCluster().nodes().get(limit, jvm.java.util.concurrent.TimeUnit.MILLISECONDS)
    except Py4JJavaError as error:
        if cause_of(error) != REFUSED:
            return f"no answer within {limit / 1000:g} s"
        if WRONG in message_of(error):
            return f"invalid credentials with SASL mechanism {mechanism}"
        return f"the login was broken off: {alias} asked for fewer than 4096 iterations, or does not speak {mechanism}"
    finally:
        admin.close(jvm.java.time.Duration.ofMillis(CLOSES_AT_ONCE_MS))
    return None
