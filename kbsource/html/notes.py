"""Reads the references of a rendered page: footnotes with their texts, templates that make notes, and their positions.

Their contents are converted to wikitext, which ``kbsource.wikitext.references`` reads. A template becomes its wikitext,
which the HTML contains; everything else becomes text.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from html import escape
from typing import Any

from lxml import etree

from kbsource.html.elements import BLOCKS, CUT_ELEMENTS, box_kind_of, json_object, template_parts, types_of
from kbsource.wikitext.markers import ANY_CONTROL, mark_numbers, number_mark
from kbsource.wikitext.references import References
from kbsource.wikitext.tags import raised_text
from kbsource.wikitext.templates import split_template

_LITERAL = str.maketrans({character: f"&#{ord(character)};" for character in "&<[]{}|'_~\n"})
_WITH_MARKERS = frozenset({"short", "note", "reuse"})
_UNMARKED = frozenset({"work"})  # kinds of templates that show no marker
_LONGEST_NOTE = 100_000  # characters
_MOST_REPEATED = 8_000_000  # total characters of the notes of a page, each counted once per marker that points to it


class PageNotes:
    """Records the notes of one page in a ``References``.

    Args:
        lang: language of the wiki.
        root: the document.
    """

    def __init__(self, references: References, *, lang: str, root: etree._Element) -> None:
        self.references = references
        self._lang = lang
        self._notes = {id_: element for element in root.iter("li") if (id_ := element.get("id"))}
        self._contents: dict[etree._Element, str] = {}
        self._n_repeated_chars = 0
        self._order: list[int] = []
        self._searched: set[etree._Element] = set()  # notes whose inner notes are all recorded
        self._read: set[str] = (
            set()
        )  # groups of elements whose notes are recorded; a group consists of the elements that a template made

    def footnote(self, element: etree._Element, group: str) -> list[int]:
        """Records the marker of a footnote and returns its number, unless the template around it is already
        recorded.
        """
        if group in self._read or (element.get("about") or "") in self._read:
            return []
        return self._added(self._tag(element))

    def _tag(self, element: etree._Element) -> str:
        """Records the marker of a footnote. Returns the text from ``References`` that represents the marker."""
        data = json_object(element.get("data-mw"))
        attributes = data.get("attrs")
        values = dict(attributes) if isinstance(attributes, dict) else {}
        note = self._note_of(element)
        main = _main_note(note)
        if note is not None and main is not None:
            values.setdefault("details", self._content(note))
            values.setdefault("name", data.get("mainRef"))
            note = main
        written = " ".join(
            f'{name}="{escape(value)}"' for name, value in values.items() if isinstance(value, str) and name.isalpha()
        )
        is_reuse = bool(values.get("name")) and note in self._contents
        return self.references.tag(written, "" if note is None or is_reuse else self._content(note), "")

    def _note_of(self, element: etree._Element) -> etree._Element | None:
        """Returns the list item that a marker points to; None if it is not on the page."""
        link = element.find(".//a")
        return None if link is None else self._notes.get((link.get("href") or "").rpartition("#")[2])

    def list_of(self, element: etree._Element) -> None:
        """Records a list of references."""
        attributes = json_object(element.get("data-mw")).get("attrs")
        group = attributes.get("group") if isinstance(attributes, dict) else None
        written = f'group="{escape(group)}"' if isinstance(group, str) else ""
        self._added(self.references.tag_list(written, ""))

    def template(self, element: etree._Element) -> list[int] | None:
        """Records a template that makes notes or a citation. Returns the numbers of the markers that it shows, or None
        for another template.
        """
        data = json_object(element.get("data-mw"))
        uses = [*template_parts(data)]
        if len(uses) != 1 or len(data.get("parts", ())) != 1:
            for use in uses:  # several templates may make one part of the page, such as a bibliography
                found = self._use(*use, kinds=_UNMARKED)
                if found is not None:
                    self._added(found[1])
            return None
        found = self._use(*uses[0], element=element)
        if found is None:
            return None
        kind, shown = found
        numbers = self._added(shown)
        if kind in _WITH_MARKERS:
            self._read.add(element.get("about") or "")
        return [] if kind in _UNMARKED or kind == "list" else numbers

    def _use(
        self,
        name: str,
        arguments: dict[str, Any],
        kinds: Container[str] | None = None,
        element: etree._Element | None = None,
    ) -> tuple[str, str] | None:
        """Records the use of a template of one of these kinds, and the notes in the note that it makes. Returns its
        kind, and the text from ``References`` that represents its markers.
        """
        kind = self.references.kind_of(name)
        if kind is None or kind in ("tag", "anchor") or (kinds is not None and kind not in kinds):
            return None
        inner = call_of(name, arguments)
        if kind in _WITH_MARKERS and element is not None:
            inner += self._notes_within(element)
        template = split_template(inner, self._lang)
        if template is None:
            return None
        return kind, self.references.template(kind, template, inner, is_shown=kind == "short_text")

    def _notes_within(self, element: etree._Element) -> str:
        """Records the notes inside the note that a marker points to, and returns their numbers."""
        note = self._note_of(element)
        if note is None or note in self._searched:
            return ""
        self._searched.add(note)
        shown = []
        for marker in note.iter("sup"):
            if "mw:Extension/ref" not in types_of(marker):
                continue
            uses = [*template_parts(json_object(marker.get("data-mw")))]
            found = self._use(*uses[0], element=marker) if len(uses) == 1 else None
            shown += mark_numbers(self._tag(marker) if found is None else found[1])
        return "".join(map(number_mark, shown))

    def _added(self, shown: str) -> list[int]:
        numbers = mark_numbers(shown)
        self._order += numbers
        return numbers

    def set_order(self) -> None:
        """Records the order of the notes. All notes must have been recorded."""
        self.references.set_order("".join(map(number_mark, self._order)))

    def _content(self, note: etree._Element) -> str:
        """Returns the text of a footnote as wikitext; empty if it has none.

        Raises:
            ValueError: too many markers point to long notes, so that the texts of all references would be too long.
        """
        known = self._contents.get(note)
        if known is None:
            text = next((own for own in note.iter("span") if "reference-text" in (own.get("class") or "")), None)
            known = self._contents[note] = "" if text is None else wikitext_of(text)
            return known
        self._n_repeated_chars += len(known)
        if self._n_repeated_chars > _MOST_REPEATED:
            raise ValueError("the notes of the page are repeated too often")
        return known


def _main_note(note: etree._Element | None) -> etree._Element | None:
    """Returns the main note of a sub-reference, which adds details to it; None for other notes. Source: Cite (2025),
    where sub-references are list items inside the item of their main note.
    """
    around = note.getparent() if note is not None else None
    if around is None or "mw-subreference-list" not in (around.get("class") or "").split():
        return None
    main = around.getparent()
    return main if main is not None and main.tag == "li" else None


def call_of(name: str, arguments: dict[str, Any]) -> str:
    """Returns the wikitext between the braces of a template, from its name and arguments."""
    pieces = [name.strip()]
    place = 1
    for key, value in arguments.items():
        written = value.get("wt") if isinstance(value, dict) else None
        if not isinstance(written, str):
            continue
        if key == str(place) and "=" not in written:
            pieces.append(written)
            place += 1
        else:
            pieces.append(f"{key}={written}")
    return ANY_CONTROL.sub("", "|".join(pieces))


def wikitext_of(element: etree._Element) -> str:
    """Returns wikitext for an element. It shows the same, and its templates are as originally written."""
    pieces: list[str] = []
    n_chars = 0
    seen: set[str] = set()  # groups of elements whose template is already in the output
    leave: list[str] = []

    def add(text: str | None) -> None:
        nonlocal n_chars
        if text:
            pieces.append(text)
            n_chars += len(text)

    events = etree.iterwalk(element, events=("start", "end"))
    for event, inner in events:
        if n_chars > _LONGEST_NOTE:
            break
        if event == "end":
            add(leave.pop())
            if inner is not element:
                add(_literal(inner.tail))
            continue
        leave.append("")
        if inner is element:
            add(_literal(inner.text))
            continue
        group, types = inner.get("about") or "", types_of(inner)
        is_cut = inner.tag in CUT_ELEMENTS or bool(box_kind_of(inner)) or "mw:Extension/ref" in types
        if group.startswith("#mwt") and group in seen:
            is_cut = True
        elif "mw:Transclusion" in types and (written := "".join(_parts(json_object(inner.get("data-mw"))))):
            seen.add(group)
            add(written)
            is_cut = True
        elif inner.tag == "sup" and not is_cut:
            shown = "".join(map(str, inner.itertext()))
            before = pieces[-1][-1:] if pieces else ""
            if (raised := raised_text(shown, shown, before=before)) is not None:
                add(_literal(raised))
                is_cut = True
        elif inner.tag == "a" and not is_cut and "mw:ExtLink" in (inner.get("rel") or ""):
            address = inner.get("href") or ""
            if address.startswith(("http://", "https://", "//")) and not any(sign in address for sign in ' []<>"{}|'):
                add(f"[{ANY_CONTROL.sub('', address)} ")
                leave[-1] = "]"
        elif inner.tag in BLOCKS or inner.tag in ("br", "li", "td"):
            add(" ")
        if is_cut:
            events.skip_subtree()
        else:
            add(_literal(inner.text))
    return "".join(pieces).strip()


def _literal(text: str | None) -> str:
    """Returns wikitext that shows a text unchanged."""
    return ANY_CONTROL.sub("", text.replace("\n", " ")).translate(_LITERAL) if text else ""


def _parts(data: dict[str, Any]) -> Iterator[str]:
    """Yields the parts of a transclusion as wikitext."""
    parts = data.get("parts")
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, str):
            yield ANY_CONTROL.sub("", part)
        else:
            yield from (f"{{{{{call_of(*use)}}}}}" for use in template_parts({"parts": [part]}))
