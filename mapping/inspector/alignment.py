"""Views of alignments: the values that only their reports contain, and single records with old and new texts."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import orjson
from starlette.requests import Request
from starlette.responses import Response

from kbsource.errors import DataError, SetupError
from kbsource.files import Folder, join
from kbsource.release.manifest import FileEntry
from mapping.document import (
    Block,
    Cell,
    Facts,
    Link,
    Marked,
    Section,
    Share,
    TableSection,
    TextPiece,
    bars,
    counts_table,
    share,
)
from mapping.inspector.about import stored_report
from mapping.inspector.frame import paging
from mapping.inspector.listing import Card, KindViews, Listing, Row, Rows, render_card, row_values
from mapping.inspector.marking import MarkedRange, changed_words
from mapping.inspector.opened import InPage, OpenRelease, in_page
from mapping.records import OUTCOMES, PARTIAL
from mapping.sources import all_sources
from mapping.sources.source import Averages, Policy
from mapping.write.report import MEANINGS, PAPER_PAGES, PAPER_PAGES_SHARE, STAGES, report_rows

KILT_DATE = "2019-08-01"
"""Snapshot of KILT's knowledge source, which the evidence in its files refers to."""
_PLACE = itemgetter("output", "evidence")
_CHARS = ("start_paragraph_id", "start_character", "end_paragraph_id", "end_character")
_AVERAGES = ("spans a set", "sets a record", "pages a record", "answers a record")
_EVIDENCE_A_PAGE = 20
_DATE = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})")
_BLOCK_BYTES = 1 << 22


def about_alignment(opened: OpenRelease) -> Iterator[Section]:
    """Shows the report of an alignment; its tables are shown separately."""
    report = _report(opened)
    yield Section("Outcomes", (_facts(opened, report),))
    became = tuple(_became(opened, report))
    yield Section("Records and evidence", (TableSection("By outcome", ("what", "number", "share", "meaning"), became),))


def about_alignments(opened: OpenRelease) -> Iterator[Section]:
    """Shows the report of a folder of alignments, and of each alignment in it."""
    overall, ages = _report(opened), []
    for part, folder in zip(opened.parts, opened.manifest.parts, strict=True):
        if part.sha256 != folder.manifest_sha256:
            raise DataError(
                f"{part.path}: this is not the alignment in the folder's manifest; kbsource verify reports the "
                f"differences."
            )
        report = _report(part)
        if (age := _age(part)) is not None:
            ages.append((f"{report['dataset']}, {report['split']}", *age, *_found(report["counts"]["evidences"])))
    evidences = sum((Counter(_report(part)["counts"]["evidences"]) for part in opened.parts), Counter[str]())
    total = sum(evidences.values())
    stands = [
        (name.replace("_", " "), n, share(n, total), OUTCOMES.get(name, ""))
        for name in OUTCOMES
        if (n := evidences[name])
    ]
    became = TableSection("Pieces of evidence, all datasets", ("outcome", "number", "share", "meaning"), tuple(stands))
    yield Section("Evidence that is still present, and lost evidence", (became, *_outcomes(opened)))
    if ages:
        columns = ("dataset", "evidence of", "years to the snapshot", "exact", "near", "weak", "no page")
        by_age = TableSection("Drift by age of the evidence", columns, tuple(sorted(ages, key=lambda row: str(row[1]))))
        yield Section("Drift", (by_age,))
    yield Section("Compared with the KILT paper", tuple(_beside_the_paper(overall)), is_folded=True)


def measured_alignment(opened: OpenRelease) -> Iterator[Section]:
    """Shows the model's judgements, if a model was used."""
    if verification := _report(opened).get("verification"):
        not_judged = [(f"not judged: {name}", n) for name, n in (verification.get("unjudged_reasons") or {}).items()]
        chosen = ("spans that the model chose", verification.get("chosen_by_model", 0))
        yield Section("Both signals", (Facts((chosen, *not_judged)),))


def changed_texts(old: str, new: str) -> tuple[Marked, Marked]:
    """Returns two texts, in which the words are marked that the other text does not have at the same position."""
    old_pieces, new_pieces = changed_words(old, new)
    return Marked(tuple(old_pieces)), Marked(tuple(new_pieces))


def _report(opened: OpenRelease) -> dict[str, Any]:
    found: dict[str, Any] = opened.cached("report", lambda: stored_report(opened))
    return found


def _facts(opened: OpenRelease, report: Mapping[str, Any]) -> Facts:
    paper, counts = report.get("dropped_in_the_paper"), report["counts"]
    facts: list[tuple[str, Cell]] = [("dataset", f"{report.get('dataset')}, {report.get('split')}")]
    facts.append(("records written", counts["written"]))
    facts.append(("threshold of BLEU", (opened.values.get("options") or {}).get("threshold")))
    if (below := report.get("dropped_by_threshold")) is not None:
        facts.append(("dropped by the threshold", Share(below)))
    if paper is not None:
        facts.append(("in the KILT paper (figure 5)", Share(paper["share"])))
    if (rule := report.get("accept")) is not None:
        facts += [("rule", rule["rule"]), ("dropped by the rule", rule["dropped"])]
    if (age := _age(opened)) is not None:
        facts += [("evidence of", age[0]), ("years to the snapshot", age[1])]
    return Facts(tuple(facts))


def _became(opened: OpenRelease, report: Mapping[str, Any]) -> Iterator[tuple[Cell, ...]]:
    """Lists the outcomes of records and evidence. Names are indented below the total that they are part of. Each row
    has the number of records, their share, the meaning, and a link to the records."""
    for row in report_rows(report):
        label = "\u2003" * row.depth + row.name
        said = Link(label, opened.url("tables/records", **row.query)) if row.query and row.n else label
        meaning = "; ".join(filter(None, (row.meaning, row.paper_text)))
        yield said, row.n, None if row.total is None else share(row.n, row.total), meaning or None


def _outcomes(opened: OpenRelease) -> Iterator[Block]:
    reports = [(part, _report(part)) for part in opened.parts]
    rows = []
    for part, report in reports:
        records, counts = report["records"], report["counts"]
        name, split = str(report.get("dataset")), str(report.get("split"))
        read = Link(records["read"], opened.url("tables/records", dataset=name, split=split))
        numbers = {
            "written": counts["written"],
            "dropped": sum(counts["dropped"].values()),
            "excluded": sum(records["excluded"].values()),
            "rejected": sum(records["rejected"].values()),
            "merged": records["merged"],
        }
        linked = (
            Link(n, opened.url("tables/records", outcome=outcome, dataset=name, split=split)) if n else 0
            for outcome, n in numbers.items()
        )
        below, paper = threshold_shares(name, split, counts, report)
        written = share(counts["written"], records["read"])
        rows.append((Link(f"{name}, {split}", part.url()), read, *linked, written, below, paper))
    outcomes = ("read", "written", "dropped", "excluded", "rejected", "merged", "share written", "below threshold")
    yield TableSection("Outcomes of the records", ("dataset", *outcomes, "KILT paper"), tuple(rows))


def _beside_the_paper(overall: Mapping[str, Any]) -> Iterator[Block]:
    datasets, pages = overall.get("datasets", []), overall.get("pages")
    if compared := [row for row in datasets if row["dropped_by_threshold"] is not None]:
        shares = tuple(
            (f"{row['name']}, {row['split']}", Share(row["dropped_by_threshold"]), _paper_share(row))
            for row in compared
        )
        said = (
            "Share of the records, by dataset, compared with figure 5 of the KILT paper where it reports the dataset."
        )
        yield bars("Records dropped by the threshold of BLEU", ("dataset", "here", "KILT paper"), shares, said)
    if datasets:
        columns = (
            "dataset",
            "records",
            "records in KILT",
            *(f"{name}{of}" for name in _AVERAGES for of in ("", " (KILT)")),
        )
        of = ("averages", "averages_in_the_paper")
        averages = tuple(
            (
                f"{row['name']}, {row['split']}",
                row["records"],
                row["published_records"],
                *((row[where] or {}).get(name) for name in Averages._fields for where in of),
            )
            for row in datasets
        )
        yield TableSection("Datasets compared with the KILT paper (table 6)", columns, averages)
    if pages is not None:
        yield Facts(
            (
                ("pages of the release", pages["in_the_release"]),
                ("pages with evidence", pages["with_evidence"]),
                ("share of them", None if pages["share"] is None else Share(pages["share"])),
                ("pages with evidence in KILT", PAPER_PAGES),
                ("share of them in KILT", Share(PAPER_PAGES_SHARE)),
            )
        )
        if by_number := list(pages["by_number_of_datasets"].items()):
            caption = "Pages by the number of datasets whose evidence they contain"
            yield counts_table(caption, "datasets", "pages", by_number, pages["with_evidence"])


def _paper_share(row: Mapping[str, Any]) -> Share | None:
    paper = row["dropped_in_the_paper"]
    return None if paper is None else Share(paper["share"])


def threshold_shares(
    dataset: str, split: str, counts: Mapping[str, Any], report: Mapping[str, Any]
) -> tuple[Share | None, Share | None]:
    """Returns two shares: the share of records that the threshold drops, counted as in the KILT paper, if the dataset
    has a threshold; and the share in the paper, if it gives one."""
    policy = _policy(dataset, split)
    below = counts["dropped"].get("below_threshold", 0)
    has_threshold = policy is not None and policy.has_threshold and policy.needs_provenance
    return share(below, counts["written"] + below) if has_threshold else None, (
        _paper_share(report) if "dropped_in_the_paper" in report else None
    )


def _policy(dataset: object, split: Any) -> Policy | None:
    source = all_sources().get(str(dataset))
    return None if source is None else source.policies.get(split)


def _age(opened: OpenRelease) -> tuple[str, float] | None:
    """Returns the date of the snapshot that the evidence was taken from, and the years between it and the date of the
    release."""
    source = all_sources().get(str(opened.values.get("dataset")))
    old = KILT_DATE if opened.manifest.n_rows("crosswalk") else source.evidence_date if source is not None else None
    found = _DATE.fullmatch((opened.values.get("release") or {}).get("dump_date") or "")
    if old is None or found is None:
        return None
    try:
        new = date(*map(int, found.groups()))
    except ValueError as error:
        raise SetupError(
            f"{opened.path}: dump_date {found[0]!r} in its manifest is not a date; download the release again."
        ) from error
    return old[:7], round((new - date.fromisoformat(old)).days / 365.25, 1)


def _found(evidences: Mapping[str, int]) -> Sequence[Share | None]:
    total = sum(evidences.values())
    return [share(evidences.get(name, 0), total) for name in ("exact", "near", "weak", "page_missing")]


class KiltLines:
    """Reads lines of a KILT file by number. Memory: 8 bytes per line; the file is read once to find the lines.

    Raises:
        DataError: the file was changed after it was written.
    """

    def __init__(self, folder: str, entry: FileEntry) -> None:
        self._path = join(folder, entry.file)
        found, at, digest = [np.zeros(1, dtype=np.int64)], 0, hashlib.sha256()
        with Folder.of(self._path).open() as file:
            while block := file.read(_BLOCK_BYTES):
                found.append(np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")) + (at + 1))
                at += len(block)
                digest.update(block)
        if digest.hexdigest() != entry.sha256:
            raise DataError(
                f"{self._path} is damaged or changed (sha256); download or build the release again, and check it with "
                "kbsource verify."
            )
        self._starts = np.concatenate(found)

    def record(self, number: int) -> dict[str, Any] | None:
        """Returns the record in a line, by its number from 0; None if the file has fewer lines.

        Raises:
            DataError: the line is not a record.
        """
        if number + 1 >= len(self._starts):
            return None
        start, end = self._starts[number : number + 2].tolist()
        with Folder.of(self._path).open_ranges() as file:
            file.seek(start)
            try:
                record = orjson.loads(file.read(end - start))
            except orjson.JSONDecodeError as error:
                raise DataError(
                    f"{self._path}, line {number + 1}: {error}; kbsource verify reports the differences."
                ) from error
        return record if isinstance(record, dict) else None


def _lines(part: OpenRelease) -> KiltLines | None:
    """Returns the file of an alignment with the most information: with inputs and with answers; None if there is no
    file."""
    files = [entry for entry in part.manifest.files if entry.file.endswith("-kilt.jsonl")]
    entry = min(files, key=lambda file: ("_id" in file.file, "_without_answers" in file.file), default=None)
    return None if entry is None else part.cached("lines", lambda: KiltLines(part.path, entry))


def add_inputs(opened: OpenRelease, rows: list[Row]) -> None:
    """Adds to each row ``kilt``, the record as written in its file, or None if it is not written; sets ``input`` to the
    question of a written record."""
    written: dict[int, int] = opened.cached("written", lambda: dict(_written_before(opened)))
    files = ", ".join(sorted({str(row["_file_number"]) for row in rows if row["outcome"] == "written"}))
    places = {
        (file, row): written[file] + at
        for file, row, at in opened.db.execute(
            "select _file_number, _row, row_number() over (partition by _file_number order by _row) - 1 from records "
            f"where outcome = 'written' and _file_number in ({files or -1})"
        ).fetchall()
    }
    for row in rows:
        line, lines = places.get((row["_file_number"], row["_row"])), _lines(opened.part(row["_part"]))
        found = None if line is None or lines is None else lines.record(line)
        row["kilt"] = found if found is not None and found.get("id") == row["example_id"] else None
        row["input"] = row["input"] if row["kilt"] is None else row["kilt"].get("input")


def _written_before(opened: OpenRelease) -> Iterator[tuple[int, int]]:
    """Counts, for each file of records, the written records in the earlier files of its alignment."""
    asked = "select _part, _file_number, count(*) filter (outcome = 'written') from records group by all order by 2"
    sums: dict[str, int] = {}
    for part, file, n in opened.db.execute(asked).fetchall():
        yield file, sums.get(part, 0)
        sums[part] = sums.get(part, 0) + n


class TextPlace(NamedTuple):
    """The location of a text: page, section and paragraphs in KILT's numbering. Unknown values are None."""

    page_id: str | None
    title: str | None
    section: str | None
    characters: str | None


class EvidenceShown(NamedTuple):
    """Pieces of evidence that differ only in their position in the record, and their outcome."""

    outputs: Sequence[tuple[str, str | None]]  #: outputs with this evidence, each with its answer if known
    row: Mapping[str, Any]  #: row of ``alignments`` or ``misses`` of the first piece
    meaning: str  #: meaning of the outcome
    old: TextPlace
    new: TextPlace | None
    old_text: Marked | None  #: text of the evidence, with the differences marked; None if there is no text
    new_text: Marked | None
    place: InPage


def show_record(request: Request, opened: OpenRelease, card: Card) -> Response:
    """Shows one record of an alignment."""
    row, part = card.row, opened.part(card.row["_part"])
    add_inputs(opened, [row])
    kilt = row["kilt"]
    evidence = _evidence(card.table, row)
    pages = paging(request, len(evidence), n_rows=_EVIDENCE_A_PAGE)
    answers = [output.get("answer") for output in (kilt or {}).get("output", [])]
    # If answers were left out or reordered, the output of an answer is unknown.
    policy = _policy(part.values.get("dataset"), part.values.get("split"))
    is_in_order = len(answers) == row["n_outputs"] and policy is not None and not policy.found_first
    shown_here, details = evidence[pages.start : pages.end], list(_details(part, row))
    return render_card(
        request,
        opened,
        card,
        "record.html",
        title=row["example_id"] or f"number {card.number:,}",
        data={
            "details": details,
            "n_evidences": pages.total,
            "from": pages.start,
            "evidence": list(map(_evidence_data, shown_here)),
        },
        part=part,
        meaning=MEANINGS.get(row["outcome"], {}).get(row["reason"] or ""),
        details=details,
        answers=list(dict.fromkeys(str(answer) for answer in answers if answer is not None)),
        evidences=[_shown(own, part, answers if is_in_order else []) for own in shown_here],
        paging=pages,
        made_from=part.values.get("release") or {},
        raw=orjson.dumps(kilt, option=orjson.OPT_INDENT_2).decode(),
    )


def _evidence_data(evidence: _Evidence) -> dict[str, Any]:
    """Returns a piece of evidence as JSON values: its row, and its output and number for each of its occurrences in the
    record.
    """
    return {
        **row_values(evidence.rows[0]),
        "places": [_PLACE(own) for own in evidence.rows],
        "crosswalk": evidence.crossing or None,
    }


def _details(part: OpenRelease, row: Row) -> Iterator[str]:
    """Reads the details of a record from the table ``rejected``."""
    stage = STAGES.get(row["outcome"], "evidence")
    if stage and row["example_id"] is not None and "rejected" in part.tables:
        asked = "select reason, detail from rejected where key = ? and stage = ? order by _file_number, _row"
        faults = part.db.execute(asked, (row["example_id"], stage)).fetchall()
        yield from (f"{reason}: {detail}" for reason, detail in faults)


class _Evidence(NamedTuple):
    rows: list[Row]
    crossing: Mapping[str, Any]


def _evidence(records: Rows, row: Row) -> list[_Evidence]:
    """Returns the evidence of a record in order. Evidence that several outputs share is returned once."""
    if row["ordinal"] is None:
        return []
    tables = {
        name: Rows.of(records.opened, name, {})
        for name in ("alignments", "misses", "crosswalk")
        if name in records.opened.tables
    }
    of, part = row["ordinal"], row["_part"]
    found = [
        own
        for name in ("alignments", "misses")
        if name in tables
        for own in tables[name].with_value(ordinal=of, _part=part)
    ]
    crossings = (
        {_PLACE(own): _same(own) for own in tables["crosswalk"].with_value(example_id=row["example_id"], _part=part)}
        if "crosswalk" in tables
        else {}
    )
    result: dict[str, _Evidence] = {}
    for own in sorted(found, key=_PLACE):
        crossing = crossings.get(_PLACE(own), {})
        result.setdefault(repr((_same(own), crossing)), _Evidence([], crossing)).rows.append(own)
    return list(result.values())


def _same(row: Row) -> dict[str, Any]:
    """Returns a row without its position in the record and in the table."""
    return {name: value for name, value in row.items() if name not in ("output", "evidence", "number", "_row")}


def _shown(evidence: _Evidence, part: OpenRelease, answers: Sequence[Any]) -> EvidenceShown:
    row, crossing = evidence.rows[0], evidence.crossing
    old_text, new_text = row["evidence_text"], row.get("text")
    old_marked, new_marked = (
        changed_texts(old_text, new_text)
        if old_text and new_text
        else (
            None if text is None else Marked((TextPiece(text, False),) if text else ()) for text in (old_text, new_text)
        )
    )
    names_page = row["page_kind"] == "title"
    old = TextPlace(
        crossing.get("old_wikipedia_id"),
        crossing.get("old_title") or (row["page_value"] if names_page else f"{row['page_kind']} {row['page_value']}"),
        crossing.get("old_section"),
        _characters(crossing, "old_"),
    )
    new = None
    if row["page_id"] is not None:
        new = TextPlace(str(row["page_id"]), row["title"], row.get("section"), _characters(row, ""))
    outputs = dict.fromkeys(own["output"] for own in evidence.rows)
    said = [
        (output_name(at), str(answers[at]) if 0 <= at < len(answers) and answers[at] is not None else None)
        for at in outputs
    ]
    meaning = OUTCOMES.get(row["outcome"], row["outcome"])
    return EvidenceShown(said, row, meaning, old, new, old_marked, new_marked, _in_page(row, part))


def _characters(row: Mapping[str, Any], prefix: str) -> str | None:
    """Returns paragraphs and characters of a span as text.

    >>> _characters({"start_paragraph_id": 1, "start_character": 60, "end_paragraph_id": 2, "end_character": 9}, "")
    'paragraph 1, character 60, to paragraph 2, character 9'
    """
    first, start, last, end = (row.get(f"{prefix}{name}") for name in _CHARS)
    if first is None:
        return None
    if start is None or end is None:
        return f"paragraph {first}" if last in (None, first) else f"paragraphs {first} to {last}"
    if last in (None, first):
        return f"paragraph {first}, characters {start} to {end}"
    return f"paragraph {first}, character {start}, to paragraph {last}, character {end}"


def _in_page(row: Mapping[str, Any], opened: OpenRelease) -> InPage:
    if row["page_id"] is None or opened.pages is None:
        return InPage()
    if row.get("start_element") is None:
        return InPage(url=opened.page_url(row["page_id"]))
    span = MarkedRange(row["start_element"], row["start_char"], row["end_element"], row["end_char"], "evidence")
    return in_page(opened, row["page_id"], span, row["text"])


def output_name(output: int) -> str:
    """Returns the name of an output.

    >>> output_name(0), output_name(-1)
    ('Output 1', 'Partial evidence')
    """
    return "Partial evidence" if output == PARTIAL else f"Output {output + 1}"


def _records_listing(**more: Any) -> Listing:
    return Listing(
        label="Records",
        columns=(
            "example_id",
            *more.get("computed", ()),
            "input",
            "outcome",
            "score",
            "n_evidences_written",
            "n_evidences",
        ),
        facets=(*more.get("computed", ()), "outcome", "reason"),
        searched=("example_id", "input", "reason", "file"),
        led_by="example_id",
        prepare=add_inputs,
        notes=lambda row: {"outcome": MEANINGS.get(row["outcome"], {}).get(row["reason"] or "", row["reason"] or "")},
        card=show_record,
        **more,
    )


_SPANS = {
    "alignments": Listing(
        label="Evidence",
        columns=("example_id", "outcome", "score", "title", "page_id", "evidence_text", "text"),
        facets=("outcome", "found_by", "match", "is_written"),
        notes=lambda row: {"outcome": OUTCOMES.get(row["outcome"], "")},
        links={"example_id": lambda opened, row: opened.url("tables/records", example_id=row["example_id"])},
    ),
    "misses": Listing(
        label="Misses",
        columns=("example_id", "outcome", "page_value", "evidence_text", "title"),
        facets=("outcome", "page_kind"),
        notes=lambda row: {"outcome": OUTCOMES.get(row["outcome"], "")},
        links={"example_id": lambda opened, row: opened.url("tables/records", example_id=row["example_id"])},
    ),
    "rejected": Listing(label="Rejected", facets=("stage", "reason")),
}
ALIGNMENT_VIEWS = KindViews(
    about=about_alignment,
    measured=measured_alignment,
    apart=("dataset", "split", "records", "counts"),
    listings={"records": _records_listing(), **_SPANS},
)
ALIGNMENTS_VIEWS = KindViews(
    about=about_alignments,
    listings={
        "records": _records_listing(
            computed={
                "dataset": "regexp_replace(_part, '/[^/]*$', '')",
                "split": "regexp_extract(_part, '[^/]*$')",
            }
        ),
        **_SPANS,
    },
)
