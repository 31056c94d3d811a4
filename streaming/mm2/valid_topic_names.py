"""Which names topics can have."""

from __future__ import annotations

import re
from typing import NamedTuple

from streaming.errors import NamingError
from streaming.mm2.replication_policy import SEPARATOR_KEY

MAX_TOPIC_NAME = 249
"""Characters, as Kafka's `Topic.MAX_NAME_LENGTH`."""
ILLEGAL = re.compile(r"[^a-zA-Z0-9._-]")


class TopicNameFault(NamedTuple):
    """What Kafka has against a name, and what to look at where a policy made it."""

    said: str
    remedy: str


def topic_name_fault(name: str) -> TopicNameFault | None:
    """Why Kafka's `Topic.validate` refuses a name; None where it takes it."""
    if len(name) > MAX_TOPIC_NAME:
        said = f"has {len(name)} characters, Kafka allows {MAX_TOPIC_NAME}"
        return TopicNameFault(said, "shorten the alias or the separator in it")
    if found := ILLEGAL.search(name):
        said = f"holds {found[0]!r}, Kafka allows a-z A-Z 0-9 . _ -"
        return TopicNameFault(said, f"look at the alias and at {SEPARATOR_KEY}")
    if name in ("", ".", ".."):
        return TopicNameFault("cannot be, it is no name of a topic", "look at the replication policy")
    return None


def check_topic_name(name: str) -> None:
    """Raises NamingError where Kafka's `Topic.validate` would."""
    if fault := topic_name_fault(name):
        remedy = f"{fault.remedy}, or exclude the topic with topics.exclude"
        raise NamingError(f"the topic name {name!r} {fault.said}: {remedy}")
