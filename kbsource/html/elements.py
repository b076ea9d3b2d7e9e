"""Classifies the elements of a rendered page: blocks, lists, boxes next to the text, and elements without text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from lxml import etree

from kbsource.wikitext.tree import kind_of_box

BLOCKS = frozenset(
    """p div section blockquote pre center hr body header aside article main address details summary fieldset figcaption
    footer form""".split()
)
CELLS = frozenset({"td", "th", "caption"})
LISTS = {"ul": "*", "ol": "#", "dl": ":"}
ITEMS = frozenset({"li", "dt", "dd"})
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
# Elements that are not running text, with the kinds of losses that they are counted as.
CUT_ELEMENTS = {
    **dict.fromkeys("style script link meta head title noscript template nav object iframe svg canvas select".split()),
    **dict.fromkeys(("textarea", "button", "input", "map"), None),
    **dict.fromkeys("figure figure-inline img audio video".split(), "file"),
}
CUT_TYPES = {
    "mw:Extension/ref": "ref",
    "mw:Extension/references": "references",
    "mw:Extension/gallery": "gallery",
    "mw:Extension/imagemap": "imagemap",
    "mw:Extension/timeline": "timeline",
    "mw:Extension/score": "score",
    "mw:Extension/hiero": "hiero",
    "mw:Extension/graph": "graph",
    "mw:Extension/mapframe": "mapframe",
    "mw:Extension/phonos": "phonos",
    "mw:Extension/inputbox": "inputbox",
    "mw:Extension/categorytree": "categorytree",
    "mw:Extension/templatestyles": "templatestyles",
    "mw:Extension/indicator": "indicator",
}
FILE_TYPES = ("mw:File", "mw:Image", "mw:Audio", "mw:Video")
TEXT_TYPES = frozenset({"mw:Entity", "mw:DisplaySpace", "mw:Nowiki", "mw:Placeholder"})
MATH_TYPES = frozenset({"mw:Extension/math", "mw:Extension/chem", "mw:Extension/ce"})
# Classes of boxes that occur only in rendered pages, or that are not treated as boxes in wikitext, because templates
# also use them for running text.
_CUT_CLASSES = frozenset(
    """reference mw-ref mw-references references-decreasing mw-cite-backlink cite_crochet toccolours navigationleiste
    boite-grise-nav catlinks printfooter mw-indicators mw-jump-link nourlexpansion commonscat liste-portail tocnumber
    nowrap-hidden navhead navcontent mw-kartographer-container mw-parser-output-toc""".split()
)
_CUT_PREFIXES = (
    "infobox",
    "taxobox",
    "infocaseta",
    "vcard-table",
    "tmulti",
    "mod-gallery",
    "portal",
    "sister",
    "mw-hidden",
)
# Classes that are treated as boxes in wikitext, but are running text for readers of the rendered page, such as
# pronunciations.
_SHOWN_CLASSES = frozenset({"noexcerpt"})
_ASIDE_IDS = frozenset({"sitesub", "contentsub", "jump-to-nav", "catlinks"})


@lru_cache(maxsize=1 << 12)
def _kind(classes: str, style: str, role: str, id_: str) -> str:
    """Returns the kind of box that an element is, from its attributes; ``aside`` for other elements that are not
    running text.
    """
    words = [word for word in classes.split() if word not in _SHOWN_CLASSES]
    found = kind_of_box((("class", " ".join(words)), ("style", style), ("role", role), ("id", id_)))
    if found:
        return found
    if not _CUT_CLASSES.isdisjoint(words) or id_ in _ASIDE_IDS:
        return "aside"
    for word in words:
        if word.startswith(_CUT_PREFIXES):
            return "infobox" if word.startswith(("infobox", "taxobox", "infocaseta")) else "aside"
    return ""


def box_kind_of(element: etree._Element) -> str:
    """Returns the kind of box that an element is, from its attributes; empty if it is not a box."""
    get = element.get
    classes, style, role, id_ = get("class"), get("style"), get("role"), get("id")
    if not (classes or style or role or id_):
        return ""
    return _kind(*((value or "").lower() for value in (classes, style, role, id_)))


def json_object(written: str | None) -> dict[str, Any]:
    """Returns the JSON object in an attribute such as ``data-mw``; empty if the attribute has no object."""
    if not written:
        return {}
    try:
        value = json.loads(written)
        if "\\ud" in written.lower():  # an escape may be half of a surrogate pair, which is not a character
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def template_parts(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the name as written and the arguments of each template in a transclusion."""
    parts = data.get("parts")
    for part in parts if isinstance(parts, list) else ():
        use = part.get("template") if isinstance(part, dict) else None
        target = use.get("target") if isinstance(use, dict) else None
        name = target.get("wt") if isinstance(target, dict) else None
        if isinstance(use, dict) and isinstance(target, dict) and isinstance(name, str) and "function" not in target:
            arguments = use.get("params")
            yield name, arguments if isinstance(arguments, dict) else {}


def types_of(element: etree._Element) -> set[str]:
    """Returns the types of an element in Parsoid's HTML, such as ``mw:Transclusion``."""
    return set((element.get("typeof") or "").split())
