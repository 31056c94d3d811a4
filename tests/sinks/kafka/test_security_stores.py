"""Key and trust stores of Java clients as PEM: JKS, PKCS12 and PEM, made here, and some by Java's own keytool."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from sinks.kafka.security.tls import KeyPair, key_pair, trusted_certificates
from streaming.errors import LockstepError
from tests.certificates import Signed, key_store, signed, trust_store

PASSWORD, KEY_PASSWORD = "st0re-s3cret", "k3y-s3cret"
ROOT = signed("root", authority=True)
ISSUER = signed("issuer", ROOT, authority=True)
CLIENT = signed("client", ISSUER)


def keytool(*arguments: str) -> None:
    """Runs Java's own, which Spark's Java brings."""
    subprocess.run(["keytool", *arguments], check=True, capture_output=True, timeout=300)


@cache
def jks_bytes(*trusted: Signed, key_password: str | None = None, kind: str = "JKS") -> bytes:
    """A file of JKS or JCEKS: certificates that are trusted, and the client's key if it gets a password."""
    with tempfile.TemporaryDirectory() as folder:
        store = [f"{folder}/jks", "-storetype", kind, "-storepass", PASSWORD]
        for number, one in enumerate(trusted):
            pem = Path(folder, "pem")
            pem.write_text(one.pem)
            keytool("-importcert", "-noprompt", "-alias", f"ca{number}", "-file", str(pem), "-keystore", *store)
        if key_password is not None:
            made = Path(folder, "p12")
            made.write_bytes(key_store(CLIENT, [ISSUER, ROOT], PASSWORD))
            source = ["-srckeystore", str(made), "-srcstoretype", "PKCS12", "-srcstorepass", PASSWORD]
            target = ["-deststoretype", kind, "-deststorepass", PASSWORD, "-destkeypass", key_password]
            keytool("-importkeystore", "-srcalias", "own", *source, "-destkeystore", f"{folder}/jks", *target)
        return Path(folder, "jks").read_bytes()


def names(pem: str | None) -> list[str]:
    """Whom the certificates are made out to."""
    return [one.subject.rfc4514_string() for one in x509.load_pem_x509_certificates((pem or "").encode())]


def stored(folder: Path, content: bytes | str) -> str:
    path = folder / "store"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def trust(location: str, kind: str | None, password: str | None = PASSWORD) -> str | None:
    properties = {"type": kind, "location": location, "password": password}
    return trusted_certificates({f"ssl.truststore.{name}": value for name, value in properties.items() if value})


def key(location: str, kind: str | None, password: str | None = PASSWORD, of_key: str | None = None) -> KeyPair | None:
    properties = {"store.type": kind, "store.location": location, "store.password": password, ".password": of_key}
    return key_pair({f"ssl.key{name}": value for name, value in properties.items() if value})


def is_clients(pair: KeyPair | None) -> bool:
    """Whether it is the client's key, with the whole chain in order."""
    assert pair is not None
    number = load_pem_private_key(pair.key.encode(), None)
    assert names(pair.chain) == ["CN=client", "CN=issuer", "CN=root"]
    return number.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()) == CLIENT.key.private_bytes(
        Encoding.DER, PrivateFormat.PKCS8, NoEncryption()
    )


@pytest.mark.parametrize("kind", [None, "JKS", "PKCS12", "pkcs12"])
@pytest.mark.parametrize("content", [jks_bytes(ROOT, ISSUER), trust_store([ROOT, ISSUER], PASSWORD)])
def test_a_trust_store_is_read_as_what_it_is_whichever_of_the_two_it_is_called(
    tmp_path: Path, content: bytes, kind: str | None
) -> None:
    assert sorted(names(trust(stored(tmp_path, content), kind))) == ["CN=issuer", "CN=root"]


def test_a_jks_trust_store_needs_no_password(tmp_path: Path) -> None:
    assert names(trust(stored(tmp_path, jks_bytes(ROOT)), "JKS", None)) == ["CN=root"]


def test_of_a_store_with_a_key_only_its_own_certificate_and_trusted_ones_are_trusted(tmp_path: Path) -> None:
    assert names(trust(stored(tmp_path, key_store(CLIENT, [ROOT, ISSUER], PASSWORD)), "PKCS12")) == ["CN=client"]


@pytest.mark.parametrize(
    "content", [jks_bytes(ROOT, key_password=PASSWORD), key_store(CLIENT, [ROOT, ISSUER], PASSWORD)]
)
def test_a_key_store_gives_the_key_and_its_chain_in_order(tmp_path: Path, content: bytes) -> None:
    assert is_clients(key(stored(tmp_path, content), None))


def test_a_key_of_a_jks_store_may_have_a_password_of_its_own(tmp_path: Path) -> None:
    location = stored(tmp_path, jks_bytes(key_password=KEY_PASSWORD))
    assert is_clients(key(location, "JKS", of_key=KEY_PASSWORD))
    with pytest.raises(LockstepError, match="cannot be opened"):
        key(location, "JKS")


def encrypted_pem() -> str:
    encryption = BestAvailableEncryption(KEY_PASSWORD.encode())
    return CLIENT.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


CHAIN = CLIENT.pem + ISSUER.pem + ROOT.pem


@pytest.mark.parametrize("separator", ["\n", " "])
@pytest.mark.parametrize(("pem", "password"), [(CLIENT.key_pem, None), (encrypted_pem(), KEY_PASSWORD)])
def test_a_pem_key_is_read_from_a_file_and_from_the_setting_itself_in_lines_or_in_one(
    tmp_path: Path, pem: str, password: str | None, separator: str
) -> None:
    pem, chain = (text.replace("\n", separator) for text in (pem, CHAIN))
    assert is_clients(key(stored(tmp_path, pem + chain), "PEM", None, password))
    inline = {"ssl.keystore.type": "PEM", "ssl.keystore.key": pem, "ssl.keystore.certificate.chain": chain}
    assert is_clients(key_pair(inline | ({"ssl.key.password": password} if password else {})))


def test_pem_certificates_are_read_from_a_file_and_from_the_setting_itself(tmp_path: Path) -> None:
    pem = ROOT.pem + ISSUER.pem
    assert names(trust(stored(tmp_path, pem), "PEM", None)) == ["CN=root", "CN=issuer"]
    inline = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem.replace("\n", " ")}
    assert names(trusted_certificates(inline)) == ["CN=root", "CN=issuer"]


def test_without_stores_there_is_nothing() -> None:
    assert trusted_certificates({}) is None
    assert key_pair({}) is None


@pytest.mark.parametrize("content", [jks_bytes(ROOT), trust_store([ROOT], PASSWORD), b"junk", b"\xfe\xed\xfe\xed"])
def test_a_wrong_password_or_a_damaged_file_names_the_file_and_both_causes(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(LockstepError) as error:
        trust(stored(tmp_path, content), "JKS", "wr0ng-s3cret")
    assert "ssl.truststore.location" in str(error.value)
    assert "ssl.truststore.password" in str(error.value)
    assert "s3cret" not in str(error.value)
    assert error.value.__context__ is None


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"ssl.truststore.location": "/none"}, "ssl.truststore.location: /none cannot be read: No such file"),
        ({"ssl.truststore.location": "/none", "ssl.truststore.type": "BKS"}, "ssl.truststore.type=BKS"),
        ({"ssl.truststore.certificates": "x"}, "ssl.truststore.type must be PEM"),
        ({"ssl.truststore.certificates": "x", "ssl.truststore.type": "PEM"}, "holds no PEM certificate"),
        (
            {"ssl.truststore.location": "/x", "ssl.truststore.type": "PEM", "ssl.truststore.password": "s3cret"},
            "ssl.truststore.password: a PEM store has none",
        ),
        ({"ssl.keystore.location": "/none"}, "ssl.keystore.password is missing"),
        ({"ssl.keystore.key": "s3cret"}, "ssl.keystore.certificate.chain is missing"),
        ({"ssl.keystore.certificate.chain": "x"}, "ssl.keystore.key is missing"),
        (
            {"ssl.keystore.key": "s3cret", "ssl.keystore.certificate.chain": "x", "ssl.keystore.type": "PEM"},
            "ssl.keystore.key holds no PEM private key",
        ),
    ],
)
def test_what_is_wrong_with_a_store_names_its_key_and_no_secret(properties: dict[str, str], reason: str) -> None:
    with pytest.raises(LockstepError) as error:
        trusted_certificates(properties)
        key_pair(properties)
    assert reason in str(error.value)
    assert "s3cret" not in str(error.value)


def test_a_key_store_without_a_key_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LockstepError, match="holds no private key"):
        key(stored(tmp_path, jks_bytes(ROOT)), "JKS")


def test_a_jceks_store_is_read_as_well(tmp_path: Path) -> None:
    assert is_clients(key(stored(tmp_path, jks_bytes(key_password=PASSWORD, kind="JCEKS")), "JCEKS"))


def test_without_keytool_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = jks_bytes(ROOT)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(LockstepError, match="convert the store to PKCS12 or PEM"):
        trust(stored(tmp_path, content), "JKS")


def test_no_key_is_in_the_repr(tmp_path: Path) -> None:
    assert "PRIVATE" not in repr(key(stored(tmp_path, key_store(CLIENT, [], PASSWORD)), "PKCS12"))


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_what_javas_own_keytool_makes_is_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "keytool"
    options = ["-keystore", str(path), "-storetype", kind, "-storepass", PASSWORD, "-keypass", PASSWORD]
    keytool("-genkeypair", "-keyalg", "EC", "-alias", "me", "-dname", "CN=me", *options)
    certificate = tmp_path / "root.pem"
    certificate.write_text(ROOT.pem)
    keytool("-importcert", "-noprompt", "-alias", "root", "-file", str(certificate), *options[:-2])
    pair = key(str(path), kind)
    assert pair is not None
    assert names(pair.chain) == ["CN=me"]
    assert sorted(names(trust(str(path), kind))) == ["CN=me", "CN=root"]
