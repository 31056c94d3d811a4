"""Tries whether a user can log in: with a client of its own, and that user's name and password.

Only an operator's command does this. Each login proves the password to the server that answers, and that server may
keep the proof. With few iterations of SCRAM a dictionary attack breaks it. Java's client gives no proof below 4096
iterations; librdkafka gives one for a single iteration. Source: `ScramSaslClient`.
"""

from __future__ import annotations

from contextlib import closing

from sinks.faults import ClusterUnreachable
from sinks.kafka.jvm.java_admin import JavaAdmin

WITH_LOGIN = frozenset({"SASL_PLAINTEXT", "SASL_SSL"})
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
WRONG = "invalid credentials"
"""A broker's text for a wrong password, and for nothing else (`SaslServerAuthenticator`)."""

REFUSED = "SASL_AUTHENTICATION_FAILED"


def can_log_in(admin: JavaAdmin, user: str, password: str, mechanism: str) -> str | None:
    """Returns None if the user can log in, else why not. `admin`: all its settings but the login are used.

    Neither the result nor an error shows the password. Raises LockstepError for properties that cannot be used.
    """
    alias, properties = admin.alias, admin.properties
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in WITH_LOGIN:
        return f"{alias}.security.protocol={protocol} has no login: try the password at a listener with SASL"
    own = {name: value for name, value in properties.items() if not name.startswith("sasl.")}
    words = (word.translate(ESCAPES) for word in (user, password))
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    own["sasl.mechanism"] = mechanism
    own["sasl.jaas.config"] = '{} required username="{}" password="{}";'.format(module, *words)
    with closing(JavaAdmin(alias, own, lambda: admin.gateway)) as tried:
        try:
            refused = tried.refused(lambda client: client.describeCluster().nodes())
        except ClusterUnreachable as error:
            return f"no answer: {error}"
    if refused is None:
        return None
    if refused.code != REFUSED:
        return f"no answer within {admin.timeout:g} s"
    if WRONG in refused.message:
        return f"invalid credentials with SASL mechanism {mechanism}"
    return f"the login broke off: {alias} asked for fewer than 4096 iterations, or does not support {mechanism}"
