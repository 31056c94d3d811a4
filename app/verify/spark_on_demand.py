"""Spark for a command that may not need it: started by the first comparison of records."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streaming.verify.jobs import Session


class SparkOnDemand:
    """One session, from the first call until it is closed."""

    def __init__(self, name: str, *, alone: bool = True) -> None:
        """`name`: as the Spark UI shows it; `alone`: what the first call is about to read is all that will be."""
        self._name, self._alone = name, alone
        self._started: Session | None = None

    def __call__(self, offsets: int) -> Session:
        """The session. `offsets`: how many are to be read. Raises LockstepError where Spark does not start."""
        if self._started is None:
            logging.getLogger("py4j").setLevel(logging.ERROR)
            # A second of imports, which many a command does without.
            from app.job.spark_session import session

            self._started = session(self._name, offsets=offsets if self._alone else None)
        return self._started

    def close(self) -> None:
        """Ends Spark, where it was started."""
        if self._started is not None:
            self._started.stop()
