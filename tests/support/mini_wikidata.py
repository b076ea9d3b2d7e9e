"""Where the mini-Wikidata is and what is true of it; counted by hand."""

from __future__ import annotations

from tests.support.mini_wiki import FOLDER

DUMP = FOLDER / "miniwikidata-20260101-all.json.bz2"
AMBER_TYPES = FOLDER / "amber_types.json"
SITE = "miniwiki"

# One line is cut and one entity comes twice, so a run needs a rejection ceiling above their share.
MAX_REJECTS = 0.01
N_ITEMS, N_PROPERTIES, N_OTHERS = 157, 59, 1
REJECTED = {"duplicate_entity": 1, "malformed_json": 1}

ISLES, PORT_SELLICK, COMPOSER = "Q9000012", "Q9000015", "Q9000075"
TERRITORIAL_ENTITY, GEOGRAPHIC_ENTITY, ORGANIZATION = "Q9500005", "Q9500004", "Q9500022"
