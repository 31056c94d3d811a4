"""Builds the Spark jobs that read both sides of a flow, from its settings."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from app.settings import Settings
from app.settings.contradictions import TRANSFORMS
from sinks.flow_settings import FlowSettings
from streaming.errors import LockstepError

if TYPE_CHECKING:
    from streaming.verify.jobs import Session, SparkJobs


class NotComparable(LockstepError):
    """The records of both sides differ on purpose."""


def refuse_transforms(settings: Settings, flow: FlowSettings) -> None:
    """Raises NotComparable if MM2 changes records on purpose."""
    if chain := settings.plugin_properties[flow.flow].get(TRANSFORMS, "").strip():
        raise NotComparable(
            f"{flow.flow.name}: MM2 changes records with {TRANSFORMS}={chain}, so that they differ on purpose: "
            "there is nothing to compare them with"
        )


def record_jobs(settings: Settings, flow: FlowSettings, spark: Session) -> SparkJobs:
    # A second of imports, only where records are read.
    from streaming.verify.jobs import SideRead, SparkJobs, own_session

    source, target = flow.flow.source, flow.flow.target
    ours, theirs = (dict(settings.cluster(alias, flow.flow).consumer) for alias in (source, target))
    return SparkJobs(own_session(spark), SideRead(ours, flow.isolation), SideRead(theirs, "read_committed"))


class SparkOnDemand:
    """A Spark session that the first call starts. It lives until `close`."""

    def __init__(self, name: str, *, alone: bool = True) -> None:
        """`name`: for Spark's UI. `alone`: the first call reads everything."""
        self._name, self._alone = name, alone
        self._started: Session | None = None

    def __call__(self, offsets: int) -> Session:
        """Returns the session. `offsets`: how many will be read. Raises LockstepError if Spark does not start."""
        if self._started is None:
            logging.getLogger("py4j").setLevel(logging.ERROR)
            # A second of imports, which many a command does without.
            from app.spark.spark_session import session

            self._started = session(self._name, offsets=offsets if self._alone else None)
        return self._started

    def close(self) -> None:
        if self._started is not None:
            self._started.stop()
