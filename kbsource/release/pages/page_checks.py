"""The laws of pages checked on Arrow columns, a row group at a time, without a Python object per row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.index.title_index import TitleIndex
from kbsource.release.pages.laws import CONTROLS

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Fault = Callable[[str, str, int], None]
"""Takes a rule, an example, and the number of cases."""


class _Lists(NamedTuple):
    """A list column taken apart: length of each list, the list each item is in, and the items."""

    lengths: Ints
    parent: Ints
    items: Any


@dataclass(slots=True)
class PageColumns:
    """What one row group holds that the whole release is checked by."""

    page_ids: Ints
    qids: Any
    parse_statuses: dict[str, int]
    n_anchors: int
    template_uses: dict[str, int]


def check_pages(batch: pa.RecordBatch, index: TitleIndex | None, fault: Fault) -> PageColumns:
    """Checks every law that one row group can break, and gives what the whole release is checked by.

    Args:
        batch: pages as stored.
        index: the release's title index; without it what pages say of each other is not checked.
        fault: called for each rule that is broken.
    """
    page_ids = batch["page_id"].to_numpy()
    elements = _lists(batch["elements"])
    texts = elements.items.field("text")
    _check_elements(elements, texts, page_ids, fault)
    _check_controls(batch, texts, elements.parent, page_ids, fault)
    _check_categories(batch, page_ids, fault)
    n_anchors = _check_anchors(_lists(batch["anchors"]), elements, texts, page_ids, fault)
    links = [_lists(batch["anchors"]).items]
    for name, path in (("tables", ("rows", "", "")), ("infoboxes", ("fields", ""))):
        outer = _lists(batch[name])
        places = outer.items.field("element").to_numpy()
        _report(
            (places < 0) | (places >= elements.lengths[outer.parent]),
            page_ids[outer.parent],
            fault,
            "page_law",
            name,
        )
        cells = outer.items.field(path[0])
        for _ in path[1:]:
            cells = cells.flatten()
        links.append(_check_links(cells, name, fault))
    if index is not None:
        _check_titles(batch, index, fault)
        for link in links:
            _check_targets(link, index, fault)
    statuses = pc.value_counts(batch["parse_status"]).to_pylist()
    by_status = {one["values"]: one["counts"] for one in statuses}
    uses = uses_by_outcome(pa.RecordBatch.from_struct_array(batch["templates"].flatten()))
    return PageColumns(page_ids, batch["qid"], by_status, n_anchors, uses)


def uses_by_outcome(templates: pa.RecordBatch) -> dict[str, int]:
    """Gives the uses of templates by their outcome."""
    grouped = pa.Table.from_batches([templates]).group_by("outcome", use_threads=False).aggregate([("uses", "sum")])
    return dict(zip(*(grouped[name].to_pylist() for name in ("outcome", "uses_sum")), strict=True))


def _lists(array: pa.Array) -> _Lists:
    lengths = np.diff(array.offsets.to_numpy()).astype(np.int64)
    return _Lists(lengths, np.repeat(np.arange(len(lengths)), lengths), array.flatten())


def _report(broken: Mask, page_ids: Ints, fault: Fault, rule: str, what: str) -> None:
    if broken.any():
        fault(rule, f"page {page_ids[int(np.argmax(broken))]}: {what}", int(np.count_nonzero(broken)))


def _check_elements(elements: _Lists, texts: pa.Array, page_ids: Ints, fault: Fault) -> None:
    _report(elements.lengths == 0, page_ids, fault, "page_law", "no elements")
    is_title = pc.equal(elements.items.field("kind"), "title").to_numpy(zero_copy_only=False)
    is_first = np.ones(len(is_title), np.bool_)
    is_first[1:] = elements.parent[1:] != elements.parent[:-1]
    own = page_ids[elements.parent]
    _report(is_title != is_first, own, fault, "page_law", "a title and element 0 are not the same")
    newlines = pc.match_substring(texts, "\n").to_numpy(zero_copy_only=False)
    _report(newlines, own, fault, "page_law", "a newline in an element")


def _check_controls(batch: pa.RecordBatch, texts: pa.Array, parent: Ints, page_ids: Ints, fault: Fault) -> None:
    """Checks that no stored text has a character that no XML holds."""
    templates, categories = _lists(batch["templates"]), _lists(batch["categories"])
    found = [
        (texts, parent, "an element"),
        (templates.items.field("name"), templates.parent, "a template's name"),
        (categories.items, categories.parent, "a category"),
    ]
    infoboxes, tables = _lists(batch["infoboxes"]), _lists(batch["tables"])
    fields, rows = _lists(infoboxes.items.field("fields")), _lists(tables.items.field("rows"))
    cells = _lists(rows.items)
    found += [
        (infoboxes.items.field("name"), infoboxes.parent, "an infobox's name"),
        (fields.items.field("name"), infoboxes.parent[fields.parent], "a field's name"),
        (fields.items.field("text"), infoboxes.parent[fields.parent], "a field"),
        (tables.items.field("caption"), tables.parent, "a caption"),
        (cells.items.field("text"), tables.parent[rows.parent[cells.parent]], "a cell"),
    ]
    for strings, pages, what in found:
        broken = pc.match_substring_regex(strings, CONTROLS.pattern).fill_null(False).to_numpy(zero_copy_only=False)
        _report(broken, page_ids[pages], fault, "page_law", f"a control character in {what}")


def _check_categories(batch: pa.RecordBatch, page_ids: Ints, fault: Fault) -> None:
    every, made = (_lists(batch[name]) for name in ("categories", "template_categories"))
    keys, known = (
        pc.binary_join_element_wise(pa.array(names.parent).cast(pa.string()), names.items, "\n")
        for names in (made, every)
    )
    is_known = pc.is_in(keys, value_set=known).to_numpy(zero_copy_only=False)
    what = "a category of a template is no category of the page"
    _report(~is_known, page_ids[made.parent], fault, "page_law", what)


def _check_anchors(anchors: _Lists, elements: _Lists, texts: pa.Array, page_ids: Ints, fault: Fault) -> int:
    number, start, end = (anchors.items.field(name).to_numpy() for name in ("element", "start", "end"))
    own = page_ids[anchors.parent]
    exists = (number >= 0) & (number < elements.lengths[anchors.parent])
    _report(~exists, own, fault, "offset_law", "an anchor in no element")
    first = np.cumsum(elements.lengths) - elements.lengths
    where = np.flatnonzero(exists)
    holds = spans_hold(
        texts,
        first[anchors.parent[where]] + number[where],
        start[where],
        end[where],
        claimed=anchors.items.field("text").take(pa.array(where)),
    )
    _report(~holds, own[where], fault, "offset_law", "an anchor whose text is not at its offsets")
    is_next = anchors.parent[1:] == anchors.parent[:-1]
    is_before = (number[1:] < number[:-1]) | ((number[1:] == number[:-1]) & (start[1:] < start[:-1]))
    _report(is_next & is_before, own[1:], fault, "page_law", "anchors out of order")
    return len(number)


def spans_hold(texts: pa.Array, which: Ints, start: Ints, end: Ints, *, claimed: pa.Array) -> Mask:
    """Says of each span whether ``texts[which][start:end] == claimed``, in code points and in range."""
    _, data = _buffers(texts)
    claimed_offsets, claimed_data = _buffers(claimed)
    n_points = pc.utf8_length(texts).to_numpy(zero_copy_only=False)
    points_before = np.concatenate([[0], np.cumsum(n_points, dtype=np.int64)])
    holds: Mask = (start >= 0) & (start <= end) & (end <= n_points[which])
    n_bytes = np.diff(claimed_offsets)
    at = np.flatnonzero(holds)
    begin = points_before[which[at]] + start[at]
    first, stop = _byte_places(data, np.stack([begin, begin + end[at] - start[at]]))
    holds[at] = stop - first == n_bytes[at]
    is_same_size = holds[at]
    at, first = at[is_same_size], first[is_same_size]
    sizes = n_bytes[at]
    ends = np.cumsum(sizes)
    inside = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)
    found = data[np.repeat(first, sizes) + inside]
    wanted = claimed_data[np.repeat(claimed_offsets[at], sizes) + inside]
    holds[at[np.searchsorted(ends, np.flatnonzero(found != wanted), side="right")]] = False
    return holds


def _byte_places(data: npt.NDArray[np.uint8], points: Ints) -> Ints:
    """Gives the byte at which each code point of a text begins; the end of the text counts as one."""
    lead_at = np.flatnonzero((data & 0xC0) != 0x80)
    if len(lead_at) == len(data):
        return points
    return np.where(points == len(lead_at), len(data), lead_at[np.minimum(points, len(lead_at) - 1)])


def _buffers(strings: pa.Array) -> tuple[Ints, npt.NDArray[np.uint8]]:
    """Gives byte offsets (from 0, one more than strings) and the bytes of a string array."""
    _, offsets, data = strings.buffers()
    own = np.frombuffer(offsets, np.int32)[strings.offset :][: len(strings) + 1].astype(np.int64)
    content = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return own - own[0], content[own[0] : own[-1]]


def _check_links(cells: pa.Array, name: str, fault: Fault) -> Any:
    """Checks the links of cells or infobox fields, and gives them."""
    links = _lists(cells.field("links"))
    lengths = pc.utf8_length(cells.field("text")).to_numpy()[links.parent]
    start, end = links.items.field("start").to_numpy(), links.items.field("end").to_numpy()
    broken = (start < 0) | (start > end) | (end > lengths)
    if broken.any():
        title = links.items.field("target_title")[int(np.argmax(broken))].as_py()
        fault("offset_law", f"a link to {title!r} outside its text in {name}", int(np.count_nonzero(broken)))
    return links.items


def _check_targets(links: pa.Array, index: TitleIndex, fault: Fault) -> None:
    """Checks that every target with a page id is an article, by its own title."""
    ids = links.field("target_page_id")
    where = np.flatnonzero(pc.is_valid(ids).to_numpy(zero_copy_only=False))
    wanted = ids.take(pa.array(where)).to_numpy()
    rows = index.article_rows(wanted)
    _report(rows < 0, wanted, fault, "dangling_target", "linked to, but no article of the release")
    where, wanted, rows = where[rows >= 0], wanted[rows >= 0], rows[rows >= 0]
    titles = links.field("target_title").take(pa.array(where))
    differs = pc.not_equal(titles, index.titles_at(rows)).to_numpy(zero_copy_only=False)
    _report(differs, wanted, fault, "target_title", "linked to under another title than its own")


def _check_titles(batch: pa.RecordBatch, index: TitleIndex, fault: Fault) -> None:
    """Checks pages against the index: same titles, same redirects."""
    page_ids = batch["page_id"].to_numpy()
    rows = index.article_rows(page_ids)
    _report(rows < 0, page_ids, fault, "index_disagrees", "not in the title index")
    known = np.flatnonzero(rows >= 0)
    titles = batch["title"].take(pa.array(known))
    differs = pc.not_equal(titles, index.titles_at(rows[known])).to_numpy(zero_copy_only=False)
    _report(differs, page_ids[known], fault, "index_disagrees", "another title than in the title index")
    for page_id, redirects in zip(page_ids.tolist(), batch["redirects"].to_pylist(), strict=True):
        if tuple(redirects) != index.redirects_to(page_id):
            fault("redirects_disagree", f"page {page_id}: other redirects than the title index has", 1)
