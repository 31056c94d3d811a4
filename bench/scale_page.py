"""bench/figures/benchmarks-scale.md, from what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from bench.saved_figures import FIGURES, MIB, quantile, table, verdict

PAGE: Final = FIGURES / "benchmarks-scale.md"
RESULTS: Final = FIGURES / "benchmarks-scale.json"
NOTES: Final = FIGURES / "benchmarks-scale-notes.md"

FAST: Final = "MM2, intervals of 1 s"
OFTEN, SELDOM = "1", "5"
"""Mean seconds between two changes, as the results name them."""

INTRO: Final = """# 10,000 topics in four flows

`python -m bench.scale` writes this page and `benchmarks-scale.json`. One job has four flows into one target: five clusters of one broker. Topics have one partition and one record each, five ACLs, and a group that has read them.

1. The target is empty, and the job makes everything.
2. Another job finds all in step: its start, full comparisons (`POST /look`), and changes of `retention.ms` at random topics. Each change is timed until `DescribeConfigs` on the target shows it. Then a minute without a change.
3. MM2 runs alone with the same four flows, `sync.topic.configs`, `sync.topic.acls` and `refresh.topics` at 1 s, and syncs no group offsets.

{cores} cores and {memory_gib} GiB for five brokers, MM2 or Spark together, Python {python}: compare rows of one column, not machines.
"""

Row = tuple[str, Callable[[Mapping[str, Any]], float]]


def _time(part: str, gap: str, share: float) -> Callable[[Mapping[str, Any]], float]:
    return lambda size: quantile(size[part]["latencies"][gap], share)


def _together(part: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda size: sum(size[part]["cpu"].values())


def _memory(part: str, name: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda size: sum(size[part][name].values()) / MIB


SECTIONS: Final[Sequence[tuple[str, Sequence[Row]]]] = (
    (
        "Starts and full comparisons, seconds",
        (
            (
                "empty target: topics and configs made, by the end of the first pass",
                lambda size: size["first"]["seconds"]["topic-config"],
            ),
            ("empty target: ACLs made, by the end of the same pass", lambda size: size["first"]["seconds"]["acl"]),
            ("empty target: all groups synced", lambda size: size["first"]["seconds"]["groups synced"]),
            (
                "all groups moved on, from when MM2's records and offset-syncs are there",
                lambda size: size["first"]["seconds"]["groups moved"],
            ),
            ("all in step: topics and configs compared", lambda size: size["steady"]["first"]["topic-config"]),
            ("all in step: ACLs compared", lambda size: size["steady"]["first"]["acl"]),
            ("all in step: all groups compared", lambda size: size["steady"]["first"]["groups compared"]),
            (
                "full comparison of one flow, after the changes, median",
                lambda size: statistics.median(size["steady"]["full_later"]["one"]),
            ),
            ("the slowest of four at once", lambda size: max(size["steady"]["full_later"]["all"])),
        ),
    ),
    (
        "Changes, seconds",
        (
            ("Lockstep, one a second: p50", _time("steady", OFTEN, 0.5)),
            ("p99", _time("steady", OFTEN, 0.99)),
            (f"{FAST}, one a second: p50", _time("mm2", OFTEN, 0.5)),
            ("p99", _time("mm2", OFTEN, 0.99)),
            ("Lockstep, one in 5 s: p50", _time("steady", SELDOM, 0.5)),
            ("p99", _time("steady", SELDOM, 0.99)),
            (f"{FAST}, one in 5 s: p50", _time("mm2", SELDOM, 0.5)),
            ("p99", _time("mm2", SELDOM, 0.99)),
            ("Lockstep, an ACL that is granted: median", lambda size: statistics.median(size["steady"]["acls"])),
            ("slowest", lambda size: max(size["steady"]["acls"])),
        ),
    ),
    (
        "An idle minute, CPU-seconds",
        (
            ("Lockstep: job", lambda size: size["steady"]["cpu"]["job"]),
            ("the four sources' brokers", lambda size: size["steady"]["cpu"]["sources"]),
            ("the target's broker", lambda size: size["steady"]["cpu"]["target"]),
            ("together", _together("steady")),
            (f"{FAST}: MM2", lambda size: size["mm2"]["cpu"]["job"]),
            ("the four sources' brokers", lambda size: size["mm2"]["cpu"]["sources"]),
            ("the target's broker", lambda size: size["mm2"]["cpu"]["target"]),
            ("together", _together("mm2")),
        ),
    ),
    (
        "Memory, MiB resident",
        (
            ("Lockstep, after the changes: JVM", lambda size: size["steady"]["resident"]["jvm"] / MIB),
            ("Python", lambda size: size["steady"]["resident"]["python"] / MIB),
            ("at most, each process at its own moment", _memory("steady", "peak")),
            ("at most while everything is made", _memory("first", "peak")),
            (FAST, _memory("mm2", "resident")),
        ),
    ),
)

GOALS: Final[Sequence[tuple[str, float, str, Callable[[Mapping[str, Any]], float]]]] = (
    (
        "one change in 5 s: p99, to MM2's at 1 s",
        1.0,
        "of MM2's",
        lambda size: _time("steady", SELDOM, 0.99)(size) / _time("mm2", SELDOM, 0.99)(size),
    ),
    (
        "CPU of an idle minute, together, to MM2's at 1 s",
        1 / 3,
        "of MM2's",
        lambda size: _together("steady")(size) / _together("mm2")(size),
    ),
    ("one change a second: p99", 5.0, "s", _time("steady", OFTEN, 0.99)),
    ("most memory of the job", 2048.0, "MiB", _memory("steady", "peak")),
)
"""Of the largest size: what, at most, its unit, and how to read it."""


def page(found: Mapping[str, Any]) -> str:
    """The whole page."""
    sizes = {int(count): of for count, of in found["sizes"].items()}
    parts = [INTRO.format(**found["facts"])]
    for title, rows in SECTIONS:
        parts.append(f"## {title}\n\n{_table(sizes, rows)}\n")
    parts.append(_goals(sizes))
    if NOTES.exists():
        parts.append(NOTES.read_text())
    return "\n".join(parts)


def _table(sizes: Mapping[int, Mapping[str, Any]], rows: Sequence[Row]) -> str:
    counts = sorted(sizes)
    cells = []
    for name, read in rows:
        values = [_value(sizes[count], read) for count in counts]
        first, last = values[0], values[-1]
        grows = "-" if len(counts) < 2 or not first or last is None else f"{last / first:.1f}"
        cells.append([name, *map(_shown, values), grows])
    return table(("", *(f"{count:,} topics" for count in counts), "grows by"), cells)


def _value(size: Mapping[str, Any], read: Callable[[Mapping[str, Any]], float]) -> float | None:
    """None: not measured."""
    try:
        return read(size)
    except KeyError:
        return None


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _goals(sizes: Mapping[int, Mapping[str, Any]]) -> str:
    count, rows = max(sizes), []
    for name, most, unit, read in GOALS:
        value = _value(sizes[count], read)
        text = "not measured" if value is None else verdict(value - most, _shown(value - most))
        rows.append((name, f"≤ {_shown(most)} {unit}", _shown(value), text))
    return f"## Goals at {count:,} topics\n\n" + table(("what", "goal", "measured", ""), rows) + "\n"
