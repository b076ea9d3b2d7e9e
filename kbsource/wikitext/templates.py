"""Finds the rule for a template, and splits the use of a template into name and arguments.

A rule renders a template or drops it. Rules are entries in ``rules/*.toml``, which name a pure function in
``functions/``, or definitions in wikitext in ``rules/*.wiki``. Their result depends only on the name, the arguments and
the time of the revision, which is "now" for them. The wiki's own definition is not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple

from kbsource.errors import SetupError
from kbsource.languages import language
from kbsource.numerals import unescape
from kbsource.titles import clean_title, upper_first
from kbsource.wikitext.functions import clock, conditions, convert, dates, foreign, inline, places, quantities
from kbsource.wikitext.functions.arguments import Function, Template, read_rules
from kbsource.wikitext.markers import APOSTROPHE, BLANKS, TEMPLATE_LINK, unmark_separators, without_marks

_LONE_APOSTROPHE = re.compile("(?<!')'(?!')")
_MODULES: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (clock, conditions, convert, dates, foreign, inline, places, quantities)
}
_SHORTEST_FOLDED = 4  # in shorter names, letter case has a meaning: {{SS}} is a ship, {{Ss}} is not


class TemplateRule(NamedTuple):
    """The rule for a template: its outcome and, if it is ``rendered``, the function or the definition to use."""

    outcome: str  #: rendered | dropped | unknown | infobox
    #: returns the wikitext to show, or for an infobox the text to show beside it; None if nothing is shown
    function: Function | None
    parameters: dict[str, Any]  #: keyword arguments of the function
    is_block: bool  #: the output is a block on lines of its own
    is_first: bool = False  #: the rule is used even if the wiki defines the template
    body: str | None = None  #: the definition in wikitext, instead of a function

    @property
    def follows_definition(self) -> bool:
        """True if the rule is only used for templates whose definition is missing or incomplete."""
        return not self.is_first and self.outcome == "rendered"


DROPPED = TemplateRule("dropped", None, {}, False)
UNKNOWN = TemplateRule("unknown", None, {}, False)
INFOBOX = TemplateRule("infobox", None, {}, False)


@dataclass(slots=True)
class RuleBook:
    """The rules of a language by exact name, by pattern, and by prefix or suffix of the name."""

    by_name: dict[str, TemplateRule] = field(default_factory=dict)  #: rules by normal form of the name
    #: rules by case-folded name, for names whose letter case varies
    folded: dict[str, TemplateRule] = field(default_factory=dict)
    #: (regex that matches the whole name, rule); the first match is used
    patterns: list[tuple[re.Pattern[str], TemplateRule]] = field(default_factory=list)
    #: ``prefixes``, ``suffixes``: (case-folded prefix or suffix of a name, rule)
    prefixes: list[tuple[str, TemplateRule]] = field(default_factory=list)
    suffixes: list[tuple[str, TemplateRule]] = field(default_factory=list)

    def find(self, name: str) -> TemplateRule:
        """Returns the rule for a name in normal form, or UNKNOWN."""
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
    exact_functions: dict[str, str]  #: canonical name of case-sensitive functions (``PAGENAME:``) by name as written
    variables: dict[str, str]  #: canonical name by name as written, case-sensitive
    loose_variables: dict[str, str]  #: canonical name by case-folded name, for case-insensitive variables
    rules: dict[str, TemplateRule]  #: rule by canonical name
    template_prefixes: frozenset[str]  #: case-folded names of the template namespace
    modifiers: frozenset[str]  #: prefixes before a colon that do not change the output (``subst``)


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
    return TemplateRule(outcome, function, parameters, entry.get("block", False), entry.get("first", False))


_HEADING = re.compile(r"^== (.+) ==\n", re.MULTILINE)


def read_fallbacks(lang: str) -> list[tuple[list[str], str]]:
    """Returns the definitions in ``rules/LANG.wiki`` as names and wikitext. Text before the first heading is a
    comment.
    """
    source = resources.files("kbsource.wikitext").joinpath(f"rules/{lang}.wiki")
    if not source.is_file():
        return []
    _, *pieces = _HEADING.split(source.read_text("utf-8"))
    return [(names.split(" | "), body.strip("\n")) for names, body in zip(pieces[::2], pieces[1::2], strict=True)]


def _parameter(value: Any) -> Any:
    """Returns a parameter of a rule in the form that functions expect. A single apostrophe becomes literal, so that it
    does not combine with quotes beside it.
    """
    if isinstance(value, list):
        return tuple(value)
    return _LONE_APOSTROPHE.sub(APOSTROPHE, value) if isinstance(value, str) else value


def _fallback(body: str) -> TemplateRule:
    return TemplateRule("rendered", None, {}, False, body=body)


@cache
def magic() -> Magic:
    """Returns parser functions and variables, with their names in all languages."""
    data = read_rules("magic")
    functions: dict[str, str] = {}
    exact: dict[str, str] = {}
    variables: dict[str, str] = {}
    loose: dict[str, str] = {}
    rules: dict[str, TemplateRule] = {}
    for entry in data["function"]:
        rules[entry["name"]] = _rule(entry)._replace(is_first=True)
        is_exact = entry["name"].isupper() and entry["name"][0] != "#"  # Source: $magicWords of MessagesEn.php
        for name in (entry["name"].rstrip(":"), *entry.get("aliases", ())):
            if is_exact:
                exact[name] = entry["name"]
            else:
                functions[name.casefold()] = entry["name"]
    for entry in data["variable"]:
        rules[entry["name"]] = _rule(entry)._replace(is_first=True)
        for name in (entry["name"], *entry.get("aliases", ())):
            variables[name] = entry["name"]
            if entry.get("any_case"):
                loose[name.casefold()] = entry["name"]
    prefixes, modifiers = frozenset(data["template_namespaces"]), frozenset(data["modifiers"])
    return Magic(functions, exact, variables, loose, rules, prefixes, modifiers)


@cache
def rule_book(lang: str) -> RuleBook:
    """Returns the rules of a language. English rules are used for names without a rule of the language."""
    canonical = {entry["name"]: _rule(entry) for entry in read_rules("en")["rule"]}
    canonical |= {names[0]: _fallback(body) for names, body in read_fallbacks("en")}
    book = RuleBook()
    if lang in ("en", "simple"):
        _add(book, "en", canonical)
    else:
        for code in (lang, lang.split("-", 1)[0]):
            if read_rules(code) or read_fallbacks(code):
                _add(book, code, canonical)
                break
        _add(book, "en", canonical, borrowed=read_rules("international"))
    book.by_name.update(magic().rules)
    book.prefixes.insert(0, ("#tag:", magic().rules["#tag"]))
    for code in places.country_codes():
        if any(pattern.fullmatch(code) for pattern, _ in book.patterns):
            continue
        book.by_name.setdefault(code, TemplateRule("rendered", places.country_by_name, {}, False))
    book.prefixes.extend((prefix, INFOBOX) for prefix in language(lang).infobox_prefixes)
    book.suffixes.extend((suffix, INFOBOX) for suffix in language(lang).infobox_suffixes)
    return book


def _add(
    book: RuleBook,
    code: str,
    canonical: dict[str, TemplateRule],
    *,
    borrowed: dict[str, list[str]] | None = None,
) -> None:
    """Adds the rules in a language's files. A name that already has a rule keeps it.

    ``canonical`` contains the English rules by name, because aliases refer to them. When English rules are added for
    another language, ``borrowed`` is the content of international.toml. A rule that shows text is added only if it is
    listed there. A rule that shows nothing is added only if its name is long, because a short name may mean something
    else in the other language.
    """
    shown = None if borrowed is None else frozenset(borrowed["names"])
    data = read_rules(code)
    found: list[tuple[str, TemplateRule]] = []
    for names, body in read_fallbacks(code):
        found.extend((name, _fallback(body)) for name in names)
    for entry in data.get("rule", ()):
        rule = _rule(entry)
        found.extend((name, rule) for name in (entry["name"], *entry.get("aliases", ())))
    for name, aliases in data.get("aliases", {}).items():
        if name not in canonical:
            raise SetupError(f"template rules: there are aliases of {name!r}, but en.toml has no rule for it")
        found.extend((alias, canonical[name]) for alias in aliases)
    for section, rule in (("drop", DROPPED), ("infobox", INFOBOX)):
        listed = data.get(section, {})
        found.extend((name, rule) for name in listed.get("names", ()))
        book.prefixes.extend((prefix.casefold(), rule) for prefix in listed.get("prefixes", ()))
        book.suffixes.extend((suffix.casefold(), rule) for suffix in listed.get("suffixes", ()))
    for name, rule in found:
        if shown is not None:
            if name not in shown if rule.outcome == "rendered" else len(name) < _SHORTEST_FOLDED:
                continue
            rule = rule._replace(is_first=False)
        book.by_name.setdefault(name, rule)
        if len(name) >= _SHORTEST_FOLDED:
            book.folded.setdefault(name.casefold(), rule)
    book.patterns.extend((re.compile(entry["match"]), _rule(entry)) for entry in data.get("pattern", ()))


_BRACKET_OR_PIPE = re.compile(r"\[\[|\]\]|\|")
_BRACKET_OR_EQUALS = re.compile(r"\[\[|\]\]|=")
_NO_TITLE = re.compile(r"[\[\]{}<>\n|]")
_LONGEST_NAME = 512  # in characters, surrounding white space included; a title has at most 255 bytes
# Parts of a template's arguments that readers do not see: argument names, link targets, URLs, tags, markup and white
# space. Every alternative begins with one of few characters, which makes the search twice as fast.
_UNSEEN = re.compile(
    r"[|\[<'/\]{}](?:(?<=\|)[^=|\[\]{}<>]*=|(?<=\[)\[[^\[\]|]*\||(?<=/)/[^][\s|<>]*|(?<=<)/?[A-Za-z][^<>]*>)?"
)
_CONTROLS = re.compile(r"[\x00-\x20]")
_PLAIN = re.compile(r"[\w ,.;:()\u00a0\u2013-]*")
_LINK_START = re.compile(r"\[\[([^\[\]|]*)")
_EXAMPLE_CHARS = 80
_LARGEST_GAP = 100  # {{x|a|500=b}}: an argument whose number is more than 100 above the last positional one stays named


WORDS_ALONE = re.compile(
    r"[^|]*\|(?!\s*(?:[A-Z]+|\D)\s*\Z)(?:(?:[^\W\d_]|[ ,'\u2019\u0300-\u036f-])+|\s*[+\u2212-]?\d(?:[\d.,]*\d)?\s*)"
)
"""The text between the braces of a template whose only argument is plain words or a number, and not a code or sign."""
_NO_SENTENCE = frozenset("\n|*#={}<>")


class Rendering(NamedTuple):
    """The result of rendering one use of a template."""

    outcome: str  #: ``rendered``, ``dropped`` (known to carry no value), ``unknown`` or ``infobox``
    #: wikitext with only text, simple links, quotes for italics and, in blocks, lists; "" if the outcome is not
    #: ``rendered``. Apostrophes from the rule itself are literal characters of ``markers``
    wikitext: str
    is_block: bool = False  #: the wikitext must be placed on lines of its own


class LostText(NamedTuple):
    """The text that is lost because a template is skipped."""

    n_chars: int  #: visible characters of their arguments, without white space
    example: str | None  #: the first use that loses text, on one line, shortened; None if nothing is lost


def lost_text(inner: str, known: LostText | None = None) -> LostText | None:
    """Returns the text lost in a use of a template, added to the loss ``known`` so far. ``inner`` is the text between
    its braces.

    >>> lost_text("sung by|the [[Choir of Ely|choir]]|year= 1990")
    LostText(n_chars=12, example='{{sung by|the [[Choir of Ely|choir]]|year= 1990}}')
    """
    arguments = inner[inner.find("|") :].replace("https://", "//").replace("http://", "//")
    n_chars = _count_visible(arguments)
    if not n_chars:
        return known
    if known is not None:
        return LostText(known.n_chars + n_chars, known.example)
    return LostText(n_chars, shortened_call(inner))


def shortened_call(inner: str) -> str:
    """Returns a use of a template for a report: shortened, and on one line. ``inner`` is the text between its braces.

    >>> shortened_call("cite web | title = Ferries")
    '{{cite web | title = Ferries}}'
    """
    cut = inner[: 4 * _EXAMPLE_CHARS]
    head = without_marks(cut)
    if len(head) < len(cut) < len(inner):  # markers do not count
        head = without_marks(inner)[: 4 * _EXAMPLE_CHARS]
    call = " ".join(head.split())
    if len(call) > _EXAMPLE_CHARS:
        call = f"{call[: _EXAMPLE_CHARS - 1]}…"
    return f"{{{{{call}}}}}"


def visible_chars(wikitext: str) -> int:
    """Returns the number of characters in a template's output that readers see, without white space.

    >>> visible_chars("the [[Choir of Ely|choir]]")
    8
    """
    if _PLAIN.fullmatch(wikitext):  # four times as fast as the general case
        return len(wikitext) - wikitext.count(" ")
    return _count_visible(wikitext)


def _count_visible(wikitext: str) -> int:
    shown = _UNSEEN.sub("", wikitext).replace(" ", "").replace("\n", "")
    return len(shown) if shown.isprintable() else len(_CONTROLS.sub("", shown))


def mark_links(wikitext: str, inner: str) -> str:
    """Returns a rule's output in which the links that are not in the use itself are marked as made by a template."""
    written = set(_LINK_START.findall(inner))
    return _LINK_START.sub(lambda match: match[0] if match[1] in written else f"[[{TEMPLATE_LINK}{match[1]}", wikitext)


def is_in_sentence(use: re.Match[str]) -> bool:
    """Returns whether a use of a template is inside a sentence: on its line there are words but no markup before it,
    and text after it.
    """
    text, start, end = use.string, use.start(), use.end()
    before = text[text.rfind("\n", 0, start) + 1 : start].rstrip(" ")
    behind = text[end : end + 2].lstrip(" ")[:1]
    return bool(behind) and _NO_SENTENCE.isdisjoint(before[-1:] + behind) and any(map(str.isalnum, before))


class FixedOutcome(NamedTuple):
    """The outcome of a use of a template that does not depend on the arguments."""

    name: str  #: as written, in normal form
    target: str  #: name of the template after redirects
    outcome: str  #: ``dropped`` or ``unknown``
    ends_paragraph: bool


@cache
def fixed_outcomes(lang: str) -> Callable[[str], FixedOutcome | None]:
    """Returns ``fixed_outcomes_of`` for a language. Redirects between templates are not followed."""
    find = find_rule(lang)
    return fixed_outcomes_of(lang, lambda name: (name, find(name)))


def fixed_outcomes_of(
    lang: str, resolve: Callable[[str], tuple[str, TemplateRule]]
) -> Callable[[str], FixedOutcome | None]:
    """Returns a cached function that returns the outcome of a use from the text before its first pipe.

    Its result is None if the outcome depends on the arguments, and for parser functions, variables, and text that
    cannot be a template. ``resolve`` returns the name after redirects, and its rule.
    """
    ends_paragraph = _paragraph_ends(lang)

    @lru_cache(maxsize=1 << 14)
    def fixed_outcome(head: str) -> FixedOutcome | None:
        bare = head.strip()
        if len(head) > _LONGEST_NAME or ":" in head or _NO_TITLE.search(bare) or find_variable(bare):
            return None
        name = normalise_template_name(head, lang)
        if not name:
            return None
        target, rule = resolve(name)
        if rule.function is not None or rule.outcome not in ("dropped", "unknown"):
            return None
        ends = name in ends_paragraph or target in ends_paragraph
        return FixedOutcome(name, target, "dropped" if ends else rule.outcome, ends)

    return fixed_outcome


@cache
def _paragraph_ends(lang: str) -> frozenset[str]:
    """Returns the names of templates that show no text but end the paragraph, such as lists of notes and
    ``{{clear}}``.
    """
    notes, magic = read_rules("citations")["notes"], read_rules("magic")
    lists = [name for code in ("en", lang) for name in notes.get(code, {}).get("list", ())]
    return frozenset((*lists, *magic["note_list_templates"], *magic["clearing_templates"]))


@cache
def find_rule(lang: str) -> Callable[[str], TemplateRule]:
    """Returns a cached function that finds the rule for a template's name in a language."""
    return lru_cache(maxsize=1 << 16)(rule_book(lang).find)


@lru_cache(maxsize=1 << 16)
def normalise_template_name(name: str, lang: str) -> str:
    """Returns a template's name in normal form: without the prefix ``Template:``, with spaces for underscores and an
    upper-case first letter.

    A name in another namespace (``User:X/Y``) keeps its prefix.
    """
    name = unescape(name) if "&" in name else name
    title = clean_title(without_marks(name).strip()).lstrip(":").lstrip(" ")
    if "#" in title and title[0] != "#":  # removes the section; the name of a parser function begins with #
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
    """Splits the text between ``{{`` and ``}}`` into name and arguments; inner templates must already be rendered.

    Pipes and equals signs inside ``[[…]]`` separate nothing. A parser function gets its canonical English name
    (``#if``, ``formatnum:``). The text after its colon is its first argument, and all its arguments are positional and
    unchanged. The name of ``{{#tag:ref|…}}`` includes the tag. Returns None if the name is empty or contains characters
    not allowed in titles; then it is no template, and MediaWiki shows the braces.
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
    """Returns a template with plain pipes and equals signs in its arguments; the inverse of ``mark_separators``."""
    return template._replace(
        positional=tuple(map(unmark_separators, template.positional)),
        named={key: unmark_separators(value) for key, value in template.named.items()},
    )


def split_at_pipes(inner: str) -> list[str]:
    """Splits the text between a template's braces at its pipes, except those inside a closed ``[[…]]``."""
    if "[[" not in inner:
        return inner.split("|")
    pipes = _outside_links(_BRACKET_OR_PIPE, inner)
    return [inner[start + 1 : end] for start, end in pairwise([-1, *pipes, len(inner)])]


def _outside_links(tokens: re.Pattern[str], text: str) -> list[int]:
    """Returns the positions of the tokens that are not inside a closed ``[[…]]``."""
    places: list[int] = []
    opened: list[int] = []  # number of tokens before each open bracket
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
    """Returns the canonical name of a parser function and the text after its colon, from the text before the first
    pipe; None if it is not a parser function.
    """
    facts = magic()
    start, end = 0, head.find(":")
    while (after := head.find(":", end + 1)) >= 0 and head[start:end].strip().casefold() in facts.modifiers:
        start, end = end + 1, after
    prefix, first = (head[start:end], head[end + 1 :]) if end >= 0 else (head, "")
    name = name_function(prefix)
    return None if name is None else (name, first)


def name_function(written: str) -> str | None:
    """Returns the canonical name of a parser function from the text before its colon, or None."""
    facts, name = magic(), written.strip()
    return facts.functions.get(name.casefold()) or facts.exact_functions.get(name)


def find_variable(name: str) -> str | None:
    """Returns the canonical name of a variable from its name as written, without surrounding white space, or None."""
    facts = magic()
    return facts.variables.get(name) or facts.loose_variables.get(name.casefold())


def split_arguments(inner: str) -> Iterator[tuple[str | None, str]]:
    """Yields the name (or None) and value of each argument. The first pair is None and the text before the first
    pipe.
    """
    parts = split_at_pipes(inner)
    yield None, parts[0]
    yield from map(_split_name, parts[1:])


def _split_name(part: str) -> tuple[str | None, str]:
    """Splits an argument into its name (or None) and its value. An equals sign inside a closed ``[[…]]`` separates
    nothing.
    """
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
        if "[[" in key:  # rare: the equals sign may be in a link
            key, value = _split_name(part)
        if key is None:
            positional.append(value)
        elif (key := key.strip(BLANKS)).isdecimal() and is_number(key):
            numbered[int(key)] = value.strip(BLANKS)
        else:
            named[key] = value.strip(BLANKS)
    return numbered_in_place(name, positional, named, numbered)


def is_number(key: str) -> bool:
    """Returns whether an argument's name is a number, as in ``{{x|2=b}}``."""
    return key.isdecimal() and key.isascii() and key[0] != "0" and len(key) < 5


def numbered_in_place(name: str, positional: list[str], named: dict[str, str], numbered: dict[int, str]) -> Template:
    """Returns a template whose numbered arguments are positional. Those with large numbers stay named."""
    for number in sorted(numbered):
        missing = number - len(positional)
        if missing > _LARGEST_GAP:
            named[str(number)] = numbered[number]
            continue
        positional.extend([""] * missing)
        positional[number - 1] = numbered[number]
    return Template(name, tuple(positional), named)
