"""docs/rights.md, made from the table of rights: `python -m app.docs_pages.rights_page` writes it."""

from __future__ import annotations

from collections.abc import Mapping

from app.local.jars import PROJECT
from app.rights.failover_rights import DRILL_RULES, FAILOVER_RULES
from app.rights.rights_table import RIGHT_RULES, On, RightRule

RIGHTS_PAGE = PROJECT / "docs" / "rights.md"

RESOURCE_NAMES: Mapping[On, str] = {
    On.CLUSTER: "`CLUSTER`",
    On.UPSTREAM: "`TOPIC` `*`, or those that `topics` matches",
    On.REMOTE: "`TOPIC` prefix `a.`; `*` where names stay the same",
    On.OFFSET_SYNCS: "`TOPIC` `mm2-offset-syncs.b.internal`",
    On.CHECKPOINTS: "`TOPIC` `a.checkpoints.internal`",
    On.HEARTBEATS: "`TOPIC` `heartbeats`",
    On.REPLICATED_HEARTBEATS: "`TOPIC` `a.heartbeats`",
    On.LEDGER: "`TOPIC` `lockstep-ledger.a.internal`",
    On.GROUPS: "`GROUP` `*`, or those that `groups` matches",
    On.TRANSACTIONAL_IDS: "`TRANSACTIONAL_ID` `*`",
    On.COMMITS: "`TOPIC` `__consumer_offsets`",
    On.TOPICS_LOG: "`TOPIC` `lockstep-topics.a.internal`",
    On.GROUPS_LOG: "`TOPIC` `lockstep-groups.a.internal`",
    On.AUDIT: "`TOPIC` `lockstep-audit.a.internal`",
    On.DRILL_TOPIC: "`TOPIC` prefix `failover-drill-`",
    On.DRILL_COPY: "`TOPIC` prefix `a.failover-drill-`; that of the topic you name where the policy appends to names",
    On.DRILL_GROUPS: "`GROUP` prefix `failover-drill-`",
}
"""For a flow a -> b with the default policy."""

RIGHTS_INTRO = """# The rights that the job needs

The least that the principal of Lockstep's clients must be allowed, here for a flow `a->b` with the default replication
policy; no more is needed. This page is made from the code by `python -m app.docs_pages.rights_page`.

- `lockstep rights --principal User:lockstep` prints the `kafka-acls.sh` commands for a properties file: with its names,
  for what it turns on, and nothing else. It connects to nothing.
- `lockstep validate --rights` asks both clusters what the job may do there (KIP-430), and says what is missing: exit
  code 1. It needs no rights for that, and writes nothing. A right that cannot be seen from outside,
  on a topic that does not exist yet, is `unknown`.
- A source's topics are granted with `*`. Grant prefixes instead where `topics` is narrower: what may not be seen is not
  there for Lockstep, and is not replicated.
- DESCRIBE and DESCRIBE_CONFIGS are in the table beside operations that imply them. They allow nothing more, and a right
  that is taken away later takes no other with it: the error then names the right one.
"""


FAILOVER_SECTION = """
## What a failover needs besides

Whoever runs the commands of [failover.md](failover.md) needs these as well. Of them the job needs READ alone, for its
own preflight: it is in the table above, too. `lockstep rights --failover` prints them all, and `lockstep preflight`
says which are missing: run it as whoever will fail over. The job's preflight only warns of those that it lacks.
Those that are optional are for `lockstep drill`, on the names that it makes by itself: for a topic that is named
with `--topic` they are needed on that name, on its copy, and on the groups that begin with it. Those on transactional
ids name an open transaction and end it: without them `cutover` waits for it all the same.
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


if __name__ == "__main__":
    RIGHTS_PAGE.write_text(page())
