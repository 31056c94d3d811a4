"""`lockstep configs --entity-type lockstep`: Lockstep's own properties, kept in the flows' ledgers (KIP-226)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from app.cli.output import DONE, FAILED, Output, complain, print_json, print_line
from app.cli.running import ask_reload
from app.configs.asked import Flags
from app.configs.values import resolved, wanted_configs
from app.overrides.allowed import checked
from app.overrides.ledgers import OpenLedgers, Unreadable, each, open_ledgers, read_overrides
from app.overrides.load import in_plain
from app.overrides.passwords import override_of
from app.overrides.view import default_views, flow_views
from app.properties.mistakes import Findings, is_secret
from app.properties.parse import read
from app.properties.providers import config_providers
from app.properties.values import nearest
from app.settings import Settings, load
from app.settings.load import read_properties
from sinks.audit import SettingChange
from sinks.configs.arguments import WrongArguments
from sinks.configs.masking import HIDDEN
from sinks.model import Key
from sinks.overriding import InLedger, Level, Override, altered, at_level
from sinks.settings import FlowSettings
from streaming.errors import LockstepError
from streaming.settings import Flow

ENTITY_TYPE = "lockstep"


@dataclass(frozen=True)
class Asked:
    """The file, and what is asked for: one flow, or (`name` empty) the default of all."""

    config: Path
    settings: Settings
    name: str | None

    @property
    def flows(self) -> list[FlowSettings]:
        """Those whose ledgers are concerned. Raises WrongArguments for a flow that is not enabled."""
        if not self.name:
            return list(self.settings.flows)
        names = {one.flow.name: one for one in self.settings.flows}
        if self.name not in names:
            near = nearest(self.name, names)
            hint = f"; nearest: {near}" if near else ""
            raise WrongArguments(f"--entity-name {self.name}: enabled flows are {', '.join(names)}{hint}")
        return [names[self.name]]

    @property
    def level(self) -> Level:
        """Where it is written."""
        return Level.FLOW if self.name else Level.ALL


def own_configs(flags: Flags, config: Path, output: Output, ask: Callable[[str], str]) -> int:
    """The exit code. Raises WrongArguments and ConfigurationError: nothing was written."""
    asked = Asked(config, load(config), flags.name)
    if flags.describe:
        return _describe(asked, flags.every, output)
    wanted = wanted_configs(flags.added, flags.added_file, flags.deleted)
    providers = None if flags.literal else config_providers(read(config, Findings("")), os.environ, Findings(""))
    return _alter(asked, resolved(wanted, providers, ask), flags, output)


def _describe(asked: Asked, every: bool, output: Output) -> int:
    found = read_overrides(asked.settings)
    concerned = {one.flow for one in asked.flows}
    stored: dict[Flow, InLedger] = {}
    for flow in sorted(concerned):
        entries = found[flow]
        if isinstance(entries, Unreadable):
            complain(str(entries))
        else:
            stored[flow] = entries
    properties = read_properties(asked.config, os.environ, Findings(str(asked.config)))
    file = str(asked.config)
    told = {"": default_views(stored, properties, file, every)} if not asked.name else {}
    if asked.name != "":
        told |= {flow.name: flow_views(flow, own, properties, file, every) for flow, own in stored.items()}
    if output is Output.JSON:
        print_json(
            {"entities": [_entity(name) | {"configs": [row.as_json() for row in rows]} for name, rows in told.items()]}
        )
    else:
        for name, rows in told.items():
            print_line(f"{'All' if every else 'Dynamic'} configs of Lockstep for {_named(name)}:")
            for row in rows:
                for line in row.lines():
                    print_line(f"  {line}")
    return FAILED if len(stored) < len(concerned) else DONE


def _alter(asked: Asked, values: Mapping[str, str | None], flags: Flags, output: Output) -> int:
    before = _known(asked)
    there = {name for one in asked.flows for name in at_level(before[one.flow], asked.level)}
    wanted = checked(values, there, flags.custom)
    properties = asked.settings.job_properties
    overrides = {
        name: None if value is None else override_of(name, value, properties) for name, value in wanted.items()
    }
    after = before | {one.flow: altered(before[one.flow], asked.level, overrides) for one in asked.flows}
    # All of it, with the file, must be sound: contradictions and plug-ins' own objections show here.
    load(asked.config, overrides=in_plain(after, properties, asked.config))
    rows = _rows(asked, before, after, wanted)
    if flags.dry_run:
        _print_altered(asked, rows, "validated", output)
        return DONE
    done, failed = _write(asked, before, overrides, wanted)
    for reason in failed:
        complain(f"not written: {reason}; say the command again: what is written already stays as it is")
    if done:
        _tell_job(asked.settings)
        _print_altered(asked, rows, "applied", output, done if failed else ())
    return FAILED if failed else DONE


def _known(asked: Asked) -> dict[Flow, InLedger]:
    """Of all flows, since they are checked together. Raises LockstepError where one of those concerned is not known."""
    concerned = {one.flow for one in asked.flows}
    known: dict[Flow, InLedger] = {}
    for flow, entries in read_overrides(asked.settings).items():
        if not isinstance(entries, Unreadable):
            known[flow] = entries
        elif flow in concerned:
            raise LockstepError(f"nothing was written: {entries}")
    return known


def _write(
    asked: Asked,
    before: Mapping[Flow, InLedger],
    overrides: Mapping[str, Override | None],
    wanted: Mapping[str, str | None],
) -> tuple[list[str], list[str]]:
    entries: dict[Key, str | None] = {
        (asked.level.value, name): None if override is None else override.to_text()
        for name, override in overrides.items()
    }

    def write(ledgers: OpenLedgers, flow: FlowSettings) -> None:
        known = at_level(before[flow.flow], asked.level)
        changes = [
            SettingChange(_written(asked, name), _shown(name, known[name].value if name in known else None), new)
            for name, new in ((name, _shown(name, value)) for name, value in wanted.items())
        ]
        ledgers.write(flow.flow, entries, [one for one in changes if one.before is not None or one.after is not None])

    with open_ledgers(asked.settings, asked.flows) as ledgers:
        return each(asked.flows, partial(write, ledgers))


def _written(asked: Asked, name: str) -> str:
    return f"{asked.name}: {name}" if asked.name else f"all flows: {name}"


def _tell_job(settings: Settings) -> None:
    interval = max(one.pace.full_comparison_interval for one in settings.flows)
    try:
        answer = ask_reload(settings)
    except LockstepError:
        complain(
            f"no job answers here; one that runs elsewhere takes it over within {interval:g} s, "
            "or at once with `lockstep reload`"
        )
        return
    if problem := answer.get("error"):
        complain(f"written, but the running job could not take it over: {problem}")


def _rows(
    asked: Asked,
    before: Mapping[Flow, InLedger],
    after: Mapping[Flow, InLedger],
    wanted: Mapping[str, str | None],
) -> list[dict[str, str | None]]:
    rows = []
    for name in wanted:
        old = {_value(before[one.flow], asked.level, name) for one in asked.flows}
        new = {_value(after[one.flow], asked.level, name) for one in asked.flows}
        rows.append({"name": name, "before": _one(name, old), "after": _one(name, new)})
    return rows


def _value(stored: InLedger, level: Level, name: str) -> str | None:
    found = at_level(stored, level).get(name)
    return found.value if found else None


def _one(name: str, values: set[str | None]) -> str | None:
    return _shown(name, values.pop()) if len(values) == 1 else HIDDEN if is_secret(name) else "not the same everywhere"


def _shown(name: str, value: str | None) -> str | None:
    return HIDDEN if value is not None and is_secret(name) else value


def _print_altered(
    asked: Asked, rows: Sequence[Mapping[str, str | None]], result: str, output: Output, only: Sequence[str] = ()
) -> None:
    if output is Output.JSON:
        print_json(_entity(asked.name or "") | {"result": result, "changes": list(rows)})
        return
    for row in rows:
        print_line(f"  {row['name']}: {_told(row['before'])} -> {_told(row['after'])}")
    if result == "validated":
        print_line(f"Validated for {_named(asked.name or '')}; nothing was written.")
    else:
        print_line(f"Completed updating config for {', '.join(only) or _named(asked.name or '')}.")


def _entity(name: str) -> dict[str, Any]:
    return {"entity_type": ENTITY_TYPE, "entity_name": name}


def _named(name: str) -> str:
    return f"the flow {name}" if name else "all flows"


def _told(value: str | None) -> str:
    return "not set" if value is None else value
