"""Writes the brokers' cluster-wide configs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sinks.engine.model import Change, Outcome
from sinks.faults import IncrementalUnsupported, ItemFault
from sinks.kafka.ports.cluster import Faults
from sinks.kafka.ports.config_levels import ConfigEntity, ConfigLevels, ResourceType
from sinks.kinds.topics.config_writer import Values, settle


class BrokerWriter:
    """Writes changes of the kind `broker-config`. An entity is all or nothing, so a refused one is halved."""

    def __init__(self, target: ConfigLevels) -> None:
        self._target = target

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """One outcome for each change. Raises ClusterUnreachable, RightsMissing."""
        wanted: dict[str, Values] = {}
        for change in changes:
            broker, name = change.key
            wanted.setdefault(broker, {})[name] = change.after if isinstance(change.after, str) else None
        faults = settle(wanted, self._alter)
        return [Outcome(change, faults.get((change.key[0], change.key[1]))) for change in changes]

    def _alter(self, wanted: Mapping[str, Values]) -> Faults:
        try:
            faults = self._target.alter(
                {ConfigEntity(ResourceType.BROKER, broker): values for broker, values in wanted.items()}
            )
        except IncrementalUnsupported as error:
            # The old AlterConfigs would erase what it is not given, passwords among it, which nobody can read.
            return dict.fromkeys(wanted, ItemFault("UNSUPPORTED_VERSION", str(error)))
        return {entity.name: fault for entity, fault in faults.items()}
