"""Checks single lines: unknown keys, values that are not allowed, references that fail."""

from __future__ import annotations

import re

from app.properties.keys import METRIC_REPORTERS, TABLE, KeyScope
from app.properties.known import (
    NEAR_ENOUGH,
    RENAMED,
    ROLES,
    cluster_names,
    flow_names,
    is_for_mm2_alone,
    kafka_names,
    read_names,
    role_names,
    slip,
    slip_behind_prefix,
    top_names,
)
from app.properties.mistakes import SANE_KEY, PropertyLine
from app.properties.scoped_keys import PREFIX, Properties, ScopedKey
from app.properties.shown_values import may_be_shown, shown_value
from app.properties.value_types import PATTERNS, one_of
from streaming.flow import Flow
from streaming.message_words import nearest, nearest_hint

ARROW = re.compile(r"(?P<source>[^>]*)->(?P<target>[^.>]*)\.(?P<name>[^>]+)")
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PROTOCOL_KEY = re.compile(rf"((source|target)\.)?(({'|'.join(ROLES)}|cluster)\.)?security\.protocol")


def check(properties: Properties, *, strict: bool = False) -> None:
    """Checks every line by itself. `strict`: every unknown key is a mistake, not only Lockstep's own."""
    for where, entry in properties.by_key.items():
        if not SANE_KEY.fullmatch(entry.key):
            properties.warn(
                entry, "has characters that no key has: does the line before it lack a backslash at its end?"
            )
        elif "->" in entry.key or (entry.key in properties.aliases and entry.value.startswith("->")):
            _check_arrow(properties, where, entry, strict)
        else:
            _check_name(properties, where, entry, strict)
        _check_value(properties, where, entry)


def _check_arrow(properties: Properties, where: ScopedKey, entry: PropertyLine, strict: bool) -> None:
    match = ARROW.fullmatch(entry.key.removeprefix(PREFIX))
    if match is None or not match["source"] or not match["target"]:
        properties.mistake(
            entry, "is not a key of a flow: write SOURCE->TARGET.KEY, without spaces, e.g. a->b.enabled=true"
        )
        return
    source, target = match["source"], match["target"]
    if isinstance(where.scope, Flow):
        _check_name(properties, where, entry, strict)
    elif source == target:
        properties.mistake(entry, f"a flow from {source} to itself: source and target must differ")
    else:
        for alias in {source, target} - set(properties.aliases):
            properties.mistake(entry, f"{alias} is not in `clusters`{_listed(alias, properties.aliases)}")


def _listed(alias: str, aliases: tuple[str, ...]) -> str:
    return f" ({', '.join(aliases) or 'empty'}){nearest_hint(alias, aliases)}"


def _check_name(properties: Properties, where: ScopedKey, entry: PropertyLine, strict: bool) -> None:
    if (problem := _elsewhere(where)) is not None:
        (properties.mistake if strict else properties.warn)(entry, problem)
    elif where.name in RENAMED and not isinstance(where.scope, str):
        properties.warn(
            entry, f"is the old name of {RENAMED[where.name]}: MM2 of Kafka 4 ignores it, Lockstep reads it"
        )
    elif (problem := _unknown_key(properties, where)) is not None:
        # An override may be a plug-in's own key: the operator said so with --custom.
        ours = where.ours and entry.origin is None
        (properties.mistake if ours or strict else properties.warn)(entry, problem)


def _elsewhere(where: ScopedKey) -> str | None:
    """Returns why a known key has no effect in its scope; None if it has one."""
    scope = TABLE[where.name].scope if where.name in TABLE else None
    # `a.metric.reporters` is for MM2's clients.
    if scope is KeyScope.JOB and where.scope is not None and (where.ours or where.name != METRIC_REPORTERS.name):
        return f"holds for {KeyScope.JOB.value} only: write {where.name}; this line changes nothing"
    if scope is KeyScope.CLUSTER and not isinstance(where.scope, str):
        return f"holds for {KeyScope.CLUSTER.value}: write ALIAS.{where.name}; this line changes nothing"
    if isinstance(where.scope, str) and where.name in TABLE and where.name not in cluster_names():
        return f"holds for {KeyScope.FLOW.value}, not for a cluster; this line changes nothing"
    return None


def _unknown_key(properties: Properties, where: ScopedKey) -> str | None:
    if where.ours and is_for_mm2_alone(where.name):
        near = nearest(where.name, read_names(), NEAR_ENOUGH)
        hint = f"; nearest that Lockstep reads: {near}" if near else ""
        return (
            f"no program reads it: MM2 knows no key with the prefix {PREFIX}, and Lockstep does not read {where.name}"
            f"{hint}; write it without the prefix for MM2, or remove it"
        )
    known = top_names() if where.scope is None else cluster_names() if isinstance(where.scope, str) else flow_names()
    near = (slip_behind_prefix if where.ours else slip)(where.name, known)
    return None if near is None else _unknown(properties, where, near)


def _unknown(properties: Properties, where: ScopedKey, near: str) -> str:
    head, _, tail = where.name.partition(".")
    if where.scope is None and where.name in role_names():
        return f"MM2 and Lockstep read it behind an alias only: write ALIAS.{where.name}; this line changes nothing"
    if where.scope is None and tail in cluster_names():
        return f"{head} is not in `clusters`{_listed(head, properties.aliases)}; no program reads this key"
    scope = "" if where.scope is None else f"{getattr(where.scope, 'name', where.scope)}."
    plug_in = "only your own plug-in would see it"
    if where.ours:
        plug_in = f"write the key of your own plug-in without the prefix `{PREFIX}`"
        # Without the prefix the line would be MM2's as well.
        near = near and PREFIX + near.removeprefix(PREFIX)
    hint = f"; nearest: {scope}{near}" if near else ""
    return f"neither Kafka nor MM2 nor Lockstep knows this key{hint}; {plug_in}"


def _check_value(properties: Properties, where: ScopedKey, entry: PropertyLine) -> None:
    if entry.problem is not None:
        report = properties.mistake if _is_read(where) else properties.warn
        report(entry, entry.problem)
        return
    key = TABLE.get(RENAMED.get(where.name, where.name)) if not isinstance(where.scope, str) else None
    if key is not None:
        try:
            key.type.parse(entry.value)
        except ValueError as error:
            reason = f"; {error}" if key.type is PATTERNS and may_be_shown(where, entry) else ""
            properties.mistake(entry, key.type.complaint(shown_value(where, entry), entry.value) + reason)
    elif PROTOCOL_KEY.fullmatch(where.name) and entry.value.upper() not in SECURITY_PROTOCOLS:
        properties.mistake(entry, one_of(*SECURITY_PROTOCOLS).complaint(shown_value(where, entry), entry.value))


def _is_read(where: ScopedKey) -> bool:
    """Returns whether Lockstep uses the value. Other keys are for MM2."""
    if isinstance(where.scope, str):
        return where.name in kafka_names()["client"] or where.name.startswith(tuple(f"{role}." for role in ROLES))
    return where.name in TABLE or where.name in kafka_names()["client"] or where.name in role_names()
