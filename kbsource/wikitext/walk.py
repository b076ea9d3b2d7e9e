"""Links and the text between them -> plain text with links at exact offsets; files and categories leave the text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import repeat
from typing import NamedTuple
from urllib.parse import unquote

import mwparserfromhell
from mwparserfromhell.nodes import ExternalLink, Node, Text, Wikilink

from kbsource.titles import Target, TargetParser
from kbsource.wikitext.markers import (
    ANY_CONTROL,
    BLOCK,
    CURRENCY,
    CUT,
    CUTS,
    FRAGMENT,
    HEADING,
    LITERAL_OF,
    NUMBER,
    NUMBERED,
    PIPE,
    PLACE,
    TEMPLATE_LINK,
    TRAIL_STOP,
    has_numbers,
    literal,
    mark_numbers,
    single_spaces,
    unliteral,
    without_numbers,
)

MAX_LINK_DEPTH = 12
MAX_REPAIRS = 6
_SCHEMES = (
    "(?i:https?://|ftps?://|//|mailto:|irc://|ircs://|news:|gopher://|telnet://|git://|svn://|tel:|urn:|geo:|magnet:)"
)
_ADDRESS = r"[^\s\[\]|\x06]+"
_ADDRESS_OF_NUMBERS = r"\[[0-9A-Fa-f:.]+\][^\s\[\]|\x06]*"  # http://[2001:db8::7]/path
_PLAIN = r"\[\[([^\[\]{}<>|\n\x06]+)(?:\]\]|\|"  # as far as the label
_PLAIN_LINK = re.compile(_PLAIN + r"([^\[\]\n]*)\]\])")
# Every alternative begins with a plain character: the search then leaps from bracket to bracket. The empty groups tell
# which alternative it was.
_BRACKET = re.compile(
    _PLAIN + r"(?:[^\[\]\n]*\]\]|(?P<opener>)))"  # a plain link, or an opener with its bar
    r"|\]\](?P<closer>)"
    rf"|\[{_SCHEMES}(?:{_ADDRESS}[^\[\]\n]*\](?P<external>)|(?:{_ADDRESS}|{_ADDRESS_OF_NUMBERS})(?P<external_opener>))"
    r"|\[(?:(?=\[\[(?!\[))|(?!\[))(?P<single>)"  # the first of three, or a single one
    r"|\[\[(?P<stray>)"  # an opener that can open nothing
)
# What follows the address of an external link with brackets in its label, as far as the first closing one that is no
# plain link's: the label of ``[http://x Title [in Greek]]`` has one bracket. It ends before what opens another, so that
# no part of a text is looked at for two openers. Source: handleExternalLinks of MediaWiki 1.39's Parser.
_LABEL = re.compile(rf"(?:[^\[\]\n]|\[\[[^\[\]\n]*\]\]|\[(?!\[|{_SCHEMES}))*+\]")
_SPACES = re.compile("   *")
# A trail stop whose closer was dropped.
_STRAY_STOP = re.compile(f"(?<!\\]\\]){TRAIL_STOP}")
_STRAY_MARK = re.compile(rf"(?<!\[\[){TEMPLATE_LINK}")
_PLAIN_OPEN = LITERAL_OF["["]


class CutText(NamedTuple):
    """A text cut into links and what stands between them."""

    #: (text before, target, label, source) of every outermost link. A plain link has its target, and its label or None,
    #: and no source. Links with brackets or newlines in their label, and external links, need a parser: they have their
    #: source and no label, external ones no target.
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
    """The text cut so that every ``[[`` opens a link with a closer, and every ``[`` an external link with one.

    Also where ``numbers`` that were lifted from it stand, see ``place_numbers``. ``is_file`` says whether a target is a
    file's, whose caption may hold headings.

    ``[[`` without partner and stray ``]]`` are dropped and counted as ``broken_markup``; a pipe after such an opener
    becomes a space. Single brackets that open no external link stay text. Numbers move with their neighbours, where
    something is dropped.
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
    if edits:  # what is dropped keeps joining its sides to something new: then no bracket of the page is markup
        dropped = [_Edit(one.start(), one.end(), "", False) for one in re.finditer(r"\[\[|\]\]", text)]
        numbers = _moved(numbers, dropped) if numbers else []
        text = _apply(text, dropped)
        stops = [_Edit(one.start(), one.end(), "", False) for one in _STRAY_STOP.finditer(text)]
        cut, numbers = CutText([], _apply(text, stops)), _moved(numbers, stops)
        text = cut.rest
    return cut, place_numbers(cut, text, numbers) if numbers else []


def _tidied(text: str, numbers: list[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """The text without stray stops and with single spaces, and its numbers in their places."""
    stops = [_Edit(one.start(), one.end(), "", False) for one in _STRAY_STOP.finditer(text)]
    numbers, text = _moved(numbers, stops), _apply(text, stops)
    spaces = [_Edit(one.start() + 1, one.end(), "", False) for one in _SPACES.finditer(text)]
    return _apply(text, spaces), _moved(numbers, spaces)


def _moved(numbers: list[tuple[int, int]], edits: list[_Edit]) -> list[tuple[int, int]]:
    """The numbers where they stand after the edits; one in what is replaced stands before it."""
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
    """The cut text with stops directly behind links only, and before links whose language has link prefixes."""

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
    """The cut text with marks of templates' links in links only."""
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
    """The cut text with marks of empty labels in links only."""

    def without(text: str) -> str:
        return single_spaces(text.replace(BLOCK, "")) if BLOCK in text else text

    pieces = [
        (without(gap), target, label, without(source) if source[1:2] != "[" else source)  # an external link's
        for gap, target, label, source in cut.pieces
    ]
    return CutText(pieces, without(cut.rest))


def lift_numbers(text: str) -> tuple[str, list[tuple[int, int]]]:
    """A text without the numbers in it, and each with its place; where two spaces would meet, one is left."""
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
    """Where lifted numbers stand in the text that was cut without edits: each with the number of the piece in whose gap
    it stands (the rest of the text is the last gap), and how many characters stand between it and the gap's end; None
    where it stands in the link before the gap."""
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
    """The text cut at its outermost links, and the edits that a text with unmatched brackets needs first.

    Plain links are split off at once. Only where other brackets stand between them, a stack tells what they open.
    """
    parts = _PLAIN_LINK.split(text)
    gaps, targets, labels = parts[::3], parts[1::3], parts[2::3]
    odd = [number for number, gap in enumerate(gaps) if "[" in gap or "]" in gap]
    if not odd:
        return CutText([*zip(gaps, targets, labels, repeat(""))], gaps[-1]), []
    brackets = _Brackets(text, is_file)
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

    def __init__(self, text: str, is_file: Callable[[str], bool]) -> None:
        self._text = text
        self._is_file = is_file
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
        label_end = -1  # where the bracket stands that ends an external link with brackets in its label
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
                if start == label_end:  # the bracket behind it stays
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
                if stack and text[end : end + 1] == "]" != text[end + 1 : end + 2]:  # the brackets end the link around
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
                    edits.append(_Edit(start, end, "", False))  # the address goes
                    label_end = label.end() - 1
                    stop = TRAIL_STOP if text[label_end - 1] == "]" else ""
                    edits.append(_Edit(label_end, label_end + 1, stop, False))
                else:
                    edits.append(_Edit(start, start + 1, _PLAIN_OPEN, False))
            elif kind == "single":
                if stack:  # outside of links no parser sees it
                    edits.append(_Edit(start, end, _PLAIN_OPEN, False))
            else:
                _drop(text, edits, start)

    def _spans_blocks(self, opener: int, after: int, closer: int) -> bool:
        """Whether a label crosses a cell or (files aside, whose captions may) a heading or a paragraph's end.

        Such a link was never closed, and its closer is another's.
        """
        text = self._text
        if text.find(FRAGMENT, after, closer) >= 0:
            return True
        if text.find("\n" + HEADING, after, closer) >= 0:
            return not self._is_file(text[opener + 2 : after - 1])
        return text.find("\n\n", after, closer) >= 0 and text.find(":", opener, after) < 0

    def cut(self) -> tuple[CutText, list[_Edit]]:
        """The result; openers that are still open are dropped."""
        for opener, after in self._stack:
            _unlink(self._text, self._edits, opener, after)
        return CutText(self._pieces, self._text[self._position :]), self._edits


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


# Two patterns that begin with plain characters are searched four times as fast as one that is a choice.
_OPENERS = re.compile(r"(\{\{+)")
_CLOSERS = re.compile(r"(\}\}+)")
_BARS = frozenset({"|", PIPE})
MAX_DEPTH = 100  # MediaWiki's own limit on nested templates ($wgMaxTemplateDepth)


def expand_braces(
    text: str,
    *,
    on_template: Callable[[str, int], str],
    on_parameter: Callable[[str], str],
    on_broken: Callable[[], None],
) -> str:
    """The text with every balanced piece replaced by what the callbacks give for it.

    ``on_template`` is called with the inside of ``{{…}}``, its own pieces already replaced, and the number of templates
    around it; ``on_parameter`` with that of ``{{{…}}}``; ``on_broken`` once for every run of braces that has no
    partner.
    """
    if "{{" not in text and "}}" not in text:
        return text
    out: list[str] = []
    stack: list[tuple[int, list[str]]] = []
    opened_by = ["", *_OPENERS.split(text)]
    for openers, chunk in zip(opened_by[::2], opened_by[1::2], strict=True):
        if openers:
            if len(stack) < MAX_DEPTH:
                stack.append((len(openers), out))
                out = []
            else:
                on_broken()
        closed_by = _CLOSERS.split(chunk)
        if closed_by[0]:
            out.append(closed_by[0])
        for closers, gap in zip(closed_by[1::2], closed_by[2::2], strict=True):
            run = len(closers)
            while run >= 2 and stack:
                opened, parent = stack.pop()
                inner = out[0] if len(out) == 1 else "".join(out)
                if opened >= 3 and run >= 3:
                    taken = 3
                    result = on_parameter(inner)
                else:
                    taken = 2
                    result = on_template(inner, len(stack) + (opened >= 4))
                opened -= taken
                run -= taken
                if opened >= 2:
                    stack.append((opened, parent))
                    out = [result]
                else:
                    out = parent
                    if opened:  # of {{{!}} one begins a table
                        out.append("{" if result[:1] in _BARS else LITERAL_OF["{"])
                    elif result[:1] == CUT and out and out[-1][-1:] in CURRENCY and not result.strip(CUTS):
                        result = NUMBER
                    out.append(result)
            if run == 1:  # and of {{!}}} one ends it
                out.append("}" if out and out[-1][-1:] in _BARS else LITERAL_OF["}"])
            elif run:
                on_broken()
            if gap:
                out.append(gap)
    while stack:
        _, parent = stack.pop()
        parent.extend(out)
        out = parent
        on_broken()
    return "".join(out)


Link = tuple[int, int, Target, str, bool]
"""An internal link in a text: start, end, no blank at its ends, target, target as written, whether a template made it.

A bare tuple: there are more of them than of anything else.
"""


class Walked(NamedTuple):
    """Plain text (newlines kept, literal characters as what they stand for) with its links in order, the categories
    met (whether only templates put the page there, by name), and the tables in captions (``T3``), which nobody sees."""

    text: str
    links: list[Link]
    categories: dict[str, bool]
    hidden_places: set[str]


_HIDDEN = frozenset({"file", "category", "interlanguage"})
# What sets a file apart from the words around it, in English and the larger languages of Wikipedia. Source: img_* of
# MediaWiki 1.39's messages.
_APART = frozenset(
    """thumb thumbnail frame framed enframed right left center centre none mini miniatur gerahmt rechts links zentriert
    ohne vignette encadré cadre droite gauche centré néant miniatura miniaturadeimagen derecha izquierda centro ninguno
    marco min destra sinistra nessuno riquadrato miniaturadaimagem direita esquerda nenhum miniatuur omkaderd
    gecentreerd geen mały prawo lewo centruj brak ramka мини миниатюра справа слева центр обрамить без міні праворуч
    ліворуч miniatyr höger vänster ingen centrerad 缩略图 縮圖 右 左 居中 置中 有框 サムネイル 中央 なし
    フレーム""".split()
)
# An external link that is read off.
_PLAIN_EXTERNAL = re.compile(r'\[(?:https?:)?//[^ "<>]+(?: (.*))?\]')
# A link with nothing in its label but text and plain links: if it shows nothing, it is passed over. What might be an
# address in wrong brackets is left to the parser.
_PLAIN_INSIDE = re.compile(r"\[\[[^\[\]]*(?:\[\[(?!//|[\w+.-]+:)[^\[\]]*\]\][^\[\]]*)*\]\]")
# What most often follows a link, and is in no language's link trail.
NO_TRAIL = frozenset(" \n,.;:()|")
_LONGEST_PREFIX = 100
_LOSS_OF = {"interwiki": "interwiki_link", "invalid": "invalid_link"}
# Newlines in a label, with the marks of the lines they began and the blanks around them.
_PLACE = re.compile(f"{PLACE}(T[0-9]+)")
_LINES_IN_LABEL = re.compile("(?: *\n(?:\x06[TI][0-9]+\n?)*(?:\x04[^\x04]*\x04|\x07)?)+ *")
# What begins a line once something before it was cut, and would be a list, a heading or a rule to mwparserfromhell.
_LINE_MARK = re.compile("\n(?=[*#:;={-])")


class Walker:
    """Collects the text and links of one page; call ``walk`` once.

    A link's label is its text; without a label the target as written; letters that follow it at once (the link trail,
    where the language has one) belong to it, and those before it where the language has a link prefix.
    ``[[Foo (bar)|]]`` shows ``Foo``. Links to files, categories and other language editions show nothing and are
    counted or collected. Plain and hidden links are read off directly, or with ``is_direct`` off parsed by
    mwparserfromhell like all others: the result is the same.
    """

    def __init__(
        self,
        targets: TargetParser,
        *,
        trail: re.Pattern[str] | None,
        losses: Counter[str],
        prefix: re.Pattern[str] | None = None,
        is_direct: bool = True,
    ) -> None:
        self._parse = targets.parse
        self._trail = trail
        self._prefix = prefix
        self._n_prefix = 0  # characters before the link at work that belong to it
        self._losses = losses
        self._is_direct = is_direct
        self._out: list[str] = []
        self._length = 0
        self._ends_in_space = False
        self._links: list[Link] = []
        self._categories: dict[str, bool] = {}
        self._hidden_places: set[str] = set()
        self.gaps: list[tuple[int, int]] = []  #: where the gap of each piece, and the rest, begins and ends in the text
        self._parts_words = False  # a file that stands by itself was passed right behind a word

    def walk(self, cut: CutText) -> Walked:
        """The text that the pieces show; every link of the pieces is complete."""
        trail = self._trail
        parse = self._parse
        append = self._out.append
        links = self._links
        add_link = links.append
        is_direct = self._is_direct
        add_gap = self.gaps.append
        prefix = self._prefix
        n_prefix = 0
        length = 0
        ends_in_space = after_link = False
        for gap, written, label, source in cut.pieces:
            if self._parts_words:
                self._parts_words = False
                if not ends_in_space and (gap[:1].isalnum() or not gap):
                    append(" ")
                    length += 1
                    ends_in_space = True
            start = length
            if prefix is not None:
                if gap[1:].endswith(TRAIL_STOP):
                    gap = gap[:-1]
                    n_prefix = 0
                else:
                    taken = trail.match(gap) if after_link and trail is not None else None
                    found = prefix.search(gap, max(len(gap) - _LONGEST_PREFIX, taken.end() if taken else 0))
                    n_prefix = len(found[0]) if found else 0
                self._n_prefix = n_prefix
            if gap:
                first = gap[0]
                if first == " ":
                    if ends_in_space:
                        gap = gap[1:]
                elif first == TRAIL_STOP:
                    gap = gap[1:]
                    if ends_in_space and gap[:1] == " ":
                        gap = gap[1:]
                elif after_link and trail is not None and first not in NO_TRAIL and (match := trail.match(gap)):
                    self._extend_link(match.end())
                if gap:
                    append(gap)
                    length += len(gap)
                    ends_in_space = gap[-1] == " "
            add_gap((start, length))
            if written and is_direct:
                is_made = False
                plain = written
                if not written.isprintable():
                    is_made = written[0] == TEMPLATE_LINK
                    written = written.removeprefix(TEMPLATE_LINK)
                    plain = unliteral(written)
                target = parse(plain)
                kind = target[0]
                if kind in _HIDDEN and (not source or _PLAIN_INSIDE.fullmatch(source)):
                    after_link = False
                    self._hide(target, source or label, is_made=is_made)
                    continue
                if kind == "invalid" and "//" in written:  # an external link in two brackets
                    source = source or _source(written, label)
            if source or not is_direct:
                self._length, self._ends_in_space = length, ends_in_space
                if is_direct and (external := _PLAIN_EXTERNAL.fullmatch(source)):
                    self._add_external(external[1])
                    after_link = False
                else:
                    after_link = self._add_parsed(source or _source(written, label))
                length, ends_in_space = self._length, self._ends_in_space
                continue
            shown = label
            if shown is None:
                shown = _shown(written, target) if target[4] or "%" in written else written
            if shown and kind == "page" and len(shown.strip()) == len(shown):
                append(shown)
                start = length
                length += len(shown)
                ends_in_space = False
                add_link((start - n_prefix, length, target, plain.strip(" "), is_made))
                after_link = True
            else:
                self._length, self._ends_in_space = length, ends_in_space
                self._add_text((shown or pipe_trick(unliteral(written))).replace(BLOCK, ""))
                after_link = self._close(length, target, written, is_made=is_made)
                length, ends_in_space = self._length, self._ends_in_space
        gap = cut.rest
        if after_link and trail is not None and (match := trail.match(gap)):
            self._extend_link(match.end())
        self._ends_in_space = ends_in_space
        if self._parts_words and gap[:1].isalnum():
            gap = f" {gap}"
        self._length = length
        self._add_text(gap.removeprefix(TRAIL_STOP))
        add_gap((length, self._length))
        return Walked(unliteral("".join(self._out)), links, self._categories, self._hidden_places)

    def _extend_link(self, n_chars: int) -> None:
        start, end, target, written, is_made = self._links[-1]
        self._links[-1] = (start, end + n_chars, target, written, is_made)

    def _add_text(self, text: str) -> None:
        """Adds text; where two spaces would meet, one is left."""
        if text:
            if text[0] == " " and self._ends_in_space:
                text = text[1:]
                if not text:
                    return
            self._out.append(text)
            self._length += len(text)
            self._ends_in_space = text[-1] == " "

    def _close(self, start: int, target: Target, written: str, *, is_made: bool) -> bool:
        """Ends a link that shows the text from ``start`` on; says whether a link trail may follow."""
        if target.kind != "page":
            self._losses[_LOSS_OF.get(target.kind, target.kind)] += 1
            return False
        shown = self._tail(start)
        text = shown.strip()
        if not text:
            return False
        start += shown.index(text)
        end = start + len(text)
        start -= self._n_prefix and self._n_prefix + shown.index(text)
        self._n_prefix = 0
        self._links.append((start, end, target, unliteral(written).strip(" "), is_made))
        return end == self._length

    def _tail(self, start: int) -> str:
        """The text from ``start`` on."""
        pieces: list[str] = []
        missing = self._length - start
        for piece in reversed(self._out):
            if missing <= 0:
                break
            pieces.append(piece[-missing:])
            missing -= len(piece)
        return "".join(reversed(pieces))

    def _hide(self, target: Target, options: str | None, *, is_made: bool) -> None:
        if target.kind == "category":
            name = target.title.partition(":")[2]
            self._categories[name] = is_made and self._categories.get(name, True)
            return
        self._losses[target.kind] += 1
        if options and PLACE in options:
            self._hidden_places.update(_PLACE.findall(options))
        if options and self._out and self._out[-1][-1:].isalnum() and target.kind == "file":
            self._parts_words = not _APART.isdisjoint(map(str.strip, options.split("|")))

    def _add_external(self, label: str | None) -> None:
        """Adds an external link: its label, if it has one."""
        if label is None:
            self._losses["external_link_unlabelled"] += 1
        else:
            self._add_text(label.replace(TRAIL_STOP, ""))

    def _add_parsed(self, source: str) -> bool:
        """Adds one link as mwparserfromhell parses it; says whether a trail may follow."""
        if "\n" in source:
            source = _LINE_MARK.sub(f"\n{TRAIL_STOP}", source)
        return self._add_nodes(mwparserfromhell.parse(source, skip_style_tags=True).nodes)

    def _add_nodes(self, nodes: list[Node], *, is_label: bool = False) -> bool:
        """Adds nodes with all that they show; says whether a trail may follow.

        In the label of an internal link, external links are text.

        Raises:
            ValueError: a node is neither text nor a link, which prepared text does not hold.
        """
        after_link = False
        for node in nodes:
            if isinstance(node, Text):
                if after_link and self._trail is not None and (match := self._trail.match(node.value)):
                    self._extend_link(match.end())
                text = node.value.replace(TRAIL_STOP, "").replace(TEMPLATE_LINK, "").replace(BLOCK, "")
                self._add_text(_LINES_IN_LABEL.sub(" ", text) if "\n" in text else text)
                after_link = False
            elif isinstance(node, Wikilink):
                after_link = self._add_wikilink(node)
            elif isinstance(node, ExternalLink):
                after_link = False
                if not node.brackets:
                    self._add_nodes(node.url.nodes)
                elif is_label:
                    self._add_text(f"{LITERAL_OF['[']}{node.url}{' ' if node.title else ''}")
                    self._add_nodes(node.title.nodes if node.title else [])
                    self._add_text(LITERAL_OF["]"])
                elif node.title is None:
                    self._add_external(None)
                else:
                    self._add_nodes(node.title.nodes)
            else:
                raise ValueError(f"unexpected node {type(node).__name__} in prepared text")
        return after_link

    def _add_wikilink(self, link: Wikilink) -> bool:
        written = str(link.title)
        is_made = written.startswith(TEMPLATE_LINK)
        written = written.removeprefix(TEMPLATE_LINK)
        target = self._parse(unliteral(written))
        if target.kind in _HIDDEN:
            self._hide(target, None if link.text is None else str(link.text), is_made=is_made)
            return False
        start = self._length
        if link.text is None:
            self._add_text(_shown(written, target))
        elif any(isinstance(node, Wikilink) for node in link.text.nodes):
            self._losses["broken_markup"] += 1  # a link in a link's label: the inner one holds, and the outer is text
            self._n_prefix = 0
            self._add_text(f"{written.rstrip(' ')} ")
            self._add_nodes(link.text.nodes)
            return False
        else:
            self._add_nodes(link.text.nodes, is_label=True)
            if self._length == start and not str(link.text).isspace():
                self._add_text(pipe_trick(unliteral(written)))
        return self._close(start, target, written, is_made=is_made)


def _source(target: str, label: str | None) -> str:
    return f"[[{target}]]" if label is None else f"[[{target}|{label}]]"


def _shown(written: str, target: Target) -> str:
    """The text of a link without label: the target as written, without the colon that escapes it, percent escapes read.

    Source: handleInternalLinks2 of MediaWiki 1.39's Parser.
    """
    if target.is_escaped:
        written = written.strip().removeprefix(":").strip()
    if "%" in written and target.kind != "invalid":
        decoded = ANY_CONTROL.sub("", unquote(unliteral(written), errors="replace"))
        written = literal(" ".join(decoded.split()))
    return written


_PARENTHESES = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")


def pipe_trick(target: str) -> str:
    """The label of ``[[target|]]``: without prefix, closing parentheses, or else the part after a comma.

    Source: https://www.mediawiki.org/wiki/Help:Links#Pipe_trick.
    """
    title = target.partition("#")[0].strip().removeprefix(":")
    if ":" in title:
        title = title.partition(":")[2]
    shorter = _PARENTHESES.sub("", title)
    if shorter == title:
        shorter = re.split(r"[,，،]\s*", title, maxsplit=1)[0]
    return shorter.strip() or title.strip()
