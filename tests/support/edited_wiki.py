"""The mini-wiki a month later: edited by hand in every way that a diff knows."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support import make_demo as make
from tests.support import mini_wiki

DATE = "20260201"

RENAMED, MERGED, SPLIT, DELETED, DISAMBIGUATION, RETARGETED = 171, 189, 5, 156, 144, 49
RECREATED, AGAIN = 186, 302
"""North Halvane, deleted and made again."""
REPLACED, REPLACEMENT = 192, 303
"""Idris Pell, whose item has another page with another title."""
ITEM_GIVER, ITEM_TAKER = 117, 126
"""The item of Halvane cuisine is now that of the tidal harp."""
NEW, LEFT_BEHIND = 304, 301
"""A new page, and the redirect that the renaming left behind."""


def write_edited(folder: Path) -> tuple[Path, Path]:
    """Writes dump and page_props into a folder and gives their paths."""
    head, pages, foot = make.split_xml(mini_wiki.XML.read_bytes())
    by_id = {make.parse_page(page).page_id: page.decode("utf-8") for page in pages}
    moved = _edit(by_id)
    xml = make.stamp(b"".join([head, *(by_id[page_id].encode("utf-8") for page_id in sorted(by_id)), foot]))
    dump = folder / f"miniwiki-{DATE}-pages-articles.xml"
    dump.write_bytes(xml)
    rows = [
        row._replace(value=moved.get(row.page_id, row.value)) if row.name == "wikibase_item" else row
        for row in make.page_props([make.parse_page(page) for page in make.split_xml(xml)[1]])
    ]
    rows = [row for row in rows if row.value]
    rows.append(make.PropRow(ITEM_TAKER, "wikibase_item", f"Q{9_000_000 + ITEM_GIVER}", None))
    props = folder / f"miniwiki-{DATE}-page_props.sql.gz"
    props.write_bytes(make.gzip_bytes(make.page_props_sql(sorted(rows, key=lambda row: row[:2])).encode("utf-8")))
    return dump, props


def _edit(pages: dict[int, str]) -> dict[int, str]:
    """Edits pages by id and gives the items of those that have others than by the rule of ``make_demo``."""
    cup = _text(pages[MERGED]).split("\n\n")[0]
    lighthouse = next(part for part in _text(pages[27]).split("\n\n") if part.startswith("The lighthouse"))
    first, second = _text(pages[24]).split("\n\n")[:2]
    pages[24] = pages[24].replace(f"{first}\n\n{second}", f"{second}\n\n{first}")
    pages[27] = pages[27].replace(f"{lighthouse}\n\n", "")
    pages[48] = pages[48].replace("== Records ==", f"{cup}\n\n== Records ==")
    pages[234] = pages[234].replace("==Crossings==", "==Ferries==").replace("152 steps", "160 steps")
    pages[DISAMBIGUATION] = _with_text(pages[DISAMBIGUATION], f"{_text(pages[DISAMBIGUATION])}\n{{{{disambiguation}}}}")
    pages[RENAMED] = pages[RENAMED].replace("<title>Halvane pound<", "<title>Pound of Halvane<")
    redirect = pages[RETARGETED].replace("Halvane Standard Time", "Sellick and Ostermoor Railway")
    pages[RETARGETED] = redirect
    pages[LEFT_BEHIND] = _named(_aimed(redirect, "Pound of Halvane"), LEFT_BEHIND, "Halvane pound")
    pages[MERGED] = _named(_aimed(redirect, "Ostermoor Rovers F.C."), MERGED, "Tide Cup")
    article = pages[24]
    pages[SPLIT] = _named(_with_text(article, lighthouse), SPLIT, "Ferries of Halvane")
    pages[NEW] = _named(_with_text(article, "It is new."), NEW, "Nothing like it")
    pages[AGAIN] = _named(pages.pop(RECREATED), AGAIN, "North Halvane")
    pages[REPLACEMENT] = _named(pages.pop(REPLACED), REPLACEMENT, "Idris Pell (clockmaker)")
    del pages[DELETED]
    return {REPLACEMENT: f"Q{9_000_000 + REPLACED}", ITEM_GIVER: ""}


def _text(page: str) -> str:
    found = re.search(r"<text [^>]*>(.*)</text>", page, re.DOTALL)
    assert found is not None
    return found[1]


def _with_text(page: str, text: str) -> str:
    return page.replace(_text(page), text)


def _aimed(page: str, title: str) -> str:
    """Gives a redirect that leads to a title."""
    return page.replace("Sellick and Ostermoor Railway", title)


def _named(page: str, page_id: int, title: str) -> str:
    """Gives a page under another id and title."""
    page = re.sub(r"<title>.*</title>", f"<title>{title}</title>", page, count=1)
    return re.sub(r"^    <id>\d+</id>", f"    <id>{page_id}</id>", page, count=1, flags=re.MULTILINE)
