"""Which flows a command waits for before it deletes what several of them may want."""

from __future__ import annotations

from pathlib import Path

from app.settings import load
from app.single_pass import expected_wishes
from sinks.every_kind.wishes import LEFT_OUT
from sinks.model.changes import Change, Kind
from streaming.flow import Flow

FILE = """clusters=a,b,c
a.bootstrap.servers=h:1
b.bootstrap.servers=h:2
c.bootstrap.servers=h:3
a->b.enabled=true
c->b.enabled=true
c->b.lockstep.sync.client.quotas.enabled=true
b->c.enabled=true
"""
ACL = Change(Kind.ACL, ("TOPIC", "x", "LITERAL", "User:al", "*", "READ", "ALLOW"), "ALLOW", None)
QUOTA = Change(Kind.CLIENT_QUOTA, ("al", "\0", "\0", "producer_byte_rate"), "1.0", None)


def test_flows_into_one_target_wait_for_each_other_in_the_kinds_that_they_keep(tmp_path: Path) -> None:
    path = tmp_path / "m.properties"
    path.write_text(FILE)
    wishes = expected_wishes(load(path, environ={}))
    assert wishes.keys() == {"b", "c"}
    left, held = wishes["b"].hold(Flow("a", "b"), [ACL, QUOTA])
    assert (left, [refusal.reason for refusal in held]) == ([], ["whether c->b still wants it is not known yet"] * 2)
    left, held = wishes["b"].hold(Flow("c", "b"), [ACL, QUOTA])
    assert (left, [refusal.kind for refusal in held]) == ([QUOTA], [Kind.ACL])
    assert wishes["b"].waiting() == {Flow("a", "b"), Flow("c", "b")}
    assert wishes["c"].hold(Flow("b", "c"), [ACL]) == ([ACL], [])


def test_flow_that_is_not_asked_for_may_want_everything_and_may_have_drained_topics(tmp_path: Path) -> None:
    path = tmp_path / "m.properties"
    path.write_text(FILE)
    asked = list[str]()
    wishes = expected_wishes(load(path, ["c->b"], environ={}), read=lambda _, flow: asked.append(flow.flow.name))
    assert (wishes.keys(), asked) == ({"b"}, ["a->b"])
    left, held = wishes["b"].hold(Flow("c", "b"), [ACL, QUOTA])
    assert (left, [refusal.reason for refusal in held]) == ([], [LEFT_OUT.format("a->b")] * 2)
    assert wishes["b"].beside(Flow("c", "b")) == (frozenset(), {Flow("a", "b")})
    assert not wishes["b"].waiting()
