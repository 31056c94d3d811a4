"""What a pass has found to differ, between its comparison and its writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sinks.engine.kind_trouble import KindTrouble
from sinks.engine.plan import Plan
from sinks.engine.report import Stopwatch
from sinks.kinds.controller import Comparison, Controller, PassContext


@dataclass(frozen=True)
class Compared:
    """What differs now, and with whom to settle it. Nothing is written yet."""

    context: PassContext
    plan: Plan
    comparisons: Sequence[tuple[Controller, Comparison]]
    trouble: KindTrouble
    watch: Stopwatch
