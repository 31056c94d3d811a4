"""Sentences are short and plain: none in the pages or in code is too long or uses a banned phrase.

How it counts:

- A page's text is its paragraphs, list items, headings and table cells, each by itself. Blocks of code, HTML comments
  and the addresses of links are left out; `code` counts as one word. CHANGELOG.md is left out.
- Code's text is docstrings, comments (successive lines are one text) and every other string of four words or more.
  What an f-string puts in counts as one word. Each line of a string with several lines that is no docstring is a text
  by itself: such strings are tables, traces and programs.
- A sentence ends at a full stop, an exclamation or question mark before a space or the end of its text.
  A word has at least one letter or digit. So a colon or a semicolon ends no sentence.
- A banned phrase counts wherever it stands outside of `code`, in capitals too, once for each time.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from app.local.jars import PROJECT

MOST_WORDS = 30
"""Of one sentence."""

BANNED = {
    "of which": "say which thing has what: a sentence of its own",
    "of whom": "a sentence of its own",
    "in which case": "a sentence of its own",
    "nobody": "say which program or person does not",
    "somebody": "the operator, another client, another process",
    "anybody": "the operator, any client",
    "whoever": "the operator, the process that",
    "what is none": "say what it is",
    "that is none": "say what it is",
    "those of": "repeat the noun",
    "those which": "repeat the noun",
    "let go of": "release",
    "lets go of": "releases",
    "in its stead": "in its place, or say which one",
}
"""Phrases that make a reader go back, with what to write in their place."""

PAGES = sorted(
    [
        *(PROJECT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
        *(PROJECT / "docs").glob("*.md"),
        *(PROJECT / "bench" / "figures").glob("*.md"),
    ]
)
CODE = ("lockstep", "app", "sinks", "streaming", "bench", "tools", "tests")

WORD = re.compile(r"\S*\w\S*")
SENTENCE = re.compile(r"(?<=[.!?])[\"')\]*_]*\s+")
PHRASE = re.compile(r"\b(?:" + "|".join(map(re.escape, BANNED)) + r")\b", re.IGNORECASE)
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
HTML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
IN_CODE = re.compile(r"``.+?``|`[^`]+`", re.DOTALL)
NEW_TEXT = re.compile(r"^\s*(?:#+ |[-*] |\d+\. |> )|\n\s*\n", re.MULTILINE)


def plain(text: str) -> str:
    """Without addresses of links, and with each `code` as one word."""
    return IN_CODE.sub("code", LINK.sub(r"\1", text))


def texts_of_page(page: str) -> Iterator[str]:
    """Paragraphs, list items, headings and cells."""
    page = HTML_COMMENT.sub("\n\n", FENCED.sub("\n\n", page))
    prose = []
    for line in page.splitlines():
        if line.lstrip().startswith("|"):
            yield from (cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")))
            prose.append("")
        elif line.startswith("#"):
            yield line.lstrip("# ")
            prose.append("")
        else:
            prose.append(line)
    yield from (part.strip() for part in NEW_TEXT.split("\n".join(prose)) if part.strip())


def texts_of_code(source: str) -> Iterator[str]:
    """Docstrings, comments and messages."""
    comment: list[str] = []
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != last + 1 and comment:
                yield from texts_of_page("\n".join(comment))
                comment = []
            comment.append(token.string.lstrip("#").removeprefix(" "))
            last = token.start[0]
    if comment:
        yield from texts_of_page("\n".join(comment))
    within, docstrings = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr):
            docstrings.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            within |= set(map(id, node.values))
            yield from _string("".join(_part(value) for value in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in within:
            yield from _message(node.value) if id(node) in docstrings else _string(node.value)


def _part(value: ast.expr) -> str:
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else "x"


def _string(text: str) -> Iterator[str]:
    """Line by line."""
    for line in text.splitlines():
        yield from _message(line)


def _message(text: str) -> Iterator[str]:
    """What has four words at least; a docstring's paragraphs and list items apart."""
    if len(WORD.findall(text)) >= 4:
        yield from texts_of_page(text)


def long_sentences(texts: Iterable[str]) -> list[str]:
    """With more than `MOST_WORDS`."""
    found = [sentence for text in texts for sentence in SENTENCE.split(plain(text))]
    return [" ".join(sentence.split()) for sentence in found if len(WORD.findall(sentence)) > MOST_WORDS]


def banned_phrases(texts: Iterable[str]) -> list[str]:
    """Each with some words around it."""
    joined = (" ".join(plain(text).split()) for text in texts)
    return [text[max(0, found.start() - 40) : found.end() + 40] for text in joined for found in PHRASE.finditer(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_a_page_has_no_long_sentence(page: Path) -> None:
    assert long_sentences(texts_of_page(page.read_text())) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_a_page_has_no_banned_phrase(page: Path) -> None:
    assert banned_phrases(texts_of_page(page.read_text())) == []


@cache
def in_code() -> dict[str, list[str]]:
    """Each module's texts, by its path."""
    paths = [path for folder in CODE for path in sorted((PROJECT / folder).rglob("*.py")) if path != Path(__file__)]
    return {str(path.relative_to(PROJECT)): list(texts_of_code(path.read_text())) for path in paths}


@pytest.mark.parametrize("search", [long_sentences, banned_phrases])
def test_code_is_plain(search: Callable[[Iterable[str]], list[str]]) -> None:
    found = [f"{path}: {one}" for path, texts in in_code().items() for one in search(texts)]
    assert found == []


LONG = "word " * MOST_WORDS + "word."


@pytest.mark.parametrize(
    ("page", "noticed"),
    [
        (LONG, True),
        (f"- {LONG}", True),
        (f"| cell | {LONG} |", True),
        ("word " * 20 + "word. " + "word " * 20 + "word.", False),
        ("word " * 20 + "\n\n" + "word " * 20, False),
        ("word " * 20 + "\n- " + "word " * 20, False),
        (f"```\n{LONG}\n```", False),
        (f"`{LONG}` is code.", False),
        ("word " * 20 + "e.g.` a b c d e f g h i j k l`.", False),
    ],
)
def test_a_long_sentence_of_a_page_is_noticed(page: str, noticed: bool) -> None:
    assert bool(long_sentences(texts_of_page(page))) is noticed


@pytest.mark.parametrize(
    ("source", "noticed"),
    [
        (f'"""{LONG}"""', True),
        (f"# {LONG}", True),
        ("# " + "word " * 20 + "\n# " + "word " * 20, True),
        ("# " + "word " * 20 + "\npass\n# " + "word " * 20, False),
        (f'raise ValueError(f"{{x}} {LONG}")', True),
        ('TRACE = """' + "word " * 20 + "\n" + "word " * 20 + '"""', False),
        ("a = 1", False),
    ],
)
def test_a_long_sentence_of_code_is_noticed(source: str, noticed: bool) -> None:
    assert bool(long_sentences(texts_of_code(source))) is noticed


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Nobody knows.", 1),
        ("The ones of\nwhich we speak, and somebody.", 2),
        ("`nobody` is a user.", 0),
        ("thoseof", 0),
    ],
)
def test_a_banned_phrase_is_noticed(text: str, count: int) -> None:
    assert len(banned_phrases(texts_of_page(text))) == count
