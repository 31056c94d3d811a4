"""docs/rights.md, made from the table of rights."""

from __future__ import annotations

from collections.abc import Mapping

from app.rights.flow_rights import DRILL_RULES, FAILOVER_RULES, RIGHT_RULES, RightRule
from sinks.model.kind_row import On

RESOURCE_NAMES: Mapping[On, str] = {
    On.CLUSTER: "`CLUSTER`",
    On.UPSTREAM: "`TOPIC` `*`",
    On.REMOTE: "`TOPIC` prefix `a.`",
    On.OFFSET_SYNCS: "`TOPIC` `mm2-offset-syncs.b.internal`",
    On.CHECKPOINTS: "`TOPIC` `a.checkpoints.internal`",
    On.HEARTBEATS: "`TOPIC` `heartbeats`",
    On.REPLICATED_HEARTBEATS: "`TOPIC` `a.heartbeats`",
    On.LEDGER: "`TOPIC` `lockstep-ledger.a.internal`",
    On.GROUPS: "`GROUP` `*`",
    On.TRANSACTIONAL_IDS: "`TRANSACTIONAL_ID` `*`",
    On.COMMITS: "`TOPIC` `__consumer_offsets`",
    On.TOPICS_LOG: "`TOPIC` `lockstep-topics.a.internal`",
    On.GROUPS_LOG: "`TOPIC` `lockstep-groups.a.internal`",
    On.AUDIT: "`TOPIC` `lockstep-audit.a.internal`",
    On.DRILL_TOPIC: "`TOPIC` prefix `failover-drill-`",
    On.DRILL_COPY: "`TOPIC` prefix `a.failover-drill-`",
    On.DRILL_GROUPS: "`GROUP` prefix `failover-drill-`",
}
"""For a flow a -> b with the default policy."""

RIGHTS_INTRO = """# The rights that the job needs

```
lockstep rights --principal User:lockstep --config mm2.properties    # prints the kafka-acls.sh commands; connects to nothing
lockstep validate --rights --config mm2.properties                   # which rights are missing? exit 1: some
```
The tables list the least rights, for a flow `a->b` with the default replication policy. This page is made from the code by `make docs`.

- `TOPIC` `*` and `GROUP` `*` on the source may be narrower, as `topics` and `groups` are. What the job may not see does not exist for it.
- The prefix `a.` is `*` under the identity policy.
- DESCRIBE and DESCRIBE_CONFIGS stand beside operations that imply them, so that an error names the right one.
"""


FAILOVER_SECTION = """
## What a failover needs besides

The operator who runs the commands of [failover.md](failover.md) needs these as well. `lockstep rights --failover` prints them. `lockstep preflight`, run by that operator, says which are missing. Optional rights serve `lockstep drill`, and `cutover` where it names or aborts open transactions. With `drill --topic` grant them on that name and its copy.
"""


def page() -> str:
    """The whole page."""
    head = "| cluster | on | operations | because it | when |\n|---|---|---|---|---|"
    of_failover = map(_row, (*FAILOVER_RULES, *DRILL_RULES))
    return "\n".join([RIGHTS_INTRO, head, *map(_row, RIGHT_RULES), FAILOVER_SECTION, head, *of_failover]) + "\n"


def _row(rule: RightRule) -> str:
    operations = ", ".join(rule.operations) + (" (optional)" if rule.optional else "")
    cells = (rule.side.value, f"{rule.on.value}: {RESOURCE_NAMES[rule.on]}", operations, rule.why, rule.condition)
    return "| " + " | ".join(cells) + " |"
