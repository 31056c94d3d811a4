"""Selects the principals whose ACLs Lockstep syncs, and maps their names to names on the target. Pure.

A filter's pattern matches a whole principal, `User:alice`, or the name of a `User:` alone. Commas separate the
patterns, as in MM2's lists of topics. A pattern writes a comma of a name (`CN=alice,OU=x`) as `\\x2c`.

A mapping is written like Kafka's `ssl.principal.mapping.rules` (KIP-371, `SslPrincipalMapper`): rules separated by
commas. A rule is `RULE:pattern/replacement/`, with `L` or `U` behind it for lower or upper case, or `DEFAULT`, which
changes nothing. The first rule whose pattern matches the whole name gives the new one. Rules see what follows `User:`;
other types of principals, and `User:*`, keep their names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from sinks.kafka.ports.acl_binding import EVERYONE, WILDCARD
from streaming.errors import LockstepError
from streaming.mm2.java_regex import compile_java
from streaming.mm2.replication_filters import DefaultTopicFilter

PRINCIPALS = "lockstep.acl.principals"
PRINCIPALS_EXCLUDE = "lockstep.acl.principals.exclude"
PROTECTED = "lockstep.acl.principals.protected"
ADOPT = "lockstep.scram.users.adopt"
MAPPING = "lockstep.acl.principal.mapping"

USER_TYPE = "User:"
UNCHANGED = "DEFAULT"

RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|.*?"
SPLITTER = re.compile(rf"\s*({RULE})\s*(?:,\s*|\Z)", re.ASCII)
PARSER = re.compile(RULE, re.ASCII)
"""Splits a mapping into rules, like Kafka's RULE_PATTERN and RULE_SPLITTER."""

REPLACEMENT = re.compile(
    r"\\(?P<escaped>.)|\$(?P<number>[0-9]+)|\$\{(?P<name>[a-zA-Z][a-zA-Z0-9]*)\}|(?P<text>[^\\$]+)", re.DOTALL
)
"""Splits a replacement into its parts, like Java's `Matcher.appendReplacement`."""

CASES: Mapping[str, Callable[[str], str]] = {"": str, "L": str.lower, "U": str.upper}

Replacement = tuple[str | int, ...]
"""A replacement: text as it is, and groups by their numbers."""


class PrincipalFilter:
    """Tells the principals that `lockstep.acl.principals` selects and `lockstep.acl.principals.exclude` does not.
    Selects all by default."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        """Raises LockstepError for a malformed list; the error names the key and the pattern."""
        self._include = names_in(properties or {}, PRINCIPALS, ".*")
        self._exclude = names_in(properties or {}, PRINCIPALS_EXCLUDE, "")

    def should_sync(self, principal: str) -> bool:
        """Whether Lockstep syncs the ACLs of this principal. `principal`: with its type, as on the source:
        `User:alice`."""
        return _matches(self._include, principal) and not _matches(self._exclude, principal)


class NamedPrincipals:
    """Principals of the target that the properties file names, or matches with patterns. Empty by default."""

    def __init__(self, key: str = "", patterns: str = "", known: Collection[str] = ()) -> None:
        """`patterns`: the value of the property `key`. Raises LockstepError for a malformed list; the error names the
        key."""
        self._known = tuple(sorted(set(known)))
        self._listed = names_in({key: patterns}, key, "") if patterns else None
        self._text = ", ".join((*self._known, *([patterns] if patterns else [])))

    def __contains__(self, principal: str) -> bool:
        return principal in self._known or (self._listed is not None and _matches(self._listed, principal))

    def __bool__(self) -> bool:
        return bool(self._text)

    def __str__(self) -> str:
        return self._text


NOBODY = NamedPrincipals()


def names_in(properties: Mapping[str, str], key: str, default: str) -> DefaultTopicFilter:
    """Returns the names and patterns of a property's list, read as MM2 reads its lists. Raises LockstepError for a
    malformed list; the error names the key and the pattern."""
    names = DefaultTopicFilter()
    try:
        names.configure({"topics": properties.get(key, default), "topics.exclude": ""})
    except LockstepError as error:
        raise LockstepError(f"{key}: {str(error).removeprefix('topics: ')}") from error
    return names


def _matches(names: DefaultTopicFilter, principal: str) -> bool:
    if names.should_replicate_topic(principal):
        return True
    return principal.startswith(USER_TYPE) and names.should_replicate_topic(principal[len(USER_TYPE) :])


@dataclass(frozen=True, slots=True)
class MappingRule:
    """One rule; `pattern` None is `DEFAULT`."""

    pattern: re.Pattern[str] | None = None
    replacement: Replacement = ()
    case: str = ""

    def apply(self, name: str) -> str | None:
        """Returns the new name; None if the pattern does not match the whole old name."""
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        # Like Kafka's `String.replaceAll`: `.*` matches once more at the end, where nothing is left.
        return CASES[self.case](self.pattern.sub(self._replaced, name))

    def _replaced(self, match: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match[part] or "" for part in self.replacement)


@dataclass(frozen=True, slots=True)
class PrincipalMapping:
    """Maps principals of the source to names on the target. By default the names stay the same."""

    rules: tuple[MappingRule, ...] = (MappingRule(),)

    def __str__(self) -> str:
        return repr([(one.pattern and one.pattern.pattern, one.replacement, one.case) for one in self.rules])

    @classmethod
    def parse(cls, text: str) -> PrincipalMapping:
        """Parse the rules of `lockstep.acl.principal.mapping`. Raises LockstepError, which names the wrong rule."""
        written = [found[1] for found in SPLITTER.finditer(text.strip()) if found[1]]
        if not written:
            raise LockstepError(f"{MAPPING} has no rule: write {UNCHANGED} to keep all names as they are")
        return cls(tuple(map(_rule, written)))

    def map(self, principal: str) -> str | None:
        """Returns the principal on the target. None if no rule matches, or if the new name is empty or `*`."""
        if principal == EVERYONE or not principal.startswith(USER_TYPE):
            return principal
        name = principal[len(USER_TYPE) :]
        mapped = next((new for rule in self.rules if (new := rule.apply(name)) is not None), None)
        return None if mapped in (None, "", WILDCARD) else f"{USER_TYPE}{mapped}"


def _rule(text: str) -> MappingRule:
    found = PARSER.match(text)
    if found is None or found.end() != len(text):
        raise _wrong(text, f"a rule is RULE:pattern/replacement/, RULE:pattern/replacement/L, …/U, or {UNCHANGED}")
    if found[1]:
        return MappingRule()
    try:
        pattern = compile_java(found[2])
    except LockstepError as error:
        raise _wrong(text, str(error)) from error
    return MappingRule(pattern, _replacement(text, found[3], pattern), found[4])


def _replacement(rule: str, text: str, pattern: re.Pattern[str]) -> Replacement:
    parts: list[str | int] = []
    at = 0
    while at < len(text):
        found = REPLACEMENT.match(text, at)
        if found is None:
            raise _wrong(rule, rf"in the replacement, {text[at:]!r} is no group: write \$ for the character itself")
        at = found.end()
        if found["number"]:
            parts += _numbered(rule, found["number"], pattern)
        elif found["name"]:
            if found["name"] not in pattern.groupindex:
                raise _wrong(rule, f"its pattern has no group called {found['name']!r}")
            parts.append(pattern.groupindex[found["name"]])
        else:
            parts.append(found["escaped"] or found["text"])
    return tuple(parts)


def _numbered(rule: str, digits: str, pattern: re.Pattern[str]) -> Replacement:
    """Returns the group that the digits name, followed by the digits that are text. If the pattern has no such group,
    `$` and all digits are text."""
    if int(digits[0]) > pattern.groups:
        if not pattern.groups:
            raise _wrong(rule, rf"its pattern has no group ${digits}: write \${digits} for the characters themselves")
        return (f"${digits}",)
    count = 1
    while count < len(digits) and int(digits[: count + 1]) <= pattern.groups:
        count += 1
    rest = digits[count:]
    return (int(digits[:count]), rest) if rest else (int(digits[:count]),)


def _wrong(rule: str, why: str) -> LockstepError:
    return LockstepError(f"{MAPPING}: the rule {rule!r} is wrong: {why}")
