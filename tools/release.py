"""Makes a release: `make release VERSION=0.2.0`. It edits the files that name the version, and builds into a folder.

| made | of |
|---|---|
| `lockstep_kafka-….whl` | this checkout |
| `lockstep-….cdx.json` | CycloneDX 1.6: the packages installed here, and the jars that the first start fetches |
| `SHA256SUMS` | both |

Committing, tagging and uploading stay with a person.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from app.local.jar_sets import NEWEST_CONNECTOR, PROJECT
from streaming.errors import LockstepError

PACKAGE: Final = "lockstep-kafka"
VERSION: Final = re.compile(r"\d+\.\d+\.\d+(rc\d+)?")
UNRELEASED: Final = "## Unreleased\n"
NAMED_IN: Final[Mapping[str, str]] = {
    "pyproject.toml": r'(?m)^version = "{}"$',
    "conf/helm/lockstep/Chart.yaml": r"(?m)^(?:version|appVersion): {}$",
    "conf/docker/Dockerfile": r"lockstep(?:-spark)?:{}\b",
    "conf/kubernetes/deployment.yaml": r"lockstep:{}\b",
    "conf/kubernetes/sparkapplication-apache.yaml": r"lockstep-spark:{}\b",
    "conf/kubernetes/sparkapplication-kubeflow.yaml": r"lockstep-spark:{}\b",
}
"""Files that name the version, each with what stands around it."""


def prepared(root: Path, version: str, today: date) -> dict[Path, str]:
    """Returns the files of the release that differ from the checkout. Writes nothing. Raises LockstepError."""
    if not VERSION.fullmatch(version):
        raise LockstepError(f"{version} is no version: write three numbers such as 0.2.0, or 0.2.0rc1")
    before = _version(root)
    if _order(version) <= _order(before):
        raise LockstepError(f"{version} is not later than {before}, which pyproject.toml has: choose a later one")
    texts = {root / name: (root / name).read_text(encoding="utf-8") for name in NAMED_IN}
    changed: dict[Path, str] = {}
    for (name, form), (path, text) in zip(NAMED_IN.items(), texts.items(), strict=True):
        found = re.compile(form.format(re.escape(before)))
        if not found.search(text):
            raise LockstepError(f"{name} does not name version {before}: mend that file first")
        changed[path] = found.sub(lambda match: match[0].replace(before, version), text)
    log = root / "CHANGELOG.md"
    changed[log] = _released(log.read_text(encoding="utf-8"), version, today)
    return changed


def _version(root: Path) -> str:
    found = re.search(r'(?m)^version = "([^"]+)"$', (root / "pyproject.toml").read_text(encoding="utf-8"))
    if found is None:
        raise LockstepError("pyproject.toml has no version")
    return found[1]


def _order(version: str) -> tuple[list[int], float]:
    """A candidate comes before its release."""
    numbers, _, candidate = version.partition("rc")
    return [int(number) for number in numbers.split(".")], float(candidate or "inf")


def _released(log: str, version: str, today: date) -> str:
    head, found, rest = log.partition(UNRELEASED)
    entries = rest.partition("\n## ")[0]
    if not found or not entries.strip():
        raise LockstepError("CHANGELOG.md has nothing under `## Unreleased`: there is nothing to release")
    return f"{head}{UNRELEASED}\n## {version} - {today.isoformat()}\n{rest}"


def sbom(version: str, now: datetime) -> dict[str, Any]:
    """Returns the bill of materials of this version: the packages installed here, and the connector's jars."""
    own = {"type": "application", "name": PACKAGE, "version": version, "purl": f"pkg:pypi/{PACKAGE}@{version}"}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {"timestamp": now.isoformat(timespec="seconds"), "component": own | {"bom-ref": own["purl"]}},
        "components": [*packages(), *jars()],
    }


def packages() -> Iterator[dict[str, Any]]:
    """Returns every package that Lockstep needs, directly or not, by name. Raises LockstepError for a missing one."""
    from packaging.requirements import Requirement

    found: dict[str, str] = {}
    left = [PACKAGE]
    while left:
        name = left.pop()
        for line in metadata.requires(name) or ():
            needed = Requirement(line)
            key = re.sub(r"[-_.]+", "-", needed.name).lower()
            if key in found or (needed.marker is not None and not needed.marker.evaluate({"extra": ""})):
                continue
            try:
                found[key] = metadata.version(key)
            except metadata.PackageNotFoundError as error:
                raise LockstepError(f"{key}, which {name} needs, is not installed: run `make setup`") from error
            left.append(key)
    for name, version in sorted(found.items()):
        purl = f"pkg:pypi/{name}@{version}"
        yield {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def jars() -> Iterator[dict[str, Any]]:
    """Returns the jars of Spark's Kafka connector, with the checksums that they are compared with."""
    checksums = NEWEST_CONNECTOR.jars.expected()
    for group, name, version in sorted(NEWEST_CONNECTOR.jars.artifacts):
        purl = f"pkg:maven/{group}/{name}@{version}"
        digest = {"alg": "SHA-256", "content": checksums[f"{name}-{version}.jar"]}
        component = {"type": "library", "bom-ref": purl, "group": group, "name": name, "version": version}
        yield {**component, "purl": purl, "hashes": [digest]}


def release(root: Path, version: str, into: Path, now: datetime) -> list[Path]:
    """Edit the checkout and build. Returns the files that were made. Edits all files or none before the build. Raises
    LockstepError."""
    if into.exists() and any(into.iterdir()):
        raise LockstepError(f"{into} is not empty: delete it, or name another folder")
    changed, bill = prepared(root, version, now.date()), sbom(version, now)
    for path, text in changed.items():
        path.write_text(text, encoding="utf-8")
    into.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run([*command, "--wheel-dir", str(into), str(root)], capture_output=True, text=True, check=False)
    wheels = sorted(into.glob(f"lockstep_kafka-{version}-*.whl"))
    if done.returncode or not wheels:
        raise LockstepError(f"the wheel could not be built; pip says:\n{done.stderr[-2000:]}")
    listed = into / f"lockstep-{version}.cdx.json"
    listed.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
    made = [*wheels, listed]
    sums = into / "SHA256SUMS"
    sums.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made))
    return [*made, sums]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Edits the files that name the version, and builds a release.")
    parser.add_argument("version")
    parser.add_argument("--into", type=Path, default=PROJECT / "dist", help="an empty folder (default: dist)")
    given = parser.parse_args()
    try:
        made = release(PROJECT, given.version, given.into, datetime.now(timezone.utc))
    except LockstepError as error:
        sys.exit(str(error))
    done = [str(path) for path in made]
    sys.stdout.write("\n".join([*done, f"Review `git diff`, commit, and tag: git tag v{given.version}", ""]))


if __name__ == "__main__":
    main()
