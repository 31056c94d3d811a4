"""The program `lockstep`. It imports only the command that is called."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer
from typer.core import TyperGroup
from typer.main import get_command

from sinks.printable import PrintableFormatter
from streaming.message_words import nearest


@dataclass(frozen=True)
class LazyCommand:
    """The module of a command in `app.cli`, and its summary in the list of commands.

    `asks`: it connects to a cluster, whatever its options. `name`: of its function, or of a Typer with subcommands;
    None: the command's own name.
    """

    module: str
    summary: str
    asks: bool = False
    name: str | None = None

    def load(self, called: str) -> Any:
        """Imports the command and returns it as a Click command."""
        found = getattr(import_module(f"app.cli.{self.module}"), self.name or called)
        group = typer.Typer(add_completion=False, rich_markup_mode=None)
        group.callback()(lambda: None)
        if isinstance(found, typer.Typer):
            group.add_typer(found, name=called)
        else:
            group.command(called)(found)
        command = cast("TyperGroup", get_command(group)).commands[called]
        complete_help(command, called)
        return command


COMMANDS: Final = {
    "run": LazyCommand("run_command", "Runs the job until SIGTERM.", asks=True),
    "validate": LazyCommand("validate_command", "Checks the file, and that the clusters answer."),
    "plan": LazyCommand("plan_command", "Shows what `apply` would do now; writes nothing.", asks=True),
    "apply": LazyCommand("plan_command", "Writes what `plan` shows.", asks=True),
    "adopt": LazyCommand("adopt_command", "Takes ownership of what is the same on both clusters.", asks=True),
    "status": LazyCommand("status_command", "Shows the state of each flow."),
    "topics": LazyCommand("status_command", "Lists the topics that are replicated now.", asks=True),
    "groups": LazyCommand("offsets_command", "Lists the consumer groups that are replicated now.", asks=True),
    "offsets": LazyCommand(
        "offsets_command", "Shows where each group would continue at a failover.", asks=True, name="app"
    ),
    "verify": LazyCommand("verify_command", "Compares the records of source and target."),
    "look": LazyCommand("look_command", "Asks the running job for a pass now."),
    "reload": LazyCommand("look_command", "Lets the running job read its file again."),
    "preflight": LazyCommand("preflight_command", "Could a flow fail over now, and what would be lost?", asks=True),
    "fence": LazyCommand("failover_commands", "Keeps all producers from writing the topics on the source.", asks=True),
    "unfence": LazyCommand("failover_commands", "Removes the fence.", asks=True),
    "cutover": LazyCommand("failover_commands", "Runs a planned failover from fence to promotion.", asks=True),
    "promote": LazyCommand("failover_commands", "Ends a flow whose records are all on the target.", asks=True),
    "failover": LazyCommand("failover_commands", "Ends a flow whose source is gone; shows the loss.", asks=True),
    "failback": LazyCommand("failover_commands", "Leads back once the source is there again.", asks=True),
    "drill": LazyCommand("drill_command", "Fails over a test topic: predicted against measured.", asks=True),
    "audit": LazyCommand("audit_command", "Shows who changed what, when, and with which outcome.", asks=True),
    "pause": LazyCommand("pause_command", "Stops one kind of a flow, durably.", asks=True),
    "resume": LazyCommand("pause_command", "Starts a paused kind again.", asks=True),
    "rights": LazyCommand("rights_command", "Prints the commands that grant what the job needs."),
    "configs": LazyCommand("configs_command", "Shows and alters configs of brokers, topics and Lockstep."),
    "demo": LazyCommand("demo_command", "Runs two local clusters, MM2, the job and some changes."),
    "ledger": LazyCommand("ledger_command", "Signs a flow's ledger, acknowledges a loss, or starts over.", name="app"),
    "credentials": LazyCommand("credentials_command", "Manages the encrypted passwords of SCRAM users.", name="app"),
    "completion": LazyCommand("lazy_commands", "Prints the completion script of a shell."),
}
"""The commands by name, in the order of the list."""

# What every page of help has: two examples, options that all commands share, and placeholders in plain words.


FILE: Final = "--config mm2.properties"

EXAMPLES: Final[Mapping[str, tuple[str, str]]] = {
    "run": (f"run {FILE}", f"run {FILE} --flow 'a->b' --once"),
    "validate": (f"validate {FILE}", f"validate {FILE} --rights --strict"),
    "plan": (f"plan {FILE} --out plan.json", f"plan {FILE} --kind acl -o json"),
    "apply": (f"apply {FILE}", f"apply {FILE} --plan plan.json --yes"),
    "adopt": (f"adopt acl {FILE} --dry-run", f"adopt topic {FILE} --with-records --yes"),
    "status": (f"status {FILE} --watch", f"status {FILE} --flow 'a->b' -o json"),
    "topics": (f"topics {FILE}", f"topics {FILE} --flow 'a->b' -o json"),
    "groups": (f"groups {FILE}", f"groups {FILE} -o json"),
    "offsets": (f"offsets {FILE} --group payments", f"offsets {FILE} --reverse --execute"),
    "offsets translate": (
        f"offsets translate --topic orders --partition 0 --offset 4711 {FILE}",
        f"offsets translate --groups 'billing-.*' {FILE} -o json",
    ),
    "verify": (f"verify {FILE} --since 1h", f"verify orders {FILE} --full --export differing"),
    "look": (f"look {FILE} --wait 10", f"look orders {FILE} --wait 10"),
    "reload": (f"reload {FILE}", f"reload {FILE} -o json"),
    "audit": (f"audit {FILE} --since 1h", f"audit {FILE} --kind acl --resource orders"),
    "pause": (f"pause acl {FILE}", f"pause topic-config {FILE} --flow 'a->b'"),
    "resume": (f"resume acl {FILE}", f"resume topic-config {FILE} --flow 'a->b'"),
    "preflight": (f"preflight {FILE}", f"preflight {FILE} --flow 'a->b' --report preflight.md"),
    "fence": (f"fence {FILE} --dry-run", f"fence orders payments {FILE} --why 'move to b'"),
    "unfence": (f"unfence {FILE}", f"unfence {FILE} --flow 'a->b' --dry-run"),
    "cutover": (f"cutover {FILE} --dry-run", f"cutover {FILE} --flow 'a->b' --verify --yes --why 'move to b'"),
    "promote": (f"promote {FILE} --dry-run", f"promote {FILE} --flow 'a->b'"),
    "failover": (f"failover {FILE} --dry-run", f"failover {FILE} --flow 'a->b' --yes 1200"),
    "failback": (f"failback {FILE} --export lost", f"failback {FILE} --out back.properties"),
    "drill": (f"drill {FILE} --flow 'a->b'", f"drill {FILE} --flow 'a->b' --records 5000 -o json"),
    "rights": (
        f"rights --principal User:lockstep {FILE}",
        f"rights --principal User:lockstep {FILE} -o json",
    ),
    "configs": (
        f"configs --cluster a --describe --topic orders {FILE}",
        "configs --bootstrap-server h:9092 --alter --broker-defaults --add-config num.io.threads=16 --canary 1",
    ),
    "demo": ("demo", "demo --keep"),
    "ledger": (f"ledger sign {FILE}", f"ledger reset {FILE} --flow 'a->b'"),
    "ledger sign": (f"ledger sign {FILE}", f"ledger sign {FILE} --flow 'a->b' --yes"),
    "ledger acknowledge": (f"ledger acknowledge {FILE}", f"ledger acknowledge orders {FILE} --flow 'a->b'"),
    "ledger reset": (f"ledger reset {FILE}", f"ledger reset {FILE} --flow 'a->b' --yes"),
    "credentials": (f"credentials set alice --both {FILE}", f"credentials verify {FILE}"),
    "credentials set": (
        f"credentials set alice {FILE}",
        f"credentials set alice --both --password-file p.txt {FILE}",
    ),
    "credentials rotate": (
        f"credentials rotate alice {FILE}",
        f"credentials rotate alice --password-file - {FILE}",
    ),
    "credentials list": (f"credentials list {FILE}", f"credentials list {FILE} -o json"),
    "credentials verify": (f"credentials verify {FILE}", f"credentials verify alice bob {FILE}"),
    "credentials remove": (f"credentials remove alice {FILE}", f"credentials remove alice bob {FILE}"),
    "credentials import": (f"credentials import users.txt {FILE}", f"credentials import - {FILE}"),
    "completion": ("completion bash > ~/.lockstep-completion", "completion zsh"),
}
"""Two examples by command, both without `lockstep`."""

PLACEHOLDERS: Final[Mapping[str, str]] = {
    "--accept": "TOPIC",
    "--accept-group": "GROUP",
    "--accept-loss": "RECORDS|unknown",
    "--add-config": "KEY=VALUE",
    "--add-config-file": "FILE",
    "--batch": "TOPICS",
    "--bootstrap-server": "HOST:PORT",
    "--broker": "ID",
    "--canary": "ID",
    "--canary-time": "SECONDS",
    "--cluster": "ALIAS",
    "--command-config": "FILE",
    "--config": "FILE",
    "--delete-config": "KEY",
    "--discard": "RECORDS",
    "--entity-name": "NAME",
    "--entity-type": "brokers|topics|lockstep",
    "--export": "FOLDER",
    "--flow": "A->B",
    "--iterations": "NUMBER",
    "--last": "OFFSETS",
    "--level": "counts|digests|records",
    "--offset": "NUMBER",
    "--mechanism": "SCRAM-SHA-256|SCRAM-SHA-512",
    "--out": "FILE",
    "--output": "text|json",
    "--partition": "NUMBER",
    "--password-file": "FILE",
    "--plan": "FILE",
    "--principal": "User:NAME",
    "--records": "NUMBER",
    "--report": "FILE",
    "--since": "TIME",
    "--wait": "SECONDS",
    "--within": "SECONDS",
    "--yes": "RECORDS",
    "--why": "REASON",
}
"""Placeholders for an option's value. Other options show their name in capitals."""


def examples(*commands: str) -> str:
    """Returns the end of a help page. `commands`: examples without `lockstep`."""
    return "\n".join(["\b", "Examples:", *(f"  lockstep {one}" for one in commands)])


def complete_help(command: Any, path: str) -> None:
    """Completes the help of a Click command and its subcommands. `path`: its name, without `lockstep`."""
    # The JVM starts before these are imported.
    from app.cli.shared_options import add_shared

    add_shared(command, path)
    for one in command.params:
        if getattr(one, "metavar", "") is None and not getattr(one, "is_flag", False):
            one.metavar = _placeholder(one)
            is_choice = getattr(getattr(one, "type_descriptor", None), "is_choice", False)
            if one.param_type_name == "argument" and not is_choice:
                # Later versions of Typer write the name of Python's type behind the argument's.
                one.display_type_rich = lambda ctx: ""
    if path in EXAMPLES:
        command.epilog = examples(*EXAMPLES[path])
    for name, below in getattr(command, "commands", {}).items():
        complete_help(below, f"{path} {name}")


def _placeholder(param: Any) -> str:
    name = max(param.opts, key=len)
    return PLACEHOLDERS.get(name, name.removeprefix("--").upper())


HELP: Final = "help"
HELP_FLAGS: Final = frozenset({"-h", "--help"})


@dataclass(frozen=True)
class Completion:
    """A word that a shell may complete. Replaces Click's `CompletionItem`, whose module differs between versions."""

    value: str
    help: str
    type: str = "plain"


class LazyCommands(TyperGroup):
    """A command group that lists its commands without importing them.

    Click's types have no names here: Typer takes them from Click or, in later versions, from its own copy.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Imports the command; None if there is no such command."""
        command = COMMANDS.get(cmd_name)
        return command.load(cmd_name) if command is not None else None

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Turns `help COMMAND` into `COMMAND --help`, and `help help` into the list of commands."""
        if args[:1] == [HELP]:
            words = args[1:] if args[1:2] != [HELP] else args[2:]
            self._check_path(ctx, words)
            args = [*words, "--help"]
        return super().parse_args(ctx, args)

    def _check_path(self, ctx: Any, words: Sequence[str]) -> None:
        """Fails for a word that is not a subcommand of the word before it. `resolve_command` checks the first word."""
        if not words or words[0] not in COMMANDS:
            return
        command = self.get_command(ctx, words[0])
        for word in words[1:]:
            if word.startswith("-"):
                return
            command = getattr(command, "commands", {}).get(word)
            if command is None:
                ctx.fail(f"Got unexpected extra argument ({word})")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Fails for an unknown command, with the nearest name or with all names."""
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            near = nearest(args[0], (*COMMANDS, HELP))
            hint = f"nearest: {near}" if near else f"one of {', '.join(COMMANDS)}"
            ctx.fail(f"No such command '{args[0]}'; {hint}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Completes names of commands, with summaries. Click completes options."""
        found = [Completion(name, row.summary) for name, row in COMMANDS.items() if name.startswith(incomplete)]
        return [*found] if found and incomplete[:1] != "-" else super().shell_complete(ctx, incomplete)

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *others: Any, **extra: Any) -> Any:
        """Runs a command, prints its error, and ends the process with its exit code."""
        words = list(sys.argv[1:] if args is None else args)
        if any(name.endswith("_COMPLETE") for name in os.environ):
            from typer.completion import completion_init

            completion_init()
        command = COMMANDS.get(words[0]) if words else None
        if command is not None and command.asks and not HELP_FLAGS.intersection(words):
            # The JVM is up by the time that Python has imported what the command needs.
            from app.local.java_gateway import begin_jvm

            begin_jvm()
        from app.cli.failures import exit_code_of

        run = partial(super().main, words, prog_name, *others, **{**extra, "standalone_mode": False})
        sys.exit(exit_code_of(run, words))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            rows = [(name, command.summary) for name, command in COMMANDS.items()]
            formatter.write_dl([*rows, (HELP, "Shows a command's help page.")])


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

        from app.cli.output import print_line

        print_line(f"lockstep {version('lockstep-kafka')}")
        raise typer.Exit


VersionFlag = Annotated[
    bool, typer.Option("--version", help="Print the version, and end.", is_eager=True, callback=_print_version)
]


@app.callback(epilog=examples("validate --config mm2.properties", "help plan"))
def lockstep(version: VersionFlag = False) -> None:
    """Keeps what is around the records of a Kafka target in step with its source, beside MirrorMaker 2."""


PY4J: Final = "py4j"


def run_command_line() -> None:
    """Runs the command that this process was started with, and ends the process with its exit code."""
    # py4j logs stack traces of what it raises, by the root logger too, above all of a Ctrl-C. Callers report the end of
    # the JVM.
    logging.getLogger(PY4J).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: PY4J not in Path(record.pathname).parts)
    if logging.lastResort is not None:
        # What commands log, warnings above all.
        logging.lastResort.setFormatter(PrintableFormatter())
    app()


class Shell(str, Enum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell that reads it.")]) -> None:
    """Prints the script that completes commands, options and their values. The shell reads it at its start."""
    from typer.completion import get_completion_script

    from app.cli.output import print_script

    print_script(get_completion_script(prog_name="lockstep", complete_var="_LOCKSTEP_COMPLETE", shell=shell.value))
