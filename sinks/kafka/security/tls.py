"""The `ssl.` settings of a Java client in librdkafka's words, and the stores that they name as PEM texts.

| Java                                               | librdkafka                                              |
|----------------------------------------------------|---------------------------------------------------------|
| `ssl.truststore.*` of any type                     | `ssl.ca.pem`; without one, the system's certificates    |
| `ssl.keystore.*` of any type, `ssl.key.password`   | `ssl.certificate.pem`, `ssl.key.pem`, decrypted         |
| `ssl.endpoint.identification.algorithm`            | the same; empty is `none`                               |
| `ssl.protocol`, `ssl.enabled.protocols`            | left out: both sides take the newest that both know     |
| what chooses among Java's own implementations      | left out                                                |
| all others, e.g. `ssl.cipher.suites`               | NoRecords, which names them                             |

| `ssl.*store.type` | read as                                                                       |
|-------------------|-------------------------------------------------------------------------------|
| JKS, PKCS12       | what the file's first bytes say it is, as Java does since 9 (its own default) |
| JCEKS             | as JKS: Java's own `keytool` turns it into PKCS12 first                       |
| PEM               | a file, or the text itself in `ssl.truststore.certificates`, `ssl.keystore.*` |

No well-kept library outside Java reads JKS and JCEKS. `keytool` gets passwords through its environment and standard
input, never on its command line. The files in between are in a folder of this user's alone. Passwords are in no error.
Source: `DefaultSslEngineFactory` (KIP-651 for PEM).
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from sinks.faults import NoRecords
from sinks.kafka.security.sasl import WHAT_NEEDS_RECORDS
from streaming.errors import LockstepError

STORES = frozenset(
    {
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.key.password",
    }
)
HOSTNAME = "ssl.endpoint.identification.algorithm"
JAVA_ALONE = frozenset(
    {
        "ssl.enabled.protocols",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    }
)


def tls_config(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns librdkafka's configuration of TLS.

    Raises LockstepError that names the Java key, NoRecords for what only Java has.
    """
    config = {HOSTNAME: _hostname(properties.get(HOSTNAME, "https"))}
    if trusted := trusted_certificates(properties):
        config["ssl.ca.pem"] = trusted
    if pair := key_pair(properties):
        config |= {"ssl.certificate.pem": pair.chain, "ssl.key.pem": pair.key}
    for name, value in properties.items():
        if name.startswith("ssl.") and value and name not in STORES | JAVA_ALONE | {HOSTNAME}:
            raise NoRecords(f"{name} has no counterpart in librdkafka. {WHAT_NEEDS_RECORDS}")
    return config


def _hostname(algorithm: str) -> str:
    if algorithm.lower() not in ("", "https"):
        raise LockstepError(f"{HOSTNAME}={algorithm} is unknown; allowed: https, or empty for no check of the name")
    return algorithm.lower() or "none"


JAVA_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""First bytes of JKS and JCEKS files."""

KEYTOOL_TIMEOUT = 60
"""Seconds that `keytool` may take; it usually takes one."""

PROMPTS = 64
"""Times that `keytool` is given the key password. It asks for it once for each key that the store's own does not
open."""


def as_pkcs12(data: bytes, password: str | None, key_password: str | None) -> tuple[bytes, str]:
    """Returns the store as PKCS12, and the password created for it.

    Without a password it returns only entries that need none. Raises ValueError for a wrong password or a damaged
    store, LockstepError if there is no keytool.
    """
    kind = "JKS" if data.startswith(JAVA_MAGIC[0]) else "JCEKS"
    secret = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        given, made = Path(folder) / "given", Path(folder) / "made.p12"
        given.write_bytes(data)
        command = [_keytool(), "-importkeystore", "-noprompt", "-srckeystore", str(given), "-srcstoretype", kind]
        command += ["-destkeystore", str(made), "-deststoretype", "PKCS12", "-deststorepass:env", "MADE"]
        if password is not None:
            command += ["-srcstorepass:env", "GIVEN"]
        answers = "\n" * (password is None) + f"{key_password or ''}\n" * PROMPTS
        environment = os.environ | {"GIVEN": password or "", "MADE": secret}
        ended = subprocess.run(
            command,
            input=answers,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=KEYTOOL_TIMEOUT,
        )
        if ended.returncode or not made.exists():
            raise ValueError("keytool cannot open it")
        return made.read_bytes(), secret


def _keytool() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("keytool", path=f"{home}/bin" if home else None) or shutil.which("keytool")
    if found is None:
        raise LockstepError(
            "a JKS store is read with Java's keytool, which is neither in JAVA_HOME nor on PATH: install Java 17, "
            "21 or 25, or convert the store to PKCS12 or PEM"
        )
    return found


STORE_TYPES = ("JKS", "JCEKS", "PKCS12", "PEM")
PEM_KEY = re.compile(r"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL)

T = TypeVar("T")
Certificates = Sequence[x509.Certificate]


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A client's certificate chain, its own certificate first, and the decrypted private key. Both are PEM."""

    chain: str
    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Store:
    """What a store file holds."""

    trusted: Certificates
    keys: Sequence[tuple[Any, Certificates]] = field(repr=False)


def trusted_certificates(properties: Mapping[str, str]) -> str | None:
    """Returns the trust store as PEM; None if there is none. Raises LockstepError that names the key."""
    inline, location = properties.get("ssl.truststore.certificates"), properties.get("ssl.truststore.location")
    if inline is None and not location:
        return None
    kind = _type(properties, "ssl.truststore", inline is not None)
    if kind == "PEM":
        name = "ssl.truststore.certificates" if inline is not None else "ssl.truststore.location"
        trusted = _pem_certificates(name, inline if inline is not None else _text("ssl.truststore", location))
    else:
        password = properties.get("ssl.truststore.password")
        # A trust store's keys stay encrypted: they are not needed.
        trusted = _java_store("ssl.truststore", str(location), password, None).trusted
    if not trusted:
        raise LockstepError(f"ssl.truststore.location: {location} holds no certificate that could be trusted")
    return _as_pem(trusted)


def key_pair(properties: Mapping[str, str]) -> KeyPair | None:
    """Returns the only key of the key store; None if there is no store. Raises LockstepError that names the key."""
    key, chain = properties.get("ssl.keystore.key"), properties.get("ssl.keystore.certificate.chain")
    location, password = properties.get("ssl.keystore.location"), properties.get("ssl.key.password")
    if (key is None) != (chain is None):
        missing = "ssl.keystore.key" if key is None else "ssl.keystore.certificate.chain"
        raise LockstepError(f"{missing} is missing: a key and its certificate chain belong together")
    if key is None and not location:
        return None
    if _type(properties, "ssl.keystore", key is not None) == "PEM":
        if key is not None and chain is not None:
            return _pem_pair("ssl.keystore.key", key, "ssl.keystore.certificate.chain", chain, password)
        text = _text("ssl.keystore", location)
        return _pem_pair("ssl.keystore.location", text, "ssl.keystore.location", text, password)
    store_password = properties.get("ssl.keystore.password")
    if store_password is None:
        raise LockstepError("ssl.keystore.password is missing: Kafka opens no key store without it, unless it is PEM")
    store = _java_store("ssl.keystore", str(location), store_password, password or store_password)
    if not store.keys:
        raise LockstepError(f"ssl.keystore.location: {location} holds no private key with a certificate")
    private, certificates = store.keys[0]
    return KeyPair(_as_pem(certificates), _key_as_pem(private))


def _type(properties: Mapping[str, str], store: str, is_inline: bool) -> str:
    kind = properties.get(f"{store}.type", "JKS").upper()
    if kind not in STORE_TYPES:
        raise LockstepError(f"{store}.type={kind} cannot be read; allowed: {', '.join(STORE_TYPES)}")
    if is_inline and kind != "PEM":
        raise LockstepError(f"{store}.type must be PEM if the properties file itself holds the certificates")
    if kind == "PEM" and properties.get(f"{store}.password"):
        raise LockstepError(f"{store}.password: a PEM store has none; its key's password is ssl.key.password")
    return kind


def _bytes(store: str, location: str | None) -> bytes:
    try:
        return Path(str(location)).read_bytes()
    except OSError as error:
        raise LockstepError(f"{store}.location: {location} cannot be read: {error.strerror}") from error


def _text(store: str, location: str | None) -> str:
    return _bytes(store, location).decode("latin-1")


def _pem_certificates(name: str, text: str) -> Certificates:
    # Kafka takes a text whose lines were joined by blanks, as they are in a properties file.
    try:
        found = x509.load_pem_x509_certificates(_with_lines(text).encode("latin-1"))
    except ValueError as error:
        raise LockstepError(f"{name} holds no PEM certificate") from error
    return found


def _with_lines(text: str) -> str:
    """Returns each PEM block with its BEGIN and END marks on lines of their own."""
    blocks = re.findall(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", text, re.DOTALL)
    return "".join(f"-----BEGIN {kind}-----\n{_body(body)}\n-----END {kind}-----\n" for kind, body in blocks)


def _body(body: str) -> str:
    # The header of an encrypted key in OpenSSL's old format holds blanks of its own, and an empty line after it.
    return body.strip() if ":" in body else "\n".join(body.split())


def _pem_pair(key_name: str, key: str, chain_name: str, chain: str, password: str | None) -> KeyPair:
    if not PEM_KEY.search(key):
        raise LockstepError(f"{key_name} holds no PEM private key")
    block = next(match[0] for match in PEM_KEY.finditer(key))
    secret = password.encode() if password else None
    private = _opened(lambda: load_pem_private_key(_with_lines(block).encode("latin-1"), secret), key_name)
    return KeyPair(_as_pem(_pem_certificates(chain_name, chain)), _key_as_pem(private))


def _opened(read: Callable[[], T], name: str, password_name: str = "ssl.key.password") -> T:
    """Returns the result of `read`. The libraries' own texts are dropped, because they may hold secrets."""
    try:
        return read()
    except (ValueError, TypeError) as error:
        kind = type(error).__name__
    raise LockstepError(f"{name}: cannot be opened ({kind}): is {password_name} missing or wrong, or the file damaged?")


def _java_store(store: str, location: str, password: str | None, key_password: str | None) -> _Store:
    data = _bytes(store, location)
    read = _java if data.startswith(JAVA_MAGIC) else _pkcs12
    name = f"{store}.location: {location}"
    return _opened(lambda: read(data, password, key_password), name, f"{store}.password")


def _pkcs12(data: bytes, password: str | None, _: str | None) -> _Store:
    found = pkcs12.load_pkcs12(data, password.encode() if password is not None else None)
    others = [one.certificate for one in found.additional_certs]
    if found.key is None or found.cert is None:
        return _Store(others + ([found.cert.certificate] if found.cert else []), [])
    chain = _chain(found.cert.certificate, others)
    return _Store([chain[0], *(one for one in others if one not in chain)], [(found.key, chain)])


def _chain(leaf: x509.Certificate, others: Iterable[x509.Certificate]) -> Certificates:
    """Returns the certificate, its issuer's certificate, and so on, as far as they are there."""
    chain, left = [leaf], [one for one in dict.fromkeys(others) if one != leaf]
    while issuer := next((one for one in left if one.subject == chain[-1].issuer), None):
        chain.append(issuer)
        left.remove(issuer)
    return chain


def _java(data: bytes, password: str | None, key_password: str | None) -> _Store:
    content, secret = as_pkcs12(data, password, key_password)
    return _pkcs12(content, secret, None)


def _as_pem(certificates: Certificates) -> str:
    return "".join(one.public_bytes(Encoding.PEM).decode() for one in certificates)


def _key_as_pem(key: Any) -> str:
    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem.decode()
