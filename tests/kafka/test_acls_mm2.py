"""MM2's mode of ACLs beside a real MM2. The same ACLs on the source become the same ones on the target. What MM2 made
is Lockstep's once it is adopted."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.cli.lazy_commands import app
from app.local.local_mirror import LocalMirror, mirror_properties
from app.local.waiting import wait_for
from app.wiring import admin_of
from sinks.kafka.jvm.jvm_acls import JvmAcls
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kinds.acls.patterns import SourceTopics
from sinks.kinds.acls.rules import AclRules, desired_acls
from streaming.flow import Flow
from tests.conftest import Clusters
from tests.kafka.staging import alter, client_of, create, wait_until_shown
from tests.quick_java import QUICK_KAFKA
from tests.sinks.kinds.acls.acl_builders import source_topics

SOON = 180.0
OPERATIONS = "ALL READ WRITE CREATE DELETE ALTER DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS"
FLOW = Flow("acls-a", "acls-b")
"""Aliases that no other test has, so that on shared clusters these ACLs are known by their names."""

WORD = "mm2acls-"
"""Begins the names of these tests' topics and users."""


def of_every_sort(unique: str) -> list[AclBinding]:
    """Each operation, allowed and denied, on names and prefixes, replicated and not; some on other resources."""
    names = [
        (f"{unique}-x", "LITERAL"),
        (f"{unique}-", "PREFIXED"),
        ("*", "LITERAL"),
        (f"{unique}-x.replica", "LITERAL"),
    ]
    hosts = ["*", "10.0.0.1"]
    acls = [
        AclBinding("TOPIC", *name, f"User:{unique}", host, operation, permission)
        for name, host, operation, permission in itertools.product(names, hosts, OPERATIONS.split(), ("ALLOW", "DENY"))
    ]
    others = [("GROUP", f"{unique}-g", "READ"), ("TRANSACTIONAL_ID", f"{unique}-t", "WRITE")]
    others.append(("CLUSTER", "kafka-cluster", "CREATE"))
    acls += [AclBinding(kind, name, "LITERAL", f"User:{unique}", "*", one, "ALLOW") for kind, name, one in others]
    return acls


@pytest.fixture(scope="module")
def mirror(clusters: Clusters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalMirror]:
    """An MM2 that copies topics of these tests, their configs and ACLs every second, and little else."""
    own = {f"{name}.interval.seconds": "1" for name in ("refresh.topics", "sync.topic.acls", "sync.topic.configs")} | {
        "topics": rf"{WORD}.*, \*",
        "sync.topic.acls.enabled": "true",
        "emit.checkpoints.enabled": "false",
        "emit.heartbeats.enabled": "false",
        "heartbeats.replication.enabled": "false",
    }
    bootstraps = {FLOW.source: clusters.a.bootstrap, FLOW.target: clusters.b.bootstrap}
    folder = tmp_path_factory.mktemp("acls-mm2")
    with LocalMirror(mirror_properties(bootstraps, [FLOW.name], **own), folder, java_options=QUICK_KAFKA) as running:
        yield running


def desired(source: JvmAcls, topics: SourceTopics) -> set[AclBinding]:
    """What MM2's mode wants now."""
    return set(desired_acls(source.describe(), AclRules(), topics).wanted)


def copied(target: JvmAcls) -> set[AclBinding]:
    """What the target has of this flow."""
    return {acl for acl in target.describe() if acl.resource_name.startswith(f"{FLOW.source}.")}


@pytest.mark.usefixtures("mirror")
def test_mm2_and_our_mode_of_it_copy_the_same_acls(clusters: Clusters, unique: str) -> None:
    source, target = (JvmAcls(admin_of(one.alias, one.client_properties())) for one in (clusters.a, clusters.b))
    word = f"{WORD}{unique}"
    topics = source_topics(properties={"topics": rf"{WORD}.*, \*"}, flow=FLOW)
    assert set(source.create(of_every_sort(word)).values()) == {None}
    wait_for(lambda: len(desired(source, topics)) > 20, SOON, "the source to show its ACLs")
    wait_for(lambda: copied(target) == desired(source, topics), SOON, "MM2 to have copied the same ACLs")
    # Once it has copied one more, it has been through all the others again.
    source.create([AclBinding("TOPIC", f"{word}-last", "LITERAL", f"User:{word}", "*", "READ", "ALLOW")])
    wait_for(lambda: any("-last" in acl.resource_name for acl in copied(target)), SOON, "MM2 to copy one more")
    assert copied(target) == desired(source, topics)
    source.delete([acl for acl in source.describe() if acl.principal == f"User:{word}"])
    target.delete(copied(target))


def lockstep(folder: Path, clusters: Clusters, user: str, *words: str) -> Result:
    """A command for MM2's flow, which keeps this user's ACLs."""
    keys = {
        "clusters": f"{FLOW.source}, {FLOW.target}",
        f"{FLOW.source}.bootstrap.servers": clusters.a.bootstrap,
        f"{FLOW.target}.bootstrap.servers": clusters.b.bootstrap,
        f"{FLOW.name}.enabled": "true",
        "topics": f"{user}.*",
        "heartbeats.replication.enabled": "false",
        "sync.topic.acls.enabled": "true",
        "lockstep.acl.principals": user,
        "replication.factor": "1",
    }
    config = folder / "mirror.properties"
    config.write_text("".join(f"{name} = {value}\n" for name, value in keys.items()))
    return CliRunner().invoke(app, [*words, "--config", str(config)])


def test_what_mm2_made_is_revoked_with_the_sources_once_it_is_adopted(
    clusters: Clusters, unique: str, tmp_path: Path, mirror: LocalMirror
) -> None:
    user = f"{WORD}{unique}"
    here = [AclBinding("TOPIC", f"{user}-{name}", "LITERAL", f"User:{user}", "*", "READ", "ALLOW") for name in "xy"]
    there = [replace(one, resource_name=f"{FLOW.source}.{one.resource_name}") for one in here]
    run = partial(lockstep, tmp_path, clusters, user)
    with client_of(clusters.a) as a, client_of(clusters.b) as b:
        create(a, f"{user}-x", 1, {"retention.ms": "3600000"})
        a.acls.create(here)
        wait_until_shown(b, f"{FLOW.source}.{user}-x", 1, {"retention.ms": "3600000"})
        wait_for(lambda: set(there) <= copied(b.acls), SOON, "MM2 to have copied the ACLs")
        mirror.stop()
        shown = run("adopt", "acl", "--dry-run", "-o", "json")
        (flow,) = json.loads(shown.stdout)["flows"]
        assert (shown.exit_code, [row["key"]["resource_name"] for row in flow["changes"]]) == (
            3,
            [one.resource_name for one in there],
        )
        assert run("adopt", "acl", "--yes").exit_code == 0
        assert run("adopt", "acl", "--dry-run").exit_code == 0
        a.acls.delete(here[:1])
        alter(a, f"{user}-x", {"retention.ms": None})
        wait_for(lambda: here[0] not in a.acls.describe(), SOON, "the source's ACL to be gone")
        assert run("apply", "--yes").exit_code == 0
        wait_until_shown(b, f"{FLOW.source}.{user}-x", 1, {})
        wait_for(lambda: copied(b.acls) & set(there) == {there[1]}, SOON, "the adopted ACL to be revoked")
        assert "adopt" in run("audit", "--kind", "acl").stdout
        b.acls.delete(there)
        a.acls.delete(here)


def test_what_is_owned_by_nobody_or_holds_records_is_not_adopted_unasked(clusters: Clusters, tmp_path: Path) -> None:
    for kind, said in (("topic-config", "never owns"), ("group-offset", "never owns"), ("topic", "--with-records")):
        found = lockstep(tmp_path, clusters, "nobody", "adopt", kind)
        assert (found.exit_code, said in found.stderr) == (2, True)
