"""`cutover --verify`: the records of both sides compared, by Spark, before a flow ends."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from app.settings import Settings
from sinks.failover.fence_rules import shown
from sinks.flow_settings import FlowSettings
from sinks.verify.survey import Scope
from sinks.verify.verdicts import Level
from streaming.errors import LockstepError

LAST = 100_000
"""Offsets of each partition that are compared, as `lockstep verify` does where nothing else is said."""


class NotVerified(LockstepError):
    """Records differ, or could not be compared."""

    code = "NOT_VERIFIED"


def verify_copies(settings: Settings, flow: FlowSettings, say: Callable[[str], None], topics: Collection[str]) -> None:
    """Compares the last records of these topics. Raises NotVerified, LockstepError."""
    # Seconds of imports and of Spark's start, which few ask for.
    from app.job.spark_session import session
    from app.verify.flow_check import verify_flow

    logging.getLogger("py4j").setLevel(logging.ERROR)
    spark = session("lockstep cutover")
    try:
        scope = Scope(tuple(sorted(topics)), last=LAST, level=Level.RECORDS)
        report = verify_flow(settings, flow, scope, lambda: spark)
    finally:
        spark.stop()
    if not report.is_good:
        bad = [f"{one.where} {one.verdict.value}" for one in report.partitions if not one.verdict.is_good]
        raise NotVerified(
            f"of {len(report.partitions)} partitions {len(bad)} differ or cannot be compared: {shown(bad)}. "
            "`lockstep verify` says what; the flow stays as it is"
        )
    say(f"{report.records} records of {len(report.partitions)} partitions were compared: none differs")
