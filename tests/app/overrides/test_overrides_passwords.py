"""Passwords among the overrides: encoded with the file's secret, read with the old one, and never shown."""

from __future__ import annotations

import pytest

from app.credentials.encoder import EncoderSettings, PasswordEncoder
from app.overrides.with_overrides import OLD_SECRET, SECRET, override_of, reencoded, values_of
from app.settings.job_settings import Decoded, Reference
from sinks.ledger.overrides import Override
from sinks.model.changes import Key
from streaming.errors import LockstepError

PASSWORD = "t0ps3cr3t"
NAME = "lockstep.listener.webhook.secret"
NEW = {SECRET: "new-secret-of-this-test"}
OLD = {SECRET: "old-secret-of-this-test"}
BOTH = {SECRET: "new-secret-of-this-test", OLD_SECRET: "old-secret-of-this-test"}
KEY = ("flow", NAME)


def kept(properties: dict[str, str], name: str = NAME, level: str = "flow") -> dict[Key, str]:
    return {(level, name): override_of(name, PASSWORD, properties).to_text()}


def test_secret_is_kept_encoded_and_read_in_plain() -> None:
    override = override_of(NAME, PASSWORD, NEW)
    assert override.encoded
    assert PASSWORD not in override.value
    assert values_of({KEY: override.to_text()}, NEW) == {NAME: PASSWORD}


def test_what_is_no_secret_is_kept_as_it_is_without_any_encoder() -> None:
    assert override_of("topics", "orders", {}) == Override("orders")
    assert values_of({("flow", "topics"): Override("orders").to_text()}, {}) == {"topics": "orders"}


def test_custom_key_that_looks_like_a_secret_is_encoded_too() -> None:
    assert override_of("my.api.token", PASSWORD, NEW).encoded


def test_reference_to_a_secret_is_kept_as_it_is_for_each_job_looks_it_up() -> None:
    reference = "${file:/etc/hook.properties:secret}"
    kept_as_written = override_of(NAME, reference, {}, literal=True)
    assert kept_as_written == Override(reference, reference=True)
    (value,) = values_of({KEY: kept_as_written.to_text()}, {}).values()
    assert (value, type(value)) == (reference, Reference)


def test_password_that_looks_like_a_reference_is_encoded_and_never_looked_up() -> None:
    override = override_of(NAME, "${file:a:b}", NEW)
    assert override.encoded
    (value,) = values_of({KEY: override.to_text()}, NEW).values()
    assert (value, type(value)) == ("${file:a:b}", Decoded)


def test_literal_password_without_any_reference_is_encoded_too() -> None:
    assert override_of(NAME, PASSWORD, NEW, literal=True).encoded


@pytest.mark.parametrize("properties", [{}, {SECRET: ""}, {OLD_SECRET: "old-secret-of-this-test"}])
def test_secret_without_the_encoders_secret_is_refused_with_what_to_do(properties: dict[str, str]) -> None:
    with pytest.raises(LockstepError) as error:
        override_of(NAME, PASSWORD, properties)
    assert str(error.value) == (
        f"{NAME} is a secret, and is stored encoded: set password.encoder.secret in the properties file, or keep a "
        "reference such as ${file:PATH:KEY}, which each job looks up, with --literal"
    )


def test_flows_own_password_hides_one_of_all_flows_that_nobody_can_decode() -> None:
    assert values_of(kept({SECRET: "forgotten-by-everybody"}, level="") | kept(NEW), NEW) == {NAME: PASSWORD}


def test_changed_secret_decodes_with_the_old_one_and_encodes_again_for_the_new_one_alone() -> None:
    plain: dict[Key, str] = {("flow", "topics"): Override("orders").to_text()}
    stored = kept(OLD) | kept(OLD, level="") | kept(NEW, "my.password") | plain
    assert values_of(stored, BOTH) == {NAME: PASSWORD, "my.password": PASSWORD, "topics": "orders"}
    again = reencoded(stored, BOTH)
    assert again.keys() == {KEY, ("", NAME)}, "what the new secret decodes stays as it is"
    after = {**stored, **again}
    assert values_of(after, NEW) == {NAME: PASSWORD, "my.password": PASSWORD, "topics": "orders"}
    assert reencoded(after, BOTH) == {}
    with pytest.raises(LockstepError):
        values_of(after, OLD)


def test_old_secret_that_is_still_there_after_all_was_encoded_again_changes_nothing() -> None:
    assert reencoded(kept(NEW), BOTH) == {}
    assert reencoded(kept(OLD), {SECRET: "old-secret-of-this-test", OLD_SECRET: "old-secret-of-this-test"}) == {}


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({}, f"the override of {NAME} in the ledger is encoded: set password.encoder.secret as it was then"),
        (
            {SECRET: "wr0ng-for-all-of-it", OLD_SECRET: "wr0ng-too"},
            f"the override of {NAME} in the ledger was encoded with another secret: set password.encoder.old.secret to "
            "it, or write the override again",
        ),
    ],
)
def test_password_that_no_secret_decodes_is_an_error_that_names_the_key_and_shows_nothing(
    properties: dict[str, str], said: str
) -> None:
    stored = kept(OLD)
    for read in (values_of, reencoded):
        with pytest.raises(LockstepError) as error:
            read(stored, properties)
        assert str(error.value) == said


def test_damaged_password_is_an_error_that_names_the_key() -> None:
    with pytest.raises(LockstepError, match=f"the override of {NAME} in the ledger was encoded with another secret"):
        values_of({KEY: Override("salt:x", encoded=True).to_text()}, BOTH)


def test_wrong_setting_of_the_encoder_is_an_error_that_names_it() -> None:
    with pytest.raises(LockstepError, match=r"^password\.encoder\.iterations: its value is not allowed"):
        override_of(NAME, PASSWORD, {**NEW, "password.encoder.iterations": "5"})


def test_repr_shows_neither_password_nor_its_encoded_form() -> None:
    override = override_of(NAME, PASSWORD, NEW)
    assert repr(override) == "Override(encoded=True, reference=False)"


def test_password_under_another_key_than_its_own_is_not_read() -> None:
    moved = {("flow", "lockstep.metric.push.password"): kept(NEW)[KEY]}
    with pytest.raises(LockstepError, match="encoded with another secret"):
        values_of(moved, NEW)


def test_password_in_kafkas_format_is_read_and_encoded_again() -> None:
    kafkas = {**NEW, "password.encoder.cipher.algorithm": "AES/CBC/PKCS5Padding", "password.encoder.iterations": "4096"}
    before = kept(kafkas)
    assert values_of(before, NEW) == {NAME: PASSWORD}
    again = reencoded(before, NEW)
    assert values_of(again, NEW) == {NAME: PASSWORD}
    assert reencoded(again, NEW) == {}
    assert reencoded(before, kafkas) == {}


def test_short_secret_of_the_encoder_is_refused_with_what_to_do() -> None:
    with pytest.raises(LockstepError, match="at least 16 characters; a shorter one from before may stay as") as caught:
        override_of(NAME, PASSWORD, {SECRET: "short-one"})
    assert "short-one" not in str(caught.value)
    encoded = Override(PasswordEncoder(EncoderSettings("short-one")).encode(PASSWORD), encoded=True)
    assert values_of({KEY: encoded.to_text()}, {**NEW, OLD_SECRET: "short-one"}) == {NAME: PASSWORD}
