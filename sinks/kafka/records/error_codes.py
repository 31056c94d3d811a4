"""Turns librdkafka's errors of reading and writing records into Lockstep's: those that stop a request, those that
pass."""

from __future__ import annotations

import re

from confluent_kafka import KafkaError, KafkaException

from sinks.faults import ClusterUnreachable, RightsMissing, broker_text, where_it_is
from streaming.errors import LockstepError

UNREACHABLE = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError.BROKER_NOT_AVAILABLE,
    }
)
DENIED_CLUSTER = frozenset({KafkaError.CLUSTER_AUTHORIZATION_FAILED})
LOGIN = frozenset({KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL})
REFUSED_CERTIFICATE = re.compile(r"(tls|ssl)v?\S* alert", re.IGNORECASE)
"""librdkafka's text for a connection that broke off because the broker refuses the client's certificate, or wants
one."""

NO_COORDINATOR = frozenset(
    {KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}
)
"""Errors of a request about groups: their coordinator is starting, or another broker is their coordinator now."""

NO_LEADER = frozenset({KafkaError._UNKNOWN_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})
"""Errors of a partition without a leader. librdkafka has the first one if the metadata shows no leader."""


def error_of(exception: BaseException) -> KafkaError | None:
    """Returns the KafkaError in an exception; None if there is none."""
    if isinstance(exception, KafkaException) and exception.args and isinstance(exception.args[0], KafkaError):
        return exception.args[0]
    return None


def raised(alias: str, doing: str, error: KafkaError) -> LockstepError:
    """Returns the exception for an error that concerns a whole request."""
    text = ": ".join(filter(None, (f"cluster {alias}", doing, error.name(), broker_text(error.str()))))
    if error.code() in LOGIN or REFUSED_CERTIFICATE.search(error.str()):
        return RightsMissing(f"{text}; check the security settings of `{alias}.` in the properties file")
    if error.code() in DENIED_CLUSTER:
        return RightsMissing(
            f"{text}; grant the principal this right on the cluster {alias}. `lockstep rights` prints all grants"
        )
    if error.code() in NO_LEADER:
        return LockstepError(f"{text}; the partition has no leader: see that its brokers on {alias} run")
    if error.code() in UNREACHABLE | NO_COORDINATOR or error.retriable():
        return ClusterUnreachable(f"{text}; {where_it_is(alias)}")
    return LockstepError(text)
