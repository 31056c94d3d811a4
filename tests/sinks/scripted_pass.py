"""Stands in for a flow's pass, where a test is about what is around it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from sinks.engine.report import Report
from sinks.failover.preflight import FailoverStatus
from sinks.failover.source_end_offsets import Positions
from sinks.ledger.audit import SettingChange
from sinks.ledger.kept_end_offsets import KnownPosition
from sinks.ledger.lease import Unled
from sinks.model.changes import Kind
from sinks.model.plan import Plan
from streaming.hints import CheckpointSeen, SyncSeen
from streaming.mm2.records import TopicPartition
from tests.sinks.builders import FLOW, flow_settings


class ScriptedPass:
    """Stands in for the pass: raises or reports what it is told, and notes what it was asked."""

    def __init__(self) -> None:
        self.settings = flow_settings(enabled=tuple(Kind))
        self.paused: frozenset[Kind] = frozenset()
        self.asked: list[tuple[set[str], bool]] = []
        self.error: Exception | None = None
        self.report = Report(Plan(FLOW))
        self.noted: list[SettingChange] = []
        self.counted: dict[TopicPartition, KnownPosition] = {}
        self.unnoted: list[Exception] = []
        self.while_noting: Callable[[], None] = lambda: None
        self.closed = self.replaced = False
        self.leadership = Unled()
        self.failover = FailoverStatus()

    def run_pass(self, requested: Collection[str] = (), everything: bool = False) -> Report:
        self.asked.append((set(requested), everything))
        if self.error is not None:
            raise self.error
        return self.report

    def note_settings(self, changes: Sequence[SettingChange]) -> None:
        self.while_noting()
        if self.unnoted:
            raise self.unnoted.pop()
        self.noted += changes

    def note_counted(self, positions: Positions) -> None:
        self.counted.update(positions)

    def close(self, *, replaced: bool = False) -> None:
        self.closed, self.replaced = True, replaced

    def take_in(self, syncs: Collection[SyncSeen], checkpoints: Collection[CheckpointSeen]) -> None:
        """Takes in nothing of what MM2 tells."""
