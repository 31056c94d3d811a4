"""A reviewed plan: what counts as one, and that it is written without a detour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from app.cli import plan_command
from app.cli.output import Output
from app.cli.plan_command import ReviewedPlan, apply, write_plan
from sinks.faults import DigestMismatch
from sinks.model.changes import Change, Kind, ScramSpec
from sinks.model.plan import Plan, make_plan
from streaming.errors import LockstepError, WrongUsage
from streaming.flow import Flow
from tests.memory.memory_acls import MemoryAcls
from tests.sinks.builders import FLOW, World, config_change, put_topic, topic_change
from tests.sinks.kinds.acls.acl_builders import acl

PLAN = make_plan(FLOW, [topic_change("a.x", None, 1)])


def reviewed(path: Path, *plans: Plan) -> ReviewedPlan:
    write_plan(path, {"flows": [plan.as_json() for plan in plans]})
    return ReviewedPlan(path)


def test_plan_that_was_reviewed_may_be_written_and_another_may_not(tmp_path: Path) -> None:
    kept = reviewed(tmp_path / "plan.json", PLAN)
    kept.check_flows([FLOW])
    kept.check(PLAN)
    with pytest.raises(DigestMismatch, match=r"is not the one reviewed .*: `lockstep plan --out FILE`$"):
        kept.check(make_plan(FLOW, [topic_change("a.x", None, 2)]))


def test_file_whose_changes_are_not_those_of_its_digest_is_refused(tmp_path: Path) -> None:
    document = PLAN.as_json() | {"digest": make_plan(FLOW, [topic_change("a.payments", 6, None)]).digest}
    write_plan(tmp_path / "plan.json", {"flows": [document]})
    with pytest.raises(WrongUsage, match="the changes of a->b do not match its digest; nothing was written"):
        ReviewedPlan(tmp_path / "plan.json")


@pytest.mark.parametrize("second", [PLAN.as_json(), {"source": "a", "target": "b", "reason": "away"}])
def test_flow_that_is_in_the_file_twice_is_refused(tmp_path: Path, second: dict[str, Any]) -> None:
    write_plan(tmp_path / "plan.json", {"flows": [PLAN.as_json(), second]})
    with pytest.raises(WrongUsage, match="it has a->b 2 times; nothing was written"):
        ReviewedPlan(tmp_path / "plan.json")


@pytest.mark.parametrize("changes", [None, 7, [7], [{}], [{"kind": "fridge"}]])
def test_file_whose_changes_are_none_is_refused(tmp_path: Path, changes: object) -> None:
    write_plan(tmp_path / "plan.json", {"flows": [PLAN.as_json() | {"changes": changes}]})
    with pytest.raises(WrongUsage, match="is not a file of `lockstep plan --out`"):
        ReviewedPlan(tmp_path / "plan.json")


def test_plan_of_every_shape_of_value_is_read_with_the_digest_that_it_was_written_with(tmp_path: Path) -> None:
    quota = Change(Kind.CLIENT_QUOTA, ("ä \u2028", "", "", "consumer_byte_rate"), None, "1e22")
    scram = Change(Kind.SCRAM_USER, ("alice", "SCRAM-SHA-256"), None, ScramSpec(4096, "f" * 8))
    offset = Change(Kind.GROUP_OFFSET, ("g", "a.x", "0"), None, 2**63 - 1)
    topic, config = topic_change("a.x", None, 1), config_change("a.x", "retention.ms", "1", None)
    plan = make_plan(FLOW, [topic, config, quota, scram, offset])
    reviewed(tmp_path / "plan.json", plan).check(plan)


def test_flow_that_was_not_reviewed_is_refused_before_anything_is_compared(tmp_path: Path) -> None:
    with pytest.raises(DigestMismatch, match="b->a: this flow is not in"):
        reviewed(tmp_path / "plan.json", PLAN).check_flows([Flow("b", "a")])


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"flows": 1}', b'{"flows": [{"source": "a"}, 7]}', b'{"flows": [{"digest": "x"}]}']
)
def test_file_that_is_no_plan_ends_apply_before_the_configuration_is_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(content)
    with pytest.raises(LockstepError, match="is not a file of `lockstep plan --out`"):
        apply(tmp_path / "no.properties", None, Output.TEXT, path, False, True)


@pytest.mark.parametrize(("name", "why"), [("nowhere.json", "No such file or directory"), ("", "Is a directory")])
def test_a_plan_that_cannot_be_read_is_said_in_our_words(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(WrongUsage) as refused:
        ReviewedPlan(tmp_path / name)
    assert str(refused.value).startswith(f"--plan {tmp_path / name} cannot be read: {why}; `lockstep plan --out`")


@pytest.mark.parametrize(("content", "why"), [(b"no", "it is not JSON"), (b"[]", "it names no flows, or no changes")])
def test_a_file_that_is_no_plan_is_said_in_our_words(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(WrongUsage) as refused:
        ReviewedPlan(tmp_path / "plan.json")
    assert str(refused.value).endswith(f"is not a file of `lockstep plan --out`: {why}")


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
    world.reviewed = True
    world.restart()
    without, forced = (world.reconcile.compare(everything=True, force=force).plan for force in (False, True))
    assert {refusal.kind for refusal in without.refused} == {Kind.ACL}
    reviewed(tmp_path / "forced", forced).check(world.reconcile.compare(everything=True, force=True).plan)
    with pytest.raises(DigestMismatch, match="make both with --force"):
        reviewed(tmp_path / "without", without).check(forced, force=True)
    with pytest.raises(DigestMismatch, match="make both with --force"):
        reviewed(tmp_path / "forced", forced).check(without)


def test_apply_that_is_interrupted_before_it_writes_says_that_nothing_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def comparing(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "mm2.properties").write_text(
        "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n"
    )
    monkeypatch.setattr(plan_command, "_plans", comparing)
    with pytest.raises(KeyboardInterrupt):
        apply(tmp_path / "mm2.properties", None, Output.TEXT, None, False, True)
    assert capsys.readouterr().err.splitlines()[-1] == "interrupted: nothing was written"
