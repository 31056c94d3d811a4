"""The command line. Exit codes: 0 done or nothing to do, 1 failed, 2 wrong usage or configuration, 3 pending."""

from __future__ import annotations

import logging
import sys

import typer

from app.cli.lazy_commands import LazyCommands
from app.cli.output import FAILED, WRONG_USAGE, complain
from app.cli.printable import PrintableFormatter
from app.properties.mistakes import ConfigurationError
from streaming.errors import LockstepError

app = typer.Typer(
    name="lockstep",
    cls=LazyCommands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def lockstep() -> None:
    """Keeps what is around the records of a Kafka target in step with its source, beside MirrorMaker 2."""


def main() -> None:
    """The console script. What is raised on purpose is one message on stderr, never a stack trace."""
    if logging.lastResort is not None:
        # What commands log, warnings above all.
        logging.lastResort.setFormatter(PrintableFormatter())
    try:
        app()
    except ConfigurationError as error:
        complain(str(error))
        sys.exit(WRONG_USAGE)
    except LockstepError as error:
        complain(str(error))
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
