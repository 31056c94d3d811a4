"""From a file to settings: what MM2's file comes to, and what becomes of the flows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from app.properties.mistakes import WrongFlow
from app.settings import ConfigurationError, Settings, load
from sinks.flow_settings import Incremental, Limits, Pace
from sinks.model.changes import Kind
from streaming.flow import Flow
from streaming.mm2.replication_filters import DefaultTopicFilter
from streaming.mm2.replication_policy import DefaultReplicationPolicy, IdentityReplicationPolicy

PROJECT = Path(__file__).resolve().parent.parent.parent.parent
A_TO_B = Flow("a", "b")
TWO = "clusters=a,b\na.bootstrap.servers=h:1\nb.bootstrap.servers=h:2\na->b.enabled=true\n"
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file with both clusters, the flow a->b and the given lines."""

    def write(lines: str = "") -> Path:
        path = tmp_path / "m.properties"
        path.write_text(TWO + lines)
        return path

    return write


def test_kafkas_own_sample_of_an_mm2_file_works_unchanged(tmp_path: Path) -> None:
    """config/connect-mirror-maker.properties of Kafka, without its comments."""
    path = tmp_path / "connect-mirror-maker.properties"
    path.write_text(
        "clusters = A, B\n"
        "A.bootstrap.servers = A_host1:9092, A_host2:9092, A_host3:9092\n"
        "B.bootstrap.servers = B_host1:9092, B_host2:9092, B_host3:9092\n"
        "A->B.enabled = true\nA->B.topics = .*\nB->A.enabled = true\nB->A.topics = .*\nreplication.factor=1\n"
        "checkpoints.topic.replication.factor=1\nheartbeats.topic.replication.factor=1\n"
        "offset-syncs.topic.replication.factor=1\noffset.storage.replication.factor=1\n"
        "status.storage.replication.factor=1\nconfig.storage.replication.factor=1\n"
    )
    settings = load(path)
    assert [flow.flow.name for flow in settings.flows] == ["A->B", "B->A"]
    assert {flow.replication_factor for flow in settings.flows} == {1}
    assert settings.clusters["A"].bootstrap_servers == "A_host1:9092, A_host2:9092, A_host3:9092"
    assert {warning.key for warning in settings.warnings} == {"sync.topic.configs.enabled", "sync.topic.acls.enabled"}


def test_the_file_that_comes_with_lockstep_has_nothing_to_warn_of() -> None:
    settings = load(PROJECT / "conf" / "mirror.sample.properties")
    assert [flow.flow for flow in settings.flows] == [A_TO_B]
    assert settings.warnings == ()
    assert settings.clusters["b"].bootstrap_servers == "localhost:9093"
    assert settings.flows[0].pace == Pace()
    assert settings.flows[0].limits == Limits()


def test_what_the_file_leaves_out_has_mm2s_default_or_ours(write: Write) -> None:
    settings = load(write())
    (flow,) = settings.flows
    assert {kind for kind, enabled in flow.enabled.items() if enabled} == {Kind.TOPIC, Kind.TOPIC_CONFIG, Kind.ACL}
    assert (flow.acls.full, flow.acls.deletes) == (False, True)
    assert (flow.heartbeats_replication, flow.replication_factor, flow.topic_deletes) == (True, 2, False)
    assert (flow.incremental, flow.pace, flow.limits) == (Incremental.REQUESTED, Pace(), Limits())
    assert type(flow.policy) is DefaultReplicationPolicy
    assert flow.internal.offset_syncs == "mm2-offset-syncs.b.internal"
    assert flow.internal.offset_syncs_cluster == "a"
    assert flow.topic_filter.should_replicate_topic("orders")
    assert not flow.topic_filter.should_replicate_topic("__consumer_offsets")
    job = settings.job
    assert (job.trigger_interval, job.checkpoint_dir) == (10.0, Path(".lockstep/checkpoints"))
    assert (job.http_host, job.http_port) == ("127.0.0.1", 9464)


def test_every_key_reaches_its_place(write: Write) -> None:
    settings = load(
        write(
            "replication.policy.class=org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
            "offset-syncs.topic.location=target\nheartbeats.replication.enabled=false\n"
            "use.incremental.alter.configs=required\nreplication.factor=-1\n"
            "lockstep.trigger.interval=500 milliseconds\nlockstep.observe.rate=0\n"
            "lockstep.full.comparison.interval=2 minutes\nlockstep.shard.topics=7\nlockstep.heartbeat.timeout=9\n"
            "lockstep.limits.max.delete.percent=12.5\nlockstep.limits.max.delete.minimum=0\n"
            "lockstep.sync.topic.deletes.enabled=true\nlockstep.checkpoint.dir=/var/lib/x\n"
            "lockstep.http.host=0.0.0.0\nlockstep.http.port=0\nlockstep.http.token=0123456789abcdef\nlockstep.sync.topic.configs.interval.seconds=30\n"
        )
    )
    (flow,) = settings.flows
    assert isinstance(flow.policy, IdentityReplicationPolicy)
    assert flow.internal.offset_syncs_cluster == "b"
    assert (flow.heartbeats_replication, flow.replication_factor, flow.topic_deletes) == (False, -1, True)
    assert flow.incremental is Incremental.REQUIRED
    assert flow.pace == Pace(0.1, 0, 120.0, 7, 9.0, {Kind.TOPIC_CONFIG: 30.0})
    assert flow.limits == Limits(12.5, 0)
    job = settings.job
    assert (job.trigger_interval, job.checkpoint_dir) == (0.5, Path("/var/lib/x"))
    assert (job.http_host, job.http_port) == ("0.0.0.0", 0)


def test_one_file_turns_a_sync_off_for_mm2_and_on_for_lockstep(write: Write) -> None:
    kinds = {"sync.topic.configs.enabled": Kind.TOPIC_CONFIG, "sync.topic.acls.enabled": Kind.ACL}
    for name, kind in kinds.items():
        for off in (name, f"a->b.{name}"):
            settings = load(write(f"{off}=false\nlockstep.{name}=true\n"))
            assert settings.flows[0].enabled[kind]
            assert name not in {warning.key for warning in settings.warnings}
            assert not load(write(f"{off}=false\n")).flows[0].enabled[kind]


def test_full_acls_need_no_other_key(write: Write) -> None:
    (flow,) = load(write("sync.topic.acls.enabled=false\nsync.full.acl.enabled=true\n")).flows
    assert flow.enabled[Kind.ACL]
    assert flow.acls.full


def test_whose_acls_are_synced_and_what_they_are_called_comes_from_the_file(write: Write) -> None:
    (flow,) = load(
        write(
            "lockstep.acl.principals=app-.*\nlockstep.acl.principals.exclude=app-old\n"
            "lockstep.acl.principal.mapping=RULE:^app-(.*)$/svc-$1/,DEFAULT\nlockstep.sync.acl.deletes.enabled=false\n"
        )
    ).flows
    rules = flow.acls
    assert [rules.principals.should_sync(f"User:{name}") for name in ("app-x", "app-old", "x")] == [True, False, False]
    assert rules.mapping.map("User:app-x") == "User:svc-x"
    assert not rules.deletes


def test_a_filter_and_a_policy_are_those_of_their_flow(write: Write) -> None:
    settings = load(
        write("b->a.enabled=true\na->b.topics=x\nb->a.topics=y\nb->a.replication.policy.separator=_\ntopics=z\n")
    )
    forth, back = settings.flows
    assert isinstance(forth.topic_filter, DefaultTopicFilter)
    assert [forth.topic_filter.should_replicate_topic(topic) for topic in "xyz"] == [True, False, False]
    assert [back.topic_filter.should_replicate_topic(topic) for topic in "xyz"] == [False, True, False]
    assert forth.policy.format_remote_topic("a", "x") == "a.x"
    assert back.policy.format_remote_topic("b", "x") == "b_x"
    assert back.internal.ledger == "lockstep-ledger_b_internal"


def test_several_flows_into_one_target_and_several_targets(write: Write) -> None:
    settings = load(
        write("clusters=a,b,c\nc.bootstrap.servers=h:3\nc->b.enabled=true\nc->a.enabled=true\nb->c.enabled=false\n")
    )
    assert [flow.flow.name for flow in settings.flows] == ["a->b", "c->a", "c->b"]


def test_flows_can_be_chosen_by_name(write: Write) -> None:
    path = write("b->a.enabled=true\n")
    assert [flow.flow.name for flow in load(path, ["b->a"]).flows] == ["b->a"]
    assert [flow.flow.name for flow in load(path, ["b->a", "a->b", "b->a"]).flows] == ["a->b", "b->a"]
    for wrong, said in (
        ("b->c", "not enabled in the file; enabled: a->b, b->a; nearest: b->a"),
        ("b", "is no flow: write it as SOURCE->TARGET"),
        ("a->a", "source and target must differ"),
    ):
        with pytest.raises(ConfigurationError, match=f"--flow {wrong}") as caught:
            load(path, ["a->b", wrong])
        assert said in str(caught.value)
        assert len(caught.value.mistakes) == 1


def test_a_flow_that_a_sound_file_does_not_enable_is_wrong_usage_without_the_warnings_about_the_file(
    write: Write,
) -> None:
    path = write("sync.topic.configs.enabled=true\n")
    assert load(path).warnings
    with pytest.raises(WrongFlow) as caught:
        load(path, ["a->c"])
    assert (caught.value.code, caught.value.warnings) == ("WRONG_USAGE", ())
    assert "warning" not in " ".join(caught.value.lines)


def test_of_a_file_with_mistakes_a_wrong_flow_is_one_of_them_and_its_warnings_are_said(write: Write) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(write("sync.topic.configs.enabled=true\nreplication.factor=many\n"), ["a->c"])
    assert (caught.value.code, len(caught.value.mistakes)) == ("CONFIGURATION", 2)
    assert caught.value.warnings


def test_client_settings_may_differ_within_a_flow(write: Write) -> None:
    settings = load(write("a->b.source.admin.client.id=only-here\na.admin.client.id=anywhere\n"))
    assert settings.cluster("a").admin["client.id"] == "anywhere"
    assert settings.cluster("a", A_TO_B).admin["client.id"] == "only-here"
    assert settings.cluster("b", A_TO_B) is settings.clusters["b"]


def test_admin_timeout_is_how_long_a_call_may_take_unless_the_client_has_a_limit_of_its_own(write: Write) -> None:
    settings = load(write("admin.timeout.ms=20000\na->b.admin.timeout.ms=30000\nb.admin.default.api.timeout.ms=5000\n"))
    limits = {alias: settings.cluster(alias, A_TO_B).admin["default.api.timeout.ms"] for alias in "ab"}
    assert limits == {"a": "30000", "b": "5000"}
    assert settings.cluster("a").admin["default.api.timeout.ms"] == "20000"


def test_client_settings_are_resolved_and_security_holds_for_every_role(write: Write) -> None:
    settings = load(
        write("a.security.protocol=SASL_SSL\na.admin.sasl.jaas.config=p=${env:P}\nsasl.mechanism=PLAIN\n"),
        environ={"P": "hush"},
    )
    a, b = settings.clusters["a"], settings.clusters["b"]
    assert a.admin["sasl.jaas.config"] == "p=hush"
    assert a.consumer["security.protocol"] == a.producer["security.protocol"] == "SASL_SSL"
    assert "sasl.jaas.config" not in a.consumer
    assert b.admin == {"bootstrap.servers": "h:2", "sasl.mechanism": "PLAIN"}


def test_no_secret_is_in_the_repr_of_the_settings(write: Write) -> None:
    settings = load(write('a.sasl.jaas.config=x password="hush"\nb.producer.my.hushed=hush\n'))
    assert "sasl.jaas.config" in repr(settings)
    assert '"hush"' not in repr(settings)
    assert "=hush" not in repr(settings)


def test_a_file_without_lines_misses_its_clusters(tmp_path: Path) -> None:
    path = tmp_path / "empty.properties"
    path.write_text("# nothing\n")
    with pytest.raises(ConfigurationError, match="clusters: is missing: name the aliases"):
        load(path)


def test_settings_are_values(write: Write) -> None:
    settings: Settings = load(write())
    with pytest.raises(AttributeError):
        settings.job.http_port = 1  # type: ignore[misc]  # that it cannot be set is the point
