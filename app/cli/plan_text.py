"""Prints a plan and its outcomes for people."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from app.cli.output import print_line, print_table
from sinks.kafka.ports.cluster import TopicSpec
from sinks.model.changes import Change, Kind, Outcome
from sinks.model.plan import Plan, Refusal
from streaming.message_words import first_names, number_of

SYMBOLS = {"create": "+", "update": "~", "delete": "-"}

MOST_NAMED_IN_TEXT = 5
"""Items that a line of refusals names. It counts the others."""


def print_plan(plan: Plan, paused: Collection[Kind] = ()) -> None:
    """Prints the changes as a table, then what the plan leaves out and why. `paused`: kinds that were not compared."""
    print_line(f"{plan.flow.name}  {plan.digest}")
    rows = [_row(change) for change in plan.changes]
    if rows:
        print_table("", ("", "kind", "key", "before", "after"), rows)
    for line in refusal_lines(plan.refused):
        print_line(line)
    for reason, kinds in by_reason((error.kind, error.reason) for error in plan.errors).items():
        print_line(f"not planned: {kinds}: {reason}")
    for reason, count in sorted(plan.skipped.items()):
        print_line(f"not copied: {count} {reason}")
    for note in plan.notes:
        print_line(f"note: {note}")
    for line in paused_lines(paused):
        print_line(line)
    print_line(_verdict(plan, paused))


def _verdict(plan: Plan, paused: Collection[Kind]) -> str:
    if plan.changes:
        return number_of(len(plan.changes), "change")
    if plan.refused or plan.errors or paused:
        return "nothing else to do"
    return "nothing to do"


def paused_lines(paused: Collection[Kind]) -> list[str]:
    """Returns a line for each paused kind."""
    return [
        f"paused: {kind} is not compared, so its drift is unknown; `lockstep resume {kind}` starts it again"
        for kind in sorted(paused)
    ]


def refusal_lines(refused: Iterable[Refusal]) -> Iterator[str]:
    """Yields a line for each reason, with the changes refused for it."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for one in refused:
        alike.setdefault((one.reason, one.op.value, one.kind.value), []).append(one.label)
    for (reason, op, kind), labels in alike.items():
        yield f"refused: {op} {kind} {first_names(labels, MOST_NAMED_IN_TEXT)}: {reason}"


def by_reason(found: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """Returns, by reason, the names that share it: each once, separated by commas."""
    names: dict[str, list[str]] = {}
    for name, reason in found:
        names.setdefault(reason, []).append(name)
    return {reason: ", ".join(dict.fromkeys(alike)) for reason, alike in names.items()}


def _row(change: Change) -> tuple[str, ...]:
    return SYMBOLS[change.op.value], change.kind.value, change.label, _side(change.before), _side(change.after)


def _side(value: object) -> str:
    if isinstance(value, TopicSpec):
        return number_of(value.partitions, "partition") + "".join(f", {name}={text}" for name, text in value.configs)
    return "-" if value is None else str(value)


def print_outcomes(plan: Plan, outcomes: Sequence[Outcome], paused: Collection[Kind] = ()) -> None:
    """Prints how many changes were applied, and each failed one."""
    failed = [outcome for outcome in outcomes if outcome.error]
    print_line(f"{plan.flow.name}: {len(outcomes) - len(failed)} applied, {len(failed)} failed")
    for outcome in failed:
        print_line(f"failed: {outcome.change.op} {outcome.change.kind} {outcome.change.label}: {outcome.error}")
    for line in (*refusal_lines(plan.refused), *paused_lines(paused)):
        print_line(line)
