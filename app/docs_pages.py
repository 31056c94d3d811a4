"""Writes the generated pages and tables in docs/: `python -m app.docs_pages`, which `make docs` runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from app.cli.lazy_commands import COMMANDS
from app.http.openapi import API_BASE, OPERATIONS, Operation
from app.local.jars import PROJECT
from app.overrides.overridable import ADDRESS_ENDINGS, CLASS_ENDINGS, CLOSED, OFF, REFERENCES, closed
from app.overrides.view import default_text
from app.properties.keys import OPENABLE, TABLE, Key, KeyScope, Live
from app.properties.value_types import BOOLEAN, CLASS, DURATION_SECONDS, PATTERNS, TEXT, WORDS
from app.rights.flow_rights import DRILL_RULES, FAILOVER_RULES, RIGHT_RULES, RightRule, resource
from app.settings import load
from sinks.engine.metrics import EFFECTIVE, FAMILIES, WORST, WORST_ROWS, Family
from sinks.engine.pass_schedule import Reason
from sinks.engine.status import STATES_IN_A_JOB, Task
from sinks.engine.verify_status import STALLED
from sinks.flow_settings import FlowSettings
from sinks.kinds.offsets.verdicts import Verdict
from sinks.ledger.failover_record import TRANSITIONS, Command, State, commands_from
from sinks.model.changes import Kind, Op
from sinks.model.registry import On
from sinks.notify.notifier import CallResult
from sinks.verify.partition_verdicts import Difference
from streaming.durations import written
from streaming.query_restarts import QueryState

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
| intervals | MM2's `…interval.seconds` hold for Lockstep only with the prefix; no interval delays a full comparison |

`validate` also warns of lines that mean something else beside Lockstep: `forwarding.admin.class`, `transforms`, `emit.offset-syncs.enabled=false`, heartbeats that reach no target. Unknown keys are warnings, with `--strict` or the prefix mistakes.

**Topics that end in `.internal` or `-internal`** are copied by MM2 of Kafka 4 and not by MM2 of Kafka 3 (KIP-1074). Lockstep does as the MM2 that runs there: it keeps such a topic in step once MM2 has made the copy, and never makes one itself. Under a policy that keeps names it leaves the copy to MM2, with configs and ACLs. Until then `validate` and `preflight` name the topic, and `cutover` refuses to leave it behind unless `topics.exclude` or `--accept` names it. Beside an MM2 up to 3.0 write `replication.policy.internal.topic.separator.enabled=false`.

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
"""The word in the page's tables, by what a key type allows. The page explains each word once."""


CHANGES = {Live.FLOW: "", Live.JOB: "restart the job"}
"""What the operator must do after a changed line, in fewer words than in messages."""


def configuration_page() -> str:
    parts = [CONFIGURATION_INTRO]
    for title, rows in (
        ("Keys of the whole job", [key for key in TABLE.values() if key.scope is KeyScope.JOB]),
        ("Keys of a cluster, behind its alias", [key for key in TABLE.values() if key.scope is KeyScope.CLUSTER]),
        ("Keys of a flow", [key for key in TABLE.values() if key.scope is KeyScope.FLOW]),
    ):
        parts.append(f"## {title}\n")
        parts.append("| key | allowed | default | meaning | from | a change |\n|---|---|---|---|---|---|")
        parts.append("\n".join(_key_row(key) for key in rows) + "\n")
    return "\n".join(parts)


def _key_row(key: Key[object]) -> str:
    meaning = f"{key.doc} Holds only with the prefix lockstep." if key.prefixed else key.doc
    live = CHANGES.get(key.live, key.live.value.removeprefix("at once; "))
    source = key.kip or ("" if key.name.startswith("lockstep.") else "MM2")
    allowed = SHORT.get(key.type.allowed, key.type.allowed)
    cells = (f"`{key.name}`", allowed, _default(key), meaning, source, live)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(key: Key[object]) -> str:
    if key.type is DURATION_SECONDS and isinstance(key.default, float):
        return f"`{written(key.default)}`"
    text = default_text(key.default)
    return "-" if text is None else f"`{text.replace(',', ', ')}`"


PHASES = ("observe", "plan", "apply", "record")
"""The values of the label `phase`: phases of a pass."""


DIFFERENCES = (*(kind for kind in Difference if kind is not Difference.UNVERIFIABLE), STALLED)


def _words(words: Iterable[str | Enum]) -> str:
    return ", ".join(f"`{word.value if isinstance(word, Enum) else word}`" for word in words)


REASONS: Mapping[Reason, str] = {
    Reason.SIGNAL: "the source's metadata log told of a change.",
    Reason.STREAM: "a micro-batch brought what MM2 wrote to its topics.",
    Reason.POLL: "a kind was to be polled, compared or written again, everything was to be compared, or this process "
    "could begin to lead.",
    Reason.REQUEST: "an operator asked (`lockstep look`), or the settings of the flow changed.",
}

LABELS: Mapping[str, str] = {
    "evidence": "The refused evidence of MM2: `sync`, `checkpoint`.",
    "source": "The alias of the flow's source.",
    "target": "The alias of the flow's target.",
    "kind": f"What is kept in step: {_words(Kind)}; drift also has `{EFFECTIVE}`. In "
    f"`lockstep_verify_differences` the difference: {_words(DIFFERENCES)}.",
    "state": f"In `lockstep_flow_state`: {_words(STATES_IN_A_JOB)}. In `lockstep_task_state`: {_words(Task)}. In "
    f"`lockstep_query_state`: {_words(QueryState)}. In `lockstep_failover_state`: {_words(State)}.",
    "op": f"{_words(Op)}.",
    "result": f"Changes: `applied`, `failed`. Requests: `ok`, or Kafka's error. Listeners: {_words(CallResult)}.",
    "cluster": "The alias of the cluster that was asked.",
    "api": "The request, by its name in Kafka's protocol.",
    "listener": "`topic` for `topic.listener.class`, `group` for `group.listener.class`.",
    "topic": "The internal topic of MM2 that held the record. In `lockstep_verify_differences` a topic of the source; "
    f"only the {WORST_ROWS} largest values are shown.",
    "verdict": f"{_words(Verdict)}; `lockstep offsets` says why.",
    "group": f"The consumer group; only the {WORST:,} largest values are shown.",
    "phase": f"{_words(PHASES)}.",
    "reason": f"Why a pass was due. {' '.join(f'`{one.value}`: {text}' for one, text in REASONS.items())}",
    "error": "What ended a pass: `ClusterUnreachable`, `LedgerUntrusted`, `WrongCluster` … or an error of Python.",
    "reporter": "The class, as `metric.reporters` names it.",
    "version": "The version of Lockstep.",
}

METRICS_INTRO = """# Metrics

The job serves these at `/metrics` of `lockstep.http.host:lockstep.http.port`, in Prometheus' text format. [http.md](http.md#the-token) has the token, [alerts.md](alerts.md) the alerts, [plugins.md](plugins.md#get-the-metrics) the reporters that push them. This page is made from the code by `make docs`.

*flow* stands for the labels `source` and `target`. A metric with labels appears with its first value. A histogram has `…_bucket`, `…_sum` and `…_count`.
"""

BESIDE = """## Metrics of other programs

| program | where |
| --- | --- |
| Spark | port 4040: `/metrics/prometheus` for driver and queries, `/metrics/executors/prometheus` for executors |
| MirrorMaker 2 | Prometheus' JMX exporter with `conf/prometheus/mm2-jmx-exporter.yml` |
"""


def metrics_page() -> str:
    families = sorted(FAMILIES, key=lambda family: family.name)
    used = dict.fromkeys(label for family in families for label in family.labels)
    metrics = _table("metric|type|labels|meaning", map(_metric_row, families))
    labels = _table("label|values", (f"`{label}`|{LABELS[label]}" for label in used))
    return "\n".join([METRICS_INTRO, metrics, "## Labels\n", labels, BESIDE])


def _metric_row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels).replace("`source`, `target`", "*flow*") or "-"
    return f"`{family.name}`|{family.type}|{labels}|{family.text}"


def _table(head: str, rows: Iterable[str]) -> str:
    lines = [head, "|".join("---" for _ in head.split("|")), *rows]
    return "\n".join("| " + " | ".join(line.split("|")) + " |" for line in lines) + "\n"


SAMPLE = """clusters = a, b
a.bootstrap.servers = a:9092
b.bootstrap.servers = b:9092
a->b.enabled = true
"""
"""A flow a -> b with the default policy."""


@cache
def _sample_flow() -> FlowSettings:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "mirror.properties"
        file.write_text(SAMPLE, encoding="utf-8")
        return load(file, environ={}).flows[0]


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


def rights_page() -> str:
    head = "| cluster | on | operations | because it | when |\n|---|---|---|---|---|"
    of_failover = map(_right_row, (*FAILOVER_RULES, *DRILL_RULES))
    return "\n".join([RIGHTS_INTRO, head, *map(_right_row, RIGHT_RULES), FAILOVER_SECTION, head, *of_failover]) + "\n"


def _right_row(rule: RightRule) -> str:
    operations = ", ".join(rule.operations) + (" (optional)" if rule.optional else "")
    type, name, pattern = resource(_sample_flow(), rule.on)
    named = f"`{type}`" if rule.on is On.CLUSTER else f"`{type}`{' prefix' * (pattern == 'PREFIXED')} `{name}`"
    cells = (rule.side.value, f"{rule.on.value}: {named}", operations, rule.why, rule.condition)
    return "| " + " | ".join(cells) + " |"


# Tables that are made from the code, within pages that are written by hand.


SHARED = frozenset(
    {"--config", "--flow", "--output", "--timeout", "--strict", "--help", "--why", "--dry-run", "--take-over", "--yes"}
)
"""Options of many commands. The page explains them once, so the table leaves them out."""

LED_THROUGH = (Command.FENCE, Command.DRAIN, Command.PROMOTE)
"""The commands whose steps `cutover` runs."""

BESIDES: Mapping[str, tuple[str, ...]] = {"addresses": ADDRESS_ENDINGS, "classes": CLASS_ENDINGS}
"""Endings of plug-in keys that a word of `lockstep.overrides.allowed` also opens."""


def commands() -> str:
    """Returns the table of all commands, with arguments, options and purpose."""
    rows = [row for name, command in COMMANDS.items() for row in _of_command(name, command.load(name))]
    return "\n".join(["| command | does | options |", "|---|---|---|", *rows])


def _of_command(name: str, command: Any) -> Iterator[str]:
    """Yields the row of a command, or a row for each of its subcommands."""
    below = getattr(command, "commands", {})
    for word, one in below.items():
        yield from _of_command(f"{name} {word}", one)
    if not below or any(_option(one) for one in command.params):
        arguments = [_argument(one) for one in command.params if one.param_type_name == "argument"]
        options = [_option(one) for one in command.params if one.param_type_name == "option" and not one.hidden]
        does = " ".join(command.help.partition("\n\n")[0].split())
        usage = " ".join([name, *arguments])
        yield f"| `{usage}` | {does} | {', '.join(filter(None, options))} |".replace("  ", " ")


def _argument(parameter: Any) -> str:
    word = (parameter.metavar or parameter.name or "").upper().strip("{}[].").replace("|", "/")
    shown = f"{word}…" if parameter.nargs == -1 else word
    return shown if parameter.required else f"[{shown}]"


def _option(parameter: Any) -> str:
    """Returns the long name of an option, or "" for one of `SHARED`."""
    longest = max(parameter.opts, key=len)
    return "" if longest in SHARED else f"`{longest}`"


def operations() -> str:
    return "\n".join(["| path | answers | filter |", "|---|---|---|", *map(_operation, OPERATIONS)])


def _operation(operation: Operation) -> str:
    name = f"`{operation.filter[0]}`" if operation.filter else "`search`" if operation.paged else ""
    return f"| `{API_BASE}{operation.path}` | {operation.summary} | {name} |".replace("  ", " ")


def diagram() -> str:
    """Returns the failover's states and transitions as a Mermaid diagram, which GitHub draws."""
    arrows: dict[tuple[State, State], str] = {}
    for (state, command), row in TRANSITIONS.items():
        arrows[state, row.during] = arrows[row.during, row.then] = command.typed
    order = list(State)
    lines = [
        f"    {here} --> {then}: {word}"
        for (here, then), word in sorted(arrows.items(), key=lambda arrow: [order.index(one) for one in arrow[0]])
        if here is not then
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> MIRRORING", *lines, "```"])


def steps() -> str:
    """Returns the table of failover commands: states before and after, and steps."""
    rows = []
    for command in Command:
        if command is Command.DRAIN:
            rows.append(_cutover())
            continue
        found = {state: row for (state, one), row in TRANSITIONS.items() if one is command}
        then = {str(row.then) if row.then is not state else "stays" for state, row in found.items()}
        does = "; ".join(map(str, next(iter(found.values())).steps))
        sides = [", ".join(sorted(map(str, found), key=[str(one) for one in State].index)), " or ".join(sorted(then))]
        rows.append(f"| `{command.typed}` | {sides[0]} | {does} | {sides[1]} |")
    return "\n".join(["| command | from | does | then it is |", "|---|---|---|---|", *rows])


def _cutover() -> str:
    """Returns the row of `cutover`, which runs the steps of three commands."""
    does = ". It ".join(map(str, TRANSITIONS[State.FENCED, Command.DRAIN].steps))
    froms = [str(state) for state in State if set(LED_THROUGH) & set(commands_from(state))]
    said = f"`fence`, if nothing is fenced. Then it {does}. Then `promote`"
    return f"| `cutover` | {', '.join(froms)} | {said} | {State.PROMOTED} |"


def opened() -> str:
    return "\n".join(["| word | opens |", "|---|---|", *(f"| `{word}` | {_keys(word)} |" for word in OPENABLE)])


def _keys(word: str) -> str:
    if word == REFERENCES:
        return "values such as `${file:PATH:KEY}`, of any key that may be overridden"
    keys = [name for name in TABLE if CLOSED[word](name) and closed(name, False, OPENABLE) is None]
    if word == "kinds":
        return f"{_words(keys)}; `{OFF}` needs no word"
    of_plugins = f"; keys of plug-ins that end in {_words(BESIDES[word])}" if word in BESIDES else ""
    return _words(keys) + of_plugins


MADE: Mapping[str, tuple[str, Callable[[], str]]] = {
    "commands.md": ("commands", commands),
    "http.md": ("api", operations),
    "failover.md": ("states", lambda: f"{diagram()}\n\n{steps()}"),
    "safety.md": ("opened", opened),
}
"""For each page: the name in the two markers around its generated part, and the function that makes that part."""


def with_made_part(page: str) -> str:
    """Returns the page's text with its generated part renewed."""
    name, make = MADE[page]
    begin, end = f"<!-- {name}: made from the code by `make docs` -->", f"<!-- end of {name} -->"
    before, _, rest = (PROJECT / "docs" / page).read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{make()}\n\n{end}{after}"


PAGES: Mapping[str, Callable[[], str]] = {
    "configuration.md": configuration_page,
    "metrics.md": metrics_page,
    "rights.md": rights_page,
    **{page: partial(with_made_part, page) for page in MADE},
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (PROJECT / "docs" / name).write_text(page(), encoding="utf-8")
