"""One command makes a release: the version in every file, the changelog's section, wheel, SBOM and checksums."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import zipfile
from datetime import date, datetime, timezone
from pathlib import Path

import pytest

from app.local.jar_sets import NEWEST_CONNECTOR, PROJECT
from streaming.errors import LockstepError
from tools.release import NAMED_IN, prepared, release, sbom

NOW = datetime(2026, 11, 23, 12, tzinfo=timezone.utc)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the files that git keeps, without tests and pages."""
    root = tmp_path / "checkout"
    kept = ("app", "lockstep", "sinks", "streaming", "conf", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md")
    listed = subprocess.run(["git", "ls-files", *kept], cwd=PROJECT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout of git's")
    for name in listed.stdout.splitlines():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, root / name, follow_symlinks=False)
    return root


def test_release_is_made_into_a_folder(checkout: Path, tmp_path: Path) -> None:
    into = tmp_path / "made"
    made = release(checkout, "9.8.7", into, NOW)
    names = {path.name for path in made}
    assert names == {path.name for path in into.iterdir()}
    assert names == {"lockstep_kafka-9.8.7-py3-none-any.whl", "lockstep-9.8.7.cdx.json", "SHA256SUMS"}
    for line in (into / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((into / name).read_bytes()).hexdigest() == digest
    with zipfile.ZipFile(into / "lockstep_kafka-9.8.7-py3-none-any.whl") as wheel:
        about = wheel.read("lockstep_kafka-9.8.7.dist-info/METADATA").decode()
    assert json.loads((into / "lockstep-9.8.7.cdx.json").read_text())["bomFormat"] == "CycloneDX"
    assert "\nVersion: 9.8.7\n" in about
    for name in NAMED_IN:
        assert "9.8.7" in (checkout / name).read_text()
    log = (checkout / "CHANGELOG.md").read_text()
    assert "## Unreleased\n\n## 9.8.7 - 2026-11-23\n" in log
    assert log.replace("\n## 9.8.7 - 2026-11-23\n", "", 1) == (PROJECT / "CHANGELOG.md").read_text()


def test_sbom_has_every_package_that_is_needed_and_the_connectors_jars() -> None:
    bill = sbom("9.8.7", NOW)
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", "9.8.7")
    found = {component["purl"].partition("@")[0]: component for component in bill["components"]}
    assert len(found) == len(bill["components"])
    for name in ("pyspark", "py4j", "confluent-kafka", "cryptography", "cffi", "starlette", "anyio"):
        assert found[f"pkg:pypi/{name}"]["version"]
    assert "pkg:pypi/pytest" not in found
    clients = found["pkg:maven/org.apache.kafka/kafka-clients"]
    assert clients["hashes"][0]["content"] in NEWEST_CONNECTOR.jars.expected().values()


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("0.0.1", "0.0.1 is not later than"),
        ("1.0", "1.0 is no version"),
        ("v1.0.0", "v1.0.0 is no version"),
    ],
)
def test_version_that_cannot_follow_is_refused_and_nothing_is_edited(
    checkout: Path, tmp_path: Path, version: str, reason: str
) -> None:
    before = {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}
    with pytest.raises(LockstepError, match=reason):
        release(checkout, version, tmp_path / "made", NOW)
    assert {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "made").exists()


def test_release_without_a_change_is_refused(checkout: Path) -> None:
    log = checkout / "CHANGELOG.md"
    log.write_text("# Changelog\n\n## Unreleased\n\n## 0.1.0\n- First.\n")
    with pytest.raises(LockstepError, match="nothing under `## Unreleased`"):
        prepared(checkout, "9.8.7", date(2026, 11, 23))


def test_file_that_names_another_version_is_refused_by_name(checkout: Path) -> None:
    chart = checkout / "conf" / "helm" / "lockstep" / "Chart.yaml"
    chart.write_text(chart.read_text().replace("ersion: 0", "ersion: 77"))
    with pytest.raises(LockstepError, match=r"Chart\.yaml does not name version"):
        prepared(checkout, "9.8.7", date(2026, 11, 23))


def test_folder_that_is_not_empty_is_left_alone(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(LockstepError, match="is not empty"):
        release(checkout, "9.8.7", tmp_path, NOW)
