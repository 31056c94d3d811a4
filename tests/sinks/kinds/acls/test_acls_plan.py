"""The difference of ACLs: what is created, what is deleted, and that it comes to rest."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kinds.acls.rules import AclRules, DesiredAcls, desired_acls, plan_acls
from sinks.model.changes import Op
from streaming.flow import Flow
from streaming.mm2.replication_policy import BaseReplicationPolicy
from tests.memory.memory_acls import MemoryAcls
from tests.sinks.kinds.acls.acl_builders import FULL, Behind, acl, identity, source_topics


@pytest.mark.parametrize("key", [("TOPIC", "x"), (*acl("ALLOW READ User:al TOPIC x").key[:-1], "MAYBE")])
def test_key_that_is_no_acls_is_refused(key: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="is no ACL"):
        AclBinding.from_key(key)


def test_equal_acl_of_somebody_else_is_left_and_a_surplus_one_is_deleted_only_if_it_is_ours() -> None:
    wanted, foreign, ours = (acl(f"ALLOW READ User:{name} TOPIC x") for name in ("wanted", "foreign", "ours"))
    desired = DesiredAcls({wanted})
    (change,) = plan_acls(desired, {wanted, foreign, ours}, {ours.key, ("gone",) * 7}, deletes=True)
    assert (change.op, change.key, change.before) == (Op.DELETE, ours.key, "ALLOW")
    assert plan_acls(desired, {wanted, ours}, {ours.key}, deletes=False) == []


def test_acl_that_a_cluster_in_memory_refuses_leaves_the_others_written() -> None:
    good, bad = acl("ALLOW READ User:al TOPIC x"), acl("ALLOW READ User:al TOPIC y")
    cluster = MemoryAcls("b", policy=lambda one: "not this one" if one == bad else None)
    assert {one: str(fault) for one, fault in cluster.create([good, bad]).items()} == {
        good: "None",
        bad: "POLICY_VIOLATION: not this one",
    }
    assert cluster.bindings == {good}


NAMES = st.sampled_from(["orders", "orders-x", "ord", "o", "*", "pay", "b.x", "__x", "heartbeats"])
ACLS = st.frozensets(
    st.builds(
        AclBinding,
        st.sampled_from(["TOPIC", "TOPIC", "GROUP", "TRANSACTIONAL_ID", "CLUSTER", "USER", "UNKNOWN"]),
        NAMES,
        st.sampled_from(["LITERAL", "PREFIXED"]),
        st.sampled_from(["User:al", "User:bo", "User:*", "Group:g"]),
        st.sampled_from(["*", "10.0.0.1"]),
        st.sampled_from(["ALL", "READ", "WRITE", "UNKNOWN"]),
        st.sampled_from(["ALLOW", "DENY"]),
    ),
    max_size=12,
)
POLICIES = st.sampled_from([None, identity(), Behind()])


@given(
    ACLS, ACLS, st.sets(st.integers(0, 11)), st.booleans(), POLICIES, st.sets(NAMES.filter(lambda name: name != "*"))
)
@settings(max_examples=150, deadline=None)
def test_done_plan_reaches_what_is_desired_deletes_only_what_is_ours_and_leaves_nothing_to_plan(
    source: frozenset[AclBinding],
    target: frozenset[AclBinding],
    ours: set[int],
    full: bool,
    policy: BaseReplicationPolicy | None,
    names: set[str],
) -> None:
    desired = desired_acls(source, AclRules(full=full), source_topics(*names, policy=policy))
    owned = {one.key for place, one in enumerate(sorted(target, key=lambda one: one.key)) if place in ours}
    cluster = MemoryAcls("b", set(target))
    changes = plan_acls(desired, target, owned, deletes=True)
    cluster.create([AclBinding.from_key(change.key) for change in changes if change.op is Op.CREATE])
    cluster.delete([AclBinding.from_key(change.key) for change in changes if change.op is Op.DELETE])
    assert desired.wanted <= cluster.bindings
    assert {one.key for one in target - cluster.bindings} <= owned
    assert not {one.key for one in cluster.bindings - desired.wanted} & owned - desired.withheld.keys()
    assert plan_acls(desired, cluster.bindings, owned, deletes=True) == []


@given(ACLS, ACLS)
@settings(max_examples=60, deadline=None)
def test_flows_in_both_directions_come_to_rest(left: frozenset[AclBinding], right: frozenset[AclBinding]) -> None:
    there, back = source_topics("orders", "pay", "b.x"), source_topics("x", "a.orders", "a.pay", flow=Flow("b", "a"))
    clusters = (set(left), set(right))
    sizes = []
    for _ in range(4):
        clusters[1].update(desired_acls(clusters[0], FULL, there).wanted)
        clusters[0].update(desired_acls(clusters[1], FULL, back).wanted)
        sizes.append(sum(map(len, clusters)))
    assert sizes[-1] == sizes[-2]
