"""What protects the target of a flow, from the keys of the file."""

from __future__ import annotations

from app.properties import keys
from app.properties.scoped_keys import Properties
from sinks.engine.pins import FILE
from sinks.flow_settings import Safety
from streaming.flow import Flow


def safety(properties: Properties, flow: Flow) -> Safety:
    """The ids that the file says, the secret of the ledger, and where the local file of ids is."""
    name = keys.CLUSTER_ID.name
    said = {alias: properties.at(alias, True, name) for alias in (flow.source, flow.target)}
    return Safety(
        cluster_ids={alias: entry.value for alias, entry in said.items() if entry is not None},
        pins=properties.get(keys.CHECKPOINT_DIR) / FILE,
        ledger_secret=properties.get(keys.LEDGER_SECRET, flow),
        ledger_factor=properties.get(keys.LEDGER_REPLICATION_FACTOR, flow),
        audit_factor=properties.get(keys.AUDIT_REPLICATION_FACTOR, flow),
    )
