"""The settings that are in force: those of the file, and over them what the flows' ledgers say."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from app.overrides.closed import permitted, refusals, refused_text
from app.overrides.ledgers import Unreadable, open_ledgers, read_overrides
from app.overrides.passwords import reencoded, values_of
from app.properties.mistakes import ConfigurationError, Mistake
from app.settings import Settings, load
from app.settings.reading import USUAL, Reading
from app.settings.stored_overrides import Overrides
from sinks.ledger.overrides import InLedger
from streaming.errors import LockstepError
from streaming.flow import Flow

log = logging.getLogger(__name__)

Read = Callable[[Settings], Mapping[Flow, InLedger | Unreadable]]
"""Reads the ledgers of these flows."""


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
    """As `load`, with the overrides of each flow. Raises ConfigurationError with the mistakes of both.

    A ledger that cannot be read leaves its flow with the overrides of `before`, or with unknown ones:
    `stored_overrides` says None, and a job does nothing for that flow until it knows. The same holds for overrides that
    no rule lets be there (`app.overrides.closed`) where this is for the `job`; for a command they are a mistake.
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
    """What holds for each flow that has overrides. Raises ConfigurationError with every one that cannot be used."""
    values, mistakes = {}, []
    for flow, entries in stored.items():
        try:
            if wrong := refusals(entries or {}, permitted(properties)):
                raise LockstepError(refused_text(wrong))
            if entries:
                values[flow] = values_of(entries, properties)
        except LockstepError as error:
            mistakes.append(Mistake(str(path), None, "", f"{flow.name}: {error}"))
    if mistakes:
        raise ConfigurationError(mistakes)
    return values


def encode_again(settings: Settings) -> None:
    """Keeps passwords encoded with the secret that holds now, where the ledgers have them with the old one.

    What fails is logged: the old secret still decodes them, and the next start tries again.
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
