"""`lockstep rights` prints the commands that grant the job's rights. `validate --rights` reports the missing ones."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import groupby
from typing import Annotated, Any

import typer

from app.cli.output import DONE, Output, print_json, print_line, print_table
from app.cli.shared_options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, loaded
from app.rights.flow_rights import EVERY, Right, drill_rights, failover_rights, rights_of_flow, unnamed_copies
from app.rights.rights_check import RightFinding, RightVerdict
from app.settings import Settings
from app.wiring import FlowClusters
from sinks.faults import NotSupported, RightsMissing
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.acl_binding import LITERAL, PREFIXED, TOPIC, WILDCARD, AclBinding
from sinks.model.changes import ALLOW
from streaming.errors import WrongUsage

ADMIN_FILE = "admin.properties"
"""Name, in the printed commands, of the file with the client settings of an operator who may grant rights."""

PrincipalOption = Annotated[str, typer.Option("--principal", help="The principal as ACLs name it, e.g. User:lockstep.")]


def rights(
    principal: PrincipalOption,
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    failover: Annotated[
        bool, typer.Option("--failover", help="Also print the rights for the failover commands and `drill`.")
    ] = False,
) -> None:
    """Prints the commands that grant a principal the least rights that the job needs; connects to nothing."""
    kind, colon, name = principal.partition(":")
    if not kind or not colon or not name:
        raise WrongUsage(f"--principal {principal}: write it as ACLs do, TYPE:NAME, e.g. User:lockstep")
    settings = loaded(config, flow)
    if output is Output.JSON:
        print_json({"flows": [_document(one, failover) for one in settings.flows]})
    else:
        for line in commands(settings, principal, failover=failover):
            print_line(line)
    raise typer.Exit(DONE)


def _document(flow: FlowSettings, failover: bool) -> dict[str, Any]:
    return {
        **flow.flow.as_json(),
        "rights": [asdict(right) for right in _of(flow, failover)],
        "notes": unnamed_copies(flow) if failover else [],
    }


def _of(flow: FlowSettings, failover: bool) -> list[Right]:
    more = (*failover_rights(flow), *drill_rights(flow)) if failover else ()
    return sorted({*rights_of_flow(flow), *more})


def commands(settings: Settings, principal: str, *, failover: bool = False) -> list[str]:
    """Returns a `kafka-acls.sh` script: a command for each resource, reasons as comments, optional rights last."""
    found = {right for flow in settings.flows for right in _of(flow, failover)}
    required = {_grant(right) for right in found if not right.optional}
    lines = []
    for alias, group in groupby(sorted(found), lambda right: right.cluster):
        rows = list(group)
        bootstrap = settings.clusters[alias].bootstrap_servers
        lines += ["", f"# cluster {alias}; {ADMIN_FILE}: the client settings of someone who may alter its ACLs"]
        lines += _of_cluster([right for right in rows if not right.optional], bootstrap, principal)
        extra = [right for right in rows if right.optional and _grant(right) not in required]
        # No command, because the script must not grant it on every topic.
        notes = [
            f"# {note}"
            for flow in settings.flows
            if failover and flow.flow.target == alias
            for note in unnamed_copies(flow)
        ]
        if extra or notes:
            lines += ["# optional: it works without", *_of_cluster(extra, bootstrap, principal), *notes]
    return lines[1:]


def _grant(right: Right) -> tuple[str, ...]:
    return right.cluster, right.resource_type, right.resource_name, right.pattern_type, right.operation


def _of_cluster(rights: Iterable[Right], bootstrap: str, principal: str) -> list[str]:
    lines = []
    for grant, group in groupby(rights, lambda right: _grant(right)[1:-1]):
        rows = list(group)
        operations = dict.fromkeys(right.operation for right in rows)
        lines.append(f"# {'; '.join(dict.fromkeys(right.why for right in rows))}")
        words = ["kafka-acls.sh", "--bootstrap-server", bootstrap, "--command-config", ADMIN_FILE, "--add"]
        words += ["--allow-principal", principal]
        # `DescribeConfigs`, as the tool's own help has it.
        words += [word for name in operations for word in ("--operation", name.title().replace("_", ""))]
        lines.append(shlex.join([*words, *_resource(*grant)]))
    return lines


RESOURCE_OPTIONS = {"TOPIC": "--topic", "GROUP": "--group", "TRANSACTIONAL_ID": "--transactional-id"}
"""Option of `kafka-acls.sh` by resource type."""


def _resource(resource_type: str, name: str, pattern: str) -> list[str]:
    if resource_type == "CLUSTER":
        return ["--cluster"]
    prefixed = ["--resource-pattern-type", "prefixed"] if pattern == PREFIXED else []
    return [RESOURCE_OPTIONS[resource_type], name, *prefixed]


def who_writes_ledger(flow: FlowSettings, clusters: FlowClusters) -> dict[str, Any]:
    """Returns who may write the flow's ledger by the target's ACLs. `writers` is None if the ACLs cannot be read."""
    topic, signed = flow.internal.ledger, flow.safety.ledger_secret is not None
    try:
        writers: list[str] | None = ledger_writers(topic, clusters.target.acls.describe())
        reason = ""
    except (NotSupported, RightsMissing) as error:
        writers, reason = None, str(error)
    return {"topic": topic, "signed": signed, "writers": writers, "reason": reason}


def ledger_line(row: Mapping[str, Any]) -> str:
    who = f"not known: {row['reason']}" if row["writers"] is None else ", ".join(row["writers"]) or "super users alone"
    signed = "signed" if row["signed"] else "not signed: set lockstep.ledger.secret, or let no other principal write it"
    return f"  may write or delete {row['topic']}: {who}; its entries are {signed}"


def as_json(finding: RightFinding) -> dict[str, Any]:
    """Returns a finding as `validate --rights -o json` shows it."""
    return {**asdict(finding.right), "verdict": finding.verdict.value, "reason": finding.reason}


def print_rights(rows: Iterable[Mapping[str, Any]]) -> None:
    table = [(row["cluster"], row["operation"], _shown(row), _said(row), row["why"]) for row in rows]
    print_table("", ("cluster", "operation", "on", "right", "needed because it"), table)


def _shown(row: Mapping[str, Any]) -> str:
    if row["resource_type"] == "CLUSTER":
        return "the cluster"
    if row["resource_type"] == "GROUP":
        return "every consumer group"
    prefixed = "topics that begin with " if row["pattern_type"] == "PREFIXED" else "topic "
    return "every replicated topic" if row["resource_name"] == EVERY else prefixed + str(row["resource_name"])


def _said(row: Mapping[str, Any]) -> str:
    optional = ", but optional" if row["optional"] and row["verdict"] == RightVerdict.MISSING.value else ""
    return f"{row['verdict']}{optional}" + (f": {row['reason']}" if row["reason"] else "")


WRITING = frozenset({"ALL", "WRITE", "ALTER", "ALTER_CONFIGS", "DELETE"})
"""Operations with which a principal can change or delete the ledger."""


def ledger_writers(topic: str, bindings: Iterable[AclBinding]) -> list[str]:
    """Returns the principals that an ALLOW lets write the topic, sorted. Ignores any DENY.

    Super users may write it too, and clients cannot list them.
    """
    return sorted({acl.principal for acl in bindings if _writes(acl, topic)})


def _writes(acl: AclBinding, topic: str) -> bool:
    covers = (acl.pattern_type == LITERAL and acl.resource_name in (topic, WILDCARD)) or (
        acl.pattern_type == PREFIXED and topic.startswith(acl.resource_name)
    )
    return acl.resource_type == TOPIC and acl.permission == ALLOW and acl.operation in WRITING and covers
