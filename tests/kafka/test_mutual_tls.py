"""A listener that asks for the client's certificate, by a real broker: key stores of every type, librdkafka and JVM."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from app.private_files import replace_file
from app.wiring import admin_of, open_cluster
from sinks.faults import ClusterUnreachable, RightsMissing
from sinks.kafka.jvm.jvm_levels import JvmLevels
from tests.certificates import Signed, key_store, signed, trust_store
from tests.kafka.secured_cluster import PROTOCOLS, SecuredCluster, protocol_map
from tests.quick_java import QUICK_KAFKA

PASSWORD = "cl1ent-s3cret"
AUTHORITY = signed("authority of the clients", authority=True)
CLIENT = signed("lockstep", AUTHORITY)
STRANGER = signed("lockstep")
NOBODY = ("", "")

Settings = dict[str, str]


def listener(folder: Path) -> dict[str, str]:
    """The listener with TLS takes clients by their certificates, without a login."""
    store = folder / "clients.p12"
    replace_file(store, trust_store([AUTHORITY], PASSWORD))
    prefix = "listener.name.secured.ssl."
    return {
        "listener.security.protocol.map": protocol_map(PROTOCOLS | {"SECURED": "SSL"}),
        f"{prefix}client.auth": "required",
        f"{prefix}truststore.type": "PKCS12",
        f"{prefix}truststore.location": str(store),
        f"{prefix}truststore.password": PASSWORD,
        # The session of a client is told by its certificate: only this one may ask for the cluster's brokers.
        "super.users": "User:ANONYMOUS;User:CN=lockstep",
    }


@dataclass(frozen=True)
class Guarded:
    """A cluster whose clients show certificates, and a folder for theirs."""

    cluster: SecuredCluster
    folder: Path

    def properties(self, own: Settings) -> Settings:
        """A client's settings; `own`: the settings of its key store."""
        secured = self.cluster.secured_properties(NOBODY)
        shared = {name: value for name, value in secured.items() if not name.startswith("sasl.")}
        return shared | {"security.protocol": "SSL"} | {f"ssl.{name}": value for name, value in own.items()}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """One broker for all tests here."""
    folder = tmp_path_factory.mktemp("mutual")
    overrides = listener(folder)
    with SecuredCluster("m", folder / "m", java_options=QUICK_KAFKA, overrides=overrides) as cluster:
        yield Guarded(cluster, folder)


def pkcs12(folder: Path, own: Signed = CLIENT) -> Settings:
    path = folder / "client.p12"
    replace_file(path, key_store(own, [AUTHORITY], PASSWORD))
    return {"keystore.type": "PKCS12", "keystore.location": str(path), "keystore.password": PASSWORD}


def jks(folder: Path) -> Settings:
    """Made by Java's own keytool."""
    path, made = folder / "client.jks", pkcs12(folder)["keystore.location"]
    source = ["-srckeystore", made, "-srcstoretype", "PKCS12", "-srcstorepass", PASSWORD]
    target = ["-destkeystore", str(path), "-deststoretype", "JKS", "-deststorepass", PASSWORD]
    command = ["keytool", "-importkeystore", "-noprompt", *source, *target]
    subprocess.run(command, check=True, capture_output=True, timeout=900)
    return {"keystore.type": "JKS", "keystore.location": str(path), "keystore.password": PASSWORD}


def pem_file(folder: Path) -> Settings:
    path = folder / "client.pem"
    replace_file(path, (CLIENT.key_pem + CLIENT.pem + AUTHORITY.pem).encode())
    return {"keystore.type": "PEM", "keystore.location": str(path)}


def pem_inline(_: Path) -> Settings:
    chain = CLIENT.pem + AUTHORITY.pem
    return {"keystore.type": "PEM", "keystore.key": CLIENT.key_pem, "keystore.certificate.chain": chain}


STORES = pytest.mark.parametrize("store", [pkcs12, jks, pem_file, pem_inline])


@STORES
def test_librdkafka_gets_in_with_a_key_store_of_every_type(
    guarded: Guarded, tmp_path: Path, store: Callable[[Path], Settings]
) -> None:
    with closing(open_cluster("m", guarded.properties(store(tmp_path)))) as client:
        assert len(client.cluster_id()) > 0
        assert client.list_topics() == {}


@STORES
def test_the_jvms_admin_gets_in_with_a_key_store_of_every_type(
    guarded: Guarded, spark: SparkSession, tmp_path: Path, store: Callable[[Path], Settings]
) -> None:
    properties = guarded.properties(store(tmp_path))
    with closing(admin_of("m", properties)) as admin:
        assert JvmLevels(admin).brokers() == ["1"]


def without(_: Path) -> Settings:
    return {}


def strangers(folder: Path) -> Settings:
    return pkcs12(folder, STRANGER)


@pytest.mark.parametrize("store", [without, strangers])
def test_without_a_key_that_the_broker_trusts_librdkafka_says_why(
    guarded: Guarded, tmp_path: Path, store: Callable[[Path], Settings]
) -> None:
    with closing(open_cluster("m", guarded.properties(store(tmp_path)))) as client, pytest.raises(RightsMissing) as e:
        client.ping()
    assert str(e.value).startswith("cluster m: ")
    assert PASSWORD not in str(e.value)


@pytest.mark.parametrize("store", [without, strangers])
def test_without_a_key_that_the_broker_trusts_the_jvms_admin_says_why(
    guarded: Guarded, spark: SparkSession, tmp_path: Path, store: Callable[[Path], Settings]
) -> None:
    properties = guarded.properties(store(tmp_path))
    with closing(admin_of("m", properties)) as admin, pytest.raises((RightsMissing, ClusterUnreachable)) as e:
        JvmLevels(admin).brokers()
    assert str(e.value).startswith("cluster m: ")
    assert PASSWORD not in str(e.value)
