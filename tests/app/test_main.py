"""Ctrl-C ends a command wherever it comes."""

from __future__ import annotations

import signal
import sys
import time
import weakref

import pytest

from app.main import raise_again


class Garbage:
    """Something that a callback follows, as py4j's objects."""


def test_ctrl_c_in_a_callback_for_garbage_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python ignores what such a callback raises."""
    monkeypatch.setattr(sys, "unraisablehook", raise_again)
    garbage = Garbage()
    followed = weakref.ref(garbage, lambda gone: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        del garbage
        until = time.monotonic() + 10.0
        while time.monotonic() < until:
            time.sleep(0.01)
    assert followed() is None
