"""What of a template's source other pages get: ``<noinclude>``, ``<includeonly>``, ``<onlyinclude>``, comments, tags.

Source: https://www.mediawiki.org/wiki/Transclusion and Preprocessor_Hash::buildDomTreeArrayFromText of MediaWiki.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from kbsource.wikitext.extensions import strip_extensions
from kbsource.wikitext.lines import VARIANT_LANGS, choose_variants
from kbsource.wikitext.markers import ANY_CONTROL, TEMPLATE_LINK, holds_controls

MAX_SOURCE_CHARS = 2 << 20
"""Longer sources are no pages: $wgMaxArticleSize of MediaWiki, in bytes there."""

_OPAQUE = "nowiki|pre|syntaxhighlight|source|math|templatedata"
_PIECE = re.compile(rf"<(?:!--|(noinclude|includeonly|onlyinclude|{_OPAQUE})(\s[^<>]*)?(/?)>)", re.IGNORECASE)
_CLOSERS = re.compile(r"</?(?:noinclude|includeonly|onlyinclude)(?:\s[^<>]*)?/?>", re.IGNORECASE)


def transcluded(source: str, lang: str) -> str:
    """Gives what stands on a page for a template's source, before its braces are read.

    Comments are left out, and extension tags as on pages. Links are marked as those of a template.

    >>> transcluded("a<noinclude>b</noinclude><!-- c -->[[d]]<includeonly>e</includeonly>", "en").replace("\\x1c", "")
    'a[[d]]e'
    """
    if len(source) > MAX_SOURCE_CHARS:
        return ""
    if holds_controls(source):
        source = ANY_CONTROL.sub("", source)
    if "<" in source:
        if "<onlyinclude>" in source and "</onlyinclude>" in source:
            source = "".join(_only(source))
        source = strip_extensions(_included(source), Counter())
    if lang in VARIANT_LANGS:
        source = choose_variants(source)
    return source.replace("[[", f"[[{TEMPLATE_LINK}")


def _only(source: str) -> Iterator[str]:
    """Gives what stands between ``<onlyinclude>`` and its closer."""
    position = 0
    while (start := source.find("<onlyinclude>", position)) >= 0:
        position = source.find("</onlyinclude>", start)
        if position < 0:
            return
        yield source[start + len("<onlyinclude>") : position]


def _included(source: str) -> str:
    """Gives the source without what only the template's own page shows; what no tag closes goes to the end."""
    out: list[str] = []
    position = 0
    unclosed: set[str] = set()
    while match := _PIECE.search(source, position):
        out.append(_CLOSERS.sub("", source[position : match.start()]))
        position = match.end()
        tag = (match[1] or "!--").lower()
        if tag in ("includeonly", "onlyinclude") or (match[3] and tag == "noinclude"):
            continue
        if match[3] or tag in unclosed:
            out.append(match[0])
            continue
        if tag == "!--":
            end = source.find("-->", position)
            position = end + 3 if end >= 0 else len(source)
            if end >= 0:  # whether its line goes with it is decided with the tags
                out.append(source[match.start() : position])
        elif tag == "noinclude":
            end = _find_closer(source, tag, position)
            position = end if end >= 0 else len(source)
        else:
            end = _find_closer(source, tag, position)
            if end < 0:
                unclosed.add(tag)
                end = position
            out.append(source[match.start() : end])
            position = end
    out.append(_CLOSERS.sub("", source[position:]))
    return "".join(out)


def _find_closer(source: str, tag: str, position: int) -> int:
    """Gives where the closer of a tag ends; -1 where there is none."""
    match = re.compile(rf"</{tag}\s*>", re.IGNORECASE).search(source, position)
    return match.end() if match else -1
