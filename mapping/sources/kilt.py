"""Reads KILT files, so that their records can be moved from the knowledge source that they were made for to a new
release.

Source: the record form in section 3 of the KILT paper and in the published files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import orjson
from cyclopts import Parameter

from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, join
from kbsource.kilt import LEAD
from kbsource.records import BadRecord
from kbsource.release.layout import MANIFEST
from mapping.options import Share
from mapping.records import Evidence, Example, Output, PageKey, ReleasedExample
from mapping.search.numbering import Numbering, paragraphs_of
from mapping.sources.campaign import highlights_of
from mapping.sources.examples import Labels, Origin, RecordSource
from mapping.sources.raw_records import (
    Json,
    RawRecord,
    check_lines,
    digits_or_text,
    integer_at,
    is_integer,
    objects_at,
    optional_object,
    optional_objects,
    optional_text,
    text_at,
)
from mapping.sources.source import PARTIAL_EVIDENCE, Ownership, SourceOptions, check_names, references_option

if TYPE_CHECKING:
    from kbsource.lookup import KnowledgeSource

OldPage = tuple[list[str], list[str]]
"""The paragraphs of a page, beginning with the title, and the section of each, without newline."""

# A record of the released file begins with its id, so most records need not be parsed.
_ID_IN_FRONT = re.compile(rb'\{"_id": ?"([0-9]+)", ?"wikipedia_id": ?"\1"')
_ITEM_MARKER = re.compile(r"BULLET::::(?:-|\d+\.)\s*")
_N_TRIED = 20


@dataclass(frozen=True, slots=True)
class KiltOptions(SourceOptions):
    """Options of KILT files."""

    numbering: Annotated[Numbering, Parameter("--from-numbering")] = "kilt"
    """How --from-kb counts paragraphs."""
    max_misfits: Share = 0.05
    """Maximum share of spans that do not fit --from-kb: title or section differ, or the page is too short for the
    span.
    """


class Kilt(RecordSource[KiltOptions]):
    """Reads KILT files. The references are one release of this project, or one ``kilt_knowledgesource.json``.

    The text of a span is read from the old paragraphs. The keys of a span distinguish four forms:

    - with character offsets: the text between them;
    - from the annotation campaign, with ``meta.evidence_span`` and without offsets: the longest highlight;
    - with paragraphs only: the text of these paragraphs;
    - with a page only, as in entity linking: no text.

    Pages are identified by their id, which survives renaming. If the new snapshot does not have the id (of a page that
    was merged), the title is tried.
    """

    name = "kilt"
    summary = "Any KILT file, moved to your release from the knowledge source that it was made for"
    form = "a KILT file, one JSON object a line with id, input and output, a list of objects with answer and provenance"
    keys = frozenset({"id"})
    options_type = KiltOptions
    references = references_option("--from-kb", "Release or kilt_knowledgesource.json that the KILT file was made for.")
    hypothesis = "answer"
    ownership = Ownership(
        "KILT",
        "the authors of the data sets in KILT",
        "https://github.com/facebookresearch/KILT",
        note="Each of its data sets keeps its own licence.",
    )
    _release: KnowledgeSource | None = None
    _n_looked_up = 0
    _first_misfit = ""

    def id_of(self, record: Json) -> str:
        return digits_or_text(record, "id")

    def fits(self, path: str, record: Json) -> bool:
        if not super().fits(path, record):
            return False
        if "output" not in record:
            return self.split == "test" and ("input" in record or record.keys() <= {"id", "meta"})
        outputs = record["output"]
        return isinstance(outputs, list) and all(
            isinstance(output, dict) and ("provenance" in output or "answer" in output) and "evidence" not in output
            for output in outputs
        )

    def check_files(self) -> None:
        """See ``RecordSource.check_files``. If no references are given, checks that the first records do not need
        them."""
        for path in self.inputs.records:
            check_names([path], self.split)
            for raw in islice(self.raws(path), 0 if self._reference else _N_TRIED):
                with suppress(RecordError):
                    self._converted(None, Origin(raw))

    def check_references(self) -> None:
        if self._release_path is not None:
            from kbsource.lookup import KnowledgeSource  # dataset options are read without it

            KnowledgeSource.open(self._release_path).close()
        elif self._reference is not None:
            check_lines(
                self._reference,
                lambda record: {"wikipedia_id", "text"} <= record.keys() and isinstance(record["text"], list),
                expected="the folder of a finished release, or kilt_knowledgesource.json: one JSON object a line with"
                " wikipedia_id and text, a list of paragraphs",
            )

    def read(self) -> Iterator[Example | BadRecord]:
        """See ``Source.read``; also raises SetupError if too many spans do not fit the old knowledge source."""
        self._misfits = Counter[str]()
        if self._release_path is None:
            yield from super().read()
        else:
            from kbsource.lookup import KnowledgeSource

            with KnowledgeSource.open(self._release_path) as self._release:
                yield from super().read()
        n_misfits = self._misfits.total()
        if n_misfits > self.options.max_misfits * self._n_looked_up:
            by_kind = ", ".join(f"{count} {kind}" for kind, count in self._misfits.most_common())
            raise SetupError(
                f"{self._reference}: {n_misfits} of {self._n_looked_up} spans do not fit it ({by_kind}); the first is"
                f" {self._first_misfit}. Give the knowledge source that the file was made for with --from-kb, and how"
                " it counts paragraphs with --from-numbering; if it is the right one, raise --max-misfits."
            )

    def read_references(self, labels: Labels | None) -> Iterator[BadRecord]:
        return iter(()) if self._release is not None else super().read_references(labels)

    def reference(self, raw: RawRecord) -> tuple[str, Callable[[], bytes]]:
        """Returns the page id and paragraphs of a record of KILT's knowledge source."""
        found = _ID_IN_FRONT.match(raw.data)
        if found:
            return found[1].decode("ascii"), lambda: _texts(raw.parse_reference("a page"))
        record = raw.parse_reference("a page")
        return text_at(record, "wikipedia_id"), lambda: _texts(record)

    @property
    def _reference(self) -> str | None:
        if len(self.inputs.references) > 1:
            raise SetupError("a KILT file is made for one knowledge source; give one.")
        return next(iter(self.inputs.references), None)

    @property
    def _release_path(self) -> str | None:
        """Returns the reference if it is a release of this project; None for a file of KILT's own knowledge source."""
        path = self._reference
        return path if path is not None and Folder.of(join(path, MANIFEST)).exists() else None

    def example(self, record: Json, origin: Origin) -> ReleasedExample:
        """See ``RecordSource.example``. Evidence is in the order of the record's spans.

        Raises:
            RecordError: ``missing_field``, ``wrong_type``, ``empty_output``.
        """
        written = objects_at(record, "output") if "output" in record else None
        if written == []:
            raise RecordError("empty_output", "output is an empty list; give at least one output, or leave the key out")
        meta = optional_object(record, "meta")
        return ReleasedExample(
            origin.key,
            optional_text(record, "input"),
            tuple(self._output(part, origin) for part in written or ()),
            meta,
            file=origin.raw.file,
            line=origin.raw.line,
            released=record,
            partial=tuple(self._evidence(span, origin) for span in optional_objects(meta or {}, PARTIAL_EVIDENCE)),
        )

    def _output(self, written: Json, origin: Origin) -> Output:
        answer = optional_text(written, "answer")
        if answer is None and "provenance" not in written:
            raise RecordError("missing_field", "an output must have an answer, a provenance, or both")
        evidence = tuple(self._evidence(span, origin) for span in optional_objects(written, "provenance"))
        return Output(answer, evidence, optional_object(written, "meta"))

    def _evidence(self, span: Json, origin: Origin) -> Evidence:
        page = _page(span)
        meta = optional_object(span, "meta")
        text: str | None = None
        if "start_character" in span:
            start = integer_at(span, "start_paragraph_id"), integer_at(span, "start_character")
            end = integer_at(span, "end_paragraph_id"), integer_at(span, "end_character")
            text = self._between(span, page, start, end, origin)
        elif highlights := highlights_of(span):
            text = max(highlights, key=len).strip()
        elif "start_paragraph_id" in span:
            start = integer_at(span, "start_paragraph_id"), 0
            text = self._between(span, page, start, (integer_at(span, "end_paragraph_id"), None), origin)
        return Evidence(page, text, meta, _fallback_page(span))

    def _old_page(self, page_id: str, origin: Origin) -> OldPage | None:
        if self._release is not None:
            page = self._release.by_id(int(page_id)) if page_id.isascii() and page_id.isdecimal() else None
            return None if page is None else paragraphs_of(page, self.options.numbering)
        stored = origin.references(page_id)
        if stored is None:
            return None
        texts, sections = orjson.loads(stored), [LEAD]
        for text in texts:
            sections.append(text.rstrip("\n") if text.startswith("Section::::") else sections[-1])
        return texts, sections[1:]

    def _between(
        self, span: Json, page: PageKey, start: tuple[int, int], end: tuple[int, int | None], origin: Origin
    ) -> str:
        """Returns the old text of a span. A missing text is recorded, and the result is empty."""
        if self._reference is None:
            raise SetupError(
                "spans of this KILT file are positions in a knowledge source: give the release or the "
                "kilt_knowledgesource.json that it was made for with --from-kb."
            )
        found = self._old_page(page.value, origin) if page.kind == "page_id" else None
        if found is None:
            origin.lose("unknown_page", f"{page.value!r} is not in the old knowledge source")
            return ""
        texts, sections = found
        (first, start_char), (last, end_char) = start, end
        outside = ""
        if not (0 <= first <= last < len(texts)):
            outside = f"paragraphs {first}-{last} of {page.value}, which has {len(texts)}"
        else:
            if end_char is None:
                end_char = len(texts[last])
            is_inside = 0 <= start_char <= len(texts[first]) and 0 <= end_char <= len(texts[last])
            if not is_inside or (first == last and start_char > end_char):
                outside = f"characters {start_char}-{end_char} of {page.value}, {first}-{last}"
        self._n_looked_up += 1
        misfit = ("offsets_out_of_range", outside) if outside else _misfit(span, texts[0], sections[first])
        if misfit is not None:
            self._misfits[misfit[0]] += 1
            self._first_misfit = self._first_misfit or f"{origin.raw.file}, line {origin.raw.line}: {misfit[1]}"
        if outside:
            origin.lose("offsets_out_of_range", outside)
            return ""
        if first == last:
            parts = [texts[first][start_char:end_char]]
        else:
            parts = [texts[first][start_char:], *texts[first + 1 : last], texts[last][:end_char]]
        return " ".join(shown for part in parts if (shown := without_marker(part)))


def _misfit(span: Json, old_title: str, old_section: str) -> tuple[str, str] | None:
    """Returns a description of how the title or section in a span differs from those at its location; None if they
    agree, or if the span has neither.
    """
    for name, old in (("title", old_title), ("section", old_section)):
        said = span.get(name)
        # Some files omit the newline, and the chunks that KILT published have no full stop at the end.
        if isinstance(said, str) and said.rstrip("\n.") != old.rstrip("\n."):
            return f"another_{name}", f"{name} {said[:80]!r}, where there is {old[:80]!r}"
    return None


def without_marker(text: str) -> str:
    """Returns the text of a KILT paragraph, or of its beginning, without the marker of a list item.

    The marker is KILT's, not the page's: in the evidence it would count as tokens that no page contains.
    """
    return _ITEM_MARKER.sub("", text, count=1).strip() if text.startswith("BULLET::::") else text.strip()


def _texts(record: Json) -> bytes:
    texts = record.get("text")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise RecordError("wrong_type", "'text' of a page must be a list of strings")
    return orjson.dumps(texts)


def _fallback_page(span: Json) -> PageKey | None:
    """Returns a released span's title, used to find its page in snapshots that lack its id."""
    title = span.get("title")
    return PageKey("title", title) if isinstance(title, str) and title and span.get("wikipedia_id") else None


def _page(span: Json) -> PageKey:
    page_id = span.get("wikipedia_id")
    if is_integer(page_id):
        return PageKey("page_id", str(page_id))
    if page_id:
        return PageKey("page_id", text_at(span, "wikipedia_id"))
    title = optional_text(span, "title")
    if not title:
        raise RecordError("missing_field", "a span has neither wikipedia_id nor title")
    return PageKey("title", title)


SOURCES = (Kilt,)
