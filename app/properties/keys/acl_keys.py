"""ACLs, SCRAM users, and how passwords are kept."""

from __future__ import annotations

from pathlib import Path

from app.properties.keys.key import Key, KeyScope
from app.properties.value_types import (
    BOOLEAN,
    CLASS,
    FOLDER,
    PATTERNS,
    SECRET_LENGTH,
    TEXT,
    ValueType,
    integer,
    long_text,
    one_of,
)

SYNC_TOPIC_ACLS = Key(
    "sync.topic.acls.enabled",
    BOOLEAN,
    True,
    "MM2",
    "Keep literal ACLs of replicated topics on the target, without ALLOW WRITE, as MM2 does.",
)
SYNC_FULL_ACL = Key(
    "sync.full.acl.enabled",
    BOOLEAN,
    False,
    "KIP-965",
    "Keep all ACLs of replicated topics: also prefixes, WRITE, groups and transactional ids, and their SCRAM users.",
)
ACL_DELETES = Key(
    "lockstep.sync.acl.deletes.enabled",
    BOOLEAN,
    True,
    "Lockstep",
    "Delete ACLs that Lockstep created when the source no longer has them.",
)
ACL_PRINCIPALS: Key[tuple[str, ...]] = Key(
    "lockstep.acl.principals",
    PATTERNS,
    (".*",),
    "Lockstep",
    "Principals whose ACLs are synced, by their names on the source.",
)
ACL_PRINCIPALS_EXCLUDE: Key[tuple[str, ...]] = Key(
    "lockstep.acl.principals.exclude",
    PATTERNS,
    (),
    "Lockstep",
    "Principals whose ACLs are left out although lockstep.acl.principals matches them.",
)
ACL_MAPPING = Key(
    "lockstep.acl.principal.mapping",
    TEXT,
    "DEFAULT",
    "Lockstep",
    "Names of principals on the target, as rules like ssl.principal.mapping.rules (KIP-371).",
)
ACL_PROTECTED: Key[tuple[str, ...]] = Key(
    "lockstep.acl.principals.protected",
    PATTERNS,
    (),
    "Lockstep",
    "Principals of the target whose ACLs, SCRAM users and quotas Lockstep never touches. Principals that "
    "its client settings name are always protected.",
)
SCRAM_ADOPT: Key[tuple[str, ...]] = Key(
    "lockstep.scram.users.adopt",
    PATTERNS,
    (),
    "Lockstep",
    "SCRAM users of the target that get the source's passwords although Lockstep did not create them.",
)
ACL_STAGE_WRITES = Key(
    "lockstep.acl.stage.writes",
    BOOLEAN,
    False,
    "Lockstep",
    "Hold ALLOW WRITE of topics back until the target takes over (`promote`, `failover`). ALLOW ALL is "
    "READ until then.",
)
ACL_WILDCARD_DENIES = Key(
    "lockstep.acl.wildcard.denies.enabled",
    BOOLEAN,
    False,
    "Lockstep",
    "With sync.full.acl.enabled, copy a DENY of all groups or transactional ids (*). It also holds for "
    "the target's own applications.",
)
KEY_LENGTHS = ("128", "192", "256")
CREDENTIAL_PROVIDER = Key(
    "lockstep.credential.provider.class",
    CLASS,
    "lockstep.credentials:FileCredentialProvider",
    "Lockstep",
    "Class that knows the passwords of SCRAM users (access.md).",
    KeyScope.JOB,
)
CREDENTIAL_STORE = Key(
    "lockstep.credential.store",
    ValueType(FOLDER.parse, "a file or folder on this machine"),
    Path(".lockstep/credentials"),
    "Lockstep",
    "Encrypted file of FileCredentialProvider, or the folder of DirectoryCredentialProvider.",
    KeyScope.JOB,
)
ENCODER_SECRET: Key[str | None] = Key(
    "password.encoder.secret",
    long_text(SECRET_LENGTH, "; a shorter one from before may stay as password.encoder.old.secret"),
    None,
    "KIP-226",
    "Secret that encrypts the credential store and passwords among overrides.",
    KeyScope.JOB,
)
ENCODER_OLD_SECRET: Key[str | None] = Key(
    "password.encoder.old.secret",
    TEXT,
    None,
    "KIP-226",
    "The secret before, while passwords are being encrypted with the new one.",
    KeyScope.JOB,
)
ENCODER_KEYFACTORY = Key(
    "password.encoder.keyfactory.algorithm",
    one_of(*(f"PBKDF2WithHmacSHA{bits}" for bits in (512, 384, 256, 224, 1))),
    "PBKDF2WithHmacSHA512",
    "KIP-226",
    "How the key is derived from password.encoder.secret.",
    KeyScope.JOB,
)
ENCODER_CIPHER = Key(
    "password.encoder.cipher.algorithm",
    one_of("AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"),
    "AES/GCM/NoPadding",
    "KIP-226",
    "The cipher for these passwords. The default is GCM, which binds a password to its user or key; KIP-226 has CBC.",
    KeyScope.JOB,
)
ENCODER_KEY_LENGTH = Key(
    "password.encoder.key.length",
    ValueType(lambda text: int(KEY_LENGTHS[KEY_LENGTHS.index(text)]), ", ".join(KEY_LENGTHS), KEY_LENGTHS),
    256,
    "KIP-226",
    "Length of that key in bits. Kafka's default is 128.",
    KeyScope.JOB,
)
ENCODER_ITERATIONS = Key(
    "password.encoder.iterations",
    integer(1024, 1_000_000),
    210_000,
    "KIP-226",
    "Rounds that derive that key. KIP-226 has 4096.",
    KeyScope.JOB,
)
