"""Reads the rules: which function shows a template, which templates are left out knowingly, which are infoboxes.

The data is ``rules/*.toml``, a file for each language. What ``en.toml`` leaves out knowingly, and its infoboxes, hold
for every language, as all editions keep English names beside their own; of what it shows elsewhere only the names hold
that ``international.toml`` lists. ``magic.toml`` holds parser functions and variables of all languages.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from types import ModuleType
from typing import Any, NamedTuple

from kbsource.errors import SetupError
from kbsource.languages import language
from kbsource.wikitext.functions import (
    blocks,
    citations,
    conditions,
    foreign,
    inline,
    italian,
    phonetics,
    places,
    regional,
)
from kbsource.wikitext.functions.arguments import Function
from kbsource.wikitext.functions.measures import convert, quantities, science
from kbsource.wikitext.functions.times import clock, dates
from kbsource.wikitext.markers import APOSTROPHE

_LONE_APOSTROPHE = re.compile("(?<!')'(?!')")
_MODULES: dict[str, ModuleType] = {
    "blocks": blocks,
    "citations": citations,
    "clock": clock,
    "conditions": conditions,
    "convert": convert,
    "dates": dates,
    "foreign": foreign,
    "inline": inline,
    "italian": italian,
    "phonetics": phonetics,
    "places": places,
    "quantities": quantities,
    "regional": regional,
    "science": science,
}
_SHORTEST_FOLDED = 4  # shorter names differ by their letter case: {{SS}} is a ship, {{Ss}} is not


class TemplateRule(NamedTuple):
    """What becomes of a template: the outcome, and for ``rendered`` how.

    Attributes:
        outcome: rendered | dropped | unknown | infobox.
        function: gives the wikitext, of an infobox what it shows in the running text besides; None for nothing.
        parameters: keyword arguments of the function.
        is_block: the result stands on lines of its own.
        yields: the wiki's own definition, where it says something, comes before the rule.
    """

    outcome: str
    function: Function | None
    parameters: dict[str, Any]
    is_block: bool
    yields: bool = False


DROPPED = TemplateRule("dropped", None, {}, False)
UNKNOWN = TemplateRule("unknown", None, {}, False)
INFOBOX = TemplateRule("infobox", None, {}, False)


@dataclass(slots=True)
class RuleBook:
    """The rules of one language by exact name, by pattern, and by the ends of names.

    Attributes:
        by_name: rules by normal form of the name.
        folded: the same by case-folded name, for names that nobody writes in one way.
        patterns: (regex that matches the whole name, rule), first match counts.
        prefixes, suffixes: (case-folded beginning or end of a name, rule).
    """

    by_name: dict[str, TemplateRule] = field(default_factory=dict)
    folded: dict[str, TemplateRule] = field(default_factory=dict)
    patterns: list[tuple[re.Pattern[str], TemplateRule]] = field(default_factory=list)
    prefixes: list[tuple[str, TemplateRule]] = field(default_factory=list)
    suffixes: list[tuple[str, TemplateRule]] = field(default_factory=list)

    def find(self, name: str) -> TemplateRule:
        """Gives the rule for a name in normal form; UNKNOWN where there is none."""
        rule = self.by_name.get(name)
        if rule is not None:
            return rule
        for pattern, rule in self.patterns:
            if pattern.fullmatch(name):
                return rule
        name = name.casefold()
        if len(name) >= _SHORTEST_FOLDED:
            rule = self.folded.get(name)
            if rule is not None:
                return rule
        for prefix, rule in self.prefixes:
            if name.startswith(prefix):
                return rule
        for suffix, rule in self.suffixes:
            if name.endswith(suffix):
                return rule
        return UNKNOWN


class Magic(NamedTuple):
    """Parser functions and variables of all languages.

    Attributes:
        functions: canonical name (``#if``, ``formatnum:``) by case-folded name before the colon.
        variables: canonical name by name as written, letter case counts.
        rules: rule by canonical name.
        template_prefixes: case-folded names of the template namespace.
        modifiers: words before a colon that change nothing of what is shown (``subst``).
    """

    functions: dict[str, str]
    variables: dict[str, str]
    rules: dict[str, TemplateRule]
    template_prefixes: frozenset[str]
    modifiers: frozenset[str]


def _read(name: str) -> dict[str, Any]:
    source = resources.files("kbsource.wikitext").joinpath(f"rules/{name}.toml")
    return tomllib.loads(source.read_text("utf-8")) if source.is_file() else {}


def _rule(entry: dict[str, Any]) -> TemplateRule:
    outcome = entry.get("outcome", "rendered")
    if "function" not in entry:
        return {"dropped": DROPPED, "unknown": UNKNOWN, "infobox": INFOBOX}[outcome]
    written = entry["function"]
    module, _, name = written.partition(".")
    function = getattr(_MODULES.get(module), name, None)
    if function is None:
        raise SetupError(f"template rule {entry.get('name')!r} names no function: {written!r}; see wikitext/functions")
    parameters = {key: _parameter(value) for key, value in entry.get("with", {}).items()}
    return TemplateRule(outcome, function, parameters, entry.get("block", False))


def _parameter(value: Any) -> Any:
    """Gives a parameter as functions take it; an apostrophe alone is text and joins no quotes beside it."""
    if isinstance(value, list):
        return tuple(value)
    return _LONE_APOSTROPHE.sub(APOSTROPHE, value) if isinstance(value, str) else value


@cache
def magic() -> Magic:
    """Gives parser functions and variables, with the names that languages have for them."""
    data = _read("magic")
    functions: dict[str, str] = {}
    variables: dict[str, str] = {}
    rules: dict[str, TemplateRule] = {}
    for entry in data["function"]:
        rules[entry["name"]] = _rule(entry)
        for name in (entry["name"].rstrip(":"), *entry.get("aliases", ())):
            functions[name.casefold()] = entry["name"]
    for entry in data["variable"]:
        rules[entry["name"]] = _rule(entry)
        for name in (entry["name"], *entry.get("aliases", ())):
            variables[name] = entry["name"]
    return Magic(functions, variables, rules, frozenset(data["template_namespaces"]), frozenset(data["modifiers"]))


@cache
def rule_book(lang: str) -> RuleBook:
    """Gives the rules of a language: its own first, then the English ones."""
    english = _read("en")
    canonical = {entry["name"]: _rule(entry) for entry in english["rule"]}
    book = RuleBook()
    own = _read(lang) or _read(lang.split("-", 1)[0])
    if lang in ("en", "simple"):
        _add(book, english, canonical)
    else:
        _add(book, own, canonical)
        _add(book, english, canonical, borrowed=_read("international"))
    book.by_name.update(magic().rules)
    book.prefixes.insert(0, ("#tag:", magic().rules["#tag"]))
    for code in places.country_codes():
        if any(pattern.fullmatch(code) for pattern, _ in book.patterns):
            continue
        rule = TemplateRule("rendered", places.country_by_name, {}, False, lang not in ("en", "simple"))
        book.by_name.setdefault(code, rule)
    book.prefixes.extend((prefix, INFOBOX) for prefix in language(lang).infobox_prefixes)
    book.suffixes.extend((suffix, INFOBOX) for suffix in language(lang).infobox_suffixes)
    return book


def _add(
    book: RuleBook,
    data: dict[str, Any],
    canonical: dict[str, TemplateRule],
    *,
    borrowed: dict[str, list[str]] | None = None,
) -> None:
    """Adds the rules of one file; names that are there already keep their rule.

    Args:
        book: takes them.
        data: of the file.
        canonical: the English rules by their names, which aliases are of.
        borrowed: international.toml, where the rules are of another language: the names that may show something; of
            what shows nothing those count that are long enough to be no other language's.
    """
    shown = None if borrowed is None else frozenset(borrowed["names"])
    worded = frozenset(borrowed["worded"]) if borrowed else frozenset()
    found: list[tuple[str, TemplateRule]] = []
    for entry in data.get("rule", ()):
        rule = _rule(entry)
        found.extend((name, rule) for name in (entry["name"], *entry.get("aliases", ())))
    for name, aliases in data.get("aliases", {}).items():
        if name not in canonical:
            raise SetupError(f"template rules: aliases of {name!r}, which en.toml has no rule for")
        found.extend((alias, canonical[name]) for alias in aliases)
    for section, rule in (("drop", DROPPED), ("infobox", INFOBOX)):
        names = data.get(section, {})
        found.extend((name, rule) for name in names.get("names", ()))
        book.prefixes.extend((prefix.casefold(), rule) for prefix in names.get("prefixes", ()))
        book.suffixes.extend((suffix.casefold(), rule) for suffix in names.get("suffixes", ()))
    for name, rule in found:
        if name in worded:
            rule = rule._replace(yields=True)
        elif shown is not None and (name not in shown if rule.function else len(name) < _SHORTEST_FOLDED):
            continue
        book.by_name.setdefault(name, rule)
        if len(name) >= _SHORTEST_FOLDED:
            book.folded.setdefault(name.casefold(), rule)
    book.patterns.extend(
        (re.compile(entry["match"]), _rule(entry)._replace(yields=borrowed is not None))
        for entry in data.get("pattern", ())
    )
