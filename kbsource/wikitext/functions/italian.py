"""Templates of the Italian Wikipedia that write words of a sentence.

Source: https://it.wikipedia.org/wiki/Template:Bio/man, https://it.wikipedia.org/wiki/Template:M/man
"""

from __future__ import annotations

from collections.abc import Callable

from kbsource.wikitext.functions.arguments import PageFacts, Template, argument, filled, is_true, link, padded
from kbsource.wikitext.functions.measures.numbers import NBSP, parse_number, raise_text
from kbsource.wikitext.functions.places import country_name
from kbsource.wikitext.markers import APOSTROPHE

Value = Callable[..., str]
_VOWELS = "aeiouàèéìòù"
_UNO = ("z", "x", "y", "gn", "ps", "pn")


def lead_of_biography(template: Template, page: PageFacts) -> str:
    """Gives the sentence that ``{{Bio}}`` begins an article with.

    ``Dante Alighieri (Firenze, 1265 – Ravenna, 14 settembre 1321) è stato un poeta e scrittore italiano.``
    """

    def value(*names: str) -> str:
        return argument(template, 0, *names)

    name = " ".join(filter(None, (value("Titolo"), value("Nome"), value("Cognome"))))
    if value("CognomePrima"):
        name = " ".join(filter(None, (value("Titolo"), value("Cognome"), value("Nome"))))
    if value("Pseudonimo"):
        name += f", noto come {value('Pseudonimo')}"
    name += value("PostCognome") if value("PostCognome")[:1] in (",", "") else f" {value('PostCognome')}"
    birth = _place_and_date(value, "Nascita", "LuogoNascita")
    death = _place_and_date(value, "Morte", "LuogoMorte")
    life = f"{birth or '…'} – {death}" if death else birth
    before = value("PreData")
    inside = "; ".join(filter(None, (before, life)))
    head = f"'''{name}'''{f' ({inside})' if inside else ''}" if name else ""
    end = value("FineIncipit")
    if end:
        return f"{head}{'' if end[0] in ',;' else ' '}{end}{_stop(value, end)}".strip()
    is_woman, is_dead = value("Sesso").upper() == "F", bool(death) or bool(value("AnnoMorte"))
    work = [found for key in ("Attività", "Attività2", "Attività3") if (found := value(key))]
    others = value("AttivitàAltre")
    if not head or not work:
        return f"{head}{others}"
    verb = ("è stata" if is_woman else "è stato") if is_dead else "è"
    words = f"{', '.join(work[:-1])} e {work[-1]}" if len(work) > 1 and not others else ", ".join(work)
    nation = " ".join(filter(None, (value("Nazionalità"), value("NazionalitàNaturalizzato"))))
    sentence = f"{head} {verb} {_article(work[0], is_woman=is_woman)}{words}{others} {nation}{_after(value)}".rstrip()
    return sentence + _stop(value, sentence)


def _place_and_date(value: Value, what: str, place: str) -> str:
    day, year = value(f"GiornoMese{what}"), value(f"Anno{what}")
    date = " ".join(filter(None, (link(day), link(year) if year[:1].isdecimal() else year)))
    where = link(value(f"{place}Link") or value(place), value(f"{place}Alt") or value(place))
    return ", ".join(filter(None, (where, date)))


def _after(value: Value) -> str:
    text = value("PostNazionalità")
    return text if not text or text[0] in ",;" else f" {text}"


def _stop(value: Value, sentence: str) -> str:
    return "" if value("Punto").lower() == "no" or sentence.endswith((".", ":")) else "."


def _article(word: str, *, is_woman: bool) -> str:
    first = word.lstrip("['").rpartition("|")[2].lower()
    if is_woman:
        return f"un{APOSTROPHE}" if first[:1] in _VOWELS else "una "
    is_hard = first.startswith(_UNO) or (first[:1] == "s" and first[1:2] not in _VOWELS)
    return "uno " if is_hard else "un "


def measure(template: Template, page: PageFacts) -> str:
    """Gives a number with exponent, prefix and unit: ``{{M|1234.5|k|m}}``, ``{{M|3|e=6|ul=Hz}}``."""
    values = padded(template, 3)
    written = values[0]
    if "," in written:  # the decimal comma, as people write it there
        written = written.replace(".", "").replace(",", ".")
    number = parse_number(written, page.lang)
    text = number.shown if number is not None else values[0]
    if exponent := template.named.get("e", ""):
        text = f"{text}×10{raise_text(exponent.replace('-', '−'))}" if text else f"10{raise_text(exponent)}"
    unit = argument(template, 0, "ul", "u") or values[1] + values[2]
    if per := argument(template, 0, "upl", "up"):
        unit = f"{unit}/{per}"
    return f"{text}{NBSP}{unit}" if unit and text else text or unit


def power_of_ten(template: Template, page: PageFacts) -> str:
    """Gives ``7,7×10¹⁵`` from ``{{Exp|7,7|15}}``, ``×10⁷`` from ``{{Exp|7}}``."""
    values = filled(template)
    exponent = raise_text(values[-1].replace("-", "−")) if values else ""
    return f"{values[0] if len(values) > 1 else ''}×10{exponent}" if exponent else ""


def flag(template: Template, page: PageFacts) -> str | None:
    """Gives the name beside a flag where ``{{bandiera|ITA|nome}}`` asks for one; a flag alone is a picture."""
    values = padded(template, 2)
    if not values[1] and not is_true(template.named.get("nome", "")):
        return None
    return country_name(values[0], page.lang)


def national_team(template: Template, page: PageFacts) -> str:
    """Gives the country of ``{{Naz|CA|ITA}}``, whose first argument is a code of the sport."""
    values = padded(template, 2)
    return country_name(values[1] or values[0], page.lang)


def twin_town(template: Template, page: PageFacts) -> str:
    """Gives ``Parigi, dal 1956`` from ``{{Gemellaggio|FRA|Parigi|1956}}``; the country is a flag."""
    _, town, since = padded(template, 3)[:3]
    return ", ".join(filter(None, (town, f"dal {since}" if since[:1].isdecimal() else since)))
