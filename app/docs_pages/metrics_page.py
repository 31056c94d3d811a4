"""docs/metrics.md, made from the list of metrics: `python -m app.docs_pages.metrics_page` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum

from app.local.jars import PROJECT
from app.properties import keys
from sinks.engine.metrics import EFFECTIVE, WORST, WORST_ROWS, Family, Metrics
from sinks.engine.model import Kind, Op
from sinks.engine.pass_schedule import Reason
from sinks.engine.status import STATES_IN_A_JOB, Task
from sinks.engine.verify_status import STALLED
from sinks.failover.states import State
from sinks.kinds.offsets.verdicts import Verdict
from sinks.notify.notifier import CallResult
from sinks.verify.differences import Difference
from sinks.verify.partition_report import NOT_DIFFERENT
from streaming.restarts import QueryState

METRICS_PAGE = PROJECT / "docs" / "metrics.md"

PHASES = ("observe", "plan", "apply", "record")
"""Phases of a pass."""


DIFFERENCES = (*(kind for kind in Difference if kind not in NOT_DIFFERENT), STALLED)


def _words(words: Iterable[str | Enum]) -> str:
    return ", ".join(f"`{word.value if isinstance(word, Enum) else word}`" for word in words)


LABELS: Mapping[str, str] = {
    "evidence": "What of MM2's was refused: `sync`, `checkpoint`.",
    "source": "The alias of the flow's source.",
    "target": "The alias of the flow's target.",
    "kind": f"What is kept in step: {_words(Kind)}; of drift also `{EFFECTIVE}`. Of "
    f"`lockstep_verify_differences` what differs: {_words(DIFFERENCES)}.",
    "state": f"Of `lockstep_flow_state`: {_words(STATES_IN_A_JOB)}. Of `lockstep_task_state`: {_words(Task)}. Of "
    f"`lockstep_query_state`: {_words(QueryState)}. Of `lockstep_failover_state`: {_words(State)}.",
    "op": f"{_words(Op)}.",
    "result": f"Of changes: `applied`, `failed`. Of requests: `ok`, or Kafka's error. "
    f"Of listeners: {_words(CallResult)}.",
    "cluster": "The alias of the cluster that was asked.",
    "api": "The request, by its name in Kafka's protocol.",
    "listener": "`topic` for `topic.listener.class`, `group` for `group.listener.class`.",
    "topic": "The internal topic of MM2's that the record was read from. Of `lockstep_verify_differences` a topic of "
    f"the source; only the {WORST_ROWS} rows with the largest value are shown.",
    "verdict": f"{_words(Verdict)}; `lockstep offsets` says why.",
    "group": f"The consumer group; only the {WORST:,} with the largest value are shown.",
    "phase": f"{_words(PHASES)}.",
    "reason": f"{_words(Reason)}: ARCHITECTURE.md says what each means.",
    "error": "What ended a pass: `ClusterUnreachable`, `LedgerUntrusted`, `WrongCluster` … or one of Python's.",
    "reporter": "The class, as `metric.reporters` names it.",
    "version": "Of Lockstep.",
}

METRICS_INTRO = """# Metrics

The job serves them at `/metrics` of `lockstep.http.host:lockstep.http.port`, in Prometheus' text format (with
`lockstep.http.token`, if there is one, as a Bearer token: [http.md](http.md)), and hands them
to the reporters of `metric.reporters`. This page is made from the code by `python -m app.docs_pages.metrics_page`.

A metric with labels is there from the first time that it has something to say. Of a histogram Prometheus sees
`…_bucket`, `…_sum` and `…_count`.
"""

BESIDE = """## Beside these

- **Alerts and a dashboard**: [alerts.md](alerts.md), `conf/prometheus/` and `conf/grafana/` of the project.
- **Spark's own metrics** are on the port of Spark's UI (4040), in Prometheus' format: `/metrics/prometheus` has the
  driver's and the queries' (`metrics_lockstep_driver_spark_streaming_…`), `/metrics/executors/prometheus` the
  executors'. Lockstep's defaults turn them on.
- **MirrorMaker 2's** come from Prometheus' JMX exporter with `conf/prometheus/mm2-jmx-exporter.yml`.
"""

REPORTERS = """## Reporters

`metric.reporters` lists classes that get the job's metrics without being scraped (KIP-226). It may change while the job
runs: what is new in the list begins, what is gone from it is closed, what stays keeps running.
```
lockstep.metric.reporters = lockstep.reporters:PushGatewayReporter
```
With the prefix `lockstep.` the line is Lockstep's alone. Write it so where MM2 reads the same file: it could not load a
Python class. Without the prefix, Java classes in the list are left to MM2; no client of Lockstep's gets this key.

### A Pushgateway
`lockstep.reporters:PushGatewayReporter` pushes everything to a
[Prometheus Pushgateway](https://github.com/prometheus/pushgateway), at an interval and once more when the job ends: for
`lockstep run --once` under cron, which is over before anybody scrapes it.
"""

PUSHING = """
- **What is pushed takes the place of what was there** under the same job (PUT). The first push comes after one
  interval, so that a run under cron leaves the numbers of the run before until it has its own.
- **A gateway that does not answer** within 3 s is asked again after the next interval. The log says so once, and once
  when it answers again, with scheme, host and port of the address alone.
- **All of these keys** may change while the job runs. An address with a user or a password in it is refused. Redirects
  are not followed. TLS is verified; for a CA of your own, set the environment variable `SSL_CERT_FILE`.

### A reporter of yours
"""

EXAMPLE = '''import threading

from prometheus_client import write_to_textfile


class TextFile:
    """Keeps a file for node_exporter's textfile collector."""

    def configure(self, properties):  # optional: every property that holds for all flows, by its bare name
        self.path = properties["acme.metrics.file"]
        self.ended = threading.Event()

    def init(self, registry):  # a prometheus_client.CollectorRegistry, to be read from whenever you like
        self.registry = registry
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(15):
            write_to_textfile(self.path, self.registry)

    def close(self):  # optional
        self.ended.set()
        self.thread.join()
        write_to_textfile(self.path, self.registry)

    def reconfigurable_configs(self):  # these three are optional: keys that it takes while it runs
        return ["acme.metrics.file"]

    def validate_reconfiguration(self, properties):  # raises what is to be mended
        if not properties.get("acme.metrics.file"):
            raise ValueError("acme.metrics.file is missing")

    def reconfigure(self, properties):
        self.path = properties["acme.metrics.file"]
'''

PROMISES = """
`lockstep.metric.reporters = acme.metrics:TextFile` finds it on Python's path. It is made without arguments, once,
however often the class is in the list. `configure` must not connect or open anything, since commands such as `lockstep
validate` call it, too; what it raises is a mistake in the file.

- **While the job runs**, the file is checked whole before any of it counts: `validate_reconfiguration` is asked first,
  and with one objection nothing changes. Then `reconfigure` is called, if one of the keys that it names differs. A
  reporter without these methods keeps what it was configured with until it leaves the list or the job restarts.
- **No reporter breaks or delays a batch.** `init`, `reconfigure` and `close` are called in a thread of its own, never
  two at once. What `init` or `reconfigure` raises is logged, with the values of secret properties hidden, and the call
  is sent again after 1 s, 2 s, 4 s … 5 minutes.
- **One that hangs** for more than 10 s is logged, and left behind when it is to be closed.
- **At the end** `close` is called once, if `init` went well, when all else of the job has ended.
- **Seen**: `lockstep_reporter_failures_total`, by `reporter`.
"""

PUSH_KEYS = (keys.PUSH_URL, keys.PUSH_INTERVAL, keys.PUSH_JOB, keys.PUSH_USERNAME, keys.PUSH_PASSWORD)


def page() -> str:
    """The whole page."""
    families = sorted(Metrics("").families, key=lambda family: family.name)
    used = dict.fromkeys(label for family in families for label in family.labels)
    metrics = _table("metric|type|labels|meaning", map(_row, families))
    labels = _table("label|values", (f"`{label}`|{LABELS[label]}" for label in used))
    pushing = _table("key|default|meaning", (f"`{key.name}`|{_default(key.default)}|{key.doc}" for key in PUSH_KEYS))
    example = f"```python\n{EXAMPLE}```\n"
    return "\n".join(
        [METRICS_INTRO, metrics, "## Labels\n", labels, BESIDE, REPORTERS + pushing + PUSHING + example + PROMISES]
    )


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "-"
    return f"`{family.name}`|{family.type}|{labels}|{family.text}"


def _default(value: object) -> str:
    if value is None:
        return "-"
    return f"`{value:g} seconds`" if isinstance(value, float) else f"`{value}`"


def _table(head: str, rows: Iterable[str]) -> str:
    lines = [head, "|".join("---" for _ in head.split("|")), *rows]
    return "\n".join("| " + " | ".join(line.split("|")) + " |" for line in lines) + "\n"


if __name__ == "__main__":
    METRICS_PAGE.write_text(page())
