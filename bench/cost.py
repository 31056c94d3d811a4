"""What processes cost: CPU seconds and resident memory, by the operating system's own accounts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import psutil


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds used so far and resident bytes now, of some processes together."""

    cpu_seconds: float
    resident: int

    def since(self, before: Cost) -> Cost:
        """CPU used in between, memory as it is now."""
        return Cost(self.cpu_seconds - before.cpu_seconds, self.resident)


def cost(pids: Iterable[int]) -> Cost:
    """Of these processes and all their descendants."""
    cpu, resident = 0.0, 0
    for process in family(pids):
        try:
            times = process.cpu_times()
            cpu += times.user + times.system
            resident += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return Cost(cpu, resident)


def idle_costs(groups: Sequence[Sequence[int]], seconds: float) -> list[Cost]:
    """Of these processes by group, left alone for so long: CPU seconds a minute, resident bytes at the end."""
    before, start = [cost(group) for group in groups], time.monotonic()
    # The price is that of a time, not of anything that could be waited for.
    while time.monotonic() - start < seconds:
        time.sleep(0.1)
    used = [cost(group).since(earlier) for group, earlier in zip(groups, before, strict=True)]
    per_minute = 60 / (time.monotonic() - start)
    return [replace(one, cpu_seconds=one.cpu_seconds * per_minute) for one in used]


def family(pids: Iterable[int]) -> set[psutil.Process]:
    """The processes and everything below them."""
    found: set[psutil.Process] = set()
    for pid in pids:
        try:
            process = psutil.Process(pid)
            found |= {process, *process.children(recursive=True)}
        except psutil.NoSuchProcess:
            continue
    return found
