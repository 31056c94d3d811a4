"""`--add-config`, `--add-config-file` and `--delete-config` are read as kafka-configs reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.configs_tool.flags import parse_added, parse_added_file, parse_deleted
from streaming.errors import WrongUsage


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("a=1", {"a": "1"}),
        ("a=1,b=2", {"a": "1", "b": "2"}),
        ("a=[1,2],b=3", {"a": "1,2", "b": "3"}),
        ("a=[x=1,y=2]", {"a": "x=1,y=2"}),
        ("a=", {"a": ""}),
        (" a = 1 , b=2", {"a": "1", "b": "2"}),
        ("a=1,,", {"a": "1"}),
        ("a=1,a=2", {"a": "2"}),
        ("a=x[y]z", {"a": "xyz"}),
        (",", {}),
    ],
)
def test_added_configs_are_split_at_commas_outside_brackets(text: str, added: dict[str, str]) -> None:
    assert parse_added(text) == added


@pytest.mark.parametrize("text", ["", "hush", "a=hush,hush", "a=hush=hush", ",a=hush", "hu sh=1", "=hush"])
def test_what_is_no_pair_is_refused_without_a_word_of_it(text: str) -> None:
    with pytest.raises(WrongUsage) as raised:
        parse_added(text)
    assert "hush" not in str(raised.value)
    assert "--add-config" in str(raised.value)


@given(st.dictionaries(st.from_regex(r"[a-z.]{1,9}", fullmatch=True), st.text("xy,= 1", min_size=0, max_size=9)))
def test_bracketed_values_come_out_as_they_went_in(pairs: dict[str, str]) -> None:
    text = ",".join(f"{name}=[{value}]" for name, value in pairs.items())
    assert not pairs or parse_added(text) == {name: value.strip() for name, value in pairs.items()}


def test_a_file_is_read_as_java_reads_properties() -> None:
    data = b"# a comment\na=1,2\nb = [x]\\\n  y\nc=\\u00e4\n"
    assert parse_added_file(data) == {"a": "1,2", "b": "[x]y", "c": "ä"}


@pytest.mark.parametrize("data", [b"a=\\uhush", b"h u$h=1\n\xe4=2"])
def test_a_file_that_cannot_be_read_is_an_error_without_a_word_of_it(data: bytes) -> None:
    with pytest.raises(WrongUsage) as raised:
        parse_added_file(data)
    assert "hush" not in str(raised.value)


def test_names_to_delete_come_in_lists_and_repeated() -> None:
    assert parse_deleted(["a, b", "c,a,"]) == ("a", "b", "c")
