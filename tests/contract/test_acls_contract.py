"""One suite for the ACLs of every cluster: Kafka's, and those in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from app.local.local_cluster import LocalCluster
from app.local.ports import free_ports
from sinks.faults import ClusterUnreachable, LockstepError, NotSupported, RightsMissing
from sinks.kafka.jvm import jvm_acls as requests
from sinks.kafka.jvm.jvm_acls import JvmAclWatch
from sinks.kafka.ports.acl_binding import CLUSTER, DELEGATION_TOKEN, LITERAL, PREFIXED, TOPIC, UNKNOWN, USER, AclBinding
from sinks.kafka.ports.acls import Acls
from tests.contract.acl_looks import broker_of, create_in_java, kafka_acls, restricted, shows
from tests.memory.memory_acls import MemoryAcls
from tests.quick_java import QUICK_KAFKA
from tests.sinks.kinds.acls.acl_builders import acl

KINDS = ["memory", pytest.param("kafka", marks=pytest.mark.kafka)]


@pytest.fixture(params=KINDS)
def acls(request: pytest.FixtureRequest) -> Acls:
    if request.param == "memory":
        return MemoryAcls("b")
    return kafka_acls({"bootstrap.servers": broker_of(request).bootstrap})


@pytest.fixture
def user(unique: str) -> str:
    """A principal that no other test has, with what a distinguished name may hold."""
    return f"User:CN={unique},OU=x y"


@pytest.fixture
def some(user: str) -> list[AclBinding]:
    """One of every sort that can be written."""
    sorts = [
        acl("ALLOW READ User:u TOPIC some"),
        acl("DENY WRITE User:u TOPIC some", "10.0.0.1"),
        acl("ALLOW ALL User:u TOPIC some…"),
        acl("ALLOW DESCRIBE_CONFIGS User:u TOPIC *"),
        acl("ALLOW READ User:u GROUP grüße"),
        acl("ALLOW WRITE User:u TRANSACTIONAL_ID some…"),
        acl("ALLOW DESCRIBE User:u CLUSTER kafka-cluster"),
    ]
    return [replace(one, principal=user) for one in sorts]


def test_what_is_created_is_described_and_what_is_deleted_is_gone(
    acls: Acls, some: list[AclBinding], user: str
) -> None:
    assert acls.create(some) == dict.fromkeys(some)
    shows(acls, user, set(some))
    assert acls.delete(some[:3]) == dict.fromkeys(some[:3])
    shows(acls, user, set(some[3:]))
    assert acls.delete(some) == dict.fromkeys(some)
    shows(acls, user, set())


def test_creating_what_is_there_and_deleting_what_is_gone_is_no_fault(
    acls: Acls, some: list[AclBinding], user: str
) -> None:
    for _ in range(2):
        assert acls.create(some) == dict.fromkeys(some)
        shows(acls, user, set(some))
    for _ in range(2):
        assert acls.delete(some) == dict.fromkeys(some)
        shows(acls, user, set())


def test_deletion_takes_exactly_the_acl_that_is_named(acls: Acls, some: list[AclBinding], user: str) -> None:
    named = replace(some[0], resource_name="some-1")
    others = {
        replace(named, resource_name="*"),
        replace(named, resource_name="some", pattern_type=PREFIXED),
        replace(named, host="10.0.0.9"),
        replace(named, operation="ALL"),
    }
    acls.create([named, *others])
    shows(acls, user, {named, *others})
    acls.delete([named])
    shows(acls, user, others)
    acls.delete(others)
    shows(acls, user, set())


def test_refused_acl_has_a_fault_of_its_own_and_the_rest_is_written(
    acls: Acls, some: list[AclBinding], user: str
) -> None:
    wrong = [
        AclBinding(CLUSTER, "no-such-name", LITERAL, user, "*", "ALTER", "ALLOW"),
        AclBinding(TOPIC, "x", LITERAL, user, "*", UNKNOWN, "ALLOW"),
    ]
    faults = acls.create([some[0], *wrong, some[1]])
    refused = [fault for one in wrong if (fault := faults[one])]
    assert [(fault.code, fault.retriable) for fault in refused] == [("INVALID_REQUEST", False)] * 2
    assert [faults[one] for one in some[:2]] == [None, None]
    shows(acls, user, set(some[:2]))
    acls.delete(some[:2])
    shows(acls, user, set())


def test_more_than_a_request_holds_is_written_in_several(
    acls: Acls, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "ACLS_IN_A_REQUEST", 3)
    many = [AclBinding(TOPIC, f"some-{number}", LITERAL, user, "*", "READ", "ALLOW") for number in range(8)]
    assert acls.create(many) == dict.fromkeys(many)
    shows(acls, user, set(many))
    assert acls.delete(many) == dict.fromkeys(many)
    shows(acls, user, set())


def test_what_was_written_is_in_the_recent_answer(acls: Acls, some: list[AclBinding], user: str) -> None:
    def recent() -> set[AclBinding]:
        return {one for one in acls.recent() if one.principal == user}

    assert recent() == set()
    acls.create(some)
    shows(acls, user, set(some))
    assert recent() == set(some)
    acls.delete(some)
    shows(acls, user, set())
    assert recent() == set()


def test_writing_nothing_asks_nothing(acls: Acls) -> None:
    assert acls.create([]) == acls.delete([]) == {}


CALLS: dict[str, Callable[[Acls], object]] = {
    "describe": lambda acls: acls.describe(),
    "create": lambda acls: acls.create([acl("ALLOW READ User:al TOPIC x")]),
    "delete": lambda acls: acls.delete([acl("ALLOW READ User:al TOPIC x")]),
}
EACH_CALL = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


@pytest.fixture(params=KINDS)
def denied(request: pytest.FixtureRequest) -> Acls:
    """Seen by a user without any right."""
    if request.param == "memory":
        return MemoryAcls("b", denied={"describe", "alter"})
    return kafka_acls(restricted(request))


@EACH_CALL
def test_missing_right_stops_the_request(denied: Acls, call: Callable[[Acls], object]) -> None:
    with pytest.raises(RightsMissing):
        call(denied)


@pytest.fixture(params=KINDS)
def unreachable(request: pytest.FixtureRequest) -> Acls:
    """Of a cluster that does not answer within a second."""
    if request.param == "memory":
        return MemoryAcls("b", reachable=False)
    (port,) = free_ports(1)
    return kafka_acls({"bootstrap.servers": f"127.0.0.1:{port}", "default.api.timeout.ms": "1000"})


@EACH_CALL
def test_unreachable_cluster_is_said_to_be_so(unreachable: Acls, call: Callable[[Acls], object]) -> None:
    with pytest.raises(ClusterUnreachable):
        call(unreachable)


@pytest.fixture(scope="module")
def without_authorizer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("without-authorizer")
    with LocalCluster("c", folder, java_options=QUICK_KAFKA, overrides={"authorizer.class.name": ""}) as cluster:
        yield cluster


@pytest.fixture(params=KINDS)
def open_to_all(request: pytest.FixtureRequest) -> Acls:
    """Of a cluster without an authorizer."""
    if request.param == "memory":
        return MemoryAcls("b", authorizer=False)
    return kafka_acls({"bootstrap.servers": request.getfixturevalue("without_authorizer").bootstrap})


@EACH_CALL
def test_cluster_without_an_authorizer_supports_no_acls(open_to_all: Acls, call: Callable[[Acls], object]) -> None:
    with pytest.raises(NotSupported, match=r"(?i)no authorizer is configured"):
        call(open_to_all)


@pytest.mark.kafka
def test_watch_tells_the_same_troubles_apart(request: pytest.FixtureRequest, without_authorizer: LocalCluster) -> None:
    troubles: tuple[tuple[dict[str, str], type[LockstepError]], ...] = (
        (restricted(request), RightsMissing),
        (without_authorizer.client_properties(), NotSupported),
    )
    for properties, error in troubles:
        with (
            closing(kafka_acls(properties)) as acls,
            pytest.raises(error, match="cluster b: DescribeAcls: "),
        ):
            JvmAclWatch(acls).changed()


@pytest.mark.kafka
def test_resources_and_operations_of_every_kind_are_seen_as_they_are(request: pytest.FixtureRequest, user: str) -> None:
    acls = kafka_acls({"bootstrap.servers": broker_of(request).bootstrap})
    create_in_java(request, USER, "User:someone", user, "CREATE_TOKENS")
    create_in_java(request, DELEGATION_TOKEN, "token", user, "DESCRIBE")
    seen = {
        AclBinding(USER, "User:someone", LITERAL, user, "*", "CREATE_TOKENS", "ALLOW"),
        AclBinding(DELEGATION_TOKEN, "token", LITERAL, user, "*", "DESCRIBE", "ALLOW"),
    }
    shows(acls, user, seen)
    assert acls.delete(seen) == dict.fromkeys(seen)
    shows(acls, user, set())


def test_acl_that_is_unknown_in_part_is_not_written(acls: Acls, user: str) -> None:
    unknown = AclBinding(UNKNOWN, "x", LITERAL, user, "*", "READ", "ALLOW")
    (fault,) = acls.create([unknown]).values()
    assert fault is not None
    assert fault.code == "INVALID_REQUEST"
