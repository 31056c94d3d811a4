"""MM2 on one partition, as lists: a source with holes, a target that gets records twice, the offset-syncs it emits.

The rule for syncs is that of Kafka's `OffsetSyncWriter.PartitionState`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import strategies as st

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.sync_history import Discontinuity, History
from sinks.kinds.offsets.translation import LogEnds, limit_while_resending


class Step(NamedTuple):
    """`produced` records come, then offsets that hold none; MM2 sends `copied` of them, or goes `back` at a restart.

    `told`: whether the sync that this makes reaches us. `lost`: records that the target's log loses from its end first.
    """

    produced: int = 0
    missing: int = 0
    copied: int = 0
    back: int | None = None
    told: bool = True
    lost: int = 0


TOLD, NOTHING = st.just(True), st.just(0)
MISSING = st.sampled_from([0, 0, 0, 1, 7])
WITH_RESTARTS = st.lists(
    st.builds(Step, st.integers(0, 12), MISSING, st.integers(0, 15), st.none(), TOLD, NOTHING)
    | st.builds(Step, st.just(0), st.just(0), st.integers(1, 15), st.integers(0, 25), TOLD, NOTHING),
    min_size=1,
    max_size=10,
)


WITH_TRUNCATIONS = st.lists(
    st.builds(Step, st.integers(0, 12), MISSING, st.integers(0, 15), st.none(), TOLD, NOTHING)
    | st.builds(Step, st.just(0), st.just(0), st.integers(1, 15), st.integers(0, 25), TOLD, NOTHING)
    | st.builds(Step, st.integers(0, 12), MISSING, st.integers(0, 15), st.none(), TOLD, st.integers(2, 20)),
    min_size=1,
    max_size=10,
)


@dataclass
class Partition:
    """`source`: offsets that hold a record. `target`: the source's offset of the record at each downstream offset.

    `lost_copies`: records that the target lost a later copy of, but not the first, since a truncation was last told.
    """

    lag_max: int = 5
    source: list[int] = field(default_factory=list)
    source_end: int = 0
    target: list[int] = field(default_factory=list)
    history: History | None = None
    emitted: int = 0
    truncations: int = 0
    lost_copies: set[int] = field(default_factory=set)
    _next: int = 0
    _last_sync: int | None = None
    _previous: int | None = None
    _written_to: int = -1
    _hole: bool = False

    def step(self, step: Step) -> None:
        if len(self.target) > 1:
            # MM2 tells of no single record that another one took the place of.
            kept = max(0, len(self.target) - step.lost)
            self.lost_copies |= {*self.target[kept:]} & {*self.target[:kept]}
            del self.target[kept:]
        self.source += range(self.source_end, self.source_end + step.produced)
        self.source_end += step.produced + step.missing
        if step.back is not None:
            self._next, self._last_sync = max(0, self._next - step.back), None
        for upstream in self.source[self._next : self._next + step.copied]:
            self.target.append(upstream)
            self._next += 1
            self._sync(upstream, len(self.target) - 1, step.told)

    def _sync(self, upstream: int, downstream: int, told: bool) -> None:
        last, went_back = self._last_sync, downstream < self._written_to
        far = last is None or downstream - (last + 1) >= self.lag_max
        if far or went_back or upstream - (self._previous or 0) != 1:
            self._last_sync = downstream
            self.emitted += 1
            if not told:
                self._hole = True
            elif self.history is None:
                self.history, self._hole = History(upstream, downstream, self.emitted), False
            else:
                sign = self.history.take(upstream, downstream, self.emitted, self._hole)
                if sign is Discontinuity.TRUNCATION:
                    self.truncations += 1
                    self.lost_copies.clear()
                self._hole = False
        self._previous, self._written_to = upstream, downstream

    @property
    def told(self) -> bool:
        """Whether we know of the last restart: bounds hold as far as the syncs were read."""
        return not self._hole and self._last_sync is not None

    @property
    def ends(self) -> LogEnds:
        return LogEnds(LogRange(0, self.source_end), LogRange(0, len(self.target)))

    def ends_by_cut_off_leader(self, behind: int) -> LogEnds:
        """The ends if the source's leader tells one from so many offsets ago. The true ones where nothing shows that:
        offsets without a record make up for copies that came since."""
        old, since = max(0, self.source_end - behind), self.history.latest.upstream if self.history else 0
        if set(range(since, old)) - set(self.source):
            return self.ends
        return LogEnds(LogRange(0, old), self.ends.target)

    def match(self, upstream: int) -> int | None:
        """The first copy, between the pairs around an offset, of the record that a group there reads next."""
        record = next((offset for offset in self.source if offset >= upstream), None)
        limit = limit_while_resending(self.history, self.ends.target)
        below, following = self.history.around(upstream, limit) if self.history else (None, None)
        if record is None or below is None:
            return None
        end = min(limit, following.downstream if following else len(self.target))
        return next((at for at in range(below.downstream, end) if self.target[at] == record), None)

    def skipped(self, upstream: int, downstream: int) -> set[int]:
        """Records that a group at `upstream` lacks and never gets, if it goes on at `downstream`.

        What MM2 is about to send again after a restart is to come.
        """
        to_come = {*self.target[downstream:], *self.source[self._next :]}
        return {record for record in self.target[:downstream] if record >= upstream} - to_come

    def lost_without_mm2(self, upstream: int, downstream: int) -> set[int]:
        """Records that the target has, and that a group at `upstream` never gets there, should MM2 send no more."""
        lacking = {record for record in self.target[:downstream] if record >= upstream}
        return lacking - set(self.target[downstream:])

    def read_twice(self, upstream: int, downstream: int) -> int:
        """Records it gets though it had them, those included that MM2 has still to send."""
        to_come = self.source[self._next :]
        return sum(record < upstream for record in (*self.target[downstream:], *to_come))

    def skipped_back(self, upstream: int, downstream: int) -> set[int]:
        """Records that a group lacks that read the target up to `downstream`, and goes on at `upstream`."""
        return {record for record in self.source if record < upstream} - set(self.target[:downstream])

    def read_twice_back(self, upstream: int, downstream: int) -> int:
        return len({record for record in self.target[:downstream] if record >= upstream})


@st.composite
def untold(draw: st.DrawFn) -> list[Step]:
    """Steps whose syncs are partly lost."""
    return [step._replace(told=draw(st.booleans())) for step in draw(WITH_RESTARTS)]
