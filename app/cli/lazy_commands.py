"""Commands that are imported when they are called, so that none waits for the imports of the others."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, cast

import typer
from typer.core import TyperGroup
from typer.main import get_command

from app.cli.command_end import running_command


@dataclass(frozen=True)
class LazyCommand:
    """Where a command is, in a module of `app.cli`, and what the list of commands says of it.

    `name`: of a function, or of a Typer with commands of its own.
    """

    module: str
    name: str
    summary: str

    def load(self, called: str) -> Any:
        """Imports it, and returns it as one of Click's commands."""
        found = getattr(import_module(f"app.cli.{self.module}"), self.name)
        group = typer.Typer(add_completion=False, rich_markup_mode=None)
        group.callback()(lambda: None)
        if isinstance(found, typer.Typer):
            group.add_typer(found, name=called)
        else:
            group.command(called)(found)
        return cast("TyperGroup", get_command(group)).commands[called]


COMMANDS: Final = {
    "run": LazyCommand("run_command", "run", "The streaming query, until SIGTERM."),
    "validate": LazyCommand("validate_command", "validate", "Whether the file is right and the clusters answer."),
    "plan": LazyCommand("plan_command", "plan", "What `apply` would do now; writes nothing."),
    "apply": LazyCommand("plan_command", "apply", "Writes what `plan` shows."),
    "status": LazyCommand("status_command", "status", "How each flow stands."),
    "topics": LazyCommand("status_command", "topics", "The topics that are replicated now."),
    "groups": LazyCommand("offsets_command", "groups", "The consumer groups that are replicated now."),
    "offsets": LazyCommand("offsets_command", "offsets", "Where each group would continue at a failover."),
    "look": LazyCommand("status_command", "look", "Asks the running job to look now."),
    "reload": LazyCommand("status_command", "reload", "Lets the running job read its file again."),
    "audit": LazyCommand("audit_command", "audit", "Who changed what, when, and with which outcome."),
    "pause": LazyCommand("audit_command", "pause", "Stops one kind of a flow, durably."),
    "resume": LazyCommand("audit_command", "resume", "Starts a paused kind again."),
    "rights": LazyCommand("rights_command", "rights", "Prints the commands that grant what the job needs."),
    "configs": LazyCommand("configs_command", "configs", "Configs of brokers and topics, and Lockstep's own."),
    "demo": LazyCommand("run_command", "demo", "Two local clusters, MM2, and a source that changes."),
    "ledger": LazyCommand("ledger_command", "app", "What a flow remembers: sign it, or start over."),
    "credentials": LazyCommand("credentials_command", "app", "The encrypted store of SCRAM users' passwords."),
}
"""By name, in the order of the list."""


class LazyCommands(TyperGroup):
    """A group whose list of commands imports none of them.

    Click's own types are not named: Typer takes them from Click or, in later versions, from a copy of its own.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Imports it; None where there is none of that name."""
        command = COMMANDS.get(cmd_name)
        return command.load(cmd_name) if command is not None else None

    def invoke(self, ctx: Any) -> Any:
        """Runs the command, and closes what was made for it."""
        with running_command():
            return super().invoke(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the list into the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])
