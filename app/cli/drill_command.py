"""`lockstep drill`: fails over a topic of its own and compares the outcome with the prediction."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Annotated

import typer

from app.cli.failover_run import DryRunOption, OneFlowOption, one_flow, spoken
from app.cli.output import DONE, PENDING, Output, print_json, print_line, print_table
from app.cli.shared_options import DEFAULT_CONFIG, ConfigOption, OutputOption, seconds, whole
from app.failover_session import FailoverCall, failover_session
from app.rights.flow_rights import rights_on_names
from app.rights.rights_check import RightVerdict, check_rights
from app.settings import Settings
from app.single_pass import group_offsets_now
from app.wiring import both_clusters
from sinks.failover.drill import DRILL_PREFIX, Drill, DrillResult, check_drill_name
from sinks.faults import RightsMissing
from sinks.model.registry import On

TopicOption = Annotated[str | None, typer.Option("--topic", help="Name of the drill's topic; `topics` must match it.")]
RecordsOption = Annotated[
    int, typer.Option("--records", parser=whole(10, 100_000), help="Records in each half of the drill; 10 to 100000.")
]
WithinOption = Annotated[
    float, typer.Option("--within", parser=seconds, help="Seconds in which MM2 must copy each half.")
]


def drill(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: OneFlowOption = None,
    output: OutputOption = Output.TEXT,
    topic: TopicOption = None,
    records: RecordsOption = 1000,
    within: WithinOption = 900.0,
    dry: DryRunOption = False,
) -> None:
    """Fails over a topic of its own, then deletes it. Exit 3: the outcome differs from the prediction."""
    settings, chosen = one_flow(config, flow)
    name = f"{DRILL_PREFIX}{secrets.token_hex(4)}" if topic is None else topic
    check_drill_name(chosen, name)
    call = FailoverCall("drill")
    with failover_session(settings, chosen, call if dry else spoken(call, chosen), writes=not dry) as scene:
        rows = partial(group_offsets_now, settings, chosen)
        made = Drill(scene, name, rows, records, within)
        made.check()
        _check_rights(settings, made)
        if dry:
            _foretell(made, output)
            return
        result = made.run()
    document = chosen.flow.as_json() | result.as_json()
    if output is Output.JSON:
        print_json({"flows": [document]})
    else:
        print_table(f"{chosen.flow.name}: drill on {name}", ("", "predicted", "measured"), _rows(result))
        print_line("as predicted" if result.agrees else "not as predicted")
    raise typer.Exit(DONE if result.agrees else PENDING)


def _check_rights(settings: Settings, made: Drill) -> None:
    """Raises RightsMissing for rights that the clusters report as missing. A drill that stops halfway leaves topics
    behind.

    Brokers do not report READ, WRITE and DELETE on a topic that does not exist. The drill itself finds out.
    """
    flow = made.scene.settings
    names = {On.DRILL_TOPIC: (made.topic,), On.DRILL_COPY: (made.there.topic,), On.DRILL_GROUPS: made.groups}
    with both_clusters(settings, flow) as clusters:
        findings = check_rights(flow, clusters, rights_on_names(flow, names))
    missing = [one.right for one in findings if one.verdict is RightVerdict.MISSING]
    if missing:
        said = [f"{one.operation} on {one.resource_type} {one.resource_name} of {one.cluster}" for one in missing]
        raise RightsMissing(
            f"the drill would be refused, since rights are missing: {', '.join(said)}. Nothing was written. "
            "`lockstep rights --failover` prints what grants them"
        )


def _foretell(made: Drill, output: Output) -> None:
    flow, copy = made.scene.settings.flow, made.there.topic
    if output is Output.JSON:
        rows = [{"command": "drill", "step": step, "does": does} for step, does in made.steps().items()]
        named = {"topic": made.topic, "copy": copy, "records": 2 * made.records}
        print_json({"flows": [flow.as_json() | named | {"would_do": rows}]})
        return
    print_line(
        f"{flow.name}: it would create the topic {made.topic} on {flow.source}, write {2 * made.records} records and "
        f"two groups' offsets, fence it, and delete it and its copy {copy} on {flow.target}"
    )


def _rows(result: DrillResult) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [("records lost", result.predicted, result.measured)]
    for one in result.groups:
        rows.append((f"{one.group}: read twice", f"at most {one.predicted}", one.read_twice))
        rows.append((f"{one.group}: skipped", 0, one.skipped))
    stops = {None: "no authorizer", True: "yes", False: "no: this principal is a super user"}
    rows.append(("the fence stops this principal", "-", stops[result.fenced]))
    return [*rows, *((f"seconds: {name}", "-", f"{seconds:.1f}") for name, seconds in result.seconds.items())]
