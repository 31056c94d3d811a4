"""Each login of Java's clients, on real brokers at both ends: the same file for MM2, for commands and for the job."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.local.broker import ADMIN
from app.local.local_cluster import started
from app.private_files import replace_file
from tests.certificates import key_store, signed, trust_store
from tests.kafka.handler_jar import FILE_OPTION, HANDLER, handler_jar
from tests.kafka.login_stage import LoginStage
from tests.kafka.secured import make_user
from tests.kafka.secured_cluster import PROTOCOLS, SecuredCluster, protocol_map
from tests.kafka.staging import client_of
from tests.kafka.tokens import ALLOWED, CLIENT, LISTENER, LOGIN, SCOPE, SECRET, token, token_endpoint
from tests.quick_java import QUICK_KAFKA

PASSWORD = "cl1ent-s3cret"
AUTHORITY = signed("authority of the clients", authority=True)
LOCKSTEP = signed("lockstep", AUTHORITY)
SCRAM_USER = ("lockstep", PASSWORD)

Properties = dict[str, str]


@dataclass(frozen=True)
class Guarded:
    """Two clusters that take passwords and tokens at one listener, certificates at another; where tokens come from."""

    a: SecuredCluster
    b: SecuredCluster
    url: str

    def by_password(self, cluster: SecuredCluster, user: tuple[str, str], mechanism: str) -> Properties:
        """A client of the listener with SASL."""
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        jaas = f'org.apache.kafka.common.security.{module} required username="{user[0]}" password="{user[1]}";'
        return self.by_login(cluster, mechanism, jaas)

    def by_login(self, cluster: SecuredCluster, mechanism: str, jaas: str) -> Properties:
        """The same, with any mechanism."""
        return {
            "bootstrap.servers": cluster.sasl_bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": jaas,
        }

    def by_token(self, cluster: SecuredCluster, secret: str = SECRET) -> Properties:
        """With client credentials."""
        jaas = f'{LOGIN} clientId="{CLIENT}" clientSecret="{secret}" scope="{SCOPE}";'
        return {
            **self.by_login(cluster, "OAUTHBEARER", jaas),
            "sasl.oauthbearer.token.endpoint.url": self.url,
            "sasl.login.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
            ),
        }

    def by_certificate(self, cluster: SecuredCluster, store: Properties) -> Properties:
        """A client of the listener with TLS; `store`: the settings of its key store."""
        secured = cluster.secured_properties(("", ""))
        shared = {name: value for name, value in secured.items() if not name.startswith("sasl.")}
        return shared | {"security.protocol": "SSL"} | {f"ssl.keystore.{name}": value for name, value in store.items()}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """Both clusters for all tests here."""
    folder = tmp_path_factory.mktemp("logins")
    store = folder / "clients.p12"
    replace_file(store, trust_store([AUTHORITY], PASSWORD))
    with token_endpoint() as url:
        overrides = {
            **LISTENER,
            "sasl.oauthbearer.jwks.endpoint.url": url,
            "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.security.protocol.map": protocol_map(PROTOCOLS | {"SECURED": "SSL"}),
            "listener.name.secured.ssl.client.auth": "required",
            "listener.name.secured.ssl.truststore.type": "PKCS12",
            "listener.name.secured.ssl.truststore.location": str(store),
            "listener.name.secured.ssl.truststore.password": PASSWORD,
            "super.users": "User:ANONYMOUS;User:admin;User:lockstep;User:CN=lockstep",
        }
        a, b = (
            SecuredCluster(
                alias,
                folder / alias,
                java_options=(*QUICK_KAFKA, f"{ALLOWED}{url}"),
                overrides=overrides,
            )
            for alias in "ab"
        )
        with started(a, b):
            for cluster in (a, b):
                make_user(cluster, SCRAM_USER)
            yield Guarded(a, b, url)


def plain(guarded: Guarded, cluster: SecuredCluster, _: Path) -> Properties:
    return guarded.by_password(cluster, ADMIN, "PLAIN")


def scram(guarded: Guarded, cluster: SecuredCluster, _: Path) -> Properties:
    return guarded.by_password(cluster, SCRAM_USER, "SCRAM-SHA-512")


def client_credentials(guarded: Guarded, cluster: SecuredCluster, _: Path) -> Properties:
    return guarded.by_token(cluster)


def pem(guarded: Guarded, cluster: SecuredCluster, folder: Path) -> Properties:
    path = folder / "client.pem"
    replace_file(path, (LOCKSTEP.key_pem + LOCKSTEP.pem + AUTHORITY.pem).encode())
    return guarded.by_certificate(cluster, {"type": "PEM", "location": str(path)})


def pkcs12(guarded: Guarded, cluster: SecuredCluster, folder: Path) -> Properties:
    path = folder / "client.p12"
    replace_file(path, key_store(LOCKSTEP, [AUTHORITY], PASSWORD))
    return guarded.by_certificate(cluster, {"type": "PKCS12", "location": str(path), "password": PASSWORD})


def jks(guarded: Guarded, cluster: SecuredCluster, folder: Path) -> Properties:
    made, path = folder / "made.p12", folder / f"{cluster.alias}.jks"
    replace_file(made, key_store(LOCKSTEP, [AUTHORITY], PASSWORD))
    source = ["-srckeystore", str(made), "-srcstoretype", "PKCS12", "-srcstorepass", PASSWORD]
    target = ["-destkeystore", str(path), "-deststoretype", "JKS", "-deststorepass", PASSWORD]
    subprocess.run(["keytool", "-importkeystore", "-noprompt", *source, *target], check=True, capture_output=True)
    return guarded.by_certificate(cluster, {"type": "JKS", "location": str(path), "password": PASSWORD})


Login = Callable[[Guarded, SecuredCluster, Path], Properties]


@pytest.mark.endurance
@pytest.mark.parametrize("login", [plain, scram, client_credentials, pem, pkcs12, jks])
def test_mm2_commands_and_the_job_log_in_with_the_same_settings(guarded: Guarded, tmp_path: Path, login: Login) -> None:
    clients = {cluster.alias: login(guarded, cluster, tmp_path) for cluster in (guarded.a, guarded.b)}
    name = f"orders-{login.__name__}".replace("_", "-")
    stage = LoginStage(guarded.a, guarded.b, clients, name, tmp_path)
    stage.all_log_in([f"{ALLOWED}{guarded.url}"])


@pytest.mark.endurance
def test_commands_and_the_job_log_in_by_a_handler_class_of_a_jar(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_JARS", str(handler_jar(tmp_path)))
    (tmp_path / "token").write_text(token())
    jaas = f'{LOGIN} {FILE_OPTION}="{tmp_path / "token"}";'
    own = {"sasl.login.callback.handler.class": HANDLER}
    clients = {
        cluster.alias: guarded.by_login(cluster, "OAUTHBEARER", jaas) | own for cluster in (guarded.a, guarded.b)
    }
    stage = LoginStage(guarded.a, guarded.b, clients, "orders-handler", tmp_path)
    mirror = {cluster.alias: guarded.by_token(cluster) for cluster in (guarded.a, guarded.b)}
    stage.all_log_in([f"{ALLOWED}{guarded.url}"], mirror)


SECRETS = (PASSWORD, SECRET, "wr0ng")


def wrong_password(guarded: Guarded, cluster: SecuredCluster, _: Path) -> Properties:
    return guarded.by_password(cluster, ("lockstep", "wr0ng"), "SCRAM-SHA-512")


def wrong_client_secret(guarded: Guarded, cluster: SecuredCluster, _: Path) -> Properties:
    return guarded.by_token(cluster, "wr0ng")


def no_token_endpoint(guarded: Guarded, cluster: SecuredCluster, folder: Path) -> Properties:
    properties = client_credentials(guarded, cluster, folder)
    del properties["sasl.oauthbearer.token.endpoint.url"]
    return properties


def no_such_handler(guarded: Guarded, cluster: SecuredCluster, folder: Path) -> Properties:
    return client_credentials(guarded, cluster, folder) | {"sasl.login.callback.handler.class": "acme.Missing"}


def no_such_store(guarded: Guarded, cluster: SecuredCluster, folder: Path) -> Properties:
    store = {"type": "PKCS12", "location": str(folder / "none.p12"), "password": PASSWORD}
    return guarded.by_certificate(cluster, store)


def store_with_another_password(guarded: Guarded, cluster: SecuredCluster, folder: Path) -> Properties:
    return pkcs12(guarded, cluster, folder) | {"ssl.keystore.password": "wr0ng"}


def store_that_is_none(guarded: Guarded, cluster: SecuredCluster, folder: Path) -> Properties:
    (folder / "none.jks").write_bytes(b"no store at all")
    store = {"type": "JKS", "location": str(folder / "none.jks"), "password": PASSWORD}
    return guarded.by_certificate(cluster, store)


@pytest.mark.parametrize("alias", ["a", "b"])
@pytest.mark.parametrize(
    ("login", "reason"),
    [
        (wrong_password, "SASL_AUTHENTICATION_FAILED"),
        (wrong_client_secret, "the login failed. Check the user, secret or keytab in"),
        (no_token_endpoint, "; check sasl.oauthbearer.token.endpoint.url, as `"),
        (no_such_handler, "Java finds no class acme.Missing"),
        (no_such_store, "none.p12 cannot be read: No such file or directory"),
        (store_with_another_password, "is ssl.keystore.password missing or wrong"),
        (store_that_is_none, "is ssl.keystore.password missing or wrong, or the file damaged"),
    ],
)
def test_login_that_cannot_succeed_is_told_by_the_cluster_and_the_setting_and_nothing_is_written(
    guarded: Guarded, tmp_path: Path, login: Login, reason: str, alias: str
) -> None:
    clients = {cluster.alias: {"bootstrap.servers": cluster.bootstrap} for cluster in (guarded.a, guarded.b)}
    cluster = guarded.a if alias == "a" else guarded.b
    clients[alias] = login(guarded, cluster, tmp_path)
    stage = LoginStage(guarded.a, guarded.b, clients, "orders-never", tmp_path)
    stage.write()
    with client_of(guarded.b) as target:
        before = target.list_topics()
        run = stage.command("apply", "--yes")
        said = " ".join(run.stderr.split())
        assert run.returncode == 1, said
        assert f"cluster {alias}: " in said
        assert reason in said, said
        assert not [secret for secret in SECRETS if secret in said]
        assert "Traceback" not in said
        assert target.list_topics() == before
