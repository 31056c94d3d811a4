"""What a drill needs on its copy is never granted on more than that, whatever the policy calls the copy."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from app.cli.rights_command import commands, rights
from app.rights.flow_rights import drill_rights, unnamed_copies
from app.settings import Settings
from tests.app.rights.test_rights import settings_of

SUFFIXES = """
from streaming.mm2.replication_policy import BaseReplicationPolicy

class Suffixes(BaseReplicationPolicy):
    def format_remote_topic(self, source_alias, topic):
        return f"{topic}.{source_alias}"

    def topic_source(self, topic):
        return topic.rpartition(".")[2] if "." in topic else None

    def upstream_topic(self, topic):
        return topic.rpartition(".")[0] or None
"""
"""Puts the alias behind the name."""


@pytest.fixture
def suffixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The rights of a flow whose policy appends to names."""
    (tmp_path / "names_with_suffixes.py").write_text(SUFFIXES)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "names_with_suffixes", raising=False)
    return settings_of(tmp_path, "replication.policy.class=names_with_suffixes:Suffixes")


def test_where_no_prefix_has_the_copies_of_drills_a_comment_says_on_which_topic_to_grant_what(
    suffixed: Settings,
) -> None:
    lines = commands(suffixed, "User:me", failover=True)
    (said,) = (line for line in lines if "--topic practice" in line)
    assert said.startswith("# ")
    assert "DELETE, DESCRIBE, READ on the copy" in said
    assert said.endswith("practice.a")
    assert not any("--operation Delete" in line and "--topic '*'" in line for line in lines)


def test_no_right_of_a_drill_is_on_every_topic(suffixed: Settings, tmp_path: Path) -> None:
    assert "*" not in {right.resource_name for right in drill_rights(suffixed.flows[0])}
    app = typer.Typer()
    app.command()(rights)
    config = str(tmp_path / "mirror.properties")
    done = CliRunner().invoke(app, ["--principal", "User:me", "--failover", "-o", "json", "--config", config])
    (flow,) = json.loads(done.stdout)["flows"]
    assert "DELETE" not in {right["operation"] for right in flow["rights"] if right["resource_name"] == "*"}
    assert flow["notes"] == unnamed_copies(suffixed.flows[0])


@pytest.mark.parametrize("policy", ["DefaultReplicationPolicy", "IdentityReplicationPolicy"])
def test_where_copies_of_drills_have_a_prefix_there_is_no_comment(tmp_path: Path, policy: str) -> None:
    settings = settings_of(tmp_path, f"replication.policy.class=org.apache.kafka.connect.mirror.{policy}")
    assert not unnamed_copies(settings.flows[0])
