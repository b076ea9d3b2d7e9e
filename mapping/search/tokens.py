"""Splits text into tokens with exact offsets: spaCy's rule-based tokenizer of the language, made independent of
context.

The invariant of this module: for any text and any of its tokens i <= j, the tokens of ``text[start_i:end_j]`` have the
normal forms of tokens i to j. A score computed on a page's tokens is therefore also the score of the stored slice.
spaCy does not guarantee this by itself (it splits ``U.S.-led`` differently from ``led``), so its rules are applied only
inside segments without white space, and a split is accepted only if each of its parts is split the same way in
isolation.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, NamedTuple

from mapping.search.text import is_void, normal_form, on_the_line

# Languages whose spaCy class is not rule-based or requires another package (checked with spaCy 3.8), and Wikipedia
# codes that spaCy knows by another name.
_SPACY_LANG = {
    "ja": "xx",
    "ko": "xx",
    "th": "xx",
    "vi": "xx",
    "zh": "xx",
    "simple": "en",
    "no": "nb",
    "als": "de",
    "bar": "de",
    "be-x-old": "xx",
}
_FALLBACK_LANG = "xx"

# Scripts written without spaces: every letter is a separate token, together with its combining marks.
_UNSPACED = (
    (0x0E00, 0x0FFF),  # Thai, Lao, Tibetan
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # Han iteration mark, closing mark, zero
    (0x3040, 0x312F),  # Hiragana, Katakana, Bopomofo
    (0x31A0, 0x31BF),  # Bopomofo extended
    (0x31F0, 0x31FF),  # Katakana phonetic extensions
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # half-width Katakana
    (0x1B000, 0x1B16F),  # Kana supplements
    (0x20000, 0x323AF),  # Han
)
# Dashes, middle dots and the zero-width space separate words in any context.
_PARTING = "\u2014\u2015\u2e3a\u2e3b\u30fb\uff65\u200b"
# Characters that spaCy's rules handle only in ASCII. They are replaced one for one, so offsets are preserved.
_AS_ASCII = str.maketrans(
    {**dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-"), **dict.fromkeys("\u2018\u2019\u02bc\u2032", "'")}
)
# spaCy splits 10^18 here; it is one word, like 10¹⁸.
_POWER = re.compile(r"(?<=[0-9])\^(?=[0-9-])")
# Segments with more tokens than this are not split. Checking a split is quadratic; real words stay far below.
_MAX_PARTS = 12
# Longer segments are not passed to spaCy, which takes quadratic time on long runs of symbols.
_MAX_ASKED_CHARS = 200
# Longer chunks are not cached. They are whole clauses of scripts without spaces, or garbage, and rarely occur twice.
_CACHED_CHARS = 40
_CHUNK = re.compile(r"\S+")  # the same segments as str.split()
# Number of cached chunks, and of segments passed to spaCy, before all caches are cleared. Full caches and spaCy's own
# store take about 100 MB.
_CACHE_SIZE = 1 << 17


class Token(NamedTuple):
    """A token whose form is not empty: half-open code-point offsets in the text, and its normal form.

    Punctuation belongs to a token where spaCy keeps the two together (``U.S.``); otherwise it belongs to no token.
    """

    start: int
    end: int
    form: str


@cache
def _piece_pattern() -> re.Pattern[str]:
    letters, marks = [], []
    for first, last in _UNSPACED:
        if last - first > 0x400:
            letters.append(f"{chr(first)}-{chr(last)}")
            continue
        for number in range(first, last + 1):
            char = chr(number)
            if unicodedata.category(char).startswith("M"):
                marks.append(char)
            elif not is_void(char):
                letters.append(char)
    marks.append("\u0300-\u036f\ufe00-\ufe0f\U000e0100-\U000e01ef")
    unspaced = "".join(letters)
    return re.compile(f"(?P<letter>[{unspaced}])[{''.join(marks)}]*|[^{unspaced}{_PARTING}]+")


@cache
def _is_unspaced(char: str) -> bool:
    found = _piece_pattern().match(char)
    return found is not None and found["letter"] is not None


def is_word_boundary(text: str, position: int) -> bool:
    """Returns whether at least one side of a position is not part of a word, so a match that ends there cuts no word.

    Letters, digits, marks and ``_`` are parts of words. In scripts without spaces every letter ends a word.
    """
    if position in (0, len(text)):
        return True
    before, after = text[position - 1], text[position]
    return not (_is_word(before) and _is_word(after)) or _is_unspaced(before) or _is_unspaced(after)


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char).startswith("M")


class _Chunks(dict[str, tuple[str, ...]]):
    """Cache of the normal forms of the tokens of each chunk without white space; missing entries are computed."""

    def __init__(self, work_out: Callable[[str], tuple[str, ...]]) -> None:
        super().__init__()
        self._work_out = work_out

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        forms = self._work_out(chunk)
        if len(chunk) <= _CACHED_CHARS:
            self[chunk] = forms
        return forms


class _Split(NamedTuple):
    """Bounds of the tokens of a core, which is a segment without void characters (such as punctuation) at its ends."""

    bounds: tuple[tuple[int, int], ...]
    forms: tuple[str, ...]


def tokeniser_name(lang: str) -> str:
    """Returns the name of a language's tokeniser without creating it."""
    return f"spacy {version('spacy')} {_spacy_lang(lang)}"


@cache
def stop_words(lang: str) -> frozenset[str]:
    """Returns the normal forms of a language's stop words; empty if spaCy has no list."""
    import spacy  # takes a second

    return frozenset(map(normal_form, spacy.util.get_lang_class(_spacy_lang(lang)).Defaults.stop_words))


class Tokeniser:
    """Tokenises texts of one language. Its caches have bounded size; create one tokeniser per process.

    Attributes:
        name: the tokeniser and its version, for manifests: ``spacy 3.8.18 en``.
    """

    def __init__(self, lang: str) -> None:
        self._lang = _spacy_lang(lang)
        self.name = tokeniser_name(lang)
        self._chunks = _Chunks(self._chunk_forms)
        self._splits: dict[str, _Split] = {}
        self._counts: dict[str, int] = {}
        self._n_asked = 0
        # Imported only where it is used: it takes a second, and loads PyTorch if that is installed.
        import spacy

        self._rules = _renewed(spacy.blank(self._lang).tokenizer)

    def forms(self, text: str) -> list[str]:
        """Returns the normal forms of the text's tokens, in order. Much faster than ``tokens``."""
        self._forget()
        return [form for chunk in text.split() for form in self._chunks[chunk]]

    def count(self, text: str) -> int:
        """Returns the number of tokens that spaCy finds, including separate punctuation marks; in scripts without
        spaces, letters are counted one by one."""
        self._forget()
        n_tokens = 0
        for chunk in text.split():
            known = self._counts.get(chunk)
            if known is None:
                pieces = _piece_pattern().finditer(chunk)
                known = sum(1 if piece["letter"] else len(self._ask(piece[0])) for piece in pieces) or 1
                if len(chunk) <= _CACHED_CHARS:
                    self._counts[chunk] = known
            n_tokens += known
        return n_tokens

    def _forget(self) -> None:
        if max(len(self._chunks), len(self._counts), self._n_asked) > _CACHE_SIZE:
            # spaCy keeps every string it has seen, so its store is dropped too.
            self._chunks.clear()
            self._splits.clear()
            self._counts.clear()
            self._rules = _renewed(self._rules)
            self._n_asked = 0

    def tokens(self, text: str) -> list[Token]:
        """Returns the text's tokens in order, without those that are only punctuation."""
        found: list[Token] = []
        for chunk in _CHUNK.finditer(text):
            found += self._chunk_tokens(chunk)
        return found

    def token(self, text: str, index: int) -> Token:
        """Returns ``tokens(text)[index]`` at the cost of ``forms``."""
        for chunk in _CHUNK.finditer(text):
            n_tokens = len(self._chunks[chunk[0]])
            if index < n_tokens:
                return self._chunk_tokens(chunk)[index]
            index -= n_tokens
        raise IndexError(f"no token {index} tokens past the end")

    def _chunk_tokens(self, chunk: re.Match[str]) -> list[Token]:
        found = []
        for piece in _piece_pattern().finditer(chunk[0]):
            start = chunk.start() + piece.start()
            if piece["letter"]:
                found.append(Token(start, start + len(piece[0]), _letter_form(piece[0])))
            else:
                found += self._piece_tokens(piece[0], start)
        return found

    def _chunk_forms(self, chunk: str) -> tuple[str, ...]:
        if chunk.isascii():
            return self._piece_forms(chunk)
        forms: list[str] = []
        for piece in _piece_pattern().finditer(chunk):
            if piece["letter"]:
                forms.append(_letter_form(piece[0]))
            else:
                forms += self._piece_forms(piece[0])
        return tuple(forms)

    def _piece_forms(self, piece: str) -> tuple[str, ...]:
        first, last = _core(piece)
        return self._split(piece[first:last]).forms if first < last else ()

    def _piece_tokens(self, piece: str, start: int) -> list[Token]:
        first, last = _core(piece)
        if first == last:
            return []
        split = self._split(piece[first:last])
        bounds = [(first + begin, first + end) for begin, end in split.bounds]
        if last - first < len(piece) <= _MAX_ASKED_CHARS:
            # Punctuation at the ends is part of a token where spaCy says so; the forms are unaffected.
            for begin, end in self._ask(piece):
                if begin < first < end:
                    bounds[0] = (begin, bounds[0][1])
                if begin < last < end:
                    bounds[-1] = (bounds[-1][0], end)
        return [Token(start + begin, start + end, form) for (begin, end), form in zip(bounds, split.forms, strict=True)]

    def _split(self, core: str) -> _Split:
        known = self._splits.get(core)
        if known is None:
            parts = [(begin, end, normal_form(core[begin:end])) for begin, end in self._ask(core)]
            parts = [part for part in parts if part[2]]
            if len(parts) == 1 or not self._is_stable(core, parts):
                known = _Split(((0, len(core)),), (normal_form(core),))
            else:
                known = _Split(tuple((begin, end) for begin, end, _ in parts), tuple(form for *_, form in parts))
            if len(core) <= _CACHED_CHARS:
                self._splits[core] = known
        return known

    def _is_stable(self, core: str, parts: list[tuple[int, int, str]]) -> bool:
        """Returns whether the core without its first token, and without its last token, is split the same way in
        isolation.

        The shorter cores passed the same test before their splits were accepted. So, by induction, every run of tokens
        of the core is split the same way in isolation.
        """
        if len(parts) > _MAX_PARTS:
            return False
        forms = tuple(form for *_, form in parts)
        without_first, without_last = core[parts[1][0] :], core[: parts[-2][1]]
        return self._piece_forms(without_first) == forms[1:] and self._piece_forms(without_last) == forms[:-1]

    def _ask(self, piece: str) -> list[tuple[int, int]]:
        if len(piece) > _MAX_ASKED_CHARS:
            return [(0, len(piece))]
        self._n_asked += 1
        asked = (on_the_line(piece) if "⁻" in piece else piece).translate(_AS_ASCII)
        if "^" in asked:
            asked = _POWER.sub("0", asked)
        return [(rule.idx, rule.idx + len(rule)) for rule in self._rules(asked)]


@lru_cache(maxsize=1 << 15)
def _letter_form(letter: str) -> str:
    return normal_form(letter)


def _core(piece: str) -> tuple[int, int]:
    first, last = 0, len(piece)
    while first < last and is_void(piece[first]):
        first += 1
    while first < last and is_void(piece[last - 1]):
        last -= 1
    return first, last


@cache
def _spacy_lang(lang: str) -> str:
    code = _SPACY_LANG.get(lang, lang)
    spec = find_spec("spacy")
    assert spec is not None
    if any(os.path.isdir(os.path.join(folder, "lang", code)) for folder in spec.submodule_search_locations or ()):
        return code
    import spacy  # knows further names of languages

    try:
        spacy.util.get_lang_class(code)
    except ImportError:
        return _FALLBACK_LANG
    return code


def _renewed(rules: Any) -> Any:
    """Returns a tokenizer with the same rules and an empty string store.

    The new store also skips shapes, prefixes and other lexical attributes, which take half of the time and are not
    needed for splitting.
    """
    return type(rules)(
        type(rules.vocab)(),
        rules=rules.rules,
        prefix_search=rules.prefix_search,
        suffix_search=rules.suffix_search,
        infix_finditer=rules.infix_finditer,
        token_match=rules.token_match,
        url_match=rules.url_match,
    )
