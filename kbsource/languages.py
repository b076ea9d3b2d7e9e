"""Per-language facts of MediaWiki that dumps do not contain: link trails, magic words, aliases, prefixes.

The data is in ``languages.toml`` in the same folder; its header names the sources and their date.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Language:
    """Facts about one content language, as used by the Wikipedia edition in that language."""

    #: code of the edition, as in its host name (``no`` for the content language ``nb``); for an unknown edition, the
    #: code as passed
    code: str
    #: letters directly after ``]]`` that belong to the link (the link trail), written as the inside of a regex
    #: character class; empty for languages without a link trail (zh)
    link_trail: str
    #: regexes of longer sequences that also belong to the link trail (ca: an apostrophe that does not begin italics)
    link_trail_sequences: tuple[str, ...]
    #: words at the beginning of redirect pages, in lower case with ``#``, ``#redirect`` included
    redirect_words: tuple[str, ...]
    #: pairs of name and number: the language's names of the namespaces, aliases and shortcuts, in addition to the
    #: canonical names
    namespace_aliases: tuple[tuple[str, int], ...]
    #: normalised names (first letter upper, spaces) of disambiguation templates
    disambiguation_templates: frozenset[str]
    #: behaviour switches that mark a disambiguation page, ``__DISAMBIG__`` included
    disambiguation_words: frozenset[str]
    infobox_prefixes: tuple[str, ...]  #: lower-case prefixes of the names of infobox templates
    infobox_suffixes: tuple[str, ...]  #: lower-case suffixes of the names of infobox templates
    #: characters directly before ``[[`` that belong to the link (the link prefix), written as the inside of a regex
    #: character class; empty for languages without a link prefix
    link_prefix: str
    behaviour_switches: tuple[str, ...]  #: case-sensitive behaviour switches, with their underscores
    behaviour_switches_any_case: tuple[str, ...]  #: case-insensitive behaviour switches

    def link_trail_pattern(self) -> re.Pattern[str]:
        """Returns a regex that matches the link trail, for ``match(text, position)`` at the end of a link.

        If the language has no link trail, it never matches.
        """
        return _trail_pattern(self.link_trail, self.link_trail_sequences)

    def link_prefix_pattern(self) -> re.Pattern[str] | None:
        """Returns a regex that finds the link prefix at the end of the text before a link; None for a language without
        link prefix.
        """
        return re.compile(rf"[{self.link_prefix}]+\Z") if self.link_prefix else None

    def switch_pattern(self) -> re.Pattern[str]:
        """Returns a regex for the language's behaviour switches."""
        return _switch_pattern(self.code)


@cache
def _trail_pattern(letters: str, sequences: tuple[str, ...]) -> re.Pattern[str]:
    if not letters:
        return re.compile(r"(?!)")
    if sequences:
        return re.compile(f"(?:[{letters}]|{'|'.join(sequences)})+")
    return re.compile(f"[{letters}]+")


@cache
def _switch_pattern(code: str) -> re.Pattern[str]:
    facts = language(code)
    exact = {*facts.behaviour_switches, *facts.disambiguation_words}
    words = sorted([*exact, *facts.behaviour_switches_any_case], key=lambda word: (-len(word), word))
    start = "__" if all(word.startswith("__") for word in words) else ""
    # Switches that do not begin with __ are found by their first character.
    first = start or f"[{''.join(sorted({word[0] for word in words}))}]"
    rest = [re.escape(word[len(start) or 1 :]) for word in words]
    if not start:
        rest = [f"(?<={word[0]}){piece}" for word, piece in zip(words, rest, strict=True)]
    return re.compile(
        f"{first}(?:"
        + "|".join([piece if word in exact else f"(?i:{piece})" for word, piece in zip(words, rest, strict=True)])
        + ")"
    )


_SECTION = re.compile(r"^\[([^\]\n]+)\]\n", re.MULTILINE)


@cache
def _sections() -> dict[str, str]:
    """Returns the source of every section. Parsing all of them would cost each process a tenth of a second."""
    from importlib import resources  # a slow import, like ``tomllib``

    pieces = _SECTION.split(resources.files("kbsource").joinpath("languages.toml").read_text("utf-8"))
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


@cache
def _section(name: str) -> dict[str, Any]:
    """Returns a section; empty if there is no section of that name."""
    import tomllib

    return tomllib.loads(_sections().get(name, ""))


def edition_code(code: str) -> str:
    """Returns the code of a Wikipedia edition from a language code in any spelling.

    Accepts content language codes (``nb``, ``yue``), old codes (``be-x-old``) and database spellings (``zh_yue``). An
    unknown code is returned in lower case with hyphens.
    """
    plain = code.lower().replace("_", "-")
    edition: str = _section("codes").get(plain, plain)
    return edition


@cache
def language(code: str) -> Language:
    """Returns the facts about a language. A code without data gets the facts about its base language, then the
    defaults.

    ``code`` may have any spelling that ``edition_code`` accepts.
    """
    default = _section("default")
    edition = edition_code(code)
    own = _section(f"language.{edition}")
    if not own and edition not in language_codes():
        own = _section(f"language.{edition_code(edition.partition('-')[0])}")

    def both(key: str) -> list[Any]:
        return [*default.get(key, []), *own.get(key, [])]

    def distinct(key: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(both(key)))

    return Language(
        code=edition,
        link_trail=own.get("link_trail", default["link_trail"]),
        link_trail_sequences=tuple(own.get("link_trail_sequences", ())),
        redirect_words=distinct("redirect_words"),
        namespace_aliases=tuple((str(name), int(number)) for name, number in both("namespace_aliases")),
        disambiguation_templates=frozenset(both("disambiguation_templates")),
        disambiguation_words=frozenset(both("disambiguation_words")),
        infobox_prefixes=distinct("infobox_prefixes"),
        infobox_suffixes=distinct("infobox_suffixes"),
        link_prefix=own.get("link_prefix", default["link_prefix"]),
        behaviour_switches=distinct("behaviour_switches"),
        behaviour_switches_any_case=distinct("behaviour_switches_any_case"),
    )


@cache
def interwiki_prefixes() -> frozenset[str]:
    """Returns the lower-case prefixes that point to sister projects and other sites (``wikt``, ``commons``).

    Leaves out words in Wikimedia's interwiki map with which article titles begin too, if they were added late or point
    nowhere (``discord``, ``github``, ``quality``).
    """
    return frozenset(_section("interwiki")["prefixes"])


@cache
def language_codes() -> frozenset[str]:
    """Returns the codes of all Wikipedia language editions, including closed editions and aliases (``nb``, ``zh-cn``).

    A link that begins with one of these codes and a colon is an interlanguage link.
    """
    return frozenset(_section("interwiki")["languages"])


@cache
def own_prefixes(edition: str) -> frozenset[str]:
    """Returns the lower-case prefixes that an edition uses for itself: its code, and on en also ``w``."""
    return frozenset((edition, *_section("interwiki.own").get(edition, ())))
