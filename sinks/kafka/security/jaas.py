"""`sasl.jaas.config` as Kafka reads it: `MODULE FLAG NAME=VALUE ... ;`.

Source: `JaasConfig`, which reads with Java's `StreamTokenizer`. Words are letters, digits, `.`, `-`, `_` and `$`, and
begin with no digit. Everything else stands in single or double quotes. There a backslash takes the next character
literally, except in `\\n`, `\\t` and octal numbers. `//`, `/* */` and a single `/` begin a comment.

Errors name the option and what is wrong with it, never a value: any of them may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sinks.secret_values import is_secret
from streaming.errors import LockstepError

FLAGS = frozenset({"REQUIRED", "REQUISITE", "SUFFICIENT", "OPTIONAL"})
"""`LoginModuleControlFlag`, in any case."""

TOKENS = re.compile(
    r"""(?P<skipped>[\x00-\x20]+|/\*.*?(?:\*/|\Z)|/(?!\*)[^\r\n]*)
      |"(?P<double>(?:[^"\\\r\n]|\\.)*)"
      |'(?P<single>(?:[^'\\\r\n]|\\.)*)'
      |(?P<word>[A-Za-z_$\u00a0-\U0010ffff][A-Za-z_$\u00a0-\U0010ffff0-9.-]*)
      |(?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
VALUES = re.compile(
    r"""(?<![\w.$-])(?P<name>[\w.$-]*)\s*=\s*"""
    r"""(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<bare>[^\s;]+))""",
    re.DOTALL,
)
ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

FORM = 'write it as MODULE required NAME="VALUE" ...;'


@dataclass(frozen=True, slots=True)
class LoginModule:
    """One login module. `name` is its Java class; `flag` in upper case; the options may hold secrets."""

    name: str
    flag: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def simple_name(self) -> str:
        return self.name.rpartition(".")[2]


class _Token(NamedTuple):
    """A word, a quoted text (`text`), or a mark such as `=` and `;`."""

    text: str | None
    mark: str = ""


def parse_jaas(config: str) -> LoginModule:
    """Returns the one login module of a `sasl.jaas.config`. Raises LockstepError that shows no value."""
    tokens = _tokens(config)
    first = next(tokens, None)
    if first is None:
        raise LockstepError(f"is empty: {FORM}")
    if not first.text:
        raise LockstepError(f"begins with no login module: {FORM}")
    module = LoginModule(first.text, _flag(next(tokens, None)), _options(tokens))
    if next(tokens, None) is not None:
        raise LockstepError("goes on after the semicolon: a client has one login module")
    return module


def option_texts(config: str) -> Iterator[str]:
    """Returns each value after a `=` in a text that may be a JAAS configuration, as written and as read, so that it can
    be hidden.

    A value without quotes counts only if its name suggests a secret. It hides too much rather than too little. A user
    name is no secret, and may be a word that every message has.
    """
    for match in VALUES.finditer(config):
        bare, quoted = match["bare"], match["double"] or match["single"] or ""
        if match["name"] == "username":
            continue
        if bare is None:
            yield from {quoted, ESCAPE.sub(_unescaped, quoted)}
        elif is_secret(match["name"]):
            yield from {bare, re.split("[,&]", bare)[0]}


def _tokens(config: str) -> Iterator[_Token]:
    for match in TOKENS.finditer(config):
        kind = match.lastgroup
        if kind == "word":
            yield _Token(match[0])
        elif kind in ("double", "single"):
            yield _Token(ESCAPE.sub(_unescaped, match[kind]))
        elif kind == "mark":
            if match[0] in "\"'":
                raise LockstepError(f"a quote ({match[0]}) is opened and not closed; inside quotes write \\{match[0]}")
            yield _Token(None, match[0])


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else CONTROL.get(escaped, escaped)


def _flag(token: _Token | None) -> str:
    flag = (token.text or "").upper() if token else ""
    if flag not in FLAGS:
        allowed = ", ".join(sorted(word.lower() for word in FLAGS))
        raise LockstepError(f"has no control flag after the login module; allowed: {allowed}")
    return flag


def _options(tokens: Iterator[_Token]) -> dict[str, str]:
    options: dict[str, str] = {}
    for name in tokens:
        if name.mark == ";":
            return options
        if name.text is None:
            raise LockstepError(f"option {len(options) + 1} has no name: put values in quotes; {FORM}")
        equals, value = next(tokens, None), next(tokens, None)
        if equals is None or equals.mark != "=" or value is None or value.text is None:
            # Counted, not named: where quotes are missing, the rest of a password stands in the place of a name.
            raise LockstepError(f"the value of option {len(options) + 1} cannot be read: put it in quotes; {FORM}")
        options[name.text] = value.text
    raise LockstepError("does not end with a semicolon, or a quote before it is not closed")
