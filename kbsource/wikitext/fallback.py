"""The simplest extraction: for a page that the parser cannot finish. Text only, in linear time, by plain patterns."""

from __future__ import annotations

import re

from kbsource.records import Element, Loss
from kbsource.wikitext.markers import holds_controls
from kbsource.wikitext.parse import ParsedText

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_LINK = re.compile(r"\[\[(?:[^\[\]|\n]{1,255}\|)?([^\[\]|\n]{1,1000})\]\]")
_TAG = re.compile(r"<[^<>\n]{0,500}>")
_MARKUP = re.compile(r"\{\{+|\}\}+|\[\[+|\]\]+|''+|\{\||\|\}|\|\|+|<ref")
_HEADING = re.compile(r"(={1,6})\s*(.*?)\s*=+$")


def extract_fallback(wikitext: str, *, title: str) -> ParsedText:
    """Gives title, headings and every other line that holds a letter as a paragraph, markup characters taken out.

    Nothing is rendered or resolved, so templates, tables and references stand in the text as they are written; the
    row says so by its parse_status. Links, tables and categories are not collected; ``losses`` counts the page under
    ``fallback``.
    """
    if holds_controls(wikitext):
        wikitext = _CONTROL.sub("", wikitext)
    elements = [Element("title", 1, None, "", (), title)]
    path: list[tuple[int, str]] = []
    for line in wikitext.splitlines():
        text = " ".join(_MARKUP.sub(" ", _TAG.sub(" ", _LINK.sub(r"\1", line))).split())
        if not any(character.isalnum() for character in text[:10_000]):
            continue
        if line.startswith("=") and (heading := _HEADING.match(text)) and heading.group(2):
            level = len(heading.group(1))
            while path and path[-1][0] >= level:
                path.pop()
            path.append((level, heading.group(2)))
            kind, text = "heading", heading.group(2)
        else:
            kind, level = "paragraph", 0
        elements.append(Element(kind, level, None, "", tuple(name for _, name in path), text))
    return ParsedText(
        elements=tuple(elements),
        anchors=(),
        categories=(),
        template_categories=(),
        tables=(),
        infoboxes=(),
        templates=(),
        losses=(Loss("fallback", 1),),
        is_disambiguation=False,
    )
