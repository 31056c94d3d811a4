"""JKS and JCEKS files as PKCS12, by the `keytool` that comes with the Java that Spark needs anyway.

Both formats are Java's own; no library that is kept well reads them elsewhere. Passwords go through the environment
and standard input of `keytool`, never on its command line; the files in between are in a folder of this user's alone.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

from streaming.errors import LockstepError

JAVA_MAGIC = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
"""How files of JKS and JCEKS begin."""

KEYTOOL_TIMEOUT = 60
"""Seconds; it takes one."""

PROMPTS = 64
"""Key passwords that `keytool` is given, for each key it asks for one where the store's own does not open it."""


def as_pkcs12(data: bytes, password: str | None, key_password: str | None) -> tuple[bytes, str]:
    """The store as PKCS12, and the password made for it. Without a password a store gives what needs none.

    Raises ValueError for a wrong password or a damaged store, LockstepError where there is no keytool.
    """
    kind = "JKS" if data.startswith(JAVA_MAGIC[0]) else "JCEKS"
    secret = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        given, made = Path(folder) / "given", Path(folder) / "made.p12"
        given.write_bytes(data)
        command = [_keytool(), "-importkeystore", "-noprompt", "-srckeystore", str(given), "-srcstoretype", kind]
        command += ["-destkeystore", str(made), "-deststoretype", "PKCS12", "-deststorepass:env", "MADE"]
        if password is not None:
            command += ["-srcstorepass:env", "GIVEN"]
        answers = "\n" * (password is None) + f"{key_password or ''}\n" * PROMPTS
        environment = os.environ | {"GIVEN": password or "", "MADE": secret}
        ended = subprocess.run(
            command,
            input=answers,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=KEYTOOL_TIMEOUT,
        )
        if ended.returncode or not made.exists():
            raise ValueError("keytool cannot open it")
        return made.read_bytes(), secret


def _keytool() -> str:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("keytool", path=f"{home}/bin" if home else None) or shutil.which("keytool")
    if found is None:
        raise LockstepError(
            "a JKS store is read with Java's keytool, which is neither in JAVA_HOME nor on PATH: install Java 17, "
            "21 or 25, or convert the store to PKCS12 or PEM"
        )
    return found
