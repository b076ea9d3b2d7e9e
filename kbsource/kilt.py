"""Writes pages in the format of KILT's knowledge source: one JSON object per page, which KILT's code, MongoDB and
``datasets`` can read.

Source: section 3 of the KILT paper (https://arxiv.org/abs/2009.02252) and the released kilt_knowledgesource.json.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from kbsource.records import Anchor, Element, Page, instant_text

if TYPE_CHECKING:
    from kbsource.release.pages.reading import ItemTerms


LEAD = "Section::::Abstract."


def section_name(path: Sequence[str]) -> str:
    """Returns the text of KILT's heading element for a path of headings, without a newline.

    Args:
        path: headings, outermost first, as in ``Element.section``; empty for the lead.

    Source: elements of kilt_knowledgesource.json. There is a full stop after every heading, unless it ends in ``!`` or
    ``?``, and a colon between two headings.

    >>> section_name(["Use in writing systems", "English"])
    'Section::::Use in writing systems.:English.'
    """
    if not path:
        return LEAD
    return "Section::::" + ":".join(part if part.endswith(("!", "?")) else part + "." for part in path)


_BULLET = "BULLET::::"
_NO_HEADING = 7
_TITLE = re.compile(r"(?<=[?&])title=[^&]*")
_ONLY_MARKS = re.compile(r"[.\-\s]*")


def kilt_texts(page: Page) -> tuple[list[str], dict[int, tuple[int, int]]]:
    """Converts the elements of a page to KILT's paragraphs.

    The paragraphs are the title, ``Section::::`` headings with their whole path, ``BULLET::::`` items and body text.
    Each ends in a newline. As in KILT, some elements are skipped: headings without content, items indented by ``:``,
    lines entirely in parentheses, lines of dots and dashes, and lines that begin with a brace or pipe.

    Returns:
        The paragraphs, and for each retained element its paragraph and the number of code points before its text there.
    """
    elements = page.elements
    kept = [
        index == 0 or element.kind == "heading" or is_in_kilt(element.text, element.marker)
        for index, element in enumerate(elements)
    ]
    _drop_empty_sections(elements, kept)
    texts: list[str] = []
    places: dict[int, tuple[int, int]] = {}
    for index, element in enumerate(elements):
        if not kept[index]:
            continue
        if element.kind == "heading":
            line = section_name(element.section)
            closed = section_name(element.section[-1:]).removeprefix("Section::::")
            before = len(line) - len(closed)
        elif element.kind == "list_item":
            prefix = f"{_BULLET}{element.ordinal}. " if element.ordinal is not None else f"{_BULLET}- "
            line, before = prefix + element.text, len(prefix)
        else:
            line, before = element.text, 0
        places[index] = (len(texts), before)
        texts.append(line + "\n")
    return texts, places


def is_in_kilt(text: str, marker: str) -> bool:
    """Returns whether a paragraph or list item is a paragraph in KILT's format."""
    if marker.endswith(":") or text.startswith(("{", "|", "}")) or _ONLY_MARKS.fullmatch(text):
        return False
    return not (text.startswith("(") and text.endswith(")") and text.count("(") == 1)


def _drop_empty_sections(elements: tuple[Element, ...], kept: list[bool]) -> None:
    """Removes headings without content: those with no retained element before the next heading of the same or a higher
    level.
    """
    # The elements are read backwards. This is the level of the heading above the nearest content, _NO_HEADING for
    # content directly below, or 0 for none. A heading has content if this level is greater than its own.
    below = 0
    for index in range(len(elements) - 1, 0, -1):
        element = elements[index]
        if element.kind != "heading":
            if kept[index]:
                below = _NO_HEADING
        elif below > element.level:
            below = element.level
        else:
            kept[index] = False


@dataclass(frozen=True, slots=True)
class KiltForm:
    """Options for the details in which KILT's published files, their documentation and their copies differ."""

    #: write ``pre_dump`` in ``history``, which is documented but not in the published records
    has_pre_dump: bool = False
    resolves_redirects: bool = True  #: write the final article of links to redirects, which most published anchors lack
    is_hub: bool = False  #: write the rows of ``kilt_wikipedia``, the copy on the Hugging Face hub


def kilt_record(page: Page, terms: ItemTerms | None = None, form: KiltForm = KiltForm()) -> dict[str, Any]:
    """Returns the KILT record of a page, with the keys in the released order.

    ``anchors`` have ``wikipedia_title`` and ``wikipedia_id`` if the target is an article of the snapshot.
    ``categories`` is one string joined by commas. Ids are strings. A page without an item has no ``wikidata_info``.
    The title in the address of ``history`` is percent-encoded, with ``%20`` for spaces.

    Args:
        terms: label, description and aliases of the page's item; if None, ``wikidata_info`` has only the item's id.
        form: how the record is written.
    """
    texts, places = kilt_texts(page)
    anchors: list[dict[str, Any]] = []
    for anchor in page.anchors:
        place = places.get(anchor.element)
        if place is None:
            continue
        paragraph_id, before = place
        entry: dict[str, Any] = {
            "text": anchor.text,
            "href": urllib.parse.quote(anchor.written_target),
            "paragraph_id": paragraph_id,
            "start": anchor.start + before,
            "end": anchor.end + before,
        }
        if anchor.target_page_id is not None and (form.resolves_redirects or _is_direct(anchor)):
            entry["wikipedia_title"] = anchor.target_title
            entry["wikipedia_id"] = str(anchor.target_page_id)
        anchors.append(entry)
    page_id = str(page.page_id)
    record: dict[str, Any] = {
        "_id": page_id,
        "wikipedia_id": page_id,
        "wikipedia_title": page.title,
        "text": texts,
        "anchors": anchors,
        "categories": ",".join(page.categories),
    }
    if page.qid is not None:
        record["wikidata_info"] = _wikidata_info(page, page.qid, terms)
    record["history"] = {
        "revid": page.revision_id,
        "timestamp": instant_text(page.timestamp),
        "parentid": page.parent_revision_id or 0,
        **({"pre_dump": True} if form.has_pre_dump else {}),
        "pageid": page.page_id,
        "url": _TITLE.sub(lambda _: f"title={urllib.parse.quote(page.title)}", page.url, count=1),
    }
    return _hub_record(record) if form.is_hub else record


def _is_direct(anchor: Anchor) -> bool:
    """Returns whether a link names its article, not a redirect to it."""
    written = " ".join(anchor.written_target.partition("#")[0].replace("_", " ").lstrip(":").split())
    return written[:1].upper() + written[1:] == anchor.target_title


_ANCHOR_KEYS = ("paragraph_id", "start", "end", "text", "href", "wikipedia_title", "wikipedia_id")
_INFO_KEYS = ("description", "enwikiquote_title", "wikidata_id", "wikidata_label", "wikipedia_title")


def _hub_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a row of ``kilt_wikipedia``: lists in columns, and a value for everything that is absent.

    Source: the loading script of ``kilt_wikipedia`` on the Hugging Face hub, version 1.0.0.

    >>> page = {"_id": "1", "wikipedia_id": "1", "wikipedia_title": "T", "text": ["T"], "anchors": [], "categories": ""}
    >>> row = _hub_record(page | {"history": {"pageid": 1}})
    >>> row["text"], row["history"]["pre_dump"], row["wikidata_info"]["aliases"]
    ({'paragraph': ['T']}, False, {'alias': []})
    """
    info, history = record.get("wikidata_info", {}), record["history"]
    return {
        "kilt_id": record["_id"],
        "wikipedia_id": record["wikipedia_id"],
        "wikipedia_title": record["wikipedia_title"],
        "text": {"paragraph": record["text"]},
        "anchors": {key: [anchor.get(key, "") for anchor in record["anchors"]] for key in _ANCHOR_KEYS},
        "categories": record["categories"],
        "wikidata_info": {
            **{key: info.get(key, "") for key in _INFO_KEYS},
            "aliases": {"alias": info.get("aliases") or []},
        },
        "history": {
            **{key: history.get(key, -1) for key in ("pageid", "parentid", "revid")},
            "pre_dump": history.get("pre_dump", False),
            **{key: history.get(key, "") for key in ("timestamp", "url")},
        },
    }


def _wikidata_info(page: Page, qid: str, terms: ItemTerms | None) -> dict[str, Any]:
    info: dict[str, Any] = {"wikidata_id": qid}
    if terms is None:
        return info
    if terms.label is not None:
        info["wikidata_label"] = terms.label
    if terms.description is not None:
        info["description"] = terms.description
    if terms.has_sitelink or len(info) > 1 or terms.aliases:
        # If the item exists in Wikidata, the published records contain a value even if it has no aliases.
        info["aliases"] = list(terms.aliases) or None
    if terms.has_sitelink:
        info["wikipedia_title"] = page.title
    return info


def write_kilt(
    pages: Iterable[Page],
    sink: BinaryIO,
    *,
    terms: Callable[[int], ItemTerms | None] | None = None,
    form: KiltForm = KiltForm(),
    on_progress: Callable[[int], None] | None = None,
) -> int:
    """Writes one KILT record per line, and returns the number of pages.

    Args:
        terms: returns the label, description and aliases of a page's item, by page id; None if they are unknown.
        form: how records are written.
    """
    n_pages = 0
    for page in pages:
        own_terms = None if terms is None else terms(page.page_id)
        sink.write(orjson.dumps(kilt_record(page, own_terms, form)))
        sink.write(b"\n")
        n_pages += 1
        if on_progress is not None and n_pages % 1000 == 0:
            on_progress(n_pages)
    return n_pages
