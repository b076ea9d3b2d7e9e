"""Templates that carry values are rendered, others are left out knowingly: one use in, its wikitext out.

The rules are data (``rules/*.toml``) over pure functions (``functions/``). Everything is decided by the name and the
arguments alone: no template source is read, and "now" is the time of the revision.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from kbsource.titles import clean_title, upper_first
from kbsource.wikitext.functions.arguments import PageFacts, Template
from kbsource.wikitext.functions.rulebook import TemplateRule, magic, rule_book
from kbsource.wikitext.markers import TEMPLATE_LINK, without_marks

__all__ = ["Rendering", "Template", "TemplateRenderer", "normalise_template_name", "split_template"]

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


WORDS_ALONE = re.compile(r"[^|]*\|(?!\s*(?:[A-Z]+|.)\s*\Z)(?:[^\W\d_]|[ ,'\u2019\u0300-\u036f-])+")
"""The inside of a template whose only argument is plain words, and no code or sign."""
_NO_SENTENCE = frozenset("\n|*#={}<>")


class Rendering(NamedTuple):
    """What stands in the page for one use of a template.

    Attributes:
        outcome: ``rendered``, ``dropped`` (known to say nothing of value), ``unknown`` or ``infobox``.
        wikitext: plain text with simple links, quotes for italics and, in blocks, lists; "" unless rendered. An
            apostrophe that the rule writes is a literal character of ``markers``.
        is_block: the wikitext must stand on lines of its own.
    """

    outcome: str
    wikitext: str
    is_block: bool = False


class LostText(NamedTuple):
    """What the reader loses of the uses of a template that are left out.

    Attributes:
        n_chars: visible characters of their arguments, blanks not counted.
        example: the first of them on one line, shortened; None where nothing is lost.
    """

    n_chars: int
    example: str | None


def lost_text(inner: str, known: LostText | None = None) -> LostText | None:
    """Gives what is lost of a use by what stands between its braces, with what was lost before it.

    >>> lost_text("sung by|the [[Choir of Ely|choir]]|year= 1990")
    LostText(n_chars=12, example='{{sung by|the [[Choir of Ely|choir]]|year= 1990}}')
    """
    arguments = inner[inner.find("|") :].replace("https://", "//").replace("http://", "//")
    n_chars = len(_UNSEEN.sub("", arguments))
    if not n_chars:
        return known
    if known is not None:
        return LostText(known.n_chars + n_chars, known.example)
    call = " ".join(without_marks(inner[: 4 * _EXAMPLE_CHARS]).split())
    if len(call) > _EXAMPLE_CHARS:
        call = f"{call[: _EXAMPLE_CHARS - 1]}…"
    return LostText(n_chars, f"{{{{{call}}}}}")


def visible_chars(wikitext: str) -> int:
    """Gives the number of characters that a reader sees of what a template shows, blanks not counted.

    >>> visible_chars("the [[Choir of Ely|choir]]")
    8
    """
    if _PLAIN.fullmatch(wikitext):  # a quarter of the time of what follows
        return len(wikitext) - wikitext.count(" ")
    return len(_UNSEEN.sub("", wikitext))


def mark_links(wikitext: str, inner: str) -> str:
    """Gives what a rule makes of a use with those links marked that do not stand in the use itself."""
    written = set(_LINK_START.findall(inner))
    return _LINK_START.sub(lambda match: match[0] if match[1] in written else f"[[{TEMPLATE_LINK}{match[1]}", wikitext)


def is_in_sentence(use: re.Match[str]) -> bool:
    """Says whether a use stands inside of a sentence: words and no structure before it on its line, and something that
    is no structure behind it."""
    text, start, end = use.string, use.start(), use.end()
    before = text[text.rfind("\n", 0, start) + 1 : start].rstrip(" ")
    behind = text[end : end + 2].lstrip(" ")[:1]
    return bool(behind) and _NO_SENTENCE.isdisjoint(before[-1:] + behind) and any(map(str.isalnum, before))


_FIXED = {outcome: Rendering(outcome, "") for outcome in ("dropped", "unknown", "infobox")}


class TemplateRenderer:
    """Renders the template uses of one page. Cheap to make: the rules of a language are read once a process.

    Attributes:
        fixed_outcome: gives normalised name and outcome, ``dropped`` or ``unknown``, of a use whose arguments do not
            matter, by what stands before its first pipe; None where the arguments decide, for parser functions and
            variables, and for what can be no template.
        page: the page.
    """

    __slots__ = ("_find", "fixed_outcome", "page")

    def __init__(self, lang: str, *, page_title: str = "", timestamp: str = "") -> None:
        """Makes a renderer.

        Args:
            lang: language code of the wiki; one without rules of its own has those of English that hold elsewhere.
            page_title: title of the page, for ``{{PAGENAME}}``.
            timestamp: ISO time of the revision, which is "now" for ``{{age}}``, ``{{CURRENTYEAR}}`` and their kin.
        """
        self._find = find_rule(lang)
        self.fixed_outcome = _fixed_outcomes(lang)
        self.page = PageFacts(lang, page_title, timestamp)

    def with_page(self, page_title: str, timestamp: str) -> TemplateRenderer:
        """Gives a renderer for another page of the same wiki."""
        return TemplateRenderer(self.page.lang, page_title=page_title, timestamp=timestamp)

    def yields(self, name: str) -> bool:
        """Says whether the wiki's own definition of a template comes before its rule."""
        return self._find(name).yields

    def render(self, template: Template) -> Rendering:
        """Gives what stands for the use; never fails on wrong or missing arguments."""
        rule = self._find(template.name)
        if rule.function is None:
            return _FIXED[rule.outcome]
        text = rule.function(template, self.page, **rule.parameters)
        if text is None:
            return _FIXED["dropped"]
        return Rendering(rule.outcome, text, rule.is_block)


@cache
def _fixed_outcomes(lang: str) -> Callable[[str], tuple[str, str] | None]:
    """Gives what gives name and outcome of a use whose arguments do not matter; it remembers what it has seen."""
    find = find_rule(lang)

    @lru_cache(maxsize=1 << 14)
    def fixed_outcome(head: str) -> tuple[str, str] | None:
        bare = head.strip()
        if len(head) > _LONGEST_NAME or ":" in head or _NO_TITLE.search(bare) or bare in magic().variables:
            return None
        name = normalise_template_name(head, lang)
        if not name:
            return None
        rule = find(name)
        return (name, rule.outcome) if rule.function is None and rule.outcome != "infobox" else None

    return fixed_outcome


@cache
def find_rule(lang: str) -> Callable[[str], TemplateRule]:
    """Gives the look-up of rules by name for a language; it remembers the names it has seen."""
    return lru_cache(maxsize=1 << 16)(rule_book(lang).find)


@lru_cache(maxsize=1 << 16)
def normalise_template_name(name: str, lang: str) -> str:
    """Gives a template's name without namespace, with spaces for underscores and its first letter upper.

    A name with another namespace (``User:X/Y``) keeps it.
    """
    title = clean_title(without_marks(name).strip()).lstrip(":").lstrip(" ")
    prefix, colon, rest = title.partition(":")
    while colon:
        folded = prefix.strip().casefold()
        if folded not in magic().template_prefixes and folded not in magic().modifiers:
            break
        title = rest.strip()
        prefix, colon, rest = title.partition(":")
    return upper_first(title, lang)


def split_template(inner: str, lang: str = "en") -> Template | None:
    """Gives name and arguments of what stands between ``{{`` and ``}}``; inner templates must be rendered already.

    Pipes and equals signs inside of ``[[…]]`` do not count. Parser functions come with their canonical English name
    (``#if``, ``formatnum:``), what follows the colon as first argument and all arguments positional and as they are;
    ``{{#tag:ref|…}}`` has the tag in its name.

    Args:
        inner: wikitext between the braces.
        lang: language of the wiki, for the case of the first letter.

    Returns:
        None where this can be no template, as its name is empty or holds characters that no title has: MediaWiki
        shows the braces then.
    """
    parts = _split_at_pipes(inner)
    head = parts[0]
    if ":" in head:
        found = _parser_function(head, parts)
        if found is not None:
            return found
    elif len(parts) == 1:
        variable = magic().variables.get(head.strip())
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


def _split_at_pipes(inner: str) -> list[str]:
    """Gives the pieces between the pipes that are not inside of a closed ``[[…]]``."""
    if "[[" not in inner:
        return inner.split("|")
    pipes: list[int] = []
    opened: list[int] = []  # for every open bracket the number of pipes before it
    for match in _BRACKET_OR_PIPE.finditer(inner):
        token = match.group()
        if token == "|":
            pipes.append(match.start())
        elif token == "[[":
            opened.append(len(pipes))
        elif opened:
            del pipes[opened.pop() :]
    parts: list[str] = []
    start = 0
    for pipe in pipes:
        parts.append(inner[start:pipe])
        start = pipe + 1
    parts.append(inner[start:])
    return parts


def _parser_function(head: str, parts: list[str]) -> Template | None:
    """Gives the use of a parser function; None when the word before the colon names none."""
    found = find_function(head)
    if found is None:
        return None
    name, first = found
    arguments = (first, *parts[1:])
    if name == "#tag":
        return Template(f"#tag:{first.strip().lower()}", arguments[1:], {})
    return Template(name, arguments, {})


def find_function(head: str) -> tuple[str, str] | None:
    """Gives the canonical name of the parser function that is used, and what follows its colon; None for none."""
    facts = magic()
    prefix, _, first = head.lstrip().partition(":")
    while prefix.strip().casefold() in facts.modifiers and ":" in first:
        prefix, _, first = first.lstrip().partition(":")
    name = facts.functions.get(prefix.strip().casefold())
    return None if name is None else (name, first)


def split_arguments(inner: str) -> Iterator[tuple[str | None, str]]:
    """Gives what stands before the first pipe, without a name, then every argument with its name or None."""
    parts = _split_at_pipes(inner)
    yield None, parts[0]
    for part in parts[1:]:
        name, equals, value = _partition_outside_links(part) if "=" in part else (part, "", "")
        yield (name, value) if equals else (None, part)


def _with_arguments(name: str, parts: list[str]) -> Template:
    positional: list[str] = []
    named: dict[str, str] = {}
    numbered: dict[int, str] | None = None
    for part in parts[1:]:
        if "=" not in part:
            positional.append(part)
            continue
        key, equals, value = part.partition("=")
        if "[[" in key:
            key, equals, value = _partition_outside_links(part)
            if not equals:
                positional.append(part)
                continue
        key = key.strip()
        if key.isdecimal() and key.isascii() and key[0] != "0" and len(key) < 5:
            numbered = numbered or {}
            numbered[int(key)] = value.strip()
        else:
            named[key] = value.strip()
    if numbered:
        for number in sorted(numbered):
            missing = number - len(positional)
            if missing > _LARGEST_GAP:
                named[str(number)] = numbered[number]
                continue
            positional.extend([""] * missing)
            positional[number - 1] = numbered[number]
    return Template(name, tuple(positional), named)


def _partition_outside_links(part: str) -> tuple[str, str, str]:
    """Gives what stands before and behind the first equals sign that is not inside of a closed ``[[…]]``."""
    signs: list[int] = []
    opened: list[int] = []
    for match in _BRACKET_OR_EQUALS.finditer(part):
        token = match.group()
        if token == "=":
            signs.append(match.start())
        elif token == "[[":
            opened.append(len(signs))
        elif opened:
            del signs[opened.pop() :]
    if not signs:
        return part, "", ""
    return part[: signs[0]], "=", part[signs[0] + 1 :]
