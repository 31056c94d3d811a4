"""Just enough of PromQL to see which metrics an expression names, and that its brackets close."""

from __future__ import annotations

import re

TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|\$\{?\w+\}?|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9][0-9a-zA-Z.]*|==|!=|=~|!~|>=|<=|[-+*/%^<>=(){}\[\],:]|\s+'
)
LISTS = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
"""What takes a list of labels in round brackets."""

WORDS = LISTS | {"offset", "bool", "and", "or", "unless"}
PAIRS = {")": "(", "}": "{", "]": "["}


def tokens(expression: str) -> list[str]:
    """Raises ValueError for what is no token."""
    found, at = [], 0
    while at < len(expression):
        match = TOKEN.match(expression, at)
        if match is None:
            raise ValueError(f"{expression!r}: nothing known begins at {expression[at:]!r}")
        found += [match[0]] if match[0].strip() else []
        at = match.end()
    return found


def metrics_in(expression: str) -> set[str]:
    """The metrics that it names. Raises ValueError where brackets do not close."""
    names, open_, labels_of = set(), [], 0
    words = tokens(expression)
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word in PAIRS.values():
            open_.append(word)
        elif word in PAIRS:
            if not open_ or open_.pop() != PAIRS[word]:
                raise ValueError(f"{expression!r}: {word} closes nothing")
            labels_of = labels_of if labels_of <= len(open_) else 0
        elif word in LISTS and after == "(":
            labels_of = len(open_) + 1
        elif _is_name(word, after) and not labels_of and not {"{", "["} & set(open_):
            names.add(word)
    if open_:
        raise ValueError(f"{expression!r}: {open_} is not closed")
    return names


def _is_name(word: str, after: str) -> bool:
    """Of a metric or a label, as far as these two can tell."""
    return bool(re.match(r"[a-zA-Z_:]", word)) and word not in WORDS and after not in ("(", "by", "without")
