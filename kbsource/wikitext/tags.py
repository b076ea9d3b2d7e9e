"""Processes HTML tags and extension tags of wikitext."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache, lru_cache
from typing import Protocol

from kbsource.numerals import unescape
from kbsource.wikitext.functions.numbers import raise_text
from kbsource.wikitext.markers import (
    BLOCK,
    BREAK,
    CUT,
    CUTS,
    DIGIT,
    EMPTY_LABEL,
    LITERAL_OF,
    PRE,
    literal,
    reach_back,
    reach_on,
    unliteral,
)

MAX_LIST_DEPTH = 100
"""Maximum nesting depth of lists in a release. Items of deeper lists get this depth."""

_INLINE = frozenset(
    """abbr b bdi bdo big cite code data del dfn em font i ins kbd mark q rb rbc rp rt rtc ruby s samp small span
    strike strong sub sup time tt u var wbr link meta tvar""".split()
)
_BLOCK = frozenset("p div center blockquote ul ol dl section article aside figure figcaption caption_".split())
_TABLE = {"table": "\n{|", "tr": "\n|-", "caption": "\n|+", "td": "\n|", "th": "\n!"}
# Tags whose replacement does not depend on their position, or on whether they open or close an element.
_LEFT_OF = {
    **dict.fromkeys(_INLINE, CUT),
    **dict.fromkeys(("tbody", "thead", "tfoot", "colgroup", "col"), ""),
    "br": BREAK,
    "hr": BLOCK,
}

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)((?:\s[^<>]*)?)(?:/\s*)?>")
_REFERENCE = re.compile(r"&(?:#0*+[0-9]{1,7}|#[xX]0*+[0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31}|רלמ|رلم);")
# Names of the right-to-left mark in addition to HTML's. Source: MW_ENTITY_ALIASES in Sanitizer.php of MediaWiki 1.39.
_RIGHT_TO_LEFT = frozenset({"&רלמ;", "&رلم;"})
# Ranges of allowed reference numbers, without their ends. Source: validateCodepoint of the same file.
_ALLOWED = ((0x08, 0x0B), (0x1F, 0x7F), (0x9F, 0xD800), (0xDFFF, 0xFFFE), (0xFFFF, 0x110000))
_SPAN = re.compile(r"\b((?ai:colspan|rowspan))\s*=\s*[\"']?\s*(\d+)")
# Superscript text of at most 60 characters, without further superscript in it; longer text is not an exponent.
_RAISED = re.compile(
    rf"<(?ai:sup)(?:\s[^<>]*)?>((?:(?:[^<>\n]|<(?!/?(?ai:sup)[\s>])[^<>\n]*>)[{DIGIT}]*+){{1,60}})</(?ai:sup)\s*>"
)
_BASE_ENDS = frozenset(")]}'>")
_GREEK = re.compile("[\u0370-\u03ff]")
_INNER_TAG = re.compile(r"<[^<>]*>")
# Endings of ordinals and abbreviations in several languages. They are superscript only for typographic reasons.
_HIGH_WORDS = frozenset(
    """st nd rd th d er re ere ère e eme ème es o os a as c r rs t te me mes lle lles gr tm sm""".split()
)
# Markers around the lines of a block element. A line of table cells that they interrupt continues after them.
_BLOCK_START, _BLOCK_END = f"{BLOCK}\n\n", f"\n\n{BLOCK}"
_AMPERSAND = LITERAL_OF["&"]
_LESS_THAN = LITERAL_OF["<"]


def replace_tags(text: str, losses: Counter[str]) -> str:
    """Returns the text without HTML tags. A ``<`` that begins no known tag becomes a plain character.

    An inline tag becomes a cut, a block tag a paragraph break, ``<br>`` the marker for a line break, ``<li>`` a list
    item, ``<h2>`` a heading, and an HTML table the same table in wikitext.
    """
    if "<" not in text:
        return text
    if len(text) < _SHORT:  # most short texts (infobox values) have no tags but line breaks
        text = _BREAK_TAG.sub(BREAK, text)
        if "<" not in text:
            return text
    closed = {name.lower() for name in _CLOSED.findall(text)}
    if "sup" in closed:
        text = _RAISED.sub(_raised, text)
    if not _HEADINGS.isdisjoint(closed):
        text = _HEADING_OF_LINES.sub(lambda heading: heading[0].replace("\n", " "), text)
    if not closed <= _RAISING and ("\n;" in text or text[:1] == ";"):
        text = _TAGGED_TERM.sub(_with_plain_colons, f"\n{text}")[1:]
    text = _TAGS_AS_LABEL.sub(EMPTY_LABEL[1:], text)
    list_markers: list[str] = []
    openers: dict[str, int] = {}
    has_tables: bool | None = None  # not checked yet

    def replace(match: re.Match[str]) -> str:
        nonlocal has_tables
        closing, name, attributes = match.groups()
        name = name.lower()
        if (left := _LEFT_OF.get(name)) is not None:
            return left
        if name in ("ul", "ol"):
            edge = _in_cells(match)
            if closing:
                del list_markers[-1:]
                return f"\n{edge}"
            list_markers.append("*" if name == "ul" else "#")
            return f"{edge}\n"
        if name in _BLOCK:
            return _in_line(match, openers) or "\n\n"
        if name in ("li", "dt", "dd"):
            if closing:
                return "\n"
            marker = {"dt": ";", "dd": ":"}.get(name) or "".join(list_markers[:MAX_LIST_DEPTH]) or "*"
            return f"\n{marker} "
        if len(name) == 2 and name[0] in "hH" and name[1] in "123456":
            marks = "=" * int(name[1])
            return _in_cells(match) or (f" {marks}\n" if closing else f"\n{marks} ")
        if name in _TABLE:
            if name != "table":
                if has_tables is None:
                    has_tables = "{|" in text or "\n|-" in text or _TABLE_OPENER.search(text) is not None
                if not has_tables:
                    return CUT
            if name == "table":
                edge = _in_cells(match)
                if closing:
                    return f"\n|}}\n{edge}"
                losses["html_table"] += 1
                return f"{edge}\n{{|\n"
            if closing:
                return ""
            spans = " ".join(f"{key}={value}" for key, value in _SPAN.findall(attributes))
            if name == "tr":
                return "\n|-\n"
            # the cell's content begins a new line, so that its first pipe does not end the attributes
            return _TABLE[name] + (f" {spans} |" if spans else "") + f"\n{CUT}"
        return _LESS_THAN + match.group()[1:]

    return _TAG.sub(replace, text).replace("<", _LESS_THAN)


_SHORT = 500
_BREAK_TAG = re.compile("<[bB][rR] ?/?>")
# A label of only tags. The pattern begins after the pipe: searching for one character is many times as fast as for two.
_TAGS_AS_LABEL = re.compile(r"<(?<=\|<)/?[A-Za-z][^<>\n]*>(?:</?[A-Za-z][^<>\n]*>)*\]\]")
_CLOSED = re.compile(r"</([A-Za-z][A-Za-z0-9]*)")
_OPENED = re.compile(r"<([A-Za-z][A-Za-z0-9]*)")
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_TABLE_OPENER = re.compile("<table", re.IGNORECASE)
_RAISING = frozenset({"sup", "sub"})  # a colon in these tags does not end the term of a definition
_LONGEST_HEADING = 1000  # in characters, tags included
_LIST_MARKS = frozenset("*#:;")
_CELL_LINE = re.compile(rf"[{DIGIT}]*+(?:[ \t{CUT}][{DIGIT}]*+){{0,20}}+[|!]")
_TAGGED_TERM = re.compile(r"\n;[^\n<]*<[^\n]*")
_HEADING_OF_LINES = re.compile(
    rf"<h([1-6])(?:\s[^<>]*)?>(?:(?:[^<\x06]|<(?!/?h[1-6]\b))[{DIGIT}]*+){{0,500}}</h\1\s*>", re.IGNORECASE
)
_TAG_OR_COLON = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)(?:\s[^<>]*)?>|:")


def _in_line(tag: re.Match[str], openers: dict[str, int]) -> str:
    """Returns the replacement of a block tag inside a heading, a list item or a line of table cells, which must stay
    one line. Returns an empty string for a tag in any other line.

    ``openers`` caches the position of the first opening tag of each name.
    """
    if edge := _in_cells(tag):
        return edge
    text = tag.string
    start = _line_start(tag)
    first = text[start : start + 1]
    if first in _LIST_MARKS and start < tag.start():
        if not tag[1] or tag[2].lower() == "p":
            return BREAK
        if not openers:
            for opener in _OPENED.finditer(text):
                openers.setdefault(opener[1].lower(), opener.start())
        return BREAK if openers.get(tag[2].lower(), len(text)) < tag.start() else CUT
    if first != "=":
        return ""
    end = text.find("\n", tag.end(), reach_on(text, tag.end(), _LONGEST_HEADING))
    return CUT if text[start : end if end >= 0 else len(text)].rstrip(f" \t{CUTS}")[-1:] == "=" else ""


def _line_start(tag: re.Match[str]) -> int:
    """Returns the start of the line that contains a tag. In a very long line, returns the position of the tag."""
    first = max(tag.start() - _LONGEST_HEADING, 0)
    newline = tag.string.rfind("\n", first, tag.start())
    if newline < 0 and first:
        first = reach_back(tag.string, tag.start(), _LONGEST_HEADING)
        newline = tag.string.rfind("\n", first, tag.start())
    return newline + 1 if newline >= 0 or not first else tag.start()


def _in_cells(tag: re.Match[str]) -> str:
    """Returns the marker of a block element if it is in a line of table cells, which continues after it; otherwise
    empty.
    """
    return BLOCK if _CELL_LINE.match(tag.string, _line_start(tag), tag.start()) else ""


def _with_plain_colons(term: re.Match[str]) -> str:
    """Returns a term of a definition list in which colons between tags are plain text, because they do not end the
    term.
    """
    depth = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal depth
        if found[2] is None:
            return LITERAL_OF[":"] if depth else ":"
        if found[2].lower() in _INLINE | _BLOCK:
            depth = max(depth - 1, 0) if found[1] else depth + (found[0][-2] != "/")
        return found[0]

    return _TAG_OR_COLON.sub(replace, term[0])


def _raised(match: re.Match[str]) -> str:
    """Returns superscript text as superscript characters, or as ``^(…)``, so that 10<sup>18</sup> does not become 1018.

    Endings of words stay as they are: 19<sup>th</sup>. So does text with links or templates, or without any letter or
    digit, because it is a note marker.
    """
    start = match.start()
    shown = _INNER_TAG.sub("", match[1])
    plain = unliteral(unescape(shown)).replace("''", "")
    raised = raised_text(plain, shown, before=match.string[start - 1 : start])
    return match.group() if raised is None else raised


def raised_text(plain: str, shown: str, *, before: str) -> str | None:
    """Returns superscript text as superscript characters, or as ``^(…)``; None if it stays as it is.

    Args:
        plain: the text without markup.
        shown: the text as written in the page.
        before: the character before the superscript.
    """
    plain = plain.replace("\u2013", "-").strip()
    if not plain or plain.casefold() in _HIGH_WORDS or any(mark in plain for mark in "[]{}|"):
        return None
    raised = raise_text("".join(plain.split()))
    if raised != plain:
        return raised
    is_word = len(plain) > 1 and plain.isalpha() and (plain.isascii() or not before.isdigit())
    if (is_word and not _GREEK.search(plain)) or not any(map(str.isalnum, plain)):
        return None
    return f"^({shown.strip()})" if before.isalnum() or before in _BASE_ENDS else None


def decode_references(text: str) -> str:
    """Returns the text with character references decoded once. The decoded characters are never read as markup.

    No-break spaces become plain spaces: they look the same, and a search for evidence should not depend on them.
    """
    if "&" not in text:
        return text
    return _REFERENCE.sub(_decoded, text).replace("&", _AMPERSAND)


# The beginning of a URL, and decoded characters that a URL must not contain.
_OPEN_FREE_ADDRESS = re.compile(r"(?i:https?|ftp|irc)://[^\s\[\]<>\"]*\Z")
_NEWLINES = frozenset(["&#10;", "&#xa;", "&#x0a;"])
_NOT_IN_ADDRESS = frozenset(LITERAL_OF[sign] for sign in "[]{|}")
_LONGEST_ADDRESS = 2000


def _decoded(match: re.Match[str]) -> str:
    """Returns the decoded reference; in an address, a bracket or pipe is percent-encoded."""
    decoded = _decode(match[0])
    if decoded in _NOT_IN_ADDRESS or (decoded == " " and match[0][1] == "#" and match[0].lower() in _NEWLINES):
        start = match.start()
        if _OPEN_FREE_ADDRESS.search(match.string, reach_back(match.string, start, _LONGEST_ADDRESS), start):
            return "%0A" if decoded == " " else f"%{ord(unliteral(decoded)):02X}"
    return decoded


@lru_cache(maxsize=1 << 12)
def _decode(reference: str) -> str:
    """Returns the decoded reference; an invalid one stays as written."""
    if reference[1] == "#":
        is_hex = reference[2] in "xX"
        number = int(reference[2 + is_hex : -1].lstrip("0"), 16 if is_hex else 10)
        decoded = chr(number) if any(low < number < high for low, high in _ALLOWED) else reference
    else:
        decoded = "\u200f" if reference in _RIGHT_TO_LEFT else unescape(reference)
    # excludes prefixes such as &not, which html.unescape decodes in &notin-like names
    if len(decoded) > 1 and decoded[-1] == ";":
        return _AMPERSAND + reference[1:]
    return " " if decoded in "\u00a0\n\t" else LITERAL_OF.get(decoded, decoded)


# Extension tags whose content is not text of the article. They are counted under the tag's name.
_CUT_TAGS = frozenset(
    """ref references gallery imagemap timeline score hiero graph mapframe maplink templatestyles inputbox
    categorytree indicator templatedata includeonly quiz charinsert rss phonos section ce-none languages
    dynamicpagelist randomimage listing chart""".split()
)
# Of these, the tags that are shown as block elements and end the paragraph around them.
_CUT_BLOCKS = frozenset(
    """references gallery imagemap timeline inputbox categorytree templatedata quiz rss
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


def is_opaque_tag(name: str) -> bool:
    """Returns whether the content of an extension tag is not wikitext."""
    return name in _LITERAL_TAGS | _TEX_TAGS | _PRE_TAGS


# An opening tag ends at the first ">". The number of "<" in it is limited, so that many unfinished tags are scanned in
# linear time. The first alternative is the most frequent case: a complete reference without tags in it.
_OPENER = re.compile(
    r"<(?:(?P<reference>(?ai:ref)(?:\s[^<>]*)?>(?:(?<=/>)|[^<]*</(?ai:ref)\s*>))"
    rf"|!--|(/?)((?ai:{'|'.join(_ALL_TAGS)}))(?=[\s/>])([^<>]*+(?:<[^<>]*+){{0,3}})>)"
)
_LANGUAGE_ATTRIBUTE = re.compile(r"\binline\b")
_ON_ITS_OWN = re.compile(r"(?<!\S)display\s*=\s*[\"']?\s*block\b", re.IGNORECASE | re.ASCII)


def find_closer(tag: str, text: str, start: int) -> re.Match[str] | None:
    """Returns the first closing tag from a position on."""
    return _closer(tag).search(text, start)


@cache
def _closer(tag: str) -> re.Pattern[str]:
    return re.compile(rf"</(?ai:{tag})\s*>")


class TagNotes(Protocol):
    """Records references and returns their replacements; ``kbsource.wikitext.references.References`` implements it."""

    def tag(self, attributes: str, content: str, markup: str) -> str: ...
    def tag_list(self, attributes: str, markup: str, definitions: str = "") -> str: ...
    def count(self, kind: str, pieces: int) -> None: ...


_REFERENCE_TAG = re.compile(r"<ref[\s/>]", re.IGNORECASE)
_WITH_CAPTIONS = frozenset({"gallery", "imagemap"})


def _noted(tag: str, match: re.Match[str], closer: re.Match[str] | None, notes: TagNotes) -> str:
    """Returns the replacement of a removed tag whose references are recorded."""
    attributes, text = match.group(4).removesuffix("/"), match.string
    end = match.end() if closer is None else closer.end()
    content, markup = text[match.end() : end if closer is None else closer.start()], text[match.start() : end]
    if tag == "ref":
        return notes.tag(attributes, content, markup)
    if tag == "references":
        return notes.tag_list(attributes, markup, strip_extensions(content, Counter(), notes) if content else "")
    if tag in _WITH_CAPTIONS:  # readers see the captions, but they are not running text
        strip_extensions(content, Counter(), notes)
    elif found := len(_REFERENCE_TAG.findall(content)):
        notes.count("in_hidden_tag", found)
    return CUT


def strip_extensions(text: str, losses: Counter[str], notes: TagNotes | None = None) -> str:
    """Returns the wikitext without comments and extension tags.

    The content of these tags stays: ``<nowiki>`` as literal characters, ``<math>`` as literal characters between dollar
    signs, ``<pre>`` and ``<syntaxhighlight>`` as preformatted lines, ``<poem>`` as wikitext in paragraphs of its own.
    All other content is removed and counted in ``losses``. ``notes`` records the references.
    """
    if "<" not in text:
        return text
    out: list[str] = []
    position = 0
    n = len(text)
    unclosed: set[str] = set()
    has_kept = False
    while match := _OPENER.search(text, position):
        start, after = match.span()
        out.append(text[position:start])
        if match.lastgroup == "reference":
            losses["ref"] += 1
            if notes is None:
                out.append(CUT)
            else:
                attributes, _, content = match[0].partition(">")
                out.append(notes.tag(attributes[4:].removesuffix("/"), content.rpartition("<")[0], match[0]))
            position = after
            continue
        tag = match.group(3)
        if tag is None:
            losses["comment"] += 1
            end = text.find("-->", after)
            if end < 0:  # an unclosed comment hides the rest of the page
                losses["broken_markup"] += 1
                position = n
                break
            position = _end_of_comment(out, text, end + 3, losses)
            continue
        tag = tag.lower()
        has_kept = has_kept or tag not in _CUT_TAGS
        position = after
        if tag in _TRANSPARENT_TAGS:  # no cut is left, so that a heading or a list may begin after the tag
            continue
        if tag in _TRANSPARENT_BLOCKS:
            out.append(_BLOCK_END if match.group(2) else _BLOCK_START)
            continue
        if match.group(2):
            losses["broken_markup"] += 1
            out.append(CUT)
            continue
        if match.group(4).endswith("/"):
            if tag in _CUT_TAGS:
                losses[tag] += 1
            out.append(_left(tag, match.group(4), CUT if notes is None else _noted(tag, match, None, notes)))
            continue
        closer = None if tag in unclosed else find_closer(tag, text, after)
        if closer is None:
            unclosed.add(tag)
            left = CUT if notes is None or tag != "references" else _noted(tag, match, None, notes)
            out.append(left + BLOCK if tag == "references" else left)
            if tag != "references":
                losses["broken_markup"] += 1
                if tag == "ref" and notes is not None:
                    notes.count("unclosed", 1)
            continue
        content = text[after : closer.start()]
        position = closer.end()
        if tag in _CUT_TAGS:
            losses[tag] += 1
            shown = CUT if notes is None else _noted(tag, match, closer, notes)
            if tag != "ref":
                shown = _left(tag, match.group(4), shown)
            if tag != "includeonly":  # see _TRANSPARENT_TAGS
                out.append(shown)
        else:
            kept = _kept(tag, match.group(4), content)
            if tag in _LITERAL_TAGS and out:
                before, first = out[-1], reach_back(out[-1], len(out[-1]), _LONGEST_ADDRESS)
                if _OPEN_ADDRESS.search(before, first):
                    out.append(" ")  # ends the URL; the content is the link's label
                elif ">" in content and _OPEN_ATTRIBUTE.search(before, first):
                    kept = CUT
            out.append(kept)
    out.append(text[position:])
    text = "".join(out)
    return _NOTHING_AS_LABEL.sub(rf"{EMPTY_LABEL}\1", text) if has_kept and f"|{CUT}" in text else text


# The remains of removed content that was the label of a link.
_NOTHING_AS_LABEL = re.compile(rf"\|({CUT}[{DIGIT}]*(?:{CUT}[{DIGIT}]*)+)\]\]")
# The rest of a line that contains only spaces and comments.
_LINE_OF_COMMENTS = re.compile(r"[ \t]*+(?:<!--(?:[^-]|-(?!->))*+-->[ \t]*+){0,9}(?:\n|\Z)")


def _end_of_comment(out: list[str], text: str, position: int, losses: Counter[str]) -> int:
    """Returns the position at which the text continues after a comment. If the line contains only comments and spaces,
    it is removed.

    Source: Preprocessor_Hash of MediaWiki 1.39.
    """
    line = _LINE_OF_COMMENTS.match(text, position)
    if line is None:
        return position
    n_blank = 0  # number of white-space segments before it
    for piece in reversed(out):
        if before := piece.rstrip(" \t"):
            if before[-1] != "\n":
                return position
            break
        n_blank += 1
    del out[len(out) - n_blank :]
    if out:
        out[-1] = out[-1].rstrip(" \t")
    losses["comment"] += line[0].count("<!--")
    return line.end()


_OPEN_ADDRESS = re.compile(r"\[(?:https?:)?//[^\s\[\]<>\"]*\Z", re.IGNORECASE)
_OPEN_ATTRIBUTE = re.compile(r"<[A-Za-z][^<>]*=\s*(?:\"[^\"<>]*|'[^'<>]*)\Z")
_TEXT_ATTRIBUTE = re.compile(r"(?<![\w-])text\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)


def _left(tag: str, attributes: str, cut: str) -> str:
    """Returns the replacement of a tag whose content is removed: the text of a map link, or nothing visible."""
    if tag in _CUT_BLOCKS:
        return cut + BLOCK
    if tag in _LITERAL_TAGS:
        return cut + CUT
    if tag == "maplink" and (text := _TEXT_ATTRIBUTE.search(attributes)):
        return f"{cut}{next(filter(None, text.groups()), '')}{CUT}"
    return cut


_NOWIKI = re.compile(r"<nowiki>((?:[^<]|<(?!/nowiki>))*+)</nowiki>", re.IGNORECASE | re.ASCII)


_SEPARATING = re.compile("!(?=!)")


def _without_cells(text: str) -> str:
    """Returns literal text in which exclamation marks do not separate header cells."""
    return _SEPARATING.sub(f"!{CUT}", text) if "!!" in text else text


def _kept(tag: str, attributes: str, content: str) -> str:
    if tag in _LITERAL_TAGS:
        return CUT + _without_cells(literal(decode_references(content))) + CUT
    if tag in _TEX_TAGS:
        tex = " ".join(content.split())
        if tex and tag != "math":
            tex = f"\\ce{{{tex}}}"
        around = BLOCK if tex and _ON_ITS_OWN.search(attributes) else ""
        return around + CUT + _without_cells(literal(tex and f"${tex}$")) + CUT + around
    if tag == "pre":
        content = decode_references(_NOWIKI.sub(r"\1", content))
    elif _LANGUAGE_ATTRIBUTE.search(attributes):
        return CUT + _without_cells(literal(content.strip())) + CUT
    lines = _without_cells(content.strip("\n")).split("\n")
    return _BLOCK_START + "\n".join(PRE + literal(line) for line in lines) + _BLOCK_END
