"""Errors of Java's client under Kafka's names, and what becomes of those that concern a whole request."""

from __future__ import annotations

import socket

import pytest

from app.local.ports import free_ports
from sinks.faults import ClusterUnreachable, ItemFault, NotSupported, RightsMissing
from sinks.kafka.jvm.java_errors import (
    LOGIN,
    NO_ANSWER,
    NO_COORDINATOR,
    OTHER_NAMES,
    fault_of,
    java_error,
    raised,
)
from sinks.kafka.jvm.jvm_users import too_old

ERRORS = "org.apache.kafka.common.errors."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{ERRORS}UnknownTopicOrPartitionException: not here", fault_of("UNKNOWN_TOPIC_OR_PART", "not here")),
        (f"{ERRORS}PolicyViolationException: too few: 1", fault_of("POLICY_VIOLATION", "too few: 1")),
        (f"{ERRORS}UnknownMemberIdException: null", fault_of("UNKNOWN_MEMBER_ID", "")),
        (f"{ERRORS}InvalidReplicationFactorException", fault_of("INVALID_REPLICATION_FACTOR", "")),
        ("java.util.concurrent.TimeoutException", fault_of("REQUEST_TIMED_OUT", "")),
        (
            "java.lang.IllegalStateException: Cannot accept new calls when AdminClient is closing.",
            fault_of("NETWORK_EXCEPTION", "Cannot accept new calls when AdminClient is closing."),
        ),
        ("java.lang.IllegalStateException: no result", fault_of("ILLEGAL_STATE", "no result")),
        (f"java.util.concurrent.ExecutionException: {ERRORS}TimeoutException: x", fault_of("REQUEST_TIMED_OUT", "x")),
        (
            "java.util.concurrent.CompletionException: java.util.concurrent.ExecutionException: "
            f"{ERRORS}GroupIdNotFoundException: g",
            fault_of("GROUP_ID_NOT_FOUND", "g"),
        ),
    ],
)
def test_an_exception_has_kafkas_name_of_the_error(text: str, expected: ItemFault) -> None:
    assert java_error(text) == expected


@pytest.mark.parametrize("code", sorted(NO_ANSWER | NO_COORDINATOR))
def test_what_passes_by_itself_is_waited_for_as_a_cluster_that_is_away(code: str) -> None:
    assert isinstance(raised("a", "h:1", "ListGroups", fault_of(code, ""), 1.0), ClusterUnreachable)
    assert fault_of(code, "").retriable


@pytest.mark.parametrize("code", sorted(LOGIN | {"CLUSTER_AUTHORIZATION_FAILED"}))
def test_what_somebody_must_grant_is_a_missing_right(code: str) -> None:
    assert isinstance(raised("a", "h:1", "ListGroups", fault_of(code, ""), 1.0), RightsMissing)


def test_a_broker_that_is_too_old_is_no_trouble_of_the_cluster() -> None:
    assert isinstance(raised("a", "h:1", "X", fault_of("UNSUPPORTED_VERSION", "no"), 1.0), NotSupported)


@pytest.mark.parametrize("said", [str(raised("a", "h:1", "X", fault_of("UNSUPPORTED_VERSION", "no"), 1.0)), "no"])
def test_a_broker_without_scram_users_is_named_once(said: str) -> None:
    assert str(too_old("a", said)).count("cluster a: ") == 1


@pytest.mark.parametrize("code", sorted(NO_ANSWER))
def test_what_was_not_answered_may_have_happened(code: str) -> None:
    assert fault_of(code, "").unknown


def test_no_other_fault_may_have_happened() -> None:
    assert not any(fault_of(code, "").unknown for code in {*OTHER_NAMES.values()} - NO_ANSWER)


def test_a_request_without_an_answer_names_the_broker_that_is_down() -> None:
    with socket.create_server(("127.0.0.1", 0)) as up:
        listens, refuses = f"127.0.0.1:{up.getsockname()[1]}", f"127.0.0.1:{free_ports(1)[0]}"
        said = str(raised("a", f"{listens},{refuses}", "ListGroups", fault_of("REQUEST_TIMED_OUT", ""), 15.0))
        assert said.endswith(f"within 15 s; {refuses} refuses connections, see why that broker is down")
        silent = str(raised("a", listens, "ListGroups", fault_of("REQUEST_TIMED_OUT", ""), 15.0))
        assert silent.endswith("is a.bootstrap.servers right, and the cluster up?")
