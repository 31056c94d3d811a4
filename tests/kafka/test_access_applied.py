"""ACLs and a SCRAM user on real brokers: `lockstep apply` brings them, revokes them, and the user logs in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.local.jars import PROJECT
from app.local.waiting import wait_for
from app.wiring import admin_of
from sinks.kafka.jvm.jvm_login import can_log_in
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.acl_binding import LITERAL, PREFIXED, TOPIC, AclBinding
from sinks.kafka.ports.users import Upsertion
from sinks.model.changes import ALLOW
from tests.conftest import Clusters
from tests.kafka.staging import client_of, create, write_properties

pytestmark = pytest.mark.kafka

SOON = 180.0
MECHANISM = "SCRAM-SHA-512"
PASSWORD = "a s3cret of this test"


def apply(config: Path, user: str, *options: str, code: int = 0) -> str:
    """`lockstep apply` in a process that has the user's password in its environment. What it says."""
    environment = os.environ | {f"LOCKSTEP_CREDENTIAL_{user.upper()}": PASSWORD}
    command = [sys.executable, "-m", "app.main", "apply", "--yes", *options, "--config", str(config)]
    run = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False, timeout=900
    )
    assert run.returncode == code, run.stdout + run.stderr
    assert PASSWORD not in run.stdout + run.stderr
    return run.stdout + run.stderr


def of(cluster: KafkaCluster, principal: str) -> set[AclBinding]:
    return {acl for acl in cluster.acls.describe() if acl.principal == principal}


def test_acls_and_their_user_come_over_and_go_again(clusters: Clusters, unique: str, tmp_path: Path) -> None:
    topic, principal, name = f"{unique}-orders", f"User:{unique}", f"{unique}access"
    config = write_properties(
        tmp_path,
        clusters.a,
        clusters.b,
        f"{unique}-.*",
        source=name,
        **{
            "sync.full.acl.enabled": "true",
            "lockstep.acl.principals": unique,
            "lockstep.credential.provider.class": "lockstep.credentials:EnvironmentCredentialProvider",
        },
    )
    write = AclBinding(TOPIC, topic, LITERAL, principal, "*", "WRITE", ALLOW)
    prefix = AclBinding(TOPIC, f"{unique}-", PREFIXED, principal, "*", "READ", ALLOW)
    write_there = AclBinding(TOPIC, f"{name}.{topic}", LITERAL, principal, "*", "WRITE", ALLOW)
    prefix_there = AclBinding(TOPIC, f"{name}.{unique}-", PREFIXED, principal, "*", "READ", ALLOW)
    listener = {"bootstrap.servers": clusters.b.sasl_bootstrap, "security.protocol": "SASL_PLAINTEXT"}
    with client_of(clusters.a) as a, client_of(clusters.b) as b:
        create(a, topic, 1, {})
        a.acls.create([write, prefix])
        a.users.upsert([Upsertion(unique, MECHANISM, 8192, PASSWORD)])
        wait_for(lambda: of(a, principal) == {write, prefix}, SOON, "the ACLs to be seen")
        wait_for(lambda: a.users.describe([unique]), SOON, "the user to be seen")
        apply(config, unique)
        wait_for(lambda: of(b, principal) == {write_there, prefix_there}, SOON, "the ACLs on the target")
        wait_for(lambda: b.users.describe([unique]) == {unique: {MECHANISM: 8192}}, SOON, "the user on the target")
        # A broker shows a credential a moment before it lets the user in.
        wait_for(
            lambda: can_log_in(admin_of("b", listener), unique, PASSWORD, MECHANISM) is None, SOON, "the user to log in"
        )
        assert can_log_in(admin_of("b", listener), unique, "another", MECHANISM) is not None
        a.acls.delete([write])
        wait_for(lambda: of(a, principal) == {prefix}, SOON, "the ACL to be gone")
        apply(config, unique)
        wait_for(lambda: of(b, principal) == {prefix_there}, SOON, "the ACL to be revoked")


def test_acls_that_only_the_file_stopped_naming_stay_until_somebody_forces_it(
    clusters: Clusters, unique: str, tmp_path: Path
) -> None:
    topic, principal, name = f"{unique}-orders", f"User:{unique}", f"{unique}held"
    keys = {"sync.full.acl.enabled": "true", "lockstep.acl.principals": unique}
    read = AclBinding(TOPIC, topic, LITERAL, principal, "*", "READ", ALLOW)
    there = AclBinding(TOPIC, f"{name}.{topic}", LITERAL, principal, "*", "READ", ALLOW)
    with client_of(clusters.a) as a, client_of(clusters.b) as b:
        create(a, topic, 1, {})
        a.acls.create([read])
        wait_for(lambda: of(a, principal) == {read}, SOON, "the ACL to be seen")
        config = write_properties(tmp_path, clusters.a, clusters.b, topic, source=name, **keys)
        apply(config, unique)
        wait_for(lambda: of(b, principal) == {there}, SOON, "the ACL on the target")
        config = write_properties(tmp_path, clusters.a, clusters.b, f"{unique}-ordesr", source=name, **keys)
        assert "held:" in apply(config, unique, code=3)
        assert of(b, principal) == {there}
        apply(config, unique, "--force")
        wait_for(lambda: not of(b, principal), SOON, "the ACL to be revoked")
        a.acls.delete([read])
