"""Loads the settings in force: the file's, with the overrides in the flows' ledgers over them."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from app.credentials.encoder import PasswordEncoder, UndecodablePassword
from app.credentials.store import encoder_settings
from app.overrides.ledgers import Unreadable, open_ledgers, read_overrides
from app.overrides.overridable import is_hidden, permitted, refusals, refused_text
from app.properties import keys
from app.properties.mistakes import REFERENCE, ConfigurationError, Mistake
from app.settings import Settings, load
from app.settings.job_settings import USUAL, Decoded, Overrides, Reading, Reference
from sinks.ledger.ledger import Entry, Ledger
from sinks.ledger.overrides import InLedger, Override, OverrideLevel, at_level, effective
from sinks.model.changes import Key
from sinks.secret_values import is_secret
from streaming.errors import LockstepError, prefixed
from streaming.flow import Flow

log = logging.getLogger(__name__)

Read = Callable[[Settings], Mapping[Flow, InLedger | Unreadable]]
"""Reads the ledgers of the flows in these settings."""


def load_with_overrides(
    path: Path,
    flows: Sequence[str] = (),
    *,
    environ: Mapping[str, str] = os.environ,
    before: Settings | None = None,
    read: Read = read_overrides,
    job: bool = False,
    reading: Reading = USUAL,
) -> Settings:
    """Loads the settings with the overrides of each flow. Raises ConfigurationError with the mistakes of both.

    If a flow's ledger cannot be read, the flow keeps the overrides of `before`. Without `before`, `stored_overrides`
    has None for it, and a job does nothing for the flow until it knows them. The same holds for a `job` if overrides
    break a rule (`app.overrides.overridable`). For a command that is a mistake.
    """
    loaded = partial(load, path, flows, environ=environ, before=before, reading=reading)
    used: Overrides = before.override_values if before is not None else {}
    try:
        settings = loaded(overrides=used)
    except ConfigurationError:
        if not used:
            raise
        # What is wrong may be what was in force: deleted from its ledger meanwhile, or of a flow that is gone.
        used = {}
        settings = loaded()
    with ExitStack() as unused:
        unused.callback(settings.close, before)
        found = read(settings)
        if job:
            found = {flow: _unless_refused(flow, entries, settings) for flow, entries in found.items()}
        stored = _stored(found, before)
        values = in_plain(stored, settings.job_properties, path)
        # A reference and a value may be the same text.
        if values != used or (before is not None and stored != before.stored_overrides):
            settings = loaded(overrides=values)
        else:
            unused.pop_all()
    return replace(settings, stored_overrides=stored, override_values=values)


def _unless_refused(flow: Flow, entries: InLedger | Unreadable, settings: Settings) -> InLedger | Unreadable:
    if not isinstance(entries, Unreadable) and (wrong := refusals(entries, permitted(settings.job_properties))):
        log.error("%s: %s", flow.name, refused_text(wrong))
        return Unreadable(refused_text(wrong))
    return entries


def _stored(found: Mapping[Flow, InLedger | Unreadable], before: Settings | None) -> dict[Flow, InLedger | None]:
    stored: dict[Flow, InLedger | None] = {}
    for flow, entries in found.items():
        if isinstance(entries, Unreadable):
            log.debug("%s", entries)
            stored[flow] = before.stored_overrides.get(flow) if before is not None else None
        else:
            stored[flow] = entries
    return stored


def in_plain(
    stored: Mapping[Flow, InLedger | None], properties: Mapping[str, str], path: Path
) -> dict[Flow, dict[str, str]]:
    """Returns the overrides in force for each flow, in plain text. Raises ConfigurationError with every unusable
    one."""
    values, mistakes = {}, []
    for flow, entries in stored.items():
        try:
            if wrong := refusals(entries or {}, permitted(properties)):
                raise LockstepError(refused_text(wrong))
            if entries:
                values[flow] = values_of(entries, properties)
        except LockstepError as error:
            mistakes.append(Mistake(str(path), None, "", prefixed(flow.name, error)))
    if mistakes:
        raise ConfigurationError(mistakes)
    return values


def encode_again(settings: Settings) -> None:
    """Encodes passwords in the ledgers with the current secret, if they have the old one.

    Logs a failure: the old secret still decodes them, and the next start tries again.
    """
    for flow in settings.flows:
        stored = settings.stored_overrides.get(flow.flow)
        try:
            if stored and (again := reencoded(stored, settings.job_properties)):
                with open_ledgers(settings, [flow]) as ledgers:
                    ledgers.write(flow.flow, again)
                log.info("%s: %d passwords in its ledger are encoded with the new secret", flow.flow.name, len(again))
        except LockstepError as error:
            log.warning("%s: its passwords could not be encoded again: %s", flow.flow.name, error)


# Passwords among the overrides, encoded as KIP-226 has it, and again when the encoder's secret was changed.


SECRET, OLD_SECRET = keys.ENCODER_SECRET.name, keys.ENCODER_OLD_SECRET.name


def override_of(name: str, value: str, properties: Mapping[str, str], literal: bool = False) -> Override:
    """Returns a value as it is stored: a secret is encoded. `literal`: references stay, and each job resolves them.
    `properties`: the job's. Raises LockstepError for a secret without `password.encoder.secret`."""
    if literal and REFERENCE.search(value):
        return Override(value, reference=True)
    if not is_secret(name) and not (is_hidden(name) and properties.get(SECRET)):
        return Override(value)
    if not properties.get(SECRET):
        raise LockstepError(
            f"{name} is a secret, and is stored encoded: set {SECRET} in the properties file, or keep a reference "
            "such as ${file:PATH:KEY}, which each job looks up, with --literal"
        )
    encoder = PasswordEncoder(encoder_settings(properties))
    return Override(encoder.encode(value, _bound_to(name)), encoded=True)


def values_of(stored: InLedger, properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the overrides in force for a flow, in plain text. Raises LockstepError if a password cannot be
    decoded."""
    return {name: _plain(name, override, properties)[0] for name, override in effective(stored).items()}


def reencoded(stored: InLedger, properties: Mapping[str, str]) -> dict[Key, str]:
    """Returns the entries that need the old secret, or that have other encoder settings, encoded again. Raises
    LockstepError."""
    again: dict[Key, str] = {}
    for level in OverrideLevel:
        for name, override in at_level(stored, level).items():
            value, outdated = _plain(name, override, properties)
            if outdated:
                again[level.value, name] = override_of(name, value, properties).to_text()
    return again


def _plain(name: str, override: Override, properties: Mapping[str, str]) -> tuple[str, bool]:
    """Returns the value, and whether it must be encoded again: because it needed the old secret, or has other encoder
    settings."""
    if not override.encoded:
        return Reference(override.value) if override.reference else override.value, False
    if not properties.get(SECRET):
        raise LockstepError(f"the override of {name} in the ledger is encoded: set {SECRET} as it was then")
    try:
        value, current = PasswordEncoder(encoder_settings(properties)).read(override.value, _bound_to(name))
    except UndecodablePassword:
        raise LockstepError(
            f"the override of {name} in the ledger was encoded with another secret: set {OLD_SECRET} to it, or write "
            "the override again"
        ) from None
    return Decoded(value), not current


def _bound_to(name: str) -> str:
    return f"override {name}"


# When a running job must take over overrides that were written to a ledger meanwhile.


class OverridesUnknown(LockstepError):
    """A flow has overrides, but was started while its ledger could not be read."""


class OverridesRefused(LockstepError):
    """A flow's ledger holds overrides that break the rules of the file."""


class OverrideWatch:
    """Compares each flow's ledger with the overrides that the job uses. The flows' passes call `see`. The job's own
    thread calls `differing` and `adopt`."""

    def __init__(self, used: Mapping[Flow, InLedger | None], opened: Collection[str] = ()) -> None:
        """`used`: None for a flow whose ledger could not be read. `opened`: further keys that the file allows."""
        self._used, self._opened = dict(used), opened
        self._seen: dict[Flow, InLedger] = {}
        self._reported: dict[Flow, InLedger] = {}

    def see(self, flow: Flow, ledger: Ledger) -> None:
        """Notes the overrides in a flow's ledger, and stops the pass if they are not usable.

        Raises OverridesUnknown if the flow was started without them, and OverridesRefused if they break the rules of
        the file.
        """
        self._seen[flow] = seen = ledger.values(Entry.OVERRIDE)
        if wrong := refusals(seen, self._opened):
            raise OverridesRefused(f"{flow.name} does nothing: {refused_text(wrong)}")
        if self._used.get(flow) is None and seen:
            raise OverridesUnknown(
                f"{flow.name} waits until the {len(seen)} overrides in its ledger are in force; if it keeps "
                "waiting, the log says what is wrong with them"
            )

    def differing(self) -> frozenset[Flow]:
        """Returns the flows whose ledger differs from the overrides in force. Reports each content once."""
        differ = {flow: seen for flow, seen in dict(self._seen).items() if seen != (self._used.get(flow) or {})}
        reported, self._reported = self._reported, dict(differ)
        return frozenset(flow for flow, seen in differ.items() if reported.get(flow) != seen)

    def unknown(self, flow: Flow) -> bool:
        """Returns whether the flow's settings were made without its ledger."""
        return self._used.get(flow) is None

    def adopt(self, used: Mapping[Flow, InLedger | None]) -> None:
        """Notes the overrides from which the settings are now made."""
        self._used = dict(used)
