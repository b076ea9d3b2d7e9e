"""The files that retrievers and readers are trained on, out of a QAMPARI release and a corpus of passages.

::

    qampari_contexts/train_data_with_contexts.jsonl, dev_…, test_…    the questions with their passages, for retrievers
    qampari_fid/train_data.jsonl, dev_…, test_…                       the same for Fusion-in-Decoder
    unplaced.jsonl                                                    proofs that no passage holds, and why
    rejected/rejected-00000-of-00001.parquet                          ranked lines that could not be used
    report.json                                                       counts
    manifest.json                                                     names release, corpus and ranked files
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage, join
from kbsource.records import BadRecord
from kbsource.release.intact import check_hashes
from kbsource.release.layout import MANIFEST, check_output
from kbsource.release.manifest import canonical_json, code_facts, input_files
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.writer import write_lines, write_rejected
from mapping.contexts.gold import GoldPassages, unplaced_line
from mapping.contexts.kind import CONTEXTS, UNPLACED
from mapping.contexts.published import ProofFinder, PublishedQuestions, published_files
from mapping.contexts.questions import QuestionSource, ReleaseQuestions
from mapping.contexts.ranked import read_ranked
from mapping.contexts.writing import ContextsOptions, SplitFiles, report_of
from mapping.passages.corpus import TABLE
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.sources.reading.files_in import opened
from mapping.sources.reading.joined import Joined
from mapping.write.kind import REPORT


@dataclass(frozen=True, slots=True)
class ContextsFiles:
    """What is read.

    Attributes:
        qampari: folder of a QAMPARI release, or of files as they are published.
        passages: folder of a corpus of passages, made from the same knowledge source.
        retrieved: files of ranked passages; without any there are no hard negatives.
    """

    qampari: str
    passages: str
    retrieved: tuple[str, ...] = ()


def export_contexts(
    files: ContextsFiles,
    output: str,
    storage: Storage,
    options: ContextsOptions,
    *,
    finder: ProofFinder | None = None,
    note: Callable[[str], None] | None = None,
    scratch_folder: str | None = None,
) -> dict[str, Any]:
    """Writes the questions of a release with their passages into an empty folder; gives the report.

    Memory: a question, a row group of passages, eight bytes for each page with a proof.

    Args:
        files: what is read.
        output: an empty folder.
        storage: of everything.
        options: how passages are chosen.
        finder: finds the proofs of published files; None where these are not read.
        note: told what is done now.
        scratch_folder: where proofs and ranked passages are kept meanwhile; None for the system's.

    Raises:
        SetupError: an input is not what it should be, release and corpus are of different knowledge sources, or
            ``output`` is not empty.
    """
    told = note or _say_nothing
    rejected: list[BadRecord] = []
    questions = _questions(files.qampari, storage, finder, rejected.append)
    corpus = PASSAGES_CORPUS.read(files.passages, storage)
    check_output(output, storage)
    for path in files.retrieved:
        with opened(storage, path):
            pass
    questions.check(corpus)
    passages = corpus.tables[TABLE]
    check_hashes(files.passages, passages, storage)
    inputs = [asdict(input_file) for input_file in input_files(files.retrieved, storage)]
    with GoldPassages(scratch_folder) as gold, Joined(scratch_folder) as joined:
        told("questions: reading where the proofs stand")
        questions.add_places(gold)
        told("passages: looking for those that hold the proofs")
        gold.find([join(files.passages, entry.file) for entry in passages], storage)
        if files.retrieved:
            told("retrieved: reading ranked passages")
            read_ranked(files.retrieved, storage, joined, gold, most=options.most_ranked, reject=rejected.append)
        told("records: writing")
        with ReleaseFolder(output, storage, kind=CONTEXTS):
            written = SplitFiles(questions.asked(), options, gold, joined)
            entries = written.write(output, storage)
            for qid, raw in joined.without_question("retrieved"):
                error = RecordError("unknown_question", f"{qid!r} is not in the release")
                rejected.append(raw.bad(error, key=qid, stage="retrieved"))
            reasons: Counter[str] = Counter()
            entries.append(write_lines(_unplaced(gold, reasons), UNPLACED, output=output, storage=storage))
            report = report_of(written.tally, reasons, Counter(bad.reason for bad in rejected))
            entries.append(write_rejected(rejected, output=output, storage=storage))
            entries.append(write_lines([canonical_json(report)], REPORT, output=output, storage=storage))
            facts = {
                "qampari": questions.facts(),
                "passages": {"manifest_sha256": corpus.sha256},
                "inputs": inputs,
                "options": asdict(options),
                "counts": report,
                "code": asdict(code_facts()),
            }
            commit(CONTEXTS, CONTEXTS.listing(entries, facts), output, storage)
    return report


def _say_nothing(_: str) -> None:
    pass


def _questions(
    folder: str, storage: Storage, finder: ProofFinder | None, reject: Callable[[BadRecord], None]
) -> QuestionSource:
    is_release = storage.exists(join(folder, MANIFEST))
    if finder is not None and is_release:
        raise SetupError(f"{folder}: --kb is for published files; a finished QAMPARI release has places. Leave it out.")
    if finder is not None:
        return PublishedQuestions(folder, storage, finder, reject=reject)
    if not is_release and published_files(folder, storage):
        raise SetupError(
            f"{folder}: no {MANIFEST}, so files as they are published, whose proofs are texts: give with --kb the "
            "release of pages that the passages were cut from, to look for them there."
        )
    return ReleaseQuestions(folder, storage)


def _unplaced(gold: GoldPassages, reasons: Counter[str]) -> Iterator[bytes]:
    """Gives a line for each proof that no passage holds, and counts the reasons."""
    for place, reason in gold.unplaced():
        reasons[reason] += 1
        yield unplaced_line(place, reason)
