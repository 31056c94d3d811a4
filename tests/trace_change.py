"""Follows one change of `retention.ms` through a pass over clusters in memory: `python -m tests.trace_change`.

It prints each function of Lockstep's that the pass enters, in the order of the first calls. The last line counts these
functions and their files. What stands for a broker here (`tests/memory/`) is not counted. Comprehensions neither.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

from sinks.kinds.shared_listings import SharedListings
from tests.memory import memory_cluster
from tests.sinks.builders import World, overrides_of, put_topic, set_config

ROOT = Path(__file__).resolve().parent.parent
OURS = ("app", "lockstep", "sinks", "streaming")
BROKER = Path(memory_cluster.__file__).parent.relative_to(ROOT)


@dataclass(frozen=True)
class Entered:
    """A function of ours. `depth`: how many others of ours were under way when it was called first."""

    path: Path
    name: str
    line: int
    depth: int


@dataclass
class Trace:
    """`entered`: by code, in the order of the first calls."""

    entered: dict[CodeType, Entered] = field(default_factory=dict)
    calls: Counter[CodeType] = field(default_factory=Counter)
    depth: int = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """As `sys.setprofile` calls it."""
        if event not in ("call", "return") or (path := place_of(frame.f_code)) is None:
            return
        if event == "return":
            self.depth -= 1
            return
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        self.entered.setdefault(code, Entered(path, name, code.co_firstlineno, self.depth))
        self.calls[code] += 1
        self.depth += 1

    @property
    def files(self) -> set[Path]:
        """Those with a function that was entered."""
        return {one.path for one in self.entered.values()}

    @property
    def summary(self) -> str:
        """The figures in a line."""
        return f"{self.calls.total()} calls of {len(self.entered)} functions in {len(self.files)} files"


def place_of(code: CodeType) -> Path | None:
    """The file below the project's root; None for code of others, for what stands for a broker, for comprehensions."""
    path = Path(code.co_filename)
    if (code.co_name.startswith("<") and code.co_name != "<lambda>") or not path.is_relative_to(ROOT):
        return None
    place = path.relative_to(ROOT)
    return place if place.parts[0] in OURS and not place.is_relative_to(BROKER) else None


def trace_change() -> Trace:
    """The pass that brings `retention.ms` of a topic to the target, and nothing else."""
    # A job's listing: what the target should have is derived again only where the source's topics changed.
    world, trace = World(listings=SharedListings()), Trace()
    put_topic(world.source, "orders", 3, retention_ms="1")
    put_topic(world.source, "payments")
    world.settle()
    set_config(world.source, "orders", "retention.ms", "2")
    world.clock.now += 1.0
    before = sys.getprofile()
    sys.setprofile(trace)
    try:
        world.reconcile.run_pass()
    finally:
        sys.setprofile(before)
    if overrides_of(world.target, "a.orders")["retention.ms"] != "2":
        raise AssertionError("the pass did not bring the change")
    return trace


def main() -> None:
    """Prints the path and the figures."""
    trace = trace_change()
    path = [f"{'  ' * one.depth}{one.name}  {one.path}:{one.line}" for one in trace.entered.values()]
    sys.stdout.write("\n".join([*path, trace.summary, ""]))


if __name__ == "__main__":
    main()
