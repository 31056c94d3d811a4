"""What processes cost: CPU seconds and resident memory, by the operating system's own accounts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
