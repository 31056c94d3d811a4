"""docs/configuration.md, made from the table of keys: `python -m app.docs_pages.configuration_page` writes it."""

from __future__ import annotations

from app.local.jars import PROJECT
from app.properties.keys import TABLE, Acts, Key, KeyScope
from app.properties.value_types import DURATION_SECONDS
from streaming.durations import written

CONFIGURATION_PAGE = PROJECT / "docs" / "configuration.md"

CONFIGURATION_INTRO = """# Configuration

Lockstep reads MM2's own properties file; one written for MM2 works as it is. `lockstep validate` reports every mistake in these keys at once, with file, line, key, what is allowed and the nearest known key; clients' settings are checked when it connects, cluster by cluster. This page is made from the code by `make docs`.

- **Precedence**, as in MM2: `a->b.KEY` holds for one flow and wins over `KEY`, which holds for all.
- **Only for Lockstep**: any key of MM2's may carry the prefix `lockstep.` (`lockstep.KEY`, `a->b.lockstep.KEY`, `lockstep.a->b.KEY`) and then wins over its bare form, so that one file can turn a sync off for MM2 and on for Lockstep. Everything with the prefix wins over everything without: `lockstep.KEY` over `a->b.KEY`, too.
- **Client settings** of a cluster go by Java's names: `a.bootstrap.servers`, `a.security.protocol`, `a.sasl.jaas.config`, also under `a.admin.`, `a.consumer.`, `a.producer.`. They are passed to Spark's source and Java's Admin as they are, and translated for confluent-kafka, which reads and writes records; a security setting that has no counterpart there is an error, not silence.
- **Values from elsewhere**: `${env:NAME}`, `${file:PATH:KEY}`, `${dir:PATH:KEY}` are resolved as Kafka's config providers do (KIP-297, KIP-421); they need no declaration.
- **Classes**: those that Kafka ships go by their Java name; your own are `package.module:Class` on Python's path.
- **Changes**: a running job reads its file again when it changes, at SIGHUP and at `lockstep reload`. All of it is checked first; with one mistake in it nothing changes. The last column says what a change does. Passwords that are behind `${file:…}` are read again at `lockstep reload`.
- **Overrides**: what holds for a flow and can change while the job runs can also be kept beside the flow, stronger than every line here: [configs.md](configs.md#locksteps-own-configs).
- **Intervals**: MM2's `…interval.seconds` do not hold for Lockstep, which polls when it has a reason to; with the prefix `lockstep.` they do. A full comparison (`lockstep.full.comparison.interval`) waits for none of them.
- **What `validate` and the start warn of**, beside mistakes: keys that nobody knows, which are mistakes with `--strict`, and those with the prefix always; `forwarding.admin.class`, since Lockstep writes past it; `transforms`, which may rename, change or drop records; `emit.offset-syncs.enabled=false`, without which no offset is translated; heartbeats that reach no target, without which the state is `NO_HEARTBEAT`; intervals that hold for MM2 alone. Each warning says what it means and what to write.
- **MM2 of Kafka 3** works with the same file, but takes more topics for internal: up to 3.9 every topic whose name ends in `.internal` or `-internal` is internal to it and never replicated, since Kafka 4 (KIP-1074) only `mm2….internal` and `….checkpoints.internal`. Lockstep does as Kafka 4 does. Beside an MM2 of Kafka 3, exclude the others, or Lockstep creates topics on the target that MM2 never fills: `topics.exclude = .*[\\\\-\\\\.]internal, .*\\\\.replica, __.*`. Up to 3.0 the names of its internal topics have dots whatever `replication.policy.separator` says (KIP-690, KIP-949): beside one, write `replication.policy.internal.topic.separator.enabled=false`.
"""


def page() -> str:
    """The whole page."""
    parts = [CONFIGURATION_INTRO]
    for title, rows in (
        ("Keys of the whole job", [key for key in TABLE.values() if key.scope is KeyScope.JOB]),
        ("Keys of a cluster, behind its alias", [key for key in TABLE.values() if key.scope is KeyScope.CLUSTER]),
        ("Keys of a flow", [key for key in TABLE.values() if key.scope is KeyScope.FLOW]),
    ):
        parts.append(f"## {title}\n")
        parts.append(
            "| key | allowed | default | meaning | from | acts | a change holds |\n|---|---|---|---|---|---|---|"
        )
        parts.append("\n".join(_row(key) for key in rows) + "\n")
    return "\n".join(parts)


def _row(key: Key[object]) -> str:
    default = _default(key)
    acts = "" if key.acts is Acts.ALWAYS else key.acts.value
    cells = (f"`{key.name}`", key.type.allowed, default, key.doc, key.source, acts, key.live.value)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(key: Key[object]) -> str:
    value = key.default
    if key.type is DURATION_SECONDS and isinstance(value, float):
        return f"`{written(value)}`"
    if value is None or value in ((), "", []):
        return "-"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple | list):
        return "`" + ", ".join(str(part) for part in value) + "`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


if __name__ == "__main__":
    CONFIGURATION_PAGE.write_text(page())
