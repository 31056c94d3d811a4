"""Which topics of ours may be deleted now: data is gone with them, so nothing less than all of this must hold.

- `lockstep.sync.topic.deletes.enabled` asks for it;
- Lockstep created the topic, and it is still the same one, by its id;
- its name says that it is a copy of the source's topic, so that no other source feeds it;
- the source's topic was missing in several listings over a minute (`absence`); for a command, somebody reviews the
  plan;
- a broker of the source, asked for it by name, says UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from collections.abc import Collection

from sinks.engine.model import Kind
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Reader
from sinks.kinds.absence import Absence
from sinks.kinds.controller import PassContext
from streaming.mm2.replication_policy import is_written_by_mm2_alone


class TopicDeletions:
    """Of one flow. `once`: for a command's single pass."""

    def __init__(self, settings: FlowSettings, source: Reader, target: Reader, *, once: bool) -> None:
        self._settings, self._source, self._target, self._once = settings, source, target, once
        self._absence = Absence()

    def poll(self, context: PassContext) -> bool:
        """Notes what is missing; whether a topic may be due for deletion."""
        if not self._settings.topic_deletes:
            return False
        missing = self._upstream(context)
        self._absence.observe(missing.keys(), len(context.listed.source), context.now)
        return bool(self._due(context, missing))

    def _upstream(self, context: PassContext) -> dict[str, str]:
        """Our topics by the names of the source's that the listing lacks."""
        listed, policy, alias = context.listed, self._settings.policy, self._settings.flow.source
        found: dict[str, str] = {}
        for name in context.ledger.owned_ids(Kind.TOPIC):
            upstream = policy.upstream_topic(name)
            if upstream is None or name not in listed.target or name in listed.desired.upstream:
                continue
            if is_written_by_mm2_alone(policy, alias, upstream):
                found[upstream] = name
        return found

    def _due(self, context: PassContext, missing: Collection[str]) -> set[str]:
        if not context.listed.source:
            return set()
        return set(missing) if self._once else self._absence.lasting(context.now) & set(missing)

    def confirmed(self, context: PassContext) -> set[str]:
        """Names on the target of those that may go now, by both clusters' word.

        Raises ClusterUnreachable, RightsMissing.
        """
        if not self._settings.topic_deletes:
            return set()
        missing = self._upstream(context)
        gone = self._source.confirmed_absent(self._due(context, missing))
        names = {missing[upstream] for upstream in gone}
        known, ids = context.ledger.owned_ids(Kind.TOPIC), self._target.topic_ids(names) if names else {}
        return {name for name in names if known.get(name) and ids.get(name) == known[name]}
