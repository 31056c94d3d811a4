"""Certificates of local clusters: whom they name, who can read their keys."""

from __future__ import annotations

import stat
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12

from app.private_files import replace_file
from tests.certificates import make_stores, signed


def test_a_brokers_certificate_names_localhost_and_its_address_and_is_signed_by_the_authority(tmp_path: Path) -> None:
    stores = make_stores(tmp_path)
    own = pkcs12.load_pkcs12(stores.key_store.read_bytes(), stores.password.encode())
    trusted = pkcs12.load_pkcs12(stores.trust_store.read_bytes(), stores.password.encode())
    assert own.cert is not None
    own.cert.certificate.verify_directly_issued_by(trusted.additional_certs[0].certificate)
    names = own.cert.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


def test_only_this_user_can_read_the_stores_and_no_repr_shows_the_password(tmp_path: Path) -> None:
    stores = make_stores(tmp_path)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    assert stores.password not in repr(stores)


def test_a_private_file_that_was_open_to_others_is_so_no_more(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    replace_file(path, b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o600)


def test_no_private_key_is_in_the_repr() -> None:
    assert "key" not in repr(signed("me"))
