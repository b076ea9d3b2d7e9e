"""Where the embedded mini-wiki is and what is true of it, for end-to-end tests.

The numbers are counted by hand and by tests/test_kbsource/test_demo.py, never by the code that they are
used to test.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parents[2] / "kbsource" / "demo"
XML = FOLDER / "miniwiki-20260101-pages-articles.xml"
MULTISTREAM = FOLDER / "miniwiki-20260101-pages-articles-multistream.xml.bz2"
INDEX = FOLDER / "miniwiki-20260101-pages-articles-multistream-index.txt.bz2"
PAGE_PROPS = FOLDER / "miniwiki-20260101-page_props.sql.gz"
VIEWS = FOLDER / "miniviews-202512-user"
MD5SUMS = FOLDER / "miniwiki-20260101-md5sums.txt"
SHA1SUMS = FOLDER / "miniwiki-20260101-sha1sums.txt"

# Two of the pages cannot be used, so a build needs a rejection ceiling above their share.
MAX_REJECTS = 0.05

BROKEN_PAGE_ID = 100
"""Salt tax riots: ``</username>`` and ``</contributor>`` are crossed."""
DELETED_TEXT_PAGE_ID = 165
"""Ferry fire of 1961: ``<text deleted="deleted" />``."""
REJECTED_PAGE_IDS = (BROKEN_PAGE_ID, DELETED_TEXT_PAGE_ID)

N_PAGES = 103
N_ARTICLES = 66
N_REDIRECTS = 20
N_OTHER_NAMESPACES = 15


class RedirectFact(NamedTuple):
    """What a redirect must come to: its status, hops, section, and the article at the end of its chain.

    ``hops`` counts the redirects followed up to the article, and is None where there is no article.
    """

    status: str
    hops: int | None = None
    fragment: str | None = None
    final_title: str | None = None


REDIRECTS = {
    "Halvane": RedirectFact("ok", 1, None, "Halvane Isles"),
    "The Halvanes": RedirectFact("double", 2, None, "Halvane Isles"),
    "Ferries of Halvane": RedirectFact("ok", 1, "Transport", "Halvane Isles"),
    "Sellick": RedirectFact("ok", 1, None, "Port Sellick"),
    "Rovers": RedirectFact("ok", 1, None, "Ostermoor Rovers F.C."),
    "Old Mole": RedirectFact("loop"),
    "New Mole": RedirectFact("loop"),
    "Mole": RedirectFact("loop"),
    "Round and Round": RedirectFact("loop"),
    "Lost Lagoon": RedirectFact("missing_target"),
    "Lagoon of the Lost": RedirectFact("missing_target"),
    "Towns of Halvane": RedirectFact("cross_namespace"),
    "About": RedirectFact("cross_namespace"),
    "Elodie Vauquelin-Marr": RedirectFact("ok", 1, None, "Élodie Vauquelin-Marr"),
    "Miravel": RedirectFact("ok", 1, None, "Lake Miravel"),
    "The monster of Miravel": RedirectFact("double", 2, "Notes", "Lake Miravel"),
    "Lantern (disambiguation)": RedirectFact("ok", 1, None, "Lantern"),
    "Harp, tidal": RedirectFact("ok", 1, None, "Tidal harp"),
    "Pell and Daughters": RedirectFact("ok", 1, None, "Pell & Daughters"),
    "HST": RedirectFact("ok", 1, None, "Halvane Standard Time"),
}
N_REDIRECTS_BY_STATUS = {"ok": 10, "double": 2, "loop": 4, "missing_target": 2, "cross_namespace": 2}


QID_OWNER_PAGE_ID, QID_CLAIMANT_PAGE_ID = 237, 240
"""Both claim Q9000237 in page_props; an item belongs to the lowest page id, so the claimant gets none."""
