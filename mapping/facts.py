"""Changed facts: Wikidata's statements about a page's subject at two times, as questions with an old and a new proof.

::

    facts/                          every fact of a subject and a property that has a question, Parquet
    old-kilt.jsonl  new-kilt.jsonl  the questions in KILT's form, with the answers in each release
    report.json                     facts by outcome and problem; all statements by property
    manifest.json                   written last
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import product
from typing import Annotated, Any, Literal

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from kbsource.columns import rebatched, rows_of, schema_of
from kbsource.documents import read_toml
from kbsource.errors import SetupError, shown_name
from kbsource.release.counts import TableCount
from kbsource.release.invariants import Checking, Invariant
from kbsource.release.kind import CardText, ListingKind, MadeFrom
from kbsource.release.layout import shard_path
from kbsource.release.manifest import Count, ListingManifest, SourceFacts, shape
from kbsource.release.measures import Measure, ToRows, literals, meanings_table
from kbsource.release.output import commit
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.sql import with_counts
from kbsource.release.writer import write_batches, write_lines
from kbsource.rows import Int32, Row
from mapping.amber.records import ANY, load_collections
from mapping.qampari.kind import proof_invariant
from mapping.qampari.questions import load_relations
from mapping.search.bleu import bleu
from mapping.search.tokens import Tokeniser
from mapping.write.kilt import kilt_line, section_value
from mapping.write.kind import REPORT, write_report

Side = Literal["old", "new"]
SIDES: tuple[Side, Side] = ("old", "new")
OUTCOMES: Mapping[str, str] = {
    "changed": "both releases of Wikidata have answers, but different ones",
    "stayed": "both have the same answers",
    "appeared": "only the newer release has answers",
    "disappeared": "only the older release has answers",
}
"""Outcomes of a fact."""
_REASONS = {
    "no_page": "the {} release of Wikidata has answers, but the release of pages has no page of the subject",
    "no_name": "no answer of the {} release has a name to look for",
    "not_found": "the page of the {} release names no answer of its time",
    "not_entailed": "the model accepts no sentence of the {} release that names an answer",
}
PROBLEMS: Mapping[str, str] = {
    **{
        f"{side}_{reason}": said.format("older" if side == "old" else "newer")
        for reason, said in _REASONS.items()
        for side in SIDES
    },
    "change_unproved": "no answer that differs between the releases is proved",
}
"""Reasons why no question is made from a fact, in the order of the checks."""
QUESTION = "question"
MEASURES = (
    Measure(
        "Outcomes of the facts",
        f"""with counts as (
            select outcome, coalesce(problem, '{QUESTION}') as said, count(*) as n from facts group by all)
        select outcome, coalesce(sum(n) over (partition by outcome), 0)::bigint as facts,
            replace(said, '_', ' ') as said, coalesce(n, 0) as n, if(said = '{QUESTION}', '-', said) as _problem
        from {literals("outcomes", ("place", "outcome"), enumerate(OUTCOMES))}
            cross join (select distinct said from counts union select '{QUESTION}') as names
            left join counts using (outcome, said)
        order by place, list_position({[QUESTION, *PROBLEMS]}, names.said), names.said""",
        section="Facts",
        spread="said",
        links={
            "facts": ToRows("facts", {"outcome": "outcome"}),
            "n": ToRows("facts", {"outcome": "outcome", "problem": "_problem"}),
        },
        needs=("facts",),
    ),
    Measure(
        "What outcomes and problems mean",
        f"select name, meaning from {meanings_table({**OUTCOMES, **PROBLEMS})} order by place",
        section="Facts",
    ),
)
"""Contents of the overview of a release of changed facts."""
_OWN = "mapping/facts.toml"
_GROUP_ROWS, _ROWS = 1 << 14, 256
_PROPERTY = re.compile(r"P[1-9]\d*", re.ASCII)


class FactProof(Row):
    """A text of a page that mentions an answer: exactly ``elements[element].text[start_char:end_char]``."""

    text: Annotated[str, "the sentence that names the answer, preceded by the sentences before it"]
    page_id: Annotated[int, "page of the subject"]
    title: Annotated[str, "title of the page in this release"]
    revision_id: Annotated[int, "revision of the page in this release"]
    section: Annotated[str, "KILT's name of the section"]
    element: Annotated[Int32, "number of the element"]
    start_char: Annotated[Int32, "first code point of the span in the element's text"]
    end_char: Annotated[Int32, "end of the span in the element's text, one past its last code point"]
    sentence_char: Annotated[Int32, "first code point of the sentence that names the answer, in the element's text"]
    paragraph_id: Annotated[Int32, "number of KILT's paragraph"]
    paragraph_char: Annotated[Int32, "position in the paragraph where the text begins"]
    answer_text: Annotated[str, "the answer as written in the page"]
    hypothesis: Annotated[str, "the statement as a sentence"]
    bleu: Annotated[float, "score of the hypothesis on the sentence that names the answer"]
    entailment: Annotated[float | None, "probability that the text entails the hypothesis; null if not judged"]


class FactAnswer(Row):
    """A value of a statement."""

    value: Annotated[
        str,
        "the value that is compared: an item (its id in the newer release), a year, a number or a text",
    ]
    item_id: Annotated[str | None, "Wikidata item in this release; null for years, numbers and texts"]
    text: Annotated[str | None, "name of the value; null if it has no name to search for"]
    aliases: Annotated[tuple[str, ...], "all its names, starting with `text`"]
    title: Annotated[str | None, "title of its page; null without a page"]
    is_in_both: Annotated[bool, "true if the other release of Wikidata has the value too"] = False
    n_sentences: Annotated[Int32, "number of sentences of the subject's page that name the value"] = 0
    proof: Annotated[FactProof | None, "span of the page that states the value; null if there is no such span"] = None


class Fact(Row):
    """One row per subject and property, sorted by the numbers in their ids (Q…, P…)."""

    item_id: Annotated[str, "subject, by its id in the newer release"]
    old_item_id: Annotated[str, "id of the subject in the older release; that item may have been merged since"]
    property_id: Annotated[str, "property"]
    property: Annotated[str, "English label of the property"]
    entity: Annotated[
        str, "name of the subject in the question: its label if the label resolves to its page, else the title"
    ]
    question: Annotated[str, "the question"]
    outcome: Annotated[str, " | ".join(OUTCOMES)]
    problem: Annotated[str | None, "reason why no question is made from the row; null if one is made"]
    old_page_id: Annotated[int | None, "page of the subject in the older release; null without a page"]
    old_title: Annotated[str | None, "title of the page in the older release"]
    new_page_id: Annotated[int | None, "page of the subject in the newer release; null without a page"]
    new_title: Annotated[str | None, "title of the page in the newer release"]
    old_answers: Annotated[tuple[FactAnswer, ...], "values in the older release of Wikidata"]
    new_answers: Annotated[tuple[FactAnswer, ...], "values in the newer release of Wikidata"]

    def answers(self, side: Side) -> tuple[FactAnswer, ...]:
        """Returns the answers of a release."""
        return self.old_answers if side == "old" else self.new_answers

    def page_id(self, side: Side) -> int | None:
        """Returns the page of a release."""
        return self.old_page_id if side == "old" else self.new_page_id


def load_templates(path: str | None = None) -> dict[str, str]:
    """Returns the question templates by property, with ``{entity}`` for the subject.

    Args:
        path: TOML file of all questions; None for the package's own.

    Raises:
        SetupError: the file does not contain such questions.
    """
    where = path or _OWN
    if path is None:
        own = tomllib.loads(resources.files("mapping").joinpath("facts.toml").read_text("utf-8"))
    else:
        own = read_toml(path, remedy=f"compare it with {_OWN}")
    for name, text in own.items():
        if not _PROPERTY.fullmatch(name) or not isinstance(text, str) or text.count("{entity}") != 1:
            shown = shown_name(name)
            raise SetupError(f'{where}: {shown}: expected a line like P36 = "What is the capital of {{entity}}?"')
    if path is not None:
        return own
    templates = {
        relation.property_id: f"{relation.ask} are the {relation.noun} {relation.link} {{entity}}?"
        for relation in load_relations().composition.values()
        if relation.is_enabled
    }
    for collection in load_collections(None, (), "corrected"):
        for property_id, by_type in collection.qa_templates.items():
            templates[property_id] = by_type[ANY][0].replace("$entity", "{entity}")
    return templates | own


def compared(old: Sequence[FactAnswer], new: Sequence[FactAnswer]) -> str:
    """Returns the outcome for the answers of two releases; at least one release must have answers."""
    if not old or not new:
        return "disappeared" if old else "appeared"
    return "stayed" if {answer.value for answer in old} == {answer.value for answer in new} else "changed"


def with_common(
    old: Sequence[FactAnswer], new: Sequence[FactAnswer]
) -> tuple[tuple[FactAnswer, ...], tuple[FactAnswer, ...]]:
    """Returns the answers of two releases. Each answer has a flag that is true if both releases contain it."""
    common = {answer.value for answer in old} & {answer.value for answer in new}
    old, new = ([replace(answer, is_in_both=answer.value in common) for answer in answers] for answers in (old, new))
    return tuple(old), tuple(new)


def problem_of(fact: Fact) -> str | None:
    """Returns the reason why no question is made from a fact, one of ``PROBLEMS``; None if one is made.

    Each release with answers must prove at least one of them. If the answers differ, at least one proved answer must
    differ.
    """
    sides = [(side, fact.answers(side)) for side in SIDES if fact.answers(side)]
    lacking: dict[str, Callable[[Side, Sequence[FactAnswer]], bool]] = {
        "no_page": lambda side, _: fact.page_id(side) is None,
        "no_name": lambda _, answers: all(answer.text is None for answer in answers),
        "not_found": lambda _, answers: not any(answer.n_sentences for answer in answers),
        "not_entailed": lambda _, answers: all(answer.proof is None for answer in answers),
    }
    for reason, is_lacking in lacking.items():
        for side, answers in sides:
            if is_lacking(side, answers):
                return f"{side}_{reason}"
    differing = [answer for _, answers in sides for answer in answers if not answer.is_in_both]
    return "change_unproved" if differing and all(answer.proof is None for answer in differing) else None


def score(hypothesis: str, proof_text: str, sentence_at: int, tokeniser: Tokeniser) -> tuple[float, float]:
    """Returns two scores of a statement's sentence: its BLEU against the sentence of the proof that mentions the
    answer, and the share of words that both have in common. ``sentence_at`` is the offset of that sentence in the
    proof."""
    stated, said = tokeniser.forms(hypothesis), tokeniser.forms(proof_text[sentence_at:])
    return bleu(stated, said), len({*stated} & {*said}) / max(len({*stated, *said}), 1)


def fact_record(fact: Fact, side: Side) -> dict[str, Any] | None:
    """Returns the KILT question of a fact, with the answers of a release; None if no question is made for this release.

    Each name occurs once, in the order of the answers, with the position of its proof if it has one. The answers of the
    other release are in ``meta``.
    """
    other: Side = "new" if side == "old" else "old"
    if fact.problem is not None or not fact.answers(side):
        return None
    meta = {"outcome": fact.outcome, "item_id": fact.item_id, "property_id": fact.property_id}
    return {
        "id": f"{fact.item_id}-{fact.property_id}",
        "input": fact.question,
        "output": _outputs(fact.answers(side)),
        "meta": {**meta, other: _outputs(fact.answers(other))},
    }


def _outputs(answers: Sequence[FactAnswer]) -> list[dict[str, Any]]:
    outputs: dict[str, dict[str, Any]] = {}
    for answer in sorted(
        answers, key=lambda answer: answer.proof is None
    ):  # if several answers have this name, it belongs to a proved one
        for number, name in enumerate(answer.aliases):
            provenance = [_provenance(answer.proof)] if number == 0 and answer.proof is not None else []
            outputs.setdefault(name, {"answer": name, **({"provenance": provenance} if provenance else {})})
    return list(outputs.values())


def _provenance(proof: FactProof) -> dict[str, Any]:
    end_char = proof.paragraph_char + proof.end_char - proof.start_char
    return {
        "wikipedia_id": str(proof.page_id),
        "title": proof.title,
        "start_paragraph_id": proof.paragraph_id,
        "start_character": proof.paragraph_char,
        "end_paragraph_id": proof.paragraph_id,
        "end_character": end_char,
        "bleu_score": proof.bleu,
        "meta": {"revision_id": proof.revision_id, "entailment": proof.entailment, "hypothesis": proof.hypothesis},
        "section": section_value(proof.section, "\n"),
    }


def kilt_path(side: Side) -> str:
    """Returns the path of the file of a release's answers."""
    return f"{side}-kilt.jsonl"


_FACTS = shard_path("facts", 0, 1)
INVARIANTS = (
    Invariant("invalid_fact", "a fact is malformed, or out of order"),
    Invariant(
        "invalid_fact",
        "",
        """select _file, item_id || ', ' || property_id || ': out of order, or duplicated' from (
            select *, (try_cast(item_id[2:] as bigint), try_cast(property_id[2:] as bigint)) as place,
                lag(place) over (order by _file, _row) as before from facts
        ) where place <= before""",
    ),
    Invariant("records_differ", "the questions of a release are not those made from its table of facts"),
    *(
        proof_invariant(
            _FACTS,
            f"""select item_id || ', ' || property_id as key,
                unnest([answer.proof for answer in {side}_answers if answer.proof is not null]) as proof from facts""",
            side,
            further="when pages.revision_id <> proof.revision_id then format('page {} has another revision', page_id)",
        )
        for side in SIDES
    ),
)


def check_facts(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Recomputes the questions, and each fact's derived columns, from the table of facts. Returns None if files are
    missing or damaged."""
    if not checking.has_files([_FACTS, *(kilt_path(side) for side in SIDES)]):
        return None
    tokeniser = Tokeniser("en")
    for side in SIDES:
        with checking.remade(kilt_path(side), "records_differ") as written:
            for _, batch in checking.batches("facts"):
                for fact in rows_of(batch, Fact):
                    if (record := fact_record(fact, side)) is not None:
                        written.write(kilt_line(record), record["id"])
                    for fault in _faults(fact, side, tokeniser):
                        checking.found.add(_FACTS, "invalid_fact", f"{fact.item_id}, {fact.property_id}: {fault}")
    return {}


def _faults(fact: Fact, side: Side, tokeniser: Tokeniser) -> Iterator[str]:
    if side == "new":
        if not fact.old_answers and not fact.new_answers:
            yield "it has no answer"
        elif fact.outcome != compared(fact.old_answers, fact.new_answers):
            yield f"its answers do not have the outcome {fact.outcome}"
        if fact.problem != problem_of(fact):
            yield f"its proofs do not have the problem {fact.problem}"
    answers, values = fact.answers(side), {answer.value for answer in fact.answers("new" if side == "old" else "old")}
    if len({answer.value for answer in answers}) < len(answers):
        yield f"a value occurs twice in the {side} answers"
    for answer in answers:
        if answer.is_in_both != (answer.value in values):
            yield f"the flag that both releases have {answer.value} is wrong"
        if answer.aliases[:1] != (() if answer.text is None else (answer.text,)):
            yield f"the first alias of {answer.value} must be its name"
        if (proof := answer.proof) is not None:
            sentence_at = proof.sentence_char - proof.start_char
            is_whole = len(proof.text) == proof.end_char - proof.start_char and 0 <= sentence_at < len(proof.text)
            if not answer.n_sentences or not is_whole or proof.answer_text not in proof.text[sentence_at:]:
                yield f"the proof of {answer.value} does not name it, or differs in length from its span"
            elif proof.bleu != score(proof.hypothesis, proof.text, sentence_at, tokeniser)[0]:
                yield f"the score of the proof of {answer.value} is wrong"
            if proof.page_id != fact.page_id(side):
                yield f"the proof of {answer.value} is in another page"


class _Statements(msgspec.Struct, forbid_unknown_fields=True):
    """Statements of a property in one release of Wikidata."""

    statements: Count
    without_page: Count


class _OfProperty(msgspec.Struct):
    """A property in the report."""

    label: str | None
    question: str | None
    old: _Statements
    new: _Statements


FACTS = ListingKind(
    name="release of moved facts",
    format="kbsource-facts-2",
    facts=shape("facts", old=SourceFacts, new=SourceFacts, counts=dict[str, dict[str, Count]]),
    made_by="kbsource facts",
    card=CardText(
        title="Moved facts",
        summary=(
            "Questions whose answers changed, stayed the same, appeared or disappeared between two snapshots of "
            "Wikidata and Wikipedia, with the old and the new proof of each."
        ),
        main="facts",
        holds=("wikipedia", "wikidata"),
        tasks=("question-answering", "text-retrieval"),
        tags=("wikipedia", "wikidata", "KILT", "temporal"),
        limits=(
            (
                "Answers are the statements of Wikidata on the two dates. Wikidata may record a change later than it "
                "happened."
            ),
            (
                "Questions are made from templates. A proof is a sentence that names an answer. `entailment` is null "
                "if no model judged whether the sentence states the fact."
            ),
        ),
    ),
    queries=(
        (
            "facts by outcome",
            "select property, outcome, count(*) as n from facts group by all order by n desc, property",
        ),
    ),
    tables={"facts": schema_of(Fact)},
    required=("facts",),
    files=(*(kilt_path(side) for side in SIDES), REPORT),
    documents={REPORT: shape("report", properties=dict[str, _OfProperty])},
    counts=(
        TableCount(
            "counts",
            f"select outcome, coalesce(problem, '{QUESTION}'), count(*) from facts group by all",
            names=[*product(OUTCOMES, (QUESTION, *PROBLEMS))],
        ),
        TableCount(None, "select count(*) from facts", summary="facts"),
        TableCount(None, "select count(*) from facts where problem is null", summary="questions"),
        TableCount(
            None,
            "select sum(len([0 for answer in old_answers || new_answers if answer.proof is not null])) from facts",
            summary="proofs",
        ),
    ),
    invariants=INVARIANTS,
    check=check_facts,
    shown_by=tuple(("facts", name) for name in ("entity", "item_id", "old_item_id", "question")),
    made_from={side: MadeFrom(PAGES_RELEASE, side, ("pages",)) for side in SIDES},
    measures=MEASURES,
)


def commit_facts(
    batches: Callable[[], Iterable[pa.RecordBatch]],
    properties: Mapping[str, Mapping[str, Any]],
    *,
    output: str,
    facts: Mapping[str, Any],
) -> None:
    """Writes rows of ``Fact`` in order, their questions, the report and finally the manifest.

    Args:
        batches: returns the rows; may be called several times.
        properties: facts about the statements of every property, for the report.
        output: folder, marked as unfinished.
        facts: facts for the manifest.
    """

    def lines(side: Side) -> Iterator[bytes]:
        for batch in batches():
            for start in range(0, batch.num_rows, _ROWS):  # Python values take many times more memory
                for fact in rows_of(batch.slice(start, _ROWS), Fact):
                    if (record := fact_record(fact, side)) is not None:
                        yield kilt_line(record)

    entries = [write_batches(rebatched(batches(), _GROUP_ROWS), "facts", FACTS.tables["facts"], output=output)]
    entries += [write_lines(lines(side), kilt_path(side), output=output) for side in SIDES]
    facts = with_counts(FACTS, entries, facts, output)
    entries.append(write_report({"facts": facts["counts"], "properties": properties}, output=output))
    commit(FACTS, FACTS.listing(entries, facts), output)
