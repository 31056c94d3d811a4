"""A probe that breaks off is an answer: a job that waited for another would never read MM2's topics again."""

from __future__ import annotations

from pathlib import Path

from app.job.query_supervisor import BackgroundProbe
from sinks.background import at_once
from streaming.mm2.internal_topic_names import TopicRole
from streaming.mm2.records import RecordKind
from streaming.query_plan import ClusterSource, QueryPlan

SOURCE = ClusterSource("a", {"bootstrap.servers": "a:1"}, {"t": TopicRole(RecordKind.HEARTBEAT)})
PLAN = QueryPlan("b", (SOURCE,), 1.0, Path("checkpoints"))


def test_a_source_whose_probe_breaks_off_is_left_out_with_the_reason() -> None:
    def breaks(source: ClusterSource) -> tuple[ClusterSource | None, str | None]:
        raise OSError("s3cret")

    asked = BackgroundProbe(breaks, beside=at_once)
    for _ in range(2):
        found = asked.answer(PLAN)
        assert found is not None
        assert (found.plan.sources, found.reasons) == ((), ("what can be read of a is not known: OSError",))
