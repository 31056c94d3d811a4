"""Runs the job as users do, as a child process with a log file: `./spark-submit.sh`, or `lockstep run` if installed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from app.local.children import Child, spawn, stop
from app.local.jar_sets import PROJECT, is_checkout
from app.local.startable import Startable
from app.local.waiting import wait_for
from streaming.errors import LockstepError

JOB_READY_WITHIN = 300.0
"""Seconds in which the job must be ready. The first start on a machine downloads Spark's Kafka connector."""

END_WITHIN = 300.0
"""Seconds in which the job must end after SIGTERM. The job itself waits less for a running batch."""


class LocalJob(Startable):
    """`lockstep run` with this properties file. `port`, `token`: the file's values under `lockstep.http`.
    `submit_options`: of spark-submit; only a checkout can use them.
    """

    def __init__(
        self, config: Path, port: int, log: Path, submit_options: Sequence[str] = (), token: str | None = None
    ) -> None:
        start = [str(PROJECT / "spark-submit.sh"), *submit_options, "--"]
        if not is_checkout():
            start = [sys.executable, "-m", "app.main", "run"]
        self._command = [*start, "--config", str(config)]
        self.config, self._log = config, log
        self.address = f"http://127.0.0.1:{port}"
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._process: Child | None = None
        # One for all questions: a new one reads every certificate of this machine.
        self._client = httpx.Client(timeout=30)

    @property
    def pids(self) -> list[int]:
        """The process id of `spark-submit.sh`, the parent of all others."""
        return [self._process.pid] if self._process else []

    def start(self) -> None:
        """Starts the job and returns at once; see `wait_until_compared`."""
        self._process = spawn(self._command, self._log, at_death=signal.SIGTERM)

    def wait_until_compared(self, check: Callable[[], None] = lambda: None) -> None:
        """Waits until every flow has compared everything once. Raises as `check`, and with the end of the log after the
        time limit."""

        def compared() -> bool:
            check()
            return self._compared()

        wait_for(compared, JOB_READY_WITHIN, f"the job's first comparison (see {self._log})")

    def _compared(self) -> bool:
        self.check()
        flows = self.status().get("flows", [])
        return bool(flows) and all(
            kind["last_success"] or kind["task"] == "DISABLED" for flow in flows for kind in flow["kinds"].values()
        )

    def check(self) -> None:
        """Raises LockstepError with the end of its log if the job has ended."""
        if self._process is None or self._process.poll() is not None:
            code = self._process.returncode if self._process else None
            end = "\n".join(self._log.read_text(errors="replace").splitlines()[-20:])
            raise LockstepError(f"the job ended with exit code {code}; the end of {self._log}:\n{end}")

    def status(self) -> Mapping[str, Any]:
        """Returns the job's `/status`; empty while it does not answer."""
        try:
            answer: Mapping[str, Any] = self._client.get(f"{self.address}/status", headers=self.headers).json()
        except httpx.HTTPError:
            return {}
        return answer

    def stop(self) -> int | None:
        """Sends SIGTERM, as an operator would, and returns the job's exit code."""
        if self._process is None:
            return None
        stop(self._process, within=END_WITHIN)
        code, self._process = self._process.returncode, None
        return code
