"""Chromium without a window, driven as by a person at a keyboard: Chrome's own protocol over a pair of pipes."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.local.waiting import wait_for
from tests.browser.chromium import OPTIONS, WITHIN, chromium

KEYS = {"Tab": 9, "Enter": 13, "Escape": 27}
"""Keys that are no letters, with their codes."""


class Driven:
    """One page. `commands` and `events`: the ends of the pipes, on which a NUL ends each document."""

    def __init__(self, commands: int, events: int) -> None:
        self._commands, self._events = os.fdopen(commands, "wb"), os.fdopen(events, "rb")
        self._numbers, self._read = itertools.count(1), b""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def close(self) -> None:
        """Closes the pipes, at which the browser ends."""
        self._commands.close()
        self._events.close()

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        document = {"id": number, "method": method, "params": parameters}
        if hasattr(self, "_session"):
            document["sessionId"] = self._session
        self._commands.write(json.dumps(document).encode() + b"\0")
        self._commands.flush()
        while (answer := self._next()).get("id") != number:
            pass
        assert "error" not in answer, answer
        return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            more = os.read(self._events.fileno(), 65536)
            assert more, "the browser has ended"
            self._read += more
        found, _, self._read = self._read.partition(b"\0")
        return dict(json.loads(found))

    def open(self, url: str, shows: str) -> None:
        """Loads a page, and returns when these words are on it."""
        self._ask("Page.navigate", url=url)
        self.wait_for_text(shows)

    def press(self, key: str) -> None:
        """A key, by its name or its letter, down and up again."""
        text = {} if key == "Tab" else {"text": "\r" if key == "Enter" else key}
        code = {"windowsVirtualKeyCode": KEYS[key]} if key in KEYS else {}
        if key == "Escape":
            text = {}
        self._ask("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
        self._ask("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def says(self, script: str) -> Any:
        """What a script of the page comes to."""
        return self._ask("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    @property
    def focused(self) -> str:
        """The words, or the label, of what has the focus."""
        script = "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent"
        return " ".join(str(self.says(script)).split())

    def wait_for_text(self, words: str) -> None:
        """Until a person would read these words."""
        wait_for(lambda: words in str(self.says("document.body.innerText")), WITHIN, f"the page to show {words!r}")


@contextmanager
def driven(profile: Path) -> Iterator[Driven]:
    """A browser; `profile`: an empty folder."""
    path = chromium()
    assert path is not None
    (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
    # Chromium reads commands from descriptor 3 and writes to 4, which a shell gives it.
    shell = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$@"'
    words = [path, *OPTIONS, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", *words],
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    page = Driven(ours_out, ours_in)
    try:
        yield page
    finally:
        page.close()
        process.terminate()
        process.wait(WITHIN)
