"""Pictures of the page for the docs: `make screenshots`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from app.http.api import Api, Server
from sinks.engine.metrics import Metrics
from tests.app.http.flows_shown import MM2_DOWN, TARGET_DOWN, TROUBLED, WELL, every_state
from tests.browser.chromium import picture

DARK = "--blink-settings=preferredColorScheme=0"
PICTURES = (
    ("page-overview.png", "/", (1200, 1240), ()),
    ("page-flow-dark.png", f"/flow/{TROUBLED.name}", (1200, 900), (DARK,)),
    ("page-groups.png", f"/flow/{WELL.name}/offsets?verdict=TOO_OLD", (1200, 640), ()),
    ("page-hour-dark.png", f"/flow/{MM2_DOWN.name}/history", (1200, 1180), (DARK,)),
    ("page-phone.png", f"/flow/{WELL.name}/changes", (500, 1000), ()),
)
"""File, place, size, options of Chromium."""


def main(folder: Path) -> None:
    """Writes all of them."""
    shown = every_state()
    server = Server(Api(shown.tasks, Metrics("0"), histories=shown.histories), "127.0.0.1", 0)
    server.start()
    try:
        for name, place, size, options in PICTURES:
            shown.beat(WELL, TROUBLED, TARGET_DOWN)
            with tempfile.TemporaryDirectory() as profile:
                picture(f"{server.address}/#{place}", Path(profile), (folder / name).resolve(), size, *options)
    finally:
        server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
