"""The properties of the flow the other way round, from those of a flow: one file for MM2 and Lockstep alike."""

from __future__ import annotations

import os
from pathlib import Path

import javaproperties

from streaming.errors import LockstepError
from streaming.flow import Flow

HEAD = """# {reverse}, made by `lockstep failback` from {path}. Look at it before MM2 and Lockstep get it:
# - {flow} is off. Stop the MM2 that runs it.
# - Under the default policy MM2 never copies topics {source}.* back: producers on {target} must write to others.
# - Under the identity policy the fence on {source} keeps MM2 away, too: `lockstep unfence`, or make it a super user.
"""


def reverse_properties(lines: dict[str, str], flow: Flow) -> dict[str, str]:
    """The same, with what holds for the flow held for its reverse. References stay references.

    What the file says of the reverse flow itself wins.
    """
    reverse = Flow(flow.target, flow.source)
    found: dict[str, str] = {}
    for name, value in lines.items():
        found.setdefault(name.replace(f"{flow.name}.", f"{reverse.name}."), value)
    found |= {name: value for name, value in lines.items() if f"{reverse.name}." in name}
    return found | {f"{flow.name}.enabled": "false", f"{reverse.name}.enabled": "true"}


def write_reverse(path: Path, out: Path, flow: Flow) -> None:
    """Writes it for its owner alone, as it may hold secrets. Raises LockstepError."""
    try:
        with path.open(encoding="utf-8") as file:
            lines = javaproperties.load(file)
        names = {"flow": flow.name, "source": flow.source, "target": flow.target, "path": path.name}
        head = HEAD.format(reverse=f"{flow.target}->{flow.source}", **names)
        text = head + javaproperties.dumps(reverse_properties(lines, flow), timestamp=False, sort_keys=True)
        with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise LockstepError(f"{error.filename}: {error.strerror}") from error
