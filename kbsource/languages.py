"""Per-language facts of MediaWiki that dumps do not carry: link trails, magic words, aliases.

The data is ``languages.toml`` beside this module: MediaWiki's own messages files, as of the date given there.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True)
class Language:
    """Facts of one content language.

    Attributes:
        code: language code as in the dump.
        link_trail: inside of a regex character class of the letters that a link swallows after ``]]``; empty for
            languages without a trail (zh, ja, …).
        redirect_words: words that open a redirect page, lower case, with ``#``; always holds ``#redirect``.
        namespace_aliases: (name, number) pairs beside the canonical and siteinfo names.
        disambiguation_templates: normalised names (first letter upper, spaces) of disambiguation templates.
        disambiguation_words: behaviour switches that mark a disambiguation page, ``__DISAMBIG__`` always.
        image_options: localised option words of file links, lower case (thumb, right, …).
        infobox_prefixes: lower-case prefixes that template names of infoboxes start with.
    """

    code: str
    link_trail: str
    redirect_words: tuple[str, ...]
    namespace_aliases: tuple[tuple[str, int], ...]
    disambiguation_templates: frozenset[str]
    disambiguation_words: frozenset[str]
    image_options: frozenset[str]
    infobox_prefixes: tuple[str, ...]


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(resources.files("kbsource").joinpath("languages.toml").read_text("utf-8"))


@cache
def language(code: str) -> Language:
    """Gives the facts of a language; a code without data gets its base language's, then the defaults."""
    data = _data()
    default = data["default"]
    languages = data["language"]
    own = languages.get(code) or languages.get(code.split("-", 1)[0]) or {}

    def both(key: str) -> list[Any]:
        return [*default.get(key, []), *own.get(key, [])]

    return Language(
        code=code,
        link_trail=own.get("link_trail", default["link_trail"]),
        redirect_words=tuple(dict.fromkeys(word.lower() for word in both("redirect_words"))),
        namespace_aliases=tuple((str(name), int(number)) for name, number in both("namespace_aliases")),
        disambiguation_templates=frozenset(both("disambiguation_templates")),
        disambiguation_words=frozenset(both("disambiguation_words")),
        image_options=frozenset(word.lower() for word in both("image_options")),
        infobox_prefixes=tuple(dict.fromkeys(both("infobox_prefixes"))),
    )


@cache
def interwiki_prefixes() -> frozenset[str]:
    """Gives the lower-case prefixes that lead to sister projects and other sites (``wikt``, ``commons``, …)."""
    return frozenset(_data()["interwiki"]["prefixes"])


@cache
def language_codes() -> frozenset[str]:
    """Gives the codes of all Wikipedia language editions: a link with such a prefix is an interlanguage link."""
    return frozenset(_data()["interwiki"]["languages"])
