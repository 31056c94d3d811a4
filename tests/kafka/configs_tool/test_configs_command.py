"""`lockstep configs` on three real brokers: KIP-226's use cases, one after the other."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from app.cli.output import FAILED, WRONG_USAGE
from app.local.broker import RESTRICTED
from app.local.ports import free_ports
from app.local.waiting import wait_for
from sinks.kafka.ports.cluster import Origin, TopicSpec
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, ConfigEntity, ResourceType
from tests.certificates import make_stores
from tests.kafka.configs_tool.conftest import SOON, Three
from tests.kafka.configs_tool.wire import Connection

ONE, TWO, THREE = (ConfigEntity(ResourceType.BROKER, name) for name in "123")
DEFAULTS = ("--entity-type", "brokers", "--entity-default")


def test_threads_are_set_for_all_brokers_and_overridden_on_one(three: Three) -> None:
    three.done("--alter", *DEFAULTS, "--add-config", "num.io.threads=9")
    three.done("--alter", "--entity-type", "brokers", "--entity-name", "2", "--add-config", "num.io.threads=7")
    everywhere = ("9", Origin.CLUSTER), ("8", Origin.DEFAULT)
    three.shows(ONE, "num.io.threads", *everywhere)
    three.shows(TWO, "num.io.threads", ("7", Origin.BROKER), *everywhere)
    text = three.done("--describe", "--broker", "2")
    assert "deleted here, it falls back to 9 (cluster-wide default)" in text
    three.done("--alter", "--broker", "2", "--delete-config", "num.io.threads")
    three.shows(TWO, "num.io.threads", *everywhere)


def test_topic_follows_the_default_of_the_brokers_until_it_has_its_own(three: Three, unique: str) -> None:
    name, topic = f"{unique}-follows", ConfigEntity(ResourceType.TOPIC, f"{unique}-follows")
    three.create(name, TopicSpec(1, 3))
    three.done("--alter", *DEFAULTS, "--add-config", "log.retention.ms=86400000")
    followed = ("86400000", Origin.CLUSTER)
    wait_for(lambda: three.levels_of(topic, "retention.ms")[0] == followed, SOON, "the topic to follow")
    three.agree(ResourceType.TOPIC, name)
    three.done("--alter", "--topic", name, "--add-config", "retention.ms=3600000")
    assert three.levels_of(topic, "retention.ms")[:2] == [("3600000", Origin.TOPIC), followed]
    assert "falls back to 86400000 (cluster-wide default)" in three.done("--describe", "--topic", name)


def test_log_cleaner_gets_more_threads(three: Three) -> None:
    three.done("--alter", *DEFAULTS, "--add-config", "log.cleaner.threads=2")
    for entity in (ONE, TWO, THREE):
        three.shows(entity, "log.cleaner.threads", ("2", Origin.CLUSTER), ("1", Origin.DEFAULT))


def test_new_connections_get_the_new_certificate_and_old_ones_live_on(three: Three, tmp_path: Path) -> None:
    address = three.cluster.secured_properties(("", ""))["bootstrap.servers"].split(",")[0]
    stores, secret = make_stores(tmp_path), tmp_path / "secret.properties"
    secret.write_text(f"password={stores.password}")
    keystore = "listener.name.secured.ssl.keystore"
    with Connection(address, tls=True) as old:
        said = three.done(
            *("--alter", "--broker", "1", "--add-config"),
            f"{keystore}.location={stores.key_store},{keystore}.password=${{file:{secret}:password}}",
        )

        def renewed() -> bytes | None:
            with Connection(address, tls=True) as new:
                return new.certificate if new.certificate != old.certificate and new.lives() else None

        assert wait_for(renewed, SOON, "the new certificate")
        assert old.lives()
    assert stores.password not in said + three.done("--describe", "--broker", "1", "--all")
    three.done("--alter", "--broker", "1", "--delete-config", f"{keystore}.location,{keystore}.password")
    wait_for(lambda: three.own(ONE) == {}, SOON, "broker 1 to have nothing of its own")


def test_new_listener_takes_its_logins_from_the_jaas_config_given_with_it(three: Three) -> None:
    (port,) = free_ports(1)
    now = {name: three.levels_of(ONE, name)[0][0] for name in ("listeners", "listener.security.protocol.map")}
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required user_{}={};"
    prefix = "listener.name.extra"
    bare = f"{prefix}.plain.sasl.jaas.config=[{jaas.format('al', 'hush hush')}]"
    wrong = three.run("--alter", "--broker", "1", "--add-config", bare)
    assert (wrong.code, "put it in quotes" in wrong.err, "hush" in wrong.err) == (WRONG_USAGE, True, False)
    said = three.done(
        *("--alter", "--broker", "1", "--add-config"),
        f"{prefix}.plain.sasl.jaas.config=[{jaas.format('al', chr(34) + 'hush' + chr(34))}],"
        f"{prefix}.sasl.enabled.mechanisms=PLAIN,"
        f"listeners=[{now['listeners']},EXTRA://127.0.0.1:{port}],"
        f"listener.security.protocol.map=[{now['listener.security.protocol.map']},EXTRA:SASL_PLAINTEXT]",
    )
    assert "hush" not in said + three.done("--describe", "--broker", "1")

    def logs_in() -> bool:
        try:
            with Connection(f"127.0.0.1:{port}") as connection:
                return connection.logs_in("al", "hush")
        except (OSError, AssertionError, struct.error):
            # The broker may listen before it knows the login.
            return False

    wait_for(logs_in, SOON, "the login at the new listener")
    with Connection(f"127.0.0.1:{port}") as connection:
        assert not connection.logs_in("al", "wrong")
    names = ",".join(three.own(ONE))
    three.done("--alter", "--broker", "1", "--delete-config", names)
    wait_for(lambda: three.own(ONE) == {}, SOON, "broker 1 to have nothing of its own")


def test_metrics_reporter_is_asked_about_its_own_key_and_gets_it(three: Three) -> None:
    key = "metrics.jmx.exclude"
    refused = three.run("--alter", *DEFAULTS, "--add-config", f"{key}=(")
    assert refused.code == WRONG_USAGE
    assert key in refused.err
    taken = three.run("--alter", *DEFAULTS, "--add-config", f"{key}=kafka.nothing.*")
    assert taken.code == 0
    assert f"{key}: Kafka has no such config" in taken.err
    three.agree(ResourceType.BROKER, "")
    assert key in three.own(DEFAULT_OF_ALL)
    assert "kafka.nothing" not in taken.out + three.done("--describe", *DEFAULTS)
    three.done("--alter", *DEFAULTS, "--delete-config", key)


def test_dry_run_is_checked_by_the_broker_and_not_written(three: Three) -> None:
    flags = ("--alter", "--broker", "3", "--dry-run", "--add-config")
    assert "nothing was written" in three.done(*flags, "background.threads=12")
    assert three.run(*flags, "background.threads=many").code == WRONG_USAGE
    assert three.own(THREE) == {}


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (("--broker", "1", "--add-config", "background.threads=many"), WRONG_USAGE, "Not a number of type INT"),
        (("--broker", "1", "--add-config", "background.threads=0"), WRONG_USAGE, "at least 1"),
        (("--broker", "1", "--add-config", "background.treads=9"), WRONG_USAGE, "is background.threads meant?"),
        (("--broker", "1", "--add-config", "broker.rack=x"), WRONG_USAGE, "change server.properties"),
        (("--broker", "7", "--add-config", "background.threads=9"), WRONG_USAGE, "no broker 7; there are: 1, 2, 3"),
        (("--topic", "nowhere", "--add-config", "retention.ms=9"), WRONG_USAGE, "there is no such topic"),
        ((*DEFAULTS, "--add-config", "listener.name.secured.ssl.keystore.type=JKS"), WRONG_USAGE, "--entity-name 1"),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_written(
    three: Three, flags: tuple[str, ...], code: int, said: str
) -> None:
    before = three.own(ONE)
    ran = three.run("--alter", *flags)
    assert (ran.code, said in ran.err) == (code, True), ran
    assert three.own(ONE) == before


def test_who_may_not_is_told_the_missing_right(three: Three) -> None:
    ran = three.run("--describe", "--broker", "1", user=RESTRICTED)
    assert (ran.code, "grant the principal DESCRIBE" in ran.err) == (FAILED, True), ran
    assert RESTRICTED[1] not in ran.err


def test_all_brokers_and_their_default_are_described_without_a_name(three: Three) -> None:
    told = json.loads(three.done("--describe", "--entity-type", "brokers", "-o", "json"))["entities"]
    assert [one["entity_name"] for one in told] == ["1", "2", "3", ""]
