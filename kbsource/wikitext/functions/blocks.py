"""Templates whose content stands on lines of its own: lists, columns, quotations, poems."""

from __future__ import annotations

import re

from kbsource.wikitext.functions.arguments import PageFacts, Template, argument, filled, stripped

_BULLET = re.compile(r"(?m)^[*#:]+[ \t]*")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def items(template: Template, page: PageFacts, *, mark: str = "*") -> str:
    """Gives the arguments as lines of a list: ``{{unbulleted list|a|b}}``."""
    return "\n".join(f"{mark} {_one_line(value)}" for value in filled(template))


def _one_line(value: str) -> str:
    return value if "\n*" in value or "\n#" in value else value.replace("\n", " ")


def in_a_row(template: Template, page: PageFacts, *, separator: str = " · ") -> str:
    """Gives ``{{hlist|a|b}}`` as running text with dots between the items."""
    return separator.join(filled(template))


def flat(template: Template, page: PageFacts, *, separator: str = " · ") -> str:
    """Gives the lines of a bulleted list inside ``{{flatlist}}`` as running text."""
    text = argument(template, 1) or "\n".join(filled(template))
    lines = [_BULLET.sub("", line).strip() for line in text.split("\n")]
    return separator.join(line for line in lines if line)


def content(template: Template, page: PageFacts, *, names: tuple[str, ...] = ()) -> str:
    """Gives all positional arguments one below the other: ``{{plainlist|…}}``, ``{{center|…}}``."""
    values = [value for value in template.positional if value.strip()]
    values.extend(value for name in names if (value := template.named.get(name, "")))
    return "\n".join(value.strip("\n") for value in values)


def from_second(template: Template, page: PageFacts) -> str:
    """Gives what ``{{columns-list|2|…}}`` holds: first arguments that only say how many or how wide are left out."""
    values = list(template.positional)
    while values and (not values[0].strip() or values[0].strip().rstrip("emprx%").isdecimal()):
        del values[0]
    return "\n".join(value.strip("\n") for value in values if value.strip())


def columns(template: Template, page: PageFacts, *, prefix: str = "col") -> str:
    """Gives the columns ``col1``, ``col2``, … one after the other."""
    named = template.named
    found = [named[f"{prefix}{number}"] for number in range(1, 11) if named.get(f"{prefix}{number}")]
    return "\n".join(found or [value.strip("\n") for value in template.positional if value.strip()])


def quotation(template: Template, page: PageFacts) -> str:
    """Gives a block quotation, its author and source on a line of their own: ``— Cicero, De Officiis``."""
    text = argument(
        template, 1, "text", "quote", "quotetext", "content", "texte", "Text", "texto", "citat", "citaat", "cita", "1"
    )
    if not text:
        return ""
    names = ("author", "sign", "cite", "by", "auteur", "Autor", "autor", "person", "auteurs", "pers")
    author = argument(template, 2, *names)
    source = argument(template, 3, "source", "title", "Quelle", "fuente", "bron", "character")
    by = ", ".join(value.lstrip("—–- ") for value in (author, source) if value)
    text = text.strip("\n")
    return f"{text}\n\n— {by}" if by else text


def pulled_quotation(template: Template, page: PageFacts) -> str:
    """Gives a quotation whose first argument says on which side it stands: ``{{rquote|right|words|author}}``."""
    return quotation(template._replace(positional=template.positional[1:]), page)


def poem(template: Template, page: PageFacts) -> str:
    """Gives the lines of a poem, one below the other."""
    text = argument(template, 1, "text", "content", "original", "texte")
    translation = argument(template, 2, "translation", "english")
    text = _lines(text)
    return f"{text}\n\n{_lines(translation)}" if translation else text


def _lines(text: str) -> str:
    text = _BREAK.sub("\n", text)
    return "<br>\n".join(line.strip() for line in text.split("\n") if line.strip())


def numbered(template: Template, page: PageFacts) -> str:
    """Gives the arguments as a numbered list."""
    return "\n".join(f"# {_one_line(value)}" for value in filled(template))


def collapsible(template: Template, page: PageFacts) -> str:
    """Gives the title and the items of a list that can be folded."""
    title = argument(template, 0, "title")
    values = [f"* {_one_line(value)}" for value in stripped(template) if value]
    return "\n".join(([title] if title else []) + values)


def tree(template: Template, page: PageFacts) -> str:
    """Gives the names on a tree of life or of languages, one below the other, in the order they are written."""
    values = [value for value in stripped(template) if value]
    for name, value in template.named.items():
        if value and (name.startswith("label") or name == "caption" or name.isdecimal()):
            values.append(value)
    lines = [line.strip() for value in values for line in _BREAK.sub(" ", value).split("\n")]
    return "\n".join(line if line.startswith("*") else f"* {line}" for line in lines if line)


def chart(template: Template, page: PageFacts) -> str:
    """Gives the boxes of one line of a family tree, without the lines between them."""
    boxes = [value for name, value in template.named.items() if value and not name.startswith(("box", "border"))]
    return "; ".join(" ".join(_BREAK.sub(" ", box).split()) for box in boxes)


def side_by_side(template: Template, page: PageFacts) -> str:
    """Gives original text and translation of ``{{verse translation|…|…}}``."""
    return "\n\n".join(_lines(value) for value in filled(template))


def taxa(template: Template, page: PageFacts) -> str:
    """Gives names and authors, in turn, as lines of a list: ``{{species list|Felis catus|Linnaeus, 1758|…}}``."""
    values = stripped(template)
    pairs = (" ".join(values[start : start + 2]).strip() for start in range(0, len(values), 2))
    return "\n".join(f"* {pair}" for pair in pairs if pair)
