"""docs/configuration.md, made from the table of keys."""

from __future__ import annotations

from app.properties.keys import TABLE, Acts, Key, KeyScope, Live
from app.properties.value_types import BOOLEAN, CLASS, DURATION_SECONDS, PATTERNS, TEXT, WORDS
from streaming.durations import written

CONFIGURATION_INTRO = """# Configuration

Lockstep reads MM2's own properties file. `lockstep validate` reports every mistake at once: file, line, key, what is allowed, the nearest known key. This page is made from the code by `make docs`.

| rule | |
|---|---|
| precedence | `a->b.KEY` holds for one flow and wins over `KEY` |
| for Lockstep alone | any key may carry the prefix `lockstep.` (`a->b.lockstep.KEY` too) and then wins over every form without it |
| client settings of a cluster | Java's names behind the alias: `a.bootstrap.servers`, `a.sasl.jaas.config`, also under `a.admin.`, `a.consumer.`, `a.producer.` |
| values from elsewhere | `${env:NAME}`, `${file:PATH:KEY}`, `${dir:PATH:KEY}` (KIP-297, KIP-421) |
| classes | Kafka's Java names, or `package.module:Class` on Python's path ([plugins.md](plugins.md)) |
| changes | a running job reads a changed file, also at SIGHUP and `lockstep reload`, all or nothing |
| overrides | keys of a flow can be kept in its ledger, stronger than the file ([configs.md](configs.md#locksteps-own-configs)) |
| intervals | MM2's `…interval.seconds` hold for Lockstep only with the prefix; a full comparison waits for none |

`validate` also warns of lines that mean something else beside Lockstep: `forwarding.admin.class`, `transforms`, `emit.offset-syncs.enabled=false`, heartbeats that reach no target. Unknown keys are warnings, with `--strict` or the prefix mistakes.

**Beside an MM2 of Kafka 3** write `lockstep.mm2.version=3`: it never replicates topics that end in `.internal` or `-internal`. Without the line Lockstep creates them on the target, MM2 never fills them, and no cutover drains them; `validate` names those that have records. Beside one up to 3.0 also write `replication.policy.internal.topic.separator.enabled=false`.

In the tables a default of `true` or `false` allows both. A *time* is `1 second`, `500 milliseconds`, `2 minutes` or plain seconds. *Patterns* are names and regular expressions, separated by commas. Keys without an entry under *from* are Lockstep's own. The last column says what a changed line does to a running job; if it is empty, the change holds at once.
"""

SHORT = {
    DURATION_SECONDS.allowed: "a time",
    PATTERNS.allowed: "patterns",
    WORDS.allowed: "a list",
    CLASS.allowed: "a class",
    TEXT.allowed: "text",
    BOOLEAN.allowed: "",
}
"""What is allowed, in the words that the page explains once."""


CHANGES = {Live.FLOW: "", Live.JOB: "restart the job"}
"""What a changed line does, where that is said in fewer words than messages need."""


def page() -> str:
    """The whole page."""
    parts = [CONFIGURATION_INTRO]
    for title, rows in (
        ("Keys of the whole job", [key for key in TABLE.values() if key.scope is KeyScope.JOB]),
        ("Keys of a cluster, behind its alias", [key for key in TABLE.values() if key.scope is KeyScope.CLUSTER]),
        ("Keys of a flow", [key for key in TABLE.values() if key.scope is KeyScope.FLOW]),
    ):
        parts.append(f"## {title}\n")
        parts.append("| key | allowed | default | meaning | from | a change |\n|---|---|---|---|---|---|")
        parts.append("\n".join(_row(key) for key in rows) + "\n")
    return "\n".join(parts)


def _row(key: Key[object]) -> str:
    meaning = key.doc if key.acts is Acts.ALWAYS else f"{key.doc} Holds {key.acts.value}"
    live = CHANGES.get(key.live, key.live.value.removeprefix("at once; "))
    source = "" if key.source == "Lockstep" else key.source
    allowed = SHORT.get(key.type.allowed, key.type.allowed)
    cells = (f"`{key.name}`", allowed, _default(key), meaning, source, live)
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
