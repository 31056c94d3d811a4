"""Java's regular expressions in Python's syntax. That both match the same names is shown in tests/parity."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from streaming.errors import LockstepError
from streaming.mm2.java_regex import compile_java


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"orders.*", "orders.eu", "eu.orders"),
        (r"a\.b", "a.b", "axb"),
        (r"(?!mm2).*(?<!\.internal|-replica)", "orders", "my.internal"),
        (r".*(?<=eu|-us)", "x-us", "xus"),
        (r"eu|(?i)us|de", "US", "EU"),
        (r"(?i:EU)-x", "eu-x", "eu-X"),
        (r"((?i)eu|us)-x", "US-x", "US-X"),
        (r"(?i)a(?-i)b", "Ab", "AB"),
        (r"[a-z&&[^bc]]+", "ad", "ab"),
        (r"[^a[bc]]", "d", "b"),
        (r"[\w.-]+", "a-b.c_", "a b"),
        (r"[]a]", "]", "b"),
        (r"[a||b]", "|", "c"),
        (r"\Qa.*\E+", "a.**", "axx"),
        (r"\p{Alpha}\P{Digit}\d", "a-1", "1-1"),
        (r"\x41\u0042\0103\x{44}\cA\t", "ABCD\x01\t", "ABCD"),
        (r"(a|b)\1", "bb", "ab"),
        (r"(?<side>a|b)-\k<side>", "a-a", "a-b"),
        (r"(a)\11", "aa1", "aa"),
        (r"a{2}b{1,}?", "aab", "ab"),
        (r"(?s).", "\n", ""),
        (r"\A\ba\B.\z", "ab", "a-"),
        ("\\h\\H\\v\\V\\s\\S\\D\\W", " a\rb\tc--", " a b c--"),
        ("}]", "}]", "}"),
    ],
)
def test_a_pattern_of_javas_means_what_it_means_there(pattern: str, matching: str, other: str) -> None:
    compiled = compile_java(pattern)
    assert compiled.fullmatch(matching)
    assert not compiled.fullmatch(other)


def test_letters_and_digits_are_those_of_ascii_as_in_java() -> None:
    assert not compile_java(r"\w").fullmatch("é")
    assert not compile_java(r"\d").fullmatch("\u0663")
    assert not compile_java("(?i)é").fullmatch("É")
    assert not compile_java("(?i)k").fullmatch("\u212a")


@given(st.text(max_size=8))
def test_a_quoted_text_matches_itself(text: str) -> None:
    assume("\\E" not in text)
    assert compile_java(rf"\Q{text}\E").fullmatch(text)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(a", "a ( has no )"),
        ("a)", "this ) has no ("),
        ("[a", "a [ has no ]"),
        ("*a", "nothing to repeat"),
        ("a++", "possessive quantifiers are not supported"),
        ("a{", "Lockstep does not know this construct"),
        (r"\y", r"at '\\y'"),
        (r"\p{IsLatin}", "only POSIX's classes"),
        (r"\p{L}", "only POSIX's classes"),
        ("(?>a)", "Lockstep does not know this kind of group"),
        ("(?m)a", "Lockstep does not know this kind of group"),
        ("[a&&]", "after && there must be one class"),
        ("[a-z&&[b]c]", "after && there must be one class"),
        ("[&&a]", "a class cannot hold this character"),
        (r"[\Qa\E]", "a class cannot hold this character"),
        (r"\1", "unknown group"),
        ("(?<=a+)b", "look-behind requires fixed-width"),
        ("(?:" * 5000 + ")" * 5000, "is no regular expression"),
    ],
)
def test_what_python_cannot_say_alike_is_refused_and_named(pattern: str, said: str) -> None:
    with pytest.raises(LockstepError) as caught:
        compile_java(pattern)
    assert repr(pattern) in str(caught.value)
    assert said in str(caught.value)


@given(st.text("ab.*+?|()[]{}^$\\-&!<=:iQE1,pdw", max_size=10))
def test_any_text_is_compiled_or_refused_and_nothing_else(pattern: str) -> None:
    try:
        compile_java(pattern)
    except LockstepError as error:
        assert repr(pattern) in str(error)
