"""`lockstep completion`: what a shell reads once to complete commands, options and their values."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer
from typer.completion import get_completion_script

from app.cli.output import print_script

PROGRAM = "lockstep"


class Shell(str, Enum):
    """Those that are known."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell that reads it.")]) -> None:
    """Prints what completes commands, options and their values; to be read by the shell at its start."""
    print_script(
        get_completion_script(prog_name=PROGRAM, complete_var=f"_{PROGRAM.upper()}_COMPLETE", shell=shell.value)
    )
