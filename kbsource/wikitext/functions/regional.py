"""Templates that one language edition has its own way with: centuries, ordinals, hours, quotations, flags."""

from __future__ import annotations

from kbsource.wikitext.functions.arguments import PageFacts, Template, argument, filled, link, padded, shown, stripped
from kbsource.wikitext.functions.foreign import language_names
from kbsource.wikitext.functions.measures.numbers import NBSP, format_number, parse_number


def own_name(template: Template, page: PageFacts, *, lower: bool = False, after: str = "") -> str:
    """Gives the name of the template itself, with the arguments behind it: ``{{1er|mai}}``, ``{{XIXe siècle}}``."""
    name = template.name[:1].lower() + template.name[1:] if lower else template.name
    values = filled(template)
    return NBSP.join([name + after, *values])


def french_century(template: Template, page: PageFacts, *, word: str = "siècle", before_christ: bool = False) -> str:
    """Gives ``XIXe siècle``, ``XVIIe et XVIIIe siècles``, ``XIe au XIIIe siècle``.

    Source: https://fr.wikipedia.org/wiki/Modèle:S and Modèle:S2-, Modèle:Sp-.
    """
    pieces: list[str] = []
    joints = 0
    for value in filled(template):
        if value in ("e", "er", "ère"):
            continue
        if value == "s":
            joints += 1
            continue
        if value.isalpha() and value.isupper() and set(value) <= set("IVXLC"):
            if pieces and pieces[-1] not in ("et", "au", "ou", "-", "à"):
                pieces.append("et")
                joints += 1
            pieces.append(value + ("er" if value == "I" else "e"))
        else:
            pieces.append(value)
    text = " ".join(pieces).replace(" - ", "-")
    if not word:
        return text
    ending = "s" if joints else ""
    christ = f" av.{NBSP}J.-C." if before_christ else ""
    return f"{text}{NBSP}{word}{ending}{christ}" if text else ""


def century(template: Template, page: PageFacts, *, before: str = "", after: str = "", linked: bool = False) -> str:
    """Gives ``siglo XIX``, ``século XIX``, ``XIX век`` from the number."""
    value = argument(template, 1)
    text = f"{before}{value}{after}"
    return link(text) if linked and value else text if value else ""


def spanish_century(template: Template, page: PageFacts) -> str:
    """Gives ``siglo V a. C.`` of ``{{siglo|V|a|s}}``, the number alone of ``{{siglo|XX}}``.

    Source: https://es.wikipedia.org/wiki/Plantilla:Siglo
    """
    number, side, word = padded(template, 3)[:3]
    word = {"s": "siglo", "ss": "siglos"}.get(word.lower(), "")
    side = {"a": f"a.{NBSP}C.", "d": f"d.{NBSP}C."}.get(side.lower(), "")
    return NBSP.join(filter(None, (word, number, side))) if number else ""


def hours(template: Template, page: PageFacts) -> str:
    """Gives ``18 h 30``, with seconds ``18 min 30 s``: ``{{heure|18|30}}``, ``{{durée|1|2|3}}``."""
    values = stripped(template)
    units = ("h", "min", "s")
    pieces = []
    for position, value in enumerate(values[:3]):
        if value:
            is_last_minutes = (
                position == 1 and len([number for number in values[:3] if number]) == 2 and bool(values[0])
            )
            pieces.append(value if is_last_minutes else f"{value}{NBSP}{units[position]}")
    return NBSP.join(pieces)


def inserted(template: Template, page: PageFacts) -> str:
    """Gives a phrase between dashes, the closing one left out where the sentence ends: ``{{incise|…|stop}}``."""
    values = filled(template)
    if not values:
        return ""
    text = f"–{NBSP}{values[0]}"
    return text if len(values) > 1 and values[1].lower() in ("stop", "fin") else f"{text}{NBSP}–"


def in_language(template: Template, page: PageFacts, *, code: str = "", word: str = "en ") -> str:
    """Gives ``en allemand : Österreich``, ``englisch water``: the language's name and the text."""
    values = filled(template)
    if not code and template.name.startswith("Lang-"):
        code = template.name[5:]
    if not code and values:
        code, values = values[0], values[1:]
    name = language_names(page.lang).get(code.lower(), "")
    text = " ".join(values[:1])
    if not name or not text:
        return text
    separator = f"{NBSP}: " if page.lang == "fr" else " "
    meaning = template.named.get("de", "") if page.lang == "de" else ""
    shown_text = text if "''" in text else f"''{text}''"
    return f"{word}{name}{separator}{shown_text}{f' ‚{meaning}‘' if meaning else ''}"


def language_by_own_name(template: Template, page: PageFacts, *, word: str = "", cut: int = 1) -> str:
    """Gives a language's name and a text where the template's name is the code with a mark: ``{{enS|water}}``."""
    return in_language(template, page, code=template.name[: len(template.name) - cut].lower(), word=word)


def work(template: Template, page: PageFacts) -> str:
    """Gives an entry of a list of works: title, year, comment."""
    named = template.named
    title = named.get("titre", "") or named.get("title", "") or argument(template, 1)
    year = named.get("année", "") or named.get("year", "")
    text = f"{year} : {title}" if year and title else title or year
    comment = named.get("commentaire", "")
    return f"{text}. {comment}" if comment else text


def french_link(template: Template, page: PageFacts) -> str:
    """Gives ``{{lien|langue=en|trad=Foreign|fr=Title|texte=shown}}`` as a link."""
    title = argument(template, 0, "fr") or argument(template, 1) or argument(template, 0, "trad")
    label = argument(template, 0, "texte") or argument(template, 2, default=title)
    return link(title, label) if title else shown(template)


def temperature(template: Template, page: PageFacts) -> str:
    """Gives ``0,85 °C`` of value and unit."""
    values = filled(template)
    if not values:
        return ""
    unit = values[1] if len(values) > 1 else "°C"
    return f"{format_number(values[0], page.lang)}{NBSP}{unit}"


def elevation(template: Template, page: PageFacts) -> str:
    """Gives ``2962 m ü. NHN`` of a height and the code of the reference level."""
    values = filled(template)
    if not values:
        return ""
    level = values[1].upper() if len(values) > 1 else ""
    words = {"DE": " ü. NHN", "DE-NN": " ü. NN", "DE-HN": " ü. HN", "AT": " ü. A.", "CH": " ü. M.", "IT": " s.l.m."}
    number = parse_number(values[0], page.lang)
    text = number.shown if number is not None and len(values[0]) > 4 else values[0]
    return f"{text}{NBSP}m{words.get(level) or words.get(level.partition('-')[0], '')}"


def arabic_with_transcription(template: Template, page: PageFacts) -> str:
    """Gives a word with its transcription and meaning: ``{{arF|كتاب|d=kitāb|b=Buch}}``."""
    parts = [argument(template, 1), argument(template, 0, "d", "w"), argument(template, 0, "b")]
    word, reading, meaning = parts
    return ", ".join(filter(None, (word, f"''{reading}''" if reading else "", f"‚{meaning}‘" if meaning else "")))


def paragraph_of_law(template: Template, page: PageFacts, *, sign: str = "§") -> str:
    """Gives ``§ 1 BGB``."""
    values = filled(template)
    return f"{sign}{NBSP}{' '.join(values[:2])}" if values else sign


def invisible(template: Template, page: PageFacts) -> str | None:
    """Gives nothing: figures that only align numbers in a column."""
    return None


def russian_link(template: Template, page: PageFacts) -> str:
    """Gives ``{{нп5|Название|текст|en|Foreign}}`` as a link."""
    title = argument(template, 1, "есть")
    return link(title, argument(template, 2, "текст", default=title)) if title else shown(template)


def with_words(template: Template, page: PageFacts, *, before: str = "", after: str = "", digits: bool = False) -> str:
    """Gives the first argument between fixed words: ``nº 82``, ``120 p.``."""
    values = filled(template)
    if not values:
        return (before + after).strip()
    value = format_number(values[0], page.lang) if digits else values[0]
    return f"{before}{value}{after}"
