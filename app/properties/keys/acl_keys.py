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
    "Whether literal ACLs of replicated topics are kept on the target, ALLOW WRITE left out, as MM2 does.",
)
SYNC_FULL_ACL = Key(
    "sync.full.acl.enabled",
    BOOLEAN,
    False,
    "KIP-965",
    "Whether all ACLs of replicated topics are kept on the target: prefixed ones, WRITE, and those of groups "
    "and transactional ids as well.",
)
ACL_DELETES = Key(
    "lockstep.sync.acl.deletes.enabled",
    BOOLEAN,
    True,
    "Lockstep",
    "Whether ACLs that Lockstep created are deleted when the source has them no more.",
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
    "Principals whose ACLs are left out although lockstep.acl.principals names them.",
)
ACL_MAPPING = Key(
    "lockstep.acl.principal.mapping",
    TEXT,
    "DEFAULT",
    "Lockstep",
    "What principals are called on the target, as rules like those of ssl.principal.mapping.rules (KIP-371).",
)
ACL_PROTECTED: Key[tuple[str, ...]] = Key(
    "lockstep.acl.principals.protected",
    PATTERNS,
    (),
    "Lockstep",
    "Principals of the target whose ACLs, SCRAM users and quotas are never touched: super users, and the job's own "
    "where its client settings do not name it; those that they name are protected always.",
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
    "Whether ALLOW WRITE of topics is held back until the target takes over (`promote`, `failover`), so that nobody "
    "writes copies before; ALLOW ALL is READ until then.",
)
ACL_WILDCARD_DENIES = Key(
    "lockstep.acl.wildcard.denies.enabled",
    BOOLEAN,
    False,
    "Lockstep",
    "Whether a DENY of all groups or of all transactional ids (*) is copied with sync.full.acl.enabled. On the target "
    "it also holds for what the target's own applications use.",
)
KEY_LENGTHS = ("128", "192", "256")
CREDENTIAL_PROVIDER = Key(
    "lockstep.credential.provider.class",
    CLASS,
    "lockstep.credentials:FileCredentialProvider",
    "Lockstep",
    "The class that knows the passwords of SCRAM users. lockstep.credentials:EnvironmentCredentialProvider "
    "and lockstep.credentials:DirectoryCredentialProvider come with Lockstep as well (access.md).",
    KeyScope.JOB,
)
CREDENTIAL_STORE = Key(
    "lockstep.credential.store",
    ValueType(FOLDER.parse, "a file or folder on this machine"),
    Path(".lockstep/credentials"),
    "Lockstep",
    "The encrypted file in which FileCredentialProvider keeps passwords, relative to the working directory; "
    "for DirectoryCredentialProvider the folder of a file for each user.",
    KeyScope.JOB,
)
ENCODER_SECRET: Key[str | None] = Key(
    "password.encoder.secret",
    long_text(SECRET_LENGTH, "; a shorter one from before may stay as password.encoder.old.secret"),
    None,
    "KIP-226",
    "What the passwords that Lockstep keeps are encrypted with: those of lockstep.credential.store, and of overrides.",
    KeyScope.JOB,
)
ENCODER_OLD_SECRET: Key[str | None] = Key(
    "password.encoder.old.secret",
    TEXT,
    None,
    "KIP-226",
    "What password.encoder.secret was before, while passwords are being encrypted with the new one.",
    KeyScope.JOB,
)
ENCODER_KEYFACTORY = Key(
    "password.encoder.keyfactory.algorithm",
    one_of(*(f"PBKDF2WithHmacSHA{bits}" for bits in (512, 384, 256, 224, 1))),
    "PBKDF2WithHmacSHA512",
    "KIP-226",
    "How the key for these passwords is made from password.encoder.secret.",
    KeyScope.JOB,
)
ENCODER_CIPHER = Key(
    "password.encoder.cipher.algorithm",
    one_of("AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"),
    "AES/GCM/NoPadding",
    "KIP-226",
    "The cipher for these passwords, by Java's name. The default is not KIP-226's (CBC): GCM binds a password "
    "to its user or key.",
    KeyScope.JOB,
)
ENCODER_KEY_LENGTH = Key(
    "password.encoder.key.length",
    ValueType(lambda text: int(KEY_LENGTHS[KEY_LENGTHS.index(text)]), ", ".join(KEY_LENGTHS), KEY_LENGTHS),
    256,
    "KIP-226",
    "The length of the key for these passwords, in bits; KIP-226 has this default, Kafka itself 128.",
    KeyScope.JOB,
)
ENCODER_ITERATIONS = Key(
    "password.encoder.iterations",
    integer(1024, 1_000_000),
    210_000,
    "KIP-226",
    "How many rounds make that key from the secret; KIP-226 has 4096.",
    KeyScope.JOB,
)
