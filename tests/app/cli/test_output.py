"""What a command prints is text, wherever it comes from, and all of it is printed."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import sys
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.output import complain, complain_of, print_json, print_line, print_table
from sinks.printable import PrintableFormatter, one_line, printable
from streaming.errors import WrongUsage

Capture = pytest.CaptureFixture[str]
NASTY = ("[red]", r"\[/x]", "[/]", "[bold]x[/bold]", ":smile:", "[link=http://x]y[/link]")
STEERING = ("\x1b[2J", "\x1b]0;title\x07", "\x9b2J", "a\rb", "\x08", "\u202egnp.exe", "\u2066", "\x7f")


@pytest.mark.parametrize("text", NASTY)
def test_what_looks_like_markup_is_text(text: str, capsys: Capture) -> None:
    print_table(f"group {text}", ("group", text), [(text, f"x{text}")])
    print_line(text)
    complain(text)
    said = capsys.readouterr()
    assert said.out.count(text) == 5
    assert said.err == f"{text}\n"


@pytest.mark.parametrize("text", STEERING)
def test_what_would_steer_a_terminal_is_escaped(text: str, capsys: Capture) -> None:
    print_table(text, ("group",), [(text,)])
    print_line(text)
    complain(text)
    said = capsys.readouterr()
    print_json({"group": text, "emoji": "\U000e0041"})
    document = capsys.readouterr().out
    for printed in (said.out, said.err, document):
        assert "\\u00" in printed or "\\u20" in printed or "\\b" in printed or "\\r" in printed
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", printed)
    assert json.loads(document) == {"group": text, "emoji": "\U000e0041"}


def test_a_line_feed_in_a_name_makes_no_row_of_its_own(capsys: Capture) -> None:
    print_table("", ("group",), [("a\nb",)])
    assert capsys.readouterr().out.split() == ["group", r"a\nb"]


def test_no_name_prints_a_line_of_its_own(capsys: Capture) -> None:
    print_line("refused: ALLOW READ User:x\n0 changes")
    complain("ACL with the host *\nlockstep: done")
    said = capsys.readouterr()
    assert (said.out.count("\n"), said.err.count("\n")) == (1, 1)
    record = logging.LogRecord("x", logging.INFO, "x", 1, "group %s", ("g\n2026-01-01 INFO all is well",), None)
    assert PrintableFormatter("%(levelname)s %(message)s").format(record) == (
        "INFO group g\\n2026-01-01 INFO all is well"
    )


def test_an_error_of_several_mistakes_has_a_line_for_each(capsys: Capture) -> None:
    complain_of(WrongUsage("one\nand a half", "two"))
    assert capsys.readouterr().err.splitlines() == ["one\\nand a half", "two"]


def test_a_stack_trace_in_the_log_keeps_its_lines() -> None:
    try:
        raise ValueError("x")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "x", 1, "it broke", (), sys.exc_info())
    assert PrintableFormatter().format(record).splitlines()[:2] == ["it broke", "Traceback (most recent call last):"]


def test_every_character_that_unicode_calls_a_control_or_a_format_is_escaped() -> None:
    hidden = [char for char in map(chr, range(sys.maxunicode + 1)) if category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert [char for char in hidden if char not in "\t\n" and char in printable(char)] == []


@given(st.text())
def test_nothing_that_is_printed_steers(text: str) -> None:
    assert printable(printable(text)) == printable(text)
    assert all(char.isprintable() or char in " \t\n" or ord(char) > 0x9F for char in printable(text))
    assert "\n" not in one_line(text)
    printable(text).encode()


def test_json_of_one_line_stays_json(capsys: Capture) -> None:
    print_line(json.dumps({"a": "\x9b"}, ensure_ascii=False))
    assert json.loads(capsys.readouterr().out) == {"a": "\x9b"}


def on_a_terminal(columns: int, monkeypatch: pytest.MonkeyPatch, *table: object) -> str:
    """What a terminal of this width shows of a table."""
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "dumb")
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        print_table(*table)  # type: ignore[arg-type]  # a title, columns and rows
        print("END")  # noqa: T201 - tells the reader that all is there
        out.flush()
        found = b""
        while b"END" not in found:
            found += os.read(master, 4096)
    os.close(master)
    return found.decode().replace("\r\n", "\n").partition("END")[0]


@pytest.mark.parametrize("columns", [10, 40, 80, 200])
@pytest.mark.parametrize("width", [1, 5, 10])
def test_every_row_is_whole_however_narrow_the_terminal(
    columns: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"column{number}" for number in range(width)]
    rows = [["ABCDEFGHIJKLMN"[row] * 20 for _ in range(width)] for row in range(14)]
    shown = on_a_terminal(columns, monkeypatch, "title", names, rows)
    for row in rows:
        assert shown.count(row[0][0]) == 20 * width
    assert "…" not in shown


def test_a_title_is_not_wrapped_by_a_narrow_table(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_a_terminal(40, monkeypatch, "east->west: 1 topics", ("a",), [("b",)])
    assert shown.splitlines()[0] == "east->west: 1 topics"


def test_a_log_line_steers_nothing() -> None:
    record = logging.LogRecord("x", logging.INFO, "x", 1, "group %s", ("\x1b[2J",), None)
    assert PrintableFormatter().format(record) == "group \\u001b[2J"


def test_a_table_without_rows_has_its_heads(capsys: Capture) -> None:
    print_table("none", ("a", "b"), [])
    assert capsys.readouterr().out.split() == ["none", "a", "b"]


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_columns_hold_where_stdout_is_no_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table("", ("kind", "last success"), [("topic-config", "word " * 40)])
    assert max(map(len, capsys.readouterr().out.splitlines())) <= columns


def test_no_head_of_a_column_is_broken(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    heads = ("group", "topic", "partition", "downstream", "last success", "error bound")
    for columns in range(20, 100, 3):
        monkeypatch.setenv("COLUMNS", str(columns))
        print_table("", heads, [["x" * 30] * len(heads)])
        shown = capsys.readouterr().out
        assert all(head in shown for head in heads)


def test_no_color_takes_every_style_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in on_a_terminal(60, monkeypatch, "title", ("a",), [("b",)])
