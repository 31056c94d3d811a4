"""The tables that are made from the code, within pages that are written by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from app.cli.lazy_commands import COMMANDS
from app.http.openapi import API_BASE, OPERATIONS, Operation
from app.local.jars import PROJECT
from app.overrides.overridable import ADDRESS_ENDINGS, CLASS_ENDINGS, CLOSED, REFERENCES, closed
from app.properties.keys import OPENABLE, TABLE
from sinks.ledger.failover_record import TRANSITIONS, Command, State, commands_from

SHARED = frozenset(
    {"--config", "--flow", "--output", "--timeout", "--strict", "--help", "--why", "--dry-run", "--take-over", "--yes"}
)
"""Options of many commands: the page explains them once."""

LED_THROUGH = (Command.FENCE, Command.DRAIN, Command.PROMOTE)
"""By `cutover`."""

BESIDES: Mapping[str, tuple[str, ...]] = {"addresses": ADDRESS_ENDINGS, "classes": CLASS_ENDINGS}
"""How keys of plug-ins end that a word opens as well."""


def commands() -> str:
    """Each command with its arguments and options, and what it does, as a table."""
    rows = [row for name, command in COMMANDS.items() for row in _of_command(name, command.load(name))]
    return "\n".join(["| command | does | options |", "|---|---|---|", *rows])


def _of_command(name: str, command: Any) -> Iterator[str]:
    """One row, or one for each command below."""
    below = getattr(command, "commands", {})
    for word, one in below.items():
        yield from _of_command(f"{name} {word}", one)
    if not below or any(_option(one) for one in command.params):
        arguments = [_argument(one) for one in command.params if one.param_type_name == "argument"]
        options = [_option(one) for one in command.params if one.param_type_name == "option" and not one.hidden]
        does = " ".join(command.help.partition("\n\n")[0].split())
        usage = " ".join([name, *arguments])
        yield f"| `{usage}` | {does} | {', '.join(filter(None, options))} |".replace("  ", " ")


def _argument(parameter: Any) -> str:
    word = (parameter.metavar or parameter.name or "").upper().strip("{}[].").replace("|", "/")
    shown = f"{word}…" if parameter.nargs == -1 else word
    return shown if parameter.required else f"[{shown}]"


def _option(parameter: Any) -> str:
    """Its long name; nothing for one that nearly all commands have."""
    longest = max(parameter.opts, key=len)
    return "" if longest in SHARED else f"`{longest}`"


def operations() -> str:
    """What each path answers, as a table."""
    return "\n".join(["| path | answers | filter |", "|---|---|---|", *map(_operation, OPERATIONS)])


def _operation(operation: Operation) -> str:
    name = f"`{operation.filter[0]}`" if operation.filter else "`search`" if operation.paged else ""
    return f"| `{API_BASE}{operation.path}` | {operation.summary} | {name} |".replace("  ", " ")


def diagram() -> str:
    """The arrows that lead to another state, as Mermaid; GitHub draws it."""
    arrows: dict[tuple[State, State], str] = {}
    for (state, command), row in TRANSITIONS.items():
        arrows[state, row.during] = arrows[row.during, row.then] = command.typed
    order = list(State)
    lines = [
        f"    {here} --> {then}: {word}"
        for (here, then), word in sorted(arrows.items(), key=lambda arrow: [order.index(one) for one in arrow[0]])
        if here is not then
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> MIRRORING", *lines, "```"])


def steps() -> str:
    """What each command does, as a table."""
    rows = []
    for command in Command:
        if command is Command.DRAIN:
            rows.append(_cutover())
            continue
        found = {state: row for (state, one), row in TRANSITIONS.items() if one is command}
        then = {str(row.then) if row.then is not state else "stays" for state, row in found.items()}
        does = "; ".join(map(str, next(iter(found.values())).steps))
        sides = [", ".join(sorted(map(str, found), key=[str(one) for one in State].index)), " or ".join(sorted(then))]
        rows.append(f"| `{command.typed}` | {sides[0]} | {does} | {sides[1]} |")
    return "\n".join(["| command | from | does | then it is |", "|---|---|---|---|", *rows])


def _cutover() -> str:
    """The command that goes through the steps of three, from wherever the flow is."""
    does = "; ".join(map(str, TRANSITIONS[State.FENCED, Command.DRAIN].steps))
    froms = [str(state) for state in State if set(LED_THROUGH) & set(commands_from(state))]
    said = f"`fence`, if nothing is fenced. Then it {does}. Then `promote`"
    return f"| `cutover` | {', '.join(froms)} | {said} | {State.PROMOTED} |"


def opened() -> str:
    """The words, and the keys that each opens, as a table."""
    return "\n".join(["| word | opens |", "|---|---|", *(f"| `{word}` | {_keys(word)} |" for word in OPENABLE)])


def _keys(word: str) -> str:
    if word == REFERENCES:
        return "values such as `${file:PATH:KEY}`, of any key that may be overridden"
    keys = [name for name in TABLE if CLOSED[word](name) and closed(name, False, OPENABLE) is None]
    of_plugins = f"; keys of plug-ins that end in {_listed(BESIDES[word])}" if word in BESIDES else ""
    return _listed(keys) + of_plugins


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


MADE: Mapping[str, tuple[str, Callable[[], str]]] = {
    "commands.md": ("commands", commands),
    "http.md": ("api", operations),
    "failover.md": ("states", lambda: f"{diagram()}\n\n{steps()}"),
    "safety.md": ("opened", opened),
}
"""By page: the name in the two markers around the made part, and how it is made."""


def with_made_part(page: str) -> str:
    """The page, with its made part as the code has it now."""
    name, make = MADE[page]
    begin, end = f"<!-- {name}: made from the code by `make docs` -->", f"<!-- end of {name} -->"
    before, _, rest = (PROJECT / "docs" / page).read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{make()}\n\n{end}{after}"
