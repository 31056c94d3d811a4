"""What all rounds of a drill came to, and its file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import orjson
from pydantic import TypeAdapter

from bench.drill.outcome_rows import Row
from bench.drill.round import DrillSize, Played
from bench.drill.snapshot import Loss


@dataclass(frozen=True)
class DrillSeries:
    """What was found; `failed`: why rounds have no result.

    `aborted`: records of aborted transactions that MM2 copied. `cleaned`: those that compaction took from the source.
    """

    size: DrillSize
    rounds: int
    rows: list[Row]
    losses: list[Loss]
    aborted: int
    cleaned: int
    failed: list[str]

    def after(self, played: Played) -> DrillSeries:
        """With one more round."""
        return replace(
            self,
            rounds=self.rounds + 1,
            rows=self.rows + played.rows,
            losses=self.losses + played.losses,
            aborted=self.aborted + played.aborted,
            cleaned=self.cleaned + played.cleaned,
        )

    def save(self, path: Path) -> None:
        """Everything, so that the table can be written again."""
        document = asdict(replace(self, rows=[], losses=[]))
        del document["rows"], document["losses"]
        rows, losses = (b",\n".join(map(orjson.dumps, found)) for found in (self.rows, self.losses))
        path.parent.mkdir(parents=True, exist_ok=True)
        # A row a line: a thousand of them, each spread over ten, would be no file to look at.
        path.write_bytes(
            orjson.dumps(document)[:-1] + b',\n"losses": [\n' + losses + b'\n],\n"rows": [\n' + rows + b"\n]}\n"
        )


def read(path: Path) -> DrillSeries | None:
    """What `DrillSeries.save` wrote; None where there is no file."""
    return TypeAdapter(DrillSeries).validate_json(path.read_bytes()) if path.exists() else None
