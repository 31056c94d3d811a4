"""A time in seconds is a number that is over some day, for every command."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from app.local.jars import PROJECT
from app.main import app

GIVEN = [
    ("cutover", "--within"),
    ("drill", "--within"),
    ("look", "--wait"),
    ("plan", "--timeout"),
    ("configs", "--canary-time"),
]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "soon"])
@pytest.mark.parametrize(("command", "option"), GIVEN)
def test_what_is_no_time_is_wrong_usage_and_named(command: str, option: str, value: str) -> None:
    done = CliRunner().invoke(app, [command, option, value], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert f"'{option}'" in done.output
    assert f"{value}: a number of seconds, 0 or more" in done.output


FRACTION = re.compile(r"float(?: \| None)?,\s*typer\.Option\((.*?\))", re.DOTALL)


def test_every_option_that_is_a_fraction_is_read_as_seconds() -> None:
    commands = [path.read_text(encoding="utf-8") for path in (PROJECT / "app" / "cli").glob("*.py")]
    options = [option for text in commands for option in FRACTION.findall(text)]
    assert len(options) >= len(GIVEN)
    assert [one for one in options if not re.search(r"parser=seconds", one)] == []
