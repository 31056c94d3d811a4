"""What each metric means, by its name without `lockstep_` and `_total`: Prometheus' HELP, and docs/metrics.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EFFECTIVE: Final = "effective"
"""The drift of configs that are set on neither side and differ in effect, as if it were a kind."""

METRIC_TEXTS: Final[Mapping[str, str]] = {
    "flow_heartbeat_age_seconds": "How long ago the newest of MM2's heartbeats that is known was emitted",
    "replication_latency_seconds": "How long MM2 took to copy its newest heartbeat from source to target",
    "drift": "Differences between source and target that are not mended, NaN while they are not known; of the kind "
    f"`{EFFECTIVE}`, configs that are set on neither side and differ in effect",
    "flow_state": "1 for the state that a flow is in, 0 for the others (commands.md)",
    "task_state": "1 for what becomes of a kind of the flow now, 0 for the others (commands.md)",
    "last_success_timestamp_seconds": "When a pass last left a kind with no difference, in seconds since 1970",
    "failover_state": "1 for how far a failover of the flow is, 0 for the others (failover.md); NaN for all of them "
    "while the ledger cannot be read",
    "failover_ready": "1 where the last preflight (failover.md) found that the flow could fail over, 0 where not, NaN "
    "where nobody can tell",
    "failover_records_at_risk": "Records that a failover would have lost at the last preflight, NaN where nobody can "
    "tell",
    "failover_seconds_at_risk": "Age of the oldest record that a failover would have lost at the last preflight, NaN "
    "where nobody can tell",
    "failover_preflight_seconds": "How long the last preflight took",
    "lost_before_copying_records": "Records, at most, that the source's retention took before MM2 copied them, until "
    "`lockstep ledger acknowledge`; NaN while the ledger cannot be read",
    "leader": "1 where this process leads the flow and writes it, 0 where it stands by for another one",
    "changes": "Changes that Lockstep tried to write to the target",
    "passes": "Passes, each of which observes, plans, applies and records, by what made them due; one may have several "
    "reasons",
    "refused": "Changes that the target refused, and that are tried again ever less often",
    "admin_requests": "Requests of Kafka's admin API that Lockstep sent",
    "file_rejected": "1 while the properties file has mistakes, so that the job goes on with what it had read before, "
    "else 0",
    "listener_calls": "Calls of topic.listener.class and group.listener.class",
    "reporter_failures": "Calls of metric.reporters that failed, or took too long",
    "undecodable": "Records in MM2's internal topics that are none of MM2's",
    "pass_failures": "Passes that an error ended: nothing more was written in them",
    "offset_verdicts": "Partitions of consumer groups by what becomes of their offset on the target (offsets.md)",
    "offset_evidence_refused": "Offset-syncs and checkpoints that cannot be true, and were not used (offsets.md)",
    "offset_error_bound_records": "The most records that a group would read twice on the target",
    "reconcile_seconds": "How long each phase of a pass took",
    "batch_seconds": "How long Lockstep worked in one micro-batch of Spark's, on MM2's records and on passes",
    "batch_rows": "Records of MM2's internal topics in the last micro-batch",
    "query_state": "1 for the state that the streaming query into a target is in, 0 for the others",
    "query_restarts": "How often the streaming query into a target was started again after it failed",
    "query_active": "1 while Spark runs the streaming query into a target, else 0",
    "query_batch": "Number of the last micro-batch that Spark committed",
    "query_rows": "Records of MM2's internal topics that Spark's micro-batches read",
    "query_batch_seconds": "How long the last micro-batch took as Spark counts it, with its own work",
    "query_batch_timestamp_seconds": "When Spark last committed a micro-batch, in seconds since 1970",
    "verified_through_timestamp_seconds": "All records that the source had at this time (seconds since 1970) were "
    "compared with the target's; there with lockstep.verify.enabled alone",
    "verify_differences": "Records that differ between source and target, by topic and by what differs; of the kind "
    "STALLED, partitions that stand still while their source moves",
    "build_info": "Always 1; its label is the version",
}
