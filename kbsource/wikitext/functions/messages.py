"""Words that languages use in lists and durations, and the fallback languages of languages without words of their
own.
"""

from __future__ import annotations

from functools import cache

from kbsource.wikitext.functions.arguments import read_rules

_DURATIONS = ("seconds", "minutes", "hours", "days", "weeks", "years", "decades", "centuries", "millennia")


@cache
def _messages() -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, str]]]:
    """Returns the fallback languages by language, and messages by key and language."""
    data = read_rules("messages")
    chains = {code: tuple(chain.split()) for chain, codes in data["fallback"].items() for code in codes.split()}
    forms = data["duration"]
    messages = {
        key: {code: text for text, codes in rows.items() for code in codes.split()}
        for key, rows in data.items()
        if key not in ("fallback", "duration")
    }
    messages |= {f"duration-{name}": {code: forms[code][i] for code in forms} for i, name in enumerate(_DURATIONS)}
    return chains, messages


def fallbacks(code: str) -> tuple[str, ...]:
    """Returns the fallback languages of a language, nearest first, without English, which is the last fallback of all.

    >>> fallbacks("pt-br"), fallbacks("de")
    (('pt',), ())
    """
    return _messages()[0].get(code, ())


def message(key: str, lang: str) -> str | None:
    """Returns the text of a message in a language, or in its nearest fallback that has it; None for an unknown key.

    Durations contain their plural forms, separated by ``|``.

    >>> message("and", "de"), message("duration-days", "de-at")
    (' und', '$1 Tag|$1 Tagen')
    """
    texts = _messages()[1].get(key)
    return None if texts is None else next(texts[code] for code in (lang, *fallbacks(lang), "en") if code in texts)
