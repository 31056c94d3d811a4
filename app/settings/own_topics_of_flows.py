"""What Lockstep makes on one target for several flows: none of their sources has a say about any of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sinks.flow_settings import FlowSettings


def of_others(flow: FlowSettings, flows: Iterable[FlowSettings]) -> tuple[str, ...]:
    """The names of Lockstep's own topics of other flows into the same target, which their policies may choose."""
    others = (one for one in flows if one.flow != flow.flow and one.flow.target == flow.flow.target)
    return tuple(sorted({name for one in others for name in one.internal.ours}))


def knowing(flow: FlowSettings, flows: Iterable[FlowSettings]) -> FlowSettings:
    """The same flow, which knows these."""
    return replace(flow, internal=replace(flow.internal, of_other_flows=of_others(flow, flows)))
