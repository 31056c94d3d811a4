"""Lockstep's own overrides on real clusters: kept in the ledger, passwords encoded, all or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli.lazy_commands import app
from app.cli.output import DONE, WRONG_USAGE
from app.overrides.with_overrides import encode_again, load_with_overrides
from app.settings import ConfigurationError
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.ledger.audit import read_audit
from sinks.ledger.ledger import Entry, Ledger
from sinks.model.changes import Key
from streaming.errors import LockstepError
from streaming.flow import Flow
from tests.conftest import Clusters
from tests.kafka.staging import client_of, write_properties

SOURCE = "overriding"
FLOW = Flow(SOURCE, "b")
LEDGER, AUDIT = f"lockstep-ledger.{SOURCE}.internal", f"lockstep-audit.{SOURCE}.internal"
SECRET = "lockstep.listener.webhook.secret"


@dataclass
class Stage:
    """A flow that no job runs; `file` is the base of its properties file."""

    config: Path
    file: str
    target: KafkaCluster

    def encoder(self, secret: str, old: str | None = None) -> None:
        """Sets `password.encoder.*` in the file."""
        lines = [f"password.encoder.secret = {secret}", *([f"password.encoder.old.secret = {old}"] if old else [])]
        self.config.write_text("\n".join((self.file, *lines, "")))

    def configs(self, *flags: str) -> tuple[int, str, str]:
        """Exit code, stdout, stderr."""
        arguments = ["configs", "--entity-type", "lockstep", "--config", str(self.config), *flags]
        run = CliRunner().invoke(app, arguments)
        if isinstance(run.exception, LockstepError):
            return WRONG_USAGE if isinstance(run.exception, ConfigurationError) else 1, run.stdout, str(run.exception)
        return run.exit_code, run.stdout, run.stderr

    def stored(self) -> dict[Key, str]:
        """What the ledger holds."""
        return Ledger(LEDGER, self.target, None, 1).values(Entry.OVERRIDE)


@pytest.fixture
def stage(clusters: Clusters, tmp_path: Path) -> Iterator[Stage]:
    config = write_properties(tmp_path, clusters.a, clusters.b, "overriding-.*", source=SOURCE)
    with client_of(clusters.b) as target:
        staged = Stage(config, config.read_text(), target)
        staged.encoder("hush-hush-hush-1")
        yield staged
        Ledger(LEDGER, target, target, 1).put({(Entry.OVERRIDE, key): None for key in staged.stored()})


def test_password_is_nowhere_in_plain_text_and_follows_the_secret_that_encodes_it(stage: Stage) -> None:
    code, said, _ = stage.configs("--alter", "--entity-name", FLOW.name, "--add-config", f"{SECRET}=t0ps3cr3t")
    assert (code, "t0ps3cr3t" in said) == (DONE, False)
    first = stage.stored()
    stage.encoder("hush-hush-hush-2")
    with pytest.raises(ConfigurationError, match=r"set password\.encoder\.old\.secret"):
        load_with_overrides(stage.config)
    stage.encoder("hush-hush-hush-2", old="hush-hush-hush-1")
    settings = load_with_overrides(stage.config)
    assert settings.override_values == {FLOW: {SECRET: "t0ps3cr3t"}}
    encode_again(settings)
    stage.encoder("hush-hush-hush-2")
    assert load_with_overrides(stage.config).override_values == {FLOW: {SECRET: "t0ps3cr3t"}}
    assert stage.stored().keys() == first.keys()
    assert stage.stored() != first
    for topic in (LEDGER, AUDIT):
        records = stage.target.read_log(topic)
        assert records
        assert not any(b"t0ps3cr3t" in value for _, value in records if value)


def test_one_value_that_is_wrong_keeps_the_others_away_too(stage: Stage) -> None:
    wrong = "topics=x,lockstep.observe.rate=many,topicz=y"
    code, _, said = stage.configs("--alter", "--entity-default", "--add-config", wrong)
    assert (code, stage.stored()) == (WRONG_USAGE, {})
    assert "'many' is not allowed" in said
    assert "nearest: topics" in said


def test_what_contradicts_the_file_is_refused_before_it_is_written(stage: Stage) -> None:
    stage.file += "\nlockstep.overrides.allowed = classes"
    stage.encoder("hush-hush-hush-hush")
    listener = "topic.listener.class=lockstep.listeners:WebhookListener"
    code, _, said = stage.configs("--alter", "--entity-name", FLOW.name, "--add-config", listener)
    assert (code, stage.stored()) == (WRONG_USAGE, {})
    assert "lockstep.listener.webhook.url is missing" in said


def test_dry_run_writes_nothing_and_a_deletion_needs_something_to_delete(stage: Stage) -> None:
    code, said, _ = stage.configs("--alter", "--entity-default", "--add-config", "topics=x", "--dry-run")
    assert (code, stage.stored()) == (DONE, {})
    assert "Validated for all flows; nothing was written." in said
    code, _, said = stage.configs("--alter", "--entity-default", "--delete-config", "topics")
    assert (code, "it is not set here" in said) == (WRONG_USAGE, True)


def test_damaged_override_stops_what_would_use_it_and_can_be_mended(stage: Stage) -> None:
    Ledger(LEDGER, stage.target, stage.target, 1).put({(Entry.OVERRIDE, ("flow", "topics")): "{"})
    with pytest.raises(ConfigurationError, match="the override of topics in the ledger is damaged"):
        load_with_overrides(stage.config)
    code, _, said = stage.configs("--describe")
    assert (code, "damaged" in said) == (1, True)
    assert stage.configs("--alter", "--entity-name", FLOW.name, "--delete-config", "topics")[0] == DONE
    assert load_with_overrides(stage.config).override_values == {}


def test_describe_tells_the_levels_as_json_and_the_audit_topic_who_set_them(stage: Stage) -> None:
    for place, value in (("--entity-default", "1"), ("--entity-name=" + FLOW.name, "2")):
        assert stage.configs("--alter", place, "--add-config", f"lockstep.observe.rate={value}")[0] == DONE
    code, said, _ = stage.configs("--describe", "--entity-name", FLOW.name, "-o", "json")
    (entity,) = json.loads(said)["entities"]
    (config,) = entity["configs"]
    assert (code, entity["entity_name"], config["value"], config["source"]) == (DONE, FLOW.name, "2", "FLOW")
    assert [level["source"] for level in config["levels"]] == ["FLOW", "ALL_FLOWS", "DEFAULT"]
    assert config["falls_back_to"]["value"] == "1"
    keys = [event.key for event in read_audit(AUDIT, stage.target) if event.kind == "setting"]
    assert keys[-2:] == [("lockstep.observe.rate",), (f"{FLOW.name}.lockstep.observe.rate",)]
