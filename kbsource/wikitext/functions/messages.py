"""What languages write in lists and durations, and which languages stand in for one that has no words of its own."""

from __future__ import annotations

from functools import cache

from kbsource.wikitext.functions.arguments import read_rules

_DURATIONS = ("seconds", "minutes", "hours", "days", "weeks", "years", "decades", "centuries", "millennia")


@cache
def _messages() -> tuple[dict[str, tuple[str, ...]], dict[str, dict[str, str]]]:
    """Languages that stand in for one; and by key and language, messages."""
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
    """The languages that stand in for one, the nearest first; without English, which stands in for all.

    >>> fallbacks("pt-br"), fallbacks("de")
    (('pt',), ())
    """
    return _messages()[0].get(code, ())


def message(key: str, lang: str) -> str | None:
    """The text of a message in a language, or of the nearest that has it; None for a key that there is none of.

    Durations have their forms by number, with ``|`` between.

    >>> message("and", "de"), message("duration-days", "de-at")
    (' und', '$1 Tag|$1 Tagen')
    """
    texts = _messages()[1].get(key)
    return None if texts is None else next(texts[code] for code in (lang, *fallbacks(lang), "en") if code in texts)
