"""What a running job does when a line of its file changes."""

from __future__ import annotations

from collections.abc import Collection

from app.properties.keys import TABLE, KeyScope, Live
from app.properties.known import flow_names, kafka_names, role_names, top_names
from app.properties.scoped_keys import ScopedKey
from streaming.flow import Flow


def live(where: ScopedKey, aliases: Collection[str]) -> Live | None:
    """None: nothing of Lockstep's reads it. `aliases`: those of the clusters."""
    key = TABLE.get(where.name)
    if key is not None:
        return None if isinstance(where.scope, Flow) and key.scope is KeyScope.JOB else key.live
    if where.scope in aliases or where.name in kafka_names()["client"] | role_names():
        # A client's setting: connections are made when the job starts.
        return Live.JOB
    # What Kafka does not know may be a plug-in's, which is told of it, or created again.
    return None if where.name in flow_names() | top_names() else Live.FLOW
