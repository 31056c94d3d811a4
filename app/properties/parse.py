"""Parses Java's properties format with line numbers, as `java.util.Properties.load` does; bytes are Latin-1."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import IO, cast

import javaproperties

from app.properties.mistakes import SANE_KEY, Findings, PropertyLine, UnreadableFile

UTF8_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
BROKEN_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u(?![0-9A-Fa-f]{4})")
KEY_END = re.compile(r"[=:\s]")
COMMENT = re.compile(r"[ \t\f]*[#!]")
CONTINUED = re.compile(r"(?<!\\)(?:\\\\)*\\[\r\n]+\Z")
ONLY_CONTINUED = re.compile(r"[ \t\f]*\\[\r\n]+")


class _Lines:
    """The lines of a text. Counts the lines that the parser has taken.

    For `Properties.load` a line with only a continuing backslash does not begin an entry: a `#` in the next line begins
    a comment. javaproperties would take it for a key, so it gets an empty line instead.
    """

    def __init__(self, text: str) -> None:
        self._lines = io.StringIO(text, newline="").readlines()
        self._continues = False
        self.taken = 0

    def readline(self) -> str:
        if self.taken == len(self._lines):
            return ""
        line = self._lines[self.taken]
        self.taken += 1
        if not self._continues and ONLY_CONTINUED.fullmatch(line):
            return "\n"
        is_comment = not self._continues and COMMENT.match(line)
        self._continues = not is_comment and bool(CONTINUED.search(line))
        return line

    def between(self, first: int, last: int) -> list[tuple[int, str]]:
        """Returns the lines first to last, counted from 1, with their numbers."""
        return list(enumerate(self._lines[first - 1 : last], first))


def read(path: Path, findings: Findings) -> dict[str, PropertyLine]:
    """Returns the entries of a file. A binary file is a mistake and has none. Raises UnreadableFile."""
    try:
        data = path.read_bytes()
    except OSError as error:
        findings.mistake(None, f"cannot be read: {error.strerror or error}; name a properties file with --config")
        raise UnreadableFile(findings.mistakes) from error
    if data.startswith(UTF16_MARKS) or b"\0" in data:
        findings.mistake(None, "is not a properties file: it is binary, or UTF-16; save it as ASCII or ISO 8859-1")
        return {}
    if data.startswith(UTF8_MARK):
        findings.warn(
            1, "the file begins with a byte order mark, which MM2 takes for a part of the first key: remove it"
        )
    return parse(data.removeprefix(UTF8_MARK), findings)


def parse(data: bytes, findings: Findings) -> dict[str, PropertyLine]:
    """Returns entries by key. The last entry of a key wins, as in Java. Broken lines are mistakes, and are left out."""
    lines = _Lines(data.decode("iso-8859-1"))
    entries: dict[str, PropertyLine] = {}
    elements = javaproperties.parse(cast(IO[str], lines))
    while True:
        first = lines.taken + 1
        try:
            element = next(elements, None)
        except javaproperties.InvalidUEscapeError:
            _broken(lines.between(first, lines.taken), findings)
            elements = javaproperties.parse(cast(IO[str], lines))
            continue
        if element is None:
            return entries
        if isinstance(element, javaproperties.KeyValue):
            entry = PropertyLine(element.key, element.value, first, element.value.strip())
            if earlier := entries.get(entry.key):
                findings.warn(entry, f"is in line {earlier.line} already; this one, the last, holds")
            entries[entry.key] = entry
            if not element.source.isascii():
                findings.warn(
                    entry,
                    r"has characters outside ASCII, which Java and Lockstep read as ISO 8859-1: write them as \uXXXX",
                )


def _broken(lines: list[tuple[int, str]], findings: Findings) -> None:
    key = KEY_END.split(lines[0][1].strip(), maxsplit=1)[0]
    line = next((number for number, text in lines if BROKEN_ESCAPE.search(text)), lines[0][0])
    findings.mistake(
        line,
        r"a backslash and u must be followed by four hexadecimal digits; a backslash itself is written \\",
        key if SANE_KEY.fullmatch(key) else "",
    )
