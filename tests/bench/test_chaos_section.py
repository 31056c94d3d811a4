"""What the page says of storms of faults."""

from __future__ import annotations

from typing import Any

from bench.chaos import section


def fault(name: str, storm: int, seconds: float | None) -> dict[str, Any]:
    return {"storm": storm, "fault": name, "seconds": seconds, "missing": {} if seconds else {"acl": "1, not 2"}}


FAULTS = [fault("x", 1, 3.0), fault("y", 1, 3.0), fault("x", 3, 9.0), fault("y", 4, None), fault("z", 4, None)]


def test_faults_that_were_there_at_once_are_one_storm_whose_time_counts_once() -> None:
    said = section({"seed": 1, "asked": 5, "faults": FAULTS, "equal": True, "foreign": [], "untold": []})
    assert "5 faults in 3 storms of up to 2 at once" in said
    assert "Until equal, median 6.0 s, slowest 9.0 s. Storms given up: 1." in said
