"""Diagnoses why a query failed, and decides when it starts again. Pure: the caller has the clock."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from streaming.durations import doubled

_CAUSE = re.compile(r"^\s*Caused by: (?P<name>[\w.$]+)(?:: (?P<message>.*))?$", re.MULTILINE)
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(?P<error>\S.*)")
_JAVA_CALL = re.compile(r"^[\w.]*Py4JJavaError: ")
_LONGEST = 300

_READS_THE_CHECKPOINT = re.compile(
    r"\sat org\.apache\.spark\.sql\.[\w.]*\.(?:"
    r"HDFSMetadataLog\.(?:get\w*|applyFnToBatchByStream|\$anonfun\$get\w+\$\d+)"
    r"|StreamMetadata\$\.read|OffsetSeq\.toStreamProgress|\w*Stream\.deserializeOffset"
    r")\("
)
"""Stack frames of Spark's classes that read a checkpoint: its metadata, and the logs of offsets and commits."""

_CONTRADICTION = re.compile(
    r"IllegalStateException: batch \d+ doesn't exist|STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY"
    r"|\sat scala\.Predef\$\.(?:assert|require)\([\w.:]*\)\s+(?:at [^\n]*\s+){0,2}?"
    r"at org\.apache\.spark\.sql\.[\w.]*\.MicroBatchExecution\.initializeExecution\("
)
"""Spark's errors if the log of offsets lacks a batch: 4.1 and 4.2 by name, 4.3 with an assertion at the start."""

_TAKEN = re.compile(r"CONCURRENT_STREAM_LOG_UPDATE\].*detected for (\d+)")
"""Spark's error if a batch that it is about to write exists already. It also comes if offsets were lost and commits
were not."""

_MACHINE = re.compile(
    r"No space left on device|Disk quota exceeded|Permission denied|Input/output error|Read-only file system"
    r"|Too many open files|AccessControlException|OutOfMemoryError"
)
"""Faults of the machine, which a new checkpoint would not mend."""


class QueryState(str, Enum):
    """State of a target's streaming query.

    STARTING: no micro-batch was committed since its start. PARTIAL: it runs without some clusters or topics. STALLED:
    Spark calls it active, but no micro-batch begins or ends. BACKING_OFF: it failed, and waits for its restart.
    STOPPED: it ended, or never began.
    """

    STARTING = "STARTING"
    RUNNING = "RUNNING"
    PARTIAL = "PARTIAL"
    STALLED = "STALLED"
    BACKING_OFF = "BACKING_OFF"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """Status of a query. `reason`: of its last failure, until a batch is committed; or what it runs without. `since`:
    when it entered this state. `restarts`: starts after a failure."""

    state: QueryState
    reason: str | None
    since: datetime
    restarts: int = 0


class QueryFailure(NamedTuple):
    """Why a query ended, in one line. `unreadable`: its checkpoint cannot be read. `suspect`: its checkpoint seems
    unreadable, and another start will tell."""

    reason: str
    unreadable: bool
    suspect: bool = False


@dataclass(slots=True)
class Restarts:
    """What to do after each failure of a query.

    Waits double from `first` to `longest` seconds while the query keeps failing. A query that ran for `settled` seconds
    was healthy, so its next failure waits `first`. A start costs both clusters a few requests, so a query must not spin
    while a cluster is away. A cluster that is back is noticed within `longest`.
    """

    first: float = 1.0
    longest: float = 60.0
    settled: float = 60.0
    failures: int = field(default=0, init=False)
    _taken: str | None = field(default=None, init=False)

    def delay(self, ran_for: float) -> float:
        """Seconds until the next start, for a query that failed after `ran_for` seconds."""
        self.failures = 1 if ran_for >= self.settled else self.failures + 1
        return doubled(self.first, self.failures, self.longest)

    def diagnose(self, trace: str) -> QueryFailure:
        """Read a failure off its Java stack trace.

        If a batch is in the checkpoint although Spark is about to write it, another job may have written it. Then the
        checkpoint is further on at the next failure. If it is the same batch again, the checkpoint contradicts itself.
        """
        found = _TAKEN.search(trace)
        before, self._taken = self._taken, found[1] if found else None
        again = found is not None and before == found[1]
        damaged = again or bool(_READS_THE_CHECKPOINT.search(trace) or _CONTRADICTION.search(trace))
        return QueryFailure(root_cause(trace), damaged and not _MACHINE.search(trace), suspect=found is not None)


LONGEST_GAP = 3.0
"""Seconds between two batches after which a query that runs counts as stuck: Spark looks for a cluster that is away for
20 s before the query fails."""


STALLED_AFTER_S = 120.0
"""Seconds that a micro-batch may take beyond the trigger interval until its query is STALLED."""


def stalled(idle: float, trigger_interval: float) -> bool:
    """Whether a running query stands still. `idle`: seconds since a batch last began or ended."""
    return idle > trigger_interval + STALLED_AFTER_S


def serves_without_query(idle: float, running: bool) -> bool:
    """Whether Lockstep runs the flows' passes without the query. `idle`: seconds since the last batch ended."""
    return not running or idle >= LONGEST_GAP


def root_cause(trace: str) -> str:
    """Returns one line of a trace: what the sink raised, else the innermost `Caused by` of Java, else the first line.

    If the sink only passes on what Java raised, Java's cause counts.
    """
    raised = _RAISED.search(trace)
    if raised and not _JAVA_CALL.match(raised["error"]):
        return raised["error"][:_LONGEST]
    causes = [cause for cause in _CAUSE.finditer(trace) if "py4j" not in cause["name"]]
    if not causes:
        first = raised["error"] if raised else next(iter(trace.strip().splitlines()), "no reason was given")
        return first[:_LONGEST]
    name, message = causes[-1]["name"].rpartition(".")[2], causes[-1]["message"]
    return (f"{name}: {message}" if message else name)[:_LONGEST]
