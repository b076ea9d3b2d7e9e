"""Arrow schemas of a diff of two releases, with the meaning of each column, and what its values mean."""

from __future__ import annotations

import pyarrow as pa

from kbsource.schema import field

PAGE_OUTCOMES = {
    "unchanged": "same id, same title, same text",
    "changed": "same id and title, another text",
    "renamed": "same id, another title",
    "recreated": "the id is gone; a new page has the same item, or else the same title",
    "disambiguation": "became a disambiguation page; the first outcome that holds is given, in this order: "
    "disambiguation, recreated, renamed, changed, unchanged",
    "merged": "its id is now that of a redirect, or else its title is one, that leads to a page",
    "gone": "none of these: deleted, rejected by the build, or its title leads nowhere or is another page's",
    "split": "a new page whose id was that of a redirect, or else whose title was one, that led to a page",
    "added": "any other new page",
}
"""What became of a page. Of a page that is in both releases the text may have changed whatever its outcome is."""

SPAN_OUTCOMES = {
    "same": "the same text in its order",
    "moved": "the same text, elsewhere in the page",
    "part": "the same text, as a part of a longer element, or a part of it as an element by itself",
    "edited": "an element that is like it, by at least half of its words",
    "other_page": "the same text in another page, which did not have it",
    "gone": "none of these",
}
"""What became of a piece of an element. In all but the last one the new piece exists; in all but edited it is equal."""

SECTION_OUTCOMES = {
    "same": "same headings, same texts",
    "changed": "same headings, other texts",
    "moved": "in another order, or under other headings above its own",
    "renamed": "another heading over text of which it has at least half",
    "gone": "none of these",
    "added": "a section of the new page that is none of the old one's",
}
"""What became of a section; of one that moved or was renamed the texts may have changed too."""

REDIRECT_OUTCOMES = {
    "retargeted": "leads elsewhere than to where its page is now",
    "added": "the title was not there",
    "gone": "the title is not there",
    "now_article": "the title is now that of a page",
    "was_article": "the title was that of a page",
}
"""What became of a redirect."""


def _either(name: str, type_: pa.DataType, description: str) -> list[pa.Field]:
    """Gives a column for the old page and for the new one."""
    return [field(f"{side}_{name}", type_, f"{description} of the {side} page", nullable=True) for side in _SIDES]


def _values(meanings: dict[str, str]) -> str:
    return " | ".join(meanings) + "; see docs/diff.md"


_SIDES = ("old", "new")
_OLD_PAGE = field("old_page_id", pa.int64(), "page of the old release")

PAGE_CHANGES = pa.schema(
    [
        field(
            "old_page_id", pa.int64(), "page of the old release; each has one row; null for new pages", nullable=True
        ),
        field(
            "new_page_id",
            pa.int64(),
            "page of the new release that it is now, or was merged into; each is named once but for merged",
            nullable=True,
        ),
        field("origin_page_id", pa.int64(), "of split: the old page that its redirect led to", nullable=True),
        *_either("title", pa.string(), "title"),
        *_either("qid", pa.string(), "item"),
        *_either("revision_id", pa.int64(), "revision"),
        *_either("chars", pa.int64(), "code points in all elements but the title"),
        field("outcome", pa.string(), _values(PAGE_OUTCOMES)),
        field("matched_by", pa.string(), "page_id | qid | title | redirect; null for gone and added", nullable=True),
        field(
            "kept", pa.float64(), "share of old_chars that stands in the new page; null for new pages", nullable=True
        ),
        field(
            "text_changed",
            pa.bool_(),
            "texts of the elements behind the title differ; null where one page is not",
            nullable=True,
        ),
        field("title_changed", pa.bool_(), "titles differ; likewise", nullable=True),
        field("qid_moved", pa.bool_(), "the item of the old page is now another page's"),
        field("qid_page_id", pa.int64(), "page of the new release that has the item of the old page", nullable=True),
    ]
)
SECTION_CHANGES = pa.schema(
    [
        field("old_page_id", pa.int64(), "page of the old release, in both and with another text"),
        field("old_number", pa.int32(), "number of the section in the old page, 0 for the lead", nullable=True),
        field("old_section", pa.list_(pa.string()), "headings above it and its own, outermost first", nullable=True),
        field("new_page_id", pa.int64(), "what the page is now"),
        field("new_number", pa.int32(), "number of the section in the new page", nullable=True),
        field("new_section", pa.list_(pa.string()), "its headings there", nullable=True),
        field("outcome", pa.string(), _values(SECTION_OUTCOMES)),
        field(
            "kept",
            pa.float64(),
            "share of its code points that stand in the new section; null for added",
            nullable=True,
        ),
    ]
)
SPAN_CHANGES = pa.schema(
    [
        _OLD_PAGE,
        field("old_element", pa.int32(), "element of it; the pieces of one cover it in order"),
        field("old_start", pa.int32(), "first code point of the piece"),
        field("old_end", pa.int32(), "one past its last code point"),
        field("new_page_id", pa.int64(), "page of the new release; null for gone", nullable=True),
        field("new_element", pa.int32(), "element of it", nullable=True),
        field("new_start", pa.int32(), "first code point there", nullable=True),
        field("new_end", pa.int32(), "one past its last code point", nullable=True),
        field("outcome", pa.string(), _values(SPAN_OUTCOMES)),
        field("score", pa.float64(), "likeness by words, 1.0 for the same text; null for gone", nullable=True),
    ]
)
REDIRECT_CHANGES = pa.schema(
    [
        field("title", pa.string(), "title of the redirect; unique"),
        field("old_redirect_id", pa.int64(), "its page id in the old release", nullable=True),
        field("new_redirect_id", pa.int64(), "its page id in the new release", nullable=True),
        field("old_target_page_id", pa.int64(), "page that it led to", nullable=True),
        field("new_target_page_id", pa.int64(), "page that it leads to", nullable=True),
        field("outcome", pa.string(), _values(REDIRECT_OUTCOMES)),
    ]
)

TABLES: dict[str, pa.Schema] = {
    "page_changes": PAGE_CHANGES,
    "section_changes": SECTION_CHANGES,
    "span_changes": SPAN_CHANGES,
    "redirect_changes": REDIRECT_CHANGES,
}
"""Every table of a diff, by folder name."""
