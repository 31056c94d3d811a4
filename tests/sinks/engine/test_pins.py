"""The local file of clusters' ids: private, replaced as a whole, and never guessed at."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from sinks.faults import LedgerUntrusted
from sinks.ledger.pins import FILE, PinFile, Pins
from streaming.errors import LockstepError
from streaming.flow import Flow

AB, BA = Flow("a", "b"), Flow("b", "a")
PINS = Pins({"a": "id-of-a", "b": "id-of-b"}, "lockstep-ledger.a.internal")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints" / FILE


def test_file_of_the_job_keeps_each_flow_and_only_its_owner_reads_it(path: Path) -> None:
    job = PinFile(path, create=True)
    assert job.of(AB) is None
    job.keep(AB, PINS)
    job.keep(BA, Pins({}, "other"))
    assert (PinFile(path, create=False).of(AB), job.of(BA)) == (PINS, Pins({}, "other"))
    assert path.stat().st_mode & 0o777 == 0o600
    job.keep(BA, None)
    assert orjson.loads(path.read_bytes()) == {
        "flows": {"a->b": {"ids": {"a": "id-of-a", "b": "id-of-b"}, "ledger": "lockstep-ledger.a.internal"}}
    }
    assert {one.name for one in path.parent.iterdir()} == {FILE, "cluster-ids.lock"}, "nothing half written is left"


def test_command_makes_no_file_and_updates_one_that_is_there(path: Path) -> None:
    command = PinFile(path, create=False)
    command.keep(AB, PINS)
    assert not path.parent.exists()
    PinFile(path, create=True).keep(BA, PINS)
    command.keep(AB, PINS)
    assert command.of(AB) == PINS


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"flows": []}', '{"flows": {"a->b": {}}}', '{"flows": {"a->b": {"ids": [], "ledger": ""}}}'],
)
def test_damaged_file_stops_and_says_what_to_do(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(LedgerUntrusted, match=r"is damaged: nothing is written.*then delete it"):
        PinFile(path, create=False).of(AB)


def test_job_that_cannot_keep_the_ids_says_so(path: Path) -> None:
    path.parent.write_text("a file where the folder should be")
    with pytest.raises(LockstepError, match="could not be kept"):
        PinFile(path, create=True).keep(AB, PINS)
