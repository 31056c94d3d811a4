"""The command line. Exit codes: 0 done or nothing to do, 1 failed, 2 wrong usage or configuration, 3 pending."""

from __future__ import annotations

import sys

import typer

from app.cli import configs, credentials, groups, ledger, look, plan, rights, validate
from app.cli.output import FAILED, WRONG_USAGE, complain
from app.cli.run import demo, run
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
    validate.validate,
    plan.plan,
    plan.apply,
    look.status,
    look.topics,
    groups.groups,
    groups.offsets,
    look.look,
    look.reload,
    ledger.audit,
    ledger.pause,
    ledger.resume,
    rights.rights,
    configs.configs,
    demo,
):
    app.command()(command)
app.add_typer(credentials.app, name="credentials")


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
