"""The files that retrievers and readers are trained on, out of a QAMPARI release and a corpus of passages.

::

    qampari_contexts/train_data_with_contexts.jsonl, dev_…, test_…    the questions with their passages, for retrievers
    qampari_fid/train_data.jsonl, dev_…, test_…                       the same for Fusion-in-Decoder
    unplaced.jsonl                                                    proofs that no passage holds, and why
    rejected/rejected-00000-of-00001.parquet                          ranked lines that could not be used
    report.json                                                       counts
    manifest.json                                                     names release, corpus and ranked files

Source: QAMPARI's released retriever files (``*_with_contexts``) and its files for Fusion-in-Decoder. Hard negatives are
passages that rank high for a question and name none of its answers. Theirs name no answer within an edit distance of 3;
taken literally that finds every short name in every text, so here a name is also at most a quarter of its characters
away.
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
"""So that a page that is one sentence is compared in as little memory as any other."""


def edits_allowed(form: str, most: int = MOST_EDITS) -> int:
    """How many edits away a text still is the name with that form: one for four characters; none for numbers.

    >>> [edits_allowed(one) for one in ("u2", "sorn", "lake miravel", "1901")]
    [0, 1, 3, 0]
    """
    return 0 if form.replace(" ", "").isdecimal() else min(most, len(form) // _CHARS_AN_EDIT)


class NameFinder:
    """Finds out whether a passage names any of some answers, but for a few edits.

    It does where ARECALL@K finds a name in its title or text, or where a run of whole words of either is so close to a
    name, both in the form in which answers are compared (``answer_form``). Names without a form are found nowhere.

    Args:
        most_edits: insertions, deletions and replacements of one character.
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
        """Whether a passage names one of the answers."""
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
    # Every edit makes or removes one blank at most.
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
"""Between the answers that a reader is to write."""
ADDED = ("question", "answers", "positive_ctxs", "hard_negative_ctxs", "ctxs")
"""What a released question gets for retrievers."""


class Positive(NamedTuple):
    """A passage that proves an answer, and which proof it holds."""

    pid: str
    passage: GoldText


def hard_negatives(
    ranked: Sequence[RankedPassage], names: NameFinder, *, gold_ids: Collection[str], most: int
) -> list[RankedPassage]:
    """The best passages that are not gold and name no answer in title or text; each once.

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
    """A released question with its passages.

    Args:
        positives: in the order of answers and proofs; a passage that holds two proofs comes twice. Their ``score`` is
            the retriever's, 0 where it did not find the passage.
        negatives: best first; their ``pid`` is the question's id.
        ranked: what the retriever found, best first.
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
    """A released question as Fusion-in-Decoder reads it.

    ``answers`` are the names of all answers, each once; ``ans_mappings`` has them by answer; ``target`` is what is to
    be written: the answers with ``SEPARATOR`` between two of them.
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
    """How passages are chosen."""

    most_ranked: Annotated[AtLeast1, Parameter("--top")] = 200
    """Ranked passages of a question that are taken."""
    most_edits: Annotated[AtLeast0, Parameter("--alias-edits")] = MOST_EDITS
    """Edits between a passage and the name of an answer that it still names; a quarter of the name's characters at
    most."""


@dataclass(slots=True)
class ContextCounts:
    """What was written."""

    questions: Counter[str] = field(default_factory=Counter)
    proofs: int = 0
    placed: int = 0
    without_positives: int = 0
    hard_negatives: int = 0
    fewer_negatives: int = 0
    without_retrieved: int = 0
    separator_in_answer: int = 0

    def see(self, split: str, context: Json, *, is_ranked: bool) -> None:
        """Takes a question as retrievers are given it; ``is_ranked`` says whether there was a ranked line for it."""
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
    """The counts of what was written; proofs that no passage holds and ranked lines left out by reason."""
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
    """The ids of the proofs of a released question, in their order."""
    return (proof["pid"] for answer in record["answer_list"] for proof in answer["proof"])


def positives_of(record: Json, gold: GoldPassages) -> list[Positive]:
    """The passages that hold the proofs of a released question, in the order of these."""
    return [Positive(pid, found) for pid in pids_of(record) if (found := gold.of_proof(pid)) is not None]


def with_passages(
    record: Json, positives: Sequence[Positive], ranked: Sequence[RankedPassage], options: ContextsOptions
) -> tuple[Json, Json]:
    """A released question as retrievers and as readers are given it.

    Args:
        positives: in the order of its proofs.
        ranked: what a retriever found, best first.
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
    """Writes the files of the splits; gives the manifest's entries, and what was written."""
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
    """The path of a split's file for retrievers."""
    return f"{OF_RETRIEVERS}/{split}_data_with_contexts.jsonl"


def fid_path(split: str) -> str:
    """The path of a split's file for Fusion-in-Decoder."""
    return f"{FID}/{split}_data.jsonl"


@dataclass(frozen=True, slots=True)
class ContextsFiles:
    """What is read."""

    qampari: str  # folder of a QAMPARI release, or of files as they are published
    passages: str  # folder of a corpus of passages, made from the same knowledge source
    retrieved: tuple[str, ...] = ()  # files of ranked passages; without any there are no hard negatives


def export_contexts(
    files: ContextsFiles,
    output: str,
    options: ContextsOptions,
    *,
    finder: ReleaseProofs | None = None,
    note: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Writes the questions of a release with their passages into an empty folder; gives the report.

    Memory: a question, a row group of passages, eight bytes for each page with a proof.

    Args:
        finder: finds the proofs of published files; None where these are not read.

    Raises:
        SetupError: an input is not what it should be, release and corpus are of different knowledge sources, or
            ``output`` is not empty.
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
