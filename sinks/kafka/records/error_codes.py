"""Errors of reading and writing records as ours: which stop a request, and which pass by themselves."""

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
"""In the text of a connection that broke off: the broker does not take the client's certificate, or wants one."""

NO_COORDINATOR = frozenset(
    {KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}
)
"""Of a request about groups: their coordinator is starting, or another broker is their coordinator now."""

NO_LEADER = frozenset({KafkaError._UNKNOWN_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})
"""librdkafka says the first of a partition that the metadata shows without a leader."""


def error_of(exception: BaseException) -> KafkaError | None:
    """The KafkaError inside, if there is one."""
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
