"""Makes texts of clusters, files and plug-ins safe for a terminal: control characters and invisible ones are
escaped."""

from __future__ import annotations

import logging
import re

UNPRINTABLE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""The characters to escape. Unicode's categories Cc, Cf, Cs, Zl and Zp but tab and line feed: controls, characters
without width or that turn the writing direction, line ends, halves of surrogate pairs. And letters that show nothing,
as fillers do."""

STEERING = re.compile(f"[{UNPRINTABLE}]")


def printable(text: str) -> str:
    """Returns the text with each such character as JSON would escape it, so that a document of JSON stays one. Keeps
    line feeds."""
    return STEERING.sub(lambda match: _escaped(ord(match[0])), text)


def _escaped(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def one_line(text: str) -> str:
    """Returns the text in one line: tabs and line feeds are escaped as well, so that no name prints a line of its
    own."""
    return printable(text).replace("\t", "\\t").replace("\n", "\\n")


class PrintableFormatter(logging.Formatter):
    """Formats log records for terminals, whatever clusters said in them: a line for each record, and its stack
    trace."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """Returns the message as one line."""
        return one_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """Returns the line and the stack trace, if any, escaped."""
        return printable(super().format(record))
