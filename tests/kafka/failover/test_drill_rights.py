"""A drill by a principal that has what `lockstep rights --failover` prints, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.local.broker import RESTRICTED
from app.local.waiting import wait_for
from app.rights.flow_rights import Right, drill_rights, failover_rights, rights_of_flow
from app.settings import load
from sinks.kafka.ports.acl_binding import AclBinding
from tests.kafka.failover.failovers import SOON, SOURCE, TARGET, Flow, properties, write_file


def granted(right: Right) -> AclBinding:
    """As an ACL."""
    user = f"User:{RESTRICTED[0]}"
    return AclBinding(right.resource_type, right.resource_name, right.pattern_type, user, "*", right.operation, "ALLOW")


def topics(flow: Flow) -> set[str]:
    return {name for cluster in (flow.a, flow.b) for name in cluster.list_topics() if "failover-drill-" in name}


@pytest.fixture
def restricted(flow: Flow, tmp_path: Path) -> Iterator[Path]:
    """The flow's file, of a principal with these rights."""
    login = {
        f"{alias}.{key}": value
        for alias, cluster in ((SOURCE, flow.clusters.a), (TARGET, flow.clusters.b))
        for key, value in cluster.client_properties(RESTRICTED).items()
    }
    # Without these, only what is for the drill lets it see its groups.
    off = {"lockstep.sync.group.offsets.enabled": "false", "sync.group.offsets.enabled": "false"}
    own = {"lockstep.checkpoint.dir": str(tmp_path), **off, **login}
    config = write_file(tmp_path, properties(flow.clusters, **own), "restricted.properties")
    (settings,) = load(config).flows
    rights = [*rights_of_flow(settings), *failover_rights(settings), *drill_rights(settings)]
    acls = {
        cluster: {granted(right) for right in rights if right.cluster == alias}
        for alias, cluster in ((SOURCE, flow.a), (TARGET, flow.b))
    }
    for cluster, wanted in acls.items():
        assert not any(cluster.acls.create(wanted).values())
    for cluster, wanted in acls.items():
        wait_for(lambda c=cluster, w=wanted: w <= set(c.acls.describe()), SOON, "the cluster to show the rights")
    yield config
    for cluster, wanted in acls.items():
        cluster.acls.delete(wanted)


def test_a_drill_needs_no_more_rights_than_are_printed(flow: Flow, restricted: Path) -> None:
    found = flow.asked("drill", "--records", "100", "--within", "300", config=restricted)
    assert (found["agrees"], found["fence_stops_this_principal"]) == (True, True)
    # A broker lists a topic for a moment after it was deleted.
    wait_for(lambda: not topics(flow), SOON, "the drill's topics to be gone")


@pytest.mark.parametrize("begin", [("--dry-run",), ()], ids=["dry run", "run"])
@pytest.mark.parametrize(("resource_type", "operation"), [("TOPIC", "CREATE"), ("GROUP", "READ"), ("CLUSTER", "ALTER")])
def test_a_drill_that_lacks_a_right_is_refused_before_it_writes_and_by_a_dry_run_as_well(
    flow: Flow, restricted: Path, resource_type: str, operation: str, begin: tuple[str, ...]
) -> None:
    user = f"User:{RESTRICTED[0]}"
    taken = [
        acl
        for acl in flow.a.acls.describe()
        if (acl.resource_type, acl.operation, acl.principal) == (resource_type, operation, user)
    ]
    assert taken
    flow.a.acls.delete(taken)
    wait_for(lambda: not set(taken) & set(flow.a.acls.describe()), SOON, "the right to be gone")
    refused = flow.run("drill", "--records", "100", *begin, config=restricted)
    assert refused.returncode == 1
    assert f"{operation} on {resource_type} " in refused.stderr
    assert f" of {SOURCE}" in refused.stderr
    assert not topics(flow)
