"""The file of a reviewed plan: `plan --out` writes it, `apply --plan` reads what it may write from it."""

from __future__ import annotations

import errno
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from app.private_files import replace_file
from sinks.faults import DigestMismatch
from sinks.model.plan import Plan, digest_of
from streaming.errors import WrongUsage
from streaming.flow import Flow

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
FOR_REVIEWERS = 0o666
AGAIN = "nothing was written. Somebody changed the file: make the plan again, and review that"
ALIKE = "make both with --force, or both without"


class ReviewedPlan:
    """The digests that were reviewed, by flow."""

    def __init__(self, path: Path) -> None:
        """Raises WrongUsage for what is no file of `plan --out`, or not as that wrote it."""
        self._path = path
        try:
            flows = [(Flow(one["source"], one["target"]), one) for one in orjson.loads(path.read_bytes())["flows"]]
            # A flow that could not be planned has a reason, and no digest.
            planned = [(flow, one["digest"], digest_of(flow, one["changes"])) for flow, one in flows if "digest" in one]
        except OSError as error:
            written = "`lockstep plan --out` writes such a file"
            raise WrongUsage(f"--plan {path} cannot be read: {error.strerror}; {written}") from error
        except orjson.JSONDecodeError as error:
            raise WrongUsage(f"--plan {path}: no plan that `lockstep plan --out` wrote: it is no JSON") from error
        except (ValueError, KeyError, TypeError) as error:
            problem = "it does not say of which flows, or which changes"
            raise WrongUsage(f"--plan {path}: no plan that `lockstep plan --out` wrote: {problem}") from error
        self._digests: Mapping[Flow, str] = {flow: shown for flow, shown, _ in planned}
        for flow, shown, counted in planned:
            if not (isinstance(shown, str) and DIGEST.fullmatch(shown)):
                raise WrongUsage(f"--plan {path}: no plan that `lockstep plan --out` wrote: no digest of {flow.name}")
            if shown != counted:
                raise WrongUsage(f"--plan {path}: the changes of {flow.name} are not those of its digest; {AGAIN}")
        for flow, times in Counter(flow for flow, _ in flows).items():
            if times > 1:
                raise WrongUsage(f"--plan {path}: {flow.name} is there {times} times; {AGAIN}")

    def check_flows(self, flows: Iterable[Flow]) -> None:
        """To be called before anything is compared. Raises DigestMismatch for a flow that was not reviewed."""
        for flow in flows:
            if flow not in self._digests:
                raise DigestMismatch(
                    f"{flow.name}: this flow is not in {self._path}; nothing was written. Name the flows that are, "
                    "with --flow, or make the plan again"
                )

    def check(self, plan: Plan) -> None:
        """Raises DigestMismatch where the plan made now is another one."""
        if self._digests[plan.flow] != plan.digest:
            raise DigestMismatch(
                f"{plan.flow.name}: the plan made now ({plan.digest}) is not the one reviewed "
                f"({self._digests[plan.flow]}); nothing was written. Look at `lockstep plan` again; what the limit on "
                f"deletions refuses is in a plan made with --force alone: {ALIKE}"
            )


def check_writable(path: Path, option: str = "--out") -> None:
    """Before anything is compared, which takes its time. Raises WrongUsage where no file can be written there."""
    if why := _why_not_writable(path):
        raise WrongUsage(f"{option} {path}: {why}")


def _why_not_writable(path: Path) -> str | None:
    folder = path.parent
    try:
        if path.is_dir():
            return os.strerror(errno.EISDIR)
        if os.access(folder, os.W_OK | os.X_OK):
            return None
        return f"no file can be made in {folder}" if folder.is_dir() else f"there is no folder {folder}"
    except OSError as error:
        return error.strerror or str(error)


def write_plan(path: Path, document: Mapping[str, Any]) -> None:
    """All of it or nothing: a half-written plan must not look like a plan. Raises WrongUsage."""
    try:
        replace_file(path, orjson.dumps(document, option=orjson.OPT_INDENT_2), FOR_REVIEWERS)
    except OSError as error:
        raise WrongUsage(f"--out {path}: {error.strerror}") from error
