"""Arrow schemas of entity-linking data, with the meaning of each column, and of the rows on their way there."""

from __future__ import annotations

import pyarrow as pa

from kbsource.schema import REJECTED, field

ALIASES = pa.schema(
    [
        field("mention", pa.string(), "text of links as written, blanks normalised"),
        field("page_id", pa.int64(), "page that they lead to"),
        field("title", pa.string(), "title of that page"),
        field("count", pa.int64(), "links with this text to this page"),
        field("prior", pa.float64(), "P(page given mention): its share of the links with this text"),
        field(
            "link_probability",
            pa.float64(),
            "P(link given mention), the same in every row of a mention: of the times that it stands in the running "
            "text of pages that link it, the share that are links",
        ),
    ]
)
LINKS = pa.schema(
    [
        field("record_id", pa.string(), "id of the record: blink-train-0, blink-dev-0, …"),
        field("page_id", pa.int64(), "page that the link stands in"),
        field("element", pa.int32(), "number of the element of that page"),
        field("start_char", pa.int32(), "first code point of the mention in that element's text"),
        field("end_char", pa.int32(), "one past its last code point"),
        field("target_page_id", pa.int64(), "page that the link leads to"),
    ]
)
TABLES: dict[str, pa.Schema] = {"aliases": ALIASES, "links": LINKS}
"""Every table that entity-linking data alone have, by folder name."""
ALL_TABLES = {**TABLES, "rejected": REJECTED}

PLACE = ("place", "link")
KEYS = pa.schema(
    [
        ("hash", pa.int64()),
        ("more_hash", pa.int64()),
        ("place", pa.int64()),
        ("link", pa.int32()),
        ("bucket", pa.int16()),
    ]
)
"""A link as it is sampled: the hash of what its record says, where it stands, and the bucket of its page."""
KEY_ORDER = ("hash", "more_hash", *PLACE)
CHOSEN = pa.schema([KEYS.field(name) for name in PLACE])
MENTIONS = pa.schema(
    [
        ("prefix", pa.int64()),
        ("more_prefix", pa.int64()),
        ("mention", pa.string()),
        ("page_id", pa.int64()),
        ("title", pa.string()),
        ("count", pa.int64()),
        ("occurrences", pa.int64()),
    ]
)
"""Links with one text to one page. The prefix is the first bytes of the text as numbers in the same order; occurrences
are of the text, and stand in one row of it."""
MENTION_ORDER = ("prefix", "more_prefix", "page_id")
LINES = pa.schema([*LINKS, ("is_dev", pa.bool_()), ("line", pa.binary())])
"""Links with their records as lines."""
