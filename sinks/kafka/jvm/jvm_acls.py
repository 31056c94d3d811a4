"""Looking at a cluster's ACLs through the driver's own JVM, where the last answer stays and is compared.

50,000 ACLs as Python objects cost more than asking for them; here one boolean comes over the gateway. Source:
`Admin.describeAcls`; `AclBinding` compares by value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError

from sinks.faults import ClusterUnreachable, NotSupported, RightsMissing
from sinks.kafka.jvm.java_admin import CLOSES_WITHIN_MS, DENIED_CLIENT, cause_of, java_admin, timeout_ms
from sinks.kafka.ports.cluster import CountRequest
from streaming.errors import LockstepError

API = "DescribeAcls"
NO_AUTHORIZER = "SecurityDisabledException"


class JvmAclWatch:
    """A watch on the ACLs of one cluster, through `Admin` in the JVM behind `gateway` (py4j)."""

    def __init__(self, alias: str, gateway: Any, properties: Mapping[str, str], count_request: CountRequest) -> None:
        self._alias, self._jvm, self._count = alias, gateway.jvm, count_request
        self._admin, self._timeout = java_admin(alias, self._jvm, properties), timeout_ms(alias, properties)
        self._unit = self._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
        self._any = self._jvm.org.apache.kafka.common.acl.AclBindingFilter.ANY
        self._last: Any = None

    def changed(self) -> bool:
        """Whether the ACLs differ from those of the last poll; at the first one they do.

        Raises NotSupported where the cluster has no authorizer, RightsMissing, ClusterUnreachable.
        """
        try:
            found = self._admin.describeAcls(self._any).values().get(self._timeout, self._unit)
        except Py4JJavaError as error:
            raise self._stopped(error) from error
        self._count(self._alias, API, "ok")
        # Brokers need not tell them in the same order each time.
        seen = self._jvm.java.util.HashSet(found)
        differs = self._last is None or not seen.equals(self._last)
        self._last = seen
        return differs

    def forget(self) -> None:
        """The next poll reports a change."""
        self._last = None

    def close(self) -> None:
        self._admin.close(self._jvm.java.time.Duration.ofMillis(CLOSES_WITHIN_MS))

    def _stopped(self, error: Py4JJavaError) -> LockstepError:
        cause = cause_of(error)
        self._count(self._alias, API, cause)
        text = f"cluster {self._alias}: {API}: {cause}: {error.java_exception.getMessage()}"
        if cause == NO_AUTHORIZER:
            return NotSupported(f"{text}; its brokers have no authorizer")
        return RightsMissing(text) if cause in DENIED_CLIENT else ClusterUnreachable(text)
