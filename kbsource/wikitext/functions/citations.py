"""Works as running text and lists name them: short references that are words of a sentence, and whole ones.

Source: https://en.wikipedia.org/wiki/Template:Harvard_citation_text, Template:Harvard_citations, Help:Citation_Style_1
"""

from __future__ import annotations

from kbsource.wikitext.functions.arguments import PageFacts, Template, argument, filled, is_true, stripped

_MOST_AUTHORS = 3
_PERSONS = (("last", "first"), ("author", ""), ("surname", "given"), ("editor-last", "editor-first"), ("editor", ""))
_WORKS = ("journal", "work", "website", "newspaper", "magazine", "encyclopedia", "series")


def textual(template: Template, page: PageFacts) -> str:
    """Gives ``Smith & Jones (2001, p. 3)`` from ``{{harvtxt|Smith|Jones|2001|p=3}}``."""
    *names, year = filled(template) or [""]
    return _with_year(_in_a_row(names, "&"), year, _place(template))


def several(template: Template, page: PageFacts) -> str | None:
    """Gives ``Smith (1999)`` from ``{{harvs|txt|last=Smith|year=1999}}``; without ``txt`` it is a mere reference."""
    if "txt" not in stripped(template) and not is_true(template.named.get("txt", "")):
        return None
    names = [argument(template, 0, f"last{number}", *(["last"] if number == 1 else [])) for number in range(1, 5)]
    years = [argument(template, 0, f"year{number}", *(["year"] if number == 1 else [])) for number in range(1, 5)]
    return _with_year(_in_a_row(list(filter(None, names)), "and"), ", ".join(filter(None, years)), _place(template))


def supreme_court(template: Template, page: PageFacts) -> str | None:
    """Gives ``Roe v. Wade, 410 U.S. 113 (1973)``. Source: https://en.wikipedia.org/wiki/Template:Ussc"""
    values = filled(template)
    name = argument(template, 0, "name", "litigants")
    if not name and values and not values[0][:1].isdecimal():
        name = values.pop(0)
    places = [argument(template, 0, key) for key in ("volume", "page", "pin", "year")]
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
    """Gives a work as a bibliography does: ``Smith, John (2001). Title. Publisher.``; empty where nothing is named."""
    persons: list[str] = []
    for last, first in _PERSONS:
        for number in ("", *map(str, range(1, 10))):
            name = argument(template, 0, f"{last}{number}")
            given = argument(template, 0, f"{first}{number}") if first else ""
            if name:
                persons.append(f"{name}, {given}" if given else name)
        if persons:
            break
    if not persons and (named := argument(template, 0, "authors", "vauthors", "people")):
        persons = [named]
    shown = "; ".join(persons[:_MOST_AUTHORS]) + ("; et al." if len(persons) > _MOST_AUTHORS else "")
    date = argument(template, 0, "date", "year", "publication-date")
    head = f"{shown} ({date})" if shown and date else shown
    chapter = argument(template, 0, "chapter", "contribution", "entry", "article")
    title = argument(template, 0, "title", "script-title", "trans-title")
    work = argument(template, 0, *_WORKS)
    volume, issue = argument(template, 0, "volume"), argument(template, 0, "issue", "number")
    pages = argument(template, 0, "pages", "page")
    if work and (volume or pages):
        numbers = f"{volume}{f' ({issue})' if issue else ''}"
        work = f"{work} {': '.join(filter(None, (numbers, pages)))}"
    parts = [head, f'"{chapter}"' if chapter else "", title, work, argument(template, 0, "publisher", "institution")]
    if date and not head.endswith(")"):
        parts.append(date)
    text = " ".join(part if part[-1] in ".?!" else f"{part}." for part in parts if part)
    return text.replace("\n", " ") if title or work else ""  # it is one line of a list


def _place(template: Template) -> str:
    page, pages = argument(template, 0, "p", "page"), argument(template, 0, "pp", "pages")
    return f"p. {page}" if page else f"pp. {pages}" if pages else argument(template, 0, "loc")


def _with_year(names: str, year: str, place: str) -> str:
    inside = ", ".join(filter(None, (year, place)))
    return f"{names} ({inside})" if names and inside else names or inside


def _in_a_row(names: list[str], word: str) -> str:
    if len(names) < 3:
        return f" {word} ".join(names)
    return f"{names[0]} et al." if len(names) > 3 else f"{', '.join(names[:-1])} {word} {names[-1]}"
