"""Text -> tokens with true offsets: spaCy's rule-based tokenizer of the language, made free of context.

The law of this module: for any text and any of its tokens i <= j, the tokens of ``text[start_i:end_j]`` have the normal
forms of tokens i to j. So a score that was computed on a page's tokens is the score of the slice that is stored.
spaCy alone does not give that (it splits ``U.S.-led`` otherwise than ``led``), so its rules are asked only inside
pieces that hold no white space, and a split is taken only if each of its parts is split the same way alone.
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

# Languages whose spaCy class does not work by rules or asks for a package of its own (checked with spaCy 3.8), and
# Wikipedia's codes that spaCy knows under another name.
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

# Scripts that are written without spaces: every letter is a token of its own, with the marks that follow it.
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
# Dashes, middle dots and the zero-width space part words whatever stands around them.
_PARTING = "\u2014\u2015\u2e3a\u2e3b\u30fb\uff65\u200b"
# What spaCy's rules know only in its ASCII form; one code point for one, so offsets stay.
_AS_ASCII = str.maketrans(
    {**dict.fromkeys("\u2010\u2011\u2012\u2013\u2212", "-"), **dict.fromkeys("\u2018\u2019\u02bc\u2032", "'")}
)
# Where spaCy cuts 10^18, which is one word as 10¹⁸ is.
_POWER = re.compile(r"(?<=[0-9])\^(?=[0-9-])")
# Pieces of more tokens than this stay whole. The check of a split is quadratic; words do not come near.
_MAX_PARTS = 12
# Nor are longer pieces asked about: spaCy takes quadratic time on long runs of symbols.
_MAX_ASKED_CHARS = 200
# Longer chunks are whole clauses of scripts without spaces, or rubbish: they hardly come twice.
_CACHED_CHARS = 40
_CHUNK = re.compile(r"\S+")  # the same pieces as str.split()
# Chunks kept, and pieces that spaCy is asked about before all is forgotten; with its own store some 100 MB when full.
_CACHE_SIZE = 1 << 17


class Token(NamedTuple):
    """A token whose form is not empty: half-open code-point offsets in the text, and its normal form.

    Punctuation belongs to the token where spaCy leaves the two together (``U.S.``), and to none elsewhere.
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
    """Whether nothing of a word stands on at least one side: no match that is cut there cuts a word.

    Letters, digits, marks and ``_`` are of words. In scripts without spaces every letter ends a word.
    """
    if position in (0, len(text)):
        return True
    before, after = text[position - 1], text[position]
    return not (_is_word(before) and _is_word(after)) or _is_unspaced(before) or _is_unspaced(after)


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_" or unicodedata.category(char).startswith("M")


class _Chunks(dict[str, tuple[str, ...]]):
    """Normal forms of the tokens of chunks without white space; an absent one is worked out."""

    def __init__(self, work_out: Callable[[str], tuple[str, ...]]) -> None:
        super().__init__()
        self._work_out = work_out

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        forms = self._work_out(chunk)
        if len(chunk) <= _CACHED_CHARS:
            self[chunk] = forms
        return forms


class _Split(NamedTuple):
    """Bounds of the tokens of a core (a piece that begins and ends with characters that are not void)."""

    bounds: tuple[tuple[int, int], ...]
    forms: tuple[str, ...]


def tokeniser_name(lang: str) -> str:
    """The name that the tokeniser of a language has, without making it."""
    return f"spacy {version('spacy')} {_spacy_lang(lang)}"


@cache
def stop_words(lang: str) -> frozenset[str]:
    """The normal forms of the words of a language that carry no meaning by themselves; none where spaCy has no list."""
    import spacy  # takes a second

    return frozenset(map(normal_form, spacy.util.get_lang_class(_spacy_lang(lang)).Defaults.stop_words))


class Tokeniser:
    """Tokenises texts of one language. Holds caches of bounded size; make one for each process.

    Attributes:
        name: what it is and its version, for manifests: ``spacy 3.8.18 en``.
    """

    def __init__(self, lang: str) -> None:
        self._lang = _spacy_lang(lang)
        self.name = tokeniser_name(lang)
        self._chunks = _Chunks(self._chunk_forms)
        self._splits: dict[str, _Split] = {}
        self._counts: dict[str, int] = {}
        self._n_asked = 0
        # Where it is used alone: it takes a second, and loads PyTorch where that is installed.
        import spacy

        self._rules = _renewed(spacy.blank(self._lang).tokenizer)

    def forms(self, text: str) -> list[str]:
        """The normal forms of the text's tokens, in order. Much faster than ``tokens``."""
        self._forget()
        return [form for chunk in text.split() for form in self._chunks[chunk]]

    def count(self, text: str) -> int:
        """The number of tokens that spaCy finds, marks by themselves counted too; letters of scripts without
        spaces one by one."""
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
            # spaCy keeps every string it has met, so that goes as well.
            self._chunks.clear()
            self._splits.clear()
            self._counts.clear()
            self._rules = _renewed(self._rules)
            self._n_asked = 0

    def tokens(self, text: str) -> list[Token]:
        """The text's tokens in order; those of punctuation alone are left out."""
        found: list[Token] = []
        for chunk in _CHUNK.finditer(text):
            found += self._chunk_tokens(chunk)
        return found

    def token(self, text: str, index: int) -> Token:
        """Gives ``tokens(text)[index]`` at the cost of ``forms``."""
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
            # Punctuation at the ends is part of the token where spaCy says so; forms do not change by it.
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
        """Whether the core without its first and without its last token is split the same way alone.

        What is accepted there is stable by the same test, so by induction every run of its tokens is.
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
    """A tokenizer of the same rules whose store of strings is empty.

    The new store does not work out shapes, prefixes and other facts about words either, which take half of the time
    and which splitting does not use.
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
