"""Reads the references of a page: footnotes in every notation, the positions of their markers, and cleanup tags in the
text such as "citation needed".

While the wikitext is prepared, ``References`` records everything that makes a reference marker on the page. Each of
these notes gets a number. The number is written into the text after a cut, with digits of
``kbsource.wikitext.markers``, and moves with the text, so that its final position is the marker's. At the end, the
notes are resolved in the order of the page. Source: the extension Cite of MediaWiki 1.39.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from typing import NamedTuple

from kbsource.elements import Anchor, Element
from kbsource.numerals import unescape
from kbsource.sentences import sentence_ends, trimmed
from kbsource.titles import Target
from kbsource.wikitext.functions.arguments import Template
from kbsource.wikitext.markers import (
    CUT,
    DIGIT,
    DIGITS,
    EQUALS,
    HEADING,
    N_DIGITS,
    NUMBERED,
    PIPE,
    PLACE,
    has_numbers,
    mark_numbers,
    number_mark,
    unmark_separators,
    without_marks,
    without_numbers,
)
from kbsource.wikitext.page_builder import LINE_PREFIX
from kbsource.wikitext.reference_rows import Reference, ReferenceUse
from kbsource.wikitext.reference_texts import (
    Key,
    ReferenceReader,
    ReferenceText,
    citation_text,
    cited_pages,
    full_keys,
    short_name,
)
from kbsource.wikitext.templates import split_at_pipes
from kbsource.wikitext.walk import Link

# Source: Sanitizer::decodeTagAttributes of MediaWiki 1.39; for their meaning, https://www.mediawiki.org/wiki/Help:Cite.
_ATTRIBUTE = re.compile(r"""(?<!\w)(\w++)\s*+=\s*(?:"([^"<]*)"|'([^'<]*)'|([^\s"'=<>`]+))""")
_BLANKS = re.compile(r"[^\S\n]*(\S?)")
# Both alternatives begin with a plain character, which makes the search fast.
_IN_ORDER = re.compile(f"{DIGITS[0]}([{DIGIT}]{{{N_DIGITS - 1}}})|{PLACE}(I[0-9]+)")
_BOX = re.compile(f"\n?{PLACE}(I[0-9]+)\n?")  # includes the newlines around the placeholder
_PLAIN_LINK = re.compile(r"\[\[[^\[\]]*\]\]")
# Source: Module:Efn and Template:Notelist of English Wikipedia, which other wikis copied under the same names.
NO_TARGET = Target("page", 0, "", None, False)
"""Target of the links that represent reference markers."""
_DIGITS = frozenset(DIGITS)
_NO_MARKUP = sha256(b"").hexdigest()
# Argument names of footnote templates, in the languages that have their own.
_NAMES = ("name", "n", "nom", "nombre", "nome", "naam", "navn", "namn", "nazwa", "имя", "ім'я")
_GROUP_NAMES = ("group", "grp", "groupe", "grupo", "gruppo", "groep", "gruppe", "grupp", "grupa", "группа", "група")
_CONTENTS = ("text", "content", "texte", "texto", "testo", "tekst", "inhalt", "contenu", "contenido", "текст", "note")
MAX_NESTED = 8
"""Maximum nesting depth of templates that make notes, lists, citations or cleanup tags. A template with deeper nesting
makes none.
"""
_GROUPS = {"la": "lower-alpha", "ua": "upper-alpha", "lr": "lower-roman", "ur": "upper-roman", "lg": "lower-greek"}


class Note(NamedTuple):
    """A footnote, citation, cleanup tag or list of references, as written."""

    kind: str  #: ``ref``, ``short``, ``short_text``, ``note``, ``pages``, ``doubt``, ``list``, ``work``, ``anchor``
    markup: str
    content: str = ""  #: wikitext of the footnote; empty if it is defined elsewhere
    name: str | None = None
    group: str = ""
    template: Template | None = None
    detail: str | None = None  #: pages, or the kind of doubt
    inner: tuple[int, ...] = ()  #: numbers of the notes in its content, or defined in the list, without duplicates


class MarkerPlace(NamedTuple):
    """The position of a reference marker: after ``offset`` characters of an element's text, in a table, or in an
    infobox.
    """

    element: int | None = None
    offset: int | None = None
    table: int | None = None
    infobox: int | None = None


class ParsedReferences(NamedTuple):
    """The references of a page and the counts. The page id in the rows is not yet known (0)."""

    refs: tuple[Reference, ...]
    uses: tuple[ReferenceUse, ...]
    counts: Counter[str]


@dataclass(slots=True, eq=False)
class _Ref:
    """A reference that is being resolved. It begins with the first note that uses it; a later note may define it."""

    note: Note
    group: str
    number: int | None
    index: int = 0
    within: list[int] = field(default_factory=list)  # numbers of the notes in it


class _Use(NamedTuple):
    note: int
    ref: _Ref | None
    outer: int | None = None  # number of the note that contains it
    doubt: str | None = None


class References:
    """Collects the notes of a page.

    Args:
        kind_of: returns the reference kind of a template, from the text before its first pipe; see
            ``kbsource.wikitext.citations.find_note``. There are two more kinds: ``work`` is a citation, and ``tag`` is
            ``#tag:ref``.
    """

    def __init__(self, kind_of: Callable[[str], str | None]) -> None:
        self.kind_of = kind_of
        self.counts: Counter[str] = Counter()
        #: by placeholder: the notes in an infobox (``I0``), and notes on lines of their own after an infobox or table
        #: (``T3``)
        self.boxes: dict[str, list[int]] = {}
        self._infoboxes: dict[str, str] = {}  # wikitext between the braces of each infobox, by placeholder
        self.places: dict[int, MarkerPlace] = {}  #: by note; a note that is not shown has no position
        self.above: dict[MarkerPlace, int] = {}  #: index of the element before a table or an infobox
        self._below_headings: set[int] = set()  # notes that are the only content of the first line after a heading
        self._headings: dict[int, int] = {}  # index of the heading of these notes
        self._notes: list[Note] = []
        self._order: list[int] = []
        self._hidden: set[int] = set()  # notes in templates that show nothing
        self._parts: set[int] = set()  # citations in the values of other citations
        self._levels: dict[int, int] = {}  # by note: nesting depth of the notes in it, if there are any
        self._box_levels: dict[str, int] = {}  # by infobox: nesting depth of the notes in and around it

    def _add(self, note: Note) -> str:
        self._notes.append(note)
        return CUT + number_mark(len(self._notes) - 1)

    def count(self, kind: str, pieces: int) -> None:
        """Counts items of a kind that get no row."""
        self.counts[kind] += pieces

    def tag(self, attributes: str, content: str, markup: str) -> str:
        """Records ``<ref …>`` and returns the text that replaces it."""
        named = _attributes(attributes)
        name, group, detail = named.get("name"), named.get("group", ""), named.get("details")
        content = content.strip()
        if "<ref" in content:
            self.counts["nested"] += content.count("<ref")
        if "follow" in named:  # continues the text of another reference, and makes no marker
            self.counts["follow"] += 1
            return CUT
        if "extends" in named:
            name, content, detail = named["extends"], "", " ".join(content.split()) or detail
        return self._add(Note("ref", markup, content, name, group, detail=detail))

    def tag_list(self, attributes: str, markup: str, definitions: str = "") -> str:
        """Records ``<references …>``. The notes in ``definitions`` must already have numbers."""
        group = _attributes(attributes).get("group", "")
        return self._add(Note("list", markup, group=group, inner=_each_once(definitions)))

    def template(self, kind: str, template: Template, inner: str, *, is_shown: bool) -> str:
        """Records a template of a reference kind and returns the text that replaces it; empty if it makes no marker.

        ``is_shown``: the output of the template is shown in the text too.
        """
        numbers = _each_once(inner)
        whole, template = template, _plain(template)
        argument = template.argument
        name, group = argument(0, *_NAMES) or None, argument(0, *_GROUP_NAMES)
        kind, _, mark = kind.partition(":")
        if kind == "tag":
            options = _attributes(" ".join(template.positional[1:]))
            name, group = options.get("name"), options.get("group", "")
            template = template._replace(positional=template.positional[:1])
            whole = whole._replace(positional=whole.positional[:1])
            kind = "list" if template.name == "#tag:references" else "note"
        elif kind in ("note", "list"):
            ending = template.name.casefold().rpartition("-")[2]
            is_alphabetic = template.name.casefold().startswith(("efn", "notelist"))
            group = group or (_GROUPS.get(ending, "lower-alpha") if is_alphabetic else "")
        level = self._level(inner, numbers)
        self.counts["nested"] += level > MAX_NESTED
        if level > MAX_NESTED or (kind == "reuse" and not template.filled()):
            return "".join([CUT + number_mark(number) for number in numbers])
        # The content of a reused note is added to the text after its marker, so it is not part of the markup.
        markup = self._written(f"{{{{{without_numbers(inner) if kind == 'reuse' else inner}}}}}")
        written = "" if is_shown else markup  # the enclosing text contains the output
        if level:
            self._levels[len(self._notes)] = level
        if PLACE in inner:  # an enclosing template needs only the infobox
            self._box_levels.update(dict.fromkeys(_BOX.findall(inner), level))
        if kind == "reuse":
            self.counts["by_template"] += len(template.filled())
            reused = [
                self._add(
                    Note(
                        "ref",
                        "" if number > 1 else markup,
                        "",
                        ref_name,
                        group,
                        detail=cited_pages(template, number) or None,
                    )
                )
                for number, ref_name in enumerate(template.filled(), 1)
            ]
            return "".join((*reused, *(CUT + number_mark(number) for number in numbers)))
        self.counts["by_template"] += kind in ("note", "short", "short_text")
        if kind == "note":
            content = self._written(whole.argument(1, "1", *_CONTENTS))
            return self._add(Note(kind, markup, content, name, group, template, inner=numbers))
        if kind in ("short", "short_text"):
            return self._add(
                Note(kind, written, markup, short_name(template), "", template, cited_pages(template) or None)
            )
        if kind == "pages":
            return self._add(Note(kind, markup, detail=cited_pages(template) or argument(1) or None))
        if kind == "list":
            return self._add(Note(kind, markup, group=group, inner=numbers))
        if kind == "work":  # citations in its values are part of it
            parts = [number for number in numbers if self._notes[number].kind == "work"]
            self._parts.update(parts)
            for number in parts:
                self._notes[number] = Note("work", "")
        return self._add(Note(kind, written, markup, template=template, detail=mark or None))

    def _written(self, text: str) -> str:
        """Returns a text in which the notes and infoboxes are as originally written."""
        text = _with_separators(text)
        if PLACE in text:
            text = self._with_boxes(text, set())
        if has_numbers(text):
            written = {number_mark(number): self._notes[number].markup for number in mark_numbers(text)}
            # Each note is restored once: nested templates that repeat their argument would multiply it.
            text = NUMBERED.sub(lambda found: written.pop(found[0], ""), text)
        return without_marks(text)

    def _with_boxes(self, text: str, written: set[str]) -> str:
        """Returns a text with its infoboxes as originally written, each once, except those in ``written``."""

        def write(found: re.Match[str]) -> str:
            place = found[1]
            if place in written or place not in self._infoboxes:
                return ""
            written.add(place)
            return f"{{{{{self._with_boxes(_with_separators(self._infoboxes[place]), written)}}}}}"

        return _BOX.sub(write, text)

    def add_box(self, place: str, inner: str) -> None:
        """Records an infobox: its placeholder (``I0``) and the wikitext between its braces."""
        self._infoboxes[place] = inner
        if has_numbers(inner):
            self.boxes[place] = mark_numbers(inner)
        if level := self._level(inner, self.boxes.get(place, ())):
            self._box_levels[place] = level - 1

    def _level(self, inner: str, numbers: Iterable[int]) -> int:
        """Returns the nesting depth of notes in a use that contains these numbers."""
        levels = [self._levels.get(number, 0) for number in numbers]
        if PLACE in inner:
            levels += [self._box_levels.get(place, -1) for place in _BOX.findall(inner)]
        return 1 + max(levels, default=-1)

    def hide(self, text: str) -> None:
        """Records that the notes in a text are not shown. They keep their order but have no position."""
        self._hidden.update(mark_numbers(text))

    def set_order(self, text: str) -> None:
        """Determines the order of the notes from the text with all templates expanded.

        Notes that a template received but does not show follow the last note that is written before them.
        """
        order: list[int] = [] if self.boxes else mark_numbers(text)
        for digits, box in _IN_ORDER.findall(text) if self.boxes else ():
            order += mark_numbers(DIGITS[0] + digits) if digits else self.boxes.get(box, [])
        inside = {number for note in self._notes for number in note.inner}
        missing = sorted(set(range(len(self._notes))) - set(order) - inside - self._parts)
        behind: dict[int, list[int]] = {}
        seen = sorted(order)
        for number in missing:
            before = bisect_left(seen, number)
            behind.setdefault(seen[before - 1] if before else -1, []).append(number)
        found = behind.get(-1, []) + [
            note_number for number in order for note_number in (number, *behind.get(number, []))
        ]
        self._order = list(dict.fromkeys(found))

    def mark_links(
        self, shown: str, lifted: Iterable[tuple[int, int, int | None]], gaps: Sequence[tuple[int, int]]
    ) -> list[Link]:
        """Returns the reference markers as links, whose offsets later steps adjust with the text.

        A link covers the character before the marker, or nothing if the marker comes before the first character of its
        line. Markers directly after a table or an infobox belong to it.

        Args:
            shown: the text of the body, with its line markers.
            lifted: the result of ``place_numbers``.
            gaps: gaps of the walker.
        """
        links: list[Link] = []
        known: dict[int, tuple[int, int, int]] = {}
        for number, piece, behind in lifted:
            start, end = gaps[piece]
            if behind is None and gaps[piece - 1][1] == start:
                continue  # the marker is in a link that shows nothing, such as the caption of a file
            at = start if behind is None else max(start, end - behind)
            written = number_mark(number)
            line = shown.rfind("\n", 0, at) + 1
            begin = _line_start(shown, line)
            before = _before(shown, begin, at)
            if before == begin and (after := _BLANKS.match(shown, max(begin, at))) and after[1]:
                links.append((after.start(1), after.start(1), NO_TARGET, written, True))
                continue
            if before == begin and shown[line : line + 1] != PLACE:
                line, begin, before = _last_line(shown, line, known)
                if shown[line : line + 1] == HEADING:
                    self._below_headings.add(number)
            if before > begin:
                links.append((before - 1, before, NO_TARGET, written, False))
            elif shown[line : line + 1] == PLACE:
                self.boxes.setdefault(shown[line + 1 : begin], []).append(number)
        return links

    def take_places(self, anchors: Iterable[Anchor], elements: Sequence[Element]) -> list[Anchor]:
        """Records the final positions of the reference markers from their links, and returns the other anchors."""
        kept = []
        for anchor in anchors:
            if anchor.written_target[:1] in _DIGITS:
                number = mark_numbers(anchor.written_target)[0]
                if number in self._below_headings:
                    self._headings[number] = anchor.element
                    continue
                at = anchor.start if anchor.from_template else anchor.end
                at = _before(elements[anchor.element].text, 0, at)  # before a space that joins two lines
                self.places[number] = MarkerPlace(anchor.element, at)
            else:
                kept.append(anchor)
        return kept

    def put_box(self, name: str, notes: Sequence[int], number: int, element: int) -> None:
        """Records that notes are in a table or an infobox. Passed as ``on_box`` to ``page_builder.assemble_boxes``."""
        place = MarkerPlace(table=number) if name[0] == "T" else MarkerPlace(infobox=number)
        self.places.update(dict.fromkeys([*notes, *self.boxes.get(name, [])], place))
        self.above[place] = element

    def rows(self, elements: Sequence[Element], read: ReferenceReader) -> ParsedReferences:
        """Resolves the notes and returns the rows of the page."""
        settled = _Settled(self._notes, self.counts)
        for number in self._order:
            settled.visit(number)
        refs = settled.finish()
        ref_of = {use.note: use.ref.index for use in settled.uses if use.ref is not None}
        rows = []
        doubts: list[tuple[int, str]] = []
        for ref in refs:
            note = ref.note
            found = read(note.content)
            doubts += [(ref.index, doubt) for doubt in found.doubts]
            rows.append((ref, found))
        full: dict[Key, int] = {}
        if any(found.short is not None for _, found in rows):
            for index, (_, found) in enumerate(rows):
                for key in chain.from_iterable(map(full_keys, found.works)):
                    full.setdefault(key, index)
        made = []
        for ref, found in rows:
            source = None if found.short is None else full.get(found.short)
            if found.short is not None and source is None:
                self.counts["short_unresolved"] += 1
            note = ref.note
            for loss in found.citation.losses if found.citation is not None else ():
                self.counts[loss.partition(":")[0]] += 1
            made.append(
                Reference(
                    page_id=0,
                    ref=ref.index,
                    form=note.kind,
                    group=ref.group,
                    source_number=0,
                    number=ref.number,
                    name=note.name if note.kind in ("ref", "note") else None,
                    markup=note.content,
                    markup_sha256=sha256(note.content.encode("utf-8", "replace")).hexdigest(),
                    text=found.text,
                    template=found.template,
                    source=source,
                    citation=found.citation,
                )
            )
        made += self._further_sources(rows)
        ends: dict[int, list[int]] = {}  # ends of the sentences of each element
        uses = []
        for use in settled.uses:
            note = self._notes[use.note]
            place = MarkerPlace() if use.note in self._hidden else self.places.get(use.note, MarkerPlace())
            within = None if use.outer is None else ref_of.get(use.outer)
            sentence: tuple[int | None, int | None] = (None, None)
            element = place.element
            if element is not None and place.offset:
                text = elements[element].text
                if element not in ends:
                    ends[element] = sentence_ends(text)
                last = bisect_left(ends[element], place.offset)  # a marker never follows white space
                sentence = trimmed(text, ends[element][last - 1] if last else 0, ends[element][last]) or sentence
            elif place == MarkerPlace() and within is None:
                self.counts["without_place"] += 1
            above = element if element is not None else self.above.get(place, self._headings.get(use.note))
            uses.append(
                ReferenceUse(
                    page_id=0,
                    ref=None if use.ref is None else use.ref.index,
                    cleanup_tag=use.doubt,
                    element=element,
                    offset=place.offset,
                    table=place.table,
                    infobox=place.infobox,
                    within=within,
                    pages=settled.pages.get(use.note, note.detail if use.doubt is None else None),
                    sentence_start=sentence[0],
                    sentence_end=sentence[1],
                    section=() if above is None else elements[above].section,
                )
            )
        uses += [ReferenceUse(page_id=0, ref=None, cleanup_tag=doubt, within=index) for index, doubt in doubts]
        return ParsedReferences(tuple(made), tuple(uses), +self.counts)

    def _further_sources(self, rows: Iterable[tuple[_Ref, ReferenceText]]) -> Iterator[Reference]:
        """Returns a row for each further source of the references."""
        for ref, found in rows:
            for number, (template, citation) in enumerate(found.further, 1):
                self.counts["further_source"] += 1
                for loss in citation.losses:
                    self.counts[loss.partition(":")[0]] += 1
                yield Reference(
                    page_id=0,
                    ref=ref.index,
                    form=ref.note.kind,
                    group=ref.group,
                    source_number=number,
                    number=None,
                    name=None,
                    markup="",
                    markup_sha256=_NO_MARKUP,
                    text=" ".join(citation_text(citation).split()),
                    template=template,
                    source=None,
                    citation=citation,
                )


class _Settled:
    """Resolves the references of a page from its notes, in order."""

    def __init__(self, notes: Sequence[Note], counts: Counter[str]) -> None:
        self._notes, self._counts = notes, counts
        self._lists: dict[str, dict[str, _Ref]] = {}  # named references by group, since the last list of the group
        self._sizes: Counter[str] = Counter()
        self._refs: list[_Ref] = []
        self._rest: list[_Ref] = []  # references that are not used
        self.uses: list[_Use] = []
        self.pages: dict[int, str] = {}  # pages cited after a marker, by its note

    def visit(self, number: int, outer: int | None = None) -> None:
        """Processes the next note; ``outer`` is the note that contains it."""
        note = self._notes[number]
        if note.kind == "list":
            self._end_list(note)
            return
        for inner in note.inner:
            self.visit(inner, number)
        if note.kind in ("ref", "note", "short"):
            ref = self._find(note, note.group)
            if ref is not None:
                self.uses.append(_Use(number, ref, outer))
        elif note.kind == "short_text":
            named = self._lists.setdefault("\0", {})
            name = note.name or note.content
            ref = named.get(name)
            if ref is None:
                ref = named[name] = _Ref(note, "", None)
                self._refs.append(ref)
            self.uses.append(_Use(number, ref, outer))
        elif note.kind == "doubt":
            self.uses.append(_Use(number, None, outer, note.detail))
        elif note.kind == "pages":
            if note.detail and self.uses and self.uses[-1].ref is not None:
                self.pages.setdefault(self.uses[-1].note, note.detail)
            else:
                self._counts["pages_astray"] += 1
        elif outer is None and note.kind == "work":  # a citation inside a note is no reference
            self._rest.append(_Ref(note, "", None))

    def _find(self, note: Note, group: str) -> _Ref | None:
        """Returns the reference that a note refers to. If there is none, the note is counted, and the result is
        None.
        """
        if note.name is None and not note.content:
            self._counts["empty"] += 1
            return None
        if note.name is not None and note.name.isdecimal():
            self._counts["numeric_name"] += 1
            return None
        named = self._lists.setdefault(group, {})
        ref = None if note.name is None else named.get(note.name)
        if ref is None:
            self._sizes[group] += 1
            ref = _Ref(note, group, self._sizes[group])
            self._refs.append(ref)
            if note.name is not None:
                named[note.name] = ref
        else:
            self._define(ref, note)
        return ref

    def _define(self, ref: _Ref, note: Note) -> None:
        if note.content and not ref.note.content:
            ref.note = note
        elif note.kind != "short" and note.content and note.content != ref.note.content:
            self._counts["conflict"] += 1

    def _end_list(self, note: Note) -> None:
        """Ends a list of references. It shows the references of its group that were used since the group's last list,
        and may define them.
        """
        for number in note.inner:
            defined = self._notes[number]
            if defined.kind not in ("ref", "note"):
                if defined.kind == "work":
                    self._rest.append(_Ref(defined, "", None))
                continue
            self._counts["list_defined"] += 1
            group = defined.group or note.group
            ref = self._lists.get(group, {}).get(defined.name or "")
            if ref is not None:
                self._define(ref, defined)
            else:
                self._counts["unused"] += 1
                self._rest.append(_Ref(defined, group, None))
        self._lists.pop(note.group, None)
        self._sizes.pop(note.group, None)

    def finish(self) -> list[_Ref]:
        """Returns all references in the order of first use, then the unused ones, and sets their indexes."""
        refs = self._refs + self._rest
        for index, ref in enumerate(refs):
            ref.index = index
            self._counts["undefined"] += not ref.note.content
        return refs


def _before(text: str, begin: int, at: int) -> int:
    """Returns the position after the last visible character before ``at``, or ``begin``."""
    while at > begin and text[at - 1].isspace():
        at -= 1
    return max(at, begin)


def _last_line(shown: str, line: int, known: dict[int, tuple[int, int, int]]) -> tuple[int, int, int]:
    """Finds the last non-empty line before a line. Returns its start, and the start and end of its text.

    ``known`` caches the results by the start of the line.
    """
    found, passed = (0, 0, 0), []
    while line and line not in known:
        passed.append(line)
        end, line = line - 1, shown.rfind("\n", 0, line - 1) + 1
        begin = _line_start(shown, line)
        before = _before(shown, begin, end)
        if before > begin or shown[line : line + 1] == PLACE:
            found = (line, begin, before)
            break
    else:
        found = known.get(line, found)
    known.update(dict.fromkeys(passed, found))
    return found


def _line_start(shown: str, line: int) -> int:
    """Returns where the text of a line starts, after the markup of a list item or heading."""
    prefix = LINE_PREFIX.match(shown, line)
    return line if prefix is None else prefix.end()


def _plain(template: Template) -> Template:
    """Returns a use of a template without the placeholders and note numbers in its values."""

    def plain(value: str) -> str:
        return value if value.isprintable() else without_marks(without_numbers(value))

    named = {key: plain(value) for key, value in template.named.items()}
    return template._replace(positional=tuple(map(plain, template.positional)), named=named)


def _with_separators(inner: str) -> str:
    """Returns the text between the braces of a template as wikitext, with pipes and equals signs from other templates
    escaped.
    """
    if PIPE not in inner and EQUALS not in inner:
        return inner
    parts: list[str] = []
    for part in split_at_pipes(inner):
        part = _PLAIN_LINK.sub(lambda link: unmark_separators(link[0]), part).replace(PIPE, "{{!}}")
        is_named = "=" in part.partition(EQUALS)[0]
        parts.append(part.replace(EQUALS, "=" if is_named else "{{=}}"))
    return "|".join(parts)


def _each_once(text: str) -> tuple[int, ...]:
    """Returns the numbers in a text in order, each once. Templates that repeat their argument make duplicates."""
    return tuple(dict.fromkeys(mark_numbers(text)))


def _attributes(written: str) -> dict[str, str]:
    found = {}
    for name, *values in _ATTRIBUTE.findall(written):
        if value := " ".join(without_marks(unescape("".join(values))).split()):
            found[name.lower()] = value
    return found
