"""Templates in running text that show their arguments: wrappers, labels, links, marks, small words."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote_plus

from kbsource.languages import language_codes
from kbsource.numerals import read_int
from kbsource.titles import upper_first
from kbsource.wikitext.functions.arguments import PageFacts, Template, wikitext_link
from kbsource.wikitext.functions.numbers import MINUS, NBSP, format_number, plain_minus, raise_text
from kbsource.wikitext.markers import BLANKS, literal, without_marks


def fixed(template: Template, page: PageFacts, *, text: str) -> str | None:
    """Returns a text that does not depend on the arguments: dashes, spaces, symbols."""
    return text


def nth(
    template: Template,
    page: PageFacts,
    *,
    position: int = 1,
    names: tuple[str, ...] = (),
    before: str = "",
    after: str = "",
    default: str = "",
    otherwise: int = 0,
) -> str | None:
    """Returns one argument, with text around it: ``{{nowrap|x}}``, ``{{angbr|x}}``.

    The argument keeps its surrounding white space, because it is inside running text; with text around it, it is
    stripped. ``otherwise`` is the position used if the first one is empty.
    """
    value = template.positional[position - 1] if 0 < position <= len(template.positional) else ""
    if not value.strip():
        value = template.argument(0, *names)
        if not value and otherwise:
            value = template.argument(otherwise)
    if not value.strip():
        return default or value.strip("\n")
    if before or after:
        return f"{before}{value.strip()}{after}"
    return value.strip("\n")


_SLOT = re.compile(r"\{([^{}:]+)(?::(\w+))?\}")
_CHANGES: dict[str, Callable[[str, PageFacts], str]] = {
    "lower": lambda text, page: text.lower(),
    "upper": lambda text, page: text.upper(),
    "first_lower": lambda text, page: text[:1].lower() + text[1:],
    "first_upper": lambda text, page: upper_first(text, page.lang),
    "length": lambda text, page: str(len(text)),
    "anchor": lambda text, page: "_".join(text.replace("_", " ").split()),  # the part after # in an address
    "url_decoded": lambda text, page: without_marks(unquote_plus(text)),
    "number": lambda text, page: format_number(text, page.lang),
    "raised": lambda text, page: raise_text(text),
    "exponent": lambda text, page: raise_text(plain_minus(text).strip()),
    "minus": lambda text, page: plain_minus(text).replace("-", MINUS),
    "overlined": lambda text, page: "\u0305".join((*text, "")) if text.isalnum() and len(text) <= 8 else text,
}


def pieces(
    template: Template,
    page: PageFacts,
    *,
    show: str | tuple[str, ...],
    between: str = "",
    default: str = "",
    filled: bool = False,
) -> str:
    """Returns segments of text with arguments in them, ``["{1}", "/{2}", " stars"]``; the default if all arguments are
    empty.

    ``{2|name}`` is the second argument or, if that is empty, the named one; ``{*}`` is all unnamed arguments; ``{0}``
    is the template's own name; ``{1:raised}`` applies a function of ``_CHANGES``. A segment whose arguments are all
    empty is left out. ``filled``: numbers count only non-empty arguments.
    """
    places = [template.name, *(template.filled() if filled else template.stripped())]
    taken: list[str] = []

    def take(slot: re.Match[str]) -> str:
        value = ""
        for key in slot[1].split("|"):
            if key.isdecimal():
                value = places[int(key)] if int(key) < len(places) else ""
            else:
                value = template.shown() if key == "*" else template.named.get(key, "")
            if value:
                break
        taken.append(value)
        return _CHANGES[slot[2]](value, page) if slot[2] else value

    texts: list[str] = []
    is_there = False
    for piece in (show,) if isinstance(show, str) else show:
        taken.clear()
        text = _SLOT.sub(take, piece)
        is_there = is_there or any(taken)
        if any(taken) or not taken:
            texts.append(text)
    return between.join(texts) if is_there else _SLOT.sub(take, default)


def last(template: Template, page: PageFacts) -> str | None:
    """Returns the last non-empty argument."""
    values = template.filled()
    return values[-1] if values else ""


def joined(
    template: Template,
    page: PageFacts,
    *,
    separator: str = "",
    before: str = "",
    after: str = "",
    default: str = "",
    most: int | None = None,
    named: bool = False,
) -> str:
    """Returns the arguments, or the first ``most`` of them, joined by a separator; the default without arguments.

    ``named``: a named argument is used if there is no unnamed one.
    """
    values = template.filled()[:most]
    if named and not values:
        values = [value for value in template.named.values() if value][:1]
    return f"{before}{separator.join(values)}{after}" if values else default


def code_point(template: Template, page: PageFacts) -> str:
    """Returns ``U+0041 A LATIN CAPITAL LETTER A`` from ``{{unichar|0041|Latin capital letter A}}``."""
    code, name = template.padded(2)[:2]
    try:
        character = chr(int(code, 16))
    except (ValueError, OverflowError):
        return template.shown()
    sign = literal(character) if character.isprintable() else ""
    return " ".join(filter(None, (f"U+{code.upper()}", sign, name.upper())))


def spaces(template: Template, page: PageFacts) -> str:
    """Returns the number of no-break spaces in the first argument, at most 100: ``{{spaces|3}}``."""
    count = read_int(template.argument(1, default="1"))
    return NBSP if count is None or count < 0 else NBSP * min(count, 100)


def interlanguage_link(
    template: Template,
    page: PageFacts,
    *,
    label: tuple[int, ...] = (),
    target_names: tuple[str, ...] = (),
    label_names: tuple[str, ...] = ("lt", "display"),
) -> str:
    """Returns a red link with a hint to another language as a plain link: ``{{ill|Jane Doe|de|lt=Doe}}``.

    ``label`` are the positions of the shown text; the first non-empty one is used.
    """
    values = template.filled()
    if len(values) > 1 and values[0] in language_codes() and values[1] not in language_codes():
        # the order of arguments used until 2015
        template = template._replace(positional=(*values[1:2], "", "", *values[3:]))
        label = (4,)
    title = template.argument(0, *target_names) or template.argument(1)
    text = template.argument(0, *label_names)
    if not text:
        text = next((value for position in label if (value := template.argument(position))), "")
    return wikitext_link(title, text) if title else text or template.shown()


def page_link(template: Template, page: PageFacts, *, target: str = "{1}", label: str = "{2}") -> str:
    """Returns a link to a page with a label; both are templates for ``pieces``."""
    title = pieces(template, page, show=target)
    return wikitext_link(title, pieces(template, page, show=label)) if title else template.shown()


def address(template: Template, page: PageFacts) -> str:
    """Returns the shown text of a web address: its label, else the address without scheme and trailing slash."""
    target = template.argument(1, "url", "URL")
    label = template.argument(2, "title", "name")
    if label:
        return label
    for scheme in ("https://", "http://", "//"):
        target = target.removeprefix(scheme)
    return target.rstrip("/")


def verse(template: Template, page: PageFacts, *, book: str = "", mark: str = ":") -> str:
    """Returns a reference to a holy book as shown: ``Genesis 1:2–3``; an edition after it is left out."""
    values = [book, *template.filled()] if book else template.filled()
    if not values:
        return ""
    chapter = values[1] if len(values) > 1 else ""
    verses = "" if mark in chapter else "–".join(value for value in values[2:4] if value[:1].isdecimal())
    return f"{values[0]} {chapter}{mark + verses if verses else ''}".strip()


_BULLET = re.compile(r"(?m)^[*#:;]+[ \t]*")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def items(template: Template, page: PageFacts, *, mark: str = "*", titles: tuple[str, ...] = ()) -> str:
    """Returns the arguments as lines of a list, ``{{unbulleted list|a|b}}``, after a title given under one of
    ``titles``.
    """
    lines = [_as_item(value, mark) for value in template.positional if value.strip(BLANKS)]
    return "\n".join(filter(None, (template.argument(0, *titles), *lines)))


def _as_item(value: str, mark: str) -> str:
    """Returns a value as an item; the items of a list that it begins with are items of their own."""
    text = value.strip(BLANKS)
    if not (_BULLET.match(text) and "\n" in value[: value.index(text)]):
        return f"{mark} {_one_line(text)}"
    return "\n".join(f"{mark} {text}" for line in value.split("\n") if (text := _BULLET.sub("", line).strip()))


def _one_line(value: str) -> str:
    return value if "\n*" in value or "\n#" in value else value.replace("\n", " ")


def flat(template: Template, page: PageFacts) -> str:
    """Returns the lines of a bulleted list inside ``{{flatlist}}`` as running text."""
    text = template.argument(1) or "\n".join(template.filled())
    lines = [_BULLET.sub("", line).strip() for line in text.split("\n")]
    return " · ".join(filter(None, lines))


def content(template: Template, page: PageFacts, *, names: tuple[str, ...] = ()) -> str:
    """Returns all positional arguments, each on a line of its own: ``{{plainlist|…}}``, ``{{center|…}}``."""
    values = [value for value in template.positional if value.strip()]
    values.extend(value for name in names if (value := template.named.get(name, "")))
    return "\n".join(value.strip("\n") for value in values)


def from_second(template: Template, page: PageFacts) -> str:
    """Returns the content of ``{{columns-list|2|…}}``, without leading arguments that only set a number or a width."""
    values = list(template.positional)
    while values and (not values[0].strip() or values[0].strip().rstrip("emprx%").isdecimal()):
        del values[0]
    return "\n".join(value.strip("\n") for value in values if value.strip())


def columns(template: Template, page: PageFacts, *, prefix: str = "col") -> str:
    """Returns the columns ``col1``, ``col2``, … one after the other."""
    named = template.named
    found = [named[f"{prefix}{number}"] for number in range(1, 11) if named.get(f"{prefix}{number}")]
    return "\n".join(found or [value.strip("\n") for value in template.positional if value.strip()])


def quotation(template: Template, page: PageFacts) -> str:
    """Returns a block quotation, then its translation, and author and source on a line of their own: ``— Cicero, De
    Officiis``.
    """
    text = template.argument(
        1,
        "text",
        "quote",
        "quotetext",
        "content",
        "texte",
        "Text",
        "texto",
        "citat",
        "citaat",
        "cita",
        "testo",
        "текст",
        "1",
    )
    if not text:
        return ""
    names = ("author", "sign", "cite", "by", "auteur", "Autor", "autor", "autore", "автор", "person", "auteurs", "pers")
    author = template.argument(2, *names)
    source = template.argument(
        3, "source", "title", "Quelle", "fuente", "fonte", "opera", "источник", "bron", "character"
    )
    by = ", ".join(value.lstrip("—–- ") for value in (author, source) if value)
    translation = template.argument(0, "Übersetzung", "translation")
    return "\n\n".join(filter(None, (text.strip("\n"), translation, by and f"— {by}")))


def pulled_quotation(template: Template, page: PageFacts) -> str:
    """Returns a quotation whose first argument sets its side: ``{{rquote|right|words|author}}``."""
    return quotation(template._replace(positional=template.positional[1:]), page)


def poem(template: Template, page: PageFacts) -> str:
    """Returns the lines of a poem."""
    text = template.argument(1, "text", "content", "original", "texte")
    translation = template.argument(2, "translation", "english")
    text = _lines(text)
    return f"{text}\n\n{_lines(translation)}" if translation else text


def _lines(text: str) -> str:
    text = _BREAK.sub("\n", text)
    return "<br>\n".join(line.strip() for line in text.split("\n") if line.strip())


def tree(template: Template, page: PageFacts) -> str:
    """Returns the names in a tree of life or of languages, one per line, in the order they are written."""
    values = [value for value in template.stripped() if value]
    for name, value in template.named.items():
        if value and (name.startswith("label") or name == "caption" or name.isdecimal()):
            values.append(value)
    lines = [line.strip() for value in values for line in _BREAK.sub(" ", value).split("\n")]
    return "\n".join(line if line.startswith("*") else f"* {line}" for line in lines if line)


def chart(template: Template, page: PageFacts) -> str:
    """Returns the boxes in a row of a family tree, without the connecting lines."""
    boxes = [value for name, value in template.named.items() if value and not name.startswith(("box", "border"))]
    return "; ".join(" ".join(_BREAK.sub(" ", box).split()) for box in boxes)


def side_by_side(template: Template, page: PageFacts) -> str:
    """Returns original text and translation of ``{{verse translation|…|…}}``."""
    return "\n\n".join(_lines(value) for value in template.filled())


def taxa(template: Template, page: PageFacts) -> str:
    """Returns alternating names and authors as lines of a list: ``{{species list|Felis catus|Linnaeus, 1758|…}}``."""
    values = template.stripped()
    pairs = (" ".join(values[start : start + 2]).strip() for start in range(0, len(values), 2))
    return "\n".join(f"* {pair}" for pair in pairs if pair)
