"""Converts a text that is split at its links into plain text and links with exact offsets. Links to files and
categories are removed.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple
from urllib.parse import unquote

import mwparserfromhell
from mwparserfromhell.nodes import ExternalLink, Node, Text, Wikilink

from kbsource.titles import Target, TargetParser
from kbsource.wikitext.brackets import CutText
from kbsource.wikitext.markers import (
    ANY_CONTROL,
    BLOCK,
    LITERAL_OF,
    PLACE,
    TEMPLATE_LINK,
    TRAIL_STOP,
    literal,
    unliteral,
    without_marks,
)

Link = tuple[int, int, Target, str, bool]
"""An internal link: start and end in the text (without white space at its ends), target, target as written, and whether
a template made it.

A plain tuple for speed, because links are the most frequent objects.
"""


class WalkResult(NamedTuple):
    """The result of a walk: plain text (newlines kept, literal characters restored), its links in order, the categories
    (name -> whether only templates add it), their sort keys by name, and the placeholders (``T3``) of tables in
    captions of files, which are not shown.
    """

    text: str
    links: list[Link]
    categories: dict[str, bool]
    sort_keys: dict[str, str]
    hidden_places: set[str]


_HIDDEN = frozenset({"file", "category", "interlanguage"})
# Options of files that are not shown inline, so that words before and after them are separate; in English and the
# larger languages of Wikipedia. Source: img_* of MediaWiki 1.39's messages.
_APART = frozenset(
    """thumb thumbnail frame framed enframed right left center centre none mini miniatur gerahmt rechts links zentriert
    ohne vignette encadré cadre droite gauche centré néant miniatura miniaturadeimagen derecha izquierda centro ninguno
    marco min destra sinistra nessuno riquadrato miniaturadaimagem direita esquerda nenhum miniatuur omkaderd
    gecentreerd geen mały prawo lewo centruj brak ramka мини миниатюра справа слева центр обрамить без міні праворуч
    ліворуч miniatyr höger vänster ingen centrerad 缩略图 縮圖 右 左 居中 置中 有框 サムネイル 中央 なし
    フレーム""".split()
)
# An external link that is read without mwparserfromhell.
_PLAIN_EXTERNAL = re.compile(r'\[(?:https?:)?//[^ "<>]+(?: (.*))?\]')
# A link whose label contains only text and plain links; skipped if it shows nothing. What may be a URL in double
# brackets is read by mwparserfromhell.
_PLAIN_INSIDE = re.compile(r"\[\[[^\[\]]*(?:\[\[(?!//|[\w+.-]+:)[^\[\]]*\]\][^\[\]]*)*\]\]")
# Frequent characters after links that are in no language's link trail.
NO_TRAIL = frozenset(" \n,.;:()|")
_LONGEST_PREFIX = 100
_LOSS_OF = {"interwiki": "interwiki_link", "invalid": "invalid_link"}
# Newlines in a label, with the spaces around them and the markers of the lines that begin there.
_PLACE = re.compile(f"{PLACE}(T[0-9]+)")
_LINES_IN_LABEL = re.compile("(?: *\n(?:\x06[TI][0-9]+\n?)*(?:\x04[^\x04]*\x04|\x07)?)+ *")
# Characters that mwparserfromhell reads as a list item, heading or rule at the beginning of a line. After a cut, they
# may be there by accident.
_LINE_MARK = re.compile("\n(?=[*#:;={-])")


class Walker:
    """Collects the text and links of a page; call ``walk`` once.

    A link's text is its label, or else its target as written. It includes letters directly after the link (the link
    trail) and, if the language has link prefixes, letters directly before it. ``[[Foo (bar)|]]`` shows ``Foo``. Links
    to files, categories and other language editions show nothing and are counted or collected. With ``is_direct``,
    plain and hidden links are read without mwparserfromhell, which is faster and gives the same result.
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
        self._n_prefix = 0  # length of the current link's prefix
        self._losses = losses
        self._is_direct = is_direct
        self._out: list[str] = []
        self._length = 0
        self._ends_in_space = False
        self._links: list[Link] = []
        self._categories: dict[str, bool] = {}
        self._sort_keys: dict[str, str] = {}
        self._hidden_places: set[str] = set()
        self._parts_words = False  # true after a word that is directly followed by a file on a line of its own

    def walk(self, cut: CutText, gaps: list[tuple[int, int]] | None = None) -> WalkResult:
        """Returns the text of the links and of the gaps between them. Every link must be complete.

        ``gaps`` receives the start and end in the text of the gap before each link and of the last gap.
        """
        trail = self._trail
        parse = self._parse
        append = self._out.append
        links = self._links
        add_link = links.append
        is_direct = self._is_direct
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
            if gaps is not None:
                gaps.append((start, length))
            if written and is_direct:
                is_made = False
                plain = written
                if not written.isprintable():
                    is_made = written[0] == TEMPLATE_LINK
                    written = written.removeprefix(TEMPLATE_LINK)
                    plain = unliteral(written)
                target = parse(plain)
                kind = target[0]
                if kind != "page":
                    if kind in _HIDDEN and (not source or _PLAIN_INSIDE.fullmatch(source)):
                        after_link = False
                        self._hide(target, source or label, is_made=is_made)
                        continue
                    if kind == "invalid" and "//" in written:  # an external link in double brackets
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
            if shown and kind == "page" and shown.strip() == shown:
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
        if gaps is not None:
            gaps.append((length, self._length))
        return WalkResult(unliteral("".join(self._out)), links, self._categories, self._sort_keys, self._hidden_places)

    def _extend_link(self, n_chars: int) -> None:
        start, end, target, written, is_made = self._links[-1]
        self._links[-1] = (start, end + n_chars, target, written, is_made)

    def _add_text(self, text: str) -> None:
        """Adds text. Where two spaces would meet, one is removed."""
        if text:
            if text[0] == " " and self._ends_in_space:
                text = text[1:]
                if not text:
                    return
            self._out.append(text)
            self._length += len(text)
            self._ends_in_space = text[-1] == " "

    def _close(self, start: int, target: Target, written: str, *, is_made: bool) -> bool:
        """Ends a link whose text begins at ``start``; returns whether a link trail may follow."""
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
        """Returns the text from ``start`` on."""
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
            self._sort_keys[name] = without_marks((options or "").replace("\n", ""))
            return
        self._losses[target.kind] += 1
        if options and PLACE in options:
            self._hidden_places.update(_PLACE.findall(options))
        if options and self._out and self._out[-1][-1:].isalnum() and target.kind == "file":
            self._parts_words = not _APART.isdisjoint(map(str.strip, options.split("|")))

    def _add_external(self, label: str | None) -> None:
        """Adds the label of an external link, if it has one."""
        if label is None:
            self._losses["external_link_unlabelled"] += 1
        else:
            self._add_text(label.replace(TRAIL_STOP, ""))

    def _add_parsed(self, source: str) -> bool:
        """Adds a link that mwparserfromhell parses; returns whether a link trail may follow."""
        if "\n" in source:
            source = _LINE_MARK.sub(f"\n{TRAIL_STOP}", source)
        return self._add_nodes(mwparserfromhell.parse(source, skip_style_tags=True).nodes)

    def _add_nodes(self, nodes: list[Node], *, is_label: bool = False) -> bool:
        """Adds the text of nodes of mwparserfromhell; returns whether a link trail may follow.

        In the label of an internal link, external links are text.

        Raises:
            ValueError: a node is neither text nor a link, which cannot occur in prepared text.
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
            # a link in another link's label: the inner one is a link, and the outer one is text
            self._losses["broken_markup"] += 1
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
    """Returns the text of a link without label: the target as written, without a colon at its beginning, and with
    percent escapes decoded.

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
    """Returns the label of ``[[target|]]``: the target without prefix and closing parentheses, or else the part before
    a comma.

    Source: https://www.mediawiki.org/wiki/Help:Links#Pipe_trick.
    """
    title = target.partition("#")[0].strip().removeprefix(":")
    if ":" in title:
        title = title.partition(":")[2]
    shorter = _PARENTHESES.sub("", title)
    if shorter == title:
        shorter = re.split(r"[,，،]\s*", title, maxsplit=1)[0]
    return shorter.strip() or title.strip()
