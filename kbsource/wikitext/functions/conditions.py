"""Parser functions and magic words: choices, letter case, strings, names of the page.

Arguments are literal by the time they arrive here, so that choices can be made; what depends on other pages (whether
one exists) is taken to be true. Source: https://www.mediawiki.org/wiki/Help:Extension:ParserFunctions and
Help:Magic_words.
"""

from __future__ import annotations

import urllib.parse

from kbsource.site import CANONICAL_NAMESPACES
from kbsource.titles import upper_first
from kbsource.wikitext.functions.arguments import PageFacts, Template
from kbsource.wikitext.functions.numbers import evaluate, number_text

_SHOWN_TAGS = frozenset({"nowiki", "poem", "math", "code", "pre", "blockquote", "small", "sup", "sub", "span", "div"})
_LONGEST_REPLACED = 1000  # $wgPFStringLengthLimit of the extension
_LONGEST_PADDING = 500  # MediaWiki's own limit


def if_filled(template: Template, page: PageFacts) -> str:
    """The second argument where the first is not empty, else the third: ``{{#if:}}``."""
    values = template.padded(3)
    return values[1] if values[0] else values[2]


def if_equal(template: Template, page: PageFacts) -> str:
    """The third argument where the first two are equal, as numbers or as text, else the fourth."""
    values = template.padded(4)
    return values[2] if is_same(values[0], values[1]) else values[3]


def is_same(first: str, second: str) -> bool:
    """Whether two texts are equal, as numbers or as they are."""
    if first == second:
        return True
    try:
        return float(first) == float(second)
    except ValueError:
        return False


def if_expression(template: Template, page: PageFacts) -> str:
    """The second argument where the expression is true, else the third."""
    values = template.padded(3)
    value = evaluate(values[0])
    return values[1] if value else values[2]


def if_exists(template: Template, page: PageFacts) -> str:
    """The second argument: the page asked for is taken to exist."""
    return template.padded(2)[1]


def if_error(template: Template, page: PageFacts) -> str:
    """The second argument where the first holds an error message, else the third or the first itself."""
    values = template.stripped()
    if values and 'class="error"' in values[0]:
        return values[1] if len(values) > 1 else ""
    return values[2] if len(values) > 2 else values[0] if values else ""


def switch(template: Template, page: PageFacts) -> str:
    """The value of the case that equals the first argument, falling through cases without a value."""
    values = template.stripped()
    if not values:
        return ""
    subject, cases = values[0], values[1:]
    is_found = False
    default = ""
    for position, case in enumerate(cases):
        key, equals, value = case.partition("=")
        key = key.strip()
        if not equals:
            is_found = is_found or is_same(case, subject)
            if position == len(cases) - 1:
                return case
            continue
        if is_found or is_same(key, subject):
            return value.strip()
        if key == "#default":
            default = value.strip()
    return default


def expression(template: Template, page: PageFacts) -> str:
    """The value of an expression, or the expression itself where it has none."""
    text = template.argument(1)
    value = evaluate(text)
    return text if value is None else number_text(value)


def lower(template: Template, page: PageFacts) -> str:
    """The argument in lower case."""
    return template.argument(1).lower()


def upper(template: Template, page: PageFacts) -> str:
    """The argument in upper case."""
    return template.argument(1).upper()


def first_lower(template: Template, page: PageFacts) -> str:
    """The argument with its first letter in lower case."""
    text = template.argument(1)
    return text[:1].lower() + text[1:]


def first_upper(template: Template, page: PageFacts) -> str:
    """The argument with its first letter in upper case."""
    return upper_first(template.argument(1), page.lang)


def pad(template: Template, page: PageFacts, *, left: bool) -> str:
    """The argument filled up to a length with zeros or another text."""
    values = template.padded(3)
    text, filler = values[0], values[2] or "0"
    wanted = min(int(values[1]), _LONGEST_PADDING) if values[1].isdecimal() and len(values[1]) < 9 else 0
    missing = wanted - len(text)
    if missing <= 0:
        return text
    padding = (filler * (missing // len(filler) + 1))[:missing]
    return padding + text if left else text + padding


def plural(template: Template, page: PageFacts) -> str:
    """The singular for one and the last form for other numbers."""
    values = template.stripped()
    if len(values) < 2:
        return ""
    return values[1] if values[0] in ("1", "-1") else values[-1]


def tag(template: Template, page: PageFacts) -> str | None:
    """The content of a tag that shows text: ``{{#tag:poem|…}}``; None for all others."""
    name = template.name.partition(":")[2].strip().lower()
    return template.argument(1) if name in _SHOWN_TAGS else None


def page_name(template: Template, page: PageFacts, *, part: str = "page") -> str:
    """The title of the page, of the one named by the argument where there is one, or a part of it."""
    title = template.argument(1).replace("_", " ") or page.title
    if part == "root":
        return title.partition("/")[0]
    if part == "sub":
        return title.rpartition("/")[2]
    if part == "base":
        return title.rpartition("/")[0] or title
    if part == "encoded":
        return urllib.parse.quote(title.replace(" ", "_"), safe="/:(),!*'@;~$-._")
    return title


def namespace_name(template: Template, page: PageFacts) -> str:
    """The canonical name of a namespace by its number."""
    number = template.argument(1)
    if not number.removeprefix("-").isdecimal() or len(number) > 6:
        return number
    return CANONICAL_NAMESPACES.get(int(number), ("",))[0]


def no_namespace(template: Template, page: PageFacts) -> str:
    """The namespace of a title: ``{{NAMESPACE:Talk:X}}``; articles, and this page, are in none."""
    prefix, colon, _ = template.argument(1).partition(":")
    names = {name.casefold(): names[0] for names in CANONICAL_NAMESPACES.values() for name in names}
    return names.get(prefix.strip().casefold(), "") if colon else ""


def anchor_encoded(template: Template, page: PageFacts) -> str:
    """The name of a section as the part of an address behind ``#``."""
    return "_".join(template.argument(1).split())


def page_address(template: Template, page: PageFacts) -> str:
    """The address of a page with its query: ``{{fullurl:X|action=edit}}``."""
    values = template.padded(2)
    title = urllib.parse.quote(values[0].replace(" ", "_"), safe="/:(),!*'@;~$-._")
    query = f"&{values[1]}" if values[1] else ""
    return f"//{page.lang}.wikipedia.org/w/index.php?title={title}{query}"


def url_encoded(template: Template, page: PageFacts) -> str:
    """The argument with percent escapes."""
    style = template.argument(2).upper()
    text = template.argument(1)
    if style == "WIKI":
        return urllib.parse.quote(text.replace(" ", "_"), safe="/:(),!*'@;~$-._")
    return urllib.parse.quote(text, safe="") if style == "PATH" else urllib.parse.quote_plus(text)


def length(template: Template, page: PageFacts) -> str:
    """The number of characters of the argument."""
    return str(len(template.argument(1)))


def replaced(template: Template, page: PageFacts) -> str:
    """The first argument with the second replaced by the third."""
    values = [*template.positional, "", "", ""]
    if max(map(len, values)) > _LONGEST_REPLACED:
        return values[0].strip()
    return values[0].strip().replace(values[1] or " ", values[2])


def part_of_text(template: Template, page: PageFacts) -> str:
    """A piece of a text by start and length: ``{{#sub:text|2|3}}``; negative ones count from the end."""
    values = template.padded(3)
    text = values[0]
    start, size = (_small_number(value, 8) for value in values[1:3])
    return text[start:][: size or None]


def title_parts(template: Template, page: PageFacts) -> str:
    """Some of the parts of a title between its slashes: ``{{#titleparts:A/B/C|2|1}}``."""
    values = template.padded(3)
    parts = values[0].split("/")
    count, first = (_small_number(value, 5) for value in values[1:3])
    return "/".join(parts[first - (first > 0) :][: count or None])


def _small_number(written: str, n_chars: int) -> int:
    """The whole number that is written in at most so many characters, else 0."""
    return int(written) if written.removeprefix("-").isdecimal() and len(written) <= n_chars else 0


def message(template: Template, page: PageFacts) -> str:
    """The first argument as it is: interface messages and their kin are not known here."""
    return template.argument(1)


def grammar(template: Template, page: PageFacts) -> str:
    """The word of ``{{grammar:case|word}}`` in its basic form."""
    return template.argument(2)


def gendered(template: Template, page: PageFacts) -> str:
    """The first form of ``{{gender:user|he|she|they}}``."""
    return template.argument(2)
