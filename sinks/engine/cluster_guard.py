"""Checks that source and target are two clusters, and the same two as in the properties file and at first contact.

| known from                                    | knows                                          |
|-----------------------------------------------|------------------------------------------------|
| the properties file, `ALIAS.lockstep.cluster.id` | which cluster is meant, whatever was before |
| the local file (`sinks.ledger.pins`)          | which clusters this machine's job worked with  |
| the ledger on the target                      | which clusters any job worked with             |
| ledgers on either cluster, at first contact   | that source and target are exchanged           |
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial

import orjson

from sinks.background import awaited, begun
from sinks.faults import ClusterUnreachable, LedgerUntrusted, RightsMissing, WrongCluster
from sinks.kafka.ports.cluster import Reader
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import ENTRY_SCHEMA, Entry, EntryKey
from sinks.ledger.pins import PinFile, Pins
from sinks.ledger.seal import unsealed
from streaming.errors import LockstepError
from streaming.flow import Flow
from streaming.mm2.internal_topic_names import former_ledgers

log = logging.getLogger(__name__)

ID_KEY = "lockstep.cluster.id"


class ClusterGuard:
    """Checks the cluster ids of a flow before anything else is read or written."""

    def __init__(
        self,
        flow: Flow,
        source: Reader,
        target: Reader,
        *,
        said: Mapping[str, str] | None = None,
        pins: PinFile | None = None,
        ledgers: Collection[str] = (),
    ) -> None:
        """`said`: cluster ids by alias, from the properties file. `pins`: the local file; None: only the properties
        file and the ledger tell the ids. `ledgers`: names of the flow's ledger and of the reverse flow's."""
        self._flow, self._clusters = flow, {flow.source: source, flow.target: target}
        self._said, self._pins, self._ledgers = said or {}, pins, ledgers
        self._seen: dict[str, str] = {}

    def check_ids(self) -> dict[str, str]:
        """Returns cluster ids by alias, checked. Needs no ledger and writes nothing, so it comes first.

        Raises WrongCluster, LedgerUntrusted (for the local file), ClusterUnreachable (names each cluster that does not
        answer).
        """
        ids = self.ids()
        source, target = self._flow.source, self._flow.target
        if ids[source] == ids[target]:
            raise WrongCluster(
                f"{self._flow.name}: {source}.bootstrap.servers and {target}.bootstrap.servers "
                f"lead to one cluster, {ids[target]}: a flow needs two"
            )
        pins = self._kept
        for alias, found in ids.items():
            self._check_known(alias, found, pins)
        if pins is None and not self._seen:
            self._check_roles(ids)
        return ids

    def ids(self) -> dict[str, str]:
        """Returns cluster ids by alias, unchecked. Raises ClusterUnreachable, which names each cluster that does not
        answer."""
        asked = {alias: begun(one.cluster_id, f"cluster id {alias}") for alias, one in self._clusters.items()}
        ids: dict[str, str] = {}
        silent: list[ClusterUnreachable] = []
        for alias, answer in asked.items():
            try:
                ids[alias] = awaited(answer)
            except ClusterUnreachable as error:
                silent.append(error)
        if len(silent) > 1:
            raise ClusterUnreachable(" ".join(map(str, silent)), both=True)
        if silent:
            raise silent[0]
        return ids

    @property
    def _kept(self) -> Pins | None:
        return self._pins.of(self._flow) if self._pins else None

    def _check_known(self, alias: str, found: str, pins: Pins | None) -> None:
        said = self._said.get(alias)
        pinned = pins.ids.get(alias) if pins else self._seen.get(alias)
        if {said, pinned} <= {None, found}:
            return
        leads = f"{self._flow.name}: {alias}.bootstrap.servers leads to the cluster {found}"
        if said not in (None, found):
            raise WrongCluster(
                f"{leads}, but {alias}.{ID_KEY} says {said}: nothing is written. Mend whichever of the two is wrong"
            )
        where = f" ({self._pins.where})" if self._pins and pins else ""
        raise WrongCluster(
            f"{leads}, but at first contact it led to {pinned}{where}: nothing is written. Mend the address. If "
            f"the cluster {alias} was replaced on purpose, stop the job, delete the topic {self._ledgers_of()} if "
            "the target still has the old one, run `lockstep ledger reset`, and start the job"
        )

    def _ledgers_of(self) -> str:
        return next(iter(self._ledgers), f"lockstep-ledger.{self._flow.source}.internal")

    def _check_roles(self, ids: Mapping[str, str]) -> None:
        """Raises WrongCluster if, at first contact, a ledger on either cluster knows these aliases as other
        clusters."""
        # By name: a listing of all topics would take long on a large cluster.
        asked = {
            alias: begun(partial(one.topic_ids, self._ledgers), f"ledgers on {alias}")
            for alias, one in self._clusters.items()
        }
        for alias, cluster in self._clusters.items():
            there = awaited(asked[alias])
            # What the flow's own ledger knows is compared when that is read.
            own = self._ledgers_of() if alias == self._flow.target else ""
            for topic in (name for name in self._ledgers if name in there and name != own):
                for known, pinned in pins_in(topic, cluster).items():
                    if ids.get(known, pinned) != pinned:
                        raise self._wrong_role(alias, topic, known, pinned, ids)

    def _wrong_role(self, alias: str, topic: str, known: str, pinned: str, ids: Mapping[str, str]) -> WrongCluster:
        servers = [f"{one}.bootstrap.servers" for one in (self._flow.source, self._flow.target)]
        exchanged = f"{servers[0]} and {servers[1]} are exchanged"
        wrong = exchanged if pinned in ids.values() else f"{known}.bootstrap.servers is wrong"
        return WrongCluster(
            f"{self._flow.name}: {alias}.bootstrap.servers leads to the cluster {ids[alias]}. Its topic {topic} says "
            f"that {known} is the cluster {pinned}, not {ids[known]}: {wrong}. Nothing is written. If {known} was "
            f"replaced on purpose, delete {topic} there"
        )

    def check_target_id(self) -> str:
        """Returns the target's cluster id, checked; the source may be gone. Raises as `check_ids`."""
        found = self._clusters[self._flow.target].cluster_id()
        self._check_known(self._flow.target, found, self._kept)
        return found

    def open_for_target(self, open_ledger: Callable[[], Ledger], *, to_write: bool = True) -> Ledger:
        """Open the ledger for a caller that needs only the target, for example while the source is down.

        If no file and no ledger has the target's id, checks both clusters, and pins both if `to_write`. Raises as
        `check`.
        """
        alias, found = self._flow.target, self.check_target_id()
        ledger = open_ledger()
        self._check_there(ledger)
        if ledger.check_cluster_id(alias, found) is not None:
            if to_write:
                self.check(ledger)
            else:
                self.check_only(ledger)
        return ledger

    def open(self, open_ledger: Callable[[], Ledger]) -> Ledger:
        """Open the ledger after checking that both clusters are the right ones. Writes nothing. Raises as
        `check_only`."""
        ids = self.check_ids()
        ledger = open_ledger()
        self.check_only(ledger, ids)
        return ledger

    def check(self, ledger: Ledger) -> None:
        """Check both clusters, and pin new ids on the target and in the local file.

        Raises WrongCluster. Raises LedgerUntrusted if the ledger existed once and is gone, or no longer has the ids.
        """
        ledger.put(self.check_only(ledger))
        self._seen = {alias: ledger.get(Entry.CLUSTER_ID, alias) or "" for alias in self._clusters}
        pins = Pins(self._seen, ledger.topic)
        if self._pins and self._kept != pins:
            self._pins.keep(self._flow, pins)

    def check_only(self, ledger: Ledger, ids: Mapping[str, str] | None = None) -> dict[EntryKey, str | None]:
        """Like `check`, but writes nothing: returns the entries that a first contact would pin. `ids`: the result of
        `check_ids`; None: not checked yet."""
        ids = ids or self.check_ids()
        self._check_there(ledger)
        keys = {alias: ledger.check_cluster_id(alias, cluster_id) for alias, cluster_id in ids.items()}
        return {key: ids[alias] for alias, key in keys.items() if key is not None}

    def _check_there(self, ledger: Ledger) -> None:
        pins = self._kept
        if self._pins is None or pins is None:
            return
        if pins.ledger != ledger.topic:
            problem = f"the ledger is {ledger.topic} now, and was {pins.ledger} (the replication policy names it)"
        elif not ledger.exists:
            problem = f"{ledger.topic} is gone"
        elif not ledger.values(Entry.CLUSTER_ID):
            problem = f"{ledger.topic} was recreated, and no longer has the ids of the clusters"
        else:
            return
        raise LedgerUntrusted(
            f"{self._flow.name}: {problem}; {self._pins.where} says that it was there. Nothing is written, because "
            "Lockstep no longer knows what was paused and what it created. If that is on purpose, stop the job, run "
            "`lockstep ledger reset`, pause again what must stay paused, and start the job"
        )


def former_ledger(flow: Flow, reader: Reader, topic: str) -> str | None:
    """Returns the name of the flow's ledger on its target if it is not `topic`, for example after a change of the
    separator. None if there is none.

    Such a ledger holds this target's id, and names an alias as this flow's source. The guard compares the source's id
    once the ledger is open.
    """
    names, cluster_id = former_ledgers(flow.source), reader.cluster_id()
    there = reader.topic_ids(names)
    for name in names:
        known = pins_in(name, reader) if name in there and name != topic else {}
        if known.keys() == {flow.source, flow.target} and known[flow.target] == cluster_id:
            return name
    return None


def pins_in(topic: str, reader: Reader) -> dict[str, str]:
    """Returns the cluster ids in any flow's ledger, by alias, signed or not. An unsigned id can only stop a flow."""
    found: dict[str, str] = {}
    try:
        records = reader.read_log(topic)
    except RightsMissing as error:
        log.warning(
            "cluster %s: %s cannot be read, so it does not say which cluster this is: %s", reader.alias, topic, error
        )
        return found
    for key, value in records:
        try:
            name, *rest = orjson.loads(key)
            if name == Entry.CLUSTER_ID.value and len(rest) == 1:
                data = unsealed(value)
                found.pop(rest[0], None)
                if data is not None:
                    found[rest[0]] = ENTRY_SCHEMA.decode(data)["value"]
        except (LockstepError, ValueError, TypeError):
            continue
    return found
