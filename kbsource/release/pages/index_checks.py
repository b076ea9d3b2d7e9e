"""Whether a title index is whole in itself, before anything is looked up in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kbsource.index.mapped_files import title_keys
from kbsource.index.title_index import ARTICLE, ARTICLES_FILE, STATUSES, TITLES_FILE, TitleIndex
from kbsource.release.layout import index_path


def index_faults(index: TitleIndex) -> list[tuple[str, str]]:
    """Gives (file, what is wrong) of every way in which an index contradicts itself.

    Keys are the titles' hashes and ascend; rows named are rows that exist; chains end at articles; every article
    is listed once, by ascending page id, under its own row. Memory: 5 bytes per title and 20 per article.
    """
    titles, articles = index_path(TITLES_FILE), index_path(ARTICLES_FILE)
    statuses = _joined([batch["status"].to_numpy() for batch in index.title_batches()], np.int8)
    if np.any((statuses < 0) | (statuses >= len(STATUSES))):
        return [(titles, "a status that is none")]
    faults = []
    last = np.zeros(1, np.uint64)
    start = 0
    for batch in index.title_batches():
        keys = batch["key"].to_numpy()
        before = np.concatenate([last, keys[:-1]])
        if not np.array_equal(keys, title_keys(batch["title"])) or np.any(keys < before):
            faults.append((titles, "keys that are not the titles', or out of order"))
        last = keys[-1:]
        rows = np.arange(start, start + batch.num_rows)
        start += batch.num_rows
        if not _leads_on(batch, rows, statuses):
            faults.append((titles, "a redirect that ends at no article, or an article elsewhere"))
    rows = _joined([batch["row"].to_numpy() for batch in index.article_batches()], np.int32)
    ids = _joined([batch["page_id"].to_numpy() for batch in index.article_batches()], np.int64)
    if not np.array_equal(np.sort(rows), np.flatnonzero(statuses == ARTICLE)) or np.any(ids[1:] <= ids[:-1]):
        faults.append((articles, "other articles than the titles have, or out of order"))
    for batch in index.article_batches():
        listed = batch["redirects"].flatten().to_numpy()
        if np.any((listed < 0) | (listed >= len(statuses))):
            faults.append((articles, "a redirect that is in no row"))
    return faults


def _leads_on(batch: Any, rows: npt.NDArray[np.int64], statuses: npt.NDArray[np.int8]) -> bool:
    """Says whether the rows of a batch lead to rows that exist, and end where they say."""
    is_article = batch["status"].to_numpy() == ARTICLE
    target, final = batch["target_row"].to_numpy(), batch["final_row"].to_numpy()
    if np.any((target < -1) | (target >= len(statuses)) | (final < -1) | (final >= len(statuses))):
        return False
    return bool(np.all(statuses[final[final >= 0]] == ARTICLE) and np.all(final[is_article] == rows[is_article]))


def _joined(parts: list[npt.NDArray[Any]], type_: type[np.generic]) -> npt.NDArray[Any]:
    return np.concatenate([*parts, np.empty(0, type_)])
