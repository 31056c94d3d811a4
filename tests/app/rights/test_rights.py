"""What rights the job needs, as they are granted by commands and found by asking."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from app.cli.rights_command import commands, rights
from app.rights.flow_rights import RIGHT_RULES, Right, failover_rights, rights_of_flow, rights_on_names
from app.rights.rights_check import RightFinding, RightVerdict, right_findings
from app.settings import Settings, load
from sinks.kafka.ports.acls import Allowed
from sinks.model.registry import On

PROBE = "a.lockstep-rights-probe"
PREFIX = Right("b", "TOPIC", "a.", "PREFIXED", "ALTER", "grows")
ALL = Right("a", "TOPIC", "*", "LITERAL", "DESCRIBE_CONFIGS", "sees")
LEDGER = Right("b", "TOPIC", "lockstep-ledger.a.internal", "LITERAL", "READ", "remembers")


def settings_of(folder: Path, *lines: str) -> Settings:
    """The rights of a file for a->b with these lines."""
    path = folder / "mirror.properties"
    basis = ("clusters=a,b", "a.bootstrap.servers=one:1", "b.bootstrap.servers=two:2", "a->b.enabled=true")
    path.write_text("\n".join((*basis, *lines)))
    return load(path)


def places(folder: Path, *lines: str) -> set[tuple[str, ...]]:
    """Cluster, name and operation of what is needed, optional rights left out."""
    (flow,) = settings_of(folder, *lines).flows
    return {(one.cluster, one.resource_name, one.operation) for one in rights_of_flow(flow) if not one.optional}


MM2 = {
    ("a", "mm2-offset-syncs.b.internal", "READ"),
    ("b", "heartbeats", "READ"),
    ("b", "a.heartbeats", "READ"),
    ("b", "a.checkpoints.internal", "READ"),
}
OURS = {
    ("b", f"lockstep-{what}.a.internal", operation)
    for what in ("ledger", "audit")
    for operation in ("CREATE", "READ", "WRITE")
} | {("b", "lockstep-ledger.a.internal", "DESCRIBE_CONFIGS")}
LOOKS = {("a", "*", "DESCRIBE"), ("a", "*", "DESCRIBE_CONFIGS")}
COMPARES = {("b", "a.", "DESCRIBE"), ("b", "a.", "DESCRIBE_CONFIGS")}
READS = {("a", "*", "READ"), ("b", "a.", "READ")}
NO_PREFLIGHT = "lockstep.failover.preflight.interval.seconds=0"


def test_with_topics_and_configs_the_job_needs_these_and_no_others(tmp_path: Path) -> None:
    writes = {("b", "a.", operation) for operation in ("ALTER", "ALTER_CONFIGS", "CREATE")}
    off = ("sync.topic.acls.enabled=false",)
    assert places(tmp_path, *off, NO_PREFLIGHT) == MM2 | OURS | LOOKS | COMPARES | writes


def test_a_job_that_makes_preflights_reads_the_topics_of_both_sides_and_needs_no_other_right_for_it(
    tmp_path: Path,
) -> None:
    off = ("sync.topic.acls.enabled=false",)
    assert places(tmp_path, *off) - places(tmp_path, *off, NO_PREFLIGHT) == READS


def test_without_writing_topics_and_configs_the_target_is_only_looked_at(tmp_path: Path) -> None:
    off = ("refresh.topics.enabled=false", "sync.topic.configs.enabled=false", "sync.topic.acls.enabled=false")
    assert places(tmp_path, *off, NO_PREFLIGHT) == MM2 | OURS | LOOKS | COMPARES


def test_deletions_need_their_right(tmp_path: Path) -> None:
    assert ("b", "a.", "DELETE") in places(tmp_path, "lockstep.sync.topic.deletes.enabled=true")


def test_offset_syncs_are_read_where_they_are(tmp_path: Path) -> None:
    found = places(tmp_path, "offset-syncs.topic.location=target")
    assert ("b", "mm2-offset-syncs.a.internal", "READ") in found


def test_where_names_stay_the_same_remote_topics_have_no_prefix(tmp_path: Path) -> None:
    identity = "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    assert ("b", "*", "ALTER") in places(tmp_path, identity)


def test_another_separator_makes_another_prefix(tmp_path: Path) -> None:
    assert ("b", "a_", "ALTER") in places(tmp_path, "replication.policy.separator=_")


def test_every_rule_says_why_and_when() -> None:
    assert all(rule.operations and rule.why and rule.condition for rule in RIGHT_RULES)


def test_the_commands_grant_every_right_once(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "sync.topic.acls.enabled=false")
    lines = [shlex.split(line) for line in commands(settings, "User:the job") if line and not line.startswith("#")]
    granted = [(line[2], line[i + 1]) for line in lines for i, word in enumerate(line) if word == "--operation"]
    assert len(granted) == len(rights_of_flow(settings.flows[0]))
    assert all(line[0] == "kafka-acls.sh" and "User:the job" in line for line in lines)
    assert next(line for line in lines if "a." in line)[-4:] == ["--topic", "a.", "--resource-pattern-type", "prefixed"]


def test_lockstep_rights_prints_the_commands_and_connects_to_nothing(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(rights)
    settings_of(tmp_path)
    run = CliRunner().invoke(app, ["--principal", "User:me", "--config", str(tmp_path / "mirror.properties")])
    assert run.exit_code == 0, run.output
    assert "kafka-acls.sh --bootstrap-server two:2" in run.output


@pytest.mark.parametrize(
    ("right", "allowed", "verdict", "reason"),
    [
        (
            PREFIX,
            {"a.x": frozenset({"ALTER"}), LEDGER.resource_name: frozenset[str]()},
            RightVerdict.GRANTED,
            "on 1 topic",
        ),
        (
            PREFIX,
            {"a.x": frozenset({"ALTER"}), "a.y": frozenset[str]()},
            RightVerdict.MISSING,
            "on 1 of 2 topics, e.g. a.y",
        ),
        (PREFIX, {}, RightVerdict.UNKNOWN, "DESCRIBE on it is missing"),
        (PREFIX, {"a.x": "TOPIC_AUTHORIZATION_FAILED"}, RightVerdict.UNKNOWN, "DESCRIBE on it is missing"),
        (ALL, {"x": frozenset({"DESCRIBE_CONFIGS"})}, RightVerdict.GRANTED, "on 1 topic"),
        (LEDGER, {LEDGER.resource_name: frozenset({"READ"})}, RightVerdict.GRANTED, ""),
        (LEDGER, {LEDGER.resource_name: frozenset({"WRITE"})}, RightVerdict.MISSING, ""),
        (LEDGER, {LEDGER.resource_name: "TOPIC_AUTHORIZATION_FAILED"}, RightVerdict.MISSING, "is missing"),
        (LEDGER, {LEDGER.resource_name: "UNKNOWN_TOPIC_OR_PART"}, RightVerdict.UNKNOWN, "does not exist yet"),
    ],
)
def test_a_right_is_judged_by_what_the_cluster_says_of_the_topics_it_is_about(
    right: Right, allowed: dict[str, frozenset[str] | str], verdict: RightVerdict, reason: str
) -> None:
    replicated = {right.cluster: [name for name in allowed if name != LEDGER.resource_name]}
    (found,) = right_findings([right], {right.cluster: Allowed(frozenset(), allowed)}, replicated, PROBE)
    assert found.verdict is verdict
    assert reason in found.reason


@pytest.mark.parametrize(
    ("groups", "verdict", "reason"),
    [
        ({"g": frozenset({"DESCRIBE", "READ"})}, RightVerdict.GRANTED, ""),
        ({"g": frozenset({"DESCRIBE"})}, RightVerdict.MISSING, "on 1 of 1 groups, e.g. g"),
        ({"g": "GROUP_AUTHORIZATION_FAILED"}, RightVerdict.MISSING, "is missing"),
        ({"g": "GROUP_ID_NOT_FOUND"}, RightVerdict.UNKNOWN, "the cluster shows no such group"),
    ],
)
def test_a_right_on_groups_is_judged_by_what_the_cluster_says_of_groups(
    groups: dict[str, frozenset[str] | str], verdict: RightVerdict, reason: str
) -> None:
    right = Right("b", "GROUP", "*", "LITERAL", "READ", "commits")
    (found,) = right_findings([right], {"b": Allowed(frozenset(), groups=groups)}, {"b": ()}, PROBE)
    assert found.verdict is verdict
    assert reason in found.reason


@pytest.mark.parametrize("name", [PROBE, LEDGER.resource_name])
@pytest.mark.parametrize(("may", "verdict"), [(True, RightVerdict.GRANTED), (False, RightVerdict.MISSING)])
def test_whether_topics_may_be_created_is_tried(name: str, may: bool, verdict: RightVerdict) -> None:
    pattern = ("a.", "PREFIXED") if name == PROBE else (name, "LITERAL")
    right = Right("b", "TOPIC", *pattern, "CREATE", "creates")
    assert right_findings([right], {"b": Allowed(frozenset(), {}, {name: may})}, {"b": []}, PROBE) == [
        RightFinding(right, verdict)
    ]


def test_a_right_on_the_cluster_is_what_the_cluster_lists() -> None:
    right = Right("a", "CLUSTER", "kafka-cluster", "LITERAL", "DESCRIBE", "hears", optional=True)
    assert (
        right_findings([right], {"a": Allowed(frozenset({"DESCRIBE"}))}, {"a": []}, PROBE)[0].verdict
        is RightVerdict.GRANTED
    )
    assert right_findings([right], {"a": Allowed(frozenset())}, {"a": []}, PROBE)[0].verdict is RightVerdict.MISSING


def test_groups_need_their_rights_where_they_are_synced_and_none_elsewhere(tmp_path: Path) -> None:
    on_groups = {("a", "*", "DESCRIBE"), ("b", "*", "DESCRIBE"), ("b", "*", "READ")}
    off = ("sync.topic.acls.enabled=false", NO_PREFLIGHT)
    without = places(tmp_path, *off)
    assert places(tmp_path, *off, "sync.group.offsets.enabled=true") - without == (on_groups - without) | READS


def test_records_are_read_only_where_they_are_matched(tmp_path: Path) -> None:
    lines = ("sync.group.offsets.enabled=true", "lockstep.offset.translation=conservative", NO_PREFLIGHT)
    assert ("a", "*", "READ") not in places(tmp_path, *lines)


def test_what_a_drill_needs_is_printed_with_a_failovers_rights_as_optional_and_on_its_own_names(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    extra = set(commands(settings, "User:me", failover=True)) - set(commands(settings, "User:me"))
    of_drill = [line for line in extra if "failover-drill-" in line]
    assert len(of_drill) == 4
    assert all("--resource-pattern-type prefixed" in line for line in of_drill)
    assert not any("failover-drill-" in right.resource_name for right in failover_rights(settings.flows[0]))
    (writes,) = (line for line in of_drill if "--operation Write" in line)
    assert writes.endswith("--topic failover-drill- --resource-pattern-type prefixed")


def test_what_a_drill_needs_is_asked_of_the_names_that_it_will_make(tmp_path: Path) -> None:
    (flow,) = settings_of(tmp_path).flows
    names = {On.DRILL_TOPIC: ("d",), On.DRILL_COPY: ("a.d",), On.DRILL_GROUPS: ("d-middle", "d-end")}
    asked = rights_on_names(flow, names)
    everything = frozenset({"ALTER", "DESCRIBE", "READ"})
    allowed = {
        "a": Allowed(everything, {}, {"d": False}, {"d-middle": everything, "d-end": frozenset({"DESCRIBE"})}),
        "b": Allowed(everything, {}, {}, {"d-middle": everything, "d-end": everything}),
    }
    found = right_findings(asked, allowed, {"a": [], "b": []}, PROBE)
    missing = {
        (one.right.cluster, one.right.resource_name, one.right.operation)
        for one in found
        if one.verdict is RightVerdict.MISSING
    }
    assert missing == {("a", "d", "CREATE"), ("a", "d-end", "READ")}
    unknown = {one.right.operation for one in found if one.verdict is RightVerdict.UNKNOWN}
    assert {"DELETE", "READ", "WRITE"} <= unknown
    assert ("a", "kafka-cluster", "ALTER") in {(one.cluster, one.resource_name, one.operation) for one in asked}
