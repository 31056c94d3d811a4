"""Passwords among the overrides, encoded as KIP-226 has it, and again when the encoder's secret was changed."""

from __future__ import annotations

from collections.abc import Mapping

from app.credentials.encoder import PasswordEncoder, UndecodablePassword
from app.credentials.encoder_settings import encoder_settings
from app.overrides.overridable import is_hidden
from app.properties import keys
from app.properties.mistakes import REFERENCE
from app.settings.stored_overrides import Decoded, Reference
from sinks.ledger.overrides import InLedger, Override, OverrideLevel, at_level, effective
from sinks.model.changes import Key
from sinks.secret_values import is_secret
from streaming.errors import LockstepError

SECRET, OLD_SECRET = keys.ENCODER_SECRET.name, keys.ENCODER_OLD_SECRET.name


def override_of(name: str, value: str, properties: Mapping[str, str], literal: bool = False) -> Override:
    """A value as it is kept: a secret is encoded. `literal`: references in it are kept, for each job to look up.

    `properties`: those of the job. Raises LockstepError where a secret comes without `password.encoder.secret`.
    """
    if literal and REFERENCE.search(value):
        return Override(value, reference=True)
    if not is_secret(name) and not (is_hidden(name) and properties.get(SECRET)):
        return Override(value)
    if not properties.get(SECRET):
        raise LockstepError(
            f"{name} is a secret, and is kept encoded: set {SECRET} in the properties file, or keep a reference "
            "such as ${file:PATH:KEY}, which each job looks up, with --literal"
        )
    settings = encoder_settings(properties)
    return Override(PasswordEncoder(settings.secret, settings).encode(value, _bound_to(name)), encoded=True)


def values_of(stored: InLedger, properties: Mapping[str, str]) -> dict[str, str]:
    """What holds for a flow, in plain text. Raises LockstepError for a password that cannot be decoded."""
    return {name: _plain(name, override, properties)[0] for name, override in effective(stored).items()}


def reencoded(stored: InLedger, properties: Mapping[str, str]) -> dict[Key, str]:
    """The entries that only the old secret decodes, or that were encoded in another way. Raises LockstepError."""
    again: dict[Key, str] = {}
    for level in OverrideLevel:
        for name, override in at_level(stored, level).items():
            value, outdated = _plain(name, override, properties)
            if outdated:
                again[level.value, name] = override_of(name, value, properties).to_text()
    return again


def _plain(name: str, override: Override, properties: Mapping[str, str]) -> tuple[str, bool]:
    """The value, and whether it is to be encoded again: only the old secret decoded it, or it was made another way."""
    if not override.encoded:
        return Reference(override.value) if override.reference else override.value, False
    if not properties.get(SECRET):
        raise LockstepError(f"the override of {name} in the ledger is encoded: set {SECRET} as it was then")
    settings = encoder_settings(properties)
    for secret in filter(None, (settings.secret, settings.old_secret)):
        encoder = PasswordEncoder(secret, settings)
        try:
            value = Decoded(encoder.decode(override.value, _bound_to(name)))
        except UndecodablePassword:
            continue
        return value, secret is not settings.secret or not encoder.is_current(override.value)
    raise LockstepError(
        f"the override of {name} in the ledger was encoded with another secret: set {OLD_SECRET} to it, or write the "
        "override again"
    )


def _bound_to(name: str) -> str:
    return f"override {name}"
