"""bench/figures/benchmarks-verify.md, from what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any, Final

from app.local.jars import PROJECT

PAGE: Final = PROJECT / "bench" / "figures" / "benchmarks-verify.md"
RESULTS: Final = PROJECT / "bench" / "figures" / "benchmarks-verify.json"

WAYS: Final = {
    "console": "`kafka-console-consumer` on both sides at once, to nowhere",
    "count": "Spark's own source, a batch with `count()` of each side",
    "digests": "`lockstep verify --level digests`",
}

HEAD: Final = (
    "| way | seconds | records a second | time beside `count()` | CPU-seconds of Spark | CPU beside `count()` |"
)

INTRO: Final = """# What verify costs

```
python -m bench.verify
```
writes this page and `benchmarks-verify.json`. Two clusters of one broker hold the same records of about 200 bytes in {partitions} partitions, with MM2's offset-syncs. Brokers and Spark (`local[2]`) share {cores} cores: compare ways, not machines. Each figure is the median of {rounds} rounds after a warm-up. A record counts once, though it is read on both sides.
"""


def page(found: Mapping[str, Any]) -> str:
    """The whole page."""
    parts = [INTRO.format(**found), "## Beside plain reading\n", _plain(found["plain"])]
    if workers := found.get("workers"):
        parts += ["## Two workers\n", _workers(workers, found["plain"]["records"])]
    if memory := found.get("memory"):
        parts += ["## The driver's memory\n", _memory(memory)]
    return "\n".join(parts)


def _plain(plain: Mapping[str, Any]) -> str:
    records, seconds = plain["records"], plain["seconds"]
    count = statistics.median(seconds["count"])
    rows = [f"{records:,} records on each side.\n", HEAD]
    rows.append("|---|---|---|---|---|---|")
    worked = {way: statistics.median(found) for way, found in plain["cpu"].items()}
    for way, text in WAYS.items():
        median = statistics.median(seconds[way])
        cpu = (f"{worked[way]:.1f}", f"{worked[way] / worked['count']:.2f}") if way in worked else ("not measured", "-")
        cells = (text, f"{median:.1f}", f"{records / median:,.0f}", f"{median / count:.2f}", *cpu)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def _workers(workers: Mapping[str, list[float]], records: int) -> str:
    """Each worker has one core."""
    one = statistics.median(workers["1"])
    rows = [
        "On a standalone master, with workers of one core each. On two cores a second worker takes from the brokers.\n",
        "| workers | seconds | records a second | beside one |",
    ]
    rows.append("|---|---|---|---|")
    for count, seconds in sorted(workers.items()):
        median = statistics.median(seconds)
        rows.append(f"| {count} | {median:.1f} | {records / median:,.0f} | {one / median:.2f} times as fast |")
    return "\n".join(rows) + "\n"


def _memory(memory: Mapping[str, Mapping[str, float]]) -> str:
    rows = [
        "On a standalone master, so that the driver reads no record itself. Heap: after a garbage collection. Resident: the most that Python and the JVM had together.\n"
    ]
    rows += ["| records on each side | heap, MiB | resident, MiB |", "|---|---|---|"]
    for millions, one in sorted(memory.items(), key=lambda item: int(item[0])):
        rows.append(f"| {int(millions)} million | {one['heap_mib']:.0f} | {one['resident_mib']:.0f} |")
    return "\n".join(rows) + "\n"
