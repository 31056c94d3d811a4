"""The ciphers that passwords are encrypted with, by Java's names. Pure, but for the vectors, which are random."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

CBC_VECTOR_BYTES, GCM_VECTOR_BYTES, TAG_BITS = 16, 12, 128
"""As Java has them."""

TAG_LENGTH = "authenticationTagLength"


class Sealed(NamedTuple):
    """What a cipher made: its vector, and the encrypted bytes."""

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
    """Key, text, and what is authenticated with it; `binds`: whether it can be."""

    encrypt: Callable[[bytes, bytes, bytes | None], Sealed]
    decrypt: Callable[[bytes, Sealed, bytes | None], bytes]
    parameters: Mapping[str, str] = field(default_factory=dict)
    binds: bool = False


CIPHERS: Mapping[str, CipherAlgorithm] = {
    "AES/CBC/PKCS5Padding": CipherAlgorithm(_cbc_encrypt, _cbc_decrypt),
    "AES/GCM/NoPadding": CipherAlgorithm(_gcm_encrypt, _gcm_decrypt, {TAG_LENGTH: str(TAG_BITS)}, binds=True),
}
"""Java's names of ciphers. Others that Java has (DES among them) are refused."""
