"""The API in docs/http.md is made from its operations."""

from __future__ import annotations

from app.docs_pages.http_page import HTTP_PAGE, operations, page
from app.http.openapi import API_BASE, document


def test_the_api_on_the_page_is_what_the_operations_say() -> None:
    assert HTTP_PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"


def test_every_path_of_the_document_is_on_the_page() -> None:
    assert [path for path in document("1")["paths"] if f"`{API_BASE}{path}`" not in operations()] == []
