"""The metrics reporters of a file (`metric.reporters`, KIP-226): made, or kept from before and asked first.

MM2 and Kafka's clients read the same key. A class without a colon is Java's, and theirs: it is left alone in the bare
key, and a mistake behind the prefix, which only Lockstep reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from app.plugins import load_plugin
from app.properties import keys
from app.properties.mistakes import Findings, PropertyLine
from app.properties.scoped_keys import Properties, scoped_key
from sinks.notify.metrics_reporting import MetricsReporter
from streaming.errors import LockstepError
from streaming.reconfiguration import Reconfigurable, check_agrees

READ = (
    keys.METRIC_REPORTERS,
    keys.PUSH_URL,
    keys.PUSH_INTERVAL,
    keys.PUSH_JOB,
    keys.PUSH_USERNAME,
    keys.PUSH_PASSWORD,
)
"""What must be sound before a reporter is made: `check` says what is not, and need not be said twice."""

OUR_REPORTERS = "Lockstep's own reporters are written package.module:Class"


def reporters(
    properties: Properties, findings: Findings, before: Mapping[str, MetricsReporter]
) -> dict[str, MetricsReporter]:
    """By class as the file names it, each once. `before`: those that run; one of the same class goes on.

    A running one that is `Reconfigurable` validates the properties; what it objects to, and a class that cannot be
    loaded, is a mistake in the line of the key.
    """
    entry = properties.entry(keys.METRIC_REPORTERS.name)
    if entry is None or not all(properties.is_sound(key.name) for key in READ):
        return {}
    values = properties.of_job()
    found = {
        reference: _reporter(reference, values, before.get(reference), entry, findings)
        for reference in _references(properties, entry, findings)
    }
    return {reference: reporter for reference, reporter in found.items() if reporter is not None}


def _references(properties: Properties, entry: PropertyLine, findings: Findings) -> Iterator[str]:
    ours = scoped_key(entry.key, properties.aliases).ours
    for reference in properties.get(keys.METRIC_REPORTERS):
        if ":" in reference:
            yield reference
        elif ours:
            findings.mistake(
                entry, f"{reference} is a Java class, for MM2 alone: {OUR_REPORTERS}; without the prefix it may stay"
            )
        elif reference != keys.JMX_REPORTER:
            findings.warn(entry, f"{reference} is for MM2 alone; {OUR_REPORTERS}")


def _reporter(
    reference: str, values: Mapping[str, str], running: MetricsReporter | None, entry: PropertyLine, findings: Findings
) -> MetricsReporter | None:
    try:
        if running is None:
            return cast(MetricsReporter, load_plugin(reference, MetricsReporter, values))
        if isinstance(running, Reconfigurable):
            check_agrees(running, values)
    except Exception as error:  # noqa: BLE001 - a reporter of the user's may raise anything
        said = str(error) if isinstance(error, LockstepError) else f"{type(error).__name__}: {error}"
        refused = said if running is None else f"{reference} does not take the new properties: {said}"
        findings.mistake(entry, refused)
        return None
    return running
