"""The drill's part of bench/figures/benchmarks.md."""

from __future__ import annotations

from bench.drill.outcome_rows import Line, goals, lines
from bench.drill.run import DrillSeries
from bench.saved_figures import table

HEAD = (
    "groups",
    "MM2's checkpoints: skipped",
    "read twice, median",
    "max",
    "not synced",
    "{writer}: skipped",
    "read twice, median",
    "max",
    "not synced",
    "least possible, median",
    "max",
)
NAMES = {"lockstep": "Lockstep", "mm2": "MM2's own sync"}
HEADINGS = {
    "not killed": "MM2 not killed",
    "killed": "MM2 killed and restarted, the target has caught up",
    "while it catches up": "MM2 killed, just restarted and still catching up",
    "not killed, verified": "MM2 not killed, by exact offsets of `verify` alone",
    "killed, verified": "MM2 killed and restarted, by exact offsets of `verify` alone",
}


INTRO = """## Where groups continue

`python -m bench.drill` writes five topics on the source: busy, quiet, compacted, transacted with a fifth aborted, idle. MM2 copies them with checkpoints every second. Groups with known positions commit and stop. Then the source counts as lost. What a group has still to read on the source is compared, record by record, with what it gets on the target.

- *Skipped*: the target has the record, and the group does not get it.
- *Least possible*: read twice from the best offset there is. After a crash MM2 sends records again.
- Numbers are records; brackets hold the partitions of groups in a row.

{rounds} rounds of at least {seconds} s, MM2 killed (SIGKILL) in every other, {groups} groups for each topic and place. Compaction took {cleaned} records from the source. With `isolation.level={isolation}` MM2 left {aborted} records of aborted transactions on the target. Except in the last table, offsets had {settle} s without a change after the target had caught up."""


def section(drill: DrillSeries) -> str:
    """Goals and a table for each moment."""
    found = lines(drill.rows)
    parts = [_intro(drill), _goals(drill)]
    for moment in dict.fromkeys(line.moment for line in found):
        rows = [_row(line) for line in found if line.moment == moment]
        head = [name.format(writer=NAMES[drill.way.writer]) for name in HEAD]
        parts.append(f"### {HEADINGS[moment]}\n\n" + table(head, rows) + "\n")
    return "\n".join(parts)


def _intro(drill: DrillSeries) -> str:
    facts = {
        "rounds": drill.rounds,
        "seconds": f"{drill.size.seconds:g}",
        "groups": drill.size.groups,
        "settle": f"{drill.size.settle:g}",
        "isolation": "read_committed" if drill.way.read_committed else "read_uncommitted",
        "aborted": f"{drill.aborted:,}",
        "cleaned": f"{drill.cleaned:,}",
    }
    failed = "".join(f"\n\nA round came to no end and is left out: {text}." for text in drill.failed)
    return INTRO.format(**facts) + failed + "\n"


def _goals(drill: DrillSeries) -> str:
    rows = [(what, text, "reached" if good else "missed") for what, text, good in goals(drill.rows)]
    return table((NAMES[drill.way.writer], "measured", ""), rows) + "\n"


def _row(line: Line) -> list[str]:
    least = [f"{line.least:g}", str(line.most_of_least)]
    return [f"{line.place}, {line.topic} ({line.count})", *line.checkpoint.cells(), *line.synced.cells(), *least]
