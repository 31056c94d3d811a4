"""Which SCRAM users the target needs, and what is done so that it has them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sinks.faults import ItemFault, Observed
from sinks.kinds.users.rules import NOT_OURS, DesiredUsers, Iterations, desired_users, plan_users, users_of
from sinks.model.changes import Change, Key, Kind, Op, ScramSpec
from sinks.model.plan import Refusal
from sinks.model.principals import ADOPT, NamedPrincipals

ADOPTED = NamedPrincipals(ADOPT, "alice")
SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
ALICE: Key = ("alice", SHA_512)
SOURCE: Iterations = {"alice": {SHA_512: 8192}, "bob": {SHA_256: 4096, SHA_512: 4096}}

NAMES = st.sampled_from(["alice", "bob", "carol"])
USERS = st.dictionaries(
    NAMES, st.dictionaries(st.sampled_from([SHA_256, SHA_512]), st.sampled_from([4096, 8192]), min_size=1)
)
VERSIONS = st.dictionaries(NAMES, st.sampled_from(["1", "2"]))
KEYS = st.tuples(NAMES, st.sampled_from([SHA_256, SHA_512]))


def same(*users: str) -> dict[str, str]:
    return {user: user for user in users}


def wanted(versions: dict[str, str] | None = None, *users: str) -> DesiredUsers:
    return desired_users(same(*(users or ("alice",))), SOURCE, Observed(versions or {}))


def changed(before: ScramSpec | None, after: ScramSpec | None, key: Key = ALICE) -> Change:
    return Change(Kind.SCRAM_USER, key, before, after)


def test_users_are_those_of_the_principals_that_can_log_in() -> None:
    principals = {"User:alice": "User:alice-dr", "User:*": "User:*", "Group:x": "Group:x", "User:": "User:"}
    assert users_of(principals) == {"alice": "alice-dr"}


def test_a_user_that_is_missing_and_known_is_created_with_the_sources_iterations() -> None:
    assert plan_users(wanted({"alice": "1"}), {}, {}, set()) == ([changed(None, ScramSpec(8192, "1"))], [])


def test_protected_users_are_none_of_these() -> None:
    principals = {"User:alice": "User:alice", "User:mm2": "User:lockstep"}
    assert users_of(principals, NamedPrincipals(known=["User:lockstep"])) == {"alice": "alice"}


def test_both_mechanisms_go_along_and_nobody_whom_no_acl_needs() -> None:
    changes, _ = plan_users(wanted({"alice": "1", "bob": "1"}, "bob"), {}, {}, set())
    assert {change.key for change in changes} == {("bob", SHA_256), ("bob", SHA_512)}


def test_a_user_of_an_acl_without_a_credential_on_the_source_is_none_on_the_target() -> None:
    assert plan_users(wanted({"tls-user": "1"}, "tls-user"), {}, {}, set()) == ([], [])


def test_other_iterations_are_updated() -> None:
    target = {"alice": {SHA_512: 4096}}
    changes, _ = plan_users(wanted({"alice": "1"}), target, {ALICE: "1"}, set())
    assert changes == [changed(ScramSpec(4096, "1"), ScramSpec(8192, "1"))]


def test_another_version_than_the_one_written_is_updated() -> None:
    target = {"alice": {SHA_512: 8192}}
    assert plan_users(wanted({"alice": "1"}), target, {ALICE: "1"}, set()) == ([], [])
    changes, _ = plan_users(wanted({"alice": "2"}), target, {ALICE: "1"}, set())
    assert changes == [changed(ScramSpec(8192, "1"), ScramSpec(8192, "2"))]


def test_a_user_of_another_hand_is_refused_until_a_key_adopts_it_and_is_written_once() -> None:
    foreign = {"alice": {SHA_512: 8192}}
    changes, refused = plan_users(wanted({"alice": "1"}), foreign, {}, set())
    assert changes == []
    assert [(one.op, one.key, one.reason) for one in refused] == [(Op.UPDATE, ALICE, NOT_OURS)]
    changes, refused = plan_users(wanted({"alice": "1"}), foreign, {}, set(), adopted=ADOPTED)
    assert (changes, refused) == ([changed(ScramSpec(8192), ScramSpec(8192, "1"))], [])
    assert plan_users(wanted({"alice": "1"}), foreign, {ALICE: "1"}, set()) == ([], [])


def test_a_mechanism_that_a_user_of_another_hand_lacks_is_not_created_either() -> None:
    changes, refused = plan_users(wanted({"alice": "1"}), {"alice": {SHA_256: 4096}}, {}, set())
    assert changes == []
    assert [(one.op, one.reason) for one in refused] == [(Op.CREATE, NOT_OURS)]
    changes, _ = plan_users(wanted({"alice": "1"}), {"alice": {SHA_256: 4096}}, {}, {("alice", SHA_256)}, deletes=False)
    assert [change.op for change in changes] == [Op.CREATE]


def test_an_adopted_user_is_never_deleted() -> None:
    none = wanted({}, "nobody")
    assert plan_users(none, {"alice": {SHA_512: 8192}}, {ALICE: "1"}, set(), adopted=ADOPTED) == ([], [])


def test_who_is_not_known_is_refused_and_never_the_others() -> None:
    changes, refused = plan_users(wanted({"bob": "1"}, "alice", "bob"), {}, {}, set())
    assert refused == [Refusal(Kind.SCRAM_USER, Op.CREATE, ALICE, "no credential")]
    assert {change.key[0] for change in changes} == {"bob"}


def test_who_is_not_known_and_is_as_he_should_be_is_left_alone() -> None:
    assert plan_users(wanted(), {"alice": {SHA_512: 8192}}, {ALICE: "1"}, {ALICE}) == ([], [])
    assert plan_users(wanted(), {"alice": {SHA_512: 8192}}, {}, set()) == ([], [])
    _, refused = plan_users(wanted(), {"alice": {SHA_512: 4096}}, {}, {ALICE})
    assert [(one.op, one.reason) for one in refused] == [(Op.UPDATE, "no credential")]


def test_a_provider_that_fails_for_a_user_is_told_of_with_its_reason() -> None:
    fault = ItemFault("CREDENTIAL_PROVIDER", "the vault is sealed", retriable=True)
    desired = desired_users(same("alice", "bob"), SOURCE, Observed({"bob": "1"}, {"alice": fault}))
    changes, refused = plan_users(desired, {"alice": {SHA_512: 8192}}, {}, {ALICE})
    assert [(one.key, one.reason) for one in refused] == [(ALICE, str(fault))]
    assert {change.key[0] for change in changes} == {"bob"}


def test_what_lockstep_created_and_no_acl_needs_any_more_is_deleted_and_nothing_else() -> None:
    target = {"alice": {SHA_512: 8192}, "carol": {SHA_512: 4096}}
    none = wanted({}, "nobody")
    assert plan_users(none, target, {ALICE: "1"}, {ALICE})[0] == [changed(ScramSpec(8192, "1"), None)]
    assert plan_users(none, target, {}, set())[0] == []
    assert plan_users(none, target, {}, {ALICE}, deletes=False)[0] == []


def test_a_mechanism_that_the_source_gave_up_is_deleted_and_the_other_stays() -> None:
    target = {"alice": {SHA_256: 4096, SHA_512: 8192}}
    keys = {("alice", SHA_256), ALICE}
    changes, _ = plan_users(wanted({"alice": "1"}), target, dict.fromkeys(keys, "1"), keys)
    assert [(change.op, change.key) for change in changes] == [(Op.DELETE, ("alice", SHA_256))]


def test_a_user_with_another_name_on_the_target_has_the_password_of_the_sources() -> None:
    desired = desired_users({"alice": "alice-dr"}, SOURCE, Observed({"alice": "1", "alice-dr": "9"}))
    changes, _ = plan_users(desired, {}, {}, set())
    assert [(change.key, change.after) for change in changes] == [(("alice-dr", SHA_512), ScramSpec(8192, "1"))]
    assert [change.after.known_as for change in changes if isinstance(change.after, ScramSpec)] == ["alice"]


def test_two_users_that_would_become_one_are_refused_and_what_is_there_is_left() -> None:
    desired = desired_users({"alice": "x", "bob": "x"}, SOURCE, Observed({"alice": "1", "bob": "1"}))
    changes, refused = plan_users(desired, {"x": {SHA_512: 4096}}, {}, {("x", SHA_512)})
    assert changes == []
    assert {one.key for one in refused} == {("x", SHA_256), ("x", SHA_512)}
    assert all("alice and bob" in one.reason for one in refused)


@given(USERS, VERSIONS, USERS, st.dictionaries(KEYS, st.sampled_from(["1", "2"])), st.sets(KEYS))
def test_after_a_plan_is_applied_nothing_is_left_to_do(
    source: Iterations, versions: dict[str, str], target: Iterations, written: dict[Key, str], owned: set[Key]
) -> None:
    desired = desired_users(same(*source), source, Observed(versions))
    changes, refused = plan_users(desired, target, written, owned)
    after = {user: dict(mechanisms) for user, mechanisms in target.items()}
    versions_after, owned_after = dict(written), set(owned)
    for change in changes:
        user, mechanism = change.key
        if isinstance(change.after, ScramSpec):
            after.setdefault(user, {})[mechanism] = change.after.iterations
            versions_after[change.key] = change.after.version
        else:
            del after[user][mechanism]
            versions_after.pop(change.key, None)
            owned_after.discard(change.key)
    assert plan_users(desired, after, versions_after, owned_after) == ([], refused)
    kept = {refusal.key[0] for refusal in refused}
    assert all(after[user].items() >= source[user].items() for user in (source.keys() & versions.keys()) - kept)
    foreign = {(user, mechanism) for user in target for mechanism in target[user]} - owned - written.keys()
    assert all(after[user][mechanism] == target[user][mechanism] for user, mechanism in foreign)
    assert {change.key for change in changes if change.op is Op.DELETE} <= owned
