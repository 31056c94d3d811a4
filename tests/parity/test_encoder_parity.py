"""The same encoded passwords by ours and by Kafka 3.9's own EncryptingPasswordEncoder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from app.credentials.encoder import (
    CIPHERS,
    KEY_FACTORIES,
    KEY_LENGTHS,
    EncoderSettings,
    PasswordEncoder,
    UndecodablePassword,
)
from tests.parity.kafka_classes import Kafka

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)
CHOSEN = st.builds(
    EncoderSettings,
    secret=WORDS,
    keyfactory_algorithm=st.sampled_from(sorted(KEY_FACTORIES)),
    cipher_algorithm=st.sampled_from(sorted(CIPHERS)),
    key_length=st.sampled_from(KEY_LENGTHS),
    iterations=st.integers(1, 64),
)


def theirs(kafka: Kafka, chosen: EncoderSettings) -> Any:
    """Kafka's encoder with the same settings."""
    jvm = kafka.jvm
    return jvm.org.apache.kafka.security.EncryptingPasswordEncoder(
        jvm.org.apache.kafka.common.config.types.Password(chosen.secret),
        chosen.keyfactory_algorithm,
        chosen.cipher_algorithm,
        chosen.key_length,
        chosen.iterations,
    )


def ours(chosen: EncoderSettings) -> PasswordEncoder:
    return PasswordEncoder(chosen)


def password(kafka: Kafka, text: str) -> Any:
    return kafka.jvm.org.apache.kafka.common.config.types.Password(text)


@settings(max_examples=100, deadline=None)
@given(CHOSEN, WORDS)
def test_kafka_reads_what_ours_writes(kafka: Kafka, chosen: EncoderSettings, text: str) -> None:
    assert theirs(kafka, chosen).decode(ours(chosen).encode(text)).value() == text


@settings(max_examples=100, deadline=None)
@given(CHOSEN, WORDS)
def test_ours_reads_what_kafka_writes(kafka: Kafka, chosen: EncoderSettings, text: str) -> None:
    assert ours(chosen).decode(theirs(kafka, chosen).encode(password(kafka, text))) == text


def test_kafka_reads_what_ours_writes_by_default_and_the_other_way_round(kafka: Kafka) -> None:
    chosen, text = EncoderSettings("the secret"), "geheim, €:\N{GRINNING FACE}"
    assert theirs(kafka, chosen).decode(ours(chosen).encode(text)).value() == text
    assert ours(chosen).decode(theirs(kafka, chosen).encode(password(kafka, text))) == text


@pytest.mark.parametrize("cipher", sorted(CIPHERS))
def test_both_write_the_same_fields(kafka: Kafka, cipher: str) -> None:
    chosen = EncoderSettings("the secret", cipher_algorithm=cipher)
    written = [ours(chosen).encode("geheim"), theirs(kafka, chosen).encode(password(kafka, "geheim"))]
    mine, his = (dict(part.split(":") for part in one.split(",")) for one in written)
    random = {"salt", "initializationVector", "encryptedPassword"}
    assert mine.keys() == his.keys()
    assert {name: mine[name] for name in mine.keys() - random} == {name: his[name] for name in his.keys() - random}
    assert {name: len(mine[name]) for name in random} == {name: len(his[name]) for name in random}


@settings(max_examples=30, deadline=None)
@given(CHOSEN, WORDS)
def test_neither_reads_with_another_secret(kafka: Kafka, chosen: EncoderSettings, text: str) -> None:
    other = replace(chosen, secret=f"{chosen.secret}!")
    with pytest.raises(UndecodablePassword):
        ours(other).decode(theirs(kafka, chosen).encode(password(kafka, text)))
    with pytest.raises(Py4JJavaError):
        theirs(kafka, other).decode(ours(chosen).encode(text))
