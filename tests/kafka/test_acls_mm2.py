"""MM2's mode of ACLs beside a real MM2: the same ACLs on the source become the same ones on the target."""

from __future__ import annotations

import itertools
from pathlib import Path

from app.local.java import QUICK_START
from app.local.local_mirror import LocalMirror, mirror_properties
from app.local.waiting import wait_for
from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.rd_acls import KafkaAcls
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kinds.acls.patterns import SourceTopics
from sinks.kinds.acls.rules import AclRules, desired_acls
from streaming.flow import Flow
from tests.conftest import Clusters
from tests.sinks.kinds.acls.acl_builders import source_topics

SOON = 60.0
OPERATIONS = "ALL READ WRITE CREATE DELETE ALTER DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS"
FLOW = Flow("acls-a", "acls-b")
"""Aliases that no other test has, so that on shared clusters these ACLs are known by their names."""


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


def mirror(clusters: Clusters, topics: str, folder: Path) -> LocalMirror:
    """An MM2 that copies ACLs every second and little else."""
    own = {
        "topics": topics,
        "sync.topic.acls.enabled": "true",
        "sync.topic.acls.interval.seconds": "1",
        "sync.topic.configs.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "emit.heartbeats.enabled": "false",
        "heartbeats.replication.enabled": "false",
    }
    bootstraps = {FLOW.source: clusters.a.bootstrap, FLOW.target: clusters.b.bootstrap}
    return LocalMirror(mirror_properties(bootstraps, [FLOW.name], **own), folder, java_options=QUICK_START)


def desired(source: KafkaAcls, topics: SourceTopics) -> set[AclBinding]:
    """What MM2's mode wants now."""
    return set(desired_acls(source.describe(), AclRules(), topics).wanted)


def copied(target: KafkaAcls) -> set[AclBinding]:
    """What the target has of this flow."""
    return {acl for acl in target.describe() if acl.resource_name.startswith(f"{FLOW.source}.")}


def test_mm2_and_our_mode_of_it_copy_the_same_acls(clusters: Clusters, unique: str, tmp_path: Path) -> None:
    source, target = (KafkaAcls(Admin(one.alias, one.client_properties())) for one in (clusters.a, clusters.b))
    filter_of_both = rf"{unique}-.*, \*"
    topics = source_topics(properties={"topics": filter_of_both}, flow=FLOW)
    assert set(source.create(of_every_sort(unique)).values()) == {None}
    wait_for(lambda: len(desired(source, topics)) > 20, SOON, "the source to show its ACLs")
    with mirror(clusters, filter_of_both, tmp_path):
        wait_for(lambda: copied(target) == desired(source, topics), SOON, "MM2 to have copied the same ACLs")
        # Once it has copied one more, it has been through all the others again.
        source.create([AclBinding("TOPIC", f"{unique}-last", "LITERAL", f"User:{unique}", "*", "READ", "ALLOW")])
        wait_for(lambda: any("-last" in acl.resource_name for acl in copied(target)), SOON, "MM2 to copy one more")
        assert copied(target) == desired(source, topics)
    source.delete([acl for acl in source.describe() if acl.principal == f"User:{unique}"])
    target.delete(copied(target))
