"""The templates and modules of a dump, memory-mapped: text by name, with redirects followed.

The store has two uncompressed Arrow IPC files, with version ``FORMAT`` in their schema metadata.

``definitions.arrow`` has the ``text`` of every page, in the order of the dump. The text of a redirect is the name of
its target.

``definition-keys.arrow`` is one batch sorted by ``key`` (``identity.title_hash`` of ``definition_name``). It has a row
for every name that resolves to a text, and after it a second row if the name is a redirect. In the first row, ``place``
is the position of the text in definitions.arrow, as batch << 32 | row; for a redirect, the position of its target's
text. In the second row, ``place`` is the bitwise complement of the position of the target's name, also if there is no
such page. ``text_hash`` is ``identity.title_hash`` of the text at the position. This file is written last.

Memory: the mapped files, and 48 bytes per page while the store is built.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.columns import numbers
from kbsource.identity import title_hash
from kbsource.index.mapped_files import MappedFile, MappedStrings, title_keys, write_index_file
from kbsource.site import Site
from kbsource.titles import clean_title, upper_first
from kbsource.wikitext.dependencies import module_name, template_name

FORMAT = "kbsource-definitions-3"
TEXTS_FILE = "definitions.arrow"
KEYS_FILE = "definition-keys.arrow"
TEMPLATE, MODULE = 10, 828
MAX_REDIRECTS = 2
"""Number of redirects followed to reach a template. Source: Parser::statelessFetchTemplate of MediaWiki."""

DEFINITION_ROWS = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("revision_id", pa.int64(), nullable=False),
        pa.field("page_id", pa.int64(), nullable=False),
        pa.field("target_name", pa.string()),
        pa.field("text", pa.string(), nullable=False),
    ]
)
"""Columns of the rows that the scan of a dump yields for templates and modules. ``target_name`` is null if the page is
no redirect.
"""

TEXTS_SCHEMA = pa.schema([DEFINITION_ROWS.field("text")], metadata={"format": FORMAT})
KEYS_SCHEMA = pa.schema(
    [
        pa.field("key", pa.uint64(), nullable=False),
        pa.field("place", pa.int64(), nullable=False),
        pa.field("text_hash", pa.uint64(), nullable=False),
    ],
    metadata={"format": FORMAT},
)


def definition_name(namespace: int, title: str, lang: str) -> str:
    """Returns the name of a page in the store, from its title with the wiki's own prefix for the namespace.

    >>> definition_name(10, "Vorlage:lang_ru", "de")
    '10:Lang ru'
    """
    return f"{namespace}:{upper_first(clean_title(title.partition(':')[2]), lang)}"


def build_definitions(batches: Iterable[pa.RecordBatch], folder: str) -> int:
    """Writes the store of a dump to a local folder. If several pages have the same name, the newest revision is used.

    Args:
        batches: batches of schema ``DEFINITION_ROWS``, in the order of the dump.

    Returns:
        The number of names that resolve to a text, and of redirects.
    """
    os.makedirs(folder, exist_ok=True)
    rows = _Rows()
    write_index_file(os.path.join(folder, TEXTS_FILE), TEXTS_SCHEMA, rows.texts(batches))
    table = pa.RecordBatch.from_arrays([pa.array(column) for column in rows.resolved()], schema=KEYS_SCHEMA)
    write_index_file(os.path.join(folder, KEYS_FILE), KEYS_SCHEMA, [table])
    return int(table.num_rows)


class _Rows:
    """Collects the hashes and numbers of rows until all rows are read."""

    def __init__(self) -> None:
        self._columns: list[tuple[npt.NDArray[np.generic], ...]] = []

    def texts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Iterates over the texts of the batches."""
        for number, batch in enumerate(batches):
            place = (number << 32) + np.arange(batch.num_rows, dtype=np.int64)
            is_redirect = batch["target_name"].is_valid().to_numpy(zero_copy_only=False)
            target = title_keys(batch["target_name"].fill_null(""))
            order = [batch[name].to_numpy() for name in ("revision_id", "page_id")]
            texts = pc.coalesce(batch["target_name"], batch["text"])
            if batch.num_rows:
                self._columns.append((title_keys(batch["name"]), place, title_keys(texts), is_redirect, target, *order))
            yield pa.RecordBatch.from_arrays([texts], schema=TEXTS_SCHEMA)

    def resolved(self) -> tuple[npt.NDArray[np.generic], ...]:
        """Returns the columns of the rows in definition-keys.arrow."""
        if not self._columns:
            return np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint64)
        columns = (np.concatenate(column) for column in zip(*self._columns, strict=True))
        key, place, texts, is_redirect, target, revision_id, page_id = columns
        order = np.lexsort((page_id, revision_id, key))
        order = order[np.append(key[order][1:] != key[order][:-1], True)]
        key, place, texts, is_redirect, target = (column[order] for column in (key, place, texts, is_redirect, target))
        at = np.searchsorted(key, target).clip(max=len(key) - 1)
        next_row = np.where(is_redirect & (key[at] == target), at, -1)
        # the page at the end of redirects from a name, and the last redirect, which names this page
        final = last = np.arange(len(key))
        for _ in range(MAX_REDIRECTS):
            is_followed = (final >= 0) & is_redirect[final]
            last = np.where(is_followed, final, last)
            final = np.where(is_followed, next_row[final], final)
        is_found = (final >= 0) & ~is_redirect[final]
        found = (
            np.concatenate([key[is_found], key[is_redirect]]),
            np.concatenate([place[final[is_found]], ~place[last[is_redirect]]]),
            np.concatenate([texts[final[is_found]], texts[last[is_redirect]]]),
        )
        in_order = np.argsort(found[0], kind="stable")
        return tuple(column[in_order] for column in found)


class DefinitionStore:
    """Looks up definitions in a store. Processes that open the same store share the mapped memory.

    Raises:
        SetupError: a file is missing, damaged, or of another version.
    """

    def __init__(self, folder: str, site: Site) -> None:
        texts = MappedFile(os.path.join(folder, TEXTS_FILE), TEXTS_SCHEMA)
        self._texts = [MappedStrings(batch["text"], texts) for batch in texts.batches]
        (keys,) = MappedFile(os.path.join(folder, KEYS_FILE), KEYS_SCHEMA).batches
        self._keys, self._places = numbers(keys["key"]), numbers(keys["place"])
        self._site = site

    def __len__(self) -> int:
        """Number of names that resolve to a text."""
        return sum(place >= 0 for place in self._places)

    def source(self, name: str) -> str | None:
        """Returns the wikitext of a template by its normalised name, after redirects; None if there is no such
        template.
        """
        return self._text(template_name(name, self._site))

    def target(self, name: str) -> str:
        """Returns the normalised name of a template after redirects. If the name is not a redirect to a template,
        returns it unchanged.
        """
        found = self._text(template_name(name, self._site), is_redirect=True) or ""
        namespace, _, target = found.partition(":")
        return target if namespace == str(TEMPLATE) and target else name

    def module(self, name: str) -> str | None:
        """Returns the source of a module by its name without prefix; None if there is no such module."""
        return self._text(module_name(name, self._site))

    def _text(self, name: str, *, is_redirect: bool = False) -> str | None:
        key = title_hash(name)
        for at in range(bisect_left(self._keys, key), len(self._keys)):
            if self._keys[at] != key:
                break
            place = self._places[at]
            if (place < 0) == is_redirect:
                place = ~place if is_redirect else place
                return self._texts[place >> 32].text(place & 0xFFFFFFFF)
        return None
