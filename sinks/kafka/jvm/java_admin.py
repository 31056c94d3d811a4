"""Java's `Admin` in a JVM behind a py4j gateway: how it is made, and what its errors are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError

from sinks.faults import RightsMissing
from sinks.kafka.request_timeout import ONE, WHOLE, request_timeout

CLOSES_WITHIN_MS = 15_000

DENIED_CLIENT = ("ClusterAuthorizationException", "SaslAuthenticationException", "SslAuthenticationException")


def timeout_ms(alias: str, properties: Mapping[str, str]) -> int:
    """How long a call may take. Raises LockstepError, see `request_timeout`."""
    return int(request_timeout(alias, properties) * 1000)


def java_properties(alias: str, jvm: Any, properties: Mapping[str, str]) -> Any:
    """A `Map` for a Java client, which gives up on a silent cluster within its `timeout_ms`."""
    java = jvm.java.util.HashMap()
    for name, value in properties.items():
        java.put(name, value)
    limit = timeout_ms(alias, properties)
    java.put(WHOLE, str(limit))
    # Java refuses a request that may take longer than the call that it is part of.
    java.put(ONE, str(min(int(properties.get(ONE, limit * 2 // 3)), limit)))
    return java


def java_admin(alias: str, jvm: Any, properties: Mapping[str, str]) -> Any:
    """An `Admin` of the JVM's. With OAUTHBEARER it logs in here and now. Raises RightsMissing where it cannot be made.

    Java's own text is left out: of a token that it cannot read, it repeats all of it.
    """
    try:
        return jvm.org.apache.kafka.clients.admin.AdminClient.create(java_properties(alias, jvm, properties))
    except Py4JJavaError as error:
        raise RightsMissing(
            f"cluster {alias}: Java's client cannot be made with these settings: {', '.join(_causes(error))}; check "
            f"the security settings of `{alias}.` in the properties file"
        ) from None


def _causes(error: Py4JJavaError) -> Iterator[str]:
    thrown = error.java_exception
    while thrown is not None:
        yield str(thrown.getClass().getSimpleName())
        thrown = thrown.getCause()


def cause_of(error: Py4JJavaError) -> str:
    """The simple name of the Java exception behind a failed future."""
    thrown = error.java_exception
    return str((thrown.getCause() or thrown).getClass().getSimpleName())


def message_of(error: Py4JJavaError) -> str:
    """What that exception says."""
    thrown = error.java_exception
    return str((thrown.getCause() or thrown).getMessage())
