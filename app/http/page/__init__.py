"""The page of a running job: files that it serves as they are. All that it shows comes from `/api/v1`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PAGE_FOLDER = Path(__file__).parent
PAGE_BASE = "/page/"
INDEX = "index.html"

CONTENT_TYPES: Mapping[str, str] = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
"""By ending; what has another one is not served."""


def page_files() -> Mapping[str, Path]:
    files = {PAGE_BASE + file.name: file for file in sorted(PAGE_FOLDER.iterdir()) if file.suffix in CONTENT_TYPES}
    return {"/": PAGE_FOLDER / INDEX} | {path: file for path, file in files.items() if file.name != INDEX}


def page_routes() -> list[Route]:
    """Returns a route for each of the page's files. Reads each file once."""
    return [_route(path, file.read_bytes(), CONTENT_TYPES[file.suffix]) for path, file in page_files().items()]


def _route(path: str, content: bytes, media_type: str) -> Route:
    async def answer(_: Request) -> Response:
        return Response(content, media_type=media_type)

    return Route(path, answer)
