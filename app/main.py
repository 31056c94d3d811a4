"""The command line. `app.cli.output` has the exit codes, `app.cli.failures` says what ends with which."""

from __future__ import annotations

import logging
import signal
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from app.cli.help_pages import examples
from app.cli.lazy_commands import LazyCommands
from app.cli.output import print_line
from sinks.printable import PrintableFormatter

PY4J = "py4j"

app = typer.Typer(
    name="lockstep",
    cls=LazyCommands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print_line(f"lockstep {version('lockstep-kafka')}")
        raise typer.Exit


VersionFlag = Annotated[
    bool, typer.Option("--version", help="Print the version, and end.", is_eager=True, callback=_print_version)
]


@app.callback(epilog=examples("validate --config mm2.properties", "help plan"))
def lockstep(version: VersionFlag = False) -> None:
    """Keeps what is around the records of a Kafka target in step with its source, beside MirrorMaker 2."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return PY4J not in Path(record.pathname).parts


def main() -> None:
    """The console script. What is raised on purpose is one message on stderr, never a stack trace."""
    # SIGTERM ends a command as Ctrl-C does: what it made for itself is taken away. The job has handlers of its own.
    signal.signal(signal.SIGTERM, _interrupt)
    # py4j logs stack traces of what it raises, by the root logger as well, of a Ctrl-C above all. Whoever asked the JVM
    # says that it has ended.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)
    if logging.lastResort is not None:
        # What commands log, warnings above all.
        logging.lastResort.setFormatter(PrintableFormatter())
    app()


if __name__ == "__main__":
    main()
