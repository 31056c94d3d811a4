"""What the commands of a failover take for their options, before any cluster is asked."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from app.cli.adopt_command import adopt
from app.cli.drill_command import drill
from app.cli.failover_commands import cutover, failback, failover, fence, promote, unfence
from app.cli.failover_run import one_flow
from app.cli.output import Output
from app.cli.verify_command import verify
from streaming.errors import WrongUsage


def run(command: Callable[..., Any], *arguments: str) -> tuple[int, str]:
    """Exit code and what is printed, in one line; the file is not there, so that no cluster can be."""
    app = typer.Typer(rich_markup_mode=None)
    app.command()(command)
    done = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "200"})
    return done.exit_code, " ".join(done.output.split())


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        (failover, "--accept-loss", "-1"),
        (failover, "--yes", "-1"),
        (failover, "--yes", "twelve"),
        (failback, "--discard", "-1"),
    ],
)
def test_a_value_that_no_loss_and_no_time_can_be_is_wrong_usage_and_named(
    command: Callable[..., Any], option: str, value: str
) -> None:
    code, said = run(command, option, value, "--config", "is-not-there.properties")
    assert code == 2
    assert f"'{option}'" in said


@pytest.mark.parametrize("value", ["0", "120", "unknown"])
def test_what_a_prediction_can_be_may_be_typed_back(value: str) -> None:
    assert "--yes" not in run(failover, "--yes", value, "--config", "is-not-there.properties")[1]


@pytest.mark.parametrize("command", [fence, unfence, cutover, promote, failover, failback, drill])
def test_the_help_of_a_command_about_one_flow_does_not_say_that_flow_may_be_repeated(
    command: Callable[..., Any],
) -> None:
    said = run(command, "--help")[1]
    assert "The flow, if the file enables several" in said
    assert "every enabled flow" not in said


def test_the_help_of_adopt_names_the_kinds_that_can_be_owned_and_no_others() -> None:
    said = run(adopt, "--help")[1]
    assert "acl" in said
    assert "group-offset" not in said


def test_of_options_that_exclude_each_other_those_that_were_said_are_blamed() -> None:
    code, said = run(verify, "--since", "1h", "--last", "3", "--config", "is-not-there.properties")
    assert code == 2
    assert "--since" in said
    assert "--last" in said
    assert "--full" not in said


def test_a_flow_that_is_not_enabled_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text("clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n")
    with pytest.raises(WrongUsage, match="--flow b->a: this flow is not enabled in the file; enabled: a->b"):
        one_flow(file, ["b->a"])


@pytest.mark.parametrize("more", [(), ("--dry-run",), ("--dry-run", "-o", "json")])
@pytest.mark.parametrize("topic", ["", "../x", "__consumer_offsets", "lockstep-ledger.a.internal"])
def test_a_topic_that_no_drill_may_make_is_refused_before_a_cluster_is_asked(
    topic: str, more: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text("clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n")
    with pytest.raises(WrongUsage, match=re.escape(f"--topic {topic}: ")):
        drill(file, topic=topic, dry="--dry-run" in more, output=Output.JSON if "json" in more else Output.TEXT)
