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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from kbsource.errors import RecordError, SetupError
from kbsource.files import HashingWriter, Storage, atomic_write, join
from kbsource.records import BadRecord
from kbsource.release.manifest import FileEntry, canonical_json, code_facts
from mapping.contexts import gold as gold_passages
from mapping.contexts.gold import GoldPassages
from mapping.contexts.ranked import read_ranked
from mapping.contexts.writing import ContextsOptions, SplitFiles, Tally, proof_places
from mapping.evaluation.qampari_files import Joined
from mapping.output import REPORT, begin_output, check_output, commit_output, input_files
from mapping.passages.corpus import read_corpus, table_files
from mapping.qampari.crowd_tasks import read_questions
from mapping.qampari.release_files import check_files, read_form
from mapping.qampari.rows import SPLITS
from mapping.tables import table_path, write_table

CONTEXTS_FORMAT = "kbsource-qampari-contexts-1"
UNPLACED = "unplaced.jsonl"


@dataclass(frozen=True, slots=True)
class ContextsFiles:
    """What is read.

    Attributes:
        qampari: folder of a QAMPARI release.
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
        note: told what is done now.
        scratch_folder: where proofs and ranked passages are kept meanwhile; None for the system's.

    Raises:
        SetupError: an input is not what it should be, release and corpus are of different knowledge sources, or
            ``output`` is not empty.
    """
    told = note or _say_nothing
    qampari, form = read_form(files.qampari, storage)
    check_files(files.qampari, qampari, storage)
    corpus = read_corpus(files.passages, storage)
    _check_one_source(files, qampari, corpus)
    check_output(output, storage)
    inputs = [asdict(one) for one in input_files(files.retrieved, storage)]
    rejected: list[BadRecord] = []
    with GoldPassages(scratch_folder) as gold, Joined(scratch_folder) as joined:
        for drawn in read_questions(files.qampari, storage):
            for place in proof_places(drawn):
                gold.add(place)
        told("passages: looking for those that hold the proofs")
        gold.find([join(files.passages, file) for file in table_files(corpus)], storage)
        if files.retrieved:
            told("retrieved: reading ranked passages")
            read_ranked(files.retrieved, storage, joined, gold, most=options.most_ranked, reject=rejected.append)
        begin_output(output, storage)
        told("records: writing")
        written = SplitFiles(files.qampari, form, options, gold, joined)
        entries = written.write(output, storage)
        for qid, raw in joined.without_question("retrieved"):
            error = RecordError("unknown_question", f"{qid!r} is not in the release")
            rejected.append(raw.bad(error, key=qid, stage="retrieved"))
        unplaced, reasons = _write_unplaced(gold, output, storage)
    report = _report(written.tally, reasons, rejected)
    rows = ((one.stage, one.key, one.reason, one.detail, one.file, one.offset) for one in rejected)
    rejections = write_table(rows, "rejected", output=output, file=table_path("rejected", 0, 1), storage=storage)
    entries += [unplaced, rejections, _write_lines([canonical_json(report)], output, REPORT, storage)]
    entries.sort(key=lambda entry: entry.file)
    values = {
        "qampari": {"manifest_sha256": qampari["manifest_sha256"]},
        "passages": {"manifest_sha256": corpus["manifest_sha256"]},
        "inputs": inputs,
        "options": asdict(options),
        "counts": report,
        "code": asdict(code_facts()),
        "files": [asdict(entry) for entry in entries],
    }
    commit_output(output, values, files=entries, storage=storage, form=CONTEXTS_FORMAT)
    return report


def _say_nothing(_: str) -> None:
    pass


def _check_one_source(files: ContextsFiles, qampari: Mapping[str, Any], corpus: Mapping[str, Any]) -> None:
    made_from = (qampari.get("release") or {}).get("manifest_sha256")
    cut_from = corpus["release"]["manifest_sha256"]
    if made_from is not None and made_from != cut_from:
        raise SetupError(
            f"{files.qampari} was made from the release with manifest {made_from}, {files.passages} from that with "
            f"{cut_from}: places in pages are not the same. Make the passages from the first: kbsource passages."
        )


def _write_unplaced(gold: GoldPassages, output: str, storage: Storage) -> tuple[FileEntry, Counter[str]]:
    reasons: Counter[str] = Counter()

    def lines() -> Iterator[bytes]:
        for place, reason in gold.unplaced():
            reasons[reason] += 1
            yield orjson.dumps({**place._asdict(), "reason": reason}) + b"\n"

    return _write_lines(lines(), output, UNPLACED, storage), reasons


def _write_lines(lines: Iterator[bytes] | Sequence[bytes], output: str, name: str, storage: Storage) -> FileEntry:
    n_lines = 0
    with atomic_write(storage, join(output, name)) as raw:
        sink = HashingWriter(raw)
        for line in lines:
            sink.write(line)
            n_lines += 1
    return FileEntry(name, n_lines, sink.n_bytes, sink.hexdigest())


def _report(tally: Tally, reasons: Counter[str], rejected: Sequence[BadRecord]) -> dict[str, Any]:
    return {
        "questions": {
            **{split: tally.questions[split] for split in SPLITS},
            "without_positives": tally.without_positives,
            "without_retrieved": tally.without_retrieved,
            "fewer_negatives_than_positives": tally.fewer_negatives,
            "separator_in_an_answer": tally.separator_in_answer,
        },
        "proofs": {
            "all": tally.proofs,
            "placed": tally.placed,
            "unplaced": {reason: reasons[reason] for reason in gold_passages.REASONS if reasons[reason]},
        },
        "hard_negatives": tally.hard_negatives,
        "rejected": dict(sorted(Counter(one.reason for one in rejected).items())),
    }
