"""A small wiki in two dump files whose templates no rule knows; they stand behind the pages that use them."""

from __future__ import annotations

from pathlib import Path

from tests.support.dumps import dump_xml, header_xml, page_xml

LOCAL_NAMES = {10: "Taiss", 828: "Modulis"}
_HEADER = header_xml(lang="ltg", dbname="ltgwiki").replace(
    b'<namespace key="10" case="first-letter">Template</namespace>',
    "".join(f'<namespace key="{n}" case="first-letter">{name}</namespace>' for n, name in LOCAL_NAMES.items()).encode(),
)

USES = {
    "Marks": "Riga ({{Zeime-de}} ''Riga'') is a city.",
    "Moved": "See {{zeime de}} and {{Taiss:Zeime-de}}, {{twice}} too.",
    "Lost": "Before {{Loop}} and {{Nowhere}} behind.",
    "Quiet": "{{Juosataisa}}Text of its own.",
    "Counted": "It has {{Sum|2|3}} gates.",
}
"""Wikitext of the articles by title."""

SHOWN = {
    "Marks": "Riga (in German Riga) is a city.",
    "Moved": "See in German and in German, in German too.",
    "Lost": "Before and behind.",
    "Quiet": "Text of its own.",
    "Counted": "It has 5 gates.",
}
"""The paragraph that a reader sees of each."""

TEMPLATES: dict[str, tuple[str, str | None]] = {
    "Zeime-de": ("<includeonly>in {{German}}</includeonly><noinclude>'''Doc''' {{Doc}}</noinclude>", None),
    "German": ("[[German language|German]]<noinclude>[[Category:Marks]]</noinclude>", None),
    "Zeime de": ("#REDIRECT [[Taiss:Zeime-de]]", "Taiss:Zeime-de"),
    "Twice": ("#REDIRECT [[Taiss:Zeime de]]", "Taiss:Zeime de"),
    "Loop": ("#REDIRECT [[Taiss:Loop]]", "Taiss:Loop"),
    "Sum": ("{{#invoke:Numbers|sum|{{{1}}}|{{{2}}}}}", None),
    "Juosataisa": ('<div class="ambox">Please mend this.</div>', None),
}
"""Wikitext of the templates by name, and where they redirect to."""

MODULES = {"Numbers": "return {sum = function(frame) return frame.args[1] + frame.args[2] end}"}
"""Source of the modules by name."""


def write_dumps(folder: Path) -> str:
    """Writes the files, articles first, and gives the pattern of their names."""
    articles = [page_xml(n, title, text) for n, (title, text) in enumerate(USES.items(), 1)]
    templates = [
        page_xml(100 + n, f"{LOCAL_NAMES[10]}:{name}", text, ns=10, redirect=target)
        for n, (name, (text, target)) in enumerate(TEMPLATES.items())
    ]
    templates += [
        page_xml(200 + n, f"{LOCAL_NAMES[828]}:{name}", source, ns=828)
        for n, (name, source) in enumerate(MODULES.items())
    ]
    for number, pages in enumerate((articles, templates), 1):
        path = folder / f"ltgwiki-20260101-pages-articles{number}.xml"
        path.write_bytes(dump_xml(pages, header=_HEADER))
    return str(folder / "ltgwiki-*.xml")
