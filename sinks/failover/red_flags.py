"""Finds what no tool can carry over to another cluster, by topic names and configs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from sinks.kafka.ports.cluster import TopicConfigs
from sinks.ledger.fences import shown

FLAGGED_NAMES: tuple[tuple[Callable[[str], bool], str], ...] = (
    (
        lambda topic: topic.endswith(("-changelog", "-repartition")),
        "Kafka Streams: changelogs and repartition topics ({}) belong to offsets that are others on the target; let "
        "the applications restore from their inputs there",
    ),
    (
        lambda topic: topic.startswith("connect-") and topic.endswith(("configs", "offsets", "status", "statuses")),
        "Kafka Connect: its internal topics ({}) hold source offsets of this cluster; create the connectors anew there",
    ),
    (
        lambda topic: topic == "_schemas",
        "a schema registry keeps its schemas in {}: ids stay true only if its own tool leads it over",
    ),
)
"""Texts by a pattern of topic names. `{}` gets the topics."""

TIERED = "tiered storage: segments of {} that lie in the source's remote store are copied as records, or not at all"


def red_flags(topics: Collection[str], configs: Mapping[str, TopicConfigs]) -> Iterator[str]:
    """Returns the texts for the source's topics. Exactly-once across clusters, share groups and open producers show in
    no name."""
    for applies, text in FLAGGED_NAMES:
        if found := sorted(filter(applies, topics)):
            yield text.format(shown(found, 3))
    remote = sorted(name for name, one in configs.items() if _is_tiered(one))
    if remote:
        yield TIERED.format(shown(remote, 3))


def _is_tiered(configs: TopicConfigs) -> bool:
    entry = configs.get("remote.storage.enable")
    return entry is not None and entry.value == "true"
