"""How the job's log lines look: `lockstep.log.format`."""

from __future__ import annotations

import logging
from datetime import datetime, timezone

import orjson

from app.cli.printable import PrintableFormatter, printable
from sinks.engine.log_context import current_pass

TEXT, JSON = "text", "json"


class JsonFormatter(logging.Formatter):
    """An object a line: time (UTC), level, logger, message; flow and pass where there are any, an error's trace."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, with nothing in it that steers a terminal."""
        at = datetime.fromtimestamp(record.created, timezone.utc)
        line: dict[str, object] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (about := current_pass()) is not None:
            line |= {"flow": about.flow, "pass": about.number}
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return printable(orjson.dumps(line).decode())


def log_formatter(name: str) -> logging.Formatter:
    """By the name that `lockstep.log.format` gives."""
    if name == JSON:
        return JsonFormatter()
    return PrintableFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
