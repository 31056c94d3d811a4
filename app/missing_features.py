"""What brokers of an older version, or another mode, lack: found out by asking, and said by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, Final

from sinks.faults import IncrementalUnsupported, NotSupported
from sinks.flow_settings import FlowSettings, Incremental
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.config_levels import ConfigEntity, ResourceType
from sinks.kinds.quotas.controller import PORT
from sinks.kinds.quotas.jvm_quotas import JvmQuotas
from sinks.kinds.quotas.quota_port import ClientQuotas, QuotaReader
from sinks.kinds.topics.config_writer import REPLACES
from sinks.model.changes import Kind
from streaming.errors import LockstepError

NOBODY: Final = "lockstep-validate"
"""A name that need not exist: what is asked of it tells whether the request is known."""

NO_IDS = "{} tells no topic ids (Kafka 2.8): that a topic was deleted and created again is not noticed for certain"
NO_NAMES = "{} cannot name open transactions (Kafka 3.0): a fence waits for them, and --abort-transactions ends none"
NO_INCREMENTAL = "{} has no IncrementalAlterConfigs (Kafka 2.3): {} is not written there"
NO_SIGNAL = (
    "{} tells no metadata-change signal (KRaft brokers do): topics are polled in turns, and a change is noticed later"
)

Look = Callable[[], object]


def missing_features(
    flow: FlowSettings, source: ClusterPorts, target: ClusterPorts, signals: Callable[[], bool]
) -> list[str]:
    """A sentence for each feature that an enabled kind, or a failover, would use and a cluster does not have.

    `signals`: whether the source tells a metadata-change signal. What cannot be asked now is left out: its own command
    says why.
    """
    found = [*_of_kinds(flow, (source, target)), *_of_configs(flow, target)]
    for side in (source, target):
        found += _lacks(lambda side=side: _has_ids(side), NO_IDS.format(side.alias))  # type: ignore[misc]  # bound
    found += _lacks(lambda: _has_names(source), NO_NAMES.format(source.alias))
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
    with closing(source.transactions()) as transactions:
        try:
            transactions.coordinated([0])
        except NotSupported:
            return False
    return True


def _of_kinds(flow: FlowSettings, sides: Sequence[ClusterPorts]) -> Iterator[str]:
    for side in sides:
        looks: dict[Kind, Look] = {
            Kind.ACL: side.acls.describe,
            Kind.SCRAM_USER: lambda side=side: side.users.describe([NOBODY]),  # type: ignore[misc]  # bound
            Kind.CLIENT_QUOTA: lambda side=side: _quotas(side),  # type: ignore[misc]  # bound
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
    opened: ClientQuotas = side.port(PORT, JvmQuotas, QuotaReader)
    with closing(opened) as quotas:
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
    """Asks to have a change validated, of a topic that is not there: nothing is written."""
    with closing(target.levels()) as levels:
        try:
            levels.alter({ConfigEntity(ResourceType.TOPIC, NOBODY): {"retention.ms": None}}, validate_only=True)
        except IncrementalUnsupported:
            return False
        except LockstepError:
            return True
    return True
