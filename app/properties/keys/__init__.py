"""The keys that Lockstep reads: type, default, where they hold, what they mean.

A key of scope FLOW holds as `a->b.KEY` for one flow, as `KEY` for all. Any key of MM2's may carry the prefix
`lockstep.` in front (`lockstep.KEY`, `lockstep.a->b.KEY`) or after the flow (`a->b.lockstep.KEY`), and then wins.
Defaults are those of MM2 4.3.1 where the source is MM2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.properties.keys import (
    acl_keys,
    failover_keys,
    flow_keys,
    job_keys,
    kind_keys,
    notify_keys,
    offset_keys,
    pace_keys,
    safety_keys,
    topic_keys,
    verify_keys,
)
from app.properties.keys.acl_keys import *  # noqa: F403 - one namespace for readers, a file for each subject
from app.properties.keys.failover_keys import *  # noqa: F403 - one namespace for readers, a file for each subject
from app.properties.keys.flow_keys import *  # noqa: F403 - one namespace for readers, a file for each subject
from app.properties.keys.job_keys import *  # noqa: F403 - one namespace for readers, a file for each subject
from app.properties.keys.key import REPLACES_FLOWS as REPLACES_FLOWS
from app.properties.keys.key import Acts as Acts
from app.properties.keys.key import Key as Key
from app.properties.keys.key import KeyScope as KeyScope
from app.properties.keys.key import Live as Live
from app.properties.keys.key import T as T
from app.properties.keys.notify_keys import *  # noqa: F403 - one namespace for readers, a file for each subject
from app.properties.keys.offset_keys import *  # noqa: F403 - one namespace for readers, a file for each subject
from app.properties.keys.pace_keys import *  # noqa: F403 - one namespace for readers, a file for each subject
from app.properties.keys.safety_keys import *  # noqa: F403 - one namespace for readers, a file for each subject
from app.properties.keys.topic_keys import *  # noqa: F403 - one namespace for readers, a file for each subject
from app.properties.keys.verify_keys import *  # noqa: F403 - one namespace for readers, a file for each subject

KEY_MODULES = (
    *(flow_keys, topic_keys, offset_keys, notify_keys, job_keys, pace_keys, acl_keys, safety_keys),
    *(failover_keys, verify_keys),
)

_DECLARED = {key.name: key for module in KEY_MODULES for key in vars(module).values() if isinstance(key, Key)}

TABLE: Mapping[str, Key[Any]] = _DECLARED | kind_keys.switches(_DECLARED)
"""All of them, by name: whatever is declared in one of these files, and the switches of all kinds."""
