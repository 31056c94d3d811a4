"""What all rounds came to: rows, whether the goals are reached, and the file of it all. A row for each group and partition
comes from what was seen of both clusters."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter

from bench.drill.snapshot import Logs, Loss, Snapshot
from bench.drill.source_load import PLACES, DrillReader, Entry
from bench.pair import remote

CALM, AFTER, DURING = ("not killed", "killed", "while it catches up")
"""When the source is lost: MM2 ran all the time; it was killed and has caught up again; it has just been restarted."""


@dataclass(frozen=True, slots=True)
class Row:
    """One partition of one group at one moment of one round.

    `least`: records that would be read twice from the best offset there is. `checkpoint` is MM2's, `synced` the offset
    committed on the target; of each see `Partition.moved`.
    """

    round: int
    moment: str
    topic: str
    place: str
    least: int
    checkpoint: tuple[int, int] | None
    synced: tuple[int, int] | None


def rows(
    number: int, moment: str, readers: Sequence[DrillReader], seen: Snapshot, source: Logs, target: Logs
) -> Iterator[Row]:
    """`source` and `target`: the logs when all was over."""
    for one in readers:
        for where in one.topic.partitions:
            written = {name: offset for offset, name in one.topic.written[where]}
            copy = remote(where)
            partition = Partition(written, source[where], target[copy], seen.ends.get(copy, 0))
            position = seen.positions[one.group][where]
            yield Row(
                number,
                moment,
                one.topic.kind.name,
                one.place,
                partition.least(position),
                partition.moved(position, seen.checkpoints[one.group].get(copy)),
                partition.moved(position, seen.committed[one.group].get(copy)),
            )


def goals(found: Sequence[Row]) -> list[tuple[str, str, bool]]:
    """What was set out to be reached, what came out, and whether that is it; of the offsets on the target."""
    skipped = sum(row.synced[0] for row in found if row.synced)
    settled = [row for row in found if row.moment != DURING]
    at_end = max((row.synced[1] for row in settled if row.synced and row.place == PLACES[0]), default=0)
    rest = [row for row in settled if row.place != PLACES[0] and row.synced and row.checkpoint]
    ours = statistics.median([row.synced[1] for row in rest if row.synced] or [0])
    mm2 = statistics.median([row.checkpoint[1] for row in rest if row.checkpoint] or [0])
    return [
        ("skipped, all", f"{skipped} (goal: 0)", skipped == 0),
        ("read twice at the end, after MM2 has caught up", f"{at_end} at most (goal: 0)", at_end == 0),
        ("median read twice, to a tenth of MM2's", f"{ours:g}, MM2 {mm2:g}", ours <= mm2 / 10),
    ]


@dataclass(frozen=True)
class Partition:
    """A partition on both clusters.

    `written`: id to source offset, of all records that a consumer of the source could ever read: neither aborted ones
    nor, once more, what compaction took since. `source`, `target`: the logs as they are. `end`: of the target's log at
    the moment that counts; what is there later had not been copied yet.
    """

    written: Mapping[int, int]
    source: Sequence[Entry]
    target: Sequence[Entry]
    end: int

    def moved(self, position: int, start: int | None) -> tuple[int, int] | None:
        """For a group at `position` on the source that goes on at `start` on the target; None where it has no offset.

        Records that are skipped: the group has not read them, they are on the target, and it does not get them. And
        those that it gets although it has read them, or gets a second time.
        """
        if start is None:
            return None
        got = [name for offset, name in self._copied() if offset >= start]
        below = {name for offset, name in self._copied() if offset < start}
        known = [name for name in got if name in self.written]
        again = len(known) - len({name for name in known if self.written[name] >= position})
        return len(self._needed(position) & (below - set(got))), again

    def least(self, position: int) -> int:
        """Records read twice from the last offset that skips nothing."""
        moved = self.moved(position, self.last_safe(position))
        return moved[1] if moved else 0

    def last_safe(self, position: int) -> int:
        """The first of the last copies of what a group at `position` needs; the end, where it needs nothing."""
        last = {name: offset for offset, name in self._copied()}
        return min((last[name] for name in self._needed(position) if name in last), default=self.end)

    def _needed(self, position: int) -> set[int]:
        return {name for offset, name in self.source if offset >= position}

    def _copied(self) -> list[Entry]:
        return [entry for entry in self.target if entry[0] < self.end]


@dataclass
class DrillSeries:
    """What was found; `failed`: why rounds have no result.

    `size`: `seconds` of writing (at least), `groups` for each topic and place, `settle`: seconds without a change that
    count as the end of catching up. `aborted`: records of aborted transactions that MM2 copied. `cleaned`: those that
    compaction took from the source.
    """

    size: Mapping[str, Any]
    rounds: int
    rows: list[Row]
    losses: list[Loss]
    aborted: int
    cleaned: int
    failed: list[str]

    @property
    def ended(self) -> int:
        return self.rounds - len(self.failed)

    def save(self, path: Path) -> None:
        """Everything, so that the table can be written again."""
        document = {name: value for name, value in vars(self).items() if name not in ("rows", "losses")}
        rows, losses = (b",\n".join(map(orjson.dumps, found)) for found in (self.rows, self.losses))
        path.parent.mkdir(parents=True, exist_ok=True)
        # A row a line: a thousand of them, each spread over ten, would be no file to look at.
        path.write_bytes(
            orjson.dumps(document)[:-1] + b',\n"losses": [\n' + losses + b'\n],\n"rows": [\n' + rows + b"\n]}\n"
        )


def read(path: Path) -> DrillSeries | None:
    """What `DrillSeries.save` wrote; None where there is no file."""
    return TypeAdapter(DrillSeries).validate_json(path.read_bytes()) if path.exists() else None
