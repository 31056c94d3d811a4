"""What flows can know of lists that others alter on the target, and that a source may not show."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from sinks.engine.report import Report
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from sinks.ledger.ownership import is_fresh
from sinks.model.changes import Key, Kind
from streaming.flow import Flow
from tests.sinks.machine.origins import LISTS, Items
from tests.sinks.machine.surroundings import Difference, kinds_unseen


@dataclass
class Knowledge:
    """`removed`: what others took away, and the flows that remember it and have not seen that yet; `missed`: that of it
    which all have seen missing. `unshown`: what Lockstep created and no later pass saw: while it is missing, it counts
    as not shown yet. `wished`: by source and kind, what a flow wished for since its last full comparison, as far as its
    source had it all the time. Of this process: `shown`, the kinds that it has seen of each source, `misled`, the ones
    that it was shown empty instead, `acls_seen`, flows whose ACLs it has compared."""

    removed: dict[Difference, set[Flow]] = field(default_factory=dict)
    missed: set[Difference] = field(default_factory=set)
    unshown: set[Difference] = field(default_factory=set)
    shown: dict[str, set[Kind]] = field(default_factory=dict)
    misled: dict[str, set[Kind]] = field(default_factory=dict)
    acls_seen: set[Flow] = field(default_factory=set)
    wished: dict[tuple[str, Kind], set[Key]] = field(default_factory=dict)

    def begin_anew(self) -> None:
        """Another process."""
        self.shown, self.misled, self.acls_seen = {}, {}, set()

    def taken_away(self, kind: Kind, key: Key, remembering: set[Flow]) -> None:
        """Another client took this away. `remembering`: flows that cannot know it before they look."""
        self.removed[kind, key] = remembering
        if remembering:
            self.missed.discard((kind, key))

    def created(self, now: Collection[Difference], on: Callable[[Kind], Items]) -> None:
        """`now`: what Lockstep created in this pass. `on`: what the target has after it."""
        self.unshown = {(kind, key) for kind, key in self.unshown if key not in on(kind)}.union(now)

    def is_misled(self, kind: Kind, source: str) -> bool:
        """Whether this process was never shown what the source has of a kind, but that it has none."""
        return kind in self.misled.get(source, ())

    def passed(
        self,
        flow: Flow,
        report: Report | None,
        blank: Collection[Kind],
        on: Callable[[Kind], Items],
        wanted: Callable[[Kind], Items],
    ) -> None:
        """A pass is over. `blank`: kinds that the source showed empty; `on`: what the target has; `wanted`: what it
        should have of this source."""
        shown = self.shown.setdefault(flow.source, set())
        # The users that a flow wants are those that the source's ACLs name.
        hidden = {*blank, Kind.SCRAM_USER} if Kind.ACL in blank else set(blank)
        self.misled.setdefault(flow.source, set()).update(hidden - shown)
        if report is not None and Kind.ACL in report.idle and Kind.ACL in blank:
            # While ACLs are paused, users follow the ones that the source shows now: here it showed none.
            self.acls_seen.discard(flow)
        if report is None or not report.everything:
            return
        unseen = kinds_unseen(report)
        # Users follow the ACLs that an earlier pass compared; while ACLs are paused, those that the source shows now.
        if Kind.ACL in blank if Kind.ACL in report.idle else flow not in self.acls_seen:
            unseen.add(Kind.SCRAM_USER)
        if Kind.ACL not in unseen | set(blank):
            self.acls_seen.add(flow)
        shown.update(set(LISTS) - unseen - set(blank))
        self.misled[flow.source] -= shown
        for kind in set(LISTS) - unseen - set(blank):
            self.wished[flow.source, kind] = set(wanted(kind))
        self._note_missed(flow, unseen, on)

    def still_wanted(self, source: str, kind: Kind, wanted: Collection[Key]) -> set[Key]:
        """What a flow is known to wish for. Called after every step: what its source lost in between, the flow wishes
        for only once it has seen it again."""
        wished = self.wished.setdefault((source, kind), set(wanted))
        wished &= set(wanted)
        return wished

    def _note_missed(self, flow: Flow, unseen: Collection[Kind], on: Callable[[Kind], Items]) -> None:
        """What passes of all flows that had it saw missing is not Lockstep's any more, whatever the ledgers say."""
        gone = {(kind, key) for kind, key in self.removed if kind not in unseen and key not in on(kind)} - self.unshown
        for one in gone:
            self.removed[one].discard(flow)
        seen = {one for one in gone if not self.removed[one]}
        self.missed |= seen
        self.removed = {one: flows for one, flows in self.removed.items() if one not in seen}
        self.missed -= {(kind, key) for kind, key in self.missed if key in on(kind)}


def intended_long_ago(ledgers: Iterable[Ledger], now: datetime) -> set[Difference]:
    """What was to be created so long ago that it counts as another client's where it is there now."""
    entries = [one for ledger in ledgers for one in ledger._contents.entries.items()]
    old = [key for (entry, key), found in entries if entry is Entry.INTENT and not is_fresh(found.since, now)]
    return {(Kind(key[0]), key[1:]) for key in old}
