"""Writes the checksums of every set of jars again: `make checksums`, after a version was changed.

`python -m tools.renew_checksums package.module:SETS …`: the sets of these tuples of JarSet.
"""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from operator import attrgetter
from pathlib import Path

from app.local.jar_sets import JarSet
from app.local.jars import checksums, download


def renew(jars: JarSet) -> None:
    """Fetch a set and write its list of checksums. Raises LockstepError, and then the old list stays."""
    with tempfile.TemporaryDirectory() as work:
        found = checksums(download(Path(work), Path(work), jars))
    jars.checksums.mkdir(exist_ok=True)
    jars.list_file.write_text("".join(f"{digest}  {name}\n" for name, digest in found.items()), encoding="utf-8")


if __name__ == "__main__":
    for reference in sys.argv[1:]:
        module, _, name = reference.partition(":")
        for one in attrgetter(name)(import_module(module)):
            renew(one)
