"""ACLs are translated anew where anything that counts for it is new, and only there."""

from __future__ import annotations

from sinks.every_kind.listing import Listed
from sinks.kafka.ports.acls import AclList
from sinks.kinds.acls.survey import KeptTranslation, translate
from sinks.kinds.desired_topics import desired_topics
from tests.sinks.builders import flow_settings
from tests.sinks.kinds.acls.acl_builders import acl

ACLS = AclList({acl("ALLOW READ User:al TOPIC x"), acl("ALLOW READ User:al TOPIC x…")})


def listed(*topics: str) -> Listed:
    """These are on the source, and none is on the target."""
    counts = dict.fromkeys(topics, 1)
    return Listed(counts, {}, desired_topics(counts, flow_settings()))


def test_the_same_acls_and_topics_are_translated_once() -> None:
    kept, settings = KeptTranslation(), flow_settings()
    first = kept(ACLS, settings, listed("x"))
    assert first == translate(ACLS, settings, listed("x"))
    assert kept(ACLS, settings, listed("x")) is first


def test_other_acls_and_other_topics_are_translated_anew() -> None:
    kept, settings = KeptTranslation(), flow_settings()
    kept(ACLS, settings, listed("x"))
    more = AclList({*ACLS, acl("ALLOW WRITE User:al TOPIC x")})
    assert kept(more, settings, listed("x")) == translate(more, settings, listed("x"))
    assert kept(more, settings, listed("x", "xy")) == translate(more, settings, listed("x", "xy"))


def test_what_is_forgotten_is_translated_anew() -> None:
    kept, settings = KeptTranslation(), flow_settings()
    first = kept(ACLS, settings, listed("x"))
    kept.forget()
    assert kept(ACLS, settings, listed("x")) is not first
