"""Java's properties format, with line numbers and all mistakes at once."""

from __future__ import annotations

from pathlib import Path

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.properties.mistakes import Findings, Mistake, PropertyLine, UnreadableFile
from app.properties.parse import parse, read
from app.properties.scoped_keys import scoped_key
from app.properties.shown_values import shown_value

KEYS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12)
VALUES = st.text(st.characters(codec="utf-8"), max_size=20)


def parsed(text: str) -> tuple[dict[str, PropertyLine], Findings]:
    findings = Findings("f.properties")
    return parse(text.encode("iso-8859-1"), findings), findings


@given(st.dictionaries(KEYS, VALUES))
def test_what_java_would_write_is_read_back(properties: dict[str, str]) -> None:
    """parse(render(x)) == x"""
    entries, findings = parsed(javaproperties.dumps(properties, timestamp=False))
    assert {key: entry.raw for key, entry in entries.items()} == properties
    assert not findings.mistakes


@given(st.lists(st.sampled_from(["# note\n", "\n", "  \r\n", "k{}=v\n", "k{}: v \\\n   w\n", "!x\r\n", "k{} v\r\n"])))
def test_an_entry_has_the_number_of_the_line_that_it_begins_in(pieces: list[str]) -> None:
    text, expected, line = "", {}, 1
    for number, piece in enumerate(pieces):
        if "{}" in piece:
            expected[f"k{number}"] = line
        text += piece.format(number)
        line += 2 if "\\" in piece else 1
    entries, _ = parsed(text)
    assert {key: entry.line for key, entry in entries.items()} == expected


def test_a_broken_escape_is_a_mistake_in_its_own_line_and_the_rest_is_read() -> None:
    entries, findings = parsed("a=1\nb.ssl.key.password=x\\\n  y\\uBAD!\nc=\\u0041\nd=\\u1\n")
    assert {key: entry.value for key, entry in entries.items()} == {"a": "1", "c": "A"}
    assert [(mistake.line, mistake.key) for mistake in findings.mistakes] == [(3, "b.ssl.key.password"), (5, "d")]
    assert "four hexadecimal digits" in findings.mistakes[0].message


def test_a_broken_escape_does_not_show_what_stands_around_it() -> None:
    _, findings = parsed("a.password=hush\\user\n")
    assert "hush" not in str(findings.mistakes[0])
    assert "user" not in str(findings.mistakes[0])


def test_of_a_key_that_is_there_twice_the_last_one_holds_with_a_warning() -> None:
    entries, findings = parsed("a=1\nb=2\na=3\n")
    assert entries["a"].value == "3"
    assert [str(warning) for warning in findings.warnings] == [
        "f.properties:3: a: is in line 1 already; this one, the last, holds"
    ]


def test_white_space_around_a_value_does_not_count() -> None:
    entries, _ = parsed("a.b = true \t\n")
    assert entries["a.b"].value == "true"


def test_characters_outside_ascii_are_read_as_java_does_with_a_warning() -> None:
    findings = Findings("f")
    entries = parse("k=é\n# é\n".encode(), findings)
    assert entries["k"].value == "Ã©"
    assert [warning.line for warning in findings.warnings] == [1]


def test_a_byte_order_mark_is_no_part_of_a_key(tmp_path: Path) -> None:
    path = tmp_path / "marked.properties"
    path.write_bytes(b"\xef\xbb\xbfclusters=a\n")
    findings = Findings(str(path))
    assert list(read(path, findings)) == ["clusters"]
    assert "byte order mark" in findings.warnings[0].message


def test_a_file_that_is_not_there_or_not_text_is_one_mistake(tmp_path: Path) -> None:
    utf16 = tmp_path / "utf16.properties"
    utf16.write_text("clusters=a", encoding="utf-16")
    for path, reason in ((tmp_path / "none", "No such file"), (tmp_path, "directory")):
        findings = Findings(str(path))
        with pytest.raises(UnreadableFile, match=reason):
            read(path, findings)
        assert len(findings.mistakes) == 1
    findings = Findings(str(utf16))
    assert read(utf16, findings) == {}
    (mistake,) = findings.mistakes
    assert "UTF-16" in str(mistake)


def test_a_mistake_names_file_line_and_key_as_far_as_there_are_any() -> None:
    assert str(Mistake("conf/m.properties", 12, "a.bootstrap.servers", "is odd")) == (
        "conf/m.properties:12: a.bootstrap.servers: is odd"
    )
    assert str(Mistake("m", None, "clusters", "is missing")) == "m: clusters: is missing"
    assert str(Mistake("m", None, "", "cannot be read")) == "m: cannot be read"


def test_neither_repr_nor_shown_gives_a_secret_away() -> None:
    entries, _ = parsed("a.sasl.jaas.config=hush\nb.ssl.keystore.password=hush\nc.token=hush\n")
    for entry in entries.values():
        assert "hush" not in repr(entry)
        assert "hush" not in shown_value(scoped_key(entry.key, ["a", "b"]), entry)
