"""What users import or name in a file is in the package `lockstep`, and what they wrote before goes on working."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import pytest

from app.application_offsets import translate_offsets
from app.plugins import OLD_NAMES, load_plugin
from app.settings import load
from sinks.notify.metrics_reporting import MetricsReporter
from sinks.plugins.credential_provider import Credential, CredentialProvider
from sinks.plugins.listeners import TopicListener
from streaming.mm2.replication_policy import BaseReplicationPolicy, ReplicationPolicy

PUBLIC = ("policies", "filters", "listeners", "reporters", "credentials", "reconfigurable")
HEAVY = ("pyspark", "confluent_kafka", "uvicorn", "typer")

WEBHOOK = {
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "lockstep.listener.webhook.url": "https://host/",
    "lockstep.listener.webhook.secret": "s",
}
PUSH = {"lockstep.metric.push.url": "https://host/"}
ENCODER = {"password.encoder.secret": "a secret of enough length"}

PLUGINS: Mapping[str, tuple[type, Mapping[str, str]]] = {
    "streaming.naming:DefaultReplicationPolicy": (ReplicationPolicy, {}),
    "streaming.naming:IdentityReplicationPolicy": (ReplicationPolicy, {}),
    "sinks.notify.log_listener:LogListener": (TopicListener, {}),
    "sinks.notify.webhook:WebhookListener": (TopicListener, WEBHOOK),
    "sinks.notify.push_gateway:PushGatewayReporter": (MetricsReporter, PUSH),
    "app.credentials.providers:FileCredentialProvider": (CredentialProvider, ENCODER),
    "app.credentials.providers:EnvironmentCredentialProvider": (CredentialProvider, {}),
    "app.credentials.providers:DirectoryCredentialProvider": (CredentialProvider, {"lockstep.credential.store": "/"}),
}
"""By the name that the docs of version 0.1 gave: what it is, and the least that it is configured with."""


def imported(statement: str) -> set[str]:
    """Which of the heavy modules a fresh Python has after this statement."""
    code = f"import sys; {statement}; print(*[name for name in {HEAVY} if name in sys.modules])"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("module", PUBLIC)
def test_every_name_that_a_public_module_promises_is_there(module: str) -> None:
    public = import_module(f"lockstep.{module}")
    assert [name for name in public.__all__ if not hasattr(public, name)] == []


def test_a_plugin_imports_its_base_class_without_spark_or_a_client() -> None:
    statement = "import " + ", ".join(f"lockstep.{module}" for module in PUBLIC)
    assert imported(statement) == set()


def test_applications_find_translate_offsets_in_lockstep() -> None:
    import lockstep

    assert lockstep.translate_offsets is translate_offsets
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        lockstep.nothing  # noqa: B018 - the access is what is tested


@pytest.mark.parametrize(
    ("old", "name", "now"),
    [
        ("app.failover", "translate_offsets", translate_offsets),
        ("streaming.naming", "BaseReplicationPolicy", BaseReplicationPolicy),
        ("sinks.credentials", "Credential", Credential),
    ],
)
def test_an_import_of_a_former_place_works_and_warns(old: str, name: str, now: object) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(FutureWarning, match=f"{old} has moved: .*lockstep"):
        assert getattr(import_module(old), name) is now


def test_every_class_that_has_another_name_now_is_known_by_its_old_one() -> None:
    assert OLD_NAMES.keys() == PLUGINS.keys()


@pytest.mark.parametrize("old", PLUGINS)
def test_a_class_is_made_by_its_old_name_as_by_its_new_one(old: str) -> None:
    protocol, properties = PLUGINS[old]
    made = [load_plugin(name, protocol, properties) for name in (old, OLD_NAMES[old])]
    assert type(made[0]) is type(made[1])
    assert OLD_NAMES[old].startswith("lockstep.")


def test_a_file_with_an_old_name_is_read_with_a_warning_that_has_the_new_one(tmp_path: Path) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text(
        "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"
        "lockstep.topic.listener.class = sinks.notify.log_listener:LogListener\n"
        "lockstep.metric.reporters = sinks.notify.push_gateway:PushGatewayReporter\n"
        "lockstep.metric.push.url = https://host/\n"
    )
    warnings = [(one.line, one.message) for one in load(file, environ={}).warnings]
    ends = "the old name goes with the next version"
    assert (
        5,
        f"sinks.notify.log_listener:LogListener is now called lockstep.listeners:LogListener; {ends}",
    ) in warnings
    assert [line for line, message in warnings if message.endswith(ends)] == [5, 6]
