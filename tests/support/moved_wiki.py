"""The mini-wiki and its Wikidata a month later: edited so that facts changed, stayed, appeared and disappeared."""

from __future__ import annotations

from pathlib import Path

from tests.support import make_demo, mini_wiki
from tests.support.make_demo_wikidata import SOURCE, wikidata_dump

DATE = "20260201"

_STATEMENTS = {
    # The capital is another town.
    '"P31 Q9500011", "P36 Q9000015"': '"P31 Q9500011", "P36 Q9000018"',
    # A newer number is preferred.
    '"+P1082 61390 | P585 2021", "P1082 48203': '"P1082 61390 | P585 2021", "+P1082 70001 | P585 2025", "P1082 48203',
    # What was not known before, and stands in the page now; of another, in no page.
    '"P7153 Q9000015", "P1082 61"]': '"P7153 Q9000015", "P1082 61", "P37 Q9000114", "P571 1450"]',
    # A statement is taken out, another deprecated, a third has ended.
    '"P1174 118000 | P585 2019", "P2124 640"': '"P1174 118000 | P585 2019"',
    '"P571 1906-02", "P2124 3121"': '"-P571 1906-02", "P2124 3121"',
    '"+P39 Q9600011 | P580 2018-05-04"': '"+P39 Q9600011 | P580 2018-05-04 | P582 2026"',
    # One answer more, which the page does not name.
    '"P710 Q9600002", "P710 Q9000012"': '"P710 Q9600002", "P710 Q9000012", "P710 Q9000114"',
    # An item has another name.
    'label = "University of Port Sellick"': 'label = "Sellick University"',
    # An item is merged into a new one: subject and answer of statements.
    "Q9000144": "Q9700001",
    # Two pages have other titles, or are gone; the items stay.
    'page = "Sellick Gazette"': 'page = "Gazette of Port Sellick"',
    'page = "Kelp weaving"\n': "",
}
_PAGES = {
    "The capital is [[Port Sellick]].": "The capital is [[Ostermoor]].",
    "61,390": "70,001",
    "'''Fennick Island''' (''Fenneka'')": "Everyone on the island speaks [[Halvanic language|Halvanic]]. "
    "'''Fennick Island''' (''Fenneka'')",
    "It belongs to the [[University of Port Sellick]].": "It was built by hand. "
    "It belongs to the [[University of Port Sellick]].",
    "<title>Sellick Gazette<": "<title>Gazette of Port Sellick<",
}


def write_moved(folder: Path) -> tuple[Path, Path]:
    """Writes the dump of the wiki and that of Wikidata into a folder and gives their paths."""
    wikidata = folder / f"miniwikidata-{DATE}-all.json.bz2"
    wikidata.write_bytes(wikidata_dump(_edited(SOURCE.read_text("utf-8"), _STATEMENTS)))
    head, pages, foot = make_demo.split_xml(mini_wiki.XML.read_bytes())
    kept = [page for page in pages if make_demo.parse_page(page).title != "Kelp weaving"]
    text = b"".join([head, *kept, foot]).decode("utf-8")
    dump = folder / f"miniwiki-{DATE}-pages-articles.xml"
    dump.write_bytes(make_demo.stamp(_edited(text, _PAGES).encode("utf-8")))
    return dump, wikidata


def _edited(text: str, edits: dict[str, str]) -> str:
    for before, after in edits.items():
        assert before in text, before
        text = text.replace(before, after)
    return text
