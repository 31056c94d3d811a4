"""A process does not outlive its JVM."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from app.spark.driver_end import DriverWatch, lives_as_child, lives_as_parent

LIMIT = 60.0


def test_whoever_asked_is_called_once_and_then_the_process_is_left() -> None:
    lives, called, left = threading.Event(), threading.Event(), threading.Event()
    lives.set()
    watch = DriverWatch(left.set, within=0.01)
    watch.on_end(called.set)
    watch.follow(lives.is_set)
    assert not watch.has_ended()
    assert not called.is_set()
    lives.clear()
    assert watch.has_ended()
    assert called.wait(LIMIT)
    assert left.wait(LIMIT)


def test_who_asks_after_the_end_is_called_at_once() -> None:
    watch, called = DriverWatch(lambda: None), threading.Event()
    watch.follow(lambda: False)
    assert watch.has_ended(LIMIT)
    watch.on_end(called.set)
    assert called.is_set()


def test_it_does_not_leave_before_the_time_for_an_end_in_order() -> None:
    left = threading.Event()
    watch = DriverWatch(left.set, within=LIMIT * 10)
    watch.follow(lambda: False)
    assert watch.has_ended(LIMIT)
    assert not left.is_set()


def test_a_child_lives_until_it_has_ended() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        lives = lives_as_child(child)
        assert lives()
        child.kill()
        child.wait(LIMIT)
        assert not lives()


ORPHAN = """
import os, sys, time
from app.spark.driver_end import DriverWatch, lives_as_parent
lives = lives_as_parent()
print(lives(), flush=True)
while lives(): time.sleep(0.01)
print("orphan", flush=True)
"""


def test_a_parent_lives_until_another_process_takes_its_place() -> None:
    assert lives_as_parent()()
    parent = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {ORPHAN!r}]); sys.stdin.read()"
    read, write = os.pipe()
    with (
        os.fdopen(read) as said,
        subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=write) as run,
    ):
        os.close(write)
        assert said.readline() == "True\n"
        run.kill()
        assert said.readline() == "orphan\n"
