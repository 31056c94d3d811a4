"""The former place of replication policies: `lockstep.policies`. It goes with the next version."""

from __future__ import annotations

import warnings

from streaming.mm2.replication_policy import (
    BaseReplicationPolicy,
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
)

__all__ = ["BaseReplicationPolicy", "DefaultReplicationPolicy", "IdentityReplicationPolicy", "ReplicationPolicy"]

warnings.warn("streaming.naming has moved: import from lockstep.policies", FutureWarning, stacklevel=2)
