"""Parses the rendered HTML of a page. The result has the same form as that of the wikitext parser.

Two kinds of HTML are read: documents of Parsoid, and the output of MediaWiki's older parser. Source:
https://www.mediawiki.org/wiki/Specs/HTML/2.8.0.

HTML is untrusted, so any input must be read in linear time. The tree is walked without recursion, and its depth and
size are limited.
"""

from __future__ import annotations

import re
import urllib.parse
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from html import unescape

from lxml import etree
from msgspec.structs import replace

from kbsource.errors import RecordError
from kbsource.html.elements import (
    BLOCKS,
    CELLS,
    CUT_ELEMENTS,
    CUT_TYPES,
    FILE_TYPES,
    HEADINGS,
    ITEMS,
    LISTS,
    MATH_TYPES,
    TEXT_TYPES,
    box_kind_of,
    json_object,
    types_of,
)
from kbsource.html.notes import PageNotes
from kbsource.html.template_uses import TemplateUses
from kbsource.records import Loss
from kbsource.site import Site
from kbsource.titles import Target, clean_title, is_valid_title, normalise_title, split_namespace, upper_first
from kbsource.wikitext.dependencies import Dependencies
from kbsource.wikitext.markers import ANY_CONTROL, number_mark
from kbsource.wikitext.page_builder import PageBuilder
from kbsource.wikitext.parse import FAILED_REFERENCES, PAGE_FAULTS, ParsedText, WikitextParser
from kbsource.wikitext.reference_texts import NoteKinds, ReferenceReader
from kbsource.wikitext.references import NO_TARGET, References
from kbsource.wikitext.tags import MAX_LIST_DEPTH, raised_text

MAX_HTML_CHARS = 64 << 20
"""Maximum length of a document. The longest pages of Wikipedia have 20 million characters."""
MAX_DEPTH = 2000
"""Maximum nesting depth of elements in a document. Real pages stay below 60."""
_MOST_SPAN = 1000  # maximum rows or columns that a cell covers. Source: the HTML standard
_LONGEST_RAISED = 60  # in characters; longer superscripts are not exponents
_MOST_VARIANT_CHARS = 10_000

_WHITE = re.compile(r"\s+")
_EDIT_LINK = re.compile(r"\?(?:[^#]*&)?(?:action=edit|redlink=1)[^#]*")
_LINK_IN_PARAMETERS = re.compile(r"\[\[\s*:?\s*([^\[\]|#\\<>{}]{1,255})")
_TEX_STYLE = re.compile(r"\A\{\\(?:displaystyle|textstyle) (.*)\}\Z", re.DOTALL)


class HtmlReader:
    """Reads a wiki's rendered pages. It holds caches; create one per process.

    With ``has_references``, references are read too; the rest of the result is the same. If the references of a page
    cannot be read, the page has none, and ``failed`` counts it.
    """

    def __init__(self, site: Site, *, has_references: bool = False) -> None:
        self._site = site
        self._has_references = has_references
        if has_references:
            dependencies = Dependencies(site)
            self._note_kind = NoteKinds(site.lang, None, dependencies)
            plain = WikitextParser(site).plain
            self._read_reference = ReferenceReader(site.lang, plain, self._note_kind, dependencies)
        self.target = lru_cache(maxsize=1 << 16)(self._target)

    def parse(self, html: str, *, title: str, leave_out_references: bool = False) -> ParsedText:
        """Returns the content of a page. ``leave_out_references`` treats its references as unreadable.

        Raises:
            RecordError: ``html_too_large``, ``html_too_deep`` or ``html_empty``.
        """
        root = parse_html(html)
        main = main_element(root)
        if not self._has_references:
            return self._read(root, main, title, None)
        if not leave_out_references:
            try:
                return self._read(root, main, title, References(self._note_kind))
            except PAGE_FAULTS:
                pass  # the page may be readable without its references
        return replace(self._read(root, main, title, None), references=FAILED_REFERENCES)

    def _read(
        self, root: etree._Element, main: etree._Element, title: str, references: References | None
    ) -> ParsedText:
        notes = None if references is None else PageNotes(references, lang=self._site.lang, root=root)
        page = PageWalk(self, title, root, notes)
        page.walk(main)
        content = page.content()
        if references is None:
            return content
        anchors = references.take_places(content.anchors, content.elements)
        rows = references.rows(content.elements, self._read_reference)
        return replace(content, anchors=tuple(anchors), references=rows)

    def _target(self, href: str) -> tuple[Target, str] | None:
        """Returns the target of an internal link from its address: parsed, and as written. None if it is not a page."""
        if href.startswith("./"):
            path = href[2:]
        elif href.startswith("/wiki/"):
            path = href[6:]
        elif href.startswith("#"):
            path = href
        elif (query := href.partition("index.php?")[2]) and "redlink=1" in query:
            path = urllib.parse.quote(urllib.parse.parse_qs(query.partition("#")[0]).get("title", [""])[0])
        else:
            return None
        path = _EDIT_LINK.sub("", path)
        name, _, section = path.partition("#")
        title = clean_title(ANY_CONTROL.sub("", urllib.parse.unquote(name, errors="replace")))
        fragment = clean_title(ANY_CONTROL.sub("", urllib.parse.unquote(section, errors="replace"))) or None
        written = title + (f"#{fragment}" if fragment else "")
        if not title:
            return (Target("page", 0, "", fragment, False), written) if fragment else None
        namespace, rest = split_namespace(title, self._site)
        if not is_valid_title(rest, namespace=namespace):
            return None
        if not namespace and self._site.case == "first-letter":
            title = upper_first(title, self._site.lang)
        return Target("page", namespace, title, fragment, True), written


def parse_html(html: str) -> etree._Element:
    """Returns the tree of a document or a fragment.

    Raises:
        RecordError: as for ``HtmlReader.parse``.
    """
    if len(html) > MAX_HTML_CHARS:
        raise RecordError("html_too_large", f"{len(html):,} characters; the maximum is {MAX_HTML_CHARS:,}")
    if not html.strip():
        raise RecordError("html_empty", "the page has no HTML")
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, no_network=True, remove_pis=True, remove_comments=True)
    try:
        root = etree.fromstring(html.encode("utf-8", "replace"), parser)
    except etree.XMLSyntaxError as error:
        raise RecordError("html_empty", f"the page has no HTML that can be parsed ({error})") from error
    if root is None:
        raise RecordError("html_empty", "the page has no element")
    for problem in parser.error_log:
        if problem.level == etree.ErrorLevels.FATAL and "depth" in problem.message.lower():
            raise RecordError("html_too_deep", problem.message)
    return root


def main_element(root: etree._Element) -> etree._Element:
    """Returns the element that contains the parser's output, without the skin around it."""
    body = root.find("body")
    body = root if body is None else body
    if "mw-parser-output" in (body.get("class") or "").split():
        return body
    for element in body.iter("div"):
        if "mw-parser-output" in (element.get("class") or "").split():
            return element
    return body


def tex_of(element: etree._Element) -> str:
    """Returns the TeX of a formula as written in the page, or else from its MathML."""
    body = json_object(element.get("data-mw")).get("body")
    tex = body.get("extsrc") if isinstance(body, dict) else None
    if isinstance(tex, str):
        tex = " ".join(tex.split())
        is_chemical = types_of(element).isdisjoint({"mw:Extension/math"})
        return f"\\ce{{{tex}}}" if tex and is_chemical else tex
    for formula in element.iter("math", "img"):
        alternative = formula.get("alttext") or formula.get("alt")
        if alternative:
            styled = _TEX_STYLE.match(alternative.strip())
            return " ".join((styled[1] if styled else alternative).split())
    return ""


_INVISIBLE = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style|head|title)\b.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_HEADING_TAG = re.compile(r"<h([1-6])\b[^<>]{0,2000}>(.{0,2000}?)</h\1\s*>", re.DOTALL | re.IGNORECASE)
_LINE_TAG = re.compile(
    r"</?(?:p|div|li|dt|dd|tr|td|th|table|ul|ol|dl|section|blockquote|pre|br|hr)\b[^<>]*>", re.IGNORECASE
)
_ANY_TAG = re.compile(r"<[^<>]*>")


def extract_html_fallback(html: str, *, title: str) -> ParsedText:
    """Extracts a page that the parser cannot read: removes tags, and returns the title, the headings, and every other
    line that contains a letter as a paragraph.

    As in ``extract_fallback`` for wikitext, tables and references appear in the text, and links are not collected.
    """
    text = ANY_CONTROL.sub("", html[:MAX_HTML_CHARS].encode("utf-8", "replace").decode())
    text = _INVISIBLE.sub(" ", text).replace("\n", " ")
    text = _HEADING_TAG.sub(lambda found: f"\n\x03{found[1]}{found[2]}\n", text)
    text = _ANY_TAG.sub("", _LINE_TAG.sub("\n", text))
    losses: Counter[str] = Counter(fallback=1)
    builder = PageBuilder(losses)
    for line in text.split("\n"):
        shown = unescape(line)
        if not any(character.isalnum() for character in shown[:10_000]):
            continue
        if shown[0] == "\x03":
            builder.heading(int(shown[1]))
            shown = shown[2:]
        builder.text(shown)
        builder.paragraph()
    built = builder.build(title)
    found = tuple(Loss(kind, count) for kind, count in sorted(losses.items()))
    return ParsedText(tuple(built.elements), losses=found)


class PageWalk:
    """Converts the tree of one page to its content."""

    def __init__(self, reader: HtmlReader, title: str, root: etree._Element, notes: PageNotes | None) -> None:
        self._reader, self._site, self._title = reader, reader._site, title
        self._losses: Counter[str] = Counter()
        self._builder = self._make_builder()
        self._lists: list[str] = []
        self._tables: list[int] = []  # numbers of the open tables
        self._is_line = False  # in a heading or an item, which block elements do not end
        self._templates = TemplateUses(root, reader._site.lang)
        # by group: targets of the links in the arguments of its templates
        self._written: dict[str, frozenset[str]] = {}
        self._categories: dict[str, bool] = {}
        self._sort_keys: dict[str, str] = {}
        self._group = ""  # the group that contains the current element
        self._box: int | None = None  # number of the open infobox
        self._notes = notes
        self._root = root
        self._read_head()

    def _make_builder(self) -> PageBuilder:
        return PageBuilder(self._losses)

    def _read_head(self) -> None:
        """Reads what is not part of the text: links in arguments of templates, categories, properties of the page."""
        for element in self._root.iterfind(".//*[@data-mw]"):
            if "mw:Transclusion" not in (element.get("typeof") or ""):
                continue
            written = element.get("data-mw") or ""
            if "[[" in written:
                targets = (normalise_title(target, self._site) for target in _LINK_IN_PARAMETERS.findall(written))
                self._written[element.get("about") or ""] = frozenset(targets)
        self._is_disambiguation = False
        for element in self._root.iter("meta", "link"):
            if element.tag == "meta":
                self._is_disambiguation |= element.get("property") == "mw:PageProp/disambiguation"
            elif element.get("rel") == "mw:PageProp/Category":
                self._add_category(element)

    def _add_category(self, element: etree._Element) -> None:
        address, _, key = (element.get("href") or "").partition("#")
        found = self._reader.target(address)
        if found is not None:
            name = found[0].title.partition(":")[2]
            is_made = element.get("about") is not None
            if name:
                self._categories[name] = is_made and self._categories.get(name, True)
                key = urllib.parse.unquote(key, errors="replace").replace("\n", "")
                self._sort_keys[name] = ANY_CONTROL.sub("", key)

    def content(self) -> ParsedText:
        if self._notes is not None:
            self._notes.set_order()
        built = self._builder.build(self._title, on_box=None if self._notes is None else self._notes.references.put_box)
        return ParsedText(
            elements=tuple(built.elements),
            anchors=tuple(built.anchors),
            categories=tuple(self._categories),
            template_categories=tuple(name for name, is_made in self._categories.items() if is_made),
            category_sort_keys=tuple(map(self._sort_keys.__getitem__, self._categories)),
            tables=built.tables,
            infoboxes=built.infoboxes,
            templates=self._templates.rows(),
            losses=tuple(Loss(kind, count) for kind, count in sorted(self._losses.items()) if count),
            is_disambiguation=self._is_disambiguation,
            lost=self._templates.lost(),
            shown=self._templates.shown(),
            dependencies=frozenset(),  # HTML depends on other pages only through the titles that it links to
        )

    def walk(self, main: etree._Element) -> None:
        """Adds the content of an element to the page."""
        leave: list[Callable[[], None] | None] = []
        text = self._builder.text
        events = etree.iterwalk(main, events=("start", "end"))
        for event, element in events:
            if event == "start":
                if len(leave) > MAX_DEPTH:
                    raise RecordError("html_too_deep", f"elements are nested more than {MAX_DEPTH} deep")
                if element is main:
                    leave.append(None)
                    is_entered = True
                else:
                    is_entered, after = self._enter(element)
                    leave.append(after)
                if not is_entered:
                    events.skip_subtree()
                elif element.text:
                    text(element.text)
                continue
            if (after := leave.pop()) is not None:
                after()
            if element is not main and element.tail:
                text(element.tail)

    def _enter(self, element: etree._Element) -> tuple[bool, Callable[[], None] | None]:
        """Begins an element. Returns whether its content is to be read, and the function to call at its end."""
        group = element.get("about") or ""
        if self._group or not group.startswith("#mwt"):
            return self._begin(element)
        self._group = group
        n_before = self._builder.n_visible_chars
        is_entered, inner = self._begin(element)

        def leave() -> None:
            if inner is not None:
                inner()
            self._templates.show(group, self._builder.n_visible_chars - n_before)
            self._group = ""

        if not is_entered:
            leave()
            return False, None
        return True, leave

    def _begin(self, element: etree._Element) -> tuple[bool, Callable[[], None] | None]:
        """Begins an element, as ``_enter`` does, in the current group."""
        builder = self._builder
        tag = element.tag
        types = element.get("typeof")
        if types:
            named = set(types.split())
            if self._notes is not None:
                self._note(element, named)
            if not named.isdisjoint(MATH_TYPES):
                return self._formula(element)
            if "mw:LanguageVariant" in named:
                if tag != "meta":  # a meta element applies to the rest of the page
                    builder.text(_variant(element))
                return False, None
            for name in named:
                if (loss := CUT_TYPES.get(name)) is not None:
                    return self._cut(element, loss)
                if name.startswith(FILE_TYPES):
                    return self._cut(element, "file")
        if tag == "math" or (tag in ("span", "div") and "mwe-math-element" in (element.get("class") or "")):
            return self._formula(element)
        if tag in CUT_ELEMENTS:
            loss = CUT_ELEMENTS[tag]
            return self._cut(element, loss) if loss else (False, None)
        kind = box_kind_of(element)
        if kind == "infobox" and self._box is None:
            return self._infobox(element)
        if kind:
            return self._cut(element, None, is_seen=kind != "hidden")
        after = self._element(element, tag)
        return (False, None) if after is _SKIP else (True, after)

    def _note(self, element: etree._Element, types: set[str], *, is_shown: bool = True) -> None:
        """Records the notes that an element makes. If ``is_shown``, places their markers in the text."""
        assert self._notes is not None
        numbers = self._notes.template(element) if "mw:Transclusion" in types else None
        if numbers is None and "mw:Extension/ref" in types:
            numbers = self._notes.footnote(element, self._group)
        elif numbers is None and "mw:Extension/references" in types:
            self._notes.list_of(element)
        for number in numbers or ():
            if self._tables:
                self._builder.note_in_table(self._tables[-1], number)
            elif self._box is not None:
                self._notes.references.boxes.setdefault(f"I{self._box}", []).append(number)
            elif is_shown and not self._builder.is_in_cell:
                self._builder.mark(NO_TARGET, number_mark(number))

    def _note_markers(self, element: etree._Element) -> None:
        """Records the footnotes whose markers are in an element that is left out of the text; lists of references are
        skipped."""
        events = etree.iterwalk(element, events=("start",))
        for _, inner in events:
            types = inner.get("typeof") or ""
            if "mw:Extension/references" in types:
                events.skip_subtree()
            elif "mw:Extension/ref" in types and inner is not element:
                self._note(inner, set(types.split()), is_shown=False)
                events.skip_subtree()

    def _cut(self, element: etree._Element, loss: str | None, *, is_seen: bool = True) -> tuple[bool, None]:
        """Skips an element, and counts the text that readers see in it. Reference markers are not text."""
        if loss is not None:
            self._losses[loss] += 1
        if is_seen and loss != "ref":
            self._templates.lose(self._group, element)
        if self._notes is not None and loss not in ("ref", "references"):
            self._note_markers(element)
        if element.tag in BLOCKS or element.tag in ("table", "figure", "ul", "ol", "dl"):
            self._edge()
        return False, None

    def _formula(self, element: etree._Element) -> tuple[bool, None]:
        tex = tex_of(element)
        is_block = element.tag == "div" or "mwe-math-element-block" in (element.get("class") or "")
        if is_block:
            self._edge()
        if tex:
            self._builder.text(f"${tex}$")
        if is_block:
            self._edge()
        return False, None

    def _edge(self) -> None:
        """Ends a paragraph, or separates words within a heading or an item."""
        if self._is_line:
            self._builder.space()
        else:
            self._builder.paragraph()

    def _element(self, element: etree._Element, tag: str) -> Callable[[], None] | None:
        """Begins an element in running text. Returns the function to call at its end, None if there is nothing to do,
        or ``_SKIP`` to leave out its content."""
        builder = self._builder
        if tag == "a":
            return self._link(element)
        if tag in BLOCKS:
            self._edge()
            return self._edge
        if tag in ITEMS:
            return self._item(tag)
        if tag in LISTS:
            self._lists.append(LISTS[tag])
            was_line, self._is_line = self._is_line, False
            builder.paragraph()

            def end_list() -> None:
                self._lists.pop()
                self._is_line = False if self._lists else was_line
                builder.paragraph()

            return end_list
        if tag in HEADINGS:
            return self._heading(int(tag[1]))
        if tag == "br":
            builder.line_break()
            return _SKIP
        if tag == "sup":
            return self._superscript(element)
        if tag == "table":
            return self._table()
        if self._tables and tag in CELLS:
            return self._cell(element, tag)
        if self._tables and tag == "tr":
            self._builder.row(self._tables[-1])
        elif tag in CELLS or tag == "tr":
            self._edge()
            return self._edge
        return None

    def _item(self, tag: str) -> Callable[[], None]:
        own = self._lists or ["*"]
        marker = {"dt": ";", "dd": ":"}.get(tag, own[-1] if own[-1] != ":" else "*")
        self._builder.item("".join([*own[:-1], marker][:MAX_LIST_DEPTH]))
        was_line, self._is_line = self._is_line, True

        def end_item() -> None:
            self._is_line = was_line
            self._builder.paragraph()

        return end_item

    def _heading(self, level: int) -> Callable[[], None] | None:
        if self._is_line:
            self._builder.space()
            return self._builder.space
        self._builder.heading(level)
        self._is_line = True

        def end_heading() -> None:
            self._is_line = False
            self._builder.paragraph()

        return end_heading

    def _superscript(self, element: etree._Element) -> Callable[[], None] | None:
        for inner in element.iterdescendants("a", "sup", "math", "span"):
            if inner.tag != "span" or not types_of(inner) <= TEXT_TYPES:
                return None
        shown = self._visible_text(element)
        if len(shown) > _LONGEST_RAISED:
            return None
        raised = raised_text(shown, shown, before=self._builder.last_character)
        if raised is None:
            return None
        self._builder.text(raised)
        return _SKIP

    def _link(self, element: etree._Element) -> Callable[[], None] | None:
        builder = self._builder
        names = (element.get("rel") or "").split()
        classes = (element.get("class") or "").split()
        if "mw:WikiLink/Interwiki" in names or "extiw" in classes:
            self._losses["interwiki_link"] += 1
            return None
        if "mw:ExtLink" in names or "external" in classes:
            if "autonumber" in classes:
                self._losses["external_link_unlabelled"] += 1
                return _SKIP
            return None
        found = self._reader.target(element.get("href") or "")
        if found is None:
            if element.get("href") and "mw:WikiLink" in names:
                self._losses["invalid_link"] += 1
            return None
        target, written = found
        is_made = bool(self._group) and target.title not in self._written.get(self._group, ())
        builder.open_link()

        def end_link() -> None:
            builder.close_link(target, written, is_made=is_made)

        return end_link

    def _table(self) -> Callable[[], None]:
        builder = self._builder
        self._tables.append(builder.open_table())
        outer = self._lists, self._is_line
        self._lists, self._is_line = [], False

        def end_table() -> None:
            self._tables.pop()
            self._lists, self._is_line = outer
            builder.paragraph()

        return end_table

    def _cell(self, element: etree._Element, tag: str) -> Callable[[], None]:
        builder = self._builder
        if tag == "caption":
            builder.open_caption(self._tables[-1])
        else:
            colspan, rowspan = (_span(element.get(name)) for name in ("colspan", "rowspan"))
            builder.open_cell(self._tables[-1], is_header=tag == "th", colspan=colspan, rowspan=rowspan)
        outer = self._lists, self._is_line
        self._lists, self._is_line = [], False

        def end_cell() -> None:
            self._lists, self._is_line = outer
            builder.close_cell()

        return end_cell

    def _infobox(self, element: etree._Element) -> tuple[bool, None]:
        """Adds an infobox, with the labels and values of the rows that have both."""
        builder = self._builder
        number = self._box = builder.open_infobox(self._box_name(element))
        n_before = builder.n_visible_chars
        outer = self._lists, self._is_line, self._tables
        inside: set[etree._Element] = set()  # elements that are labels and values
        for row in element.iter("tr", "sup"):
            if inside and not inside.isdisjoint(row.iterancestors("td", "th")):
                continue
            self._lists, self._is_line, self._tables = [], False, []
            if row.tag == "sup":
                if self._notes is not None and "mw:Extension/ref" in (types := types_of(row)):
                    self._note(row, types)
                continue
            cells = [cell for cell in row if cell.tag in ("th", "td")]
            if len(cells) != 2:
                continue
            label = " ".join(self._visible_text(cells[0]).split())
            if label:
                n_before -= len(label) - label.count(" ")
                if self._notes is not None:
                    self._note_markers(cells[0])
                builder.open_field(number, label)
                self.walk(cells[1])
                builder.close_cell()
                inside.update(cells)
        self._lists, self._is_line, self._tables = outer
        self._box = None
        self._templates.lose(self._group, element, n_kept=builder.n_visible_chars - n_before)
        self._edge()
        return False, None

    def _visible_text(self, element: etree._Element) -> str:
        """Returns the visible text of an element on one line, without references."""
        pieces: list[str] = []
        events = etree.iterwalk(element, events=("start", "end"))
        for event, inner in events:
            if event == "start":
                is_cut = inner is not element and (
                    inner.tag in CUT_ELEMENTS
                    or bool(box_kind_of(inner))
                    or "mw:Extension/" in (inner.get("typeof") or "")
                )
                if is_cut:
                    events.skip_subtree()
                elif inner.text:
                    pieces.append(inner.text)
                if inner.tag in BLOCKS or inner.tag == "br":
                    pieces.append(" ")
            elif inner is not element and inner.tail:
                pieces.append(inner.tail)
        return ANY_CONTROL.sub("", _WHITE.sub(" ", "".join(pieces)))

    def _box_name(self, element: etree._Element) -> str:
        """Returns the name of the template that makes an infobox; empty if it is unknown."""
        for around in (element, *element.iterancestors()):
            if (name := self._templates.name_of(around.get("about") or "")) is not None:
                return name
        return ""


def _span(written: str | None) -> int:
    """Returns the number of columns or rows that a cell covers."""
    digits = (written or "").strip()
    if not (digits.isascii() and digits.isdigit()):
        return 1
    return min(max(int(digits[:6]), 1), _MOST_SPAN)


def _variant(element: etree._Element) -> str:
    """Returns the text of the first variant of a language conversion rule; empty for a rule that shows nothing."""
    rule = json_object(element.get("data-mw-variant"))
    for key in ("disabled", "name", "twoway", "oneway", "filter"):
        value = rule.get(key)
        first = value[0] if isinstance(value, list) and value else value
        if key in rule and isinstance(first, dict):
            shown = first.get("t")
            if not isinstance(shown, str) or not shown.strip() or "<" not in shown:
                return shown if isinstance(shown, str) else ""
            return "".join(map(str, parse_html(f"<div>{shown[:_MOST_VARIANT_CHARS]}</div>").itertext()))
    return ""


def _nothing() -> None:
    """Does nothing. As the function for an element's end, it means that the content is not read."""


_SKIP = _nothing
