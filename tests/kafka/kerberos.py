"""A Kerberos realm on this machine, by MIT's own programs: `krb5kdc`, `kdb5_util` and `kadmin.local` (Debian's packages
krb5-kdc and krb5-admin-server)."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from app.local.ports import free_ports
from app.local.waiting import wait_for

REALM: Final = "LOCKSTEP.TEST"
PROGRAMS: Final = ("krb5kdc", "kdb5_util", "kadmin.local")
ADMINISTRATORS_FOLDERS: Final = "/usr/sbin:/sbin"
MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
UP_WITHIN: Final = 20.0

CLIENT: Final = """[libdefaults]
  default_realm = {realm}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  udp_preference_limit = 1
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
"""
SERVER: Final = """[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/kadm5.acl
  }}
"""


@dataclass(frozen=True)
class Realm:
    """A realm whose KDC runs."""

    folder: Path
    environment: Mapping[str, str]

    @property
    def java_option(self) -> str:
        """Tells a JVM where the realm is."""
        return f"-Djava.security.krb5.conf={self.folder / 'krb5.conf'}"

    def keytab(self, *principals: str) -> Path:
        """A file with the keys of these, which are made."""
        path = self.folder / f"{secrets.token_hex(4)}.keytab"
        for principal in principals:
            self.administer(f"addprinc -randkey {principal}")
            self.administer(f"ktadd -k {path} -norandkey {principal}")
        return path

    def administer(self, query: str) -> None:
        """Asks the realm's database."""
        self.run("kadmin.local", "-r", REALM, "-q", query)

    def run(self, program: str, *arguments: str) -> None:
        """One of the realm's programs, to its end."""
        done = subprocess.run(
            [found(program), *arguments], env=self.environment, capture_output=True, text=True, check=False, timeout=900
        )
        assert done.returncode == 0, done.stderr


def found(program: str) -> str:
    """Where it is; the test is skipped where it is not."""
    path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:{ADMINISTRATORS_FOLDERS}")
    if path is None:
        pytest.skip(f"no {program} on PATH: Debian's krb5-kdc and krb5-admin-server have a KDC")
    return path


@contextmanager
def realm(folder: Path) -> Iterator[Realm]:
    """A new realm, gone at the end."""
    programs = {name: found(name) for name in PROGRAMS}
    (port,) = free_ports(1)
    words = {"realm": REALM, "port": port, "folder": folder}
    (folder / "krb5.conf").write_text(CLIENT.format(**words))
    (folder / "kdc.conf").write_text(SERVER.format(**words))
    environment = os.environ | {
        "KRB5_CONFIG": str(folder / "krb5.conf"),
        "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
        "KRB5CCNAME": f"FILE:{folder / 'tickets'}",
    }
    made = Realm(folder, environment)
    made.run("kdb5_util", "create", "-s", "-r", REALM, "-P", secrets.token_hex(8))
    with (folder / "kdc.log").open("wb") as log:
        kdc = subprocess.Popen([programs["krb5kdc"], "-n", "-r", REALM], env=environment, stdout=log, stderr=log)
        try:
            wait_for(lambda: "starting" in (folder / "kdc.log").read_text(), UP_WITHIN, "the KDC to serve")
            yield made
        finally:
            kdc.terminate()
            kdc.wait(UP_WITHIN)
