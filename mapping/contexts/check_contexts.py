"""The laws of questions with passages, checked in their files: every line is computed again, from what stands in it or,
where they are given, from the QAMPARI release and the corpus of passages that it was made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import NamedTuple

from kbsource.errors import RecordError, SetupError
from kbsource.files import join
from kbsource.identity import title_hash
from kbsource.release.intact import check_hashes
from kbsource.release.layout import MANIFEST, shard_path
from kbsource.release.manifest import ListingManifest, canonical_json
from kbsource.release.reader import read_table
from kbsource.release.verify import Checking
from mapping.contexts.gold import REASONS, GoldPassages, GoldText, unplaced_line
from mapping.contexts.kind import UNPLACED
from mapping.contexts.published import check_published
from mapping.contexts.questions import QuestionSource, ReleaseQuestions
from mapping.contexts.ranked import RankedPassage
from mapping.contexts.records import ADDED, Positive
from mapping.contexts.writing import (
    ContextCounts,
    ContextsOptions,
    contexts_path,
    fid_path,
    pids_of,
    positives_of,
    report_of,
    with_passages,
)
from mapping.passages.corpus import TABLE
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.qampari.check_release import check_record
from mapping.qampari.question_rows import SPLITS
from mapping.qampari.released import record_line
from mapping.sources.reading.base import Split
from mapping.sources.reading.fields import Json, objects_at, text_at
from mapping.sources.reading.files_in import RawRecord
from mapping.write.kind import REPORT

_SHOWN_CHARS = 120


class Sources(NamedTuple):
    """What questions with passages were made from.

    Attributes:
        questions: those of the QAMPARI release.
        passages: paths of the table of the corpus, in order.
    """

    questions: QuestionSource
    passages: tuple[str, ...]


def check_contexts(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Checks every law of questions with passages, and gives how much was checked; None where files do not allow it.

    Raises:
        SetupError: a folder that they are compared with is not what the manifest names, or not as it was written; or
            they were made from published files.
    """
    return _ContextsChecks(checking, _sources(checking) if checking.sources else None).run()


def _sources(checking: Checking[ListingManifest]) -> Sources:
    facts, storage = checking.manifest.facts, checking.storage
    qampari, passages = checking.sources["qampari"], checking.sources["passages"]
    if "manifest_sha256" not in facts["qampari"]:
        raise SetupError(
            f"{checking.path} was made from published files, which have no places: --qampari and --passages are for "
            "what was made from a QAMPARI release. Leave them out."
        )
    questions, corpus = ReleaseQuestions(qampari, storage), PASSAGES_CORPUS.read(passages, storage)
    given = {"qampari": questions.facts()["manifest_sha256"], "passages": corpus.sha256}
    for name, sha256 in given.items():
        if sha256 != (made_from := facts[name]["manifest_sha256"]):
            folder = checking.sources[name]
            raise SetupError(
                f"{checking.path} was made from another folder than {folder}: give that with manifest {made_from}."
            )
    questions.check(corpus)
    check_hashes(passages, corpus.tables[TABLE], storage)
    return Sources(questions, tuple(join(passages, entry.file) for entry in corpus.tables[TABLE]))


class _ContextsChecks:
    """Checks of one folder, whose files are what was written. Memory: a question, and the pids of unplaced proofs.

    Args:
        checking: of the folder.
        sources: what it was made from; None takes questions and passages as they stand in it.
    """

    def __init__(self, checking: Checking[ListingManifest], sources: Sources | None) -> None:
        self._checking, self._found, self._sources = checking, checking.found, sources
        self._path, self._storage, self._facts = checking.path, checking.storage, checking.manifest.facts
        self._options = ContextsOptions()
        self._tally, self._silent = ContextCounts(), (0, 0)
        self._is_released = False
        self._n_answers = 0
        self._reasons: Counter[str] = Counter()
        self._unplaced: set[str] = set()

    def run(self) -> Mapping[str, int] | None:
        """Checks every law and gives how much was checked; None where the folder is none of questions with passages."""
        try:
            self._options = ContextsOptions(**self._facts["options"])
            self._is_released = "manifest_sha256" in self._facts["qampari"]
            questions = self._facts["counts"]["questions"]
            self._silent = int(questions["without_retrieved"]), int(questions["fewer_negatives_than_positives"])
        except (KeyError, TypeError, ValueError, SetupError):
            self._found.add(MANIFEST, "manifest", "options and counts are not those of questions with passages")
            return None
        if not self._checking.has_files(contexts_files(), exactly=True):
            return None
        self._read_unplaced()
        if self._sources is None:
            self._check_alone()
        else:
            self._check_with(self._sources)
        for pid in sorted(self._unplaced):
            self._found.add(UNPLACED, "proof_lost", f"{pid} is no proof of a question, or has a passage")
        self._check_counts()
        n_questions = sum(self._tally.questions.values())
        return {"questions": n_questions, "answers": self._n_answers, "proofs": self._tally.proofs}

    def _read_unplaced(self) -> None:
        for raw in self._lines(UNPLACED):
            try:
                record = raw.parse()
                pid, reason = text_at(record, "pid"), text_at(record, "reason")
                if reason not in REASONS or pid in self._unplaced:
                    raise RecordError("odd_line", f"{pid}, {reason}: given before, or for no such reason")
            except RecordError as error:
                self._found.add(UNPLACED, "context_law", f"line {raw.line}: {error.detail}")
                continue
            self._unplaced.add(pid)
            self._reasons[reason] += 1

    def _check_alone(self) -> None:
        for split in SPLITS:
            file = contexts_path(split)
            readers = self._lines(fid_path(split))
            seen: set[int] = set()
            for raw in self._lines(file):
                reader = next(readers, None)
                try:
                    context = raw.parse()
                    record = {name: value for name, value in context.items() if name not in ADDED}
                    check_published(record)
                    if self._is_released:
                        check_record(record, split)
                    number = title_hash(record["qid"])
                    if number in seen:
                        raise RecordError("duplicate_question", f"{record['qid']} was given before")
                    positives, ranked = _positives_in(context, record), self._ranked_in(context)
                except RecordError as error:
                    self._found.add(file, "context_law", f"line {raw.line}: {error.detail}")
                    continue
                seen.add(number)
                self._compare(split, raw, reader, record, positives, ranked)
            self._check_end(fid_path(split), readers)

    def _check_with(self, sources: Sources) -> None:
        with GoldPassages() as gold, ExitStack() as stack:
            sources.questions.add_places(gold)
            gold.find(sources.passages, self._storage)
            contexts, readers = (
                {split: stack.enter_context(closing(self._lines(path(split)))) for split in SPLITS}
                for path in (contexts_path, fid_path)
            )
            for split, record in sources.questions.asked():
                file = contexts_path(split)
                raw, reader = next(contexts[split], None), next(readers[split], None)
                if raw is None:
                    self._found.add(file, "context_differs", f"{record['qid']} is not there")
                    continue
                try:
                    ranked = self._ranked_in(raw.parse())
                except RecordError as error:
                    self._found.add(file, "context_law", f"line {raw.line}: {error.detail}")
                    continue
                self._check_ranked(file, raw, ranked, gold)
                self._compare(split, raw, reader, record, positives_of(record, gold), ranked)
            for split in SPLITS:
                self._check_end(contexts_path(split), contexts[split])
                self._check_end(fid_path(split), readers[split])
            lines = self._lines(UNPLACED)
            for place, reason in gold.unplaced():
                self._check_line(UNPLACED, next(lines, None), unplaced_line(place, reason), place.pid)
            self._check_end(UNPLACED, lines)

    def _compare(
        self,
        split: Split,
        raw: RawRecord,
        reader: RawRecord | None,
        record: Json,
        positives: Sequence[Positive],
        ranked: Sequence[RankedPassage],
    ) -> None:
        context, for_reader = with_passages(record, positives, ranked, self._options)
        self._check_line(contexts_path(split), raw, record_line(context), record["qid"])
        self._check_line(fid_path(split), reader, record_line(for_reader), record["qid"])
        self._tally.see(split, context, is_ranked=bool(ranked))
        self._n_answers += len(record["answer_list"])
        placed = {positive.pid for positive in positives}
        for pid in pids_of(record):
            if (pid in placed) == (pid in self._unplaced):
                self._found.add(contexts_path(split), "proof_lost", pid)
            self._unplaced.discard(pid)

    def _check_line(self, file: str, raw: RawRecord | None, wanted: bytes, name: str) -> None:
        stored = b"" if raw is None else raw.data
        if stored != wanted:
            pairs = enumerate(zip(stored, wanted, strict=False))
            at = next((n for n, (one, other) in pairs if one != other), min(len(stored), len(wanted)))
            shown = stored[at : at + _SHOWN_CHARS].decode("utf-8", "replace")
            self._found.add(file, "context_differs", f"{name} from byte {at}: {shown}")

    def _check_end(self, file: str, lines: Iterator[RawRecord]) -> None:
        for raw in lines:
            self._found.add(file, "context_differs", f"line {raw.line} is of no question")

    def _check_ranked(self, file: str, raw: RawRecord, ranked: Sequence[RankedPassage], gold: GoldPassages) -> None:
        for passage in ranked:
            known = gold.with_id(passage.passage_id)
            if not gold.is_passage(passage.passage_id) or (known is not None and known.text != passage.text):
                self._found.add(file, "unknown_passage", f"line {raw.line}: {passage.passage_id}, or with another text")

    def _ranked_in(self, context: Json) -> list[RankedPassage]:
        ranked = [_ranked_passage(given) for given in objects_at(context, "ctxs")]
        if len(ranked) > self._options.most_ranked:
            raise RecordError("too_many", f"{len(ranked)} ranked passages, {self._options.most_ranked} were asked for")
        if len({passage.passage_id for passage in ranked}) < len(ranked):
            raise RecordError("duplicate_passage", "a ranked passage comes twice")
        return ranked

    def _lines(self, file: str) -> Generator[RawRecord]:
        """Gives the lines of a file with their ends."""
        with self._storage.open_read(join(self._path, file)) as opened:
            for number, line in enumerate(opened, start=1):
                yield RawRecord(file, number, -1, line)

    def _check_counts(self) -> None:
        rejected = Counter(row["reason"] for row in read_table(self._path, "rejected", self._storage))
        claimed, tally = self._facts["counts"], self._tally
        with self._storage.open_read(join(self._path, REPORT)) as opened:
            if opened.read() != canonical_json(claimed):
                self._found.add(REPORT, "counts", "not the counts of the manifest")
        # Of a question without ranked passages the files do not say whether there was an empty line for it, or none.
        n_without, n_fewer = self._silent
        n_empty = tally.without_retrieved - n_without
        if n_without >= 0 and 0 <= n_fewer - tally.fewer_negatives <= n_empty:
            tally.without_retrieved, tally.fewer_negatives = n_without, n_fewer
        counted = report_of(tally, self._reasons, rejected)
        if counted != claimed:
            for name, value in counted.items():
                if (written := claimed.get(name)) != value:
                    self._found.add(MANIFEST, "counts", f"{name}: {value} counted, {written} written")


def _positives_in(context: Json, record: Json) -> list[Positive]:
    """Gives the passages that hold proofs, as they stand in a line.

    Raises:
        RecordError: they are not built as such, or not in the order of the proofs.
    """
    positives = []
    for one in objects_at(context, "positive_ctxs"):
        passage = GoldText(*(text_at(one, name) for name in ("chunk_id", "title", "text")))
        positives.append(Positive(text_at(one, "pid"), passage))
    given = [positive.pid for positive in positives]
    placed = set(given)
    if given != [pid for pid in pids_of(record) if pid in placed]:
        raise RecordError("odd_positives", "positive_ctxs are not of its proofs, or in another order")
    return positives


def _ranked_passage(context: Json) -> RankedPassage:
    score = context.get("score")
    if not isinstance(score, float):
        raise RecordError("wrong_type", f"'score': expected a number with a point, found {repr(score)[:80]}")
    return RankedPassage(text_at(context, "id"), text_at(context, "title"), text_at(context, "text"), score)


def contexts_files() -> set[str]:
    """Gives the paths of the files that every folder of questions with passages has."""
    of_splits = {path(split) for path in (contexts_path, fid_path) for split in SPLITS}
    return {*of_splits, UNPLACED, REPORT, shard_path("rejected", 0, 1)}
