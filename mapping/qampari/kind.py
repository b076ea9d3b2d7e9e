"""The kind of release for QAMPARI, and its invariants: tables and split files have the same content, and proofs are at
their recorded positions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from kbsource.columns import rows_of, schema_of
from kbsource.errors import RecordError, SetupError
from kbsource.files import join
from kbsource.records import BadRecord
from kbsource.release.counts import TableCount
from kbsource.release.invariants import Checking, Invariant
from kbsource.release.kind import CardText, ListingKind
from kbsource.release.layout import MANIFEST, shard_path
from kbsource.release.manifest import ListingManifest, SourceFacts, shape
from mapping.qampari.measures import MEASURES
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SUBSETS
from mapping.qampari.records import SPLITS, QueryRow, Question
from mapping.qampari.release import (
    DATA,
    Form,
    data_path,
    form_of,
    parse_qid,
    part_id,
    release_paths,
    released_record,
)
from mapping.sources.raw_records import Json, RawRecord, list_at, objects_at, text_at
from mapping.write.kilt import kilt_line
from mapping.write.kind import FROM_PAGES, REPORT

TABLES = {"questions": schema_of(Question), "queries": schema_of(QueryRow)}
"""Tables that only a QAMPARI release has, by folder name."""
_QUESTIONS = shard_path("questions", 0, 1)
_PROOF = "(proof.end_char - proof.start_char)"


def proof_invariant(file: str, proofs: str, source: str, *, further: str = "") -> Invariant:
    """Returns the invariant that proofs are equal to the text of their pages.

    Args:
        file: the file of the proofs.
        proofs: query for a key and a proof, a struct with page, title, element, position and text.
        source: name of the release of the pages.
        further: SQL cases for other errors in a proof.
    """
    return Invariant(
        "proof_differs",
        "a proof does not match its page",
        f"""select '{file}', key || ': ' || fault from (
            select key, case when page_id is null then 'no page ' || proof.page_id
                when pages.title <> proof.title
                    then format('page {{}} is ''{{}}'', not ''{{}}''', page_id, pages.title, proof.title)
                {further}
                when proof.element not between 0 and len(elements) - 1
                    then format('page {{}} has no element {{}}', page_id, proof.element)
                when substring(elements[proof.element + 1].text, proof.start_char + 1, {_PROOF}) <> proof.text
                    then format('page {{}}, element {{}} has a different text at the position of the proof',
                        page_id, proof.element)
            end as fault from ({proofs}) left join {source}.pages on page_id = proof.page_id
        ) where fault is not null""",
        needs=(source,),
    )


INVARIANTS = (
    Invariant("invalid_record", "a released question is malformed"),
    Invariant(
        "invalid_question",
        "a row of the table questions contradicts itself",
        f"""[subset || ', ' || key || ': ' || fault for fault in [
            case when subset not in {(*SUBSETS,)} then 'the subset is unknown'
                when (qid is null) <> (split is null) then 'either the qid or the split is missing'
                when not regexp_full_match(qid, '(0|[1-9][0-9]*)__({"|".join(SUBSETS)})__({"|".join(SPLITS)})')
                    then format('''{{}}'' does not have the form <number>__<subset>__<split>', qid)
                when not ends_with(qid, '__' || subset || '__' || split) then qid || ' names another subset or split'
                when split in ('dev', 'test') and eligible_split is distinct from 'test'
                    then format('a question eligible for {{}} is in split {{}}', eligible_split, split)
                when not (len(answers) + n_dropped <= n_validated and n_validated <= n_answers)
                    then 'the question has more answers than were validated, or the query has fewer' end]
            || [case when thing.text = '' or thing.aliases[1] is distinct from thing.text
                then 'the first alias of ' || thing.text || ' must be its name' end for thing in entities]
            || [case when thing.text = '' or thing.aliases[1] is distinct from thing.text
                then 'the first alias of ' || thing.text || ' must be its name'
                when len(thing.proofs) = 0
                    or len(thing.proofs) % case when subset in ('{COMPOSITION}', '{INTERSECTION}') then 2 else 1 end > 0
                then thing.text || ' has a wrong number of proofs: ' || len(thing.proofs)
                when len([0 for proof in thing.proofs
                    if proof.sentence_char not between proof.start_char and proof.end_char - 1]) > 0
                then 'a proof of ' || thing.text || ' has no sentence'
                when len([0 for proof in thing.proofs if length(proof.text) <> {_PROOF}]) > 0
                then 'a proof of ' || thing.text || ' and its span differ in length' end
                for thing in answers] if fault is not null]""",
        table="questions",
    ),
    *(
        Invariant(
            "duplicate_question",
            "two questions have the same id, number or query",
            f"select min(_file), subset || ', ' || key from {table} group by subset, key having count(*) > 1",
        )
        for table in ("questions", "queries")
    ),
    Invariant("not_released", "a sampled question is not in the file of its split"),
    Invariant("not_sampled", "a released question was not sampled"),
    Invariant("released_differs", "a released question differs from its row in the table"),
    proof_invariant(
        _QUESTIONS,
        "select key, unnest(flatten([answer.proofs for answer in answers])) as proof from questions",
        "kb",
    ),
)


def check_splits(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Compares the split files with the table of questions. Returns None if files are missing or damaged.

    Memory: about 200 bytes per question.
    """
    form, found = form_of(checking.manifest), checking.found
    if form is None:
        found.add(MANIFEST, "manifest", "its content does not have the form of a QAMPARI release")
        return None
    if not checking.has_files(release_paths()):
        return None
    lines: dict[str, bytes] = {}
    for split in SPLITS:
        _read_lines(checking, split, lines)
    for _, batch in checking.batches("questions"):
        for question in rows_of(batch, Question):
            if question.qid is None or question.split is None:
                continue
            line = lines.pop(question.qid, None)
            if line is None:
                found.add(data_path(question.split), "not_released", question.qid)
            elif line != _digest(kilt_line(released_record(question, form))):
                found.add(data_path(parse_qid(question.qid).split), "released_differs", question.qid)
    for qid in lines:
        found.add(data_path(parse_qid(qid).split), "not_sampled", qid)
    return {}


def _read_lines(checking: Checking[ListingManifest], split: str, lines: dict[str, bytes]) -> None:
    """Checks each line of a split separately, and adds it by its qid."""
    file, numbers = data_path(split), set[int]()
    for number, data in enumerate(checking.lines(file), start=1):
        try:
            record = RawRecord(file, number, -1, data).parse()
            n, qid = check_record(record, split), text_at(record, "qid")
        except RecordError as error:
            checking.found.add(file, "invalid_record", f"line {number}: {error.detail}")
            continue
        if qid in lines or n in numbers:
            checking.found.add(file, "duplicate_question", f"line {number}: {qid}")
            continue
        numbers.add(n)
        lines[qid] = _digest(data)


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).digest()


def check_record(record: Json, split: str) -> int:
    """Returns the number in the qid of a released question.

    Raises:
        RecordError: the question does not have the expected structure.
    """
    qid = text_at(record, "qid")
    n, _, named = parse_qid(qid)
    if named != split:
        raise RecordError("other_split", f"{qid} in the file of {split}")
    text_at(record, "question_text")
    for entity in objects_at(record, "entities"):
        _check_names(qid, text_at(entity, "entity_text"), list_at(entity, "aliases"))
    answers = objects_at(record, "answer_list")
    if not answers:
        raise RecordError("no_answers", f"{qid} has no answers")
    for aid, answer in _numbered(answers, "aid", "answer", qid):
        _check_names(aid, text_at(answer, "answer_text"), list_at(answer, "aliases"))
        proofs = objects_at(answer, "proof")
        if not proofs:
            raise RecordError("no_proof", f"{aid} has no proof")
        for pid, proof in _numbered(proofs, "pid", "proof", aid):
            if not text_at(proof, "proof_text") or not text_at(proof, "found_in_url"):
                raise RecordError("empty_proof", f"{pid} has no text or no address")
    return n


def _numbered(parts: list[Json], key: str, what: str, owner: str) -> Iterator[tuple[str, Json]]:
    """Reads the parts of a question or answer, and checks their ids, which consist of the owner's id and a counter."""
    for number, part in enumerate(parts):
        if (given := text_at(part, key)) != part_id(owner, number):
            raise RecordError(f"malformed_{key}", f"{what} {number} of {owner} has the {key} {given!r}")
        yield given, part


def _check_names(owner: str, text: str, aliases: list[Any]) -> None:
    if not text or aliases[:1] != [text]:
        raise RecordError("odd_aliases", f"{owner}: the first alias of {text!r} must be its name")


_FORM = shape("form", host=str, with_meta=bool, is_released_case=bool, seed=str)
QAMPARI_RELEASE = ListingKind(
    name="QAMPARI release",
    format="kbsource-qampari-2",
    facts=shape("facts", qampari=SourceFacts, tasks=SourceFacts, form=_FORM),
    made_by="kbsource qampari",
    card=CardText(
        title="QAMPARI questions",
        summary=(
            "Questions with many answers made by QAMPARI's method from Wikidata, with sentences of Wikipedia that "
            "prove each answer."
        ),
        main="questions",
        holds=("wikipedia", "wikidata"),
        tasks=("question-answering", "text-retrieval"),
        tags=("wikipedia", "wikidata", "QAMPARI"),
        limits=(
            (
                "An answer is included only if Wikidata states it and a sentence supports it, so lists of answers "
                "may be incomplete."
            ),
            "Questions are made from templates.",
        ),
    ),
    queries=(
        (
            "questions with most answers",
            "select question_text, n_answers from questions order by n_answers desc, question_text limit 10",
        ),
        (
            "outcomes of the queries",
            "select subset, outcome, count(*) as n from queries group by all order by subset, n desc",
        ),
    ),
    shown_by=(
        ("questions", "qid"),
        ("questions", "key"),
        ("queries", "key"),
        ("questions", "question_text"),
        ("rejected", "key"),
    ),
    tables={**TABLES, "rejected": schema_of(BadRecord)},
    files=(DATA, REPORT),
    documents={REPORT: dict[str, Any]},
    invariants=INVARIANTS,
    counts=(
        TableCount(None, "select count(*) from questions", summary="questions"),
        TableCount(None, "select sum(len(answers)) from questions", summary="answers"),
        TableCount(
            None, "select sum(list_sum([len(answer.proofs) for answer in answers])) from questions", summary="proofs"
        ),
    ),
    check=check_splits,
    made_from=FROM_PAGES,
    measures=MEASURES,
)


def read_form(output: str) -> tuple[ListingManifest, Form]:
    """Returns the manifest of a finished release, and the format of the release.

    Raises:
        SetupError: there is no manifest, it belongs to another kind of release, or it has changed since it was written.
    """
    manifest = QAMPARI_RELEASE.read(output)
    if (form := form_of(manifest)) is None:
        raise SetupError(f"{join(output, MANIFEST)}: made by another version of kbsource, which can read it.")
    return manifest, form
