"""`lockstep configs --entity-type lockstep`: Lockstep's own properties, kept in the flows' ledgers (KIP-226)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from app.cli.failures import Failed, with_failures
from app.cli.options import chosen, loaded
from app.cli.output import DONE, FAILED, Output, closed_at_end, complain, print_json, print_line
from app.cli.running import ask_reload
from app.configs_tool.flags import Flags, resolved, wanted_configs
from app.overrides.ledgers import Unreadable, each, open_ledgers, read_overrides
from app.overrides.overridable import checked, permitted
from app.overrides.view import OverrideAlteration, OwnView, default_views, flow_views
from app.overrides.with_overrides import in_plain, override_of
from app.properties.config_providers import config_providers
from app.properties.mistakes import Findings
from app.properties.parse import read
from app.settings import Settings, load
from app.settings.job_settings import Overrides, Reference
from app.settings.load import read_properties
from sinks.flow_settings import FlowSettings
from sinks.ledger.overrides import InLedger, OverrideLevel, texts_at
from streaming.errors import LockstepError, WrongUsage
from streaming.flow import Flow
from streaming.nearest import nearest

ENTITY_TYPE = "lockstep"


@dataclass(frozen=True)
class Selection:
    """The file, and whose properties are meant: one flow's, or (`name` empty) the default of all."""

    config: Path
    settings: Settings
    name: str | None

    @property
    def flows(self) -> list[FlowSettings]:
        """Those whose ledgers are concerned. Raises WrongUsage for a flow that is not enabled."""
        if not self.name:
            return list(self.settings.flows)
        names = {one.flow.name: one for one in self.settings.flows}
        if self.name not in names:
            near = nearest(self.name, names)
            hint = f"; nearest: {near}" if near else ""
            raise WrongUsage(f"--entity-name {self.name}: enabled flows are {', '.join(names)}{hint}")
        return [names[self.name]]

    @property
    def level(self) -> OverrideLevel:
        """Where it is written."""
        return OverrideLevel.FLOW if self.name else OverrideLevel.ALL


def own_configs(flags: Flags, config: Path, output: Output, ask: Callable[[str], str]) -> int:
    """The exit code. Raises WrongUsage and ConfigurationError: nothing was written."""
    selection = Selection(config, loaded(config, None), flags.name)
    if flags.describe:
        return _describe(selection, flags.every, output)
    wanted = wanted_configs(flags.added, flags.added_file, flags.deleted)
    providers = None if flags.literal else config_providers(read(config, Findings("")), os.environ, Findings(""))
    return _alter(selection, resolved(wanted, providers, ask), flags, output)


def _describe(selection: Selection, every: bool, output: Output) -> int:
    found = read_overrides(selection.settings)
    concerned = {one.flow for one in selection.flows}
    stored: dict[Flow, InLedger] = {}
    failed: list[Failed] = []
    for flow in sorted(concerned):
        entries = found[flow]
        if isinstance(entries, Unreadable):
            complain(str(entries))
            failed.append((flow.name, entries))
        else:
            stored[flow] = entries
    views, damaged = _views(selection, stored, every)
    failed += damaged
    if output is Output.JSON:
        entities = [_entity(name) | {"configs": [row.as_json() for row in rows]} for name, rows in views.items()]
        print_json(with_failures({"entities": entities}, failed))
    else:
        for name, rows in views.items():
            print_line(f"{'All' if every else 'Dynamic'} configs of Lockstep for {_named(name)}:")
            for row in rows:
                for line in row.lines():
                    print_line(f"  {line}")
    return FAILED if failed else DONE


def _views(
    selection: Selection, stored: Mapping[Flow, InLedger], every: bool
) -> tuple[dict[str, list[OwnView]], list[Failed]]:
    """By the entity's name, "" for the default of all flows; and those that are damaged, which are complained of."""
    properties, file = (
        read_properties(selection.config, os.environ, Findings(str(selection.config))),
        str(selection.config),
    )
    ways: dict[str, Callable[[], list[OwnView]]] = {}
    if not selection.name:
        ways[""] = partial(default_views, stored, properties, file, every)
    if selection.name != "":
        ways |= {flow.name: partial(flow_views, flow, own, properties, file, every) for flow, own in stored.items()}
    views: dict[str, list[OwnView]] = {}
    damaged: list[Failed] = []
    for name, view in ways.items():
        try:
            views[name] = view()
        except LockstepError as error:
            complain(f"{_named(name)}: {error}")
            damaged.append((_named(name), error))
    return views, damaged


def _alter(selection: Selection, values: Mapping[str, str | None], flags: Flags, output: Output) -> int:
    before, properties = _known(selection), selection.settings.job_properties
    flows = [one.flow for one in selection.flows]
    there = {name for flow in flows for name in texts_at(before[flow], selection.level)}
    wanted = checked(values, there, flags.custom, flags.literal, permitted(properties))
    overrides = {
        name: None if value is None else override_of(name, value, properties, flags.literal)
        for name, value in wanted.items()
    }
    alteration = OverrideAlteration(selection.level, flows, before, wanted, overrides)
    # All of it, with the file, must be sound: contradictions and plug-ins' own objections show here.
    sound = load(
        selection.config,
        overrides=_without_references(in_plain(alteration.after, properties, selection.config)),
        reading=chosen(),
    )
    closed_at_end(sound.close)
    if flags.dry_run:
        _print_altered(selection, alteration, "validated", output)
        return DONE
    done, failed = _write(selection, alteration)
    if not done:
        raise LockstepError("\n".join(f"not written: {reason}" for reason in failed))
    for reason in failed:
        complain(f"not written: {reason}; say the command again: what is written already stays as it is")
    _notify_job(sound)
    _print_altered(selection, alteration, "applied", output, done if failed else (), failed)
    return FAILED if failed else DONE


def _without_references(values: Overrides) -> Overrides:
    """What they lead to is there where the jobs run, and need not be here."""
    return {
        flow: {name: value for name, value in own.items() if not isinstance(value, Reference)}
        for flow, own in values.items()
    }


def _known(selection: Selection) -> dict[Flow, InLedger]:
    """Of all flows, since they are checked together. Raises LockstepError where one of those concerned is not known."""
    concerned = {one.flow for one in selection.flows}
    known: dict[Flow, InLedger] = {}
    for flow, entries in read_overrides(selection.settings).items():
        if not isinstance(entries, Unreadable):
            known[flow] = entries
        elif flow in concerned:
            raise LockstepError(f"nothing was written: {entries}")
    return known


def _write(selection: Selection, alteration: OverrideAlteration) -> tuple[list[str], list[str]]:
    with open_ledgers(selection.settings, selection.flows) as ledgers:
        return each(
            selection.flows, lambda one: ledgers.write(one.flow, alteration.entries, alteration.changes(one.flow))
        )


def _notify_job(settings: Settings) -> None:
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


def _print_altered(
    selection: Selection,
    alteration: OverrideAlteration,
    result: str,
    output: Output,
    only: Sequence[str] = (),
    failed: Sequence[str] = (),
) -> None:
    if output is Output.JSON:
        document = _entity(selection.name or "") | {"result": result, "changes": alteration.rows()}
        print_json(with_failures(document, [("not written", LockstepError(reason)) for reason in failed]))
        return
    for row in alteration.rows():
        print_line(f"  {row['name']}: {_shown_value(row['before'])} -> {_shown_value(row['after'])}")
    if result == "validated":
        print_line(f"Validated for {_named(selection.name or '')}; nothing was written.")
    else:
        print_line(f"Completed updating config for {', '.join(only) or _named(selection.name or '')}.")


def _entity(name: str) -> dict[str, Any]:
    return {"entity_type": ENTITY_TYPE, "entity_name": name}


def _named(name: str) -> str:
    return f"the flow {name}" if name else "all flows"


def _shown_value(value: str | None) -> str:
    return "not set" if value is None else value
