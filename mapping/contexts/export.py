"""Writes training files for retrievers and readers from a QAMPARI release and a passage corpus.

::

    qampari_contexts/train_data_with_contexts.jsonl, dev_…, test_…    the questions with their passages, for retrievers
    qampari_fid/train_data.jsonl, dev_…, test_…                       the same for Fusion-in-Decoder
    unplaced.jsonl                                                    proofs that no passage holds, with the reason
    rejected/rejected-00000-of-00001.parquet                          ranked lines that could not be used
    report.json                                                       counts
    manifest.json                                                     names release, corpus and ranked files
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from kbsource.errors import DataError, RecordError, SetupError
from kbsource.files import Folder, join
from kbsource.records import BadRecord
from kbsource.release.layout import MANIFEST, check_output
from kbsource.release.manifest import FileEntry, canonical_json, code_facts, input_files
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import check_hashes
from kbsource.release.writer import LinesFile, RejectedRows, write_lines, write_rejected
from mapping.contexts.gold import GoldPassages, ranked_for, read_ranked, unplaced_line
from mapping.contexts.kind import CONTEXTS
from mapping.contexts.questions import (
    PublishedQuestions,
    ReleaseQuestions,
    SplitQuestion,
    published_files,
)
from mapping.contexts.records import (
    UNPLACED,
    ContextCounts,
    ContextsOptions,
    contexts_path,
    contexts_report,
    fid_path,
    positives_of,
    with_passages,
)
from mapping.passages.corpus import TABLE
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.qampari.records import SPLITS
from mapping.sources.raw_records import open_decompressed
from mapping.sources.scratch import QuestionFiles
from mapping.write.kilt import kilt_line
from mapping.write.kind import REPORT

if TYPE_CHECKING:
    from mapping.contexts.proof_finder import ReleaseProofs


def write_splits(
    questions: Iterable[SplitQuestion],
    options: ContextsOptions,
    gold: GoldPassages,
    joined: QuestionFiles,
    *,
    output: str,
) -> tuple[list[FileEntry], ContextCounts]:
    """Writes the files of the splits and returns the manifest entries and the counts."""
    tally = ContextCounts()
    with ExitStack() as stack:
        contexts, readers = (
            {split: stack.enter_context(LinesFile(output, path(split))) for split in SPLITS}
            for path in (contexts_path, fid_path)
        )
        for split, record in questions:
            if split not in contexts:
                raise DataError(
                    f"question {record['qid']!r:.80} is in the split {split!r:.80}, which is not one of "
                    f"{', '.join(SPLITS)}; check the QAMPARI release with kbsource verify."
                )
            joined.open_question(record["qid"])
            ranked = ranked_for(record["qid"], joined)
            context, reader = with_passages(record, positives_of(record, gold), ranked or (), options)
            contexts[split].write(kilt_line(context))
            readers[split].write(kilt_line(reader))
            tally.see(split, context, is_ranked=ranked is not None)
    return [file.entry for files in (contexts, readers) for file in files.values()], tally


@dataclass(frozen=True, slots=True)
class ContextsFiles:
    """Input paths of the export."""

    qampari: str  # folder of a QAMPARI release, or of the published files
    passages: str  # folder of a passage corpus that was built from the same knowledge source
    retrieved: tuple[str, ...] = ()  # files of ranked passages; without files there are no hard negatives


def export_contexts(
    files: ContextsFiles,
    output: str,
    options: ContextsOptions,
    *,
    finder: ReleaseProofs | None = None,
    note: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Writes the questions of a release with their passages into an empty folder and returns the report.

    Memory: one question, one row group of passages, and 8 bytes per page with a proof.

    Args:
        finder: finds the proofs of published files; None if a release is read.

    Raises:
        SetupError: an input is invalid, release and corpus have different knowledge sources, or ``output`` is not
            empty.
    """
    with RejectedRows() as rejected:
        return _write_contexts(files, output, options, rejected, finder=finder, note=note or (lambda _: None))


def _write_contexts(
    files: ContextsFiles,
    output: str,
    options: ContextsOptions,
    rejected: RejectedRows,
    *,
    finder: ReleaseProofs | None,
    note: Callable[[str], None],
) -> dict[str, Any]:
    questions = _questions(files.qampari, finder, rejected.append)
    corpus = PASSAGES_CORPUS.read(files.passages)
    check_output(output)
    for path in files.retrieved:
        with open_decompressed(path):
            pass
    questions.check(corpus)
    passages = corpus.tables[TABLE]
    check_hashes(files.passages, passages)
    inputs = [asdict(input_file) for input_file in input_files(files.retrieved)]
    with GoldPassages() as gold, QuestionFiles() as joined:
        note("questions: reading the positions of proofs")
        questions.add_places(gold)
        note("passages: looking for those that contain the proofs")
        gold.find([join(files.passages, entry.file) for entry in passages])
        if files.retrieved:
            note("retrieved: reading ranked passages")
            read_ranked(files.retrieved, joined, gold, most=options.most_ranked, reject=rejected.append)
        note("records: writing")
        with ReleaseFolder(output, kind=CONTEXTS):
            entries, tally = write_splits(questions.read(), options, gold, joined, output=output)
            for qid, raw in joined.without_question("retrieved"):
                error = RecordError("unknown_question", f"{qid!r} is not in the release")
                rejected.append(raw.bad(error, key=qid, stage="retrieved"))
            reasons: Counter[str] = Counter()
            entries.append(write_lines(_unplaced(gold, reasons), UNPLACED, output=output))
            report = contexts_report(tally, reasons, rejected.reasons)
            entries.append(write_rejected(rejected, output=output))
            entries.append(write_lines([canonical_json(report)], REPORT, output=output))
            facts = {
                "release": corpus.facts["release"],
                "qampari": questions.facts(),
                "passages": {"manifest_sha256": corpus.sha256},
                "inputs": inputs,
                "options": asdict(options),
                "counts": report,
                "code": code_facts(),
            }
            commit(CONTEXTS, CONTEXTS.listing(entries, facts), output)
    return report


def _questions(
    folder: str, finder: ReleaseProofs | None, reject: Callable[[BadRecord], None]
) -> PublishedQuestions | ReleaseQuestions:
    is_release = Folder.of(join(folder, MANIFEST)).exists()
    if finder is not None and is_release:
        raise SetupError(
            f"{folder}: --kb works only for published files, and this is a finished QAMPARI release, which has "
            f"positions. Leave --kb out."
        )
    if finder is not None:
        return PublishedQuestions(folder, finder, reject=reject)
    if not is_release and published_files(folder):
        raise SetupError(
            f"{folder}: no {MANIFEST}, so these are published files, whose proofs have no positions; give --kb, the "
            "release of pages that the passages were cut from, so that the proofs can be searched for in its pages."
        )
    return ReleaseQuestions(folder)


def _unplaced(gold: GoldPassages, reasons: Counter[str]) -> Iterator[bytes]:
    """Writes a line for each proof that no passage holds, and counts the reasons."""
    for place, reason in gold.unplaced():
        reasons[reason] += 1
        yield unplaced_line(place, reason)
