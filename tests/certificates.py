"""Certificates for local clusters, made on the spot: an authority of its own, and a broker's that it signed."""

from __future__ import annotations

import datetime
import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

from app.private_files import replace_file

CERTIFICATE_NAMES: Final = ("localhost",)
ADDRESSES: Final = ("127.0.0.1",)
"""What a broker's certificate is made out to."""


@dataclass(frozen=True)
class Signed:
    """A certificate with its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def pem(self) -> str:
        """The certificate alone."""
        return self.certificate.public_bytes(Encoding.PEM).decode()

    @property
    def key_pem(self) -> str:
        """The private key, not encrypted."""
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


VALID_DAYS = 30


def signed(name: str, by: Signed | None = None, *, authority: bool = False, names: Sequence[str] = ()) -> Signed:
    """Returns a certificate for `name`, self-signed unless signed `by` another. `names`: further host names and
    addresses."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.timezone.utc)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A clock that is a little behind must not find it not yet valid.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(one) for one in names]), False)
    return Signed(builder.sign(by.key if by else key, hashes.SHA256()), key)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@dataclass(frozen=True)
class Stores:
    """A broker's key store and its clients' trust store, both PKCS12 files with one password."""

    key_store: Path
    trust_store: Path
    password: str = field(repr=False)


def make_stores(folder: Path) -> Stores:
    """Create stores in `folder` for brokers at localhost. Only this user can read them."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = signed("local authority", authority=True)
    broker = signed("localhost", authority, names=(*CERTIFICATE_NAMES, *ADDRESSES))
    stores = Stores(folder / "broker.p12", folder / "trust.p12", secrets.token_hex(16))
    replace_file(stores.key_store, key_store(broker, [authority], stores.password))
    replace_file(stores.trust_store, trust_store([authority], stores.password))
    return stores


def key_store(own: Signed, chain: Sequence[Signed], password: str) -> bytes:
    """Returns a PKCS12 file with a key, its certificate and the certificates above it."""
    above = [one.certificate for one in chain]
    encryption = BestAvailableEncryption(password.encode())
    return pkcs12.serialize_key_and_certificates(b"own", own.key, own.certificate, above, encryption)


def trust_store(trusted: Sequence[Signed], password: str) -> bytes:
    """Returns a PKCS12 file of certificates that Java trusts. Java needs an attribute that other libraries do not
    write."""
    entries = [pkcs12.PKCS12Certificate(one.certificate, f"ca{i}".encode()) for i, one in enumerate(trusted)]
    return pkcs12.serialize_java_truststore(entries, BestAvailableEncryption(password.encode()))
