"""A reviewed plan: what counts as one, and that it is written without a detour."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from app.cli.output import Output
from app.cli.plan_command import apply
from app.cli.plan_file import ReviewedPlan, write_plan
from sinks.engine.model import Kind
from sinks.engine.plan import Plan, make_plan
from sinks.faults import DigestMismatch
from sinks.kafka.memory.memory_acls import MemoryAcls
from streaming.errors import LockstepError, WrongUsage
from streaming.flow import Flow
from tests.sinks.builders import FLOW, World, put_topic, topic_change
from tests.sinks.kinds.acls.acl_builders import acl

PLAN = make_plan(FLOW, [topic_change("a.x", None, 1)])


def reviewed(path: Path, *plans: Plan) -> ReviewedPlan:
    write_plan(path, {"flows": [plan.as_json() for plan in plans]})
    return ReviewedPlan(path)


def test_plan_that_was_reviewed_may_be_written_and_another_may_not(tmp_path: Path) -> None:
    kept = reviewed(tmp_path / "plan.json", PLAN)
    kept.check_flows([FLOW])
    kept.check(PLAN)
    with pytest.raises(DigestMismatch, match="is not the one reviewed"):
        kept.check(make_plan(FLOW, [topic_change("a.x", None, 2)]))


def test_flow_that_was_not_reviewed_is_refused_before_anything_is_compared(tmp_path: Path) -> None:
    with pytest.raises(DigestMismatch, match="b->a: this flow is not in"):
        reviewed(tmp_path / "plan.json", PLAN).check_flows([Flow("b", "a")])


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"flows": 1}', b'{"flows": [{"source": "a"}, 7]}', b'{"flows": [{"digest": "x"}]}']
)
def test_file_that_is_no_plan_ends_apply_before_the_configuration_is_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(LockstepError, match="no plan that `lockstep plan --out` wrote"):
        apply(tmp_path / "no.properties", None, Output.TEXT, path, False, True)


@pytest.mark.parametrize(("name", "why"), [("nowhere.json", "No such file or directory"), ("", "Is a directory")])
def test_a_plan_that_cannot_be_read_is_said_in_our_words(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(WrongUsage) as refused:
        ReviewedPlan(tmp_path / name)
    assert str(refused.value).startswith(f"--plan {tmp_path / name} cannot be read: {why}; `lockstep plan --out`")


@pytest.mark.parametrize(("content", "why"), [(b"no", "it is no JSON"), (b"[]", "it does not say of which flows")])
def test_a_file_that_is_no_plan_is_said_in_our_words(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(WrongUsage) as refused:
        ReviewedPlan(tmp_path / "plan.json")
    assert str(refused.value).endswith(f"no plan that `lockstep plan --out` wrote: {why}")


def test_plan_is_written_to_the_file_itself_whatever_links_lie_beside_it(tmp_path: Path) -> None:
    victim, path = tmp_path / "victim", tmp_path / "plan.json"
    victim.write_text("precious")
    (tmp_path / "plan.json.part").symlink_to(victim)
    path.symlink_to(victim)
    write_plan(path, {"flows": []})
    assert (victim.read_text(), orjson.loads(path.read_bytes())) == ("precious", {"flows": []})
    assert not path.is_symlink()


def test_plan_beyond_the_deletion_limit_is_that_of_apply_only_where_both_lift_the_limit(tmp_path: Path) -> None:
    texts = [f"ALLOW READ User:u{number} TOPIC x" for number in range(8)]
    world = World(source_acls=MemoryAcls("a", {acl(text) for text in texts}))
    put_topic(world.source, "x")
    world.settle()
    world.source_acls.bindings = {acl(texts[0])}
    without, forced = (world.reconcile.compare(everything=True, force=force).plan for force in (False, True))
    assert {refusal.kind for refusal in without.refused} == {Kind.ACL}
    reviewed(tmp_path / "forced", forced).check(world.reconcile.compare(everything=True, force=True).plan)
    with pytest.raises(DigestMismatch, match="make both with --force"):
        reviewed(tmp_path / "without", without).check(forced)
