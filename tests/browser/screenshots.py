"""Pictures of the page for the docs: `make screenshots`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from app.http.api import Server
from streaming.flow import Flow
from tests.app.http.flows_shown import (
    MM2_DOWN,
    TARGET_DOWN,
    TROUBLED,
    WELL,
    Shown,
    every_state,
    job_api,
    records_differ,
)
from tests.browser.chromium import picture

Picture = tuple[str, str, tuple[int, int], tuple[str, ...]]
DARK = "--blink-settings=preferredColorScheme=0"
PICTURES: tuple[Picture, ...] = (
    ("page-overview.png", "/", (1200, 1640), ()),
    ("page-flow-dark.png", f"/flow/{TROUBLED.name}", (1200, 900), (DARK,)),
    ("page-groups.png", f"/flow/{WELL.name}/offsets?verdict=TOO_OLD", (1200, 640), ()),
    ("page-hour-dark.png", f"/flow/{MM2_DOWN.name}/history", (1200, 1180), (DARK,)),
    ("page-phone.png", f"/flow/{WELL.name}/changes", (500, 1000), ()),
)
"""File, place, size, options of Chromium."""

OF_RECORDS: tuple[Picture, ...] = (("page-records.png", f"/flow/{WELL.name}", (1200, 1150), ()),)
"""Of a flow whose records differ."""


def main(folder: Path) -> None:
    """Writes all of them."""
    take(every_state(), (WELL, TROUBLED, TARGET_DOWN), PICTURES, folder)
    take(records_differ(), (WELL,), OF_RECORDS, folder)


def take(shown: Shown, beating: Sequence[Flow], pictures: Sequence[Picture], folder: Path) -> None:
    """Writes some, of these flows."""
    server = Server(job_api(shown.tasks, shown.histories), "127.0.0.1", 0)
    server.start()
    try:
        for name, place, size, options in pictures:
            shown.beat(*beating)
            with tempfile.TemporaryDirectory() as profile:
                picture(f"{server.address}/#{place}", Path(profile), (folder / name).resolve(), size, *options)
    finally:
        server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
