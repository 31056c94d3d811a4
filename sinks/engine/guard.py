"""Two clusters, and always the same two: ids are pinned at first contact, and one cluster is no flow."""

from __future__ import annotations

from sinks.engine.ledger import EntryKey, Ledger
from sinks.faults import WrongCluster
from sinks.kafka.ports.cluster import Reader
from streaming.flow import Flow


class Guard:
    """Checks the cluster ids of a flow before anything is written."""

    def __init__(self, flow: Flow, source: Reader, target: Reader) -> None:
        self._flow, self._source, self._target = flow, source, target

    def check(self, ledger: Ledger) -> None:
        """Pins ids not seen before. Raises WrongCluster when an id is not the one pinned, or both are one."""
        ledger.put(self.compare(ledger))

    def compare(self, ledger: Ledger) -> dict[EntryKey, str | None]:
        """Like `check`, but writes nothing: returns the entries that a first contact would pin."""
        ids = {self._flow.source: self._source.cluster_id(), self._flow.target: self._target.cluster_id()}
        if len(set(ids.values())) == 1:
            raise WrongCluster(
                f"{self._flow.name}: {self._flow.source}.bootstrap.servers and {self._flow.target}.bootstrap.servers "
                f"lead to one cluster, {ids[self._flow.target]}: a flow needs two"
            )
        places = {alias: ledger.check_cluster_id(alias, cluster_id) for alias, cluster_id in ids.items()}
        return {place: ids[alias] for alias, place in places.items() if place is not None}
