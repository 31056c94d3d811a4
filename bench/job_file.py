"""What benches share that start a job of their own: its file, and the job itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from app.local.local_job import LocalJob
from app.local.ports import free_ports


def write_job_file(properties: Mapping[str, str], folder: Path) -> tuple[Path, int]:
    """`mirror.properties` in a folder that is made where it is missing, and the port where its job will serve."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_ports(1)[0]
    own = {"lockstep.http.port": str(port), "lockstep.checkpoint.dir": str(folder / "checkpoints")}
    config = folder / "mirror.properties"
    config.write_text("".join(f"{name} = {value}\n" for name, value in {**properties, **own}.items()))
    return config, port


@contextmanager
def job_of(properties: Mapping[str, str], folder: Path) -> Iterator[LocalJob]:
    """Starts a job with these properties. Its log is `job.log` in the folder."""
    config, port = write_job_file(properties, folder)
    with LocalJob(config, port, folder / "job.log") as job:
        yield job
