"""First step: comments and extension tags (``<ref>``, ``<nowiki>``, ``<math>``, …) leave the wikitext.

One pass from left to right, as MediaWiki's preprocessor does it. A tag without a closer is dropped alone and the text
after it stays; that a closer is missing is remembered by tag, so that the pass stays linear.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from kbsource.wikitext.html_tags import decode_references
from kbsource.wikitext.markers import CUT, PRE, literal

# Extension tags whose content is no text of the article. Counted under the tag's name.
_CUT_TAGS = frozenset(
    """ref references gallery imagemap timeline score hiero graph mapframe maplink templatestyles inputbox
    categorytree indicator templatedata includeonly quiz charinsert rss phonos section ce-none languages
    dynamicpagelist randomimage listing chart""".split()
)
_LITERAL_TAGS = frozenset({"nowiki"})
_TEX_TAGS = frozenset({"math", "chem", "ce"})
_PRE_TAGS = frozenset({"pre", "syntaxhighlight", "source"})
_TRANSPARENT_TAGS = frozenset({"noinclude", "onlyinclude", "translate", "tvar"})
_TRANSPARENT_BLOCKS = frozenset({"poem"})
_ALL_TAGS = sorted(
    _CUT_TAGS | _LITERAL_TAGS | _TEX_TAGS | _PRE_TAGS | _TRANSPARENT_TAGS | _TRANSPARENT_BLOCKS, key=len, reverse=True
)

# [^<>]* and not [^>]*: a run of unfinished openers is then scanned once. Most are a whole reference without tags in it.
_OPENER = re.compile(
    r"<(?:(?P<reference>ref(?:\s[^<>]*)?>(?:(?<=/>)|[^<]*</ref\s*>))"
    rf"|!--|(/?)({'|'.join(_ALL_TAGS)})(?=[\s/>])([^<>]*)>)",
    re.IGNORECASE,
)
_LANGUAGE_ATTRIBUTE = re.compile(r"\binline\b")


@cache
def _closer(tag: str) -> re.Pattern[str]:
    return re.compile(rf"</{tag}\s*>", re.IGNORECASE)


def strip_extensions(text: str, losses: Counter[str]) -> str:
    """Gives the wikitext without comments and extension tags.

    What is text in them stays: ``<nowiki>`` and TeX as literal characters, ``<pre>`` and ``<syntaxhighlight>`` as
    preformatted lines, ``<poem>`` as wikitext in paragraphs of its own. Everything else is cut and counted in
    ``losses``.
    """
    if "<" not in text:
        return text
    out: list[str] = []
    position = 0
    n = len(text)
    unclosed: set[str] = set()
    while match := _OPENER.search(text, position):
        start, after = match.span()
        out.append(text[position:start])
        if match.lastgroup == "reference":
            losses["ref"] += 1
            out.append(CUT)
            position = after
            continue
        tag = match.group(3)
        if tag is None:
            end = -1 if "!--" in unclosed else text.find("-->", after)
            if end < 0:
                unclosed.add("!--")
                losses["broken_markup"] += 1
                position = after
                continue
            losses["comment"] += 1
            position = end + 3
            if _stands_alone(out, text, position, n):
                newline = text.find("\n", position)
                position = n if newline < 0 else newline + 1
            continue
        tag = tag.lower()
        position = after
        if tag in _TRANSPARENT_TAGS:
            out.append(CUT)
            continue
        if tag in _TRANSPARENT_BLOCKS:
            out.append("\n\n")
            continue
        if match.group(2):
            losses["broken_markup"] += 1
            out.append(CUT)
            continue
        if match.group(4).endswith("/"):
            if tag in _CUT_TAGS:
                losses[tag] += 1
            out.append(CUT)
            continue
        closer = None if tag in unclosed else _closer(tag).search(text, after)
        if closer is None:
            unclosed.add(tag)
            out.append(CUT)
            if tag != "references":
                losses["broken_markup"] += 1
            continue
        content = text[after : closer.start()]
        position = closer.end()
        if tag in _CUT_TAGS:
            losses[tag] += 1
            out.append(CUT)
        else:
            out.append(_kept(tag, match.group(4), content))
    out.append(text[position:])
    return "".join(out)


def _stands_alone(out: list[str], text: str, position: int, n: int) -> bool:
    """Says whether only blanks share the line with a comment: then its newline goes with it."""
    end = position
    while end < n and text[end] in " \t":
        end += 1
    if end < n and text[end] != "\n":
        return False
    for piece in reversed(out):
        stripped = piece.rstrip(" \t")
        if stripped:
            return stripped[-1] == "\n"
    return True


def _kept(tag: str, attributes: str, content: str) -> str:
    if tag in _LITERAL_TAGS:
        return CUT + literal(decode_references(content)) + CUT
    if tag in _TEX_TAGS:
        return CUT + " ".join(literal(content).split()) + CUT
    if tag != "pre" and _LANGUAGE_ATTRIBUTE.search(attributes):
        return CUT + literal(content.strip()) + CUT
    content = content.replace("<nowiki>", "").replace("</nowiki>", "").strip("\n")
    lines = (decode_references(content) if tag == "pre" else content).split("\n")
    return "\n\n" + "\n".join(PRE + literal(line) for line in lines) + "\n\n"
