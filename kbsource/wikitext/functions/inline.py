"""Templates that stand in running text and show their arguments: wrappers, labels, links, marks, small words."""

from __future__ import annotations

import re

from kbsource.languages import language_codes
from kbsource.numerals import read_int
from kbsource.wikitext.functions.arguments import PageFacts, Template, is_true, link
from kbsource.wikitext.functions.numbers import NBSP, raise_text
from kbsource.wikitext.markers import literal

_LONGEST_TITLE = 255  # MediaWiki's limit, in bytes; here in characters


def fixed(template: Template, page: PageFacts, *, text: str) -> str | None:
    """A text that does not depend on the arguments: dashes, spaces, signs."""
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
    """One argument, with marks around it: ``{{nowrap|x}}``, ``{{angbr|x}}``.

    The argument keeps the white space around it, as it stands inside of running text; with marks it is stripped.
    ``otherwise`` is the position that is taken where the first one is empty.
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


def last(template: Template, page: PageFacts) -> str | None:
    """The last argument that is not empty."""
    values = template.filled()
    return values[-1] if values else ""


def joined(
    template: Template, page: PageFacts, *, separator: str = "", before: str = "", after: str = "", default: str = ""
) -> str | None:
    """The arguments with a separator between them, or the default where there are none."""
    values = template.filled()
    return f"{before}{separator.join(values)}{after}" if values else default


def prefixed(
    template: Template, page: PageFacts, *, word: str, separator: str = " ", names: tuple[str, ...] = ()
) -> str:
    """A fixed word with the arguments behind it: ``{{vol.|2}}``; the word alone without any."""
    values = template.filled() or [value for name in names if (value := template.named.get(name, ""))]
    return f"{word}{separator}{', '.join(values)}" if values else word


def minor_planet(template: Template, page: PageFacts) -> str:
    """A provisional designation: ``{{mp|2000 QW|7}}`` -> 2000 QW7; what is lowered stays on the line."""
    return "".join(template.stripped())


def code_point(template: Template, page: PageFacts) -> str:
    """``U+0041 A LATIN CAPITAL LETTER A`` from ``{{unichar|0041|Latin capital letter A}}``."""
    code, name = template.padded(2)[:2]
    try:
        character = chr(int(code, 16))
    except (ValueError, OverflowError):
        return template.shown()
    sign = literal(character) if character.isprintable() else ""
    return " ".join(filter(None, (f"U+{code.upper()}", sign, name.upper())))


def counted_unit(template: Template, page: PageFacts, *, unit: str) -> str:
    """A number with a unit behind it, or the unit alone: ``{{solar mass|3}}`` -> 3 M☉."""
    return f"{template.argument(1)}{NBSP}{unit}" if template.argument(1) else unit


def span_of_years(template: Template, page: PageFacts, *, word: str) -> str:
    """``r. 1509–1547`` from one year or two."""
    values = template.filled()
    if not values:
        return word
    return f"{word}{NBSP}{values[0]}{'–' + values[1] if len(values) > 1 else ''}"


def circa(template: Template, page: PageFacts) -> str:
    """``c. 1500`` or ``c. 1500 – c. 1550``."""
    values = template.filled()
    if not values:
        return "c."
    return f"{NBSP}– ".join(f"c.{NBSP}{value}" for value in values[:2])


def counted(template: Template, page: PageFacts, *, text: str = NBSP) -> str:
    """A text as often as the first argument says, at most 100 times: ``{{spaces|3}}``."""
    count = read_int(template.argument(1, default="1"))
    return text if count is None or count < 0 else text * min(count, 100)


def raised(template: Template, page: PageFacts, *, default: str = "") -> str:
    """The argument in superscript characters where there are such, else as it is; the default without one."""
    return raise_text(template.argument(1, "sup")) or default


def base_with_scripts(template: Template, page: PageFacts) -> str:
    """``{{su|p=…|b=…}}``, ``{{subsup|base|low|high}}`` and their kin."""
    values = template.padded(3)
    low = template.argument(0, "b", "sub", default=values[1])
    high = template.argument(0, "p", "sup", default=values[2])
    return values[0] + raise_text(high) + low


def abbreviation(template: Template, page: PageFacts, *, position: int = 1) -> str:
    """The visible short form of ``{{abbr|short|long}}``; the long one is only a hover text."""
    values = template.padded(2)
    return values[position - 1] or values[0] or values[1]


def abbreviation_link(template: Template, page: PageFacts) -> str:
    """The short form as a link to the page of the long one: ``{{abbrlink|UN|United Nations}}``."""
    values = template.padded(2)
    return link(values[1], values[0])


def interlanguage_link(
    template: Template,
    page: PageFacts,
    *,
    target: int = 1,
    label: tuple[int, ...] = (),
    target_names: tuple[str, ...] = (),
    label_names: tuple[str, ...] = ("lt", "display"),
) -> str:
    """A red link with a hint to another language as a plain link: ``{{ill|Jane Doe|de|lt=Doe}}``.

    ``target`` is the position of the title, ``label`` those of the shown text: the first filled one counts.
    """
    values = template.filled()
    if target == 1 and len(values) > 1 and values[0] in language_codes() and values[1] not in language_codes():
        template = template._replace(positional=(*values[1:2], "", "", *values[3:]))  # the order used until 2015
        label = (4,)
    title = template.argument(0, *target_names) or template.argument(target)
    text = template.argument(0, *label_names)
    if not text:
        text = next((value for position in label if (value := template.argument(position))), "")
    return link(title, text) if title else text or template.shown()


def page_link(
    template: Template, page: PageFacts, *, position: int = 1, label: int = 2, before: str = "", after: str = ""
) -> str:
    """A link to a page named by an argument, with fixed text around the name: ``{{lw|…}}``."""
    title = template.argument(position)
    return link(f"{before}{title}{after}", template.argument(label, default=title)) if title else template.shown()


def section_link(template: Template, page: PageFacts) -> str:
    """``Article § Section`` as links."""
    values = template.stripped()
    if not values:
        return ""
    title, sections = values[0], [value for value in values[1:] if value]
    name = title
    if len(name) > _LONGEST_TITLE:
        return ", ".join(value for value in values if value)
    if not sections:
        return link(name.replace("##", "#"))
    texts = [link(f"{name}#{sections[0]}", template.argument(0, "display") or f"{name} §{NBSP}{sections[0]}".strip())]
    texts.extend(link(f"{name}#{section}", section) for section in sections[1:])
    return ", ".join(texts)


def sort_name(template: Template, page: PageFacts) -> str:
    """``{{sortname|First|Last|target}}``: a link to the person unless ``nolink`` is set."""
    values = template.padded(3)
    name = f"{values[0]} {values[1]}".strip()
    if is_true(template.named.get("nolink", "")):
        return name
    dab = template.named.get("dab", "")
    return link(values[2] or (f"{name} ({dab})" if dab else name), name)


def sort_key(template: Template, page: PageFacts, *, position: int = 2) -> str:
    """The visible part of ``{{sort|key|text}}``; the key alone is shown where there is no text."""
    return template.argument(position) or (template.argument(1) if position == 2 else "")


def marked(template: Template, page: PageFacts, *, mark: str, space: str = " ") -> str:
    """A sign with the text behind it: ``▲ 3.5%``."""
    value = template.argument(1)
    return f"{mark}{space}{value}" if value else mark


def cell(template: Template, page: PageFacts, *, word: str) -> str:
    """A coloured table cell's text, or the word it stands for: ``{{yes}}``, ``{{n/a}}``."""
    return template.argument(1, default=word)


def keys(template: Template, page: PageFacts) -> str:
    """Keys of a keyboard: ``Ctrl+C``; a named chain sign is put between."""
    chain = template.named.get("chain", "+")
    return (chain or "+").join(template.filled())


def identifier(template: Template, page: PageFacts, *, word: str) -> str:
    """A labelled number: ``ISBN 978-…``, several separated by commas."""
    values = template.filled() or [value for value in template.named.values() if value][:1]
    return f"{word} {', '.join(values)}" if values else word


def address(template: Template, page: PageFacts) -> str:
    """The shown text of a web address: its label, else the address without scheme and closing slash."""
    target = template.argument(1, "url", "URL")
    label = template.argument(2, "title", "name")
    if label:
        return label
    for scheme in ("https://", "http://", "//"):
        target = target.removeprefix(scheme)
    return target.rstrip("/")


def ruby(template: Template, page: PageFacts) -> str:
    """A text with the reading over it in brackets."""
    values = template.filled()
    return f"{values[0]} ({values[1]})" if len(values) > 1 else template.shown()


def sic(template: Template, page: PageFacts) -> str:
    """A wrong word as it is, with ``[sic]`` behind it unless that is hidden."""
    text = " ".join(template.filled())
    if is_true(template.named.get("hide", "")):
        return text
    return f"{text} &#91;sic&#93;".strip()


def chosen(template: Template, page: PageFacts) -> str:
    """What ``{{main other|article text|other text}}`` shows on an article: the first text."""
    return template.argument(1)


def rating(template: Template, page: PageFacts) -> str:
    """``3.5/5 stars`` from a rating and its highest value."""
    values = template.filled()
    if not values:
        return ""
    return f"{values[0]}/{values[1]} stars" if len(values) > 1 else f"{values[0]} stars"


def quoted(template: Template, page: PageFacts, *, opening: str = "“", closing: str = "”") -> str:
    """The first argument in quotation marks, with the author behind it where one is given."""
    text = template.argument(1, "quote", "text", "texte", "Text", "texto", "citaat", "tekst")
    return f"{opening}{text}{closing}" if text else ""


def share_bar(template: Template, page: PageFacts) -> str:
    """The label and the share of ``{{bar percent|label|colour|12.5}}``."""
    values = template.padded(3)
    return f"{values[0]} {values[2]}%" if values[2] else values[0]


def amount_bar(template: Template, page: PageFacts) -> str:
    """The amount with its unit of ``{{bartable|amount|unit|scale|…}}``; only the bar is drawn besides."""
    values = template.padded(2)
    return f"{values[0]}{values[1]}"


def legend(template: Template, page: PageFacts) -> str:
    """The text beside a coloured box."""
    return template.argument(2, "text")


_ENDS_OF_MARRIAGE = {
    "d": "died",
    "died": "died",
    "his death": "his death",
    "her death": "her death",
    "w": "wid.",
    "widowed": "wid.",
    "div": "div.",
    "divorced": "div.",
    "divorce": "div.",
}


def marriage(template: Template, page: PageFacts) -> str:
    """``Jane Doe (m. 1919; died 1955)``. Source: https://en.wikipedia.org/wiki/Template:Marriage"""
    values = template.padded(3)
    spouse, start, end = values[0], values[1], values[2]
    end = template.argument(0, "end_date", default=end)
    kind = template.argument(0, "reason", "end").rstrip(".").lower()
    if not start:
        return spouse
    if not end:
        return f"{spouse} (m.{NBSP}{start})"
    if word := _ENDS_OF_MARRIAGE.get(kind, ""):
        return f"{spouse} (m.{NBSP}{start}; {word}{NBSP}{end})"
    return f"{spouse} (m. {start}; {kind} {end})" if kind else f"{spouse} (m.{NBSP}{start}–{end})"


def decade(template: Template, page: PageFacts) -> str:
    """A link to a decade: ``[[1990s]]``."""
    value = template.argument(1)
    return link(f"{value[:-1]}0s" if value.isdecimal() else value)


def linked_words(template: Template, page: PageFacts) -> str:
    """The words of ``{{linktext|a|b}}`` as plain text: their links lead to a dictionary."""
    return "".join(template.stripped())


def named_or_first(template: Template, page: PageFacts, *, names: tuple[str, ...]) -> str:
    """The first named argument that is filled, else the first positional one."""
    return template.argument(0, *names) or template.argument(1)


def verse(template: Template, page: PageFacts, *, book: str = "", mark: str = ":") -> str:
    """A reference to a holy book as shown: ``Genesis 1:2–3``; an edition behind it is left out."""
    values = [book, *template.filled()] if book else template.filled()
    if not values:
        return ""
    chapter = values[1] if len(values) > 1 else ""
    verses = "" if mark in chapter else "–".join(value for value in values[2:4] if value[:1].isdecimal())
    return f"{values[0]} {chapter}{mark + verses if verses else ''}".strip()


_BULLET = re.compile(r"(?m)^[*#:]+[ \t]*")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def items(template: Template, page: PageFacts, *, mark: str = "*") -> str:
    """The arguments as lines of a list: ``{{unbulleted list|a|b}}``."""
    return "\n".join(f"{mark} {_one_line(value)}" for value in template.filled())


def _one_line(value: str) -> str:
    return value if "\n*" in value or "\n#" in value else value.replace("\n", " ")


def in_a_row(template: Template, page: PageFacts, *, separator: str = " · ") -> str:
    """``{{hlist|a|b}}`` as running text with dots between the items."""
    return separator.join(template.filled())


def flat(template: Template, page: PageFacts, *, separator: str = " · ") -> str:
    """The lines of a bulleted list inside ``{{flatlist}}`` as running text."""
    text = template.argument(1) or "\n".join(template.filled())
    lines = [_BULLET.sub("", line).strip() for line in text.split("\n")]
    return separator.join(line for line in lines if line)


def content(template: Template, page: PageFacts, *, names: tuple[str, ...] = ()) -> str:
    """All positional arguments one below the other: ``{{plainlist|…}}``, ``{{center|…}}``."""
    values = [value for value in template.positional if value.strip()]
    values.extend(value for name in names if (value := template.named.get(name, "")))
    return "\n".join(value.strip("\n") for value in values)


def from_second(template: Template, page: PageFacts) -> str:
    """What ``{{columns-list|2|…}}`` holds: first arguments that only say how many or how wide are left out."""
    values = list(template.positional)
    while values and (not values[0].strip() or values[0].strip().rstrip("emprx%").isdecimal()):
        del values[0]
    return "\n".join(value.strip("\n") for value in values if value.strip())


def columns(template: Template, page: PageFacts, *, prefix: str = "col") -> str:
    """The columns ``col1``, ``col2``, … one after the other."""
    named = template.named
    found = [named[f"{prefix}{number}"] for number in range(1, 11) if named.get(f"{prefix}{number}")]
    return "\n".join(found or [value.strip("\n") for value in template.positional if value.strip()])


def quotation(template: Template, page: PageFacts) -> str:
    """A block quotation, its author and source on a line of their own: ``— Cicero, De Officiis``."""
    text = template.argument(
        1, "text", "quote", "quotetext", "content", "texte", "Text", "texto", "citat", "citaat", "cita", "1"
    )
    if not text:
        return ""
    names = ("author", "sign", "cite", "by", "auteur", "Autor", "autor", "person", "auteurs", "pers")
    author = template.argument(2, *names)
    source = template.argument(3, "source", "title", "Quelle", "fuente", "bron", "character")
    by = ", ".join(value.lstrip("—–- ") for value in (author, source) if value)
    text = text.strip("\n")
    return f"{text}\n\n— {by}" if by else text


def pulled_quotation(template: Template, page: PageFacts) -> str:
    """A quotation whose first argument says on which side it stands: ``{{rquote|right|words|author}}``."""
    return quotation(template._replace(positional=template.positional[1:]), page)


def poem(template: Template, page: PageFacts) -> str:
    """The lines of a poem, one below the other."""
    text = template.argument(1, "text", "content", "original", "texte")
    translation = template.argument(2, "translation", "english")
    text = _lines(text)
    return f"{text}\n\n{_lines(translation)}" if translation else text


def _lines(text: str) -> str:
    text = _BREAK.sub("\n", text)
    return "<br>\n".join(line.strip() for line in text.split("\n") if line.strip())


def numbered(template: Template, page: PageFacts) -> str:
    """The arguments as a numbered list."""
    return "\n".join(f"# {_one_line(value)}" for value in template.filled())


def collapsible(template: Template, page: PageFacts) -> str:
    """The title and the items of a list that can be folded."""
    title = template.argument(0, "title")
    values = [f"* {_one_line(value)}" for value in template.stripped() if value]
    return "\n".join(([title] if title else []) + values)


def tree(template: Template, page: PageFacts) -> str:
    """The names on a tree of life or of languages, one below the other, in the order they are written."""
    values = [value for value in template.stripped() if value]
    for name, value in template.named.items():
        if value and (name.startswith("label") or name == "caption" or name.isdecimal()):
            values.append(value)
    lines = [line.strip() for value in values for line in _BREAK.sub(" ", value).split("\n")]
    return "\n".join(line if line.startswith("*") else f"* {line}" for line in lines if line)


def chart(template: Template, page: PageFacts) -> str:
    """The boxes of one line of a family tree, without the lines between them."""
    boxes = [value for name, value in template.named.items() if value and not name.startswith(("box", "border"))]
    return "; ".join(" ".join(_BREAK.sub(" ", box).split()) for box in boxes)


def side_by_side(template: Template, page: PageFacts) -> str:
    """Original text and translation of ``{{verse translation|…|…}}``."""
    return "\n\n".join(_lines(value) for value in template.filled())


def taxa(template: Template, page: PageFacts) -> str:
    """Names and authors, in turn, as lines of a list: ``{{species list|Felis catus|Linnaeus, 1758|…}}``."""
    values = template.stripped()
    pairs = (" ".join(values[start : start + 2]).strip() for start in range(0, len(values), 2))
    return "\n".join(f"* {pair}" for pair in pairs if pair)


_MOST_AUTHORS = 3
_PERSONS = (("last", "first"), ("author", ""), ("surname", "given"), ("editor-last", "editor-first"), ("editor", ""))
_WORKS = ("journal", "work", "website", "newspaper", "magazine", "encyclopedia", "series")


def textual(template: Template, page: PageFacts) -> str:
    """``Smith & Jones (2001, p. 3)`` from ``{{harvtxt|Smith|Jones|2001|p=3}}``."""
    *names, year = template.filled() or [""]
    return _with_year(_in_a_row(names, "&"), year, _place(template))


def several(template: Template, page: PageFacts) -> str | None:
    """``Smith (1999)`` from ``{{harvs|txt|last=Smith|year=1999}}``; without ``txt`` it is a mere reference."""
    if "txt" not in template.stripped() and not is_true(template.named.get("txt", "")):
        return None
    names = [template.argument(0, f"last{number}", *(["last"] if number == 1 else [])) for number in range(1, 5)]
    years = [template.argument(0, f"year{number}", *(["year"] if number == 1 else [])) for number in range(1, 5)]
    return _with_year(_in_a_row(list(filter(None, names)), "and"), ", ".join(filter(None, years)), _place(template))


def supreme_court(template: Template, page: PageFacts) -> str | None:
    """``Roe v. Wade, 410 U.S. 113 (1973)``. Source: https://en.wikipedia.org/wiki/Template:Ussc"""
    values = template.filled()
    name = template.argument(0, "name", "litigants")
    if not name and values and not values[0][:1].isdecimal():
        name = values.pop(0)
    places = [template.argument(0, key) for key in ("volume", "page", "pin", "year")]
    if values:
        volume, *pages = values
        year = pages.pop() if len(pages) > 1 and len(pages[-1]) == 4 else ""
        places = [volume, ", ".join(pages), "", year]
    volume, opening, pin, year = places
    if not (volume and opening):
        return name or None
    case = f"{volume} U.S. {opening}{f', {pin}' if pin else ''}{f' ({year})' if year else ''}"
    return f"''{name}'', {case}" if name else case


def whole(template: Template) -> str:
    """A work as a bibliography does: ``Smith, John (2001). Title. Publisher.``; empty where nothing is named."""
    persons: list[str] = []
    for last, first in _PERSONS:
        for number in ("", *map(str, range(1, 10))):
            name = template.argument(0, f"{last}{number}")
            given = template.argument(0, f"{first}{number}") if first else ""
            if name:
                persons.append(f"{name}, {given}" if given else name)
        if persons:
            break
    if not persons and (named := template.argument(0, "authors", "vauthors", "people")):
        persons = [named]
    shown = "; ".join(persons[:_MOST_AUTHORS]) + ("; et al." if len(persons) > _MOST_AUTHORS else "")
    date = template.argument(0, "date", "year", "publication-date")
    head = f"{shown} ({date})" if shown and date else shown
    chapter = template.argument(0, "chapter", "contribution", "entry", "article")
    title = template.argument(0, "title", "script-title", "trans-title")
    work = template.argument(0, *_WORKS)
    volume, issue = template.argument(0, "volume"), template.argument(0, "issue", "number")
    pages = template.argument(0, "pages", "page")
    if work and (volume or pages):
        numbers = f"{volume}{f' ({issue})' if issue else ''}"
        work = f"{work} {': '.join(filter(None, (numbers, pages)))}"
    parts = [head, f'"{chapter}"' if chapter else "", title, work, template.argument(0, "publisher", "institution")]
    if date and not head.endswith(")"):
        parts.append(date)
    text = " ".join(part if part[-1] in ".?!" else f"{part}." for part in parts if part)
    return text.replace("\n", " ") if title or work else ""  # it is one line of a list


def _place(template: Template) -> str:
    page, pages = template.argument(0, "p", "page"), template.argument(0, "pp", "pages")
    return f"p. {page}" if page else f"pp. {pages}" if pages else template.argument(0, "loc")


def _with_year(names: str, year: str, place: str) -> str:
    inside = ", ".join(filter(None, (year, place)))
    return f"{names} ({inside})" if names and inside else names or inside


def _in_a_row(names: list[str], word: str) -> str:
    if len(names) < 3:
        return f" {word} ".join(names)
    return f"{names[0]} et al." if len(names) > 3 else f"{', '.join(names[:-1])} {word} {names[-1]}"
