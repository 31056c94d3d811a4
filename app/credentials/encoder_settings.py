"""`password.encoder.*` and `lockstep.credential.*`, from the properties that a plug-in is configured with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from app.credentials.encoder import EncoderSettings
from app.credentials.store import CredentialStore
from app.plugins import current_name
from app.properties import keys
from app.properties.keys import Key
from sinks.secret_values import is_secret
from streaming.errors import WrongUsage

T = TypeVar("T")


def encoder_settings(properties: Mapping[str, str]) -> EncoderSettings:
    """How passwords are encrypted. Raises LockstepError that names the key; no secret is in it."""
    secret = _value(properties, keys.ENCODER_SECRET)
    if secret is None:
        raise WrongUsage(
            f"{keys.ENCODER_SECRET.name} is missing: passwords are kept encrypted with it; write it as "
            "a reference, e.g. ${env:LOCKSTEP_ENCODER_SECRET}"
        )
    return EncoderSettings(
        secret=secret,
        old_secret=_value(properties, keys.ENCODER_OLD_SECRET),
        keyfactory_algorithm=_value(properties, keys.ENCODER_KEYFACTORY),
        cipher_algorithm=_value(properties, keys.ENCODER_CIPHER),
        key_length=_value(properties, keys.ENCODER_KEY_LENGTH),
        iterations=_value(properties, keys.ENCODER_ITERATIONS),
    )


def store_path(properties: Mapping[str, str]) -> Path:
    """The encrypted file, or the folder of DirectoryCredentialProvider."""
    return _value(properties, keys.CREDENTIAL_STORE)


def provider_class(properties: Mapping[str, str]) -> str:
    """Who knows the passwords."""
    return current_name(_value(properties, keys.CREDENTIAL_PROVIDER))


def open_store(properties: Mapping[str, str]) -> CredentialStore:
    """The encrypted file. Raises LockstepError for settings that it cannot be read with."""
    return CredentialStore(store_path(properties), encoder_settings(properties))


def _value(properties: Mapping[str, str], key: Key[T]) -> T:
    text = properties.get(key.name)
    if text is None:
        return key.default
    try:
        return key.type.parse(text)
    except ValueError:
        shown = "its value" if is_secret(key.name) else repr(text)
        raise WrongUsage(f"{key.name}: {key.type.complaint(shown, text)}") from None
