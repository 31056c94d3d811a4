"""Where passwords come from, by the class that a file names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.credentials.credential_providers import (
    MOST_BYTES,
    DirectoryCredentialProvider,
    EnvironmentCredentialProvider,
    FileCredentialProvider,
    load_provider,
    variable_of,
)
from app.credentials.store import encoder_settings, open_store
from sinks.plugins.credential_provider import Credential, known_versions
from streaming.errors import LockstepError, PluginError

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
PLUGINS = """
from sinks.plugins.credential_provider import Credential

class Vault:
    def configure(self, properties): self.prefix = properties["vault.prefix"]
    def credential(self, user): return Credential(user, self.prefix + user, "7") if user != "stranger" else None

class Forgetful:
    def version(self, user): return "1"
"""


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, str]:
    return {
        "lockstep.credential.store": str(tmp_path / "credentials"),
        "password.encoder.secret": "the secret of this test",
        "password.encoder.iterations": "1024",
    }


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_credentials.py").write_text(PLUGINS)
    monkeypatch.syspath_prepend(tmp_path)


def folder(tmp_path: Path) -> DirectoryCredentialProvider:
    provider = DirectoryCredentialProvider()
    provider.configure({"lockstep.credential.store": str(tmp_path)})
    return provider


def test_the_default_reads_the_encrypted_store_and_sees_what_changes_there(properties: dict[str, str]) -> None:
    provider = FileCredentialProvider()
    provider.configure(properties)
    assert (provider.credential("alice"), provider.version("alice")) == (None, None)
    version = open_store(properties).put({"alice": "geheim"})
    assert provider.credential("alice") == Credential("alice", "geheim", version)
    assert provider.version("alice") == version


def test_a_variable_has_a_password_and_beside_it_stands_its_version() -> None:
    environ = {"LOCKSTEP_CREDENTIAL_ALICE": "geheim", "LOCKSTEP_CREDENTIAL_BOB": ""}
    provider = EnvironmentCredentialProvider(environ)
    assert provider.credential("alice") == Credential("alice", "geheim", "1")
    assert (provider.credential("bob"), provider.version("bob"), provider.version("carol")) == (None, None, None)
    environ["LOCKSTEP_CREDENTIAL_ALICE_VERSION"] = "2"
    assert provider.version("alice") == "2"


@pytest.mark.parametrize(
    ("user", "variable"), [("alice2", "ALICE2"), ("a-b", "A_2DB"), ("Alice", "_41LICE"), ("a_version", "A_5FVERSION")]
)
def test_a_users_variable_is_his_name_in_capitals(user: str, variable: str) -> None:
    assert variable_of(user) == f"LOCKSTEP_CREDENTIAL_{variable}"


@given(NAMES, NAMES)
def test_two_users_never_share_a_variable_nor_one_the_others_version(one: str, other: str) -> None:
    assert (variable_of(one) == variable_of(other)) == (one == other)
    assert variable_of(one) != f"{variable_of(other)}_VERSION"


def test_a_file_of_a_folder_has_a_password_and_changes_its_version_when_it_changes(tmp_path: Path) -> None:
    provider, file = folder(tmp_path), tmp_path / "alice"
    file.write_text("geheim \n")
    first = provider.version("alice")
    assert provider.credential("alice") == Credential("alice", "geheim ", first or "")
    file.write_text("other")
    os.utime(file, ns=(1, 1))
    assert provider.version("alice") not in (first, None)
    assert (provider.credential("bob"), provider.version("bob")) == (None, None)


@pytest.mark.parametrize("user", ["../secret", "..", ".", "/etc/passwd", "", "a/../../secret"])
def test_no_name_of_a_user_leads_out_of_the_folder(tmp_path: Path, user: str) -> None:
    (tmp_path / "secret").write_text("not yours")
    (tmp_path / "inner").mkdir()
    assert folder(tmp_path / "inner").credential(user) is None


@given(NAMES, NAMES)
def test_two_users_never_share_a_file(one: str, other: str) -> None:
    provider = folder(Path("/"))
    assert (provider._file(one) == provider._file(other)) == (one == other)


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe"])
def test_a_file_without_a_password_is_that_users_trouble_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "alice").write_bytes(content)
    with pytest.raises(LockstepError, match="alice"):
        folder(tmp_path).credential("alice")


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LockstepError, match=r"lockstep\.credential\.store=.*is not a folder"):
        folder(tmp_path / "none")


@pytest.mark.usefixtures("plugins")
def test_a_users_class_needs_one_method_and_is_configured() -> None:
    properties = {"lockstep.credential.provider.class": "acme_credentials:Vault", "vault.prefix": "p-"}
    provider = load_provider(properties)
    assert provider.credential("alice") == Credential("alice", "p-alice", "7")
    assert known_versions(provider, ["alice", "stranger", "alice"]).items == {"alice": "7"}
    provider.close()


@pytest.mark.usefixtures("plugins")
def test_a_users_class_without_that_method_is_refused() -> None:
    with pytest.raises(PluginError, match="lacks credential of CredentialProvider"):
        load_provider({"lockstep.credential.provider.class": "acme_credentials:Forgetful"})


@pytest.mark.usefixtures("plugins")
def test_ours_go_by_their_names(properties: dict[str, str], tmp_path: Path) -> None:
    assert type(load_provider(properties)) is FileCredentialProvider
    for cls in (EnvironmentCredentialProvider, DirectoryCredentialProvider):
        named = {
            "lockstep.credential.provider.class": f"app.credentials.credential_providers:{cls.__name__}",
            "lockstep.credential.store": str(tmp_path),
        }
        assert type(load_provider(named)) is cls


def test_folder_as_kubernetes_mounts_it_has_passwords_and_nothing_else(tmp_path: Path) -> None:
    data = tmp_path / "..2026_01_01"
    data.mkdir()
    (data / "alice").write_text("geheim\n")
    (tmp_path / "..data").symlink_to(data)
    (tmp_path / "alice").symlink_to("..data/alice")
    found = folder(tmp_path).credential("alice")
    assert found is not None
    assert found.password == "geheim"
    for hidden in ("..data", "..data/alice", ".", "..", "..2026_01_01"):
        assert folder(tmp_path).credential(hidden) is None


@pytest.mark.parametrize("what", ["folder", "pipe", "link out", "too large"])
def test_what_is_no_small_file_of_the_folder_is_no_password(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, what: str
) -> None:
    alice = tmp_path / "alice"
    if what == "folder":
        alice.mkdir()
    elif what == "pipe":
        os.mkfifo(alice)
    elif what == "link out":
        outside = tmp_path_factory.mktemp("outside") / "shadow"
        outside.write_text("geheim")
        alice.symlink_to(outside)
    else:
        alice.write_text("g" * (MOST_BYTES + 1))
    with pytest.raises(LockstepError, match="does not read it as a password") as caught:
        folder(tmp_path).credential("alice")
    assert "geheim" not in str(caught.value)


def test_trouble_with_one_user_is_told_beside_the_others(tmp_path: Path) -> None:
    class Half(DirectoryCredentialProvider):
        def version(self, user: str) -> str | None:
            if user == "bob":
                raise LockstepError("the vault is sealed")
            return super().version(user)

    (tmp_path / "alice").write_text("geheim")
    provider = Half()
    provider.configure({"lockstep.credential.store": str(tmp_path)})
    seen = known_versions(provider, ["alice", "bob", "carol"])
    assert list(seen.items) == ["alice"]
    assert {user: fault.message for user, fault in seen.errors.items()} == {"bob": "the vault is sealed"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"password.encoder.secret": ""}, r"password\.encoder\.secret: its value is not allowed"),
        ({"password.encoder.iterations": "many-secret"}, r"password\.encoder\.iterations: its value is not allowed"),
        ({"password.encoder.cipher.algorithm": "DES"}, "AES/GCM/NoPadding"),
        ({"password.encoder.key.length": "64"}, "allowed: 128, 192, 256"),
        ({"password.encoder.keyfactory.algorithm": "MD5"}, r"password\.encoder\.keyfactory\.algorithm: its value"),
        ({"password.encoder.iterations": "0"}, "allowed: 1024 to 1000000"),
        ({"password.encoder.iterations": "1000001"}, "allowed: 1024 to 1000000"),
    ],
)
def test_wrong_settings_are_named_and_not_shown(properties: dict[str, str], wrong: dict[str, str], said: str) -> None:
    with pytest.raises(LockstepError, match=said) as caught:
        encoder_settings(properties | wrong)
    assert "many-secret" not in str(caught.value)


def test_a_missing_secret_says_how_to_write_it() -> None:
    with pytest.raises(LockstepError, match=r"password\.encoder\.secret is missing.*\$\{env:"):
        encoder_settings({})


def test_no_credential_shows_its_password() -> None:
    one = Credential("alice", "geheim", "1")
    assert "geheim" not in f"{one} {one!r}"
