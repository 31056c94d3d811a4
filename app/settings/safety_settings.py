"""What protects the target of a flow, and how it fails over, from the keys of the file."""

from __future__ import annotations

from app.properties import keys
from app.properties.scoped_keys import Properties
from sinks.engine.pins import FILE
from sinks.failover.listener import FailoverListener
from sinks.flow_settings import FailoverRules, Safety
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


def failover_rules(properties: Properties, flow: Flow, listener: FailoverListener) -> FailoverRules:
    """The limits of `preflight`, the proof of a fence, and who is notified."""
    return FailoverRules(
        max_loss=properties.get(keys.FAILOVER_MAX_LOSS, flow) or 0,
        max_loss_age=properties.get(keys.FAILOVER_MAX_LOSS_AGE, flow),
        max_drift=properties.get(keys.FAILOVER_MAX_DRIFT, flow) or 0,
        max_groups_skipping=properties.get(keys.FAILOVER_MAX_GROUPS_SKIPPING, flow) or 0,
        proof_seconds=properties.get(keys.FAILOVER_FENCE_PROOF, flow),
        ends_interval=properties.get(keys.FAILOVER_ENDS_INTERVAL, flow),
        preflight_interval=properties.get(keys.FAILOVER_PREFLIGHT_INTERVAL, flow) or 0,
        listener=listener,
        program=properties.get(keys.FAILOVER_PROGRAM, flow),
        hook_seconds=properties.get(keys.LISTENER_TIMEOUT, flow),
        mm2_copies_acls=properties.mm2_get(keys.SYNC_TOPIC_ACLS, flow),
    )
