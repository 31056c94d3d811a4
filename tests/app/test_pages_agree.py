"""What README and the pages name is there: commands and options, targets of make, links, metrics, keys, paths."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.cli.lazy_commands import COMMANDS, HELP
from app.local.jars import PROJECT
from app.properties.known import read_names
from sinks.engine.metrics import FAMILIES
from sinks.failover.drill import DRILL_PREFIX
from streaming.flow import Flow
from streaming.mm2.internal_topic_names import internal_topics
from streaming.mm2.replication_policy import DefaultReplicationPolicy

FIGURES = PROJECT / "bench" / "figures"
PAGES = sorted([*PROJECT.glob("*.md"), *(PROJECT / "docs").glob("*.md")])
REPORTS = sorted(FIGURES.glob("*.md"))
MADE_LATER = frozenset({"conf/mirror.properties"})
"""What users make."""

IN_CODE = re.compile(r"```.*?\n(.*?)```|``(.+?)``|`([^`\n]+)`", re.DOTALL)
COMMAND = re.compile(r"(?:^\s*|bin/|\" |&& )lockstep ([a-z]+)((?: [^#|;&]*)?)")


def code(page: Path) -> Iterator[str]:
    """Every line of code of a page, in a block or in its text."""
    for found in IN_CODE.finditer(page.read_text()):
        yield from next(filter(None, found.groups())).splitlines()


@cache
def command_of(name: str) -> Any:
    """The command, as Click has it."""
    return COMMANDS[name].load(name)


def options_of(name: str, words: list[str]) -> set[str]:
    """Of a command, or of the one below it that these words name."""
    command = command_of(name)
    for word in words:
        command = getattr(command, "commands", {}).get(word, command)
    return {option for one in command.params for option in one.opts} | {"-h", "--help"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_command_that_is_named_is_there_with_its_options(page: Path) -> None:
    for line in code(page):
        for name, rest in COMMAND.findall(line):
            assert name in {*COMMANDS, HELP}, line
            words = rest.split()
            said = {word.strip("[]().,…").split("=")[0] for word in words if word.strip("[(").startswith("-")}
            assert name == HELP or said - {"", "-", "--"} <= options_of(name, words), line


def test_an_option_that_there_is_not_would_be_noticed() -> None:
    assert "--group" in options_of("offsets", [])
    assert "--group" not in options_of("offsets", ["translate"])
    assert COMMAND.findall(".venv/bin/lockstep plan --out FILE  # as is") == [("plan", " --out FILE  ")]


def test_every_figure_of_the_summary_is_in_a_report() -> None:
    """What a benchmark writes anew is written anew in docs/benchmarks.md as well."""
    reports = "\n".join(report.read_text() for report in REPORTS)
    rows = [line for line in (PROJECT / "docs" / "benchmarks.md").read_text().splitlines() if line.startswith("|")]
    figures = [figure for row in rows for figure in re.findall(r"(?<![\d.,])\d+(?:,\d{3})*(?:\.\d+)?", row)]
    assert [figure for figure in figures if not re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d])", reports)] == []


@pytest.mark.parametrize("page", [*PAGES, *REPORTS], ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


def test_every_page_and_heading_that_code_and_conf_name_is_there() -> None:
    """In messages, comments, alerts and manifests."""
    folders = [PROJECT / name for name in ("app", "sinks", "streaming", "lockstep", "bench", "conf")]
    for path in (path for folder in folders for path in folder.rglob("*") if path.suffix in NAMING_PAGES):
        for name, anchor in re.findall(r"\b(docs/[\w-]+\.md)(?:#([\w-]+))?", path.read_text()):
            assert (PROJECT / name).exists() or name in MADE_LATER, (path, name)
            assert not anchor or anchor in anchors(PROJECT / name), (path, name, anchor)


NAMING_PAGES = frozenset({".py", ".yml", ".yaml", ".json", ".properties", ".service", ".js", ".html", ".conf", ".tpl"})


@cache
def anchors(page: Path) -> frozenset[str]:
    """Of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings)


def test_every_target_of_make_that_is_named_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for line in code(page):
            assert set(re.findall(r"^\s*make ([a-z-]+)", line)) <= targets, (page, line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_path_and_module_that_is_named_is_there(page: Path) -> None:
    for line in code(page):
        for path in re.findall(r"(?<![\w/.-])((?:conf|docs|bench|tests|app|sinks|streaming)/[\w./-]*\w)", line):
            assert (PROJECT / path).exists() or path in MADE_LATER, (path, line)
        for module in re.findall(r"python -m (bench[\w.]*)", line):
            path = PROJECT / module.replace(".", "/")
            assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), line


def test_every_metric_that_is_named_is_exported() -> None:
    exported = {family.name for family in FAMILIES}
    for page in PAGES:
        for name in re.findall(r"`(lockstep_\w+)[`{]", page.read_text()):
            assert re.sub(r"_(bucket|sum|count)$", "", name) in exported or name in exported, (page, name)


def test_every_key_that_is_named_is_read() -> None:
    """`lockstep.policies` and its like are modules."""
    modules = {f"lockstep.{path.stem}" for path in (PROJECT / "lockstep").glob("*.py")}
    for page in PAGES:
        for name in re.findall(r"(?<![\w./-])(lockstep\.[a-z.]+[a-z])(?=[`=\s])", page.read_text()):
            if not any(name == one or name.startswith(one + ".") for one in modules):
                assert {name, name.removeprefix("lockstep.")} & read_names(), (page, name)


def test_the_names_of_what_is_lockstep_s_own_are_on_one_page() -> None:
    page = (PROJECT / "docs" / "operations.md").read_text()
    own = page[page.index("## What is Lockstep's own") : page.index("## Upgrade and rollback")]
    topics = internal_topics(DefaultReplicationPolicy(), Flow("a", "b"), "source").ours
    assert [name for name in (*topics, DRILL_PREFIX) if name not in own] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_a_list_or_table_begins_after_a_blank_line_or_a_heading(page: Path) -> None:
    """GitHub needs none, the site's Markdown does."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    ends = ("", "#")
    lines = itertools.pairwise(["", *text.splitlines()])
    wrong = [line for last, line in lines if _kind(line) not in ("", _kind(last)) and last.strip()[:1] not in ends]
    assert wrong == [] or page.name == "CHANGELOG.md"


def _kind(line: str) -> str:
    """Of a line that belongs to a list or a table; a heading may stand before either."""
    return "list" if re.match(r"- |\d+\. |  ", line) else "table" if line.startswith("|") else ""


def test_every_page_is_once_in_the_navigation_of_the_site_and_of_one_kind() -> None:
    """What is not in `nav` of mkdocs.yml is not found by readers; the four kinds are its sections."""
    site = yaml.safe_load((PROJECT / "mkdocs.yml").read_text())
    sections = {name: pages for one in site["nav"] for name, pages in one.items() if isinstance(pages, list)}
    assert list(sections) == ["Tutorial", "How-to", "Reference", "Explanation"]
    listed = [page for one in site["nav"] for pages in one.values() for page in _listed(pages)]
    written = [str(page.relative_to(PROJECT)) for page in PAGES]
    assert sorted(listed) == sorted(written)


def _listed(pages: str | list[dict[str, str]]) -> list[str]:
    return [pages] if isinstance(pages, str) else [page for one in pages for page in one.values()]
