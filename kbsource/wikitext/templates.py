"""Templates that carry values are rendered, others are left out knowingly: one use in, its wikitext out.

The rules are data (``rules/*.toml``) over pure functions (``functions/``). Everything is decided by the name and the
arguments alone: no template source is read, and "now" is the time of the revision.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple

from kbsource.errors import SetupError
from kbsource.languages import language
from kbsource.numerals import unescape
from kbsource.titles import clean_title, upper_first
from kbsource.wikitext.functions import clock, conditions, convert, dates, foreign, inline, places, quantities
from kbsource.wikitext.functions.arguments import Function, PageFacts, Template, read_rules
from kbsource.wikitext.markers import APOSTROPHE, BLANKS, TEMPLATE_LINK, unmark_separators, without_marks

_LONE_APOSTROPHE = re.compile("(?<!')'(?!')")
_MODULES: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (clock, conditions, convert, dates, foreign, inline, places, quantities)
}
_SHORTEST_FOLDED = 4  # shorter names differ by their letter case: {{SS}} is a ship, {{Ss}} is not


class TemplateRule(NamedTuple):
    """What becomes of a template: the outcome, and for ``rendered`` how."""

    outcome: str  #: rendered | dropped | unknown | infobox
    #: gives the wikitext, of an infobox what it shows in the running text besides; None for nothing
    function: Function | None
    parameters: dict[str, Any]  #: keyword arguments of the function
    is_block: bool  #: the result stands on lines of its own
    yields: bool = False  #: the wiki's own definition, where it says something, comes before the rule


DROPPED = TemplateRule("dropped", None, {}, False)
UNKNOWN = TemplateRule("unknown", None, {}, False)
INFOBOX = TemplateRule("infobox", None, {}, False)


@dataclass(slots=True)
class RuleBook:
    """The rules of one language by exact name, by pattern, and by the ends of names."""

    by_name: dict[str, TemplateRule] = field(default_factory=dict)  #: rules by normal form of the name
    #: the same by case-folded name, for names that nobody writes in one way
    folded: dict[str, TemplateRule] = field(default_factory=dict)
    #: (regex that matches the whole name, rule), first match counts
    patterns: list[tuple[re.Pattern[str], TemplateRule]] = field(default_factory=list)
    #: ``prefixes``, ``suffixes``: (case-folded beginning or end of a name, rule)
    prefixes: list[tuple[str, TemplateRule]] = field(default_factory=list)
    suffixes: list[tuple[str, TemplateRule]] = field(default_factory=list)

    def find(self, name: str) -> TemplateRule:
        """The rule for a name in normal form; UNKNOWN where there is none."""
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
        rules = (rule for prefix, rule in self.prefixes if name.startswith(prefix))
        return next(rules, None) or next((rule for suffix, rule in self.suffixes if name.endswith(suffix)), UNKNOWN)


class Magic(NamedTuple):
    """Parser functions and variables of all languages."""

    functions: dict[str, str]  #: canonical name (``#if``, ``formatnum:``) by case-folded name before the colon
    exact_functions: dict[str, str]  #: the same by name as written of those whose letter case counts (``PAGENAME:``)
    variables: dict[str, str]  #: canonical name by name as written, letter case counts
    loose_variables: dict[str, str]  #: canonical name by case-folded name of those whose letter case does not count
    rules: dict[str, TemplateRule]  #: rule by canonical name
    template_prefixes: frozenset[str]  #: case-folded names of the template namespace
    modifiers: frozenset[str]  #: words before a colon that change nothing of what is shown (``subst``)


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
    return TemplateRule(outcome, function, parameters, entry.get("block", False), entry.get("yields", False))


def _parameter(value: Any) -> Any:
    """A parameter as functions take it; an apostrophe alone is text and joins no quotes beside it."""
    if isinstance(value, list):
        return tuple(value)
    return _LONE_APOSTROPHE.sub(APOSTROPHE, value) if isinstance(value, str) else value


@cache
def magic() -> Magic:
    """Parser functions and variables, with the names that languages have for them."""
    data = read_rules("magic")
    functions: dict[str, str] = {}
    exact: dict[str, str] = {}
    variables: dict[str, str] = {}
    loose: dict[str, str] = {}
    rules: dict[str, TemplateRule] = {}
    for entry in data["function"]:
        rules[entry["name"]] = _rule(entry)
        is_exact = entry["name"].isupper() and entry["name"][0] != "#"  # Source: $magicWords of MessagesEn.php
        for name in (entry["name"].rstrip(":"), *entry.get("aliases", ())):
            if is_exact:
                exact[name] = entry["name"]
            else:
                functions[name.casefold()] = entry["name"]
    for entry in data["variable"]:
        rules[entry["name"]] = _rule(entry)
        for name in (entry["name"], *entry.get("aliases", ())):
            variables[name] = entry["name"]
            if entry.get("any_case"):
                loose[name.casefold()] = entry["name"]
    prefixes, modifiers = frozenset(data["template_namespaces"]), frozenset(data["modifiers"])
    return Magic(functions, exact, variables, loose, rules, prefixes, modifiers)


@cache
def rule_book(lang: str) -> RuleBook:
    """The rules of a language: its own first, then the English ones."""
    english = read_rules("en")
    canonical = {entry["name"]: _rule(entry) for entry in english["rule"]}
    book = RuleBook()
    own = read_rules(lang) or read_rules(lang.split("-", 1)[0])
    if lang in ("en", "simple"):
        _add(book, english, canonical)
    else:
        _add(book, own, canonical)
        _add(book, english, canonical, borrowed=read_rules("international"))
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

    ``canonical`` are the English rules by their names, which aliases are of. ``borrowed`` is international.toml, where
    the rules are of another language: the names that may show something; of what shows nothing those count that are
    long enough to be no other language's.
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


_BRACKET_OR_PIPE = re.compile(r"\[\[|\]\]|\|")
_BRACKET_OR_EQUALS = re.compile(r"\[\[|\]\]|=")
_NO_TITLE = re.compile(r"[\[\]{}<>\n|]")
_LONGEST_NAME = 512  # characters with the white space around; titles have at most 255 bytes
# What of a template's arguments nobody reads: names of arguments, targets of links, addresses, tags, marks and blanks.
# Written so that every match begins with one of few characters: that is searched twice as fast.
_UNSEEN = re.compile(
    r"[|\[<'/\]{}\x00-\x20](?:(?<=\|)[^=|\[\]{}<>]*=|(?<=\[)\[[^\[\]|]*\||(?<=/)/[^][\s|<>]*|(?<=<)/?[A-Za-z][^<>]*>)?"
)
_PLAIN = re.compile(r"[\w ,.;:()\u00a0\u2013-]*")
_LINK_START = re.compile(r"\[\[([^\[\]|]*)")
_EXAMPLE_CHARS = 80
_LARGEST_GAP = 100  # numbered arguments further than this behind the last one stay named


WORDS_ALONE = re.compile(
    r"[^|]*\|(?!\s*(?:[A-Z]+|.)\s*\Z)(?:(?:[^\W\d_]|[ ,'\u2019\u0300-\u036f-])+|\s*[+\u2212-]?\d(?:[\d.,]*\d)\s*)"
)
"""The inside of a template whose only argument is plain words or a number, and no code, sign or single digit."""
_NO_SENTENCE = frozenset("\n|*#={}<>")


class Rendering(NamedTuple):
    """What stands in the page for one use of a template."""

    outcome: str  #: ``rendered``, ``dropped`` (known to say nothing of value), ``unknown`` or ``infobox``
    #: plain text with simple links, quotes for italics and, in blocks, lists; "" unless rendered. An apostrophe that
    #: the rule writes is a literal character of ``markers``.
    wikitext: str
    is_block: bool = False  #: the wikitext must stand on lines of its own


class LostText(NamedTuple):
    """What the reader loses of the uses of a template that are left out."""

    n_chars: int  #: visible characters of their arguments, blanks not counted
    example: str | None  #: the first of them on one line, shortened; None where nothing is lost


def lost_text(inner: str, known: LostText | None = None) -> LostText | None:
    """What is lost of a use by what stands between its braces, with what was lost before it.

    >>> lost_text("sung by|the [[Choir of Ely|choir]]|year= 1990")
    LostText(n_chars=12, example='{{sung by|the [[Choir of Ely|choir]]|year= 1990}}')
    """
    arguments = inner[inner.find("|") :].replace("https://", "//").replace("http://", "//")
    n_chars = len(_UNSEEN.sub("", arguments))
    if not n_chars:
        return known
    if known is not None:
        return LostText(known.n_chars + n_chars, known.example)
    cut = inner[: 4 * _EXAMPLE_CHARS]
    head = without_marks(cut)
    if len(head) < len(cut) < len(inner):  # marks, of references among them, do not count
        head = without_marks(inner)[: 4 * _EXAMPLE_CHARS]
    call = " ".join(head.split())
    if len(call) > _EXAMPLE_CHARS:
        call = f"{call[: _EXAMPLE_CHARS - 1]}…"
    return LostText(n_chars, f"{{{{{call}}}}}")


def visible_chars(wikitext: str) -> int:
    """The number of characters that a reader sees of what a template shows, blanks not counted.

    >>> visible_chars("the [[Choir of Ely|choir]]")
    8
    """
    if _PLAIN.fullmatch(wikitext):  # a quarter of the time of what follows
        return len(wikitext) - wikitext.count(" ")
    return len(_UNSEEN.sub("", wikitext))


def mark_links(wikitext: str, inner: str) -> str:
    """What a rule makes of a use with those links marked that do not stand in the use itself."""
    written = set(_LINK_START.findall(inner))
    return _LINK_START.sub(lambda match: match[0] if match[1] in written else f"[[{TEMPLATE_LINK}{match[1]}", wikitext)


def is_in_sentence(use: re.Match[str]) -> bool:
    """Whether a use stands inside of a sentence: words and no structure before it on its line, and something that
    is no structure behind it."""
    text, start, end = use.string, use.start(), use.end()
    before = text[text.rfind("\n", 0, start) + 1 : start].rstrip(" ")
    behind = text[end : end + 2].lstrip(" ")[:1]
    return bool(behind) and _NO_SENTENCE.isdisjoint(before[-1:] + behind) and any(map(str.isalnum, before))


_FIXED = {outcome: Rendering(outcome, "") for outcome in ("dropped", "unknown", "infobox")}


def render(template: Template, page: PageFacts) -> Rendering:
    """What stands for the use by the rules of the page's language; never fails on wrong or missing arguments."""
    rule = find_rule(page.lang)(template.name)
    if rule.function is None:
        return _FIXED[rule.outcome]
    text = rule.function(template, page, **rule.parameters)
    return _FIXED["dropped"] if text is None else Rendering(rule.outcome, text, rule.is_block)


@cache
def fixed_outcomes(lang: str) -> Callable[[str], tuple[str, str, bool] | None]:
    """What gives name and outcome, ``dropped`` or ``unknown``, of a use whose arguments do not matter, and whether it
    ends a paragraph, by what stands before its first pipe; None for all others: parser functions, variables, what can
    be no template."""
    find = find_rule(lang)
    ends_paragraph = _paragraph_ends(lang)

    @lru_cache(maxsize=1 << 14)
    def fixed_outcome(head: str) -> tuple[str, str, bool] | None:
        bare = head.strip()
        if len(head) > _LONGEST_NAME or ":" in head or _NO_TITLE.search(bare) or find_variable(bare):
            return None
        name = normalise_template_name(head, lang)
        if not name:
            return None
        rule = find(name)
        if rule.function is not None or rule.outcome == "infobox":
            return None
        return name, rule.outcome, rule.outcome == "dropped" and name in ends_paragraph

    return fixed_outcome


def _paragraph_ends(lang: str) -> frozenset[str]:
    """The names of templates that show nothing of the text and end the paragraph: lists of notes, and what makes the
    text go on below a picture."""
    notes = read_rules("citations")["notes"]
    lists = [name for code in ("en", lang) for name in notes.get(code, {}).get("list", ())]
    return frozenset((*lists, *read_rules("magic")["clearing_templates"]))


@cache
def find_rule(lang: str) -> Callable[[str], TemplateRule]:
    """The look-up of rules by name for a language; it remembers the names it has seen."""
    return lru_cache(maxsize=1 << 16)(rule_book(lang).find)


@lru_cache(maxsize=1 << 16)
def normalise_template_name(name: str, lang: str) -> str:
    """A template's name without namespace, with spaces for underscores and its first letter upper.

    A name with another namespace (``User:X/Y``) keeps it.
    """
    name = unescape(name) if "&" in name else name
    title = clean_title(without_marks(name).strip()).lstrip(":").lstrip(" ")
    if "#" in title and title[0] != "#":  # a section's name; parser functions begin with the sign
        title = title.partition("#")[0].rstrip(" ")
    prefix, colon, rest = title.partition(":")
    while colon:
        folded = prefix.strip().casefold()
        if folded not in magic().template_prefixes and folded not in magic().modifiers:
            break
        title = rest.strip()
        prefix, colon, rest = title.partition(":")
    return upper_first(title, lang)


def split_template(inner: str, lang: str = "en") -> Template | None:
    """Name and arguments of what stands between ``{{`` and ``}}``; inner templates must be rendered already.

    Pipes and equals signs inside of ``[[…]]`` do not count. Parser functions come with their canonical English name
    (``#if``, ``formatnum:``), what follows the colon as first argument and all arguments positional and as they are;
    ``{{#tag:ref|…}}`` has the tag in its name. None where this can be no template, as its name is empty or holds
    characters that no title has: MediaWiki shows the braces then.
    """
    parts = split_at_pipes(inner)
    head = parts[0]
    if ":" in head:
        if (found := find_function(head)) is not None:
            function, first = found
            if function == "#tag":
                return Template(f"#tag:{without_marks(first).strip(BLANKS).lower()}", tuple(parts[1:]), {})
            return Template(function, (first, *parts[1:]), {})
    elif len(parts) == 1:
        variable = find_variable(head.strip(BLANKS))
        if variable is not None:
            return Template(variable, (), {})
    if len(head) > _LONGEST_NAME or _NO_TITLE.search(head.strip()):
        return None
    name = normalise_template_name(head, lang)
    if not name:
        return None
    if len(parts) == 1:
        return Template(name, (), {})
    return _with_arguments(name, parts)


def unmarked(template: Template) -> Template:
    """A template whose arguments have plain separators again, see ``mark_separators``."""
    return template._replace(
        positional=tuple(map(unmark_separators, template.positional)),
        named={key: unmark_separators(value) for key, value in template.named.items()},
    )


def split_at_pipes(inner: str) -> list[str]:
    """The pieces between the pipes that are not inside of a closed ``[[…]]``."""
    if "[[" not in inner:
        return inner.split("|")
    pipes = _outside_links(_BRACKET_OR_PIPE, inner)
    return [inner[start + 1 : end] for start, end in pairwise([-1, *pipes, len(inner)])]


def _outside_links(tokens: re.Pattern[str], text: str) -> list[int]:
    """The places of the signs that are not inside of a closed ``[[…]]``."""
    places: list[int] = []
    opened: list[int] = []  # for every open bracket the number of signs before it
    for match in tokens.finditer(text):
        token = match.group()
        if token == "[[":
            opened.append(len(places))
        elif token != "]]":
            places.append(match.start())
        elif opened:
            del places[opened.pop() :]
    return places


def find_function(head: str) -> tuple[str, str] | None:
    """The canonical name of the parser function that is used, and what follows its colon; None for none."""
    facts = magic()
    prefix, _, first = head.lstrip().partition(":")
    while prefix.strip().casefold() in facts.modifiers and ":" in first:
        prefix, _, first = first.lstrip().partition(":")
    name = name_function(prefix)
    return None if name is None else (name, first)


def name_function(written: str) -> str | None:
    """The canonical name of a parser function by what stands before its colon; None for none."""
    facts, name = magic(), written.strip()
    return facts.functions.get(name.casefold()) or facts.exact_functions.get(name)


def find_variable(name: str) -> str | None:
    """The canonical name of a variable by its name as written, without white space around it; None for none."""
    facts = magic()
    return facts.variables.get(name) or facts.loose_variables.get(name.casefold())


def split_arguments(inner: str) -> Iterator[tuple[str | None, str]]:
    """What stands before the first pipe, without a name, then every argument with its name or None."""
    parts = split_at_pipes(inner)
    yield None, parts[0]
    yield from map(_split_name, parts[1:])


def _split_name(part: str) -> tuple[str | None, str]:
    """An argument's name, None where it has none, and its value; equals signs in a closed ``[[…]]`` do not count."""
    key, equals, value = part.partition("=")
    if "[[" in key and equals:
        sign = next(iter(_outside_links(_BRACKET_OR_EQUALS, part)), -1)
        return (None, part) if sign < 0 else (part[:sign], part[sign + 1 :])
    return (key, value) if equals else (None, part)


def _with_arguments(name: str, parts: list[str]) -> Template:
    positional: list[str] = []
    named: dict[str, str] = {}
    numbered: dict[int, str] = {}
    for part in parts[1:]:
        if "=" not in part:
            positional.append(part)
            continue
        key: str | None
        key, _, value = part.partition("=")
        if "[[" in key:  # seldom: the sign may stand in a link
            key, value = _split_name(part)
        if key is None:
            positional.append(value)
        elif (key := key.strip(BLANKS)).isdecimal() and is_number(key):
            numbered[int(key)] = value.strip(BLANKS)
        else:
            named[key] = value.strip(BLANKS)
    return numbered_in_place(name, positional, named, numbered)


def is_number(key: str) -> bool:
    """Whether the name of an argument is the number of a place."""
    return key.isdecimal() and key.isascii() and key[0] != "0" and len(key) < 5


def numbered_in_place(name: str, positional: list[str], named: dict[str, str], numbered: dict[int, str]) -> Template:
    """A use with its numbered arguments in their places, far numbers among the named ones."""
    for number in sorted(numbered):
        missing = number - len(positional)
        if missing > _LARGEST_GAP:
            named[str(number)] = numbered[number]
            continue
        positional.extend([""] * missing)
        positional[number - 1] = numbered[number]
    return Template(name, tuple(positional), named)
