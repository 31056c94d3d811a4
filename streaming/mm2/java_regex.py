r"""Translates Java's regular expressions, which MM2's filters use, to Python's `re`.

A pattern is read construct by construct in the syntax of `java.util.regex.Pattern` (Java 17) and written in Python's.
So a list copied from an MM2 file chooses the same names. A construct that Python lacks is refused, because a filter
that means something else would write to the wrong topics.

Two differences are known, which no topic's name can show. `.` refuses only `\n`; Java's refuses the other line
terminators too. `\b` knows ASCII only, which Java does since 19.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from streaming.errors import LockstepError

CLASSES = {
    "d": "0-9",
    "w": "a-zA-Z0-9_",
    "s": r" \t\n\x0b\f\r",
    "h": r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
    "v": r"\n\x0b\f\r\x85\u2028\u2029",
}
"""Java's predefined classes, which know ASCII only. The capital letter is the complement."""

POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
    "XDigit": "0-9a-fA-F",
    "Space": r" \t\n\x0b\f\r",
}
CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}

QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
CHARACTER = re.compile(
    r"\\(?:0(?P<octal>[0-3]?[0-7]{1,2})|x(?P<hex>[0-9a-fA-F]{2})|x\{(?P<long>(?:10|0?[0-9a-fA-F])?[0-9a-fA-F]{1,4})\}"
    r"|u(?P<utf16>[0-9a-fA-F]{4})|c(?P<control>[@-_])|(?P<letter>[tnrfae])|(?P<itself>[^a-zA-Z0-9]))",
    re.DOTALL,
)
CLASS = re.compile(r"\\(?:(?P<name>[dDwWsShHvV])|(?P<p>[pP])\{(?P<posix>[a-zA-Z]+)\})")
REFERENCE = re.compile(r"\\(?:(?P<number>[1-9][0-9]*)|k<(?P<name>[a-zA-Z][a-zA-Z0-9]*)>)")
GROUP = re.compile(r"\((?!\?)|\(\?<(?P<name>[a-zA-Z][a-zA-Z0-9]*)>")
LOOK_OR_PLAIN = re.compile(r"\(\?(?:[:=!]|<[=!])")
FLAGS = re.compile(r"\(\?(?P<flags>[is]*(?:-[is]+)?)(?P<end>[:)])")
"""Flags in a pattern. `m` is left out, because a name is one line; for `d`, `u`, `x` and `U` Python has no
counterpart."""
QUANTIFIER = re.compile(r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})\??(?!\+)")
ANCHOR = {r"\b": r"\b", r"\B": r"(?!\b)", r"\A": r"\A", r"\z": r"\Z", r"\Z": r"\Z", "^": "^", "$": "$", ".": "."}


def compile_java(pattern: str) -> re.Pattern[str]:
    """Returns the Java pattern as Python's, for `fullmatch`. Raises LockstepError with the pattern and what is wrong
    with it."""
    try:
        return re.compile(_Translation(pattern).written(), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise _refusal(pattern, str(error)) from error


def _refusal(pattern: str, why: str) -> LockstepError:
    return LockstepError(f"{pattern!r} is no regular expression that Lockstep understands: {why}")


@dataclass
class _Scope:
    """An open group: what to write for its `|` and at its end."""

    alternative: str = "|"
    end: str = ")"


def _character(found: re.Match[str]) -> str:
    """Returns the one character that an escape stands for."""
    kind = found.lastgroup or "itself"
    text = found[kind]
    if kind == "itself":
        return text
    if kind == "letter":
        return CONTROL[text]
    return chr(ord(text) ^ 64) if kind == "control" else chr(int(text, 8 if kind == "octal" else 16))


class _Translation:
    """One pattern, read from its first character to its last."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._groups: list[str] = []
        self._scopes = [_Scope(end="")]

    def written(self) -> str:
        """Returns the whole pattern, in Python's syntax."""
        parts = []
        while self._at < len(self._text):
            parts.append(self._construct())
        if len(self._scopes) > 1:
            self._refuse("a ( has no )")
        return "".join([*parts, self._scopes[0].end])

    def _take(self, rule: re.Pattern[str]) -> re.Match[str] | None:
        found = rule.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return found

    def _ahead(self, *texts: str) -> bool:
        return self._text.startswith(texts, self._at)

    def _construct(self) -> str:
        if found := self._take(QUOTED):
            return re.escape(found[1])
        if found := self._take(CHARACTER):
            return re.escape(_character(found))
        if found := self._take(CLASS):
            return self._class(found)
        if found := self._take(REFERENCE):
            return f"(?P={self._group_of(found)})"
        if found := self._take(QUANTIFIER):
            return found[0]
        if self._ahead("["):
            return self._bracket()
        if self._ahead("(", ")", "|"):
            return self._grouping()
        char = next((text for text in ANCHOR if self._ahead(text)), self._text[self._at])
        if char in "*+?{\\":
            self._refuse("Lockstep does not know this construct (possessive quantifiers are not supported)")
        self._at += len(char)
        return ANCHOR.get(char) or re.escape(char)

    def _group_of(self, found: re.Match[str]) -> str:
        if found["name"]:
            return found["name"]
        digits = found["number"]
        # Java takes as many digits as there are groups for, and the rest literally.
        while len(digits) > 1 and int(digits) > len(self._groups):
            digits = digits[:-1]
        self._at = found.start() + 1 + len(digits)
        return self._groups[int(digits) - 1] if int(digits) <= len(self._groups) else f"_{digits}"

    def _grouping(self) -> str:
        scope = self._scopes[-1]
        if self._ahead("|"):
            self._at += 1
            return scope.alternative
        if self._ahead(")"):
            if len(self._scopes) == 1:
                self._refuse("this ) has no (")
            self._at += 1
            return self._scopes.pop().end
        if found := self._take(FLAGS):
            return self._flags(found, scope)
        if found := self._take(GROUP):
            self._groups.append(found["name"] or f"_{len(self._groups) + 1}")
            self._scopes.append(_Scope())
            return f"(?P<{self._groups[-1]}>"
        found = self._take(LOOK_OR_PLAIN)
        if found is None:
            self._refuse("Lockstep does not know this kind of group")
        return self._look_or_plain(found[0])

    def _look_or_plain(self, opening: str) -> str:
        if "<" not in opening:
            self._scopes.append(_Scope())
            return opening
        # Python looks behind by one width only, so each alternative gets a group of its own.
        either = "|" if opening.endswith("=") else ""
        self._scopes.append(_Scope(f"){either}{opening}", "))"))
        return f"(?:{opening}"

    def _flags(self, found: re.Match[str], scope: _Scope) -> str:
        opening = f"(?{found['flags']}:"
        if found["end"] == ":":
            self._scopes.append(_Scope())
        else:
            # In Java they hold to the end of the group, over its alternatives.
            scope.alternative = f"){scope.alternative}{opening}"
            scope.end = f"){scope.end}"
        return opening

    def _class(self, found: re.Match[str]) -> str:
        if name := found["name"]:
            return f"[{CLASSES[name]}]" if name.islower() else f"[^{CLASSES[name.lower()]}]"
        if found["posix"] not in POSIX:
            self._at = found.start()
            self._refuse(rf"only POSIX's classes \p{{…}} are supported: {', '.join(POSIX)}")
        return f"[{'^' if found['p'] == 'P' else ''}{POSIX[found['posix']]}]"

    def _bracket(self) -> str:
        """Read a character class with its unions and intersections, from its `[` to its `]`. Returns a pattern of one
        character."""
        self._at += 1
        negated = self._ahead("^")
        self._at += negated
        sides = [self._union()]
        while self._ahead("&&"):
            self._at += 2
            # Java has its own rules for an empty side, and for one that goes on after a class in brackets.
            complete = not self._ahead("&", "]")
            sides.append(self._bracket() if self._ahead("[") else self._union())
            if not (complete and self._ahead("&&", "]")):
                self._refuse("after && there must be one class")
        if not self._ahead("]"):
            self._refuse("a [ has no ]")
        self._at += 1
        one = "".join([*(f"(?={side})" for side in sides[:-1]), sides[-1]])
        return rf"(?:(?!{one})[\s\S])" if negated else f"(?:{one})"

    def _union(self) -> str:
        """Read everything up to `]` or `&&`. Returns the characters that match."""
        plain: list[str] = []
        classes: list[str] = []
        while self._at < len(self._text) and (not self._ahead("]", "&&") or not (plain or classes)):
            if self._ahead("["):
                classes.append(self._bracket())
            elif found := self._take(CLASS):
                classes.append(self._class(found))
            else:
                plain.append(self._span())
        if plain:
            classes.append(f"[{''.join(plain)}]")
        return f"(?:{'|'.join(classes)})"

    def _span(self) -> str:
        start = self._single()
        if not self._ahead("-") or self._text[self._at + 1 : self._at + 2] in ("", "]", "["):
            return re.escape(start)
        self._at += 1
        return f"{re.escape(start)}-{re.escape(self._single())}"

    def _single(self) -> str:
        if found := self._take(CHARACTER):
            return _character(found)
        char = self._text[self._at]
        if char == "\\" or self._ahead("&&"):
            self._refuse("a class cannot hold this character")
        self._at += 1
        return char

    def _refuse(self, why: str) -> NoReturn:
        rest = self._text[self._at :]
        raise _refusal(self._text, f"{why}, at {rest!r}" if rest else why)
