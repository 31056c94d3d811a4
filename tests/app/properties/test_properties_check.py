"""Single lines that are wrong: the message, its key and its line."""

from __future__ import annotations

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.properties.check import check
from app.properties.config_providers import resolve_all
from app.properties.keys import TABLE, KeyScope
from app.properties.known import cluster_names, flow_names, slip, top_names
from app.properties.mistakes import Findings
from app.properties.parse import parse
from app.properties.scoped_keys import Properties
from streaming.message_words import nearest


def checked(text: str, aliases: tuple[str, ...] = ("a", "b"), *, strict: bool = False) -> Findings:
    findings = Findings("f")
    entries = resolve_all(parse(text.encode(), findings), {}, findings)
    check(Properties(entries, aliases, findings), strict=strict)
    return findings


def mistake(text: str) -> str:
    (only,) = checked(text).mistakes
    return str(only)


def warning(text: str) -> str:
    findings = checked(text)
    assert not findings.mistakes
    (only,) = findings.warnings
    return str(only)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a->b.enabled=yes", "'yes' is not allowed; allowed: true, false"),
        ("use.defaults.from=sorce", "allowed: source, target; nearest: source"),
        ("use.incremental.alter.configs=Required", "allowed: requested, required, never; nearest: required"),
        ("offset-syncs.topic.location=here", "allowed: source, target"),
        ("replication.factor=0", "allowed: -1 or 1 to 32767"),
        ("replication.factor=40000", "allowed: -1 or 1 to 32767"),
        ("lockstep.observe.rate=-1", "allowed: a whole number of topics a second, 0 or more"),
        ("a->b.lockstep.observe.rate=fast", "'fast' is not allowed"),
        ("lockstep.trigger.interval=0", "a time above zero"),
        ("lockstep.trigger.interval=1 sec ond", '"1 second"'),
        ("lockstep.limits.max.delete.percent=101", "a number, 0 to 100"),
        ("lockstep.http.port=70000", "0 to 65535"),
        ("lockstep.checkpoint.dir=s3a://bucket/x", "a folder on this machine"),
        ("topics=a(b", "a ( has no )"),
        ("topics.exclude=a,,b", "nothing between two commas"),
        ("a->b.groups.blacklist=a(b", "a ( has no )"),
        ("replication.policy.separator=", "characters that a topic's name can have"),
        ("topic.filter.class=my filter", "package.module:Class"),
        ("a.security.protocol=SSSL", "allowed: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL; nearest: SSL"),
        ("b.admin.security.protocol=x", "allowed: PLAINTEXT"),
        ("a->b=true", "write SOURCE->TARGET.KEY"),
        ("a -> b.enabled=true", "without spaces"),
        ("a-> b.enabled=true", "without spaces"),
        ("a->a.enabled=true", "source and target must differ"),
        ("a->c.enabled=true", "c is not in `clusters` (a, b)"),
        ("A->b.topics=x", "A is not in `clusters` (a, b); nearest: a"),
        ("a.ssl.key.password=${env:NOPE}", "the environment variable NOPE is not set"),
    ],
)
def test_a_mistake_says_what_is_allowed(line: str, said: str) -> None:
    text = mistake(f"# a comment\n{line}\n")
    assert text.startswith("f:2: ")
    assert said in text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("topic.exclude=x", "nearest: topics.exclude"),
        ("observe.rate=5", "nearest: lockstep.observe.rate"),
        ("topics.blacklist=x", "is the old name of topics.exclude"),
        ("a.bootstrap.server=h:1", "nearest: a.bootstrap.servers"),
        ("a.consumer.fetch.max.byte=1", "nearest: a.consumer.fetch.max.bytes"),
        ("b.max.poll.records=1", "nearest: b.consumer.max.poll.records"),
        ("a->b.topic=x", "nearest: a->b.topics"),
        ("replication.policy.seperator=_", "nearest: replication.policy.separator"),
        ("offset.storage.replication.facto=1", "nearest: offset.storage.replication.factor"),
        ("c.bootstrap.servers=h:1", "c is not in `clusters` (a, b)"),
        ("consumer.fetch.max.bytes=1", "write ALIAS.consumer.fetch.max.bytes"),
        ("a.topics=x", "holds for a flow, or all of them, not for a cluster"),
        ("a->b.lockstep.http.port=1", "holds for the whole job only: write lockstep.http.port"),
        ("b.offset.storage.topic=${file:/no:k}", "cannot be read as properties"),
    ],
)
def test_what_is_likely_a_slip_is_a_warning_with_the_nearest_key(line: str, said: str) -> None:
    text = warning(f"{line}\n")
    assert text.startswith("f:1: ")
    assert said in text


@pytest.mark.parametrize(
    "line",
    [
        "sync.topic.acls.enabled=true",
        "emit.heartbeats.interval.seconds=5",
        "checkpoints.topic.replication.factor=1",
        "offset.storage.replication.factor=1",
        "b.offset.storage.topic=x",
        "dedicated.mode.enable.internal.rest=true",
        "listeners.https.ssl.keystore.type=PEM",
        "transforms.Rename.type=x",
        "a->b.producer.batch.size=1",
        "a->b.source.consumer.isolation.level=read_committed",
        "a->b.target.cluster.ssl.protocol=TLSv1.3",
        "a->b.tasks.max=4",
        "tasks.max=4",
        "a.producer.compression.type=zstd",
        "a.security.protocol=sasl_ssl",
        "key.converter.schemas.enable=false",
        "lockstep.a.sasl.mechanism=PLAIN",
        "lockstep.sasl.mechanism=PLAIN",
        "lockstep.a->b.source.consumer.isolation.level=read_committed",
        "lockstep.replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    ],
)
def test_what_mm2_or_connect_or_a_client_knows_is_no_slip(line: str) -> None:
    findings = checked(f"{line}\n")
    assert not findings.mistakes
    assert not findings.warnings


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("lockstep.tasks.max=4", "Lockstep does not read tasks.max; write it without"),
        ("a->b.lockstep.emit.heartbeats.enabled=false", "Lockstep does not read emit.heartbeats.enabled"),
        ("lockstep.sync.topic.acls.interval.seconds=9", "nearest that Lockstep reads: sync.topic.configs.interval.sec"),
        ("lockstep.a.offset.storage.topic=x", "Lockstep does not read offset.storage.topic"),
        ("lockstep.transforms.Rename.type=x", "Lockstep does not read transforms.Rename.type"),
        ("lockstep.observ.rate=5", "nearest: lockstep.observe.rate"),
        ("lockstep.topics.exlude=x", "nearest: lockstep.topics.exclude"),
        ("lockstep.triger.intervl=1", "nearest: lockstep.trigger.interval"),
        ("lockstep.my.size=5", "without the prefix `lockstep.`"),
        ("lockstep.c.bootstrap.servers=h:1", "c is not in `clusters` (a, b)"),
    ],
)
def test_key_with_the_prefix_that_nobody_reads_is_a_mistake(line: str, said: str) -> None:
    assert said in mistake(f"{line}\n")


@pytest.mark.parametrize("line", ["topic.exclude=x", "a.topics=x", "my.size=5", "a->b.lockstep.http.port=1"])
def test_key_that_changes_nothing_is_a_warning_and_where_it_is_strict_a_mistake(line: str) -> None:
    (said,) = checked(f"{line}\n").warnings
    strictly = checked(f"{line}\n", strict=True)
    assert (strictly.mistakes, strictly.warnings) == ((said,), ())


@pytest.mark.parametrize(
    ("word", "meant"), [("tobigs", "topics"), ("tpcis", "topics"), ("grps", "groups"), ("heartbaets", "heartbeats")]
)
def test_two_slips_in_a_word_do_not_hide_what_was_meant(word: str, meant: str) -> None:
    assert nearest(word, ["topics", "groups", "heartbeats", "clusters"]) == meant


@pytest.mark.parametrize(("word", "words"), [("a", ["b", "c"]), ("orders", ["topics", "groups"])])
def test_words_that_have_little_in_common_are_not_near(word: str, words: list[str]) -> None:
    assert nearest(word, words) is None


@settings(deadline=None, max_examples=30)  # compares with 1,600 names: a matter of the machine
@given(st.sampled_from(sorted(top_names() | cluster_names() | flow_names())), st.data())
def test_a_known_key_with_one_letter_lost_is_near_a_known_key(name: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(name) - 1))
    names = top_names() | cluster_names() | flow_names()
    near = slip(name[:cut] + name[cut + 1 :], names)
    assert near is None or near in names


@given(st.sampled_from(sorted(name for name in TABLE if len(name) > 10)), st.data())
def test_two_letters_that_changed_places_do_not_hide_a_key_of_ours(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 2).filter(lambda at: name[at] != name[at + 1]))
    swapped = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    assert slip(swapped, frozenset(TABLE)) == name


@given(st.text(string.ascii_letters, min_size=1))
def test_the_nearest_word_of_a_list_that_has_it_is_itself_letter_case_apart(word: str) -> None:
    assert nearest(word.swapcase(), [word, "something.else"]) == word


def test_every_key_says_what_it_means_and_whose_it_is() -> None:
    for name, key in TABLE.items():
        assert key.doc.endswith((".", "trigger.")), name
        assert key.kip in ("", "KIP-690", "KIP-226", "KIP-894", "KIP-965", "KAFKA-15102", "KAFKA-14903"), name
        assert not (name.startswith("lockstep.") and key.kip), name
        assert key.scope is not KeyScope.FLOW or name in flow_names()


def test_a_line_that_lost_its_backslash_is_not_shown_for_its_key_may_be_a_secret() -> None:
    text = warning('"hush"; x\n')
    assert text == "f:1: has characters that no key has: does the line before it lack a backslash at its end?"


def test_no_message_shows_a_secret() -> None:
    findings = checked(
        "password.encoder.secret=hush\na.sasl.jaas.config=hush\\\n  hush${vault:hush}\n"
        'a.ssl.key.passwort=hush\nb.producer.sasl.jaas.confg=hush\npassword="hush";\n'
    )
    assert findings.mistakes
    assert findings.warnings
    for found in findings.mistakes + findings.warnings:
        assert "hush" not in str(found)
