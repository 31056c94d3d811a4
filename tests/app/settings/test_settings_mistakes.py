"""A file that cannot be used says everything that must be mended at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.settings import ConfigurationError, Mistake, load
from tests.app.settings.mistaken_files import QUIET, TWO, mistakes, warnings


def test_all_mistakes_come_at_once_in_the_order_of_their_lines(tmp_path: Path) -> None:
    found = mistakes(
        tmp_path,
        "clusters=a,b\na.bootstrap.servers=nowhere\na->b.enabled=true\nreplication.factor=many\n"
        "a.ssl.key.password=\\ubad!\na->c.topics=x\nuse.defaults.from=me\nreplication.policy.class=no.such:Policy\n",
    )
    places = [text.split(": ")[0:2] for text in found]
    assert places == [
        [":1", "b.bootstrap.servers"],
        [":2", "a.bootstrap.servers"],
        [":4", "replication.factor"],
        [":5", "a.ssl.key.password"],
        [":6", "a->c.topics"],
        [":7", "use.defaults.from"],
        [":8", "replication.policy.class"],
    ]


def test_warnings_are_told_with_the_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "m.properties"
    path.write_text(TWO + "topic.excluded=x\nreplication.factor=0\n")
    with pytest.raises(ConfigurationError) as caught:
        load(path)
    assert [warning.key for warning in caught.value.warnings if warning.line] == ["topic.excluded"]
    assert "warning: " in str(caught.value)


def test_clusters_must_be_named(tmp_path: Path) -> None:
    assert mistakes(tmp_path, "a.bootstrap.servers=h:1\n")[0] == (
        ": clusters: is missing: name the aliases of your clusters, e.g. clusters=a,b"
    )
    assert "Is cluster in line 1 meant?" in mistakes(tmp_path, "cluster=a,b\n")[0]
    assert "is missing" in mistakes(tmp_path, "clusters=\n")[0]
    assert "NAMES is not set" in mistakes(tmp_path, "clusters=${env:NAMES}\n")[0]


@pytest.mark.parametrize("line", ["", "b.bootstrap.servers=\n"])
def test_an_alias_needs_bootstrap_servers(tmp_path: Path, line: str) -> None:
    (found,) = mistakes(tmp_path, TWO.replace("b.bootstrap.servers=h:2\n", line))
    assert "b.bootstrap.servers: is missing: write the addresses of b's brokers" in found


def test_a_slip_in_bootstrap_servers_is_pointed_at(tmp_path: Path) -> None:
    (found,) = mistakes(tmp_path, TWO.replace("b.bootstrap.servers", "b.bootstrap.server"))
    assert "is b.bootstrap.server in line 3 meant?" in found


@pytest.mark.parametrize("address", ["h", "h:", ":1", "h:0", "h:65536", "h:1;h:2", "h:1 h:2"])
def test_an_address_has_a_host_and_a_port(tmp_path: Path, address: str) -> None:
    (found,) = mistakes(tmp_path, TWO.replace("b.bootstrap.servers=h:2", f"b.bootstrap.servers={address}"))
    assert "is not an address: write host:port" in found


@pytest.mark.parametrize("address", ["h:2,[::1]:9092", "PLAINTEXT://h:2", "kafka-0.kafka.svc:9092 , 10.0.0.1:1"])
def test_addresses_may_be_written_as_kafka_takes_them(tmp_path: Path, address: str) -> None:
    assert warnings(tmp_path, QUIET + TWO.replace("b.bootstrap.servers=h:2", f"b.bootstrap.servers={address}")) == []


def test_source_and_target_must_not_share_an_address(tmp_path: Path) -> None:
    (found,) = mistakes(tmp_path, TWO.replace("=h:2", "=other:1,H:1"))
    assert found == (
        ":3: b.bootstrap.servers: a and b are one cluster, because h:1 is an address of both: "
        "source and target must differ"
    )
    assert "are one cluster" in mistakes(tmp_path, "clusters=a,b\na->b.enabled=true\nbootstrap.servers=h:1\n")[0]


def test_a_flow_must_not_lead_back_to_its_source(tmp_path: Path) -> None:
    (found,) = mistakes(tmp_path, TWO + "a->a.enabled=true\n")
    assert found == ":5: a->a.enabled: a flow from a to itself: source and target must differ"


def test_some_flow_must_be_enabled(tmp_path: Path) -> None:
    text = TWO.replace("a->b.enabled=true\n", "")
    assert mistakes(tmp_path, text) == [": a->b.enabled: no flow is enabled: write e.g. a->b.enabled=true"]
    assert mistakes(tmp_path, text + "b->a.enabled=false\n") == [
        ":4: b->a.enabled: no flow is enabled: write e.g. a->b.enabled=true"
    ]
    assert "names one cluster only" in mistakes(tmp_path, "clusters=a\na.bootstrap.servers=h:1\n")[0]


def test_a_value_that_is_wrong_is_not_told_twice_as_no_flow(tmp_path: Path) -> None:
    (found,) = mistakes(tmp_path, TWO.replace("enabled=true", "enabled=on"))
    assert "allowed: true, false" in found


@pytest.mark.parametrize(
    ("clusters", "said"),
    [
        ("a,lockstep", "lockstep cannot be an alias"),
        ("a,b c", "'b c' cannot be an alias"),
        ("a,a.b", "a.b begins with a and a dot"),
        ("a,x.y", "the policy takes the remote topic x.y.topic for one of x, not of x.y"),
    ],
)
def test_an_alias_must_not_be_ambiguous(tmp_path: Path, clusters: str, said: str) -> None:
    other = clusters.split(",")[1]
    found = mistakes(
        tmp_path,
        f"clusters={clusters}\na.bootstrap.servers=h:1\n{other}.bootstrap.servers=h:2\na->{other}.enabled=true\n",
    )
    assert said in found[0]


def test_an_alias_may_have_a_dot_where_the_separator_is_another(tmp_path: Path) -> None:
    text = TWO.replace("b.", "x.y.").replace(",b", ",x.y").replace("->b", "->x.y")
    assert warnings(tmp_path, text + QUIET + "replication.policy.separator=__\n") == []


@pytest.mark.parametrize("separator", ["/", "->", "a b", "ä"])
def test_a_separator_can_stand_in_a_topics_name(tmp_path: Path, separator: str) -> None:
    (found,) = mistakes(tmp_path, TWO + f"replication.policy.separator={separator}\n")
    assert ":5: replication.policy.separator" in found
    assert "is not allowed; allowed: characters that a topic's name can have" in found


def test_a_separator_is_not_empty(tmp_path: Path) -> None:
    (found,) = mistakes(tmp_path, TWO + "replication.policy.separator= \n")
    assert "'' is not allowed; allowed: characters that a topic's name can have" in found


def test_names_of_internal_topics_must_not_be_too_long(tmp_path: Path) -> None:
    long = "x" * 240
    text = f"clusters={long},b\n{long}.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\n{long}->b.enabled=true\n"
    assert "249" in mistakes(tmp_path, text)[0]


def test_a_class_that_cannot_be_loaded_is_a_mistake_in_its_line(tmp_path: Path) -> None:
    found = mistakes(tmp_path, TWO + "topic.filter.class=no.such:Filter\na->b.group.filter.class=com.acme.Groups\n")
    assert [text.split(": ")[:2] for text in found] == [[":5", "topic.filter.class"], [":6", "a->b.group.filter.class"]]
    assert "no.such" in found[0]


def test_a_reference_that_fails_is_a_mistake_where_lockstep_needs_it(tmp_path: Path) -> None:
    (found,) = mistakes(tmp_path, TWO + "a.sasl.jaas.config=${env:NOPE}\n")
    assert found == ":5: a.sasl.jaas.config: ${env:NOPE}: the environment variable NOPE is not set"
    assert "NOPE is not set" in warnings(tmp_path, QUIET + TWO + "b.offset.storage.topic=${env:NOPE}\n")[0]


def test_rules_for_principals_and_a_provider_that_are_none_are_mistakes_each_in_its_line(tmp_path: Path) -> None:
    lines = (
        "lockstep.acl.principals=a(b",
        "lockstep.acl.principal.mapping=RULE:^(.*$/x/",
        "lockstep.credential.provider.class=no.such:Provider",
        "sync.full.acl.enabled=true",
    )
    found = mistakes(tmp_path, QUIET + TWO + "\n".join(lines) + "\n")
    starts = [f":{number}: {line.partition('=')[0]}: " for number, line in enumerate(lines[:3], 10)]
    assert [text.startswith(start) for text, start in zip(found, starts, strict=True)] == [True, True, True]
    assert all(text.count("lockstep.acl.principal.mapping") == 1 for text in found if "mapping" in text)


def test_a_value_that_a_plug_in_would_refuse_is_told_once(tmp_path: Path) -> None:
    found = mistakes(tmp_path, TWO + "topics=a(b\nuse.defaults.from=me\nconfig.properties.exclude=a,,b\n")
    assert [text.split(": ")[1] for text in found] == ["topics", "use.defaults.from", "config.properties.exclude"]


def test_a_policy_of_the_users_that_fails_is_a_mistake_in_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing_policy.py").write_text(
        "from streaming.mm2.replication_policy import DefaultReplicationPolicy\n"
        "class Failing(DefaultReplicationPolicy):\n"
        "    def checkpoints_topic(self, alias): raise KeyError(alias)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    (found,) = mistakes(tmp_path, TWO + "replication.policy.class=failing_policy:Failing\n")
    assert ":5: replication.policy.class: the policy failed to name topics of a->b: KeyError: 'a'" in found


def test_what_comes_from_elsewhere_is_shown_as_it_is_written_never_as_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "m.properties"
    lines = ("b.bootstrap.servers", "topics", "use.defaults.from", "a.sasl.jaas.config", "replication.factor")
    path.write_text(TWO + "".join(f"{key}=${{env:P}}\n" for key in lines))
    with pytest.raises(ConfigurationError) as caught:
        load(path, environ={"P": "hush("})
    assert len(caught.value.mistakes) == 4
    assert "hush" not in str(caught.value)
    assert "address 1 is not an address" in str(caught.value)


def test_what_is_to_be_mended_is_printed_last_and_told_to_programs_first() -> None:
    error = ConfigurationError([Mistake("f", 1, "topics", "wrong")], [Mistake("f", 2, "odd", "not known")])
    assert error.lines == ("warning: f:2: odd: not known", "f:1: topics: wrong")
    assert str(error) == "f:1: topics: wrong\nwarning: f:2: odd: not known"
