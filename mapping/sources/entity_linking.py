"""AIDA CoNLL-YAGO, WNED-WIKI and WNED-CWEB: one example for each mention that has a page.

The TSV has one token per line and contains all documents in sequence. Its columns are: token, ``B`` or ``I``, whole
mention, YAGO entity or ``--NME--``, URL of the page, page number, Freebase id. Lines of mentions without a page end
after the fourth column. A line with fewer columns is an ordinary token, an empty line ends a sentence, and ``-DOCSTART-
(<id>)`` begins a document. WNED's XML annotates documents whose texts are files in a folder beside it; ``offset`` and
``length`` count code points of the text as stored.

Source: the README of AIDA-YAGO2-dataset.tsv, https://www.mpi-inf.mpg.de/yago-naga/aida; the distribution of WNED by Guo
and Barbosa (https://doi.org/10.3233/SW-170273).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, base_name, join
from kbsource.records import BadRecord
from mapping.options import Name
from mapping.records import Example, PageKey
from mapping.sources.examples import ExclusionError, Origin, leave_out, read_record
from mapping.sources.mentions import LinkingOptions, Mention, aida_split, mention_example, token_spans, wned_split
from mapping.sources.raw_records import MAX_RECORD_BYTES, RawRecord, iter_lines, open_decompressed
from mapping.sources.scratch import Scratch
from mapping.sources.source import (
    SPLITS,
    Averages,
    Ownership,
    Policy,
    PublishedFigures,
    Source,
    Split,
    references_option,
)

if TYPE_CHECKING:
    from lxml import etree

DOCSTART = "-DOCSTART-"
_NO_ENTITY = "--NME--"
_N_COLUMNS_WITHOUT_PAGE = 4
_N_COLUMNS = 6
_NO_PAGE = frozenset({"", "NIL"})
_READ_BYTES = 1 << 16
_BEGIN = re.compile(rb"<document[\s>]")
_END = b"</document>"
RAW_TEXT = "RawText"
_N_PEEKED = 20
_NOT_IN_KB = ExclusionError("not_in_kb")


@dataclass(slots=True)
class TokenMention:
    """A mention at tokens ``[start, end)`` of its document; ``url`` is None if it has no page."""

    start: int
    end: int
    text: str
    url: str | None
    raw: RawRecord


@dataclass(slots=True)
class TokenDocument:
    """A document of a TSV. ``doc_id`` is None for tokens before the first document, or if its first line names no
    document."""

    doc_id: str | None
    tokens: list[str] = field(default_factory=list)  # the tokens of the line; empty for an empty line
    mentions: list[TokenMention] = field(default_factory=list)
    problems: list[tuple[RawRecord, RecordError]] = field(default_factory=list)  # lines that cannot be used


def iter_documents(lines: Iterable[RawRecord]) -> Iterator[TokenDocument]:
    """Reads the documents of a TSV. ``lines`` are all lines of the file, including empty ones."""
    document = TokenDocument(None)
    is_open = False
    for raw in lines:
        try:
            line = raw.text()
        except RecordError as error:
            document.problems.append((raw, error))
            is_open = False
            continue
        if line.startswith(DOCSTART):
            yield document
            document = _begin(raw, line)
            is_open = False
            continue
        columns = line.split("\t")
        tag = columns[1] if len(columns) >= _N_COLUMNS_WITHOUT_PAGE else ""
        try:
            mention = _mention(columns, tag, raw, at=len(document.tokens))
        except RecordError as error:
            document.problems.append((raw, error))
            mention = None
            tag = ""
        if mention is not None:
            document.mentions.append(mention)
            is_open = True
        elif tag == "I" and is_open:
            document.mentions[-1].end += 1
        else:
            is_open = False
        document.tokens.append(columns[0].strip())
    yield document


def _begin(raw: RawRecord, line: str) -> TokenDocument:
    rest = line.removeprefix(DOCSTART).strip()
    doc_id = rest[rest.find("(") + 1 : rest.rfind(")")].strip() if rest.endswith(")") and "(" in rest else ""
    if doc_id:
        return TokenDocument(doc_id)
    error = RecordError("malformed_docstart", f"expected {DOCSTART} (<id>), found {line[:80]!r}")
    return TokenDocument(None, problems=[(raw, error)])


def _mention(columns: list[str], tag: str, raw: RawRecord, *, at: int) -> TokenMention | None:
    """Returns the mention that starts on a line; None if none starts there."""
    if not tag and len(columns) < _N_COLUMNS_WITHOUT_PAGE:
        if len(columns) > 1 and columns[1].strip() in ("B", "I"):
            raise RecordError("missing_column", f"an annotated line with {len(columns)} columns")
        return None
    if tag not in ("B", "I"):
        raise RecordError("bad_tag", f"expected B or I, found {tag!r}")
    if tag == "I":
        return None
    if columns[3].strip() == _NO_ENTITY or len(columns) == _N_COLUMNS_WITHOUT_PAGE:
        return TokenMention(at, at + 1, columns[2], None, raw)
    if len(columns) < _N_COLUMNS or not columns[4].strip():
        raise RecordError("missing_column", f"a mention with {len(columns)} columns, or without an address")
    return TokenMention(at, at + 1, columns[2], columns[4].strip(), raw)


class Annotation(NamedTuple):
    """An annotated mention as written; ``title`` is None if it has no page."""

    mention: str
    title: str | None
    offset: int
    length: int


def iter_xml_documents(path: str) -> Iterator[RawRecord]:
    """Reads the ``<document>`` elements of a file one at a time; everything between them is skipped."""
    name = base_name(path)
    with open_decompressed(path) as (file, counts_plainly):
        buffer = b""
        line, position = 1, file.tell()
        while True:
            begin = _BEGIN.search(buffer)
            if begin is None:
                keep = max(0, len(buffer) - len(b"<document>"))
                line += buffer.count(b"\n", 0, keep)
                position += keep
                more = file.read(_READ_BYTES)
                if not more:
                    return
                buffer = buffer[keep:] + more
                continue
            line += buffer.count(b"\n", 0, begin.start())
            position += begin.start()
            buffer = _read_document(buffer[begin.start() :], file)
            found = buffer.find(_END)
            end = found + len(_END) if found >= 0 else len(buffer)
            # An unclosed document ends where the next one begins.
            following = _BEGIN.search(buffer, 1, end)
            end = following.start() if following else end
            yield RawRecord(name, line, position if counts_plainly else -1, buffer[:end])
            line += buffer.count(b"\n", 0, end)
            position += end
            buffer = buffer[end:]


def _read_document(buffer: bytes, file: BinaryIO) -> bytes:
    """Returns the buffer, extended from the file up to the end of its document."""
    parts = [buffer]
    n_bytes = len(buffer)
    while _END not in parts[-1] and n_bytes <= MAX_RECORD_BYTES:
        more = file.read(_READ_BYTES)
        if not more:
            break
        # The end tag may be split across two parts.
        parts[-1:] = [parts[-1][: -len(_END)], parts[-1][-len(_END) :] + more]
        n_bytes += len(more)
    return b"".join(parts)


def parse_annotated(raw: RawRecord) -> tuple[str, list[Annotation | RecordError]]:
    """Returns the name of an annotated document, and each annotation or the reason why it cannot be used.

    Raises:
        RecordError: ``malformed_xml``, ``missing_field`` (no ``docName``), and as ``RawRecord.text``.
    """
    raw.text()
    from lxml import etree  # dataset options are read without it

    parser = etree.XMLParser(encoding="utf-8", resolve_entities=False, load_dtd=False, no_network=True)
    try:
        root = etree.fromstring(raw.data, parser)
    except etree.XMLSyntaxError as error:
        raise RecordError("malformed_xml", str(error)) from error
    name = root.get("docName")
    if not name:
        raise RecordError("missing_field", "'docName' of the document")
    return name, [_annotation(element) for element in root.iterfind("annotation")]


def _annotation(element: etree._Element) -> Annotation | RecordError:
    mention, title, offset, length = (element.findtext(tag) for tag in ("mention", "wikiName", "offset", "length"))
    if mention is None or title is None or offset is None or length is None:
        return RecordError("missing_field", "an annotation must have mention, wikiName, offset and length")
    if not (_is_number(offset) and _is_number(length)):
        return RecordError("wrong_type", f"offset {offset!r} and length {length!r} are numbers")
    title = title.strip()
    return Annotation(mention, None if title in _NO_PAGE else title, int(offset), int(length))


def _is_number(text: str) -> bool:
    return text.strip().isascii() and text.strip().isdecimal() and len(text) < 19


def read_raw_text(folders: Iterable[str], name: str) -> str:
    """Returns the text of a document from the first folder that has it.

    Raises:
        RecordError: ``missing_raw_text``, ``bad_encoding``.
    """
    leads_out = base_name(name) != name or name in (".", "..") or "\\" in name
    files = () if leads_out else (Folder.of(join(folder, name)) for folder in folders)
    stored = next((file for file in files if file.exists()), None)
    if stored is None:
        raise RecordError("missing_raw_text", f"no file {name!r} in the folder of texts")
    with stored.open() as file:
        data = file.read()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError("bad_encoding", f"the text of {name!r} is not UTF-8: {error}") from error


@dataclass(frozen=True, slots=True)
class WnedOptions(LinkingOptions):
    """Options of WNED, whose splits are drawn at random."""

    seed: Name = "kilt"
    """Seed of the random draw."""


class EntityLinking(Source[LinkingOptions]):
    """Base of the three datasets. Records are the mentions in the documents of the split.

    The input is the TSV or, for WNED, the XML file; they are distinguished by their beginnings. The texts of the XML
    are in the folder given as reference, by default ``RawText`` beside the file; ``token_spans`` splits them into the
    same kind of tokens as the TSV's. A page is named by its URL in the TSV and by its title in the XML. Mentions
    without a page are excluded as ``not_in_kb``.
    """

    options_type = LinkingOptions
    policies = dict.fromkeys(
        SPLITS,
        Policy(has_threshold=False, answer_is_title=True, input_meta=("left_context", "mention", "right_context")),
    )
    metric = "accuracy"

    def check_inputs(self) -> None:
        for path in self.inputs.records:
            if self._is_xml(path):
                self._check_xml(path)
                continue
            first = next(iter_lines(path), None)
            if first is None or not first.data.startswith(DOCSTART.encode()):
                shown = first.data[:80] if first else b""
                or_xml = " or WNED's XML" if self.references is not None else ""
                raise SetupError(
                    f"{path} is not {self.name}: expected a TSV that begins with {DOCSTART}{or_xml}. It begins with"
                    f" {shown!r}."
                )

    def _check_xml(self, path: str) -> None:
        if self.references is None:
            raise SetupError(f"{path} is XML; {self.name} is read from its TSV, which begins with {DOCSTART}.")
        if not any(b"docName" in raw.data for raw in islice(iter_xml_documents(path), _N_PEEKED)):
            raise SetupError(f"{path} holds no <document docName=…> with annotations, as WNED's XML does.")
        for folder in self._raw_text_folders(path):
            if not Folder.of(folder).exists():
                raise SetupError(f"{folder}: no such folder. Give the folder {RAW_TEXT} that came with {path}.")

    def _is_xml(self, path: str) -> bool:
        with open_decompressed(path) as (file, _):
            return file.read(256).lstrip().startswith(b"<")

    def _raw_text_folders(self, path: str) -> tuple[str, ...]:
        return self.inputs.references or (join(path.rpartition("/")[0], RAW_TEXT),)

    def read(self) -> Iterator[Example | BadRecord]:
        with Scratch(self.inputs.scratch) as self.scratch:
            for path in self.inputs.records:
                if self._is_xml(path):
                    folders = self._raw_text_folders(path)
                    for raw in iter_xml_documents(path):
                        yield from self._xml_document(raw, folders)
                else:
                    for document in iter_documents(iter_lines(path, keep_blank=True)):
                        yield from self._token_document(document)

    def split_of(self, doc_id: str) -> Split:
        """Returns the split that a document belongs to."""
        return aida_split(doc_id)

    def _token_document(self, document: TokenDocument) -> Iterator[Example | BadRecord]:
        doc_id = document.doc_id
        if doc_id is not None and self.split_of(doc_id) != self.split:
            return
        for raw, error in document.problems:
            yield from leave_out(Origin(raw, key=doc_id or ""), error, self.tally)
        number = 0
        for found in document.mentions:
            if found.url is None:
                yield from leave_out(Origin(found.raw), _NOT_IN_KB, self.tally)
            elif doc_id is None:
                error = RecordError("no_document", f"mention {found.text!r}")
                yield from leave_out(Origin(found.raw), error, self.tally)
            else:
                left, right = document.tokens[: found.start], document.tokens[found.end :]
                mention = Mention(doc_id, number, found.text, PageKey("url", found.url), left=left, right=right)
                yield from read_record(Origin(found.raw), partial(self._example, mention), self.tally)
                number += 1

    def _xml_document(self, raw: RawRecord, folders: Sequence[str]) -> Iterator[Example | BadRecord]:
        try:
            name, annotations = parse_annotated(raw)
        except RecordError as error:
            yield from leave_out(Origin(raw), error, self.tally)
            return
        if self.split_of(name) != self.split:
            return
        try:
            text = read_raw_text(folders, name)
        except RecordError as error:
            for _ in annotations:
                yield from leave_out(Origin(raw, key=name), error, self.tally)
            return
        number, spans = 0, list(token_spans(text))
        for found in annotations:
            if isinstance(found, RecordError):
                yield from leave_out(Origin(raw, key=name), found, self.tally)
            elif found.title is None:
                yield from leave_out(Origin(raw), _NOT_IN_KB, self.tally)
            else:
                try:
                    mention = _xml_mention(name, number, found, text=text, spans=spans)
                except RecordError as error:
                    yield from leave_out(Origin(raw, key=f"{name}:{number}"), error, self.tally)
                else:
                    yield from read_record(Origin(raw), partial(self._example, mention), self.tally)
                number += 1

    def _example(self, mention: Mention, origin: Origin) -> Example:
        example = mention_example(mention, origin.raw, dataset=self.name, options=self.options)
        origin.key = example.example_id
        if self.scratch.claim_id(example.example_id, 0) is not None:
            raise RecordError("duplicate_id", f"document {mention.doc_id!r} was there before")
        return example


def _xml_mention(
    doc_id: str, number: int, annotation: Annotation, *, text: str, spans: Sequence[tuple[int, int]]
) -> Mention:
    start, end = annotation.offset, annotation.offset + annotation.length
    if text[start:end] != annotation.mention:
        raise RecordError(
            "offset_mismatch", f"expected {annotation.mention!r} at {start}, found {text[start:end][:80]!r}"
        )
    # A token that the mention cuts (such as "Ister-based" after "Ister") is cut.
    left = [text[first : min(last, start)] for first, last in spans if first < start]
    right = [text[max(first, end) : last] for first, last in spans if last > end]
    page = PageKey("title", annotation.title or "")
    return Mention(doc_id, number, annotation.mention, page, left=left, right=right)


class Aida(EntityLinking):
    """AIDA CoNLL-YAGO."""

    name = "aidayago2"
    summary = "AIDA CoNLL-YAGO: mentions in news, with their pages"
    published = PublishedFigures({"train": 18_395, "dev": 4_784, "test": 4_463}, Averages(1, 1, 1, 1))
    ownership = Ownership(
        "AIDA CoNLL-YAGO",
        "Max Planck Institute for Informatics",
        "https://www.mpi-inf.mpg.de/departments/databases-and-information-systems/research/ambiverse-nlu/aida/downloads",
        "CC-BY-SA-3.0",
        "This licence covers the annotations only. The news texts belong to Reuters (RCV1). NIST provides them for "
        "research under an agreement, so publish them only if the agreement permits it.",
    )


class Wned(EntityLinking):
    """WNED-WIKI."""

    name = "wned"
    summary = "WNED-WIKI: mentions in Wikipedia, with their pages"
    splits = ("dev", "test")
    options_type = WnedOptions
    references = references_option(
        "--raw-text", f"Folder {RAW_TEXT} of the data; by default the one next to the XML file.", "DIR"
    )
    published = PublishedFigures({"dev": 3_396, "test": 3_376}, Averages(1, 1, 1, 1))
    ownership = Ownership(
        "WNED-WIKI",
        "the authors of WNED",
        "https://doi.org/10.3233/SW-170273",
        note="The texts come from the English Wikipedia of 2013, so they are under CC-BY-SA-3.0.",
    )

    def split_of(self, doc_id: str) -> Split:
        assert isinstance(self.options, WnedOptions)
        return wned_split(doc_id, dataset=self.name, seed=self.options.seed)


class Cweb(Wned):
    """WNED-CWEB."""

    name = "cweb"
    summary = "WNED-CWEB: mentions in web pages, with their pages"
    published = PublishedFigures({"dev": 5_599, "test": 5_543}, Averages(1, 1, 1, 1))
    ownership = Ownership(
        "WNED-CWEB",
        "the authors of WNED",
        "https://doi.org/10.3233/SW-170273",
        note="The texts are web pages of ClueWeb12, which is given out under an agreement: publish them only if you "
        "may.",
    )


SOURCES = (Aida, Wned, Cweb)
