"""What every page of help has: two examples, options that all commands share, and placeholders in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.cli.options import add_shared

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
"""By the command as it is called, without `lockstep`."""

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
    "--topic": "TOPIC",
    "--wait": "SECONDS",
    "--within": "SECONDS",
    "--yes": "RECORDS",
    "--why": "REASON",
}
"""What stands for an option's value; for other options their name in capitals."""


def examples(*commands: str) -> str:
    """The end of a page of help; `commands`: without `lockstep`."""
    return "\n".join(["\b", "Examples:", *(f"  lockstep {one}" for one in commands)])


def complete_help(command: Any, path: str) -> None:
    """Adds all of it to a command of Click's and to those below it. `path`: how it is called, without `lockstep`."""
    add_shared(command, path)
    for one in command.params:
        if getattr(one, "metavar", "") is None and not getattr(one, "is_flag", False):
            one.metavar = _placeholder(one)
            if one.param_type_name == "argument" and not _is_choice(one):
                # Later versions of Typer write the name of Python's type behind the argument's.
                one.display_type_rich = lambda ctx: ""
    if path in EXAMPLES:
        command.epilog = examples(*EXAMPLES[path])
    for name, below in getattr(command, "commands", {}).items():
        complete_help(below, f"{path} {name}")


def _is_choice(param: Any) -> bool:
    return bool(getattr(getattr(param, "type_descriptor", None), "is_choice", False))


def _placeholder(param: Any) -> str:
    names = [name for name in param.opts if name.startswith("--")]
    if not names:
        return str(param.name).upper()
    return PLACEHOLDERS.get(names[0], names[0].removeprefix("--").upper())
