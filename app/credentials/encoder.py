"""Encrypts passwords in the format of Kafka's brokers (KIP-226, "Securing passwords"), with stronger defaults.

An encoded password is text: `NAME:VALUE` pairs separated by commas, in any order, bytes in base64.

| name                      | value                                                                             |
|---------------------------|-----------------------------------------------------------------------------------|
| `keyFactoryAlgorithm`     | how the key is derived from the secret, e.g. `PBKDF2WithHmacSHA512`               |
| `cipherAlgorithm`         | `AES/GCM/NoPadding`; Kafka's own is `AES/CBC/PKCS5Padding`                        |
| `keyLength`               | bits                                                                              |
| `salt`, `iterations`      | of the key derivation; every encoder has a new salt                               |
| `initializationVector`    | of the cipher                                                                     |
| `authenticationTagLength` | bits, only with AES/GCM/NoPadding                                                 |
| `encryptedPassword`       | the encrypted UTF-8 password; with GCM the tag follows                            |
| `passwordLength`          | in Java's characters (UTF-16); a wrong secret gives another length                |
| `associatedData`          | `name` if GCM authenticates the entry's name too; Kafka has no such field         |

All fields are stored with the password, so that it can be read after the settings have changed. Source:
`org.apache.kafka.security.EncryptingPasswordEncoder` of Kafka 3.9, the last version that has it. This module reads what
that class wrote. That class reads what this module encodes without a name.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

from streaming.errors import LockstepError

KEY_FACTORIES: Mapping[str, Callable[[], hashes.HashAlgorithm]] = {
    "PBKDF2WithHmacSHA512": hashes.SHA512,
    "PBKDF2WithHmacSHA384": hashes.SHA384,
    "PBKDF2WithHmacSHA256": hashes.SHA256,
    "PBKDF2WithHmacSHA224": hashes.SHA224,
    "PBKDF2WithHmacSHA1": hashes.SHA1,
}
"""Hash algorithms by Java's name of the key factory."""

KEY_LENGTHS = (128, 192, 256)
SALT_BYTES = 256
"""Bytes of a salt, as in Kafka."""

ITERATIONS = 210_000
"""Iterations of PBKDF2 with HMAC-SHA512 (OWASP's password storage cheat sheet)."""

MAX_ITERATIONS = 1_000_000
"""Limit of iterations in a stored value. Decoding one with more would take minutes."""

KEYS_KEPT = 64
"""Limit of derived keys in the cache. All values of one encoder share a salt, so reading them derives one key."""

_T = TypeVar("_T")

ASSOCIATED, NAME = "associatedData", "name"


class UndecodablePassword(LockstepError):
    """An encoded password that is damaged, or was encoded with another secret."""


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """Values of `password.encoder.*` (KIP-226). `key_length`: bits. `old_secret`: the secret before `secret`. `repr`
    shows neither secret."""

    secret: str = field(repr=False)
    old_secret: str | None = field(default=None, repr=False)
    keyfactory_algorithm: str = "PBKDF2WithHmacSHA512"
    cipher_algorithm: str = "AES/GCM/NoPadding"
    key_length: int = 256
    iterations: int = ITERATIONS


class PasswordEncoder:
    """Encodes with the secret, and decodes with it or the old one. The settings are already checked."""

    def __init__(self, settings: EncoderSettings) -> None:
        self._settings, self._salt = settings, os.urandom(SALT_BYTES)

    def encode(self, password: str, name: str | None = None) -> str:
        """Returns the text in the format of Kafka's encoder, with a random salt and vector.

        `name`: the owner. GCM binds the password to that name; Kafka's encoder then cannot read it.
        """
        settings, salt = self._settings, self._salt
        cipher = CIPHERS[settings.cipher_algorithm]
        key = _key(settings.secret, settings.keyfactory_algorithm, settings.key_length, salt, settings.iterations)
        associated = name.encode() if name is not None and cipher.binds else None
        sealed = cipher.encrypt(key, password.encode(), associated)
        fields = {
            "keyFactoryAlgorithm": settings.keyfactory_algorithm,
            "cipherAlgorithm": settings.cipher_algorithm,
            "keyLength": str(settings.key_length),
            "salt": _base64(salt),
            "iterations": str(settings.iterations),
            "initializationVector": _base64(sealed.vector),
            **cipher.parameters,
            "encryptedPassword": _base64(sealed.encrypted),
            "passwordLength": str(_java_length(password)),
            **({} if associated is None else {ASSOCIATED: NAME}),
        }
        return ",".join(f"{key}:{text}" for key, text in fields.items())

    def decode(self, encoded: str, name: str | None = None) -> str:
        """Returns the password. Raises as `read`."""
        return self.read(encoded, name)[0]

    def read(self, encoded: str, name: str | None = None) -> tuple[str, bool]:
        """Returns the password, and whether `encode` with a name would use the same secret and settings now. Raises
        UndecodablePassword for a damaged text, another secret, or another owner's password."""
        try:
            return _decoded(self._settings.secret, encoded, name), self._is_current(encoded)
        except UndecodablePassword:
            if self._settings.old_secret is None:
                raise
            return _decoded(self._settings.old_secret, encoded, name), False

    def _is_current(self, encoded: str) -> bool:
        settings, fields = self._settings, _Fields(encoded)
        try:
            iterations = fields.number("iterations")
        except ValueError:
            return False
        chosen = (settings.keyfactory_algorithm, settings.cipher_algorithm, str(settings.key_length))
        found = tuple(map(fields.text, ("keyFactoryAlgorithm", "cipherAlgorithm", "keyLength")))
        bound = fields.has(ASSOCIATED) or not CIPHERS[settings.cipher_algorithm].binds
        return bound and found == chosen and iterations >= settings.iterations


def _decoded(secret: str, encoded: str, name: str | None) -> str:
    try:
        fields = _Fields(encoded)
        cipher = fields.one_of("cipherAlgorithm", CIPHERS)
        for parameter, value in cipher.parameters.items():
            fields.one_of(parameter, {value: None})
        factory = fields.text("keyFactoryAlgorithm")
        key = _key(secret, factory, fields.number("keyLength"), fields.bytes("salt"), fields.number("iterations"))
        sealed = Sealed(fields.bytes("initializationVector"), fields.bytes("encryptedPassword"))
        associated = (name or "").encode() if fields.has(ASSOCIATED) else None
        password = cipher.decrypt(key, sealed, associated).decode()
    except (ValueError, OverflowError, InvalidTag):
        # The cause is kept out: it may tell something of the key.
        raise UndecodablePassword("a password could not be decoded: damaged, or made with another secret") from None
    if _java_length(password) != fields.number("passwordLength"):
        raise UndecodablePassword("a password could not be decoded: it was made with another secret")
    return password


def _key(secret: str, factory: str, length: int, salt: bytes, iterations: int) -> bytes:
    if factory not in KEY_FACTORIES or length not in KEY_LENGTHS:
        raise UndecodablePassword(
            f"a password could not be decoded: keyFactoryAlgorithm {factory} with keyLength {length} is not supported"
        )
    if iterations > MAX_ITERATIONS:
        raise UndecodablePassword(f"a password could not be decoded: it asks for {iterations} iterations")
    return _derived(secret, factory, length, salt, iterations)


@lru_cache(maxsize=KEYS_KEPT)
def _derived(secret: str, factory: str, length: int, salt: bytes, iterations: int) -> bytes:
    return PBKDF2HMAC(KEY_FACTORIES[factory](), length // 8, salt, iterations).derive(secret.encode())


class _Fields:
    """The fields of an encoded password. Access raises ValueError or UndecodablePassword for a wrong field."""

    def __init__(self, encoded: str) -> None:
        pairs = (part.strip().rpartition(":") for part in encoded.split(","))
        self._values = {name.strip(): value.strip() for name, _, value in pairs}

    def text(self, name: str) -> str:
        if name not in self._values:
            raise UndecodablePassword(f"an encoded password has no {name}: it is damaged")
        return self._values[name]

    def has(self, name: str) -> bool:
        return name in self._values

    def number(self, name: str) -> int:
        return int(self.text(name))

    def bytes(self, name: str) -> bytes:
        return base64.b64decode(self.text(name), validate=True)

    def one_of(self, name: str, allowed: Mapping[str, _T]) -> _T:
        value = self.text(name)
        if value not in allowed:
            raise UndecodablePassword(f"a password could not be decoded: its {name} is not {', '.join(allowed)}")
        return allowed[value]


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _java_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


# The ciphers that passwords are encrypted with, by Java's names. Pure, but for the vectors, which are random.


CBC_VECTOR_BYTES, GCM_VECTOR_BYTES, TAG_BITS = 16, 12, 128
"""Bytes of the CBC vector, bytes of the GCM vector, bits of the GCM tag: Java's values."""

TAG_LENGTH = "authenticationTagLength"


class Sealed(NamedTuple):
    """The result of encryption: the vector and the encrypted bytes."""

    vector: bytes
    encrypted: bytes


def _cbc_encrypt(key: bytes, plain: bytes, _: bytes | None) -> Sealed:
    vector, padder = os.urandom(CBC_VECTOR_BYTES), padding.PKCS7(algorithms.AES.block_size).padder()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    padded = padder.update(plain) + padder.finalize()
    return Sealed(vector, encryptor.update(padded) + encryptor.finalize())


def _cbc_decrypt(key: bytes, sealed: Sealed, _: bytes | None) -> bytes:
    decryptor = Cipher(algorithms.AES(key), modes.CBC(sealed.vector)).decryptor()
    unpadder = padding.PKCS7(algorithms.AES.block_size).unpadder()
    padded = decryptor.update(sealed.encrypted) + decryptor.finalize()
    return unpadder.update(padded) + unpadder.finalize()


def _gcm_encrypt(key: bytes, plain: bytes, associated: bytes | None) -> Sealed:
    vector = os.urandom(GCM_VECTOR_BYTES)
    return Sealed(vector, AESGCM(key).encrypt(vector, plain, associated))


def _gcm_decrypt(key: bytes, sealed: Sealed, associated: bytes | None) -> bytes:
    return AESGCM(key).decrypt(sealed.vector, sealed.encrypted, associated)


@dataclass(frozen=True)
class CipherAlgorithm:
    """Encrypts and decrypts a text with a key. `binds`: whether it can authenticate further data."""

    encrypt: Callable[[bytes, bytes, bytes | None], Sealed]
    decrypt: Callable[[bytes, Sealed, bytes | None], bytes]
    parameters: Mapping[str, str] = field(default_factory=dict)
    binds: bool = False


CIPHERS: Mapping[str, CipherAlgorithm] = {
    "AES/CBC/PKCS5Padding": CipherAlgorithm(_cbc_encrypt, _cbc_decrypt),
    "AES/GCM/NoPadding": CipherAlgorithm(_gcm_encrypt, _gcm_decrypt, {TAG_LENGTH: str(TAG_BITS)}, binds=True),
}
"""Ciphers by Java's name. Lockstep refuses Java's other ciphers, DES among them."""
