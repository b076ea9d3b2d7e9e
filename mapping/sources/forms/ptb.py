"""Running text -> tokens as in the Penn Treebank, with their offsets; characters stay as they are.

Punctuation and clitics (``n't``, ``'s``) are tokens of their own; commas and colons in numbers, hyphens, the periods of
abbreviations and the ampersand of ``R&D`` are not.

Source: the Penn Treebank's tokenizer.sed by R. MacIntyre (1995), which knows the end of a sentence from the end of its
line. Here a period ends one where white space follows and the word is no abbreviation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_CHUNK = re.compile(r"\S+")
_SINGLE = r""";@#$%?!"\u201c\u201d\u201e\u00ab\u00bb\u2026\[\](){}<>"""
_WHOLE = ("...", "--", "''", "``")
_DOUBLE = "|".join(map(re.escape, _WHOLE))
_IN_WORD = rf"[^{_SINGLE}:,&]|[:,](?=\d)|(?<=\w)&(?=\w)"
_PIECE = re.compile(rf"{_DOUBLE}|(?:(?!{_DOUBLE})(?:{_IN_WORD}))+|.")
_CLOSERS = re.compile(r"""[\])}>"'\u201d\u2019\u00bb]*""")
_CLITIC = re.compile(r"(?:'[sS]|'[mM]|'[dD]|'ll|'LL|'re|'RE|'ve|'VE|n't|N'T)$")
_AS_ASCII = str.maketrans("\u2018\u2019", "''")
_PAIRS = "can not,gim me,gon na,got ta,lem me,wan na,d 'ye,more 'n,'t is,'t was"
_JOINED = {pair.replace(" ", ""): pair.index(" ") for pair in _PAIRS.split(",")}
"""Two words written as one -> length of the first."""
_ABBREVIATIONS = frozenset(
    "adm al approx apr aug ave blvd bros ca capt cf cmdr co col corp cos dec dept dr est etc feb fig ft gen gov hon inc"
    " jan jr jul jun lt ltd maj mar messrs mr mrs ms mt no nos nov oct op pp pres prof rd rep rev sen sep sept sgt sr"
    " st ste univ vol vs".split()
)
_INITIALS = re.compile(r"(?:\w\.)*\w")


def token_spans(text: str) -> Iterator[tuple[int, int]]:
    """Gives the half-open code-point offsets of the tokens of a text, in order.

    >>> text = "He can't pay Mr. Hale's $1,000 (or won't)."
    >>> " ".join(text[start:end] for start, end in token_spans(text))
    "He ca n't pay Mr. Hale 's $ 1,000 ( or wo n't ) ."
    """
    end_of_text = len(text.rstrip())
    for chunk in _CHUNK.finditer(text):
        for piece in _PIECE.finditer(text, chunk.start(), chunk.end()):
            yield from _split(text, piece.start(), piece.end(), end_of_chunk=chunk.end(), end_of_text=end_of_text)


def _split(text: str, start: int, end: int, *, end_of_chunk: int, end_of_text: int) -> Iterator[tuple[int, int]]:
    """Gives the tokens of a piece without punctuation that always stands alone."""
    word = text[start:end].translate(_AS_ASCII)
    if len(word) == 1 or word in _WHOLE:
        yield start, end
        return
    if word.endswith(".") and not word.endswith(".."):
        closed = _CLOSERS.match(text, end, end_of_chunk)
        assert closed is not None  # nothing closes just as well
        if closed.end() == end_of_text or (closed.end() == end_of_chunk and not _is_abbreviation(word[:-1])):
            yield from _split(text, start, end - 1, end_of_chunk=end - 1, end_of_text=-1)
            yield end - 1, end
            return
    if word[0] == "'" and word[1].isalpha() and not _CLITIC.fullmatch(word) and word.lower() not in _JOINED:
        yield start, start + 1
        start, word = start + 1, word[1:]
    if word.endswith("'") and len(word) > 1:
        yield from _parts(word[:-1], start)
        yield end - 1, end
    else:
        yield from _parts(word, start)


def _parts(word: str, start: int) -> Iterator[tuple[int, int]]:
    clitic = _CLITIC.search(word)
    cut = _JOINED.get(word.lower()) or (clitic.start() if clitic else 0)
    if cut:
        yield start, start + cut
    yield start + cut, start + len(word)


def _is_abbreviation(word: str) -> bool:
    """Says whether a word keeps its period: ``Mr``, ``J``, ``U.S``."""
    bare = word.lstrip("'")
    return bare.lower() in _ABBREVIATIONS or (bare[-1:].isalpha() and _INITIALS.fullmatch(bare) is not None)
