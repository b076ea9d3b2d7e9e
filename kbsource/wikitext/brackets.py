"""Square brackets: only links that will parse go to the tokenizer; the rest is plain text.

A tokenizer that meets an opener without a closer tries, fails and goes back, once for each opener: quadratic time.
Here every bracket is matched beforehand on a stack, so what is left always parses.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import repeat
from typing import NamedTuple

from kbsource.wikitext.markers import FRAGMENT, HEADING, LITERAL_OF, TEMPLATE_LINK, TRAIL_STOP, single_spaces

MAX_LINK_DEPTH = 12
MAX_REPAIRS = 6
_SCHEMES = "https?://|ftps?://|//|mailto:|irc://|ircs://|news:|gopher://|telnet://|git://|svn://|tel:|urn:|geo:|magnet:"
_PLAIN = r"\[\[([^\[\]{}<>|\n\x06]+)(?:\]\]|\|"  # as far as the label
_PLAIN_LINK = re.compile(_PLAIN + r"([^\[\]\n]*)\]\])")
# Every alternative begins with a plain character: the search then leaps from bracket to bracket. The empty groups tell
# which alternative it was.
_BRACKET = re.compile(
    _PLAIN + r"(?:[^\[\]\n]*\]\]|(?P<opener>)))"  # a plain link, or an opener with its bar
    r"|\]\](?P<closer>)"
    rf"|\[(?:{_SCHEMES})[^\s\[\]|\x06]+(?:[^\[\]\n]*\](?P<external>)|(?P<external_opener>))"
    r"|\[(?:(?=\[\[(?!\[))|(?!\[))(?P<single>)"  # the first of three, or a single one
    r"|\[\[(?P<stray>)"  # an opener that can open nothing
)
# What follows the address of an external link with plain links in its label. It ends at the first bracket that is none
# of theirs, so that no part of a text is looked at for two openers.
_LABEL_WITH_LINKS = re.compile(r"(?:[^\[\]\n]|\[\[[^\[\]\n]*\]\])*+\]")
# A trail stop whose closer was dropped.
_STRAY_STOP = re.compile(f"(?<!\\]\\]){TRAIL_STOP}")
_STRAY_MARK = re.compile(rf"(?<!\[\[){TEMPLATE_LINK}")
_PLAIN_OPEN = LITERAL_OF["["]


class CutText(NamedTuple):
    """A text cut into links and what stands between them.

    Attributes:
        pieces: (text before, target, label, source) of every outermost link. A plain link has its target, and its label
            or None, and no source. Links with brackets or newlines in their label, and external links, need a parser:
            they have their source and no label, external ones no target.
        rest: the text after the last link.
    """

    pieces: list[tuple[str, str, str | None, str]]
    rest: str


def match_brackets(text: str, losses: Counter[str]) -> CutText:
    """Gives the text cut so that every ``[[`` opens a link with a closer, and every ``[`` an external link with one.

    ``[[`` without partner and stray ``]]`` are dropped and counted as ``broken_markup``; a pipe after such an opener
    becomes a space. Single brackets that open no external link stay text.
    """
    cut, edits = _match(text)
    for _ in range(MAX_REPAIRS):
        if not edits:
            return _without_stray_stops(cut) if TRAIL_STOP in text else cut
        losses["broken_markup"] += sum(1 for edit in edits if edit.is_broken)
        text = _STRAY_STOP.sub("", single_spaces(_apply(text, edits)))
        cut, edits = _match(text)
    if edits:  # what is dropped keeps joining its sides to something new: then no bracket of the page is markup
        text = _STRAY_STOP.sub("", text.replace("[[", "").replace("]]", ""))
        return CutText([], text)
    return cut


def _without_stray_stops(cut: CutText) -> CutText:
    """Gives the cut text with trail stops directly behind links only."""

    def kept(gap: str) -> str:
        return gap[:1] + gap[1:].replace(TRAIL_STOP, "") if TRAIL_STOP in gap else gap

    pieces = [(kept(gap), target, label, source) for gap, target, label, source in cut.pieces]
    return CutText(pieces, kept(cut.rest))


def without_stray_marks(cut: CutText) -> CutText:
    """Gives the cut text with marks of templates' links in links only."""
    mark = TEMPLATE_LINK
    pieces = [
        (gap.replace(mark, ""), target, label and label.replace(mark, ""), _STRAY_MARK.sub("", source))
        if mark in gap or mark in source or (label and mark in label)
        else (gap, target, label, source)
        for gap, target, label, source in cut.pieces
    ]
    return CutText(pieces, cut.rest.replace(mark, ""))


class _Edit(NamedTuple):
    start: int
    end: int
    replacement: str
    is_broken: bool


def _match(text: str) -> tuple[CutText, list[_Edit]]:
    """Gives the text cut at its outermost links, and the edits that a text with unmatched brackets needs first.

    Plain links are split off at once. Only where other brackets stand between them, a stack tells what they open.
    """
    parts = _PLAIN_LINK.split(text)
    gaps, targets, labels = parts[::3], parts[1::3], parts[2::3]
    odd = [number for number, gap in enumerate(gaps) if "[" in gap or "]" in gap]
    if not odd:
        return CutText([*zip(gaps, targets, labels, repeat(""))], gaps[-1]), []
    brackets = _Brackets(text)
    done = at = 0  # gaps that are dealt with, each with the link after it; where the next one begins
    for number in odd:
        at = brackets.pass_links(at, gaps[done:number], targets[done:number], labels[done:number])
        brackets.match(at, at + len(gaps[number]))
        at += len(gaps[number])
        at = brackets.pass_links(at, [""], targets[number : number + 1], labels[number : number + 1])
        done = number + 1
    brackets.pass_links(at, gaps[done:-1], targets[done:], labels[done:])
    return brackets.cut()


class _Brackets:
    """Matches the brackets of one text from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._edits: list[_Edit] = []
        self._pieces: list[tuple[str, str, str | None, str]] = []
        self._position = 0  # end of the last piece
        self._stack: list[tuple[int, int]] = []  # start of the opener, end of "[[target|"

    def pass_links(self, at: int, gaps: list[str], targets: list[str], labels: list[str | None]) -> int:
        """Passes plain links, each after its gap, from ``at`` on; gives where the last one ends.

        Inside an open link they are part of its label.
        """
        if not targets:
            return at
        end = at + sum(map(len, gaps)) + sum(map(len, targets)) + 4 * len(targets)
        end += sum([len(label) + 1 for label in labels if label is not None])
        if not self._stack:
            first = self._text[self._position : at] + gaps[0]
            self._pieces += zip((first, *gaps[1:]), targets, labels, repeat(""))
            self._position = end
        return end

    def match(self, first: int, last: int) -> None:
        """Matches the brackets that begin between two places, between which no plain link stands."""
        text, edits, stack = self._text, self._edits, self._stack
        add = self._pieces.append
        for match in _BRACKET.finditer(text, first):
            kind = match.lastgroup
            start, end = match.span()
            if start >= last:
                return
            if kind == "opener":
                if len(stack) < MAX_LINK_DEPTH:
                    stack.append((start, end))
                else:
                    _unlink(text, edits, start, end)
            elif kind == "closer":
                if not stack:
                    _drop(text, edits, start)
                    continue
                opener, after = stack.pop()
                if text.find("\n", after, start) >= 0 and _spans_blocks(text, opener, after, start):
                    _unlink(text, edits, opener, after)
                    edits.append(_Edit(start, end, "", False))
                elif not stack:
                    add((text[self._position : opener], text[opener + 2 : after - 1], None, text[opener:end]))
                    self._position = end
            elif kind == "external":
                if not stack:
                    add((text[self._position : start], "", None, text[start:end]))
                    self._position = end
            elif kind == "external_opener":
                if label := _LABEL_WITH_LINKS.match(text, end):
                    edits.append(_Edit(start, end, "", False))  # the address goes
                    stop = TRAIL_STOP if text[label.end() - 2] == "]" else ""
                    edits.append(_Edit(label.end() - 1, label.end(), stop, False))
                else:
                    edits.append(_Edit(start, start + 1, _PLAIN_OPEN, False))
            elif kind == "single":
                if stack:  # outside of links no parser sees it
                    edits.append(_Edit(start, end, _PLAIN_OPEN, False))
            else:
                _drop(text, edits, start)

    def cut(self) -> tuple[CutText, list[_Edit]]:
        """Gives the result; openers that are still open are dropped."""
        for opener, after in self._stack:
            _unlink(self._text, self._edits, opener, after)
        return CutText(self._pieces, self._text[self._position :]), self._edits


def _spans_blocks(text: str, opener: int, after: int, closer: int) -> bool:
    """Says whether a label crosses a heading, a cell or (files aside, whose captions may) a paragraph's end.

    Such a link was never closed, and its closer is another's.
    """
    if text.find(FRAGMENT, after, closer) >= 0 or text.find("\n" + HEADING, after, closer) >= 0:
        return True
    return text.find("\n\n", after, closer) >= 0 and text.find(":", opener, after) < 0


def _drop(text: str, edits: list[_Edit], start: int) -> None:
    # After an opening bracket a space must stay, or the two sides would open something new.
    edits.append(_Edit(start, start + 2, " " if text[start - 1 : start] == "[" else "", True))


def _unlink(text: str, edits: list[_Edit], opener: int, after: int) -> None:
    _drop(text, edits, opener)
    edits.append(_Edit(after - 1, after, " ", False))


def _apply(text: str, edits: list[_Edit]) -> str:
    edits.sort()
    out: list[str] = []
    position = 0
    for start, end, replacement, _ in edits:
        out.append(text[position:start])
        out.append(replacement)
        position = end
    out.append(text[position:])
    return "".join(out)
