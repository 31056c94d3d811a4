"""The script that spark-submit runs. Adds the parent folder to the path, where the packages are."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)

from app.main import main  # noqa: E402 - found only after the line above

if __name__ == "__main__":
    main()
