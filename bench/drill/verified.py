"""Where groups would continue by what `lockstep verify` has compared, and by nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from app.application_offsets import translate_each
from app.settings import load
from app.spark.spark_session import session
from app.verify.flow_check import verify_flow
from bench.drill.snapshot import ByGroup
from bench.drill.source_load import Topic
from sinks.kafka.ports.groups import Offsets
from sinks.kinds.offsets.translation import Answer, Method
from sinks.verify.log_survey import ComparisonScope


def verified_offsets(config: Path, topics: Sequence[Topic], positions: Mapping[str, Offsets]) -> ByGroup:
    """Compares these topics, which writes exact offsets into the flow's ledger, and translates the positions of groups
    on the source. Positions that only another method could translate are left out."""
    found: ByGroup = {group: {} for group in positions}
    with closing(load(config, environ={})) as settings:
        flow = settings.flows[0]
        verify_flow(settings, flow, ComparisonScope(tuple(topic.name for topic in topics)), lambda offsets: session())
        for where in (where for topic in topics for where in topic.partitions):
            offsets = {at[where] for at in positions.values() if where in at}
            answers = translate_each(settings, flow, where, sorted(offsets)).answers if offsets else {}
            for group, at in positions.items():
                answer = answers.get(at[where]) if where in at else None
                if isinstance(answer, Answer) and answer.method is Method.VERIFIED:
                    found[group][where] = answer.downstream
    return found
