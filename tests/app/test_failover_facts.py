"""Which of the rights that are missing keep a preflight from counting."""

from __future__ import annotations

from pathlib import Path

from app.failover_facts import missing_of
from app.rights.failover_rights import failover_rights
from app.rights.flow_rights import rights_of_flow
from app.rights.rights_check import RightFinding, RightVerdict
from tests.app.rights.test_rights import settings_of


def test_what_a_preflight_reads_with_is_told_from_what_later_commands_need(tmp_path: Path) -> None:
    (flow,) = settings_of(tmp_path).flows
    later, reads = missing_of([RightFinding(right, RightVerdict.MISSING) for right in failover_rights(flow)])
    assert sorted(reads) == ["READ on * of a", "READ on a. of b"]
    assert "ALTER on kafka-cluster of a" in later


def test_with_the_least_rights_of_the_job_a_preflight_counts(tmp_path: Path) -> None:
    (flow,) = settings_of(tmp_path).flows
    granted = {(one.cluster, one.resource_type, one.resource_name, one.operation) for one in rights_of_flow(flow)}
    lacking = [
        right
        for right in failover_rights(flow)
        if (right.cluster, right.resource_type, right.resource_name, right.operation) not in granted
    ]
    assert missing_of([RightFinding(right, RightVerdict.MISSING) for right in lacking])[1] == []
