"""Passwords encrypted in the format of Kafka's brokers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.credentials.encoder import CIPHERS, KEY_FACTORIES, EncoderSettings, PasswordEncoder, UndecodablePassword

QUICK = EncoderSettings("the secret", iterations=2)
PASSWORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


def encoder(secret: str = "the secret", settings: EncoderSettings = QUICK) -> PasswordEncoder:
    return PasswordEncoder(replace(settings, secret=secret))


def fields(encoded: str) -> dict[str, str]:
    return dict(part.split(":") for part in encoded.split(","))


@settings(max_examples=30, deadline=None)
@given(PASSWORDS, st.sampled_from(sorted(CIPHERS)), st.sampled_from(sorted(KEY_FACTORIES)), st.sampled_from([128, 256]))
def test_what_was_encoded_is_decoded_whatever_the_settings(password: str, cipher: str, factory: str, bits: int) -> None:
    chosen = replace(QUICK, cipher_algorithm=cipher, keyfactory_algorithm=factory, key_length=bits)
    assert encoder().decode(encoder(settings=chosen).encode(password)) == password


@settings(max_examples=30, deadline=None)
@given(PASSWORDS, st.sampled_from(sorted(CIPHERS)))
def test_another_secret_decodes_nothing(password: str, cipher: str) -> None:
    encoded = encoder(settings=replace(QUICK, cipher_algorithm=cipher)).encode(password)
    with pytest.raises(UndecodablePassword):
        encoder("another secret").decode(encoded)


def test_defaults_authenticate_and_are_slow_to_guess() -> None:
    found = fields(PasswordEncoder(EncoderSettings("s")).encode("geheim€"))
    assert found["keyFactoryAlgorithm"] == "PBKDF2WithHmacSHA512"
    assert found["cipherAlgorithm"] == "AES/GCM/NoPadding"
    assert (found["keyLength"], found["passwordLength"]) == ("256", "7")
    assert int(found["iterations"]) >= 210_000
    assert "geheim" not in str(found)


def test_length_is_counted_in_javas_characters() -> None:
    assert fields(encoder().encode("a\N{GRINNING FACE}"))["passwordLength"] == "3"


def test_same_password_is_never_encoded_the_same_way() -> None:
    assert encoder().encode("p") != encoder().encode("p")


def test_order_of_the_fields_and_white_space_do_not_matter() -> None:
    parts = encoder().encode("p").split(",")
    assert encoder().decode(" , ".join(reversed(parts))) == "p"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("salt", "%%%"),
        ("keyLength", "64"),
        ("keyLength", "long"),
        ("iterations", "0"),
        ("iterations", "99999999999999999999"),
        ("iterations", "1000001"),
        ("passwordLength", "9"),
        ("cipherAlgorithm", "DES/CBC/PKCS5Padding"),
        ("keyFactoryAlgorithm", "PBKDF2WithHmacMD5"),
        ("initializationVector", "AAAA"),
        ("encryptedPassword", "AAAA"),
    ],
)
def test_damage_is_said_and_shows_nothing(field: str, value: str) -> None:
    damaged = fields(encoder().encode("geheim")) | {field: value}
    with pytest.raises(UndecodablePassword) as caught:
        encoder().decode(",".join(f"{name}:{text}" for name, text in damaged.items()))
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "nonsense", "salt:", "a:b,c"])
def test_text_that_is_none_of_ours_is_refused(text: str) -> None:
    with pytest.raises(UndecodablePassword):
        encoder().decode(text)


def test_no_secret_is_shown() -> None:
    assert "hidden" not in repr(EncoderSettings("hidden", "hidden too"))


KAFKAS = replace(QUICK, cipher_algorithm="AES/CBC/PKCS5Padding")
"""What was written before, and by Kafka: bound to no name."""


def test_a_password_is_read_under_its_own_name_alone() -> None:
    encoded = encoder().encode("geheim", "alice")
    assert encoder().decode(encoded, "alice") == "geheim"
    for name in ("bob", "", None):
        with pytest.raises(UndecodablePassword):
            encoder().decode(encoded, name)


def test_a_password_that_lost_the_mark_of_its_name_is_not_read() -> None:
    encoded = encoder().encode("geheim", "alice")
    stripped = ",".join(part for part in encoded.split(",") if not part.startswith("associatedData"))
    assert stripped != encoded
    with pytest.raises(UndecodablePassword):
        encoder().decode(stripped, "bob")


@pytest.mark.parametrize(
    "before", [KAFKAS, QUICK, replace(QUICK, iterations=1, cipher_algorithm="AES/CBC/PKCS5Padding")]
)
def test_what_was_written_before_is_read_and_known_to_be_outdated(before: EncoderSettings) -> None:
    encoded = encoder(settings=before).encode("geheim")
    assert encoder().decode(encoded, "alice") == "geheim"
    assert not encoder().read(encoded, "alice")[1]
    assert encoder().read(encoder().encode("geheim", "alice"), "alice")[1]


def test_fewer_rounds_than_chosen_are_outdated_and_more_are_not() -> None:
    encoded = encoder(settings=replace(QUICK, iterations=3)).encode("geheim", "alice")
    assert encoder().read(encoded, "alice")[1]
    assert not encoder(settings=replace(QUICK, iterations=4)).read(encoded, "alice")[1]


def test_kafkas_own_cipher_is_no_longer_outdated_where_it_is_chosen() -> None:
    assert encoder(settings=KAFKAS).read(encoder(settings=KAFKAS).encode("geheim", "alice"), "alice")[1]


def test_a_value_that_asks_for_too_many_rounds_is_refused_at_once() -> None:
    hostile = fields(encoder().encode("geheim")) | {"iterations": "2000000000"}
    with pytest.raises(UndecodablePassword, match="asks for 2000000000 iterations"):
        encoder().decode(",".join(f"{name}:{text}" for name, text in hostile.items()))
