"""What of a file that was read again comes into force while the job runs."""

from __future__ import annotations

from dataclasses import replace

from app.settings import Settings


def in_force(before: Settings, after: Settings) -> Settings:
    """`after`, with the flows and clusters of the job that runs `before`: others come with its restart.

    A flow that the file has no more goes on as it was; what was made for one that is new is closed.
    """
    found, running = {one.flow: one for one in after.flows}, {one.flow for one in before.flows}
    for flow, one in found.items():
        if flow not in running:
            one.close()
    return replace(
        after,
        clusters=before.clusters,
        overrides=before.overrides,
        flows=tuple(found.get(one.flow, one) for one in before.flows),
        plugin_properties={**before.plugin_properties, **after.plugin_properties},
        stored_overrides={**before.stored_overrides, **after.stored_overrides},
    )
