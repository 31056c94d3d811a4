"""`sasl.jaas.config`: what Kafka reads is read, what is wrong is told, and no error tells a value."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.kafka.security.jaas import LoginModule, parse_jaas
from streaming.errors import LockstepError

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("config", "options"),
    [
        (f"{SCRAM} required;", {}),
        (f'{SCRAM} required username="me" password="p";', {"username": "me", "password": "p"}),
        (
            f"{SCRAM}\n  REQUIRED\n  username = 'me'\n  password=word-1_$.x ;\n",
            {"username": "me", "password": "word-1_$.x"},
        ),
        (f"{SCRAM} required password=\"a;b=c // d /* e */ 'f'\";", {"password": "a;b=c // d /* e */ 'f'"}),
        (f'{SCRAM} required password="q\\"b\\\\n\\n o\\101\\7x";', {"password": 'q"b\\n\n oA\ax'}),
        (f'/* who */ {SCRAM} required // how\n username="me" / rest\n ;', {"username": "me"}),
        (f'{SCRAM} required password="a" password="b";', {"password": "b"}),
        (f'{SCRAM} required "user name"="me";', {"user name": "me"}),
    ],
)
def test_a_login_module_is_read_with_its_flag_and_all_its_options(config: str, options: dict[str, str]) -> None:
    assert parse_jaas(config) == LoginModule(SCRAM, "REQUIRED", options)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("", "is empty"),
        ("/* nothing */", "is empty"),
        ("; required;", "begins with no login module"),
        (SCRAM, "no control flag"),
        (f"{SCRAM};", "no control flag"),
        (f'{SCRAM} username="s3cret";', "no control flag"),
        (f'{SCRAM} required password="s3cret"', "semicolon"),
        (f'{SCRAM} required password="s3cret;', "opened and not closed"),
        (f"{SCRAM} required password='s3cret;", "opened and not closed"),
        (f"{SCRAM} required username=me password=5s3cret;", "value of option 2 cannot be read"),
        (f"{SCRAM} required password=s3cret! ;", "option 2 has no name"),
        (f"{SCRAM} required password=my s3cret;", "value of option 2 cannot be read"),
        (f"{SCRAM} required password s3cret;", "value of option 1 cannot be read"),
        (f'{SCRAM} required password="s3cret"; {SCRAM} required;', "one login module"),
    ],
)
def test_what_is_wrong_is_told_without_a_value(config: str, reason: str) -> None:
    with pytest.raises(LockstepError) as error:
        parse_jaas(config)
    assert reason in str(error.value)
    assert "s3cret" not in str(error.value)


@settings(max_examples=50)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")))
def test_any_password_in_quotes_is_read_as_it_is(password: str) -> None:
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    assert parse_jaas(f'{SCRAM} required password="{quoted}";').options == {"password": password}


@settings(max_examples=100)
@given(st.text("ab1 =;\"'\\/*\n.-"))
def test_any_text_is_either_read_or_refused(config: str) -> None:
    try:
        parse_jaas(config)
    except LockstepError as error:
        assert str(error)


def test_no_option_is_in_the_repr() -> None:
    assert "s3cret" not in repr(parse_jaas(f'{SCRAM} required password="s3cret";'))
