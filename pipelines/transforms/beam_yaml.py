"""The steps that kbsource.yaml provides for Beam YAML: transforms of this package for rows with named fields.

A wrong argument raises a SetupError or TypeError before the pipeline runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import apache_beam as beam
import pyarrow as pa
from msgspec import ValidationError, convert

from kbsource.columns import schema_of
from kbsource.errors import SetupError, told_fault
from kbsource.files import join
from kbsource.records import Page
from kbsource.release.kind import kind_of, read_content
from kbsource.release.layout import MANIFEST
from kbsource.release.reader import check_sizes
from mapping.kinds import KINDS, OWN_TABLES
from mapping.passages.corpus import PASSAGES
from mapping.passages.cut import CutOptions
from mapping.records import Alignment
from mapping.sources import all_sources
from pipelines.alignment.reading import check_files
from pipelines.options.map_dataset import DatasetOptions
from pipelines.transforms import align, pages, passages, tables
from pipelines.transforms.rows import AsChunks, AsRows, row_type

T = TypeVar("T")
_ALIGNMENT = schema_of(Alignment)


def read_pages(release: str, columns: Sequence[str] | None = None) -> Any:
    """Reads the pages of a release, or some of their columns. Raises SetupError in the same cases as
    ``pages.ReadPages``."""
    return pages.ReadPages(release, columns=_check_columns(columns, schema_of(Page).names)).rows()


def read_table(release: str, table: str, columns: Sequence[str] | None = None) -> Any:
    """Reads a table of any kind of release.

    Raises:
        SetupError: the release, table or column does not exist, or a file is missing or truncated.
    """
    path = join(release, MANIFEST)
    kind = kind_of(read_content(release), path, KINDS)
    manifest = kind.read(release)
    if not manifest.tables.get(table):
        raise SetupError(f"{release} has no table {table!r}; it has {', '.join(sorted(manifest.tables))}.")
    check_sizes(release, manifest.tables[table])
    paths = [join(release, entry.file) for entry in manifest.tables[table]]
    return tables.ReadTable(paths, _check_columns(columns, kind.tables[table].names)).rows()


class ReadEvidence(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Reads the evidence of a dataset, as rows of ``Alignment``. Applied to a pipeline.

    Unusable records are skipped. If there are too many, or a file cannot be read completely, the pipeline fails.

    Args:
        dataset: name of the dataset in ``kbsource map``.
        input: one path or several.
        folder: for the rows that are read; for one pipeline with one input only.
        split: ``train``, ``dev`` or ``test``.
        references: files with the evidence texts, if they are separate, such as FEVER's wiki-pages.
        max_rejects: maximum share of records that may be skipped.
    """

    def __init__(
        self,
        dataset: str,
        input: str | Sequence[str],
        folder: str,
        split: str = "dev",
        references: Sequence[str] = (),
        max_rejects: float = 0.01,
    ) -> None:
        super().__init__()
        if dataset not in all_sources():
            raise SetupError(
                f"ReadEvidence: there is no dataset {dataset!r}; choose one of {', '.join(sorted(all_sources()))}."
            )
        inputs = [input] if isinstance(input, str) else list(input)
        values = {"dataset": dataset, "inputs": inputs, "split": split, "references": list(references)}
        options = _checked({**values, "max_rejects": max_rejects}, DatasetOptions, "ReadEvidence")
        check_files(options)
        self._read = align.ReadEvidence([options], folder)

    def expand(self, begin: Any) -> Any:
        read = begin | self._read
        _ = read.faults | "fault" >> beam.MapTuple(_end)
        return read.evidence | "rows" >> AsRows(_ALIGNMENT)


def _end(_: int, fault: Mapping[str, Any]) -> None:
    raise told_fault(fault)


def align_pairs(release: str, title: str = "title", text: str = "text") -> Any:
    """Finds texts in pages: rows with a page title and a text -> rows of ``Alignment`` with the position of the text in
    the page.
    """
    return (
        "pairs" >> beam.Map(_pair, title=title, text=text)
        | "evidence" >> align.EvidenceOfPairs()
        | "resolve" >> align.ResolvePages(release)
        | "align" >> align.AlignSpans(release)
        | "rows" >> AsRows(_ALIGNMENT)
    )


def _pair(row: Any, title: str, text: str) -> tuple[str, str]:
    return getattr(row, title), getattr(row, text)


def align_spans(release: str) -> Any:
    """Finds the page and the span of each piece of evidence from ``ReadEvidence``.

    Rows of ``Alignment`` -> the same rows with page and outcome.
    """
    return (
        "chunks" >> AsChunks(_ALIGNMENT)
        | "resolve" >> align.ResolvePages(release)
        | "align" >> align.AlignSpans(release)
        | "rows" >> AsRows(_ALIGNMENT)
    )


class CutPassages(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Cuts pages into passages: rows of pages -> rows of passages. The other arguments are the fields of
    ``CutOptions``.
    """

    def __init__(self, lang: str = "en", **options: Any) -> None:
        super().__init__()
        self._cut = passages.CutPassages(_checked(options, CutOptions, "CutPassages"), lang=lang)

    def expand(self, rows: Any) -> Any:
        return (rows | "chunks" >> AsChunks(schema_of(Page)) | "cut" >> self._cut).chunks | "rows" >> AsRows(PASSAGES)


def write_table(table: str, output: str, order: Sequence[str], facts: Mapping[str, Any] | None = None) -> Any:
    """Writes a release with one table, whose name determines its columns.

    Rows -> the folder of the release.

    Args:
        table: a table of any kind of release; see docs/tables.md.
        output: new folder.
        order: fields that rows are sorted by; rows with equal values must be equal.
        facts: the inputs of the table, for the manifest.
    """
    if table not in OWN_TABLES.tables:
        raise SetupError(
            f"WriteTable: there is no table {table!r}; choose one of {', '.join(sorted(OWN_TABLES.tables))}."
        )
    return (
        "chunks" >> AsChunks(OWN_TABLES.tables[table], order=order)
        | "write" >> tables.WriteTable(table, output)
        | "commit" >> tables.CommitRelease(output, facts=facts or {})
        | "as rows" >> beam.Map(_folder).with_output_types(row_type(pa.schema({"folder": pa.string()})))
    )


def _folder(path: str) -> beam.Row:
    return beam.Row(folder=path)


def _check_columns(columns: Sequence[str] | None, names: Sequence[str]) -> Sequence[str] | None:
    if odd := [column for column in columns or () if column not in names]:
        raise SetupError(f"There is no column {odd[0]!r}; the columns are {', '.join(names)}.")
    return columns


def _checked(values: Mapping[str, Any], type_: type[T], step: str) -> T:
    """Returns arguments as options.

    Raises:
        SetupError: an argument is unknown or has an invalid value.
    """
    if odd := sorted(set(values) - {field.name for field in fields(type_)}):  # type: ignore[arg-type]
        raise SetupError(f"{step} has no argument {odd[0]!r}.")
    try:
        return convert(dict(values), type_)
    except ValidationError as error:
        raise SetupError(f"{step}: {error}.") from error
