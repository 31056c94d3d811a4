"""A drill by a principal that has what `lockstep rights --failover` prints, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.local.broker import RESTRICTED
from app.rights.failover_rights import drill_rights, failover_rights
from app.rights.flow_rights import Right, rights_of_flow
from app.settings import load
from sinks.kafka.ports.acl_binding import AclBinding
from tests.kafka.failover.failovers import SOURCE, TARGET, Flow, properties, write_file


def granted(right: Right) -> AclBinding:
    """As an ACL."""
    user = f"User:{RESTRICTED[0]}"
    return AclBinding(right.resource_type, right.resource_name, right.pattern_type, user, "*", right.operation, "ALLOW")


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
    yield config
    for cluster, wanted in acls.items():
        cluster.acls.delete(wanted)


def test_a_drill_needs_no_more_rights_than_are_printed(flow: Flow, restricted: Path) -> None:
    found = flow.asked("drill", "--records", "100", "--within", "60", config=restricted)
    assert (found["agrees"], found["fence_stops_this_principal"]) == (True, True)
    assert found["topic"] not in flow.a.list_topics()
