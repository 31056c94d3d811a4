"""The properties of the flow the other way round, from those of a flow: one file for MM2 and Lockstep alike."""

from __future__ import annotations

import os
from pathlib import Path

import javaproperties

from app.private_files import replace_file
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
    reverse = flow.reverse
    found: dict[str, str] = {}
    for name, value in lines.items():
        start, rest = _split(name, flow)
        found.setdefault(f"{start}{reverse.name}.{rest}" if rest else name, value)
    found |= {name: value for name, value in lines.items() if _split(name, reverse)[1]}
    return found | {f"{flow.name}.enabled": "false", f"{reverse.name}.enabled": "true"}


def _split(name: str, flow: Flow) -> tuple[str, str]:
    """What stands before the flow's name, and behind it; nothing behind where a key is not of this flow."""
    for start in ("", "lockstep."):
        if name.startswith(f"{start}{flow.name}."):
            return start, name.removeprefix(f"{start}{flow.name}.")
    return name, ""


def write_reverse(path: Path, out: Path, flow: Flow, *, replaces: bool = True) -> None:
    """Writes it for its owner alone, as it may hold secrets, whole or not at all. Raises LockstepError.

    Not `replaces`: another file of that name stays.
    """
    try:
        with path.open(encoding="utf-8") as file:
            lines = javaproperties.load(file)
        names = {"flow": flow.name, "source": flow.source, "target": flow.target, "path": path.name}
        head = HEAD.format(reverse=f"{flow.target}->{flow.source}", **names)
        text = head + javaproperties.dumps(reverse_properties(lines, flow), timestamp=False, sort_keys=True)
        if not replaces and os.path.lexists(out) and out.read_text(encoding="utf-8") != text:
            raise LockstepError(f"{out} is there already: name it with --out to replace it, or another file")
        replace_file(out, text.encode())
    except OSError as error:
        raise LockstepError(f"{error.filename}: {error.strerror}") from error
