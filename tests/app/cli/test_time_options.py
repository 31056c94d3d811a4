"""`--since` takes a time ago or a point in time, and says what is allowed; a time in seconds is a number."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

import pytest
import typer
from typer.testing import CliRunner

from app.cli.lazy_commands import app
from app.cli.shared_options import BEGINNING, SINCE, parse_since
from app.local.jars import PROJECT

NOW = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1h", NOW - timedelta(hours=1)),
        ("90s", NOW - timedelta(seconds=90)),
        ("2 days", NOW - timedelta(days=2)),
        ("2026-11-21", datetime(2026, 11, 21, tzinfo=timezone.utc)),
        ("2026-11-21T14:30:00Z", datetime(2026, 11, 21, 14, 30, tzinfo=timezone.utc)),
        ("2026-11-21 14:30:00+02:00", datetime(2026, 11, 21, 12, 30, tzinfo=timezone.utc)),
        (None, BEGINNING),
    ],
)
def test_a_time_ago_and_a_point_in_time_are_understood(text: str | None, meant: datetime) -> None:
    assert parse_since(text, NOW) == meant


@pytest.mark.parametrize("text", ["yesterday", "", "1 fortnight", "2026-13-01", "9999999999d"])
def test_any_other_text_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(typer.BadParameter) as refused:
        parse_since(text, NOW)
    assert SINCE in str(refused.value)


@pytest.mark.parametrize("text", ["2026-11-23", "2026-11-22T12:00:01Z"])
def test_a_time_to_come_is_refused_for_nothing_is_there_since_then(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="in the future"):
        parse_since(text, NOW)


GIVEN = [
    ("cutover", "--within"),
    ("drill", "--within"),
    ("look", "--wait"),
    ("configs", "--canary-time"),
]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "soon"])
@pytest.mark.parametrize(("command", "option"), GIVEN)
def test_what_is_no_time_is_wrong_usage_and_named(command: str, option: str, value: str) -> None:
    done = CliRunner().invoke(app, [command, option, value], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert f"'{option}'" in done.output
    assert f"{value}: a number of seconds, 0 or more" in done.output


@pytest.mark.parametrize("value", ["0", "0.9", "61", "-1", "nan", "soon"])
def test_a_time_limit_is_refused_by_one_rule_with_one_text(value: str) -> None:
    done = CliRunner().invoke(app, ["plan", "--timeout", value], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert f"'--timeout': {value}: a number of seconds, 1 to 60" in done.output


FRACTION = re.compile(r"float(?: \| None)?,\s*typer\.Option\((.*?\))", re.DOTALL)


def test_every_option_that_is_a_fraction_is_read_as_seconds() -> None:
    commands = [path.read_text(encoding="utf-8") for path in (PROJECT / "app" / "cli").glob("*.py")]
    options = [option for text in commands for option in FRACTION.findall(text)]
    assert len(options) >= len(GIVEN)
    assert [one for one in options if not re.search(r"parser=(?:partial\()?seconds", one)] == []
