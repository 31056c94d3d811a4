"""`lockstep ledger`: what a flow remembers; for an operator who has checked it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from app.cli.options import DEFAULT_CONFIG, ConfigOption, FlowOption, loaded
from app.cli.output import FAILED, print_line, print_table
from app.wiring import both_clusters, guard
from sinks.engine.pins import PinFile
from sinks.engine.seal import Seal
from sinks.engine.times import milliseconds, utc_now
from sinks.engine.unsigned_records import Raw, lacking_signature, newest_records
from sinks.flow_settings import FlowSettings
from streaming.errors import WrongUsage
from streaming.number_of import number_of

app = typer.Typer(help="What a flow remembers on its target: sign it, or start over.", no_args_is_help=True)

YesFlag = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@app.command()
def sign(config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None, yes: YesFlag = False) -> None:
    """Shows what the ledger holds, and signs all of it with `lockstep.ledger.secret`: it is trusted from then on."""
    settings = loaded(config, flow)
    for one in settings.flows:
        if not one.safety.ledger_secret:
            raise WrongUsage(f"{one.flow.name}: set lockstep.ledger.secret in {config} first")
    for one in settings.flows:
        _sign(one, config, yes)


def _sign(one: FlowSettings, config: ConfigOption, yes: bool) -> None:
    settings = loaded(config, [one.flow.name])
    with both_clusters(settings, one) as clusters:
        guard(one, clusters.source, clusters.target).check_ids()
        topic, seal = one.internal.ledger, Seal(one.flow.name, one.safety.ledger_secret)
        records = newest_records(clusters.target.read_log(topic), seal)
        signed = lacking_signature(records, seal)
        if not signed:
            print_line(f"{one.flow.name}: {number_of(len(records), 'record')} of {topic}, all signed already")
            return
        print_table(f"{one.flow.name}: {topic}", ("entry", "key", "value"), _rows(signed))
        if not (
            yes or typer.confirm(f"Have you checked them? Sign {number_of(len(signed), 'record')} of {one.flow.name}?")
        ):
            raise typer.Exit(FAILED)
        now = milliseconds(utc_now())
        clusters.target.append_log(topic, [(record.key, seal.wrap(record.key, record.data, now)) for record in signed])
        print_line(f"{one.flow.name}: {number_of(len(signed), 'record is', 'records are')} signed")


def _rows(records: Iterable[Raw]) -> list[tuple[str, str, str]]:
    return [record.row() for record in records]


@app.command()
def reset(config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None, yes: YesFlag = False) -> None:
    """Forgets here which clusters a flow was seen with, after one was replaced or its ledger deleted on purpose.

    Writes to no cluster: the ledger on the target, if there is one, still says which clusters it is about.
    """
    settings = loaded(config, flow)
    for one in settings.flows:
        path = one.safety.pins
        pins = PinFile(path, create=False).of(one.flow) if path else None
        if path is None or pins is None:
            print_line(f"{one.flow.name}: nothing is kept in {path}")
            continue
        print_line(f"{one.flow.name}: {path} knows the ledger {pins.ledger}, and these clusters:")
        for alias, cluster_id in sorted(pins.ids.items()):
            print_line(f"  {alias}: {cluster_id}")
        if not (yes or typer.confirm("Forget them, and take the clusters that the addresses lead to now?")):
            raise typer.Exit(FAILED)
        PinFile(path, create=True).keep(one.flow, None)
        print_line(f"{one.flow.name}: forgotten; the next start of the job pins the clusters again")
