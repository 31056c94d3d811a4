"""What benches share that start a job of their own: its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.local.local_mirror import mirror_properties
from app.local.ports import free_ports


def write_job_file(
    clusters: Mapping[str, str], folder: Path, flows: Sequence[str] = ("a->b",), **own: str
) -> tuple[Path, int]:
    """`mirror.properties` in a folder that it makes, for these flows, and the port where the job will serve."""
    folder.mkdir()
    port = free_ports(1)[0]
    here = {"lockstep.http.port": str(port), "lockstep.checkpoint.dir": str(folder / "checkpoints")}
    properties = mirror_properties(clusters, flows, **{**own, **here})
    config = folder / "mirror.properties"
    config.write_text("".join(f"{name} = {value}\n" for name, value in properties.items()))
    return config, port
