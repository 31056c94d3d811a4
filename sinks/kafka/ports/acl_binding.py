"""One ACL, in Kafka's own upper-case words: its `AclBinding`."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from sinks.kafka.ports.cluster import Key

TOPIC: Final = "TOPIC"
GROUP: Final = "GROUP"
TRANSACTIONAL_ID: Final = "TRANSACTIONAL_ID"
CLUSTER: Final = "CLUSTER"
DELEGATION_TOKEN: Final = "DELEGATION_TOKEN"
USER: Final = "USER"
LITERAL: Final = "LITERAL"
PREFIXED: Final = "PREFIXED"
UNKNOWN: Final = "UNKNOWN"
"""What a client shows in place of a word that it does not know."""

WILDCARD: Final = "*"
"""As a literal name: every resource of the type. As a host: every host."""

CLUSTER_NAME: Final = "kafka-cluster"
"""The only resource of the type CLUSTER (`Resource.CLUSTER_NAME`)."""

EVERYONE: Final = "User:*"
"""The principal that stands for all others, of whatever type (`StandardAuthorizerData.WILDCARD_PRINCIPAL`)."""

RESOURCE_TYPES: Final = frozenset({TOPIC, GROUP, TRANSACTIONAL_ID, CLUSTER, DELEGATION_TOKEN, USER, UNKNOWN})
PATTERN_TYPES: Final = frozenset({LITERAL, PREFIXED, UNKNOWN})
DENY, ALLOW = "DENY", "ALLOW"

PERMISSIONS: Final = frozenset({ALLOW, DENY, UNKNOWN})
OPERATIONS: Final = frozenset(
    {
        "ALL",
        "READ",
        "WRITE",
        "CREATE",
        "DELETE",
        "ALTER",
        "DESCRIBE",
        "CLUSTER_ACTION",
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
        "IDEMPOTENT_WRITE",
        "CREATE_TOKENS",
        "DESCRIBE_TOKENS",
        "TWO_PHASE_COMMIT",
        UNKNOWN,
    }
)


@dataclass(frozen=True, slots=True)
class AclBinding:
    """Who may or may not do what to which resources, and from where. Its key is the whole ACL. Raises ValueError for a
    word that Kafka does not have."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str

    def __post_init__(self) -> None:
        if (
            self.resource_type not in RESOURCE_TYPES
            or self.pattern_type not in PATTERN_TYPES
            or self.operation not in OPERATIONS
            or self.permission not in PERMISSIONS
        ):
            raise ValueError(
                f"{self.key} is no ACL: resource type, pattern type, operation and permission must be Kafka's"
            )

    @property
    def key(self) -> Key:
        """The seven words in the order of the kind's key fields."""
        return _words(self)

    @classmethod
    def from_key(cls, key: Key) -> AclBinding:
        """Returns the binding with this key. Raises ValueError for any other key."""
        if len(key) != len(cls.__slots__):
            raise ValueError(f"{key} is no ACL: its key must have {len(cls.__slots__)} parts")
        return cls(*key)

    @property
    def is_known(self) -> bool:
        """Whether all words are known. An ACL that is UNKNOWN in part is never written."""
        return UNKNOWN not in (self.resource_type, self.pattern_type, self.operation, self.permission)


_words = attrgetter(*AclBinding.__slots__)
