"""A proxy that does something at the moment when configs are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from tests.kafka.api_proxy import INCREMENTAL_ALTER_CONFIGS, Proxy, Request
from tests.kafka.proxied_cluster import ProxiedCluster


class Cut(Exception):
    """Raised by what is done at a write: the connection ends here."""


Act = Callable[[], None]


def nothing() -> None:
    """Lets the write or its answer pass."""


def cut() -> None:
    """Ends the connection."""
    raise Cut


class WriteProxy(Proxy):
    """Calls `before` when a write is sent and `after` when its answer comes."""

    def __init__(self, port: int, upstream: int, before: Act, after: Act) -> None:
        super().__init__(port, upstream)
        self._before, self._after = before, after

    def passes(self, request: Request) -> bool:
        return not is_write(request) or _done(self._before)

    def answered(self, request: Request, answer: bytes) -> bytes | None:
        return answer if not is_write(request) or _done(self._after) else None


def is_write(request: Request) -> bool:
    """An IncrementalAlterConfigs that is no validation. The flag is its last field; tags follow from version 1 on."""
    validate_only = request.frame[-1 if request.version == 0 else -2]
    return request.api == INCREMENTAL_ALTER_CONFIGS and not validate_only


def _done(act: Act) -> bool:
    try:
        act()
    except Cut:
        return False
    return True


@contextmanager
def at_writes(cluster: ProxiedCluster, before: Act = nothing, after: Act = nothing) -> Iterator[str]:
    """Proxies in front of all brokers of a cluster; their bootstrap address."""
    with ExitStack() as stack:
        for port, behind in cluster.proxies.items():
            stack.enter_context(WriteProxy(port, behind, before, after))
        yield ",".join(f"127.0.0.1:{port}" for port in cluster.proxies)
