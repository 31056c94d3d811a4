"""The Spark jobs that read both sides of a flow, made from its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.settings import Settings
from app.settings.mm2_lines import TRANSFORMS
from sinks.flow_settings import FlowSettings
from streaming.errors import LockstepError

if TYPE_CHECKING:
    from streaming.verify.jobs import Session, SparkJobs


class NotComparable(LockstepError):
    """The records of a flow are not meant to be the same on both sides."""


def refuse_transforms(settings: Settings, flow: FlowSettings) -> None:
    """Raises NotComparable where MM2 changes records on purpose."""
    if chain := settings.plugin_properties[flow.flow].get(TRANSFORMS, "").strip():
        raise NotComparable(
            f"{flow.flow.name}: MM2 changes records with {TRANSFORMS}={chain}, so that they differ on purpose: "
            "there is nothing to compare them with"
        )


def record_jobs(settings: Settings, flow: FlowSettings, spark: Session) -> SparkJobs:
    """Jobs in a session of their own."""
    # A second of imports, for whoever reads records.
    from streaming.verify.bounded_read import SideRead
    from streaming.verify.jobs import SparkJobs, own_session

    source, target = flow.flow.source, flow.flow.target
    ours, theirs = (dict(settings.cluster(alias, flow.flow).consumer) for alias in (source, target))
    return SparkJobs(own_session(spark), SideRead(ours, flow.isolation), SideRead(theirs, "read_committed"))
