"""Writes training files for retrievers and readers from a QAMPARI release and a passage corpus.

::

    qampari_contexts/train_data_with_contexts.jsonl, dev_…, test_…    the questions with their passages, for retrievers
    qampari_fid/train_data.jsonl, dev_…, test_…                       the same for Fusion-in-Decoder
    unplaced.jsonl                                                    proofs that no passage holds, with the reason
    rejected/rejected-00000-of-00001.parquet                          ranked lines that could not be used
    report.json                                                       counts
    manifest.json                                                     names release, corpus and ranked files

Source: QAMPARI's released retriever files (``*_with_contexts``) and its files for Fusion-in-Decoder. Hard negatives are
passages that rank high for a question and mention none of its answers. In QAMPARI, a passage mentions an answer if an
edit distance of at most 3 separates them. Taken literally, that finds every short name in every text. Here, the edit
distance is also at most a quarter of the characters of the name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, join
from kbsource.records import BadRecord
from kbsource.release.layout import MANIFEST, check_output
from kbsource.release.manifest import FileEntry, canonical_json, code_facts, input_files
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import check_hashes
from kbsource.release.writer import LinesFile, RejectedRows, write_lines, write_rejected
from mapping.contexts.gold import (
    UNPLACED_REASONS,
    GoldPassages,
    GoldText,
    RankedPassage,
    ranked_for,
    read_ranked,
    unplaced_line,
)
from mapping.contexts.kind import CONTEXTS, FID, OF_RETRIEVERS, UNPLACED
from mapping.contexts.questions import (
    AskedQuestion,
    PublishedQuestions,
    ReleaseQuestions,
    published_files,
)
from mapping.metrics.answers import GoldNames, answer_form
from mapping.metrics.ranks import RetrievedPassage, answer_ranks
from mapping.options import AtLeast0, AtLeast1, Checked
from mapping.passages.corpus import TABLE
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.qampari.records import SPLITS
from mapping.sources.raw_records import Json, opened
from mapping.sources.scratch import Joined
from mapping.write.kilt import kilt_line
from mapping.write.kind import REPORT

if TYPE_CHECKING:
    from mapping.contexts.proof_finder import ReleaseProofs


MOST_EDITS = 3
_CHARS_AN_EDIT = 4
_RUNS_AT_ONCE = 512
"""Runs of words compared at once; it bounds memory even for a page that is one single sentence."""


def edits_allowed(form: str, most: int = MOST_EDITS) -> int:
    """Returns how many edits may separate a text from a normalised name: one per four characters; none for numbers.

    >>> [edits_allowed(one) for one in ("u2", "sorn", "lake miravel", "1901")]
    [0, 1, 3, 0]
    """
    return 0 if form.replace(" ", "").isdecimal() else min(most, len(form) // _CHARS_AN_EDIT)


class NameFinder:
    """Finds out whether a passage mentions any of the given answers, up to a few edits.

    It does if ARECALL@K finds a name in its title or text, or if a run of whole words in either is close enough to a
    name. Both are compared in the normalised form of answers (``answer_form``). Names whose normalised form is empty
    are never found.

    Args:
        most_edits: maximum number of single-character insertions, deletions and replacements.
    """

    def __init__(self, names: Iterable[str], *, most_edits: int = MOST_EDITS) -> None:
        given = tuple(names)
        self._answers = (GoldNames("", given),)
        forms = dict.fromkeys(form for name in given if (form := answer_form(name)))
        self._near: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
        for form in forms:
            if n_edits := edits_allowed(form, most_edits):
                self._near[form.count(" ") + 1, n_edits].append(form)

    def is_in(self, title: str, text: str) -> bool:
        """Returns whether a passage mentions one of the answers."""
        if answer_ranks(self._answers, (RetrievedPassage("", title, text),)) != [None]:
            return True
        return any(
            _is_near(answer_form(part).split(), names, n_words=n_words, n_edits=n_edits)
            for (n_words, n_edits), names in self._near.items()
            for part in (title, text)
        )


def _is_near(words: list[str], names: list[str], *, n_words: int, n_edits: int) -> bool:
    import numpy as np
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    lengths = [len(name) for name in names]
    fits = range(min(lengths) - n_edits, max(lengths) + n_edits + 1)
    # One edit adds or removes at most one space.
    lengths_of_runs = range(n_words - n_edits, n_words + n_edits + 1)
    runs = iter(dict.fromkeys(run for n in lengths_of_runs for run in _runs(words, n) if len(run) in fits))
    while some := list(islice(runs, _RUNS_AT_ONCE)):
        found = cdist(some, names, scorer=Levenshtein.distance, score_cutoff=n_edits, dtype=np.int32)
        if (found <= n_edits).any():
            return True
    return False


def _runs(words: list[str], n_words: int) -> Iterator[str]:
    if n_words > 0:
        for first in range(len(words) - n_words + 1):
            yield " ".join(words[first : first + n_words])


SEPARATOR = "#"
"""Separator between the answers that a reader has to generate."""
ADDED = ("question", "answers", "positive_ctxs", "hard_negative_ctxs", "ctxs")
"""Keys added to a released question for retrievers."""


class Positive(NamedTuple):
    """A passage that proves an answer, and the id of the proof that it holds."""

    pid: str
    passage: GoldText


def hard_negatives(
    ranked: Sequence[RankedPassage], names: NameFinder, *, gold_ids: Collection[str], most: int
) -> list[RankedPassage]:
    """Returns the best distinct passages that are not gold and mention no answer in title or text.

    Args:
        ranked: best first.
    """
    found: dict[str, RankedPassage] = {}
    for passage in ranked:
        if len(found) == most:
            break
        if passage.passage_id in gold_ids or passage.passage_id in found:
            continue
        if not names.is_in(passage.title, passage.text):
            found[passage.passage_id] = passage
    return list(found.values())


def contexts_record(
    record: dict[str, Any],
    positives: Sequence[Positive],
    negatives: Sequence[RankedPassage],
    ranked: Sequence[RankedPassage],
) -> dict[str, Any]:
    """Returns a released question with its passages.

    Args:
        positives: in the order of answers and proofs. A passage that holds two proofs occurs twice. ``score`` is the
            score of the retriever, or 0 if it did not find the passage.
        negatives: best first; their ``pid`` is the id of the question.
        ranked: passages that the retriever found, best first.
    """
    scores: dict[str, float] = {}
    for passage in ranked:
        scores.setdefault(passage.passage_id, passage.score)
    return {
        **record,
        "question": record["question_text"],
        "answers": [answer["answer_text"] for answer in record["answer_list"]],
        "positive_ctxs": [
            _context(positive.passage, scores.get(positive.passage.passage_id, 0.0), positive.pid)
            for positive in positives
        ],
        "hard_negative_ctxs": [_context(negative, negative.score, record["qid"]) for negative in negatives],
        "ctxs": _ranked_contexts(ranked),
    }


def fid_record(record: dict[str, Any], ranked: Sequence[RankedPassage]) -> dict[str, Any]:
    """Returns a released question in the input format of Fusion-in-Decoder.

    ``answers`` are the distinct names of all answers. ``ans_mappings`` groups them by answer. ``target`` is the
    expected output: the answers joined by ``SEPARATOR``.
    """
    mappings: dict[str, list[str]] = {}
    for answer in record["answer_list"]:
        names = mappings.setdefault(answer["answer_text"], [])
        names += [name for name in answer["aliases"] if name not in names]
    return {
        "id": record["qid"],
        "question": record["question_text"],
        "question_text": record["question_text"],
        "answers": list(dict.fromkeys(name for names in mappings.values() for name in names)),
        "ans_mappings": mappings,
        "target": SEPARATOR.join(answer["answer_text"] for answer in record["answer_list"]),
        "ctxs": _ranked_contexts(ranked),
    }


def _context(passage: GoldText | RankedPassage, score: float, pid: str) -> dict[str, Any]:
    return {
        "text": passage.text,
        "title": passage.title,
        "score": score,
        "chunk_id": passage.passage_id,
        "pid": pid,
    }


def _ranked_contexts(ranked: Sequence[RankedPassage]) -> list[dict[str, Any]]:
    return [
        {"id": passage.passage_id, "title": passage.title, "text": passage.text, "score": passage.score}
        for passage in ranked
    ]


@dataclass(frozen=True, slots=True)
class ContextsOptions(Checked):
    """Options of choosing passages."""

    most_ranked: Annotated[AtLeast1, Parameter("--top")] = 200
    """Maximum number of ranked passages used per question."""
    most_edits: Annotated[AtLeast0, Parameter("--alias-edits")] = MOST_EDITS
    """Maximum number of edits at which a passage still mentions the name of an answer. A quarter of the characters of
    the name is a further limit."""


@dataclass(slots=True)
class ContextCounts:
    """Counts of the written questions."""

    questions: Counter[str] = field(default_factory=Counter)
    proofs: int = 0
    placed: int = 0
    without_positives: int = 0
    hard_negatives: int = 0
    fewer_negatives: int = 0
    without_retrieved: int = 0
    separator_in_answer: int = 0

    def see(self, split: str, context: Json, *, is_ranked: bool) -> None:
        """Counts a question in its form for retrievers. ``is_ranked`` is true if it had a ranked line."""
        answers = context["answer_list"]
        n_positives, n_negatives = len(context["positive_ctxs"]), len(context["hard_negative_ctxs"])
        self.questions[split] += 1
        self.proofs += sum(len(answer["proof"]) for answer in answers)
        self.placed += n_positives
        self.without_positives += not n_positives
        self.without_retrieved += not is_ranked
        self.hard_negatives += n_negatives
        self.fewer_negatives += is_ranked and n_negatives < n_positives
        self.separator_in_answer += any(SEPARATOR in answer["answer_text"] for answer in answers)


def report_of(tally: ContextCounts, unplaced: Mapping[str, int], rejected: Mapping[str, int]) -> Json:
    """Returns the counts of what was written, of proofs that no passage holds, and of ranked lines left out by
    reason."""
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
            "unplaced": {reason: unplaced[reason] for reason in UNPLACED_REASONS if unplaced.get(reason)},
        },
        "hard_negatives": tally.hard_negatives,
        "rejected": dict(sorted(rejected.items())),
    }


def pids_of(record: Json) -> Iterator[str]:
    """Yields the ids of the proofs of a released question, in order."""
    return (proof["pid"] for answer in record["answer_list"] for proof in answer["proof"])


def positives_of(record: Json, gold: GoldPassages) -> list[Positive]:
    """Returns the passages that hold the proofs of a released question, in the order of the proofs."""
    return [Positive(pid, found) for pid in pids_of(record) if (found := gold.of_proof(pid)) is not None]


def with_passages(
    record: Json, positives: Sequence[Positive], ranked: Sequence[RankedPassage], options: ContextsOptions
) -> tuple[Json, Json]:
    """Returns a released question in its form for retrievers and in its form for readers.

    Args:
        positives: in the order of the proofs of the question.
        ranked: passages that a retriever found, best first.
    """
    answers = ((answer["answer_text"], *answer["aliases"]) for answer in record["answer_list"])
    names = NameFinder((name for answer in answers for name in answer), most_edits=options.most_edits)
    gold_ids = {positive.passage.passage_id for positive in positives}
    negatives = hard_negatives(ranked, names, gold_ids=gold_ids, most=len(positives))
    return contexts_record(record, positives, negatives, ranked), fid_record(record, ranked)


def write_splits(
    questions: Iterable[AskedQuestion],
    options: ContextsOptions,
    gold: GoldPassages,
    joined: Joined,
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
            joined.open_question(record["qid"])
            ranked = ranked_for(record["qid"], joined)
            context, reader = with_passages(record, positives_of(record, gold), ranked or (), options)
            contexts[split].write(kilt_line(context))
            readers[split].write(kilt_line(reader))
            tally.see(split, context, is_ranked=ranked is not None)
    return [file.entry for files in (contexts, readers) for file in files.values()], tally


def contexts_path(split: str) -> str:
    """Returns the path of a split's file for retrievers."""
    return f"{OF_RETRIEVERS}/{split}_data_with_contexts.jsonl"


def fid_path(split: str) -> str:
    """Returns the path of a split's file for Fusion-in-Decoder."""
    return f"{FID}/{split}_data.jsonl"


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
        return _write_contexts(files, output, options, rejected, finder=finder, told=note or (lambda _: None))


def _write_contexts(
    files: ContextsFiles,
    output: str,
    options: ContextsOptions,
    rejected: RejectedRows,
    *,
    finder: ReleaseProofs | None,
    told: Callable[[str], None],
) -> dict[str, Any]:
    questions = _questions(files.qampari, finder, rejected.append)
    corpus = PASSAGES_CORPUS.read(files.passages)
    check_output(output)
    for path in files.retrieved:
        with opened(path):
            pass
    questions.check(corpus)
    passages = corpus.tables[TABLE]
    check_hashes(files.passages, passages)
    inputs = [asdict(input_file) for input_file in input_files(files.retrieved)]
    with GoldPassages() as gold, Joined() as joined:
        told("questions: reading where the proofs stand")
        questions.add_places(gold)
        told("passages: looking for those that hold the proofs")
        gold.find([join(files.passages, entry.file) for entry in passages])
        if files.retrieved:
            told("retrieved: reading ranked passages")
            read_ranked(files.retrieved, joined, gold, most=options.most_ranked, reject=rejected.append)
        told("records: writing")
        with ReleaseFolder(output, kind=CONTEXTS):
            entries, tally = write_splits(questions.asked(), options, gold, joined, output=output)
            for qid, raw in joined.without_question("retrieved"):
                error = RecordError("unknown_question", f"{qid!r} is not in the release")
                rejected.append(raw.bad(error, key=qid, stage="retrieved"))
            reasons: Counter[str] = Counter()
            entries.append(write_lines(_unplaced(gold, reasons), UNPLACED, output=output))
            report = report_of(tally, reasons, rejected.reasons)
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
        raise SetupError(f"{folder}: --kb is for published files; a finished QAMPARI release has places. Leave it out.")
    if finder is not None:
        return PublishedQuestions(folder, finder, reject=reject)
    if not is_release and published_files(folder):
        raise SetupError(
            f"{folder}: no {MANIFEST}, so files as they are published, whose proofs are texts: give with --kb the "
            "release of pages that the passages were cut from, to look for them there."
        )
    return ReleaseQuestions(folder)


def _unplaced(gold: GoldPassages, reasons: Counter[str]) -> Iterator[bytes]:
    """Yields a line for each proof that no passage holds, and counts the reasons."""
    for place, reason in gold.unplaced():
        reasons[reason] += 1
        yield unplaced_line(place, reason)
