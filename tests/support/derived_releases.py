"""Small alignments, QAMPARI releases and AmbER sets of one release of pages, written without a job, to be looked at."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kbsource.columns import batch_of
from kbsource.records import Page
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PagesManifest
from kbsource.release.sql import with_counts
from kbsource.release.writer import write_lines, write_rows
from mapping.age import AGE, EvidenceResult, Fate, KnownPage, commit_age, fates_of
from mapping.amber.kind import AMBER_SETS
from mapping.amber.release import TABLES as AMBER_TABLES
from mapping.facts import FACTS, Fact, FactAnswer, FactProof, commit_facts
from mapping.inspector.opened import OpenRelease, open_releases
from mapping.records import MISSED, Alignment, PageKey, Span
from mapping.schema import TABLES
from mapping.write.kind import ALIGNMENT, ALIGNMENTS, write_report
from tests.support.releases import TitleRow, write_release

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> \"'&amp; \u202eevil\u202c \x00"
"""A text that must stay one."""


_JUDGED = ("It lies by the sea.", "claim", "contradiction", 0.125, 0.25, 0.625, None, True)
"""The columns that only a verified alignment has."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A piece of evidence: the old text, what became of it, and where the new text stands."""

    old: str | None = "It lies by the sea ."
    new: str | None = "It lies by the big sea."
    outcome: str = "near"
    score: float | None = 0.75
    page_id: int | None = 1
    title: str | None = "Article 0 of the"
    place: tuple[int, int, int, int] | None = None
    page_value: str = "Old title"
    crossing: bool = False


@dataclass(frozen=True, kw_only=True)
class Record:
    """A record: what it asks, what became of it, and its evidence, one piece an output."""

    id: str | None
    input: str = "Where does it lie?"
    answers: Sequence[str] = ("by the sea",)
    outcome: str = "written"
    reason: str | None = None
    score: float | None = None
    pieces: Sequence[Piece] = ()

    @property
    def is_example(self) -> bool:
        """Whether it has a number."""
        return self.outcome in ("written", "dropped")


def write_pages_release(folder: Path, pages: Sequence[Page]) -> PagesManifest:
    """Writes pages as ``folder / "release"``."""
    titles = [TitleRow(page.page_id, page.title) for page in pages]
    return write_release(folder, pages, titles=titles)


def write_alignment(
    folder: Path,
    records: Iterable[Record],
    *,
    dataset: str = "fever",
    split: str = "dev",
    made_from: PagesManifest | None = None,
    chunk: int = 3,
    n_chunks: int = 2,
    is_verified: bool = False,
) -> Path:
    """Writes a finished alignment of ``n_chunks`` parts of ``chunk`` records, the last one of all that are left.

    With ``is_verified`` every span is judged alike.
    """
    output, source = str(folder), iter(records)
    with ReleaseFolder(output, kind=ALIGNMENT):
        pass
    files: list[FileEntry] = []
    n_read = 0
    lines: list[bytes] = []
    ordinal = 0
    for number in range(n_chunks):
        own = list(islice(source, chunk if number < n_chunks - 1 else None))
        rows: dict[str, list[tuple[Any, ...]]] = {"records": [], "alignments": [], "misses": [], "crosswalk": []}
        for record in own:
            n_read += 1
            rows["records"].append(_record_row(record, ordinal if record.is_example else None))
            for output_number, piece in enumerate(record.pieces):
                table = "misses" if piece.outcome in MISSED else "alignments"
                more = _JUDGED if is_verified and table == "alignments" else ()
                rows[table].append((*_evidence_row(record, ordinal, output_number, piece), *more))
                if piece.crossing:
                    rows["crosswalk"].append(_crossing(record, output_number, piece))
            if record.outcome == "written":
                lines.append(_line(record))
            ordinal += record.is_example
        files += [
            write_rows(
                own_rows,
                table,
                ALIGNMENT.schemas(table)[-1 if is_verified else 0],
                output=output,
                file=shard_path(table, number, n_chunks),
            )
            for table, own_rows in rows.items()
        ]
    files.append(write_rows([], "rejected", TABLES["rejected"], output=output))
    files.append(write_lines(lines, f"{dataset}-{split}-kilt.jsonl", output=output, n_rows=len(lines)))
    facts = {
        "dataset": dataset,
        "split": split,
        "release": None if made_from is None else made_from.facts(),
        "options": {"threshold": 0.5},
        "records": {"read": n_read},
    }
    facts = with_counts(ALIGNMENT, files, facts, output)
    files.append(write_report(facts, output=output))
    commit(ALIGNMENT, ALIGNMENT.listing(files, facts), output)
    return folder


def _record_row(record: Record, ordinal: int | None) -> tuple[Any, ...]:
    n_outputs = len(record.answers) if record.is_example else None
    n_evidences = len(record.pieces) if record.is_example else None
    is_written = record.outcome == "written"
    written = (n_outputs, n_evidences) if is_written or not record.is_example else (0, 0)
    return (
        *(ordinal, record.id, "in.jsonl", 7, record.outcome, record.reason, record.score),
        *(n_outputs, written[0], n_evidences, written[1]),
        len(record.pieces) if is_written else None,
        len({*record.answers}) if is_written else None,
        [{"form": "whole", "reason": None, "n_spans": 1} for _ in record.answers] if is_written else None,
        record.input if record.outcome == "dropped" else None,
    )


def _evidence_row(record: Record, ordinal: int, number: int, piece: Piece) -> tuple[Any, ...]:
    asked = (ordinal, record.id, number, 0, "in.jsonl", 7, "title", piece.page_value, piece.old, piece.outcome)
    found = (piece.page_id, piece.title, None if piece.page_id is None else "title", 0)
    if piece.outcome in MISSED:
        return (*asked, *found, [{"title": "Like it", "score": 80.0}])
    place = piece.place or (None,) * 4
    span = ("Section::::Abstract.", *place, piece.score, "bleu", piece.new)
    return (*asked, *found, *span, 1, 0, 1, 9, record.outcome == "written")


def _crossing(record: Record, number: int, piece: Piece) -> tuple[Any, ...]:
    old = ("99", "Old title", "Section::::History.", 4, 10, 4, 30, piece.old)
    new = (str(piece.page_id), piece.title, "Section::::Abstract.", 1, 0, 1, 9, piece.new)
    return (record.id, number, 0, piece.outcome, piece.score, *old, *new)


def _line(record: Record) -> bytes:
    outputs = [{"answer": answer} for answer in record.answers]
    return json.dumps({"id": record.id, "input": record.input, "output": outputs}).encode() + b"\n"


def write_alignments(folder: Path, parts: Iterable[tuple[str, Path]]) -> Path:
    """Makes a folder that holds finished alignments, by their path in it, a release."""
    output = str(folder)
    inner = [{"folder": name, "manifest_sha256": ALIGNMENT.read(str(path)).sha256} for name, path in parts]
    files = [write_report({}, output=output), write_lines([b"none\n"], "report.txt", output=output)]
    manifest = ALIGNMENTS.listing(files, {"alignments": inner})
    commit(ALIGNMENTS, manifest, output, kept=[part["folder"] for part in inner])
    return folder


def amber_entity(qid: str, popularity: float, page: Page, *, is_head: bool) -> dict[str, Any]:
    """An entity of a set, called like its page."""
    pages = [{"wikipedia_id": str(page.page_id), "title": page.title}]
    names = [page.title, f"The {qid}"]
    return {
        "qid": qid,
        "popularity": popularity,
        "is_head": is_head,
        "aliases": names,
        "entity_types": ["Q5"],
        "wikipedia": pages,
    }


def write_amber(folder: Path, names: Sequence[str], pages: Sequence[Page], *, made_from: PagesManifest | None) -> Path:
    """Writes a set of a head and a tail for each name, each told apart by its page, and a name that is none."""
    output, kind = str(folder), AMBER_SETS
    with ReleaseFolder(output, kind=kind):
        pass
    entities = [amber_entity("Q1", 4.0, pages[0], is_head=True), amber_entity("Q2", 2.0, pages[1], is_head=False)]
    rows: dict[str, list[tuple[Any, ...]]] = {
        "sets": [("human", name, entities[::-1]) for name in names],
        "tuples": [row for name in names for row in _tuples(name, pages)],
        "set_queries": [row for name in names for row in _queries(name, pages)],
        "names": [*(("human", name, "set", 2, 2) for name in names), ("human", "Nobody", "small_gap", 3, 2)],
    }
    files = [write_rows(own, table, AMBER_TABLES[table], output=output) for table, own in rows.items()]
    files.append(write_report({}, output=output))
    facts = {"release": None if made_from is None else made_from.facts()}
    commit(kind, kind.listing(files, facts), output)
    return folder


def _tuples(name: str, pages: Sequence[Page]) -> Iterator[tuple[Any, ...]]:
    for qid, page in zip(("Q1", "Q2"), pages, strict=False):
        value = {
            "type": "wikibase-item",
            "qid": "Q9",
            "amount": None,
            "unit": None,
            "aliases": ["a lute"],
            "additional_aliases": [],
        }
        value |= {"entity_types": ["Q7"], "found_in_passage": True}
        text = page.elements[1].text[4:20]
        refs = [{"wikipedia_id": str(page.page_id), "title": page.title}]
        known = ("human", name, qid, "P1303", "instrument", f"{name}{qid}", refs, [value], 0.5, 1, 4, 1, 20, text)
        yield (*known, f"{name} played a lute.", 0.9, 0.05, 0.05)


def _queries(name: str, pages: Sequence[Page]) -> Iterator[tuple[Any, ...]]:
    asked = {
        "qa": ("What did {} play?", "a lute"),
        "sf": ("{} [SEP] instrument", "a lute"),
        "fc": ("{} played a lute.", "SUPPORTS"),
    }
    for task, (form, answer) in asked.items():
        for qid, page in zip(("Q1", "Q2"), pages, strict=False):
            refs = [{"wikipedia_id": str(page.page_id), "title": page.title}]
            yield ("human", task, name, qid, "P1303", f"{name}{qid}{task}", form.format(name), [answer], refs)


def write_age(folder: Path, texts: Sequence[str], *, made_from: PagesManifest) -> Path:
    """Writes what became of texts in a release that is older and in that one, in which every other text is weak."""
    later = made_from.facts()
    dates = ("20100101", str(made_from.dump.date))
    page = KnownPage(1, 2_000, texts[0])
    rows: list[Fate] = []
    for number, text in enumerate(texts):
        found = [
            Alignment(
                PageKey("title", text), text, ordinal=number, example_id=text, outcome=outcome, page_id=1, title=text,
                span=Span(1, 0, 1, 4, score, "bleu"),
            )
            for outcome, score in (("exact", 1.0), ("near", 0.8) if number % 2 else ("weak", 0.2))
        ]  # fmt: skip
        rows += fates_of("dev", [*map(EvidenceResult, found)], (page, page._replace(version=2)), dates)
    facts = {"releases": [{**later, "dump_date": dates[0], "manifest_sha256": "0" * 64}, later]}
    with ReleaseFolder(str(folder), kind=AGE):
        commit_age([batch_of(rows, Fate)], [], output=str(folder), dates=dates, facts=facts)
    return folder


def write_facts(folder: Path, texts: Sequence[str], pages: Sequence[Page], *, made_from: PagesManifest) -> Path:
    """Writes facts whose questions and answers are these texts, each proved by a page of that release, twice."""
    rows = []
    for number, text in enumerate(texts):
        page = pages[number % len(pages)]
        proof = FactProof(
            page.elements[1].text[4:20], page.page_id, page.title, page.revision_id, "Section::::Abstract.",
            1, 4, 20, 4, 1, 4, page.elements[1].text[6:12], text, 0.5, 0.25,
        )  # fmt: skip
        old, new = (FactAnswer(text, None, text, (text,), text, n_sentences=1, proof=proof) for _ in range(2))
        about = (f"Q{number + 1}", f"Q{number + 1}", "P36", "capital", text, text, "changed", None)
        rows.append(
            Fact(*about, page.page_id, page.title, page.page_id, page.title, (old,), (replace(new, value="x"),))
        )
    later = made_from.facts()
    facts = {"old": {**later, "dump_date": "20100101", "manifest_sha256": "0" * 64}, "new": later}
    with ReleaseFolder(str(folder), kind=FACTS):
        commit_facts(lambda: [batch_of(rows, Fact)], {}, output=str(folder), facts=facts)
    return folder


def opened(*folders: Path) -> tuple[OpenRelease, ...]:
    """Opens local releases."""
    return open_releases([str(folder) for folder in folders])
