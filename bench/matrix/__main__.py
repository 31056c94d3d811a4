"""`make matrix`: real brokers and MM2 of several versions, row by row; writes docs/compatibility.md."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any, Final

import orjson
import typer

from app.local.jar_sets import PROJECT
from bench.matrix.row import Row, run

RESULTS: Final = PROJECT / "docs" / "compatibility.json"


def main(rows: Annotated[list[str], typer.Argument()]) -> None:
    for name in rows:
        row = Row(*name.split(":"))
        with tempfile.TemporaryDirectory(prefix="lockstep-matrix-", ignore_cleanup_errors=True) as folder:
            found = run(row, Path(folder))
        Path(f"/tmp/matrix-{row.source}-{row.target}-{row.mirror}.json").write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2))


if __name__ == "__main__":
    typer.run(main)
