"""The command line. Exit codes: 0 done or nothing to do, 1 failed, 2 wrong usage or configuration, 3 pending."""

from __future__ import annotations

import sys

import typer

from app.cli import (
    audit_command,
    configs_command,
    credentials_command,
    ledger_command,
    offsets_command,
    plan_command,
    rights_command,
    status_command,
    validate_command,
)
from app.cli.output import FAILED, WRONG_USAGE, complain
from app.cli.run_command import demo, run
from app.settings import ConfigurationError
from streaming.errors import LockstepError

app = typer.Typer(
    name="lockstep",
    help="Keeps what is around the records of a Kafka target in step with its source, beside MirrorMaker 2.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

for command in (
    run,
    validate_command.validate,
    plan_command.plan,
    plan_command.apply,
    status_command.status,
    status_command.topics,
    offsets_command.groups,
    offsets_command.offsets,
    status_command.look,
    status_command.reload,
    audit_command.audit,
    audit_command.pause,
    audit_command.resume,
    rights_command.rights,
    configs_command.configs,
    demo,
):
    app.command()(command)
app.add_typer(credentials_command.app, name="credentials")
app.add_typer(ledger_command.app, name="ledger")


def main() -> None:
    """The console script. What is raised on purpose is one message on stderr, never a stack trace."""
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
