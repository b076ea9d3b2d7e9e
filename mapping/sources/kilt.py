"""Any KILT file: published records, moved from the knowledge source they were made for to another.

Source: the record form of section 3 of the KILT paper and of the published files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage
from kbsource.lookup import KnowledgeSource
from kbsource.records import BadRecord
from mapping.options import option
from mapping.records import Evidence, Example, Output, PageKey, ReleasedExample
from mapping.search.numbering import Numbering
from mapping.sources.forms.kilt_texts import (
    OldPage,
    Paragraphs,
    check_knowledge_source,
    id_and_paragraphs,
    is_release,
    release_paragraphs,
    stored_paragraphs,
)
from mapping.sources.reading.base import (
    EVIDENCE_SPAN,
    PARTIAL_EVIDENCE,
    Inputs,
    Source,
    SourceOptions,
    Split,
    Tally,
    check_names,
    references_option,
)
from mapping.sources.reading.examples import Origin, keep_texts, read_examples, want_texts
from mapping.sources.reading.fields import (
    Json,
    digits_or_text,
    integer_at,
    is_integer,
    objects_at,
    optional_object,
    optional_text,
    text_at,
)
from mapping.sources.reading.files_in import check_shape, iter_lines
from mapping.sources.reading.scratch import Scratch

_N_TRIED = 20


@dataclass(frozen=True, slots=True)
class KiltOptions(SourceOptions):
    """Choices of KILT files."""

    numbering: Numbering = option("kilt", "how --from-kb counts paragraphs", flag="--from-numbering")
    max_misfits: float = option(
        0.05,
        "highest share of spans that do not fit --from-kb: their title or section is another, or the page is shorter",
        metavar="SHARE",
        lowest=0,
        highest=1,
        remedy="give a share from 0 to 1",
    )


class Kilt(Source[KiltOptions]):
    """Reads KILT files. References: one release of this project or one ``kilt_knowledgesource.json``.

    The text of a span is read out of the old paragraphs. Three forms of span are told apart by their keys:

    - with character offsets: the text is what they enclose;
    - from the annotation campaign, with ``meta.evidence_span`` and no offsets: the text is the longest highlight;
    - with paragraphs alone: the text is these paragraphs;
    - page alone, as in entity linking: no text.

    Pages are named by their id, which survives renaming; ``fallback_page`` gives the title to try where the new
    snapshot does not have the id (pages that were merged).
    """

    name = "kilt"
    options = KiltOptions
    references = references_option("--from-kb", "release or kilt_knowledgesource.json it was made for")

    def check(self, inputs: Inputs, split: Split, *, storage: Storage, options: KiltOptions) -> None:
        """See ``Source.check``."""
        self.check_split(split)
        for path in inputs.records:
            check_shape(
                path,
                iter_lines(storage, path),
                lambda record: "id" in record and _has_outputs(record, split),
                expected="a KILT file, one JSON object a line with id, input and output, a list of objects with"
                " answer and provenance",
            )
            check_names([path], split)
            if not self._reference(inputs):
                # Raises where the records at the beginning cannot do without.
                want_texts([islice(iter_lines(storage, path), _N_TRIED)], convert=Records(None).example)
        for path in self._reference(inputs):
            check_knowledge_source(path, storage)

    def read(
        self, inputs: Inputs, split: Split, *, storage: Storage, options: KiltOptions, tally: Tally
    ) -> Iterator[Example | BadRecord]:
        """See ``Source.read``."""
        with Scratch(inputs.scratch) as scratch, ExitStack() as stack:
            paragraphs: Paragraphs | None = None
            for path in self._reference(inputs):
                if is_release(path, storage):
                    source = stack.enter_context(KnowledgeSource.open(path, storage))
                    paragraphs = release_paragraphs(source, options.numbering)
                    continue
                want_texts(
                    [iter_lines(storage, record) for record in inputs.records],
                    convert=Records(lambda page_id: scratch.want(page_id)).example,
                )
                pages = [iter_lines(storage, path)]
                yield from keep_texts(pages, key_and_text=id_and_paragraphs, scratch=scratch, tally=tally)
                paragraphs = partial(_from_scratch, scratch)
            records = Records(paragraphs)
            yield from read_examples(
                [iter_lines(storage, path) for path in inputs.records],
                id_of=_id_of,
                convert=records.example,
                scratch=scratch,
                tally=tally,
            )
            records.check_fit(inputs.references, options.max_misfits)

    def _reference(self, inputs: Inputs) -> tuple[str, ...]:
        if len(inputs.references) > 1:
            raise SetupError("a KILT file is made for one knowledge source; give one.")
        return inputs.references


class Records:
    """Converts parsed KILT records.

    Args:
        paragraphs: look-up in the old knowledge source; None where there is none, which only does for files whose
            spans name pages alone or hold their highlights.
    """

    def __init__(self, paragraphs: Paragraphs | None) -> None:
        self._paragraphs = paragraphs
        self._n_looked_up, self._misfits = 0, Counter[str]()
        self._first_misfit = ""

    def check_fit(self, references: Sequence[str], highest: float) -> None:
        """Raises SetupError where more than a share of the spans do not fit the old knowledge source."""
        n_misfits = self._misfits.total()
        if n_misfits > highest * self._n_looked_up:
            by_kind = ", ".join(f"{count} {kind}" for kind, count in self._misfits.most_common())
            raise SetupError(
                f"{references[0]}: {n_misfits} of {self._n_looked_up} spans do not fit it ({by_kind}); the first is"
                f" {self._first_misfit}. Give the knowledge source that the file was made for with --from-kb, and how"
                " it counts paragraphs with --from-numbering; if it is the right one, raise --max-misfits."
            )

    def example(self, record: Json, origin: Origin) -> ReleasedExample:
        """Gives the example; evidence stands in the order of the record's spans.

        Raises:
            RecordError: ``missing_field``, ``wrong_type``, ``empty_output``.
        """
        written = objects_at(record, "output") if "output" in record else None
        if written == []:
            raise RecordError("empty_output", "a record has at least one output, or no such key")
        meta = optional_object(record, "meta")
        partly = objects_at(meta, PARTIAL_EVIDENCE) if meta and PARTIAL_EVIDENCE in meta else []
        return ReleasedExample(
            _id_of(record),
            optional_text(record, "input"),
            tuple(self._output(part, origin) for part in written or ()),
            meta,
            file=origin.raw.file,
            line=origin.raw.line,
            released=record,
            partial=tuple(self._evidence(span, origin) for span in partly),
        )

    def _output(self, written: Json, origin: Origin) -> Output:
        spans = objects_at(written, "provenance") if "provenance" in written else []
        answer = optional_text(written, "answer")
        if answer is None and "provenance" not in written:
            raise RecordError("missing_field", "an output has an answer, a provenance, or both")
        evidence = tuple(self._evidence(span, origin) for span in spans)
        return Output(answer, evidence, optional_object(written, "meta"))

    def _evidence(self, span: Json, origin: Origin) -> Evidence:
        page = _page(span)
        meta = optional_object(span, "meta")
        text: str | None = None
        if "start_character" in span:
            start = integer_at(span, "start_paragraph_id"), integer_at(span, "start_character")
            end = integer_at(span, "end_paragraph_id"), integer_at(span, "end_character")
            text = self._between(span, page, start, end, origin)
        elif meta is not None and (highlights := _highlights(meta)):
            text = max(highlights, key=len).strip()
        elif "start_paragraph_id" in span:
            start = integer_at(span, "start_paragraph_id"), 0
            text = self._between(span, page, start, (integer_at(span, "end_paragraph_id"), None), origin)
        return Evidence(page, text, meta)

    def _between(
        self, span: Json, page: PageKey, start: tuple[int, int], end: tuple[int, int | None], origin: Origin
    ) -> str:
        """Gives the old text of a span; empty where there is none, which is noted."""
        if self._paragraphs is None:
            raise SetupError(
                "spans of this KILT file are places in a knowledge source: give the release or the "
                "kilt_knowledgesource.json that it was made for with --from-kb."
            )
        found = self._paragraphs(page.value) if page.kind == "page_id" else None
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
    """Gives how title or section of a span differ from those of its place; None where they do not, or it has none."""
    for name, old in (("title", old_title), ("section", old_section)):
        said = span.get(name)
        # Files are about without the newline, and the chunks that KILT published have no full stop at the end.
        if isinstance(said, str) and said.rstrip("\n.") != old.rstrip("\n."):
            return f"another_{name}", f"{name} {said[:80]!r}, where there is {old[:80]!r}"
    return None


_ITEM_MARKER = re.compile(r"BULLET::::(?:-|\d+\.)\s*")


def without_marker(text: str) -> str:
    """Gives the text of a KILT paragraph, or of its beginning, without the marker of a list item.

    The marker is KILT's, not the page's: left in the evidence it would count as tokens that no page has.
    """
    return _ITEM_MARKER.sub("", text, count=1).strip() if text.startswith("BULLET::::") else text.strip()


def _from_scratch(scratch: Scratch, page_id: str) -> OldPage | None:
    return stored_paragraphs(scratch.get(page_id))


def fallback_page(span: Json) -> PageKey | None:
    """Gives another way to the page of a released span, for snapshots that do not have its id: the title."""
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


def _highlights(meta: Json) -> list[str]:
    written = meta.get(EVIDENCE_SPAN, [])
    if not isinstance(written, list) or not all(isinstance(text, str) for text in written):
        raise RecordError("wrong_type", f"{EVIDENCE_SPAN!r}: expected a list of strings, found {repr(written)[:80]}")
    return [text for text in written if text.strip()]


def _id_of(record: Json) -> str:
    return digits_or_text(record, "id")


def _has_outputs(record: Json, split: Split) -> bool:
    if "output" not in record:
        return split == "test" and ("input" in record or record.keys() <= {"id", "meta"})
    outputs = record["output"]
    return isinstance(outputs, list) and all(
        isinstance(output, dict) and ("provenance" in output or "answer" in output) and "evidence" not in output
        for output in outputs
    )
