"""Prints the status of flows for people: readable in ten seconds, on a narrow terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from app.cli.output import print_line, print_table
from app.cli.plan_text import by_reason
from sinks.engine.verify_status import STALLED
from sinks.kinds.effective import REMEDY
from sinks.ledger.failover_record import ENDED, typed_name
from sinks.model.changes import Kind
from streaming.message_words import number_of

MIRRORING = "MIRRORING"
READY_WORDS = {True: "ready", False: "not ready", None: "not known"}


def print_status(row: Mapping[str, Any]) -> None:
    """Prints a flow of the document of `lockstep status`: its state, its reason, a row for each kind, each reason
    once."""
    age = row["heartbeat_age_seconds"]
    # A flow in ERROR may not have been able to see one.
    none = "heartbeat not known" if row["state"] == "ERROR" else "no heartbeat seen"
    heartbeat = none if age is None else f"newest heartbeat {age} s old"
    if row.get("heartbeat_copied") is False:
        heartbeat += ", emitted on the target itself"
    print_line(f"{row['source']}->{row['target']}  {row['state'].replace('_', ' ')}  {heartbeat}")
    if row["reason"]:
        print_line(f"  {row['reason']}")
    if leader := row.get("leader"):
        print_line(f"  led by {leader['client']} on {leader['host']} since {leader['since']}")
    for line in _failover_lines(row.get("failover") or {}, row["reason"]):
        print_line(f"  {line}")
    kinds: Mapping[str, Any] = row["kinds"]
    if kinds:
        cells = [(name, one["task"], _drift(one), one["last_success"]) for name, one in kinds.items()]
        print_table("", ("kind", "task", "drift", "last success"), cells)
    for line in (*_unknown_lines(kinds), *_reason_lines(kinds), *_refused_lines(kinds), *_effective_lines(row)):
        print_line(f"  {line}")
    for line in verify_lines(row.get("verify")):
        print_line(f"  {line}")


def file_lines(file: Mapping[str, Any] | None) -> Iterator[str]:
    """Yields lines that tell whether the running job uses its current file; none if it does."""
    if not file:
        return
    if file["mistakes"]:
        since = f" since {file['rejected_since']}" if file["rejected_since"] else ""
        yield f"FILE REJECTED{since}: the job keeps its earlier settings"
        yield from (f"  {mistake}" for mistake in file["mistakes"])
    for line in file["needs_restart"]:
        yield f"changed in the file, in force after a restart of the job: {line}"


def verify_lines(found: Mapping[str, Any] | None) -> Iterator[str]:
    """Yields lines about the comparison of records, if the job compares them."""
    if not found:
        return
    counts = [f"{count} {verdict}" for verdict, count in found["partitions"].items()]
    through = f"compared through {found['verified_through']}" if found["verified_through"] else None
    history, is_less = found["history_compared"], (found["history_compared"] or 0) < 1
    older = f"{history:.0%} of the history" if history is not None and is_less else None
    parts = [found["state"], ", ".join(counts), through, older]
    yield f"records: {'; '.join(part for part in parts if part)}"
    if found["reason"]:
        yield f"records: {found['reason']}"
    for one in found["topics"]:
        if one["kind"] != STALLED:
            yield f"records differ: {one['count']} {one['kind']} in {one['topic']}"
    if dropped := found.get("differences_without_place"):
        yield f"records differ: the places of {dropped} of them are not stored (`lockstep verify` names them)"
    if found["stalled"]:
        yield f"STALLED, the source moves and the target does not: {', '.join(found['stalled'])}"


def _failover_lines(failover: Mapping[str, Any], said: str | None) -> Iterator[str]:
    """Yields lines about the failover under way, the last preflight and the last drill. `said`: the flow's reason, not
    to be repeated."""
    if "state" in failover and failover["state"] is None:
        reason = failover["reason"]
        yield f"failover: not known{'' if said and reason in said else f': {reason}'}"
    elif failover.get("state", MIRRORING) != MIRRORING or failover.get("doing"):
        half = f", `{typed_name(failover['doing'])}` is half done" if failover["doing"] else ""
        way = f": {failover['remedy']}" if failover.get("remedy") else ""
        yield f"failover: {failover['state']}{half}, by {failover['who']} at {failover['at']}{way}"
    # Once the flow has ended, nothing is at risk any more.
    if (made := failover.get("preflight")) and failover.get("state") not in ENDED:
        yield f"preflight at {made['checked']}: {READY_WORDS[made['ready']]}, {_at_risk(made)}"
        if unchecked := failover.get("not_checked"):
            yield f"whether it could fail over now is not known: {unchecked['reason']}"
    for one in (failover.get("lost_before_copying") or {}).get("topics", ()):
        yield lost_line(one)
    if drill := failover.get("last_drill"):
        yield f"last drill at {drill['at']}: {'as' if drill['agrees'] else 'not as'} predicted"


def lost_line(one: Mapping[str, Any]) -> str:
    """Returns a line about a topic's records that were lost before MM2 copied them."""
    if not one["records"]:
        partitions = number_of(one["partitions_not_known"], "partition")
        return f"whether {one['topic']} lost records before they were copied is not known of {partitions}"
    more = (
        f" (not known of {number_of(one['partitions_not_known'], 'partition')})" if one["partitions_not_known"] else ""
    )
    records = number_of(one["records"], "record")
    return f"LOST BEFORE COPYING: at most {records} of {one['topic']}, found at {one['since']}{more}"


def _at_risk(made: Mapping[str, Any]) -> str:
    loss = made.get("failover_loss")
    if made["trouble"] and loss and loss["source_seen"]:
        known = "not known" if loss["records"] is None else f"at most {number_of(loss['records'], 'record')}"
        return f"{made['trouble']}; a failover loses {known} of those that were seen at {loss['source_seen']}"
    if made["trouble"]:
        return str(made["trouble"])
    if made["records_at_risk"] is None:
        return "how many records are at risk is not known"
    most = "" if made["exact"] else "at most "
    age = f", the oldest {made['seconds_at_risk']} s old" if made["records_at_risk"] else ""
    return f"{most}{number_of(made['records_at_risk'], 'record')} at risk then{age}; later records are not counted"


def _drift(kind: Mapping[str, Any]) -> object:
    if kind["drift"] is None:
        return "-" if kind["task"] in ("DISABLED", "NOT_SUPPORTED") else "unknown"
    return kind["drift"]


def _unknown_lines(kinds: Mapping[str, Any]) -> Iterator[str]:
    found = [(name, one.get("since")) for name, one in kinds.items() if one["task"] == "UNKNOWN"]
    for since in dict.fromkeys(since for _, since in found):
        names = ", ".join(name for name, from_then in found if from_then == since)
        yield f"UNKNOWN{f' since {since}' if since else ''}: {names}"


def _reason_lines(kinds: Mapping[str, Any]) -> Iterator[str]:
    """Yields a line for each reason, with all kinds that have it."""
    for reason, names in by_reason((name, one["reason"]) for name, one in kinds.items() if one["reason"]).items():
        yield f"{names}: {reason}"


def _refused_lines(kinds: Mapping[str, Any]) -> Iterator[str]:
    said = {one["reason"] for one in kinds.values()}
    for name, one in kinds.items():
        for refusal in one["refused"]:
            key = " ".join(str(part) for part in refusal["key"].values() if part is not None)
            # The kind's own reason stands above already.
            reason = "" if refusal["reason"] in said else f": {refusal['reason']}"
            yield f"backed off: {name} {key}{reason}"


def _effective_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """Yields a line for each group of differing configs, and one that counts the remaining configs."""
    drift, groups = row["effective"]["drift"], row["effective"]["configs"]
    for one in groups:
        topics = number_of(one["topics"], "topic")
        where = topics if one["kind"] == Kind.TOPIC_CONFIG else "the brokers"
        values = f"{one['source']} on {row['source']}, {one['target']} on {row['target']}"
        yield f"differs in effect: {one['name']} of {where}: {values}; {REMEDY[Kind(one['kind'])]}"
    if more := (drift or 0) - sum(one["topics"] or 1 for one in groups):
        yield f"and {number_of(more, 'config')} more"
