"""The options that the commands of a failover share."""

from __future__ import annotations

from typing import Annotated

import typer

from app.cli.time_options import seconds
from sinks.failover.unplanned import ANY_LOSS, TYPED_UNKNOWN

OneFlowOption = Annotated[
    list[str] | None, typer.Option("--flow", help="The one flow that is meant, where the file enables several.")
]
WhyOption = Annotated[str, typer.Option("--why", help="Why, for the ledger and the audit.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")]
TakeOverOption = Annotated[
    bool, typer.Option("--take-over", help="Go on although another process claims the flow: it must be gone.")
]
WithoutFenceOption = Annotated[
    bool,
    typer.Option("--without-fence", help="Set no DENY: producers were stopped otherwise; end offsets prove it."),
]
WithinOption = Annotated[
    float, typer.Option("--within", parser=seconds, help="Seconds in which all records must be on the target.")
]
AcceptOption = Annotated[
    list[str] | None, typer.Option("--accept", help="A topic whose records may be missing; may be repeated.")
]
AcceptGroupOption = Annotated[
    list[str] | None,
    typer.Option("--accept-group", help="A group that need not get its last offsets; may be repeated."),
]
VerifyOption = Annotated[
    bool, typer.Option("--verify", help="Compare the records of both sides before clients may move, as `verify` does.")
]
AgreeOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
AbortOption = Annotated[
    bool,
    typer.Option(
        "--abort-transactions",
        help="Abort the transactions that are open on the source behind the fence: what they wrote is lost to readers.",
    ),
]


def typed_loss(text: str) -> str:
    """Raises BadParameter for what no prediction is."""
    if text != TYPED_UNKNOWN and not (text.isascii() and text.isdigit()):
        raise typer.BadParameter(f"{text}: a number of records, or {TYPED_UNKNOWN}")
    return text


AcceptLossOption = Annotated[
    str | None,
    typer.Option(
        "--accept-loss",
        parser=typed_loss,
        help="Records that may be lost, where the source still answers; `unknown`: any number.",
    ),
]


def accepted_loss(typed: str | None) -> float | None:
    """What `typed_loss` let through, as a number of records."""
    return None if typed is None else ANY_LOSS if typed == TYPED_UNKNOWN else int(typed)


YesOption = Annotated[
    str | None,
    typer.Option(
        "--yes",
        parser=typed_loss,
        help="The predicted loss as `--dry-run` shows it, typed back: this number, or `unknown`.",
    ),
]


def at_least_one(number: int | None) -> int | None:
    """Raises BadParameter for any other."""
    if number is not None and number < 1:
        raise typer.BadParameter(f"{number}: 1 or more")
    return number


BatchOption = Annotated[
    int | None,
    typer.Option(
        "--batch", help="Fence and drain so many topics at a time. Default: all at once.", callback=at_least_one
    ),
]
