"""Checks questions with passages.

Every line is rebuilt and compared. It is rebuilt from the QAMPARI release and the passage corpus if these are given,
otherwise from the values in the line itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing

from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, join
from kbsource.identity import title_hash
from kbsource.release.invariants import Checking, Remade
from kbsource.release.layout import MANIFEST, shard_path
from kbsource.release.manifest import ListingManifest, canonical_json
from mapping.contexts.gold import UNPLACED_REASONS, GoldPassages, GoldText, RankedPassage, unplaced_line
from mapping.contexts.questions import ReleaseQuestions, check_published
from mapping.contexts.records import (
    ADDED,
    UNPLACED,
    ContextCounts,
    ContextsOptions,
    Positive,
    contexts_path,
    contexts_report,
    fid_path,
    pids_of,
    positives_of,
    with_passages,
)
from mapping.passages.corpus import TABLE
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.qampari.kind import check_record
from mapping.qampari.records import SPLITS
from mapping.sources.raw_records import Json, RawRecord, objects_at, text_at
from mapping.write.kilt import kilt_line
from mapping.write.kind import REPORT

Sources = tuple[ReleaseQuestions, list[str]]
"""The releases to compare with: the questions of the QAMPARI release, and the paths of the table of passages."""


def check_contexts(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Checks every invariant of questions with passages and returns how much was checked; None if the files are too
    damaged.

    Raises:
        SetupError: a given folder is not the folder named in the manifest, or was changed after it was written, or the
            questions were made from published files.
    """
    sources, facts = _sources(checking), checking.manifest.facts
    try:
        checks = _ContextsChecks(checking, ContextsOptions(**facts["options"]))
        questions = facts["counts"]["questions"]
        silent = int(questions["without_retrieved"]), int(questions["fewer_negatives_than_positives"])
    except (KeyError, TypeError, ValueError, SetupError):
        checking.found.add(MANIFEST, "manifest", "options and counts are not in the form of questions with passages")
        return None
    of_splits = {path(split) for path in (contexts_path, fid_path) for split in SPLITS}
    if not checking.has_files({*of_splits, UNPLACED, REPORT, shard_path("rejected", 0, 1)}, exactly=True):
        return None
    return checks.run(sources, silent)


def _sources(checking: Checking[ListingManifest]) -> Sources | None:
    if not checking.sources:
        return None
    passages = checking.sources["passages"]
    if checking.manifest.made_from("qampari") is None:
        raise SetupError(
            f"{checking.path} was made from published files, which have no positions in pages. --qampari and "
            "--passages are only for questions from a QAMPARI release; leave both options out."
        )
    questions, corpus = ReleaseQuestions(checking.sources["qampari"]), PASSAGES_CORPUS.read(passages)
    questions.check(corpus)
    return questions, [join(passages, entry.file) for entry in corpus.tables[TABLE]]


class _ContextsChecks:
    """The checks of a folder whose files match its manifest. Memory: one question, and the pids of unplaced proofs."""

    def __init__(self, checking: Checking[ListingManifest], options: ContextsOptions) -> None:
        self._checking, self._found, self._options = checking, checking.found, options
        self._is_released = "manifest_sha256" in checking.manifest.facts["qampari"]
        self._tally, self._n_answers = ContextCounts(), 0
        self._unplaced: dict[str, str] = {}
        self._seen: dict[str, set[int]] = {split: set() for split in SPLITS}
        self._again: dict[str, list[Remade]] = {}

    def run(self, sources: Sources | None, silent: tuple[int, int]) -> Mapping[str, int]:
        """Checks every invariant. ``silent`` holds the counts that cannot be derived from the files."""
        self._read_unplaced()
        reasons = Counter(self._unplaced.values())
        with ExitStack() as stack:
            for split in SPLITS:
                paths = contexts_path(split), fid_path(split)
                remade = (self._checking.remade(path, "context_differs") for path in paths)
                self._again[split] = [stack.enter_context(file) for file in remade]
            lines = {split: stack.enter_context(closing(self._lines(contexts_path(split)))) for split in SPLITS}
            if sources is None:
                for split, own in lines.items():
                    for raw in own:
                        self._check_line(split, raw)
            else:
                gold = stack.enter_context(GoldPassages())
                sources[0].add_places(gold)
                gold.find(sources[1])
                for split, record in sources[0].read():
                    if (line := next(lines[split], None)) is None:
                        self._found.add(contexts_path(split), "context_differs", f"{record['qid']} is not there")
                    else:
                        self._check_line(split, line, (record, gold))
                unplaced = stack.enter_context(self._checking.remade(UNPLACED, "context_differs"))
                for place, reason in gold.unplaced():
                    unplaced.write(unplaced_line(place, reason), place.pid)
        for pid in sorted(self._unplaced):
            self._found.add(UNPLACED, "proof_unplaced", f"{pid} is not a proof of a question, or has a passage")
        self._check_counts(reasons, silent)
        n_questions = sum(self._tally.questions.values())
        return {"questions": n_questions, "answers": self._n_answers, "proofs": self._tally.proofs}

    def _read_unplaced(self) -> None:
        for raw in self._lines(UNPLACED):
            try:
                record = raw.parse()
                pid, reason = text_at(record, "pid"), text_at(record, "reason")
                if reason not in UNPLACED_REASONS or pid in self._unplaced:
                    raise RecordError("odd_line", f"{pid}, {reason}: it occurred before, or has an unknown reason")
            except RecordError as error:
                self._found.add(UNPLACED, "invalid_context", f"line {raw.line}: {error.detail}")
                continue
            self._unplaced[pid] = reason

    def _check_line(self, split: str, raw: RawRecord, given: tuple[Json, GoldPassages] | None = None) -> None:
        """Rebuilds a line from the given question and passages, or from the values in the line itself."""
        file = contexts_path(split)
        try:
            context = raw.parse()
            record = self._own_record(split, context) if given is None else given[0]
            positives = _positives_in(context, record) if given is None else positives_of(*given)
            ranked = self._ranked_in(context)
        except RecordError as error:
            self._found.add(file, "invalid_context", f"line {raw.line}: {error.detail}")
            for again in self._again[split]:
                again.skip_line()
            return
        self._seen[split].add(title_hash(record["qid"]))
        if given is not None:
            for passage in ranked:
                known = given[1].with_id(passage.passage_id)
                if not given[1].is_passage(passage.passage_id) or (known is not None and known.text != passage.text):
                    fault = f"line {raw.line}: {passage.passage_id}, or with another text"
                    self._found.add(file, "unknown_passage", fault)
        self._compare(split, record, positives, ranked)

    def _own_record(self, split: str, context: Json) -> Json:
        record = {name: value for name, value in context.items() if name not in ADDED}
        check_published(record)
        if self._is_released:
            check_record(record, split)
        if title_hash(record["qid"]) in self._seen[split]:
            raise RecordError("duplicate_question", f"{record['qid']} was given before")
        return record

    def _compare(
        self, split: str, record: Json, positives: Sequence[Positive], ranked: Sequence[RankedPassage]
    ) -> None:
        context, for_reader = with_passages(record, positives, ranked, self._options)
        for file, again in zip(self._again[split], (context, for_reader), strict=True):
            file.write(kilt_line(again), record["qid"])
        self._tally.see(split, context, is_ranked=bool(ranked))
        self._n_answers += len(record["answer_list"])
        placed = {positive.pid for positive in positives}
        for pid in pids_of(record):
            if (pid in placed) == (pid in self._unplaced):
                self._found.add(contexts_path(split), "proof_unplaced", pid)
            self._unplaced.pop(pid, None)

    def _ranked_in(self, context: Json) -> list[RankedPassage]:
        ranked = [_ranked_passage(given) for given in objects_at(context, "ctxs")]
        if len(ranked) > self._options.most_ranked:
            raise RecordError(
                "too_many", f"{len(ranked)} ranked passages, but {self._options.most_ranked} were requested"
            )
        if len({passage.passage_id for passage in ranked}) < len(ranked):
            raise RecordError("duplicate_passage", "a ranked passage appears twice")
        return ranked

    def _lines(self, file: str) -> Generator[RawRecord]:
        for number, line in enumerate(self._checking.lines(file), start=1):
            yield RawRecord(file, number, -1, line)

    def _check_counts(self, reasons: Mapping[str, int], silent: tuple[int, int]) -> None:
        path, manifest, tally = self._checking.path, self._checking.manifest, self._tally
        claimed = manifest.facts["counts"]
        batches = self._checking.batches("rejected", ["reason"])
        rejected = Counter(reason for _, batch in batches for reason in batch["reason"].to_pylist())
        with Folder.of(join(path, REPORT)).open() as opened:
            if opened.read() != canonical_json(claimed):
                self._found.add(REPORT, "counts", "not the counts of the manifest")
        # For a question without ranked passages, the files do not show whether its ranked line was empty or missing.
        n_without, n_fewer = silent
        n_empty = tally.without_retrieved - n_without
        if n_without >= 0 and 0 <= n_fewer - tally.fewer_negatives <= n_empty:
            tally.without_retrieved, tally.fewer_negatives = n_without, n_fewer
        counted = contexts_report(tally, reasons, rejected)
        if counted != claimed:
            for name, value in counted.items():
                if (written := claimed.get(name)) != value:
                    self._found.add(MANIFEST, "counts", f"{name}: {value} counted, {written} written")


def _positives_in(context: Json, record: Json) -> list[Positive]:
    """Returns the passages that hold proofs, as they are in a line.

    Raises:
        RecordError: they are malformed, or not in the order of the proofs.
    """
    positives = []
    for positive in objects_at(context, "positive_ctxs"):
        passage = GoldText(*(text_at(positive, name) for name in ("chunk_id", "title", "text")))
        positives.append(Positive(text_at(positive, "pid"), passage))
    given = [positive.pid for positive in positives]
    placed = set(given)
    if given != [pid for pid in pids_of(record) if pid in placed]:
        raise RecordError("odd_positives", "positive_ctxs do not match its proofs, or are in another order")
    return positives


def _ranked_passage(context: Json) -> RankedPassage:
    score = context.get("score")
    if not isinstance(score, float):
        raise RecordError("wrong_type", f"'score': expected a number with a point, found {repr(score)[:80]}")
    return RankedPassage(text_at(context, "id"), text_at(context, "title"), text_at(context, "text"), score)
