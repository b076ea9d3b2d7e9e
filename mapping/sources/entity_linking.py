"""AIDA CoNLL-YAGO, WNED-WIKI and WNED-CWEB: one example for each mention that has a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage, join
from kbsource.records import BadRecord
from mapping.options import option
from mapping.records import Example, PageKey
from mapping.sources.forms.conll import DOCSTART, TokenDocument, iter_documents
from mapping.sources.forms.mentions import LinkingOptions, Mention, aida_split, mention_example, wned_split
from mapping.sources.forms.ptb import token_spans
from mapping.sources.forms.wned_xml import Annotation, XmlDocument, iter_xml_documents, parse_document, read_raw_text
from mapping.sources.reading.base import Inputs, Source, Split, Tally, references_option
from mapping.sources.reading.examples import Origin, exclude, give, reject
from mapping.sources.reading.files_in import RawRecord, iter_lines, opened
from mapping.sources.reading.scratch import Scratch

RAW_TEXT = "RawText"

_N_PEEKED = 20


@dataclass(frozen=True, slots=True)
class WnedOptions(LinkingOptions):
    """Choices of WNED, whose split is drawn."""

    seed: str = option("kilt", "names what is drawn at random", metavar="NAME")


class EntityLinking(Source[LinkingOptions]):
    """Reads one of the datasets. Records are the mentions of the split's documents.

    Inputs are the TSV or, for WNED, the XML file, which are told apart by their beginnings. The texts of the XML are
    in the folder given as reference, by default ``RawText`` beside the file; ``forms.ptb`` cuts them into tokens like
    those of the TSV. A page is named by the address in the TSV and by the title in the XML; mentions that have no page
    are left out as ``not_in_kb``.
    """

    options = LinkingOptions

    def check(self, inputs: Inputs, split: Split, *, storage: Storage, options: LinkingOptions) -> None:
        """See ``Source.check``."""
        self.check_split(split)
        for path in inputs.records:
            if _is_xml(path, storage):
                self._check_xml(path, inputs, storage)
            else:
                first = next(iter_lines(storage, path), None)
                if first is None or not first.data.startswith(DOCSTART.encode()):
                    shown = first.data[:80] if first else b""
                    forms = f"a TSV that begins with {DOCSTART}" + (
                        " or WNED's XML" if self.references is not None else ""
                    )
                    raise SetupError(f"{path} is not {self.name}: expected {forms}. It begins with {shown!r}.")

    def _check_xml(self, path: str, inputs: Inputs, storage: Storage) -> None:
        if self.references is None:
            raise SetupError(f"{path} is XML; {self.name} is read from its TSV, which begins with {DOCSTART}.")
        if not any(b"docName" in raw.data for raw in islice(iter_xml_documents(storage, path), _N_PEEKED)):
            raise SetupError(f"{path} holds no <document docName=…> with annotations, as WNED's XML does.")
        for folder in _raw_text_folders(path, inputs):
            if not storage.exists(folder):
                raise SetupError(f"{folder}: no such folder. Give the folder {RAW_TEXT} that came with {path}.")

    def read(
        self, inputs: Inputs, split: Split, *, storage: Storage, options: LinkingOptions, tally: Tally
    ) -> Iterator[Example | BadRecord]:
        """See ``Source.read``."""
        with Scratch(inputs.scratch) as scratch:
            reading = _Reading(self.name, split, options=options, scratch=scratch, tally=tally)
            for path in inputs.records:
                if _is_xml(path, storage):
                    folders = _raw_text_folders(path, inputs)
                    for raw in iter_xml_documents(storage, path):
                        yield from reading.xml_document(raw, storage, folders)
                else:
                    for document in iter_documents(iter_lines(storage, path, keep_blank=True)):
                        yield from reading.token_document(document)


class _Reading:
    """Turns documents into examples, and keeps what they share."""

    def __init__(self, dataset: str, split: Split, *, options: LinkingOptions, scratch: Scratch, tally: Tally) -> None:
        self._dataset = dataset
        self._split = split
        self._options = options
        self._scratch = scratch
        self._tally = tally

    def token_document(self, document: TokenDocument) -> Iterator[Example | BadRecord]:
        """Gives the mentions of a document in TSV form."""
        doc_id = document.doc_id
        if doc_id is not None and not self._is_of_split(doc_id):
            return
        for raw, error in document.problems:
            yield self._rejected(raw, error, doc_id or "")
        number = 0
        for mention in document.mentions:
            if mention.url is None:
                self._exclude(mention.raw)
            elif doc_id is None:
                yield self._rejected(mention.raw, RecordError("no_document", f"mention {mention.text!r}"), "")
            else:
                left, right = document.tokens[: mention.start], document.tokens[mention.end :]
                page = PageKey("url", mention.url)
                yield from self._given(Mention(doc_id, number, mention.text, page, left=left, right=right), mention.raw)
                number += 1

    def xml_document(self, raw: RawRecord, storage: Storage, folders: tuple[str, ...]) -> Iterator[Example | BadRecord]:
        """Gives the mentions of a document in XML form."""
        try:
            document = parse_document(raw)
        except RecordError as error:
            yield self._rejected(raw, error, "")
            return
        if not self._is_of_split(document.name):
            return
        try:
            text = _raw_text(storage, folders, document.name)
        except RecordError as error:
            for _ in document.annotations:
                yield self._rejected(raw, error, document.name)
            return
        yield from self._annotated(document, text, raw)

    def _annotated(self, document: XmlDocument, text: str, raw: RawRecord) -> Iterator[Example | BadRecord]:
        number, spans = 0, list(token_spans(text))
        for found in document.annotations:
            if isinstance(found, RecordError):
                yield self._rejected(raw, found, document.name)
            elif found.title is None:
                self._exclude(raw)
            else:
                try:
                    mention = _xml_mention(document.name, number, found, text=text, spans=spans)
                except RecordError as error:
                    yield self._rejected(raw, error, f"{document.name}:{number}")
                else:
                    yield from self._given(mention, raw)
                number += 1

    def _is_of_split(self, doc_id: str) -> bool:
        if isinstance(self._options, WnedOptions):
            return wned_split(doc_id, dataset=self._dataset, seed=self._options.seed) == self._split
        return aida_split(doc_id) == self._split

    def _exclude(self, raw: RawRecord) -> None:
        self._tally.records += 1
        exclude(raw, "not_in_kb", self._tally)

    def _rejected(self, raw: RawRecord, error: RecordError, key: str) -> BadRecord:
        self._tally.records += 1
        return reject(raw, error, self._tally, key=key)

    def _given(self, mention: Mention, raw: RawRecord) -> Iterator[Example | BadRecord]:
        example = mention_example(mention, raw, dataset=self._dataset, options=self._options)
        if self._scratch.give(example.example_id, 0) is not None:
            error = RecordError("duplicate_id", f"document {mention.doc_id!r} was there before")
            yield self._rejected(raw, error, example.example_id)
            return
        self._tally.records += 1
        yield from give(example, Origin(raw), self._tally)


def _xml_mention(
    doc_id: str, number: int, annotation: Annotation, *, text: str, spans: Sequence[tuple[int, int]]
) -> Mention:
    start, end = annotation.offset, annotation.offset + annotation.length
    if text[start:end] != annotation.mention:
        raise RecordError(
            "offset_mismatch", f"expected {annotation.mention!r} at {start}, found {text[start:end][:80]!r}"
        )
    # A token that the mention cuts (the first half of "Ister-based") is cut.
    left = [text[first : min(last, start)] for first, last in spans if first < start]
    right = [text[max(first, end) : last] for first, last in spans if last > end]
    page = PageKey("title", annotation.title or "")
    return Mention(doc_id, number, annotation.mention, page, left=left, right=right)


def _raw_text(storage: Storage, folders: tuple[str, ...], name: str) -> str:
    missing = RecordError("missing_raw_text", f"no file {name!r} in the folder of texts")
    for folder in folders:
        try:
            return read_raw_text(storage, folder, name)
        except RecordError as error:
            if error.reason != missing.reason:
                raise
    raise missing


def _raw_text_folders(path: str, inputs: Inputs) -> tuple[str, ...]:
    return inputs.references or (join(path.rpartition("/")[0], RAW_TEXT),)


def _is_xml(path: str, storage: Storage) -> bool:
    with opened(storage, path) as (file, _):
        return file.read(256).lstrip().startswith(b"<")


class Aida(EntityLinking):
    """AIDA CoNLL-YAGO."""

    name = "aidayago2"


class Wned(EntityLinking):
    """WNED-WIKI."""

    name = "wned"
    splits = ("dev", "test")
    options = WnedOptions
    references = references_option("--raw-text", f"folder {RAW_TEXT} (default: beside the XML file)", "DIR")


class Cweb(Wned):
    """WNED-CWEB."""

    name = "cweb"
