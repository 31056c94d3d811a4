"""`lockstep ledger`: signs, acknowledges or resets a flow's stored state after an operator has checked it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated

import orjson
import typer

from app.cli.failures import unaudited_at_worst
from app.cli.output import complain, print_line, print_table
from app.cli.shared_options import DEFAULT_CONFIG, ConfigOption, FlowOption, YesOption, loaded
from app.wiring import FlowClusters, audit, both_clusters, guard, ledger_on_target, with_ledger_in_use
from sinks.failover.lost_before_copying import (
    LostRecords,
    acknowledged_as_shown,
    by_topic,
    entries_of,
    kept_lost,
    lost_by_now,
    unacknowledged,
)
from sinks.faults import ClusterUnreachable
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Record
from sinks.kinds.shared_listings import list_both
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import ENTRY_SCHEMA, HISTORY_KEY, Entry
from sinks.ledger.pins import PinFile
from sinks.ledger.seal import TOLERATED_MS, Seal, unsealed
from sinks.model.changes import compact_json
from sinks.model.times import milliseconds, utc_now, utc_text
from streaming.errors import LockstepError, WrongUsage
from streaming.message_words import number_of

app = typer.Typer(
    help="Signs the ledger that a flow keeps on its target, acknowledges a loss, or starts over.", no_args_is_help=True
)


@app.command()
def sign(config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None, yes: YesOption = False) -> None:
    """Shows all records of the ledger and signs them with `lockstep.ledger.secret`: Lockstep trusts them from then
    on."""
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
        topic = with_ledger_in_use(one, clusters.target).internal.ledger
        seal = Seal(one.flow.name, one.safety.ledger_secret)
        records = newest_records(clusters.target.read_log(topic), seal)
        signed = lacking_signature(records, seal)
        if not signed:
            print_line(f"{one.flow.name}: {number_of(len(records), 'record')} of {topic}, all signed already")
            return
        print_table(f"{one.flow.name}: {topic}", ("entry", "key", "value"), [record.row() for record in signed])
        if not yes:
            count = number_of(len(signed), "record")
            typer.confirm(f"Have you checked them? Sign {count} of {one.flow.name}?", abort=True, err=True)
        now = milliseconds(utc_now())
        clusters.target.append_log(topic, [(record.key, seal.wrap(record.key, record.data, now)) for record in signed])
        print_line(f"{one.flow.name}: {number_of(len(signed), 'record is', 'records are')} signed")


@app.command()
def acknowledge(
    topics: Annotated[
        list[str] | None, typer.Argument(help="Topics of the source. Default: all that lost records.")
    ] = None,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    yes: YesOption = False,
) -> None:
    """Shows the records that were lost before MM2 copied them, and stops reporting them.

    Retention deleted these records, or a log lost its tail. Later losses are reported again.
    """
    settings = loaded(config, flow)
    for one in settings.flows:
        with both_clusters(settings, one) as clusters:
            opened = ledger_on_target(one, clusters)
            before, lost = kept_lost(opened), _lost(one, clusters, opened)
            found = [of for of in by_topic(unacknowledged(lost)) if not topics or of.topic in topics]
            if not found:
                print_line(f"{one.flow.name}: nothing to acknowledge")
                continue
            rows = [(of.topic, of.records, of.unknown or None, utc_text(of.since)) for of in found]
            columns = ("topic", "records, at most", "partitions not known", "found")
            print_table(f"{one.flow.name}: lost before copying", columns, rows)
            if not yes:
                typer.confirm(f"Acknowledge this loss of {number_of(len(found), 'topic')}?", abort=True, err=True)
            opened.catch_up()
            agreed = acknowledged_as_shown(lost, before, kept_lost(opened), {of.topic for of in found})
            opened.put(entries_of(agreed))
            with unaudited_at_worst(one.flow.name), closing(audit(one, clusters.target)) as events:
                for of in found:
                    told = f"LOST BEFORE COPYING: at most {of.records}"
                    events.record_failover(one.flow, ("acknowledge", of.topic), told, "acknowledged")
            print_line(f"{one.flow.name}: acknowledged; a running job follows with its next full comparison")
            changed = sorted({where.topic for where in unacknowledged(agreed)})
            if changed:
                complain(
                    f"{one.flow.name}: {', '.join(changed)}: more losses were found meanwhile; acknowledge them too"
                )


def _lost(flow: FlowSettings, clusters: FlowClusters, opened: Ledger) -> LostRecords:
    """Returns the records that are lost by now. If the source does not answer: the losses that a job wrote to the
    ledger."""
    here, there = clusters.ports
    try:
        with closing(here.records(flow.isolation)) as source, closing(there.records("read_committed")) as target:
            remote = list_both(flow, clusters.source, clusters.target).desired.remote
            return lost_by_now(opened, source, target, remote, milliseconds(utc_now()))
    except ClusterUnreachable as error:
        complain(f"{flow.flow.name}: shows only losses that a job has found: {error}")
        return kept_lost(opened)


@app.command()
def reset(config: ConfigOption = DEFAULT_CONFIG, flow: FlowOption = None, yes: YesOption = False) -> None:
    """Forgets which clusters a flow was seen with, after a cluster was replaced or its ledger deleted on purpose.

    Writes only a local file. A ledger on the target still has the ids of its clusters.
    """
    settings = loaded(config, flow)
    for one in settings.flows:
        path = one.safety.pins
        pins = PinFile(path, create=False).of(one.flow) if path else None
        if path is None or pins is None:
            print_line(f"{one.flow.name}: {path} has nothing about this flow")
            continue
        print_line(f"{one.flow.name}: {path} knows the ledger {pins.ledger}, and these clusters:")
        for alias, cluster_id in sorted(pins.ids.items()):
            print_line(f"  {alias}: {cluster_id}")
        if not yes:
            question = "Forget them, and accept the clusters that the addresses lead to now?"
            typer.confirm(question, abort=True, err=True)
        PinFile(path, create=True).keep(one.flow, None)
        print_line(f"{one.flow.name}: forgotten; the next start of the job pins the clusters again")


# A ledger's records as they are, trusted or not, and which of them lack the signature of a secret. Pure.


DAMAGED = "(cannot be read)"


@dataclass(frozen=True, slots=True)
class Raw:
    """A record of the ledger. `value`: as stored in the topic. `data`: without a signature."""

    key: bytes
    value: bytes | None
    data: bytes | None

    def row(self) -> tuple[str, str, str]:
        """Returns entry, key and value for people. Hides the values of overrides, which may be secrets."""
        try:
            name, *rest = orjson.loads(self.key)
            key = " ".join(map(str, rest))
        except (ValueError, TypeError):
            return DAMAGED, repr(self.key), DAMAGED
        if self.data is None:
            return str(name), key, "(forgotten)"
        if name == HISTORY_KEY:
            return str(name), key, ""
        try:
            value = str(ENTRY_SCHEMA.decode(self.data)["value"])
        except LockstepError:
            value = DAMAGED
        return str(name), key, "(not shown)" if name == Entry.OVERRIDE.value else value


def newest_records(records: Iterable[Record], seal: Seal) -> list[Raw]:
    """What counts of each key, sorted by key: the newest value that was signed, else the newest one. Where that is not
    what the topic has last, `value` is None, so that the record is not accepted as it is."""
    values: dict[bytes, list[bytes | None]] = {}
    for key, value in records:
        values.setdefault(key, []).append(value)
    return [_newest(key, found, seal) for key, found in sorted(values.items())]


def _newest(key: bytes, values: list[bytes | None], seal: Seal) -> Raw:
    last = Raw(key, values[-1], unsealed(values[-1]))
    if not seal.signs:
        return last
    signed_at = {value: seal.newest_at(key, [value]) for value in values}
    signed = [value for value in values if signed_at[value]]
    if not signed:
        # No operator can check what `row` does not show. The job reads MM2's offset-syncs topic instead.
        return Raw(key, None, None) if _is_history(key) else last
    # What is much older than another one was written again.
    newest = max(signed, key=signed_at.__getitem__)
    if signed_at[signed[-1]] >= signed_at[newest] - TOLERATED_MS:
        newest = signed[-1]
    return last if newest == last.value else Raw(key, None, unsealed(newest))


def _is_history(key: bytes) -> bool:
    return key.startswith(compact_json([HISTORY_KEY])[:-1] + b",")


def lacking_signature(records: Iterable[Raw], seal: Seal) -> list[Raw]:
    """Returns the records that the seal refuses as they are."""
    return [record for record in records if not _accepted(record, seal)]


def _accepted(record: Raw, seal: Seal) -> bool:
    try:
        seal.unwrap(record.key, record.value)
    except LockstepError:
        return False
    return True
