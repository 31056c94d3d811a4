"""Ends what may wait for others, all at the same time: a listener that hangs costs its time-out once, not per flow."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

log = logging.getLogger(__name__)


def side_by_side(closes: Sequence[Callable[[], None]]) -> None:
    """Calls each in a thread of its own, and returns when all are done. What one raises is logged."""
    if not closes:
        return
    with ThreadPoolExecutor(len(closes), thread_name_prefix="close") as threads:
        for future in [threads.submit(close) for close in closes]:
            if (error := future.exception()) is not None:
                log.error("a flow could not be closed: a defect of Lockstep's, please report it", exc_info=error)
