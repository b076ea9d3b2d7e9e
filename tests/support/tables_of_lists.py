"""Tables of list pages made up for a test."""

from __future__ import annotations

from collections.abc import Sequence

from mapping.qampari.list_tables import LinkedText, ListRow, ListTable
from mapping.qampari.records import ProofText, QuestionEntity
from mapping.qampari.selection import AnswerFilter
from mapping.qampari.table_questions import DroppedQuestion, make_questions, table_facts

SEED = "tables"


LIST = QuestionEntity("lakes of Sweden", ("lakes of Sweden",), "List of lakes of Sweden", None)


def made_list(
    values: Sequence[str],
    *,
    column: str = "County",
    key: str = "Lake",
    number: int = 0,
    links: Sequence[int | None] = (),
) -> ListTable:
    """A list of a lake for each value, the lakes' pages numbered from 1 on."""
    rows = []
    for place, value in enumerate(values):
        page_id = links[place] if links else place + 1
        key_text = LinkedText(f"Lake {place + 1}", page_id, None if page_id is None else f"Title {page_id}")
        rows.append(ListRow(key_text, (key_text, LinkedText(value, None, None))))
    return ListTable(900, LIST.title or "", LIST.text, (number,), (key, column), 0, (1,), tuple(rows))


def made_proofs(*tables: ListTable, without: Sequence[str] = ()) -> dict[str, ProofText]:
    """A proof, called like the fact, of every fact but some."""
    keys = [table_fact.key for table_fact in table_facts(tables) if table_fact.key not in without]
    return {key: ProofText(key, 1, "T", 2, 0, len(key), 0) for key in keys}


def asked_questions(
    *tables: ListTable, without: Sequence[str] = (), keep: AnswerFilter | None = None
) -> tuple[dict[str, list[str]], dict[str, DroppedQuestion]]:
    """The texts of the questions with those of their answers, and what was not made by its key."""
    questions, unkept = make_questions(tables, made_proofs(*tables, without=without), seed=SEED, keep=keep)
    return (
        {question.question_text: [answer.text for answer in question.answers] for question in questions},
        {question.key: question for question in unkept},
    )
