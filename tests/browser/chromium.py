"""Chromium without a window: what a page became, and a picture of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
WITHIN = 120.0
FOR_IT = 4000
"""Milliseconds of the page's own time: timers run, and answers come, faster than they would for a person."""

OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-extensions",
)


def chromium() -> str | None:
    """Where it is; None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass(frozen=True)
class Seen:
    """`html`: the document after its scripts ran. `complaints`: what the console says of errors."""

    html: str
    complaints: list[str]

    @property
    def text(self) -> str:
        """What a person reads, in one line."""
        return " ".join(re.sub(r"<[^>]+>", " ", self.html).split())


def look_at(url: str, profile: Path, *options: str, for_it: int = FOR_IT) -> Seen:
    """Loads a page; `profile`: an empty folder."""
    done = _run(url, profile, "--dump-dom", f"--virtual-time-budget={for_it}", *options)
    console = re.findall(r":CONSOLE.*?\] \"(.*)", done.stderr)
    return Seen(done.stdout, console)


def picture(url: str, profile: Path, file: Path, size: tuple[int, int], *options: str) -> None:
    """Writes a PNG of so many pixels."""
    budget = f"--virtual-time-budget={FOR_IT}"
    _run(url, profile, budget, f"--screenshot={file}", f"--window-size={size[0]},{size[1]}", *options)


def _run(url: str, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    path = chromium()
    assert path is not None
    own = (f"--user-data-dir={profile}", "--enable-logging=stderr")
    return subprocess.run(
        [path, *OPTIONS, *own, *options, url], capture_output=True, text=True, timeout=WITHIN, check=True
    )
