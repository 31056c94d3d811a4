"""Passwords encrypted as Kafka's brokers do it (KIP-226, "Securing passwords").

An encoded password is text: `NAME:VALUE` pairs separated by commas, in any order, bytes in base64.

| name                      | value                                                                             |
|---------------------------|-----------------------------------------------------------------------------------|
| `keyFactoryAlgorithm`     | how the key is made from the secret, `PBKDF2WithHmacSHA512`                       |
| `cipherAlgorithm`         | `AES/CBC/PKCS5Padding`                                                            |
| `keyLength`               | bits                                                                              |
| `salt`, `iterations`      | of the key; the salt is made anew for every password                              |
| `initializationVector`    | of the cipher                                                                     |
| `authenticationTagLength` | bits, with AES/GCM/NoPadding alone                                                |
| `encryptedPassword`       | what the cipher made of the password in UTF-8; with GCM the tag comes after it    |
| `passwordLength`          | in Java's characters (UTF-16), by which a wrong secret is noticed                 |

All of it is stored with the password, so that it can be read after the settings have changed. Source:
`org.apache.kafka.security.EncryptingPasswordEncoder` of Kafka 3.9, the last version that has it.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

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
"""Java's names of key factories."""

KEY_LENGTHS = (128, 192, 256)
SALT_BYTES, CBC_VECTOR_BYTES, GCM_VECTOR_BYTES, TAG_BITS = 256, 16, 12, 128
"""As Kafka and Java write them."""

_T = TypeVar("_T")

TAG_LENGTH = "authenticationTagLength"


class UndecodablePassword(LockstepError):
    """An encoded password that is damaged, or was made with another secret."""


class _Sealed(NamedTuple):
    """What a cipher made: its vector, and the encrypted bytes."""

    vector: bytes
    encrypted: bytes


def _cbc_encrypt(key: bytes, plain: bytes) -> _Sealed:
    vector, padder = os.urandom(CBC_VECTOR_BYTES), padding.PKCS7(algorithms.AES.block_size).padder()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    padded = padder.update(plain) + padder.finalize()
    return _Sealed(vector, encryptor.update(padded) + encryptor.finalize())


def _cbc_decrypt(key: bytes, sealed: _Sealed) -> bytes:
    decryptor = Cipher(algorithms.AES(key), modes.CBC(sealed.vector)).decryptor()
    unpadder = padding.PKCS7(algorithms.AES.block_size).unpadder()
    padded = decryptor.update(sealed.encrypted) + decryptor.finalize()
    return unpadder.update(padded) + unpadder.finalize()


def _gcm_encrypt(key: bytes, plain: bytes) -> _Sealed:
    vector = os.urandom(GCM_VECTOR_BYTES)
    return _Sealed(vector, AESGCM(key).encrypt(vector, plain, None))


def _gcm_decrypt(key: bytes, sealed: _Sealed) -> bytes:
    return AESGCM(key).decrypt(sealed.vector, sealed.encrypted, None)


@dataclass(frozen=True)
class _CipherAlgorithm:
    encrypt: Callable[[bytes, bytes], _Sealed]
    decrypt: Callable[[bytes, _Sealed], bytes]
    parameters: Mapping[str, str] = field(default_factory=dict)


CIPHERS: Mapping[str, _CipherAlgorithm] = {
    "AES/CBC/PKCS5Padding": _CipherAlgorithm(_cbc_encrypt, _cbc_decrypt),
    "AES/GCM/NoPadding": _CipherAlgorithm(_gcm_encrypt, _gcm_decrypt, {TAG_LENGTH: str(TAG_BITS)}),
}
"""Java's names of ciphers. Others that Java has (DES among them) are refused."""


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """`password.encoder.*` (KIP-226). `key_length` in bits. `repr` shows neither secret.

    `old_secret`: what passwords were encoded with before `secret` was changed.
    """

    secret: str = field(repr=False)
    old_secret: str | None = field(default=None, repr=False)
    keyfactory_algorithm: str = "PBKDF2WithHmacSHA512"
    cipher_algorithm: str = "AES/CBC/PKCS5Padding"
    key_length: int = 256
    iterations: int = 4096


class PasswordEncoder:
    """Encodes and decodes with one secret."""

    def __init__(self, secret: str, settings: EncoderSettings) -> None:
        """`settings`: how to encode. Raises LockstepError for an empty secret, an algorithm or length not known."""
        if not secret:
            raise LockstepError(
                "password.encoder.secret is missing or empty: passwords are kept encrypted with it only"
            )
        self._secret = secret
        self._settings = settings
        _check("password.encoder.keyfactory.algorithm", settings.keyfactory_algorithm, KEY_FACTORIES)
        _check("password.encoder.cipher.algorithm", settings.cipher_algorithm, CIPHERS)
        _check("password.encoder.key.length", settings.key_length, dict.fromkeys(KEY_LENGTHS))
        if settings.iterations < 1:
            raise LockstepError("password.encoder.iterations must be 1 or more")

    def encode(self, password: str) -> str:
        """The text that Kafka's encoder would make, but for salt and vector, which are random."""
        settings, salt = self._settings, os.urandom(SALT_BYTES)
        cipher = CIPHERS[settings.cipher_algorithm]
        key = self._key(settings.keyfactory_algorithm, settings.key_length, salt, settings.iterations)
        sealed = cipher.encrypt(key, password.encode())
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
        }
        return ",".join(f"{name}:{value}" for name, value in fields.items())

    def decode(self, encoded: str) -> str:
        """The password. Raises UndecodablePassword for damaged text, and for another secret."""
        try:
            fields = _Fields(encoded)
            cipher = fields.one_of("cipherAlgorithm", CIPHERS)
            for name, value in cipher.parameters.items():
                fields.one_of(name, {value: None})
            factory = fields.text("keyFactoryAlgorithm")
            key = self._key(factory, fields.number("keyLength"), fields.bytes("salt"), fields.number("iterations"))
            sealed = _Sealed(fields.bytes("initializationVector"), fields.bytes("encryptedPassword"))
            password = cipher.decrypt(key, sealed).decode()
        except (ValueError, OverflowError, InvalidTag):
            # The cause is kept out: it may tell something of the key.
            raise UndecodablePassword("a password could not be decoded: damaged, or made with another secret") from None
        if _java_length(password) != fields.number("passwordLength"):
            raise UndecodablePassword("a password could not be decoded: it was made with another secret")
        return password

    def _key(self, factory: str, length: int, salt: bytes, iterations: int) -> bytes:
        if factory not in KEY_FACTORIES or length not in KEY_LENGTHS:
            raise UndecodablePassword(f"a password could not be decoded: {factory} with {length} bits is not supported")
        kdf = PBKDF2HMAC(KEY_FACTORIES[factory](), length // 8, salt, iterations)
        return kdf.derive(self._secret.encode())


class _Fields:
    """The pairs of an encoded password. Whatever is wrong with them is a ValueError, or UndecodablePassword."""

    def __init__(self, encoded: str) -> None:
        pairs = (part.strip().rpartition(":") for part in encoded.split(","))
        self._values = {name.strip(): value.strip() for name, _, value in pairs}

    def text(self, name: str) -> str:
        if name not in self._values:
            raise UndecodablePassword(f"an encoded password has no {name}: it is damaged")
        return self._values[name]

    def number(self, name: str) -> int:
        return int(self.text(name))

    def bytes(self, name: str) -> bytes:
        return base64.b64decode(self.text(name), validate=True)

    def one_of(self, name: str, allowed: Mapping[str, _T]) -> _T:
        value = self.text(name)
        if value not in allowed:
            raise UndecodablePassword(f"a password could not be decoded: its {name} is not {', '.join(allowed)}")
        return allowed[value]


def _check(key: str, value: object, allowed: Mapping[Any, object]) -> None:
    if value not in allowed:
        raise LockstepError(f"{key}={value} is not supported; allowed: {', '.join(map(str, allowed))}")


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _java_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
