"""Texts of clusters, files and plug-ins, fit for a terminal: what would steer it is shown escaped."""

from __future__ import annotations

import logging
import re

STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""C0 and C1 control characters but tab and line feed, what has no width or turns the writing direction, and halves of
surrogate pairs, which are no text."""


def printable(text: str) -> str:
    """Each such character as JSON would escape it, so that a document of JSON stays one."""
    return STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def one_line(text: str) -> str:
    """The same in one line: tabs and line feeds are escaped as well."""
    return printable(text).replace("\t", "\\t").replace("\n", "\\n")


class PrintableFormatter(logging.Formatter):
    """A log is read on terminals, and holds what clusters said."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, with nothing in it that steers."""
        return printable(super().format(record))
