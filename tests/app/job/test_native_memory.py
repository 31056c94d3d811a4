"""What C libraries freed goes back to the operating system, and threads share few arenas."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from app.job.native_memory import ENVIRONMENT, GIVEN_BACK_EVERY, SpareMemory, use_few_arenas

LEAVES_A_HOLE = """
import ctypes, psutil, sys
from app.job.native_memory import GIVEN_BACK_EVERY, SpareMemory, use_few_arenas
use_few_arenas()
c = ctypes.CDLL(None)
c.malloc.restype, c.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
now = [0.0]
spare = SpareMemory(lambda: now[0])
blocks = [c.malloc(60_000) for _ in range(2_000)]
for block in blocks: ctypes.memset(block, 1, 60_000)
last = c.malloc(60_000)
for block in blocks: c.free(block)
before = psutil.Process().memory_info().rss
now[0] = float(sys.argv[1])
spare.tick()
print(before - psutil.Process().memory_info().rss)
"""


def given_back(after: float) -> int:
    """Bytes, of 120 million that were freed in the midst of an arena."""
    run = subprocess.run([sys.executable, "-c", LEAVES_A_HOLE, str(after)], check=True, stdout=subprocess.PIPE)
    return int(run.stdout)


def test_what_was_freed_is_given_back_once_it_is_time() -> None:
    assert given_back(GIVEN_BACK_EVERY) > 100_000_000


def test_before_that_nothing_is() -> None:
    assert given_back(GIVEN_BACK_EVERY - 1) < 10_000_000


def test_a_setting_of_the_users_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "7")
    use_few_arenas()
    assert os.environ[ENVIRONMENT] == "7"


def test_children_inherit_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    use_few_arenas()
    assert os.environ[ENVIRONMENT] == "2"


def test_where_the_c_library_is_another_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.job.native_memory._glibc", lambda: None)
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    use_few_arenas()
    SpareMemory(lambda: 0.0).tick()
    assert ENVIRONMENT not in os.environ
