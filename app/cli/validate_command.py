"""`lockstep validate`: checks the file, that the clusters answer, and that MM2's topics exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from app.cli.failures import Failed, failure_of, with_failures
from app.cli.output import DONE, FAILED, Output, complain, print_json, print_line, print_table
from app.cli.rights_command import as_json, ledger_line, print_rights, who_writes_ledger
from app.cli.shared_options import DEFAULT_CONFIG, ConfigOption, FlowOption, OutputOption, with_overrides
from app.rights.rights_check import RightVerdict, check_rights
from app.settings import ConfigurationError, Mistake, Settings
from app.wiring import FlowClusters, both_clusters, client_mistakes, guard, ledger, with_ledger_in_use
from sinks.every_kind.listing import Listed
from sinks.faults import IncrementalUnsupported, NotSupported, RightsMissing
from sinks.flow_settings import FlowSettings, Incremental
from sinks.kafka.jvm.metadata_signal import follows_metadata_log
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.config_levels import ConfigEntity, ResourceType
from sinks.kinds.desired_topics import desired_topics, internal_topic_warnings
from sinks.kinds.file_warnings import file_warnings, unmatched_groups
from sinks.kinds.quotas.controller import PORT
from sinks.kinds.quotas.jvm_quotas import JvmQuotas
from sinks.kinds.quotas.quota_port import ClientQuotas, QuotaReader
from sinks.kinds.topics.writer import REPLACES
from sinks.model.changes import Kind
from streaming.errors import LockstepError

RightsOption = Annotated[
    bool, typer.Option("--rights", help="Also check which of the job's rights are missing on the clusters.")
]


def validate(
    config: ConfigOption = DEFAULT_CONFIG,
    flow: FlowOption = None,
    output: OutputOption = Output.TEXT,
    rights: RightsOption = False,
) -> None:
    """Checks the file and both clusters of each flow. Writes nothing."""
    try:
        settings = with_overrides(config, flow)
    except ConfigurationError as error:
        if output is Output.JSON:
            warned = [_mistake(row) for row in error.warnings]
            document = {"flows": [], "warnings": warned, "errors": [_mistake(row) for row in error.mistakes]}
            # What its remedy says, to run `validate`, is done.
            print_json(document | {"error": asdict(replace(failure_of(error), remedy=None))})
        raise
    warnings = [*settings.warnings]
    flows, failed = _seen(settings, config, warnings, rights=rights)
    lacking = [lack for row in flows for lack in _lacking(row)]
    errors = [{"key": name, "line": None, "message": str(error)} for name, error in failed] + lacking
    failed += [(lack["key"], RightsMissing(lack["message"])) for lack in lacking]
    if output is Output.JSON:
        warned = [_mistake(row) for row in warnings]
        print_json(with_failures({"flows": flows, "warnings": warned, "errors": errors}, failed))
    else:
        for row in flows:
            _print_flow(row)
        for warning in warnings:
            complain(f"warning: {warning}")
    for problem in errors:
        complain(f"{problem['key']}: {problem['message']}")
    raise typer.Exit(FAILED if errors else DONE)


def _seen(
    settings: Settings, config: Path, warnings: list[Mistake], *, rights: bool
) -> tuple[list[dict[str, Any]], list[Failed]]:
    """Returns a row for each flow that answers, and the errors of the others, each once. Adds to `warnings`."""
    flows: list[dict[str, Any]] = []
    failed: list[Failed] = []
    for one in settings.flows:
        try:
            with both_clusters(settings, one) as clusters:
                guard(one, clusters.source, clusters.target).ids()
                flows.append(_rights(settings, one, clusters) if rights else _survey(one, clusters))
                warnings += [Mistake(str(config), None, one.flow.name, text) for text in _said_of_names(one, clusters)]
        except LockstepError as error:
            found = [*client_mistakes(settings, one), error]
            said = {str(mistake) for _, mistake in failed}
            new = {str(mistake): mistake for mistake in found if str(mistake) not in said}
            failed += [(one.flow.name, mistake) for mistake in new.values()]
    return flows, failed


def _said_of_names(flow: FlowSettings, clusters: FlowClusters) -> list[str]:
    """Returns warnings about the source's topics and groups, and about names in the file."""
    topics = clusters.source.list_topics()
    listed = Listed(topics, clusters.target.list_topics(), desired_topics(topics, flow))
    said = [*internal_topic_warnings(topics, flow), *file_warnings(flow, listed)]
    said += missing_features(flow, *clusters.ports, partial(follows_metadata_log, clusters.source.admin))
    # Groups that may not be seen are the job's trouble, and that of `--rights`.
    with suppress(LockstepError):
        said += unmatched_groups(flow, clusters.source.groups.names)
    return said


def _mistake(mistake: Mistake) -> dict[str, Any]:
    return {"key": mistake.key, "line": mistake.line, "message": mistake.message}


def _rights(settings: Settings, flow: FlowSettings, clusters: FlowClusters) -> dict[str, Any]:
    """Returns a flow's row with its rights. If a required right is missing, the row has only rights."""
    flow = with_ledger_in_use(flow, clusters.target)
    found = [as_json(finding) for finding in check_rights(flow, clusters)]
    also = {"ledger": who_writes_ledger(flow, clusters)}
    if any(row["verdict"] == RightVerdict.MISSING.value and not row["optional"] for row in found):
        return {**flow.flow.as_json(), "rights": found, **also}
    return {**_survey(flow, clusters), "rights": found, **also}


def _lacking(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    name = f"{row['source']}->{row['target']}"
    return [
        {
            "key": name,
            "line": None,
            "message": f"cluster {right['cluster']}: {right['operation']} on {right['resource_type']} "
            f"{right['resource_name']} ({right['pattern_type']}) is missing; `lockstep rights --principal ...` prints "
            "what grants it",
        }
        for right in row.get("rights", ())
        if right["verdict"] == RightVerdict.MISSING.value and not right["optional"]
    ]


def _survey(flow: FlowSettings, clusters: FlowClusters) -> dict[str, Any]:
    ids = {flow.flow.source: clusters.source.cluster_id(), flow.flow.target: clusters.target.cluster_id()}
    guard(flow, clusters.source, clusters.target).open(partial(ledger, flow, clusters.target, to_write=False))
    topics = {flow.flow.source: clusters.source.list_topics(), flow.flow.target: clusters.target.list_topics()}
    internal = flow.internal
    internal_topics = {
        "heartbeats": (internal.heartbeats, flow.flow.target),
        "checkpoints": (internal.checkpoints, flow.flow.target),
        "offset_syncs": (internal.offset_syncs, internal.offset_syncs_cluster),
    }
    return {
        **flow.flow.as_json(),
        "source_cluster_id": ids[flow.flow.source],
        "target_cluster_id": ids[flow.flow.target],
        "internal_topics": {
            what: {"name": name, "cluster": alias, "exists": name in topics[alias]}
            for what, (name, alias) in internal_topics.items()
            if flow.told_in
        },
        "enabled": {kind.value: enabled for kind, enabled in flow.enabled.items()},
    }


def _print_flow(row: Mapping[str, Any]) -> None:
    print_line(f"{row['source']}->{row['target']}")
    if "rights" in row:
        print_rights(row["rights"])
        print_line(ledger_line(row["ledger"]))
    if "internal_topics" not in row:
        return
    print_line(f"  {row['source']}: cluster id {row['source_cluster_id']}")
    print_line(f"  {row['target']}: cluster id {row['target_cluster_id']}")
    rows = [
        (what, topic["name"], topic["cluster"], "yes" if topic["exists"] else "no: MM2 has not made it yet")
        for what, topic in row["internal_topics"].items()
    ]
    if rows:
        print_table("", ("internal topic", "name", "on", "exists"), rows)
    print_table("", ("kind", "enabled"), [(kind, "yes" if on else "no") for kind, on in row["enabled"].items()])


# What brokers of an older version, or another mode, lack: found out by asking, and said by name.


NOBODY: Final = "lockstep-validate"
"""A name that need not exist. The answer shows whether the broker supports the request."""

NO_IDS = "{} tells no topic ids (Kafka 2.8): that a topic was deleted and created again is not noticed for certain"
NO_NAMES = "{} cannot name open transactions (Kafka 3.0): a fence waits for them, and --abort-transactions ends none"
NO_INCREMENTAL = "{} has no IncrementalAlterConfigs (Kafka 2.3): {} is not written there"
NO_SIGNAL = (
    "{} tells no metadata-change signal (KRaft brokers do): topics are polled in turns, and a change is noticed later"
)


def missing_features(
    flow: FlowSettings, source: ClusterPorts, target: ClusterPorts, signals: Callable[[], bool]
) -> list[str]:
    """Returns a sentence for each feature that an enabled kind or a failover would use and a cluster lacks.

    `signals`: whether the source provides a metadata-change signal. A feature that cannot be checked now is left out:
    the command that needs it reports it.
    """
    found = [*_of_kinds(flow, (source, target)), *_of_configs(flow, target)]
    for side in (source, target):
        found += _lacks(partial(_has_ids, side), NO_IDS.format(side.alias))
    found += _lacks(partial(_has_names, source), NO_NAMES.format(source.alias))
    return [*found, *_lacks(signals, NO_SIGNAL.format(source.alias))]


def _lacks(has: Callable[[], bool], sentence: str) -> list[str]:
    try:
        return [] if has() else [sentence]
    except LockstepError:
        return []


def _has_ids(side: ClusterPorts) -> bool:
    some = list(side.cluster.list_topics())[:1]
    return all(side.cluster.topic_ids(some).values())


def _has_names(source: ClusterPorts) -> bool:
    try:
        source.transactions.coordinated([0])
    except NotSupported:
        return False
    return True


def _of_kinds(flow: FlowSettings, sides: Sequence[ClusterPorts]) -> Iterator[str]:
    for side in sides:
        looks: dict[Kind, Callable[[], object]] = {
            Kind.ACL: side.acls.describe,
            Kind.SCRAM_USER: partial(side.users.describe, [NOBODY]),
            Kind.CLIENT_QUOTA: partial(_quotas, side),
        }
        for kind, look in looks.items():
            if flow.enabled[kind]:
                try:
                    look()
                except NotSupported as error:
                    yield f"{kind.value} is not kept in step: {error}"
                except LockstepError:
                    continue


def _quotas(side: ClusterPorts) -> Any:
    quotas: ClientQuotas = side.port(PORT, JvmQuotas, QuotaReader)
    return quotas.describe()


def _of_configs(flow: FlowSettings, target: ClusterPorts) -> Iterator[str]:
    kinds = [kind for kind in (Kind.TOPIC_CONFIG, Kind.BROKER_CONFIG) if flow.enabled[kind]]
    if not kinds or _is_incremental(target):
        return
    for kind in kinds:
        if kind is Kind.TOPIC_CONFIG and flow.incremental is not Incremental.REQUIRED:
            yield REPLACES.format(f"{target.alias} has no IncrementalAlterConfigs", target.alias)
        else:
            yield NO_INCREMENTAL.format(target.alias, kind.value)


def _is_incremental(target: ClusterPorts) -> bool:
    """Asks the target to validate a change of a topic that does not exist, so that nothing is written."""
    try:
        target.levels.alter({ConfigEntity(ResourceType.TOPIC, NOBODY): {"retention.ms": None}}, validate_only=True)
    except IncrementalUnsupported:
        return False
    except LockstepError:
        return True
    return True
