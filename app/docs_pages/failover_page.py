"""The states in docs/failover.md, made from their table: `python -m app.docs_pages.failover_page` writes them."""

from __future__ import annotations

from app.docs_pages.made_part import with_made_part
from app.local.jars import PROJECT
from sinks.ledger.failover_states import TRANSITIONS, Command, State, commands_from

FAILOVER_PAGE = PROJECT / "docs" / "failover.md"
LED_THROUGH = (Command.FENCE, Command.DRAIN, Command.PROMOTE)
"""By `cutover`."""

BEGIN, END = "<!-- states: made from the code by `make docs` -->", "<!-- end of states -->"


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


def page() -> str:
    """The page with its states as the code has them."""
    return with_made_part(FAILOVER_PAGE.read_text(encoding="utf-8"), BEGIN, f"{diagram()}\n\n{steps()}", END)


if __name__ == "__main__":
    FAILOVER_PAGE.write_text(page(), encoding="utf-8")
