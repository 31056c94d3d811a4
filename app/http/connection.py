"""A connection to the job's server that must not wait for ever for its next request.

uvicorn has a time-out between two requests, and none before the first byte of one or within its head: a hundred
connections that say nothing would be all that `limit_concurrency` allows.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_WITHIN = 10.0
"""Seconds until the whole head of a request must be there."""


class PromptConnection(H11Protocol):
    """Ends where the head of the next request does not come in time, or where it waits longest and others need room."""

    _timer: asyncio.TimerHandle | None = None
    _waits_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begins to wait; of too many that wait, the oldest makes room."""
        super().connection_made(transport)
        self._wait()
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            waiting = [one for one in self.connections if isinstance(one, PromptConnection) and one._timer is not None]
            min(waiting, key=lambda one: one._waits_since)._end()

    def data_received(self, data: bytes) -> None:
        """A request whose head is there has all its time."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._wait_no_more()

    def on_response_complete(self) -> None:
        """Waits for the next one, unless that is there already."""
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._wait_no_more()
        self._waits_since = self.loop.time()
        self._timer = self.loop.call_later(HEAD_WITHIN, self._end)

    def _wait_no_more(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._wait_no_more()
        self.transport.abort()
