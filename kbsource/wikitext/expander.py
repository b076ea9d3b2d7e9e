"""Uses that no rule knows -> what their definitions show on the page, remembered where it is the same everywhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from kbsource.site import CATEGORY, TEMPLATE, Site
from kbsource.titles import split_namespace
from kbsource.wikitext.asked import Asked
from kbsource.wikitext.frames import (
    MAX_LOOK_UPS,
    MAX_PIECES,
    BoundError,
    Cost,
    Definitions,
    Engine,
    Frame,
    Invoke,
    Wiki,
    transcluded,
)
from kbsource.wikitext.functions.arguments import PageFacts
from kbsource.wikitext.markers import CUT, LINE, unmark_separators
from kbsource.wikitext.templates import TemplateRule, normalise_template_name, split_arguments
from kbsource.wikitext.tree import Text, Use, count_pieces, read_boxes, read_tree, without_insides

MAX_REMEMBERED_CHARS = 64 << 20
"""Characters of definitions, and likewise of uses with what they show, that a process remembers."""
_CHARS_A_PIECE = 64  # a piece of a tree takes the room of so many
_CHARS_A_NAME = 64  # as does a name that was asked for
_LINE_STARTS = ("*", "#", ":", ";", "{|")
_TAG_REF = re.compile(r"\{\{\s*#tag:\s*ref\b", re.IGNORECASE)
_NO_VALUE = re.compile(r"\{{3}[^{}]*\}{3}")
_DOUBLED = re.compile(r"\{(?=\{)|(?<=\})\}")


class Expanded(NamedTuple):
    """What a use shows."""

    #: ``expanded``; ``invoked`` where a module took part; ``bound`` where a limit was hit, ``unknown`` where there is
    #: no definition or it shows nothing but what nobody knows: then the text is empty
    outcome: str
    #: what stands in its place, with nothing in it but what a reader reads in running text or in tables
    wikitext: str = ""
    is_infobox: bool = False  #: its box is an infobox
    n_modules: int = 0  #: calls of Lua modules in it that were not run, or failed
    n_refs: int = 0  #: references that stand in the definitions that took part


_Value = TypeVar("_Value")
_BOUND = Expanded("bound")


class _Memory(Generic[_Value]):
    """Values by text, as many as there is room for; what is remembered changes no result."""

    def __init__(self) -> None:
        self._values: dict[str, _Value] = {}
        self._n_chars = 0

    def get(self, key: str) -> _Value | None:
        return self._values.get(key)

    def add(self, key: str, value: _Value, n_chars: int) -> None:
        self._n_chars += n_chars + len(key)
        if self._n_chars > MAX_REMEMBERED_CHARS:
            self._values.clear()
            self._n_chars = n_chars + len(key)
        self._values[key] = value


class Expander:
    """Expands the uses on the pages of one wiki. Holds what is remembered; make one for each process."""

    def __init__(
        self,
        definitions: Definitions,
        site: Site,
        find_rule: Callable[[str], TemplateRule],
        *,
        invoke: Invoke | None = None,
        exists: Callable[[str], bool] | None = None,
        asked: Asked | None = None,
    ) -> None:
        """What ``find_rule`` knows is not expanded; without ``exists`` there are no articles. ``asked`` takes note."""
        self.asked = asked or Asked(site)
        self._definitions = definitions
        self._site = site
        self._trees: _Memory[tuple[Text | None, int, int]] = _Memory()
        self._wiki = Wiki(find_rule, self._find_tree, self.name_template, invoke, exists or (lambda title: False))
        self.known: _Memory[tuple[Expanded, Cost, frozenset[str]]] = _Memory()

    def name_template(self, head: str) -> str:
        """The normal form of a template's name, without the wiki's own prefix for templates."""
        name = normalise_template_name(head, self._site.lang)
        if ":" in name:
            namespace, rest = split_namespace(name, self._site)
            name = normalise_template_name(rest, self._site.lang) if namespace == TEMPLATE else name
        return name

    def on_page(self, page: PageFacts) -> PageExpander:
        """What expands the uses on a page."""
        return PageExpander(self, self._wiki, page)

    def is_category(self, prefix: str) -> bool:
        """Whether links with this prefix put a page into a category."""
        return split_namespace(f"{prefix}:x", self._site)[0] == CATEGORY

    def _find_tree(self, name: str) -> tuple[Text | None, int, int]:
        self.asked.template(name)
        found = self._trees.get(name)
        if found is None:
            source = self._definitions.source(name)
            cut: Counter[str] = Counter()
            text = None if source is None else transcluded(source, self._site.lang, cut)
            n_pieces = 0 if text is None else count_pieces(text)
            is_there = text is not None and n_pieces <= MAX_PIECES
            tree = without_insides(read_tree(text), self.is_category) if text is not None and is_there else None
            found = (tree, n_pieces, cut["ref"] + len(_TAG_REF.findall(text or "")))
            self._trees.add(name, found, len(text or "") + _CHARS_A_PIECE * n_pieces)
        return found


class PageExpander:
    """Expands the uses on one page, which share what they may cost."""

    __slots__ = ("_engine", "_expander", "_title", "cost")

    def __init__(self, expander: Expander, wiki: Wiki, page: PageFacts) -> None:
        self._expander = expander
        self._title = page.title
        self._engine = Engine(wiki, page)
        self.cost = self._engine.cost

    def expand(self, inner: str, name: str) -> Expanded:
        """What a use shows by what stands between its braces, templates worked out; ``name`` in normal form."""
        engine, known, asked = self._engine, self._expander.known, self._expander.asked
        remembered = known.get(inner)
        # What the page cannot pay is worked out as far as it goes, as if nobody remembered it.
        if remembered is not None and engine.cost.add(remembered[1]):
            asked.names |= remembered[2]
            return remembered[0]
        engine.start()
        before = engine.cost.counts()
        try:
            text, names = asked.apart(lambda: self._worked_out(inner))
        except BoundError:
            return _BOUND
        expanded = self._seen(text)
        if not engine.page.is_asked and engine.cost.n_look_ups <= MAX_LOOK_UPS:
            n_chars = len(text) + _CHARS_A_NAME * len(names)
            known.add(inner, (expanded, engine.cost.since(*before), names), n_chars)
        return expanded

    def _worked_out(self, inner: str) -> str:
        """What the use comes to; raises BoundError."""
        self._engine.cost.spend(inner.count("|"))
        parts = [
            (None if name is None else (unmark_separators(name),), (unmark_separators(value),))
            for name, value in split_arguments(inner)
        ]
        return Frame(self._engine, self._title).use(Use(parts[0][1], tuple(parts[1:]), True), is_by_rule=False)

    def _seen(self, text: str) -> Expanded:
        engine = self._engine
        if "{{" in text or "}}" in text:  # parameters without a value, and what has no partner
            text = _DOUBLED.sub("", _NO_VALUE.sub(CUT, text))
        text, kinds = read_boxes(text, self._expander.is_category)
        if engine.is_partial and not kinds and not any(map(str.isalnum, text)):
            return Expanded("unknown", n_modules=engine.n_modules, n_refs=engine.n_refs)
        if text.startswith(_LINE_STARTS):
            text = LINE + text
        outcome = "invoked" if engine.is_invoked else "expanded"
        return Expanded(outcome, text, "infobox" in kinds, engine.n_modules, engine.n_refs)
