"""Results as JSON, as tables for bench/figures/benchmarks.md, and as a plot."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

MIB = 1024 * 1024


@dataclass
class Result:
    """One way of replicating configs at one number of topics. Seconds; CPU in seconds an idle minute; bytes.

    `starting`: of the first changes after a start, which are not among the `latencies`."""

    name: str
    topics: int
    latencies: list[float]
    cpu_job: float
    cpu_source: float
    cpu_target: float
    resident: int
    requests: dict[str, float] = field(default_factory=dict)
    first_comparison: float | None = None
    starting: list[float] = field(default_factory=list)

    @property
    def cpu_all(self) -> float:
        """Job and both brokers together."""
        return self.cpu_job + self.cpu_source + self.cpu_target


def quantile(values: Sequence[float], share: float) -> float:
    """By linear interpolation between the two nearest (of 50 values, p99 is nearly the largest)."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def save(path: Path, results: Sequence[Result], facts: dict[str, Any]) -> None:
    """Everything measured, so that tables and plot can be written again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"facts": facts, "results": [asdict(result) for result in results]}
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def read(path: Path) -> tuple[list[Result], dict[str, Any]]:
    """What `save` wrote; nothing where there is no file."""
    if not path.exists():
        return [], {}
    document = orjson.loads(path.read_bytes())
    return [Result(**row) for row in document["results"]], document["facts"]


HEADER = (
    "| | change → target p50 | p90 | p99 | max | slowest of the ten right after the start "
    "| CPU-s an idle minute: job | source broker | target broker | together "
    "| admin requests a minute | write requests a minute | resident MiB | first comparison |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def table(results: Sequence[Result]) -> str:
    """One table of one number of topics."""
    return "\n".join([HEADER, *(_row(result) for result in results)])


def _row(result: Result) -> str:
    known = result.latencies
    times = [f"{quantile(known, share):.2f}" if known else "-" for share in (0.5, 0.9, 0.99, 1.0)]
    times.append(f"{max(result.starting):.2f}" if result.starting else "-")
    costs = [f"{cost:.1f}" for cost in (result.cpu_job, result.cpu_source, result.cpu_target, result.cpu_all)]
    reads, writes = result.requests.get("all"), result.requests.get("write")
    requests = [f"{count:.0f}" if count is not None else "not counted" for count in (reads, writes)]
    first = f"{result.first_comparison:.1f} s" if result.first_comparison is not None else "-"
    cells = [result.name, *times, *costs, *requests, f"{result.resident / MIB:.0f}", first]
    return "| " + " | ".join(cells) + " |"


def plot(results: Sequence[Result], path: Path) -> None:
    """The frontier: median latency against CPU, a line per way, a point per number of topics."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    for name in dict.fromkeys(result.name for result in results):
        rows = sorted((row for row in results if row.name == name and row.latencies), key=lambda row: row.topics)
        if not rows:
            continue
        xs, ys = [row.cpu_all for row in rows], [statistics.median(row.latencies) for row in rows]
        axes.plot(xs, ys, marker="o", label=name)
        for row, x, y in zip(rows, xs, ys, strict=True):
            axes.annotate(str(row.topics), (x, y), textcoords="offset points", xytext=(4, 4), fontsize=7)
    axes.set_xlabel("CPU seconds an idle minute, job and both brokers")
    axes.set_ylabel("median seconds until a change is on the target")
    axes.set_yscale("log")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
