"""bench/figures/benchmarks-verify.md, from what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any, Final

from bench.saved_figures import FIGURES, table

PAGE: Final = FIGURES / "benchmarks-verify.md"
RESULTS: Final = FIGURES / "benchmarks-verify.json"

WAYS: Final = {
    "console": "`kafka-console-consumer` on both sides at once, to nowhere",
    "count": "Spark's own source, a batch with `count()` of each side",
    "digests": "`lockstep verify --level digests`",
}

HEAD: Final = (
    "way",
    "seconds",
    "records a second",
    "time beside `count()`",
    "CPU-seconds of Spark",
    "CPU beside `count()`",
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
    count, rows = statistics.median(seconds["count"]), []
    worked = {way: statistics.median(found) for way, found in plain["cpu"].items()}
    for way, text in WAYS.items():
        median = statistics.median(seconds[way])
        cpu = (f"{worked[way]:.1f}", f"{worked[way] / worked['count']:.2f}") if way in worked else ("not measured", "-")
        rows.append((text, f"{median:.1f}", f"{records / median:,.0f}", f"{median / count:.2f}", *cpu))
    return f"{records:,} records on each side.\n\n" + table(HEAD, rows) + "\n"


def _workers(workers: Mapping[str, list[float]], records: int) -> str:
    """Each worker has one core."""
    one, rows = statistics.median(workers["1"]), []
    for count, seconds in sorted(workers.items()):
        median = statistics.median(seconds)
        rows.append((count, f"{median:.1f}", f"{records / median:,.0f}", f"{one / median:.2f} times as fast"))
    text = "On a standalone master, with workers of one core each. On two cores a second worker takes from the brokers."
    return f"{text}\n\n" + table(("workers", "seconds", "records a second", "beside one"), rows) + "\n"


def _memory(memory: Mapping[str, Mapping[str, float]]) -> str:
    text = "On a standalone master, so that the driver reads no record itself. Heap: after a garbage collection. Resident: the most that Python and the JVM had together."
    rows = [
        (f"{int(millions)} million", f"{one['heap_mib']:.0f}", f"{one['resident_mib']:.0f}")
        for millions, one in sorted(memory.items(), key=lambda item: int(item[0]))
    ]
    return f"{text}\n\n" + table(("records on each side", "heap, MiB", "resident, MiB"), rows) + "\n"
