"""docs/metrics.md, made from the list of metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from sinks.engine.metrics import EFFECTIVE, WORST, WORST_ROWS, Family, Metrics
from sinks.engine.pass_schedule import Reason
from sinks.engine.status import STATES_IN_A_JOB, Task
from sinks.engine.verify_status import STALLED
from sinks.kinds.offsets.verdicts import Verdict
from sinks.ledger.failover_record import State
from sinks.model.changes import Kind, Op
from sinks.notify.notifier import CallResult
from sinks.verify.differences import Difference
from sinks.verify.partition_report import NOT_DIFFERENT
from streaming.restarts import QueryState

PHASES = ("observe", "plan", "apply", "record")
"""Phases of a pass."""


DIFFERENCES = (*(kind for kind in Difference if kind not in NOT_DIFFERENT), STALLED)


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


def page() -> str:
    """The whole page."""
    families = sorted(Metrics("").families, key=lambda family: family.name)
    used = dict.fromkeys(label for family in families for label in family.labels)
    metrics = _table("metric|type|labels|meaning", map(_row, families))
    labels = _table("label|values", (f"`{label}`|{LABELS[label]}" for label in used))
    return "\n".join([METRICS_INTRO, metrics, "## Labels\n", labels, BESIDE])


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels).replace("`source`, `target`", "*flow*") or "-"
    return f"`{family.name}`|{family.type}|{labels}|{family.text}"


def _table(head: str, rows: Iterable[str]) -> str:
    lines = [head, "|".join("---" for _ in head.split("|")), *rows]
    return "\n".join("| " + " | ".join(line.split("|")) + " |" for line in lines) + "\n"
