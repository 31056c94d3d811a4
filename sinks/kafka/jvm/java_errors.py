"""Turns errors of Java's client into Lockstep's: faults of one item, errors that stop a request, errors that pass.

An error comes as `Throwable.toString` gives it: the class of the exception, a colon, the broker's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sinks.faults import ClusterUnreachable, ItemFault, NotSupported, RightsMissing, broker_text, where_it_is
from sinks.kafka.reachability import refusing
from streaming.errors import LockstepError

WRAPPERS = ("ExecutionException", "CompletionException")
"""Java's exceptions that wrap the one that counts."""

OTHER_NAMES: Mapping[str, str] = {
    "BrokerIdNotRegisteredException": "BROKER_NOT_AVAILABLE",
    "ClusterAuthorizationException": "CLUSTER_AUTHORIZATION_FAILED",
    "CoordinatorLoadInProgressException": "COORDINATOR_LOAD_IN_PROGRESS",
    "DisconnectException": "NETWORK_EXCEPTION",
    "GroupAuthorizationException": "GROUP_AUTHORIZATION_FAILED",
    "GroupNotEmptyException": "NON_EMPTY_GROUP",
    "InvalidConfigurationException": "INVALID_CONFIG",
    "InvalidTopicException": "TOPIC_EXCEPTION",
    "NetworkException": "NETWORK_EXCEPTION",
    "NotEnoughReplicasException": "NOT_ENOUGH_REPLICAS",
    "NotLeaderOrFollowerException": "NOT_LEADER_FOR_PARTITION",
    "SaslAuthenticationException": "SASL_AUTHENTICATION_FAILED",
    "SslAuthenticationException": "SSL_AUTHENTICATION_FAILED",
    "ThrottlingQuotaExceededException": "THROTTLING_QUOTA_EXCEEDED",
    "TimeoutException": "REQUEST_TIMED_OUT",
    "TopicAuthorizationException": "TOPIC_AUTHORIZATION_FAILED",
    "TopicExistsException": "TOPIC_ALREADY_EXISTS",
    "TransactionalIdAuthorizationException": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "UnknownServerException": "UNKNOWN",
    "UnknownTopicOrPartitionException": "UNKNOWN_TOPIC_OR_PART",
}
"""Error codes by the simple name of Java's exception. All other exceptions give their own name in capitals."""

BY_TEXT: Mapping[str, str] = {
    # In an IllegalStateException. Another flow into the cluster gave a write up, and closed the client.
    "when AdminClient is closing": "NETWORK_EXCEPTION",
    # In a plain KafkaException, where an answer named no broker.
    "Failed to find brokers": "BROKER_NOT_AVAILABLE",
}

TIMED_OUT = "REQUEST_TIMED_OUT"
LOGIN = frozenset({"SASL_AUTHENTICATION_FAILED", "SSL_AUTHENTICATION_FAILED"})
DENIED_CLUSTER = "CLUSTER_AUTHORIZATION_FAILED"
UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PART"
TOO_OLD = "UNSUPPORTED_VERSION"
NO_ANSWER = frozenset({TIMED_OUT, "NETWORK_EXCEPTION", "BROKER_NOT_AVAILABLE"})
NO_COORDINATOR = frozenset({"COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"})
"""Errors of a request about groups: their coordinator is starting, or another broker is their coordinator now."""

TURNED_AWAY = NO_COORDINATOR | {"LEADER_NOT_AVAILABLE", "NOT_CONTROLLER", "NOT_LEADER_FOR_PARTITION"}
"""Errors of a write that its broker did not carry out, because another one is in charge."""

NO_RETRIES_LEFT = "Exceeded maxRetries"
"""Java's text in a TimeoutException if a broker answered that another one is in charge (`KafkaAdminClient.enqueue`)."""

RETRIABLE_CODES = (
    NO_ANSWER
    | NO_COORDINATOR
    | {
        "LEADER_NOT_AVAILABLE",
        "NOT_CONTROLLER",
        "NOT_ENOUGH_REPLICAS",
        "NOT_LEADER_FOR_PARTITION",
        "THROTTLING_QUOTA_EXCEEDED",
        UNKNOWN_TOPIC,
    }
)
"""Errors that may pass by themselves. UNKNOWN_TOPIC_OR_PART: metadata lags behind creation, so a topic that is missing
now may be there in a moment."""


RIGHTS: Mapping[str, str] = {
    "AlterClientQuotas": "ALTER_CONFIGS",
    "AlterUserScramCredentials": "ALTER",
    "CreateAcls": "ALTER",
    "CreateTopics": "CREATE",
    "DeleteAcls": "ALTER",
    "DescribeAcls": "DESCRIBE",
    "DescribeClientQuotas": "DESCRIBE_CONFIGS",
    "DescribeConfigs": "DESCRIBE_CONFIGS",
    "DescribeUserScramCredentials": "DESCRIBE",
    "IncrementalAlterConfigs": "ALTER_CONFIGS",
}
"""Operation on the CLUSTER that each request needs."""


def java_error(text: str) -> ItemFault:
    """Returns the error in a `Throwable.toString` text, under Kafka's name."""
    name, _, message = text.partition(": ")
    simple = re.split(r"[.$]", name.strip())[-1]
    if simple in WRAPPERS and message:
        return java_error(message)
    code = next((known for said, known in BY_TEXT.items() if said in message), OTHER_NAMES.get(simple))
    if code is None:
        code = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", simple.removesuffix("Exception")).upper()
    return fault_of(code, broker_text(message))


def fault_of(code: str, message: str) -> ItemFault:
    return ItemFault(code, message, code in RETRIABLE_CODES, code in NO_ANSWER)


def not_repeated(causes: Iterable[str]) -> ItemFault:
    """Returns the error behind the TimeoutException of a request that Java's client does not repeat. `causes`:
    `Throwable.toString` texts of all that was raised."""
    told = [error for text in causes if not text.split(": ")[0].endswith(WRAPPERS) for error in (java_error(text),)]
    if any(NO_RETRIES_LEFT in error.message for error in told):
        return fault_of("COORDINATOR_NOT_AVAILABLE", "no broker in charge was found")
    return next((error for error in told if error.code != TIMED_OUT), told[0])


def stops_request(code: str) -> bool:
    """Whether an error of one item means that the request was not carried out at all."""
    return code in NO_ANSWER | LOGIN | {DENIED_CLUSTER, TOO_OLD}


def raised(alias: str, servers: str, api: str, error: ItemFault, waited: float) -> LockstepError:
    """Returns the exception for an error that concerns a whole request. `waited`: seconds."""
    text = ": ".join(filter(None, (f"cluster {alias}", api, error.code, error.message)))
    if error.code in LOGIN:
        return RightsMissing(f"{text}; check the security settings of `{alias}.` in the properties file")
    if error.code == DENIED_CLUSTER:
        right = RIGHTS.get(api, "this right")
        return RightsMissing(
            f"{text}; grant the principal {right} on the cluster {alias}. `lockstep rights` prints all grants"
        )
    if error.code == TIMED_OUT:
        down = refusing(servers)
        why = f"{', '.join(down)} refuses connections, see why that broker is down" if down else where_it_is(alias)
        return ClusterUnreachable(f"cluster {alias}: {servers} gave no answer to {api} within {waited:.2g} s; {why}")
    if error.code == TOO_OLD:
        return NotSupported(f"{text}; its brokers are too old for it")
    if error.code in RETRIABLE_CODES:
        return ClusterUnreachable(f"{text}; {where_it_is(alias)}")
    return LockstepError(text)
