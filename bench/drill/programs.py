"""MM2 and the job as both measurements of offsets run them: at their shortest intervals, one of them committing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from app.local.local_job import LocalJob
from app.local.local_mirror import mirror_properties
from bench.job_file import job_of

LOCKSTEP, MM2 = WRITERS = ("lockstep", "mm2")
"""Who commits on the target: never both."""

EVERY_SECOND: Final = ("refresh.topics", "refresh.groups", "emit.checkpoints", "sync.group.offsets")


def mm2_properties(clusters: Mapping[str, str], writer: str, topics: str, groups: str, **more: str) -> dict[str, str]:
    """MM2's file, for bootstrap servers by alias; checkpoints are on for both writers. `more`: further keys."""
    every_second = {f"{name}.interval.seconds": "1" for name in EVERY_SECOND}
    own = {
        "topics": topics,
        "groups": groups,
        "emit.checkpoints.enabled": "true",
        "sync.group.offsets.enabled": str(writer == MM2).lower(),
        # MM2's own default: the heartbeats that the flow a->b copies.
        "b->a.emit.heartbeats.enabled": "true",
    }
    return mirror_properties(clusters, ["a->b"], **(every_second | own | more))


@contextmanager
def committing_job(folder: Path, properties: Mapping[str, str]) -> Iterator[LocalJob]:
    """The job on MM2's file, committing on the target; it has compared everything once."""
    own = {"lockstep.sync.group.offsets.enabled": "true"}
    with job_of({**properties, **own}, folder) as job:
        job.wait_until_compared()
        yield job
