"""Releases of the mini-wiki and its Wikidata of two days."""

from __future__ import annotations

from pathlib import Path

from tests.support import mini_wikidata
from tests.support.builds import build_mini
from tests.support.entities import make
from tests.support.moved_wiki import write_moved


def build_moved(folder: Path) -> tuple[Path, Path]:
    """Makes the releases of the later day in a folder: of the wiki, ``later``, and of Wikidata, ``later-wikidata``."""
    dump, wikidata = write_moved(folder)
    later, later_wikidata = folder / "later", folder / "later-wikidata"
    make(wikidata, output=later_wikidata, max_rejects=mini_wikidata.MAX_REJECTS)
    build_mini(later, dump=dump, page_props=None, wikidata=str(later_wikidata))
    return later, later_wikidata
