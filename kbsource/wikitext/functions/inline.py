"""Templates that stand in running text and show their arguments: wrappers, labels, links, marks, small words."""

from __future__ import annotations

from kbsource.languages import language_codes
from kbsource.wikitext.functions.arguments import (
    PageFacts,
    Template,
    argument,
    filled,
    is_true,
    link,
    padded,
    shown,
    stripped,
)
from kbsource.wikitext.functions.measures.numbers import NBSP, raise_text
from kbsource.wikitext.markers import literal

_LONGEST_TITLE = 255  # MediaWiki's limit, in bytes; here in characters


def fixed(template: Template, page: PageFacts, *, text: str) -> str | None:
    """Gives a text that does not depend on the arguments: dashes, spaces, signs."""
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
    """Gives one argument, with marks around it: ``{{nowrap|x}}``, ``{{angbr|x}}``.

    The argument keeps the white space around it, as it stands inside of running text; with marks it is stripped.
    ``otherwise`` is the position that is taken where the first one is empty.
    """
    value = template.positional[position - 1] if 0 < position <= len(template.positional) else ""
    if not value.strip():
        value = argument(template, 0, *names)
        if not value and otherwise:
            value = argument(template, otherwise)
    if not value.strip():
        return default or value.strip("\n")
    if before or after:
        return f"{before}{value.strip()}{after}"
    return value.strip("\n")


def last(template: Template, page: PageFacts) -> str | None:
    """Gives the last argument that is not empty."""
    values = filled(template)
    return values[-1] if values else ""


def joined(
    template: Template, page: PageFacts, *, separator: str = "", before: str = "", after: str = "", default: str = ""
) -> str | None:
    """Gives the arguments with a separator between them, or the default where there are none."""
    values = filled(template)
    return f"{before}{separator.join(values)}{after}" if values else default


def prefixed(
    template: Template, page: PageFacts, *, word: str, separator: str = " ", names: tuple[str, ...] = ()
) -> str:
    """Gives a fixed word with the arguments behind it: ``{{vol.|2}}``; the word alone without any."""
    values = filled(template) or [value for name in names if (value := template.named.get(name, ""))]
    return f"{word}{separator}{', '.join(values)}" if values else word


def minor_planet(template: Template, page: PageFacts) -> str:
    """Gives a provisional designation: ``{{mp|2000 QW|7}}`` -> 2000 QW7; what is lowered stays on the line."""
    return "".join(stripped(template))


def code_point(template: Template, page: PageFacts) -> str:
    """Gives ``U+0041 A LATIN CAPITAL LETTER A`` from ``{{unichar|0041|Latin capital letter A}}``."""
    code, name = padded(template, 2)[:2]
    try:
        character = chr(int(code, 16))
    except (ValueError, OverflowError):
        return shown(template)
    sign = literal(character) if character.isprintable() else ""
    return " ".join(filter(None, (f"U+{code.upper()}", sign, name.upper())))


def counted_unit(template: Template, page: PageFacts, *, unit: str) -> str:
    """Gives a number with a unit behind it, or the unit alone: ``{{solar mass|3}}`` -> 3 M☉."""
    return f"{argument(template, 1)}{NBSP}{unit}" if argument(template, 1) else unit


def span_of_years(template: Template, page: PageFacts, *, word: str) -> str:
    """Gives ``r. 1509–1547`` from one year or two."""
    values = filled(template)
    if not values:
        return word
    return f"{word}{NBSP}{values[0]}{'–' + values[1] if len(values) > 1 else ''}"


def circa(template: Template, page: PageFacts) -> str:
    """Gives ``c. 1500`` or ``c. 1500 – c. 1550``."""
    values = filled(template)
    if not values:
        return "c."
    return f"{NBSP}– ".join(f"c.{NBSP}{value}" for value in values[:2])


def counted(template: Template, page: PageFacts, *, text: str = NBSP) -> str:
    """Gives a text as often as the first argument says, at most 100 times: ``{{spaces|3}}``."""
    count = argument(template, 1, default="1")
    return text * min(int(count), 100) if count.isdecimal() else text


def raised(template: Template, page: PageFacts, *, default: str = "") -> str:
    """Gives the argument in superscript characters where there are such, else as it is; the default without one."""
    return raise_text(argument(template, 1, "sup")) or default


def base_with_scripts(template: Template, page: PageFacts) -> str:
    """Gives ``{{su|p=…|b=…}}``, ``{{subsup|base|low|high}}`` and their kin."""
    values = padded(template, 3)
    low = argument(template, 0, "b", "sub", default=values[1])
    high = argument(template, 0, "p", "sup", default=values[2])
    return values[0] + raise_text(high) + low


def abbreviation(template: Template, page: PageFacts, *, position: int = 1) -> str:
    """Gives the visible short form of ``{{abbr|short|long}}``; the long one is only a hover text."""
    values = padded(template, 2)
    return values[position - 1] or values[0] or values[1]


def abbreviation_link(template: Template, page: PageFacts) -> str:
    """Gives the short form as a link to the page of the long one: ``{{abbrlink|UN|United Nations}}``."""
    values = padded(template, 2)
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
    """Gives a red link with a hint to another language as a plain link: ``{{ill|Jane Doe|de|lt=Doe}}``.

    Args:
        target: position of the title in this wiki.
        label: positions of the shown text, first filled one counts.
        target_names, label_names: named arguments for the same.
    """
    values = filled(template)
    if target == 1 and len(values) > 1 and values[0] in language_codes() and values[1] not in language_codes():
        template = template._replace(positional=(*values[1:2], "", "", *values[3:]))  # the order used until 2015
        label = (4,)
    title = argument(template, 0, *target_names) or argument(template, target)
    text = argument(template, 0, *label_names)
    if not text:
        text = next((value for position in label if (value := argument(template, position))), "")
    return link(title, text) if title else text or shown(template)


def page_link(
    template: Template, page: PageFacts, *, position: int = 1, label: int = 2, before: str = "", after: str = ""
) -> str:
    """Gives a link to a page named by an argument, with fixed text around the name: ``{{lw|…}}``."""
    title = argument(template, position)
    return link(f"{before}{title}{after}", argument(template, label, default=title)) if title else shown(template)


def section_link(template: Template, page: PageFacts) -> str:
    """Gives ``Article § Section`` as links."""
    values = stripped(template)
    if not values:
        return ""
    title, sections = values[0], [value for value in values[1:] if value]
    name = title
    if len(name) > _LONGEST_TITLE:
        return ", ".join(value for value in values if value)
    if not sections:
        return link(name.replace("##", "#"))
    texts = [link(f"{name}#{sections[0]}", argument(template, 0, "display") or f"{name} §{NBSP}{sections[0]}".strip())]
    texts.extend(link(f"{name}#{section}", section) for section in sections[1:])
    return ", ".join(texts)


def sort_name(template: Template, page: PageFacts) -> str:
    """Gives ``{{sortname|First|Last|target}}``: a link to the person unless ``nolink`` is set."""
    values = padded(template, 3)
    name = f"{values[0]} {values[1]}".strip()
    if is_true(template.named.get("nolink", "")):
        return name
    dab = template.named.get("dab", "")
    return link(values[2] or (f"{name} ({dab})" if dab else name), name)


def sort_key(template: Template, page: PageFacts, *, position: int = 2) -> str:
    """Gives the visible part of ``{{sort|key|text}}``; the key alone is shown where there is no text."""
    return argument(template, position) or (argument(template, 1) if position == 2 else "")


def marked(template: Template, page: PageFacts, *, mark: str, space: str = " ") -> str:
    """Gives a sign with the text behind it: ``▲ 3.5%``."""
    value = argument(template, 1)
    return f"{mark}{space}{value}" if value else mark


def cell(template: Template, page: PageFacts, *, word: str) -> str:
    """Gives a coloured table cell's text, or the word it stands for: ``{{yes}}``, ``{{n/a}}``."""
    return argument(template, 1, default=word)


def keys(template: Template, page: PageFacts) -> str:
    """Gives keys of a keyboard: ``Ctrl+C``; a named chain sign is put between."""
    chain = template.named.get("chain", "+")
    return (chain or "+").join(filled(template))


def identifier(template: Template, page: PageFacts, *, word: str) -> str:
    """Gives a labelled number: ``ISBN 978-…``, several separated by commas."""
    values = filled(template) or [value for value in template.named.values() if value][:1]
    return f"{word} {', '.join(values)}" if values else word


def address(template: Template, page: PageFacts) -> str:
    """Gives the shown text of a web address: its label, else the address without scheme and closing slash."""
    target = argument(template, 1, "url", "URL")
    label = argument(template, 2, "title", "name")
    if label:
        return label
    for scheme in ("https://", "http://", "//"):
        target = target.removeprefix(scheme)
    return target.rstrip("/")


def ruby(template: Template, page: PageFacts) -> str:
    """Gives a text with the reading over it in brackets."""
    values = filled(template)
    return f"{values[0]} ({values[1]})" if len(values) > 1 else shown(template)


def sic(template: Template, page: PageFacts) -> str:
    """Gives a wrong word as it is, with ``[sic]`` behind it unless that is hidden."""
    text = " ".join(filled(template))
    if is_true(template.named.get("hide", "")):
        return text
    return f"{text} &#91;sic&#93;".strip()


def chosen(template: Template, page: PageFacts) -> str:
    """Gives what ``{{main other|article text|other text}}`` shows on an article: the first text."""
    return argument(template, 1)


def rating(template: Template, page: PageFacts) -> str:
    """Gives ``3.5/5 stars`` from a rating and its highest value."""
    values = filled(template)
    if not values:
        return ""
    return f"{values[0]}/{values[1]} stars" if len(values) > 1 else f"{values[0]} stars"


def quoted(template: Template, page: PageFacts, *, opening: str = "“", closing: str = "”") -> str:
    """Gives the first argument in quotation marks, with the author behind it where one is given."""
    text = argument(template, 1, "quote", "text", "texte", "Text", "texto", "citaat", "tekst")
    return f"{opening}{text}{closing}" if text else ""


def share_bar(template: Template, page: PageFacts) -> str:
    """Gives the label and the share of ``{{bar percent|label|colour|12.5}}``."""
    values = padded(template, 3)
    return f"{values[0]} {values[2]}%" if values[2] else values[0]


def amount_bar(template: Template, page: PageFacts) -> str:
    """Gives the amount with its unit of ``{{bartable|amount|unit|scale|…}}``; only the bar is drawn besides."""
    values = padded(template, 2)
    return f"{values[0]}{values[1]}"


def legend(template: Template, page: PageFacts) -> str:
    """Gives the text beside a coloured box."""
    return argument(template, 2, "text")


def marriage(template: Template, page: PageFacts) -> str:
    """Gives ``Jane Doe (m. 1919; died 1955)``. Source: https://en.wikipedia.org/wiki/Template:Marriage"""
    values = padded(template, 3)
    spouse, start, end = values[0], values[1], values[2]
    end = argument(template, 0, "end_date", default=end)
    kind = argument(template, 0, "reason", "end").rstrip(".").lower()
    word = {"d": "died", "died": "died", "his death": "his death", "her death": "her death", "w": "wid."}.get(kind, "")
    word = word or {"widowed": "wid.", "div": "div.", "divorced": "div.", "divorce": "div."}.get(kind, "")
    if not start:
        return spouse
    if end and word:
        return f"{spouse} (m.{NBSP}{start}; {word}{NBSP}{end})"
    if end:
        return (
            f"{spouse} (m.{NBSP}{start}–{end})" if kind in ("", "divorced") else f"{spouse} (m. {start}; {kind} {end})"
        )
    return f"{spouse} (m.{NBSP}{start})"


def decade(template: Template, page: PageFacts) -> str:
    """Gives a link to a decade: ``[[1990s]]``."""
    value = argument(template, 1)
    return link(f"{value[:-1]}0s" if value.isdecimal() else value)


def linked_words(template: Template, page: PageFacts) -> str:
    """Gives the words of ``{{linktext|a|b}}`` as plain text: their links lead to a dictionary."""
    return "".join(stripped(template))


def named_or_first(template: Template, page: PageFacts, *, names: tuple[str, ...]) -> str:
    """Gives the first named argument that is filled, else the first positional one."""
    return argument(template, 0, *names) or argument(template, 1)


def verse(template: Template, page: PageFacts, *, book: str = "") -> str:
    """Gives a reference to a holy book as shown: ``Genesis 1:2–3``; an edition behind it is left out."""
    values = [book, *filled(template)] if book else filled(template)
    if not values:
        return ""
    chapter = values[1] if len(values) > 1 else ""
    verses = "" if ":" in chapter else "–".join(value for value in values[2:4] if value[:1].isdecimal())
    return f"{values[0]} {chapter}{':' + verses if verses else ''}".strip()
