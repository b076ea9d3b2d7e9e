"""Matches link brackets: cuts a text at its links, each with a closing bracket, and tracks the positions of numbers
and markers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import repeat
from typing import NamedTuple

from kbsource.wikitext.markers import (
    BLOCK,
    FRAGMENT,
    HEADING,
    LITERAL_OF,
    NUMBERED,
    TEMPLATE_LINK,
    TRAIL_STOP,
    has_numbers,
    mark_numbers,
    single_spaces,
    without_numbers,
)

MAX_LINK_DEPTH = 12
MAX_REPAIRS = 6
_SCHEMES = (
    "(?i:https?://|ftps?://|//|mailto:|irc://|ircs://|news:|gopher://|telnet://|git://|svn://|tel:|urn:|geo:|magnet:)"
)
_ADDRESS = r"[^\s\[\]|\x06]+"
_ADDRESS_OF_NUMBERS = r"\[[0-9A-Fa-f:.]+\][^\s\[\]|\x06]*"  # http://[2001:db8::7]/path
_PLAIN = r"\[\[([^\[\]{}<>|\n\x06]+)(?:\]\]|\|"  # up to the label
_PLAIN_LINK = re.compile(_PLAIN + r"([^\[\]\n]*)\]\])")
# Every alternative begins with a plain character, so that the search jumps from bracket to bracket. The empty groups
# identify the alternative.
_BRACKET = re.compile(
    _PLAIN + r"(?:[^\[\]\n]*\]\]|(?P<opener>)))"  # a plain link, or an opener with its pipe
    r"|\]\](?P<closer>)"
    rf"|\[{_SCHEMES}(?:{_ADDRESS}[^\[\]\n]*\](?P<external>)|(?:{_ADDRESS}|{_ADDRESS_OF_NUMBERS})(?P<external_opener>))"
    r"|\[(?:(?=\[\[(?!\[))|(?!\[))(?P<single>)"  # the first of three brackets, or a single one
    r"|\[\[(?P<stray>)"  # an opener that cannot open a link
)
# The label of an external link whose label contains brackets, up to the first closing bracket that does not belong to a
# plain link: ``[http://x Title [in Greek]]`` ends after the first of its closing brackets. The match ends before
# another opener, so that no part of a text is scanned for two openers. Source: handleExternalLinks of MediaWiki 1.39's
# Parser.
_LABEL = re.compile(rf"(?:[^\[\]\n]|\[\[[^\[\]\n]*\]\]|\[(?!\[|{_SCHEMES}))*+\]")
_SPACES = re.compile("   *")
# A trail stop whose closing bracket was dropped.
_STRAY_STOP = re.compile(f"(?<!\\]\\]){TRAIL_STOP}")
_STRAY_MARK = re.compile(rf"(?<!\[\[){TEMPLATE_LINK}")
_PLAIN_OPEN = LITERAL_OF["["]


class CutText(NamedTuple):
    """A text cut into links and the text between them."""

    #: (text before, target, label, source) of every outermost link. A plain link has its target, its label or None, and
    #: no source. Links with brackets or newlines in their label, and external links, need a parser: they have their
    #: source and no label; external links have no target.
    pieces: list[tuple[str, str, str | None, str]]
    rest: str  #: the text after the last link


def match_brackets(
    text: str,
    losses: Counter[str],
    is_file: Callable[[str], bool],
    numbers: list[tuple[int, int]] | None = None,
    *,
    has_prefixes: bool = False,
) -> tuple[CutText, list[tuple[int, int, int | None]]]:
    """Cuts the text so that every ``[[`` opens a link with a closing bracket, and every ``[`` an external link with
    one.

    Also returns the positions of ``numbers`` that were lifted from it, see ``place_numbers``. ``is_file`` returns
    whether a target is a file, whose caption may contain headings.

    Unmatched ``[[`` and ``]]`` are dropped and counted as ``broken_markup``; a pipe after such an opener becomes a
    space. Single brackets that open no external link stay text. When something is dropped, numbers move with their
    neighbours.
    """
    cut, edits = _match(text, is_file)
    for _ in range(MAX_REPAIRS):
        if not edits:
            placed = place_numbers(cut, text, numbers) if numbers else []
            return (_without_stray_stops(cut, has_prefixes) if TRAIL_STOP in text else cut), placed
        losses["broken_markup"] += sum(1 for edit in edits if edit.is_broken)
        if numbers:
            numbers = _moved(numbers, edits)
        text = _apply(text, edits)
        if numbers:
            text, numbers = _tidied(text, numbers)
        else:
            text = single_spaces(_STRAY_STOP.sub("", text))
        cut, edits = _match(text, is_file)
    if edits:  # every removal makes new brackets from the text around it, so all brackets of the page are dropped
        dropped = [_Edit(match.start(), match.end(), "", False) for match in re.finditer(r"\[\[|\]\]", text)]
        numbers = _moved(numbers, dropped) if numbers else []
        text = _apply(text, dropped)
        stops = [_Edit(match.start(), match.end(), "", False) for match in _STRAY_STOP.finditer(text)]
        cut, numbers = CutText([], _apply(text, stops)), _moved(numbers, stops)
        text = cut.rest
    return cut, place_numbers(cut, text, numbers) if numbers else []


def _tidied(text: str, numbers: list[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """Returns the text without stray stops and with single spaces, and its numbers at their new positions."""
    stops = [_Edit(match.start(), match.end(), "", False) for match in _STRAY_STOP.finditer(text)]
    numbers, text = _moved(numbers, stops), _apply(text, stops)
    spaces = [_Edit(match.start() + 1, match.end(), "", False) for match in _SPACES.finditer(text)]
    return _apply(text, spaces), _moved(numbers, spaces)


def _moved(numbers: list[tuple[int, int]], edits: list[_Edit]) -> list[tuple[int, int]]:
    """Returns the numbers at their positions after the edits; a number inside replaced text moves before it."""
    edits.sort()
    moved: list[tuple[int, int]] = []
    shift = place = 0
    for number, at in numbers:
        while place < len(edits) and edits[place].end <= at:
            shift += len(edits[place].replacement) - edits[place].end + edits[place].start
            place += 1
        within = max(at - edits[place].start, 0) if place < len(edits) else 0
        moved.append((number, at - within + shift))
    return moved


def _without_stray_stops(cut: CutText, has_prefixes: bool) -> CutText:
    """Returns the cut text with stops only directly after links, and before links if the language has link prefixes."""

    def kept(gap: str) -> str:
        return gap[:1] + gap[1:].replace(TRAIL_STOP, "") if TRAIL_STOP in gap else gap

    def kept_before(gap: str) -> str:
        return kept(gap) + TRAIL_STOP if gap[1:].endswith(TRAIL_STOP) else kept(gap)

    keep = kept_before if has_prefixes else kept
    pieces = [
        (keep(gap), target, label, source) if TRAIL_STOP in gap else (gap, target, label, source)
        for gap, target, label, source in cut.pieces
    ]
    return CutText(pieces, kept(cut.rest))


def without_stray_marks(cut: CutText) -> CutText:
    """Returns the cut text with the markers of templates' links only in links."""
    mark = TEMPLATE_LINK

    def without(text: str) -> str:
        return single_spaces(text.replace(mark, ""))

    pieces = [
        (without(gap), target, label and without(label), single_spaces(_STRAY_MARK.sub("", source)))
        if mark in gap or mark in source or (label and mark in label)
        else (gap, target, label, source)
        for gap, target, label, source in cut.pieces
    ]
    return CutText(pieces, without(cut.rest))


def without_stray_blocks(cut: CutText) -> CutText:
    """Returns the cut text with the markers of empty labels only in links."""

    def without(text: str) -> str:
        return single_spaces(text.replace(BLOCK, "")) if BLOCK in text else text

    pieces = [
        (without(gap), target, label, without(source) if source[1:2] != "[" else source)  # an external link's
        for gap, target, label, source in cut.pieces
    ]
    return CutText(pieces, without(cut.rest))


def lift_numbers(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Returns a text without its numbers, and each number with its position; if two spaces would meet, one is
    removed.
    """
    if not has_numbers(text):
        return text, []
    pieces: list[str] = []
    found: list[tuple[int, int]] = []
    at = length = 0
    ends_in_space = False
    for match in NUMBERED.finditer(text):
        if piece := text[at : match.start()]:
            pieces.append(piece)
            length += len(piece)
            ends_in_space = piece[-1] == " "
        at = match.end()
        found.append((mark_numbers(match[0])[0], length))
        if ends_in_space and text[at : at + 1] == " ":
            at += 1
    return without_numbers("".join((*pieces, text[at:]))), found


def place_numbers(cut: CutText, text: str, numbers: list[tuple[int, int]]) -> list[tuple[int, int, int | None]]:
    """Returns the positions of lifted numbers in a text that was cut without edits.

    Each has the index of the gap it is in (the rest of the text is the last gap), and the number of characters between
    it and the gap's end; None if it is in the link before the gap.
    """
    placed: list[tuple[int, int, int | None]] = []
    if not numbers:
        return placed
    waiting = iter(numbers)
    number, at = next(waiting)
    start = 0
    for place, (gap, target, label, source) in enumerate((*cut.pieces, (cut.rest, "", None, ""))):
        end = start + len(gap)
        after = end + (len(source) or len(target) + 4 + (0 if label is None else len(label) + 1))
        while at < after or place == len(cut.pieces):
            behind = (
                text[at:end].replace(TRAIL_STOP, "").replace(TEMPLATE_LINK, "").replace(BLOCK, "")
            )  # as they leave the gaps
            placed.append((number, place, len(behind)) if at <= end else (number, place + 1, None))
            if (following := next(waiting, None)) is None:
                return placed
            number, at = following
        start = after
    return placed


class _Edit(NamedTuple):
    start: int
    end: int
    replacement: str
    is_broken: bool


def _match(text: str, is_file: Callable[[str], bool]) -> tuple[CutText, list[_Edit]]:
    """Cuts the text at its outermost links, and returns the edits that a text with unmatched brackets needs first.

    Plain links are split off at once. Only if other brackets are between them, a stack determines what they open.
    """
    parts = _PLAIN_LINK.split(text)
    gaps, targets, labels = parts[::3], parts[1::3], parts[2::3]
    odd = [number for number, gap in enumerate(gaps) if "[" in gap or "]" in gap]
    if not odd:
        return CutText([*zip(gaps, targets, labels, repeat(""))], gaps[-1]), []
    brackets = _Brackets(text, is_file)
    done = at = 0  # number of gaps processed, each with the link after it; start of the next gap
    for number in odd:
        at = brackets.pass_links(at, gaps[done:number], targets[done:number], labels[done:number])
        brackets.match(at, at + len(gaps[number]))
        at += len(gaps[number])
        at = brackets.pass_links(at, [""], targets[number : number + 1], labels[number : number + 1])
        done = number + 1
    brackets.pass_links(at, gaps[done:-1], targets[done:], labels[done:])
    return brackets.cut()


class _Brackets:
    """Matches the brackets of a text from its beginning to its end."""

    def __init__(self, text: str, is_file: Callable[[str], bool]) -> None:
        self._text = text
        self._is_file = is_file
        self._edits: list[_Edit] = []
        self._pieces: list[tuple[str, str, str | None, str]] = []
        self._position = 0  # end of the last link
        self._stack: list[tuple[int, int]] = []  # start of the opener, end of "[[target|"

    def pass_links(self, at: int, gaps: list[str], targets: list[str], labels: list[str | None]) -> int:
        """Passes over plain links, each after its gap, from ``at`` on; returns the end of the last one.

        Inside an open link, they are part of its label.
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
        """Matches the brackets that begin between two positions, between which there is no plain link."""
        text, edits, stack = self._text, self._edits, self._stack
        add = self._pieces.append
        label_end = -1  # position of the bracket that ends an external link with brackets in its label
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
                if start == label_end:  # the bracket after it stays
                    continue
                if not stack:
                    _drop(text, edits, start)
                    continue
                opener, after = stack.pop()
                if text.find("\n", after, start) >= 0 and self._spans_blocks(opener, after, start):
                    if text.find(FRAGMENT, after, start) >= 0:
                        _unlink(text, edits, opener, after)
                    else:  # only the label is shown
                        edits.append(_Edit(opener, after, " " if text[opener - 1 : opener] == "[" else "", True))
                    edits.append(_Edit(start, end, "", False))
                elif not stack:
                    add((text[self._position : opener], text[opener + 2 : after - 1], None, text[opener:end]))
                    self._position = end
            elif kind == "external":
                # the brackets end the enclosing link
                if stack and text[end : end + 1] == "]" != text[end + 1 : end + 2]:
                    edits.append(_Edit(start, start + 1, _PLAIN_OPEN, False))
                    opener, after = stack.pop()
                    if not stack:
                        add((text[self._position : opener], text[opener + 2 : after - 1], None, text[opener : end + 1]))
                        self._position = end + 1
                elif not stack:
                    add((text[self._position : start], "", None, text[start:end]))
                    self._position = end
            elif kind == "external_opener":
                if label := _LABEL.match(text, end):
                    edits.append(_Edit(start, end, "", False))  # the address is removed
                    label_end = label.end() - 1
                    stop = TRAIL_STOP if text[label_end - 1] == "]" else ""
                    edits.append(_Edit(label_end, label_end + 1, stop, False))
                else:
                    edits.append(_Edit(start, start + 1, _PLAIN_OPEN, False))
            elif kind == "single":
                if stack:  # outside links, no parser sees it
                    edits.append(_Edit(start, end, _PLAIN_OPEN, False))
            else:
                _drop(text, edits, start)

    def _spans_blocks(self, opener: int, after: int, closer: int) -> bool:
        """Returns whether a label crosses a cell or (except for files, whose captions may) a heading or the end of a
        paragraph.

        Such a link was never closed, and its closing bracket belongs to another link.
        """
        text = self._text
        if text.find(FRAGMENT, after, closer) >= 0:
            return True
        if text.find("\n" + HEADING, after, closer) >= 0:
            return not self._is_file(text[opener + 2 : after - 1])
        return text.find("\n\n", after, closer) >= 0 and text.find(":", opener, after) < 0

    def cut(self) -> tuple[CutText, list[_Edit]]:
        """Returns the result; openers that are still open are dropped."""
        for opener, after in self._stack:
            _unlink(self._text, self._edits, opener, after)
        return CutText(self._pieces, self._text[self._position :]), self._edits


def _drop(text: str, edits: list[_Edit], start: int) -> None:
    # After an opening bracket a space must stay, or the two sides would form a new opener.
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
