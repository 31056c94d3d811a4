"""GSSAPI with a real KDC: MM2, commands and the job log in with a keytab, and what needs another confluent-kafka."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import confluent_kafka as rd
import pytest

from app.local.local_cluster import LocalCluster, started
from tests.kafka.kerberos import MODULE, REALM, Realm, realm
from tests.kafka.login_stage import LoginStage
from tests.kafka.staging import client_of
from tests.quick_java import QUICK_KAFKA

pytestmark = pytest.mark.endurance


@cache
def records_log_in() -> bool:
    """Whether the confluent-kafka that is installed was built with GSSAPI."""
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.kerberos.min.time.before.relogin": 0, "log_level": 0}
    try:
        rd.Producer({**settings, "sasl.mechanism": "GSSAPI", "bootstrap.servers": "127.0.0.1:1"})
    except rd.KafkaException as error:
        assert "No provider for SASL mechanism GSSAPI" in str(error)
        return False
    return True


@dataclass(frozen=True)
class Kerberized:
    """Two clusters that ask for tickets, and the realm."""

    a: LocalCluster
    b: LocalCluster
    realm: Realm
    keytab: Path

    def by_ticket(self, cluster: LocalCluster) -> dict[str, str]:
        """A client with the keytab."""
        return {
            "bootstrap.servers": cluster.sasl_bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.jaas.config": f'{MODULE} keyTab="{self.keytab}" principal="lockstep@{REALM}";',
        }

    def stage(self, topic: str, folder: Path, clients: Mapping[str, Mapping[str, str]]) -> LoginStage:
        """A flow between them."""
        return LoginStage(self.a, self.b, clients, topic, folder)


@pytest.fixture(scope="module")
def kerberized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kerberized]:
    """Both clusters and the realm for all tests here."""
    folder = tmp_path_factory.mktemp("kerberos")
    with realm(folder) as made:
        service = made.keytab("kafka/localhost")
        overrides = {
            "listener.name.sasl.sasl.enabled.mechanisms": "GSSAPI",
            "listener.name.sasl.sasl.kerberos.service.name": "kafka",
            "listener.name.sasl.gssapi.sasl.jaas.config": (
                f'{MODULE} keyTab="{service}" principal="kafka/localhost@{REALM}";'
            ),
            "super.users": "User:ANONYMOUS;User:lockstep",
        }
        options = (*QUICK_KAFKA, made.java_option)
        a, b = (
            LocalCluster(alias, folder / alias, heap="256m", java_options=options, overrides=overrides)
            for alias in "ab"
        )
        with started(a, b):
            yield Kerberized(a, b, made, made.keytab("lockstep"))


@pytest.fixture(autouse=True)
def logins_know_the_realm(kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch) -> None:
    """As operators say it, to every JVM and to librdkafka."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", kerberized.realm.java_option)
    for name in ("KRB5_CONFIG", "KRB5CCNAME"):
        monkeypatch.setenv(name, kerberized.realm.environment[name])


def test_mm2_commands_and_the_job_log_in_to_the_source_with_a_keytab(kerberized: Kerberized, tmp_path: Path) -> None:
    clients = {"a": kerberized.by_ticket(kerberized.a), "b": {"bootstrap.servers": kerberized.b.bootstrap}}
    kerberized.stage("from-kerberos", tmp_path, clients).all_log_in([kerberized.realm.java_option])


def test_mm2_commands_and_the_job_log_in_to_both_clusters_with_a_keytab(kerberized: Kerberized, tmp_path: Path) -> None:
    if not records_log_in():
        pytest.skip("the confluent-kafka that is installed was built without GSSAPI")
    clients = {cluster.alias: kerberized.by_ticket(cluster) for cluster in (kerberized.a, kerberized.b)}
    kerberized.stage("kerberos-both", tmp_path, clients).all_log_in([kerberized.realm.java_option])


def test_without_gssapi_what_needs_records_says_how_to_get_it_and_writes_nothing(
    kerberized: Kerberized, tmp_path: Path
) -> None:
    if records_log_in():
        pytest.skip("the confluent-kafka that is installed has GSSAPI")
    clients = {cluster.alias: kerberized.by_ticket(cluster) for cluster in (kerberized.a, kerberized.b)}
    stage = kerberized.stage("no-gssapi", tmp_path, clients)
    stage.write()
    with client_of(kerberized.b) as target:
        before = target.list_topics()
        for arguments in (("apply", "--yes"), ("preflight",)):
            run = stage.command(*arguments)
            said = " ".join(run.stderr.split())
            assert run.returncode == 1, said
            assert "built without GSSAPI" in said
            assert "--enable-gssapi" in said
        assert target.list_topics() == before
    assert stage.command("topics").returncode == 0
