"""Prepares the wikitext of a page for the tokenizer: resolves templates, tags and tables, so that only links, quotes
and lines remain.

The wikitext of table cells and infobox values becomes separate fragments. After tokenization, ``assemble`` puts their
texts into the tables and infoboxes.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from itertools import islice

from msgspec.structs import replace

from kbsource.elements import Infobox, Table
from kbsource.wikitext.blocks import LINK_OF_LINES, RawTable, cut_tables
from kbsource.wikitext.braces import expand_braces
from kbsource.wikitext.citations import is_citation, read_listed_work, slot_of
from kbsource.wikitext.expander import BLOCK_STARTS, Expander, PageExpander, render_use
from kbsource.wikitext.functions.arguments import PageFacts, Template
from kbsource.wikitext.functions.conditions import ERROR
from kbsource.wikitext.lines import VARIANT_LANGS, choose_variants, end_paragraphs, remove_switches
from kbsource.wikitext.markers import (
    ANY_PLACE,
    BLOCK,
    BREAK,
    CUT,
    CUTS,
    DIGIT,
    EQUALS,
    LINE,
    NUMBER,
    NUMBERED,
    PIPE,
    PLACE,
    SAID,
    cut_out,
    has_numbers,
    mark_separators,
    reach_back,
    unmark_separators,
    without_marks,
    without_numbers,
)
from kbsource.wikitext.page_builder import CellText, assemble_boxes
from kbsource.wikitext.reference_texts import citation_text
from kbsource.wikitext.references import References
from kbsource.wikitext.tags import decode_references, replace_tags, strip_extensions
from kbsource.wikitext.templates import (
    WORDS_ALONE,
    LostText,
    TemplateRule,
    find_rule,
    fixed_outcomes,
    is_in_sentence,
    lost_text,
    magic,
    mark_links,
    normalise_template_name,
    split_at_pipes,
    split_template,
    unmarked,
    visible_chars,
)

_NOTHING = f"{CUTS}{LINE} \n"
_CUT_BLOCKS = CUTS + BLOCK
_BLANK_NAME = f"{CUTS}{PIPE}: _\n"  # a name of only these characters is empty
_PLACE_LINE = re.compile(f"{PLACE}[TI][0-9]+")
_PLACE_TO_SETTLE = re.compile(f"({PLACE}[TI][0-9]+)\n? *")
_PLACE_SHOWN = re.compile(f"({ANY_PLACE.pattern})\n?")
_CUTS_IN_A_ROW = re.compile(f"{CUT}{CUT}+")
_UNSETTLED = re.compile(f"[<&_~{{{PIPE}{EQUALS}{PLACE}{LINE}{NUMBER}{BLOCK}]")  # characters that _settle processes
_ITEM_ENDS = frozenset("*#: \t")
_ITEM_START = re.compile(r"\n[*#:]+[ \t]*")
_MONEY_IN_BRACKETS = re.compile(rf"\((?:[^()\n{NUMBER}][{DIGIT}]*+){{0,200}}{NUMBER}(?:[^()\n][{DIGIT}]*+){{0,200}}\)")
_MONEY_WITHOUT_NUMBER = re.compile(rf"[^(,;{NUMBER}]*{NUMBER}(?=[ ,;.)])(?! ?[0-9])[^,;)]*")
_SAID = re.compile(f"{SAID}([^{SAID}]*){SAID}")
# An external link up to the end of its address, unless a space ends the address. Without a label, it includes the
# closing bracket.
_ADDRESS = re.compile(
    r"\[https?://(?:\[[0-9A-Fa-f:.]+\])?+[^\s\[\]\"<>']*+(?:'[^\s\[\]\"<>']++)*+(?:\]|(?=[\[\"<]|''|[^\S \n]))"
)
# An external link whose label contains block elements. Its URL is not shown, and it may end on another line.
_BLOCK_TAG = "(?ai:table|div|p|center|blockquote|ul|ol|dl|hr|h[1-6])\\b"
_REST_OF_BLOCKS = (
    rf"//[^\s\[\]<>\"|\x00-\x1f]++([^\[\]\n<{BLOCK}]*+(?:<(?!{_BLOCK_TAG})[^\[\]\n<{BLOCK}]*+)*+[<{BLOCK}]"
    r"(?:[^\[\]\n]|\[\[[^\[\]\n]*\]\])*+)\]"
)
_BLOCK = re.compile(BLOCK)
_OPENED_BLOCK = re.compile(f"<{_BLOCK_TAG}")
_LABEL_OF_BLOCKS = re.compile(rf"\[(?:https?:)?{_REST_OF_BLOCKS}")
# A URL up to a character reference for a space, which does not end it.
_BLANK_IN_ADDRESS = re.compile(r"(\[https?://[^\s\[\]<>\"&]*+)&(?:nbsp|#(?:x20|32|160|x[aA]0));")
# An incomplete tag, character reference or switch, which the text after the template may complete.
_OPENED_TOKEN = re.compile(r"(?:</?[A-Za-z][^<>]*|&#?\w{0,40}|__\w{0,40})\Z")
_FRACTION = re.compile("[0-9]+[⁄/][0-9]+")
_FRACTION_AFTER_NUMBER = re.compile(rf"(?<=[0-9]){CUT}{CUT}(?=[0-9]+[⁄/][0-9])")
_LONGEST_LABEL = 500
_OPENED_ARGUMENT = re.compile(r"\A[^|\n\[\]]*\|[^\n\[\]]*=[ \t]*(?=\n)")
_HEADING_IN_TEMPLATE = re.compile(r"\n==[^=\n][^\n]*==[ \t]*\n")


class PagePreparation:
    """The state of a page while it is prepared for the tokenizer. Its counts are described in ``ParsedText``."""

    def __init__(
        self,
        page: PageFacts,
        expander: Expander | None,
        references: References | None = None,
    ) -> None:
        self._page = page
        self.title = page.title
        self._fixed_outcome = fixed_outcomes(page.lang) if expander is None else expander.fixed_outcome
        self._find_rule = find_rule(page.lang)
        self._references = references
        self._expander = expander
        self._facts = page.site.language_facts
        self._expansion = PageExpander(expander, page) if expander is not None else None
        self.losses: Counter[str] = Counter()
        self.templates: Counter[tuple[str, str]] = Counter()
        self.lost: dict[tuple[str, str], LostText] = {}
        self.shown: Counter[tuple[str, str]] = Counter()
        self._targets: set[str] = set()  # targets of redirects between templates
        self._switches: set[str] = set()
        self._infoboxes: list[tuple[str, list[tuple[str, str]]]] = []
        self._tables: list[RawTable] = []
        self._has_blocks = self._has_fractions = False

    def prepare(self, wikitext: str) -> str:
        """Returns the body, in which only links, quotes and lines are left to resolve. Tables and infoboxes are
        collected.
        """
        references = self._references
        text = strip_extensions(wikitext, self.losses, references)
        if self._facts.code in VARIANT_LANGS:
            text = choose_variants(text)
        text = expand_braces(
            text,
            on_template=self._on_template if references is None else self._on_noted,
            on_parameter=self._on_parameter,
            on_broken=self._on_broken,
            is_marked=_begins_item,
        )
        if references is not None:
            references.set_order(text)
        if SAID in text:
            text = _SAID.sub(self._said, text)
        text = self._settle(text)
        return text.replace(BREAK, " ") if BREAK in text else text

    def _said(self, use: re.Match[str]) -> str:
        """Returns the argument of an unknown template inside a sentence, because it is probably part of the sentence;
        otherwise nothing.
        """
        inner, numbers = without_numbers(use[1]), "".join(NUMBERED.findall(use[1]))  # notes in its name
        head, _, words = inner.partition("|")
        name = normalise_template_name(head, self._facts.code)
        if not is_in_sentence(use):
            return self._leave_out(inner, name, "unknown") + numbers
        self.templates[name, "unknown"] += 1
        return words.strip() + numbers

    def _settle(self, text: str) -> str:
        if NUMBER in text:  # a currency sign whose number is missing is removed from brackets, with the words around it
            text = _MONEY_IN_BRACKETS.sub(lambda found: _MONEY_WITHOUT_NUMBER.sub(cut_out, found[0]), text)
            text = text.replace(NUMBER, CUT)
        if LINE in text:
            text = text.replace(f"\n{LINE}", "\n").removeprefix(LINE).replace(LINE, "\n")
        text = unmark_separators(text)
        if PLACE in text:
            text = _PLACE_TO_SETTLE.sub(_own_line, text)
        if "[http" in text:
            text = drop_addresses(text, self.losses)
            if "&" in text:
                text = _BLANK_IN_ADDRESS.sub(r"\1%20", text)  # the first one of each address
        if _has_block_after_slashes(text):
            text = _LABEL_OF_BLOCKS.sub(rf"{CUT}\1{CUT}", text)
        if self._has_fractions:
            text = _FRACTION_AFTER_NUMBER.sub("+", text)
        if ERROR in text:
            text = text.replace(ERROR, CUT)
        text = decode_references(replace_tags(text, self.losses))
        text = remove_switches(text, self.losses, self._switches, self._facts.switch_pattern())
        if BLOCK not in text:
            return cut_tables(text, self._tables, self.losses)
        self._has_blocks = True
        return end_paragraphs(cut_tables(text, self._tables, self.losses))

    def _on_noted(self, inner: str, depth: int) -> str:
        """Returns the result of ``_on_template`` with the numbers of references: those in the use, and the one that it
        makes.

        If the use shows text and its expansion keeps the numbers, they stay at their positions. Otherwise they follow
        the output, but never separate characters that belong together.
        """
        assert self._references is not None
        kind = self._references.kind_of(inner.partition("|")[0])
        is_numbered = has_numbers(inner)
        n_boxes = len(self._infoboxes)
        shown = self._on_template(without_numbers(inner) if is_numbered else inner, depth)
        if len(self._infoboxes) > n_boxes:
            self._references.add_box(f"I{n_boxes}", inner)
            return shown
        if kind is None and not is_numbered:
            return shown
        numbers = inner
        if kind is not None and (template := split_template(inner, self._facts.code)) is not None:
            is_shown = bool(shown.strip(_CUT_BLOCKS))
            numbers = self._references.template(kind, unmarked(template), inner, is_shown=is_shown)
        elif not shown.strip(_CUT_BLOCKS):
            self._references.hide(inner)
        elif CUT in shown and without_numbers(numbered := self._worked_out_again(inner, depth)) == shown:
            return numbered
        if not has_numbers(numbers):
            return shown
        if shown[:1] == CUT and not shown.strip(CUT + BLOCK):
            return cut_out(numbers) + _CUTS_IN_A_ROW.sub(CUT, shown)[1:]
        if not shown[-1:].isalnum():
            return shown
        opened = _OPENED_TOKEN.search(shown)
        end = len(shown) if opened is None else opened.start()
        return "".join((shown[:end], *NUMBERED.findall(numbers), shown[end:]))

    def _worked_out_again(self, inner: str, depth: int) -> str:
        """Returns the result of ``_on_template`` for a second time, without counts and without charging the page's
        budget.
        """
        again = PagePreparation(self._page, self._expander)
        again._infoboxes = self._infoboxes[:]
        return again._on_template(inner, depth)

    def _on_template(self, inner: str, depth: int) -> str:
        is_listed, whole = False, inner
        if inner[:1] == CUT:  # see _begins_item
            inner = inner[1:]
            is_listed = is_citation(normalise_template_name(inner.partition("|")[0], self._page.lang), self._page.lang)
        fixed = None if is_listed else self._fixed_outcome(inner.partition("|")[0])
        if fixed is not None:
            name, target, outcome, ends_paragraph = fixed
            if target != name:
                self._targets.add(target)
            if outcome == "unknown":
                if self._expansion is not None and (text := self._expand(inner, name, depth)) is not None:
                    return text
                if not depth and WORDS_ALONE.fullmatch(inner):
                    return f"{SAID}{inner}{SAID}"
            left = self._leave_out(inner, name, outcome)
            return left + BLOCK if ends_paragraph else left
        template = split_template(inner, self._facts.code)
        if template is None:
            self.losses["broken_markup"] += 1
            text = whole if inner.partition("|")[0].strip(_BLANK_NAME) else CUT
            return mark_separators(text) if depth else text
        if PIPE in inner or EQUALS in inner:
            template = unmarked(template)
        if is_listed and (work := listed_work(template, self._page.lang)):
            self.templates[template.name, "rendered"] += 1
            return mark_separators(work) if depth else work
        name = template.name
        target, rule = self._resolve(name)
        if self._expansion is not None and rule.follows_definition:
            expanded = self._expand(inner, name, depth, has_rule=True)
            if expanded is not None:
                return expanded
        if target != name:
            template = template._replace(name=target)
        rendering = render_use(template, self._page, rule)
        if rendering.outcome == "infobox":
            if _has_heading(inner):
                return self._leave_out(inner, name, "infobox")
            self.templates[name, "rendered"] += 1
            text = mark_separators(rendering.wikitext) if depth else rendering.wikitext
            return self._add_infobox(template._replace(name=name)) + text
        if rendering.outcome != "rendered":
            if rendering.outcome == "unknown" and self._expansion is not None:
                expanded = self._expand(inner, name, depth)
                if expanded is not None:
                    return expanded
            return self._leave_out(inner, name, rendering.outcome)
        self.templates[name, "rendered"] += 1
        text = rendering.wikitext
        has_places = PLACE in text
        if has_places:
            text = _with_places(text, inner)
        if not text and not rendering.is_block:
            return CUT
        if "[[" in text and text.count("[[") > inner.count("[["):
            text = mark_links(text, inner)
        if "'" in text and template.name[0] != "#":
            text = _apart(text)
        elif ("⁄" in text or "/" in text) and _FRACTION.fullmatch(text):
            self._has_fractions = True
            text = f"{CUT}{CUT}{text}"  # a number before it must not touch it: 5 and 1/2 are added
        elif text.startswith(BLOCK_STARTS) and not rendering.is_block:
            text = f"{LINE if _begins_line(template) else CUT}{text}"
        if not depth:
            self.shown[name, "rendered"] += visible_chars(_without_places(text) if has_places else text)
        if rendering.is_block:  # also if it is empty: a list after it must begin a line
            text = f"\n\n{text}\n\n" if text else f"{CUT}\n\n"
            if not depth:
                text = f"{BLOCK}{text}{BLOCK}"
        return mark_separators(text) if depth else text

    def _resolve(self, name: str) -> tuple[str, TemplateRule]:
        """Returns the name of a template or parser function after redirects, and its rule."""
        if self._expander is None or name[0] == "#" or name in magic().rules:
            return name, self._find_rule(name)
        found = self._expander.resolve(self._expander.name_template(name) if ":" in name else name)
        if found[0] != name:
            self._targets.add(found[0])
        return found

    def _expand(self, inner: str, name: str, depth: int, *, has_rule: bool = False) -> str | None:
        """Returns the output of a template's definition; None if there is no definition. If the template also has a
        rule, a definition that is incomplete or exceeds a limit counts as missing.
        """
        if self._expansion is None or _has_heading(inner):
            return None
        outcome, text, is_infobox, n_modules, n_refs, is_incomplete = self._expansion.expand(inner, name)
        if has_rule and is_incomplete:
            return None
        self.losses["module"] += n_modules
        if self._references is not None:
            self._references.count("in_definition", n_refs)
        if outcome == "unknown":
            return None
        if outcome == "limit_exceeded":
            return self._leave_out(inner, name, outcome)
        self.templates[name, outcome] += 1
        if not depth and (is_infobox or text.strip(_NOTHING)):
            self.shown[name, outcome] += visible_chars(_without_places(text))
        if PLACE in inner:
            text = _with_places(text, inner)
            shown = set(_PLACE_LINE.findall(text))
            text += "".join(f"\n{place}\n" for place in _PLACE_LINE.findall(inner) if place not in shown)
        box = ""
        if is_infobox and (template := split_template(inner, self._facts.code)) is not None:
            box = self._add_infobox(unmarked(template))
        return box + (mark_separators(text) if depth else text) or CUT

    def _add_infobox(self, template: Template) -> str:
        unnamed = [(str(number), value) for number, value in enumerate(template.positional, 1) if value.strip(_NOTHING)]
        fields = unnamed + [(without_marks(name).strip(), value) for name, value in template.named.items() if value]
        self._infoboxes.append((template.name, fields))
        return f"\n{PLACE}I{len(self._infoboxes) - 1}\n"

    def _leave_out(self, inner: str, name: str, outcome: str) -> str:
        """Counts a template that shows nothing, and returns what remains of it: the placeholders of infoboxes and
        tables in it.

        A use that contains a section heading was never closed, and its closing braces belong to another template. Its
        text stays.
        """
        if "\n==" in inner and _has_heading(inner):
            self.losses["broken_markup"] += 1
            return _OPENED_ARGUMENT.sub("", inner)
        self.templates[name, outcome] += 1
        if "|" in inner:
            shown = _without_places(inner) if PLACE in inner else inner
            lost = lost_text(shown, self.lost.get((name, outcome)))
            if lost is not None:
                self.lost[name, outcome] = lost
        if PLACE in inner:
            return "".join(f"\n{place}\n" for place in _PLACE_LINE.findall(inner)) or CUT
        return CUT

    def _on_parameter(self, inner: str) -> str:
        self.losses["parameter"] += 1
        return next(islice(split_at_pipes(inner), 1, None), "")

    def _on_broken(self) -> None:
        self.losses["broken_markup"] += 1

    def fragments(self) -> list[str]:
        """Returns the wikitext of all cells and values, in the order that ``assemble`` expects."""
        # Values are settled first: tables in them are added after the tables of the body.
        values = [
            self._settle(value) if _UNSETTLED.search(value) or self._has_fractions else value
            for _, fields in self._infoboxes
            for _, value in fields
        ]
        cells: list[str] = []
        for table in self._tables:
            if table.caption is not None:
                cells.append(table.caption)
            cells += [cell.text for row in table.rows for cell in row]
        if self._has_blocks:
            cells = [end_paragraphs(cell) if BLOCK in cell else cell for cell in cells]
        return cells + values

    def assemble(
        self, cells: list[CellText], places: dict[str, int], hidden_places: set[str]
    ) -> tuple[tuple[Table, ...], tuple[Infobox, ...]]:
        """Returns the tables and infoboxes with the texts of their fragments, each with its position in the body.

        Tables at ``hidden_places`` are left out, with their nested tables, which come after them and have no position.
        """
        return assemble_boxes(
            self._tables,
            self._infoboxes,
            cells,
            places=places,
            hidden_places=hidden_places,
            on_box=None if self._references is None else self._references.put_box,
        )

    def is_disambiguation(self) -> bool:
        """Returns whether a behaviour switch or one of the language's templates marks a disambiguation page."""
        if self._switches & self._facts.disambiguation_words:
            return True
        names = self._facts.disambiguation_templates
        return not names.isdisjoint(self._targets) or any(name in names for name, _ in self.templates)


def _begins_item(before: str) -> bool:
    """Returns whether a template begins a list item, from the text before its braces. A citation in this position is
    shown, because it is an entry of a bibliography.
    """
    return before[-1:] in _ITEM_ENDS and _ITEM_START.fullmatch(before, max(before.rfind("\n"), 0)) is not None


def _has_heading(inner: str) -> bool:
    """Returns whether a use of a template contains a section heading; captions of files do not count."""
    if "\n==" not in inner or not _HEADING_IN_TEMPLATE.search(inner):
        return False
    return "[[" not in inner or _HEADING_IN_TEMPLATE.search(LINK_OF_LINES.sub("", inner)) is not None


def _begins_line(use: Template) -> bool:
    """Returns whether a list or table at the beginning of a template's output begins a line. It does so in the output
    of a parser function, and if the argument with the list begins with a newline.
    """
    if use.name[0] == "#" or use.name[-1] == ":":
        return True
    return bool(use.positional) and use.positional[0].lstrip(" ")[:1] == "\n"


def _with_places(shown: str, inner: str) -> str:
    """Returns a template's output with the placeholders of its arguments at the ends of lines, and without placeholders
    that a parser function has damaged.
    """
    places = {*_PLACE_LINE.findall(inner)}
    return _PLACE_SHOWN.sub(lambda place: f"{place[1]}\n" if place[1] in places else "", shown)


def _without_places(text: str) -> str:
    return ANY_PLACE.sub("", text) if PLACE in text else text


def _apart(text: str) -> str:
    """Returns a rule's output with a placeholder before and after it, where needed, so that its apostrophes do not
    combine with those of the surrounding text.
    """
    before = CUT if text[0] == "'" else ""
    return f"{before}{text}{CUT}" if text[-1] == "'" else before + text


def drop_addresses(text: str, losses: Counter[str]) -> str:
    """Returns the text without external links that have no label. In the others, a space separates URL and label."""
    return _ADDRESS.sub(partial(_address, losses=losses), text)


def _address(found: re.Match[str], losses: Counter[str]) -> str:
    """Returns the replacement for the beginning of an external link, up to the end of its URL. If the external link is
    within the label of another link, its URL stays plain text.
    """
    if found[0][-1] != "]":
        return f"{found[0]} "
    before = found.string[reach_back(found.string, found.start(), _LONGEST_LABEL) : found.start()].rpartition("\n")[2]
    if "|" in (label := before.rpartition("[[")[2]) and "[[" in before and "]]" not in label:
        return found[0]
    losses["external_link_unlabelled"] += 1
    return cut_out(found)


def _has_block_after_slashes(text: str) -> bool:
    """Returns whether a line contains two slashes, which may begin a URL, and a block element after them."""
    blocks = [tag.start() for tag in _OPENED_BLOCK.finditer(text)] if "<" in text else []
    if BLOCK in text:
        blocks = sorted([*blocks, *(block.start() for block in _BLOCK.finditer(text))])
    position = 0
    for block in blocks:
        if text.find("//", max(text.rfind("\n", position, block), position), block) >= 0:
            return True
        position = block
    return False


def listed_work(template: Template, language: str) -> str:
    """Returns the wikitext of a citation that is an item of a list, as in a bibliography; empty if neither title nor
    periodical is given.
    """
    arguments = {str(place): value for place, value in enumerate(template.positional, 1)} | template.named
    citation = read_listed_work(template.name, arguments, language=language)
    if citation is None or not (citation.title or citation.work):
        return ""
    # the first value of each slot that has no field, as written
    shown = {slot_of(name, language): value.strip() for name, value in reversed(arguments.items()) if value.strip()}
    title, publisher = citation.title, citation.publisher
    if title and (translated := shown.get("trans_title", title)) != title:
        title = f"{title} [{translated}]"
    if place := shown.get("place"):
        publisher = f"{place}: {publisher}" if publisher else place
    text = citation_text(replace(citation, title=title, publisher=publisher))
    series = shown.get("series")
    if series and series != citation.work:  # a field of periodicals only
        text = f"{text} {series}{'' if series[-1] in '.?!' else '.'}"
    for scheme in ("isbn", "doi"):
        if identifier := shown.get(scheme):
            text = f"{text} {scheme.upper()} {identifier}."
    return text.replace("\n", " ")  # a list item is one line


def _own_line(place: re.Match[str]) -> str:
    """Returns a placeholder on a line of its own, without the spaces after it. At the beginning of the next line, they
    would make it preformatted.
    """
    is_begun = place.start() > 0 and place.string[place.start() - 1] != "\n"
    return f"\n{place[1]}\n" if is_begun else f"{place[1]}\n"
