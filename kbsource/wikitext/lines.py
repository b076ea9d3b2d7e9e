"""Marks the beginnings of headings and list items before tokenization, and tidies the text where markup was removed."""

from __future__ import annotations

import re
from collections import Counter

from kbsource.wikitext.markers import (
    APOSTROPHE,
    BLOCK,
    CUT,
    CUTS,
    DIGIT,
    DIGITS,
    EMPTY_LABEL,
    HEADING,
    LIST,
    LITERAL_OF,
    NUMBER,
    PRE,
    TEMPLATE_LINK,
    TRAIL_STOP,
    cut_out,
    has_numbers,
    single_spaces,
    without_numbers,
)
from kbsource.wikitext.tags import MAX_LIST_DEPTH

_LINE_STARTS = frozenset("=*#:;- ")
_ITEM_STARTS = frozenset("*#:")
# An address whose scheme has no slashes counts only if text follows immediately.
_TERM_TOKEN = re.compile(r"[\[\]]|'{2,}|://|\b(?:mailto|news|sips?|sms|tel|urn|xmpp|geo|magnet|bitcoin):(?=\S)|:")
_SIGNATURE = re.compile(r"~{3,5}")
_VARIANT = re.compile(r"-\{([^{}]*)\}-")

_CUT_BEFORE_BRACKET = re.compile(rf"\x02[ ,;:{DIGIT}]*+[)\]\"”»]")
_CUT_AFTER_PARENTHESIS = re.compile(r"\( ?\x02")
# Brackets that contain nothing, or only a word that introduced the removed text ("see").
_ANNOUNCING = (
    r"e\.g\.|i\.e\.|cf\.|[Ss]ee|vgl\.|[Ss]iehe|z\. ?B\.|(?:ad )?es\.|[Cc]fr\.|p\. ?ex\.|[Vv]oir|por ej\.|[Vv]éase"
    r"|bijv\.|[Zz]ie|см\.|напр\."
)
_EMPTY_PARENTHESES = re.compile(rf"\( ?(?:(?:{_ANNOUNCING}),? ?)?\x02[ \x02,;:{DIGIT}]*\)")
_EMPTY_BRACKETS = re.compile(
    rf"(?<!\[)\[ ?\x02[ \x02{DIGIT}]*\](?!\])"
    rf"|(?<![^\s(\x02{DIGIT}])(?:\"\x02[\x02{DIGIT}]*\"|“\x02[\x02{DIGIT}]*”|« ?\x02[ \x02{DIGIT}]*»)(?!\w)"
)
_CUT_BEFORE_CLOSING = re.compile(
    rf"\x02(?<![\x02{DIGIT}]\x02)[{DIGIT}]*+(?:[ \x02][{DIGIT}]*+){{0,200}}[\]\"”»]"
)  # bounded, so that the work stays linear
_PARENTHESIS_START = re.compile(rf"\( ?\x02[\x02 {DIGIT}]*[,;] *")
_AFTER_CUT = frozenset(["", " ", ",", ".", ")", ";"])
_CLOSE_UP = frozenset(",.)")  # after a cut, the space before these characters is removed
_SEPARATED = frozenset(",.);")  # after a cut, a comma or semicolon before these characters is removed
_SEPARATORS = frozenset(",;")
_DIGITS = frozenset(DIGITS)
_TRAIL_SIGNS = frozenset("\"'’“„»-–")  # characters that are in some language's link trail
_BLANK_ENDS = frozenset(["", " ", "\n", "]"])


def mark_lines(text: str) -> str:
    """Returns the text with markers at the start of heading lines (with the level) and around the prefix of list lines.

    As in MediaWiki, a heading's level is the smaller of the numbers of ``=`` before and after it, at most 6. ``;term :
    definition`` becomes two lines. A line of four or more ``-`` becomes empty. A line that begins with a space gets the
    marker for preformatted text.
    """
    return "\n".join([_mark_line(line) if line[:1] in _LINE_STARTS else line for line in text.split("\n")])


def _mark_line(line: str) -> str:
    first = line[0]
    if first in _ITEM_STARTS:  # the most frequent lines first
        content = line.lstrip("*#:")
        depth = len(line) - len(content)
        if depth <= MAX_LIST_DEPTH and content[:1] != ";":
            return f"{LIST}{line[:depth]}{LIST}{content}"
    if first == "=":
        heading = line.rstrip(" \t" + CUTS)
        if len(heading) >= 3 and heading[-1] == "=":
            leading = len(heading) - len(heading.lstrip("="))
            if leading == len(heading):
                level = min((leading - 1) // 2, 6)
            else:
                level = min(leading, len(heading) - len(heading.rstrip("=")), 6)
            return f"{HEADING}{level}{heading[level:-level].strip()}"
        return LITERAL_OF["="] + line[1:]
    if first == "-":
        return "\n" + line.lstrip("-") if line.startswith("----") else line
    if first == " ":
        return f"{PRE}{line[1:]}" if not line.isspace() else ""
    content = line.lstrip("*#:;")
    prefix = line[: len(line) - len(content)]
    if len(prefix) > MAX_LIST_DEPTH:
        prefix = prefix[: MAX_LIST_DEPTH - 1] + prefix[-1]
    if prefix[-1] == ";" and (colon := _definition_colon(content)) >= 0:
        term, definition = content[:colon].strip(), content[colon + 1 :].strip()
        return f"{LIST}{prefix}{LIST}{term}\n{LIST}{prefix[:-1]}:{LIST}{definition}"
    return f"{LIST}{prefix}{LIST}{content}"


def _definition_colon(content: str) -> int:
    """Returns the position of the first colon outside links, addresses, bold and italics, or -1.

    Source: findColonNoLinks of MediaWiki 1.39's BlockLevelPass, which sees links and quotes as tags.
    """
    depth = 0
    is_bold = is_italic = False
    for match in _TERM_TOKEN.finditer(content):
        token = match[0]
        if token == "[":
            depth += 1
        elif token == "]":
            depth = max(depth - 1, 0)
        elif token[0] == "'":
            is_bold ^= len(token) > 2
            is_italic ^= len(token) == 2 or len(token) > 4
        elif token == ":" and not (depth or is_bold or is_italic):
            return match.start()
    return -1


def remove_switches(text: str, losses: Counter[str], switches: set[str], pattern: re.Pattern[str]) -> str:
    """Returns the text without behaviour switches such as ``__NOTOC__``, which are added to ``switches``, and without
    signatures.

    ``pattern`` finds the switches of the wiki's language.
    """

    def replace(match: re.Match[str]) -> str:
        switches.add(match[0].upper())
        losses["behaviour_switch"] += 1
        # A heading may begin after the switch, and a space after it must not become an indent.
        return CUT if match.string[match.end() : match.end() + 1] == " " else ""

    if not pattern.pattern.startswith("__") or ("_" in text and "__" in text):
        text = pattern.sub(replace, text)
    if "~" in text and "~~~" in text:  # searching for one character is many times as fast as for three
        text, n_signatures = _SIGNATURE.subn(CUT, text)
        losses["signature"] += n_signatures
    return text


# Languages whose wikis convert between scripts. Source: LanguageConverterFactory of MediaWiki.
VARIANT_LANGS = frozenset(
    "zh zh-yue yue gan shi sr sh sh-latn sr-ec sr-el kk ku tg uz iu crh tly ban wuu mni zgh".split()
)


def choose_variants(text: str) -> str:
    """Returns the text with language-conversion markup ``-{zh-hans:A; zh-hant:B}-`` replaced by its first variant.

    ``-{text}-`` becomes the text itself. Rules that only define conversions (flags ``H``, ``T``, ``-``) are removed.
    """
    if "-{" not in text:
        return text
    return _VARIANT.sub(_variant, text)


def _variant(match: re.Match[str]) -> str:
    flags, bar, body = match.group(1).rpartition("|")
    if bar and any(flag.strip() in ("H", "T", "-") for flag in flags.split(";")):
        return CUT
    first = body.split(";")[0]
    code, colon, shown = first.partition(":")
    if colon and code.strip().replace("-", "").isalnum() and code.strip()[:2].isascii():
        return shown.strip()
    return body.strip()


def tidy(text: str, *, has_prefixes: bool = False) -> str:
    """Returns the text with single spaces and without cut markers, except those that separate a link from letters
    beside it.

    Where something was cut, empty brackets are removed, and so is the space before a comma, full stop or closing
    bracket. A cut directly after a link leaves a marker, so that ``[[bus]]<ref/>es`` has no link trail. With
    ``has_prefixes``, letters directly before a link belong to it, so a cut between them and the link leaves a marker.
    """
    if CUT in text:
        if _CUT_BEFORE_BRACKET.search(text):
            text = _EMPTY_PARENTHESES.sub(cut_out, text)
            text = _without_empty_brackets(text)
        if _CUT_AFTER_PARENTHESIS.search(text):
            text = _PARENTHESIS_START.sub(lambda found: "(" + cut_out(found).removesuffix(CUT), text)
        text = _join_cuts(text, has_prefixes)
    text = text.replace("\t", " ").replace("\u00a0", " ")
    return single_spaces(text)


def _without_empty_brackets(text: str) -> str:
    """Returns ``_EMPTY_BRACKETS.sub(CUT, text)``. Searching only around cuts is seven times as fast."""
    pieces, end = [], 0
    for cut in _CUT_BEFORE_CLOSING.finditer(text):
        start = cut.start() - 1
        if text[start : cut.start()] == " ":
            start -= 1
        if start >= end and (empty := _EMPTY_BRACKETS.match(text, start)):
            pieces += [text[end:start], cut_out(empty)]
            end = empty.end()
    return "".join((*pieces, text[end:])) if pieces else text


def _join_cuts(text: str, has_prefixes: bool) -> str:
    """Returns the text without cut markers. The characters on both sides of each cut decide which spaces stay."""
    pieces = iter(text.split(CUT))
    before = next(pieces)
    out = [before]
    add = out.append
    is_spaced = False  # there is a space among the cuts just read
    is_numbered = has_numbers(text)
    numbers = ""  # numbers in the cuts just read
    placed: list[tuple[int, str]] = []  # numbers with the index of the segment that follows them
    for piece in pieces:
        first = piece[:1]
        if is_numbered and first in _DIGITS:
            rest = piece.lstrip(DIGITS)
            numbers += piece[: len(piece) - len(rest)]
            piece = rest
            first = piece[:1]
        if first not in _AFTER_CUT:
            if is_spaced:
                add(" ")
                is_spaced = False
            elif (before[-1:] == "]" and before[-2:] == "]]" and (first.isalnum() or first in _TRAIL_SIGNS)) or (
                has_prefixes and first == "[" and piece[:2] == "[[" and before[-1:] not in _BLANK_ENDS
            ):
                add(TRAIL_STOP)
            if numbers:
                placed.append((len(out), numbers))
                numbers = ""
            add(piece)
            before = piece
            continue
        if not first:
            continue
        if first == " ":
            piece = piece.lstrip(" ")
            first = piece[:1]
            is_spaced = True
            if not first:
                continue
        if first in _CLOSE_UP:
            if before[-1:] == " ":
                out[-1] = before = before[:-1]
        elif is_spaced:
            add(" ")
        if first in _SEPARATED and before.rstrip(" ")[-1:] in _SEPARATORS and piece[:2] != "..":
            del out[-1 if out[-1] is before else -2 :]
            add(before.rstrip(" ")[:-1])
        is_spaced = False
        if numbers:
            placed.append((len(out), numbers))
            numbers = ""
        add(piece)
        before = piece
    if is_spaced:
        add(" ")
    if numbers:
        placed.append((len(out), numbers))
    for place, digits in reversed(placed):
        _put_back(out, place, digits)
    return "".join(out)


def _put_back(out: list[str], place: int, digits: str) -> None:
    """Inserts numbers directly after the text before them: before white space, and never between brackets that belong
    together.
    """
    passed = " \t[" + TEMPLATE_LINK + "]" * (place < len(out) and out[place][:1] == "]")
    while place > 0:
        piece = out[place - 1]
        if kept := piece.rstrip(passed):
            out[place - 1] = f"{kept}{digits}{piece[len(kept) :]}"
            return
        place -= 1
    out.insert(0, digits)


_ENDED = re.compile(f" *{BLOCK}[{BLOCK} \\t]*")
_MARK_AFTER_BREAK = re.compile(r"\n(?=[*#:;=-])")
_LINK_WITH_BLOCK = re.compile(rf"\[\[[^\[\]{BLOCK}]*{BLOCK}[^\[\]]*\]\]")
_WHOLE_LINES = frozenset("*#:;=")
_KEPT_LABEL = EMPTY_LABEL.replace(BLOCK, NUMBER)


def end_paragraphs(text: str) -> str:
    """Returns the text with a paragraph break for each removed element that ends a paragraph. In list items, headings
    and links it is replaced by a space.
    """
    out: list[str] = []
    position = 0
    while (found := text.find(BLOCK, position)) >= 0:
        start = text.rfind("\n", position, found) + 1 or position
        end = text.find("\n", found)
        if end < 0:
            end = len(text)
        line = text[start:end].replace(EMPTY_LABEL, _KEPT_LABEL)
        if "[[" in line:
            line = _LINK_WITH_BLOCK.sub(lambda link: link[0].replace(BLOCK, " "), line)
        is_whole = line.lstrip(CUTS)[:1] in _WHOLE_LINES
        line = _ENDED.sub(" " if is_whole else "\n\n", line).replace(_KEPT_LABEL, EMPTY_LABEL)
        line = _MARK_AFTER_BREAK.sub(f"\n{CUT}", line)  # within the line, so it begins no list item or heading
        out += (text[position:start], line)
        position = end
    out.append(text[position:])
    return "".join(out)


_QUOTES_IN_LINK = re.compile(r"\[\[[^\[\]\n']*+(?:'(?!')[^\[\]\n']*+)*+''")
_LINK_WITH_QUOTES = re.compile(r"\[\[([^\[\]|\n]*)(\|[^\[\]\n]*)?\]\]")


def _strip_links(line: str) -> str:
    """Returns the line with the quotes in its links resolved: in a target they are text, and in a label they end with
    the label.

    Source: handleInternalLinks2 of MediaWiki's Parser, which runs before the quotes of the line.
    """

    def strip(link: re.Match[str]) -> str:
        if "''" not in link[0]:
            return link[0]
        label = link[2] or ""
        return f"[[{link[1].replace(_QUOTE, APOSTROPHE)}{_strip_line(label) if _QUOTES in label else label}]]"

    return _LINK_WITH_QUOTES.sub(strip, line)


_QUOTE, _QUOTES = "'", "''"
_RUN = re.compile(r"('{2,})")


def strip_quotes(text: str) -> str:
    """Returns the text with the markup for bold and italics replaced by cut markers; apostrophes that are text stay."""
    if "''" not in text:
        return text
    out: list[str] = []
    position = 0
    found = text.find("''")
    while found >= 0:
        start = text.rfind("\n", position, found) + 1 or position
        end = text.find("\n", found)
        if end < 0:
            end = len(text)
        out.append(text[position:start])
        line = text[start:end]
        if "[[" in line and _QUOTES_IN_LINK.search(line):
            line = _strip_links(line)
        out.append(_strip_line(line))
        position = end
        found = text.find("''", end)
    out.append(text[position:])
    return "".join(out)


def _strip_line(line: str) -> str:
    """Returns the line without the markup for bold and italics.

    Of four apostrophes, the first is text; of more than five, the last five are markup. If bold and italics are both
    unbalanced, one bold mark is read as an apostrophe and the beginning of italics: the first after a single-letter
    word, else the first after a word, else the first after a space.
    """
    if "'''" not in line:
        return line.replace("''", CUT)
    if "''''" not in line:  # the line has only runs of two and three apostrophes
        without_bold = line.replace("'''", CUT)
        if not (line.count("'''") % 2 and without_bold.count("''") % 2):
            return without_bold.replace("''", CUT)
    parts = _RUN.split(line)
    lengths = [*map(len, parts[1::2])]
    extras = [max(length - 5, 0) if length != 4 else 1 for length in lengths]
    is_bold_odd = sum(length > 2 for length in lengths) % 2
    if is_bold_odd and sum(length == 2 or length > 4 for length in lengths) % 2:
        first: dict[str, int] = {}
        for number, length in enumerate(lengths):
            if length - extras[number] == 3:
                before = without_numbers(parts[2 * number]) + "'" * extras[number]
                first.setdefault(
                    "space" if before[-1:] == " " else "letter" if before[-2:-1] == " " else "word", number
                )
        chosen = next((first[kind] for kind in ("letter", "word", "space") if kind in first), None)
        if chosen is not None:
            extras[chosen] += 1
    out = [parts[0]]
    for number, extra in enumerate(extras):
        out.append("'" * extra + CUT)
        out.append(parts[2 * number + 2])
    return "".join(out)
