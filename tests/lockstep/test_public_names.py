"""What users import or name in a file is in the package `lockstep`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module

import pytest

from app.application_offsets import translate_offsets
from app.plugins import load_plugin
from sinks.notify.metrics_reporting import MetricsReporter
from sinks.plugins.credential_provider import CredentialProvider
from sinks.plugins.listeners import TopicListener
from streaming.mm2.replication_policy import ReplicationPolicy

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
    "lockstep.policies:DefaultReplicationPolicy": (ReplicationPolicy, {}),
    "lockstep.policies:IdentityReplicationPolicy": (ReplicationPolicy, {}),
    "lockstep.listeners:LogListener": (TopicListener, {}),
    "lockstep.listeners:WebhookListener": (TopicListener, WEBHOOK),
    "lockstep.reporters:PushGatewayReporter": (MetricsReporter, PUSH),
    "lockstep.credentials:FileCredentialProvider": (CredentialProvider, ENCODER),
    "lockstep.credentials:EnvironmentCredentialProvider": (CredentialProvider, {}),
    "lockstep.credentials:DirectoryCredentialProvider": (CredentialProvider, {"lockstep.credential.store": "/"}),
}
"""By the name that a file gives it: what it is, and the least that it is configured with."""


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


@pytest.mark.parametrize("name", PLUGINS)
def test_a_class_that_lockstep_ships_is_made_by_its_public_name(name: str) -> None:
    protocol, properties = PLUGINS[name]
    assert type(load_plugin(name, protocol, properties)).__name__ == name.partition(":")[2]
