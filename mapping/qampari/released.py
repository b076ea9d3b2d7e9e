"""Questions as QAMPARI's files have them, one JSON object a line.

Source: QAMPARI's released files ``qampari_data/{train,dev,test}_data.jsonl``; ``meta`` is our own and left out there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from kbsource.errors import RecordError
from mapping.qampari.facts.evidence import released_case
from mapping.qampari.question_rows import SPLITS, DrawnQuestion
from mapping.qampari.questions import SUBSETS
from mapping.qampari.records import Question, QuestionAnswer, QuestionEntity
from mapping.sources.reading.base import Split

_QID = re.compile(rf"(0|[1-9][0-9]*)__({'|'.join(SUBSETS)})__({'|'.join(SPLITS)})")


class QuestionId(NamedTuple):
    """What a qid is made of: number within the file of the split, subset, split."""

    n: int
    subset: str
    split: str


def qid_of(n: int, subset: str, split: Split) -> str:
    """Gives a question's id.

    >>> qid_of(799, "wikidata_simple", "dev")
    '799__wikidata_simple__dev'
    """
    return f"{n}__{subset}__{split}"


def parse_qid(qid: str) -> QuestionId:
    """Gives the parts of a question's id.

    Raises:
        RecordError: ``malformed_qid``.
    """
    found = _QID.fullmatch(qid)
    if found is None:
        raise RecordError("malformed_qid", f"{qid!r} is not <number>__<subset>__<split>")
    return QuestionId(int(found[1]), found[2], found[3])


def aid_of(qid: str, number: int) -> str:
    """Gives the id of the answer with that number in its question."""
    return f"{qid}__{number}"


def pid_of(aid: str, number: int) -> str:
    """Gives the id of the proof with that number of its answer."""
    return f"{aid}__{number}"


def page_url(host: str, title: str) -> str:
    """Gives a page's address as released ones are: nothing in it is percent-encoded.

    >>> page_url("en.wikipedia.org", "Who's Who? (book)")
    "https://en.wikipedia.org/wiki/Who's_Who?_(book)"
    """
    return f"https://{host}/wiki/{title.replace(' ', '_')}"


class Form(NamedTuple):
    """How a release is written; stands in its manifest under ``form``.

    Attributes:
        host: of the wiki, for the addresses of pages.
        with_meta: records have ``meta``.
        is_released_case: proofs are written as ``evidence.released_case`` does.
        seed: of every draw.
    """

    host: str
    with_meta: bool
    is_released_case: bool
    seed: str


def released_record(drawn: DrawnQuestion, form: Form) -> dict[str, Any]:
    """Gives a question that has a qid as the files have it, keys in their order."""
    question, qid, url_of = drawn.question, drawn.qid or "", partial(page_url, form.host)
    cased = released_case if form.is_released_case else _as_written
    record: dict[str, Any] = {
        "qid": qid,
        "question_text": question.text if drawn.paraphrase is None else drawn.paraphrase,
        "entities": [_entity(entity, url_of) for entity in question.entities],
        "answer_list": [
            _answer(one, aid_of(qid, number), url_of, cased) for number, one in enumerate(question.answers)
        ],
    }
    return {**record, "meta": _meta(question)} if form.with_meta else record


def record_line(record: dict[str, Any]) -> bytes:
    """Gives a record as its line, with the newline; in ASCII, as the released files are."""
    return json.dumps(record).encode("ascii") + b"\n"


def _as_written(text: str) -> str:
    return text


def _entity(entity: QuestionEntity, page_url: Callable[[str], str]) -> dict[str, Any]:
    address = {} if entity.title is None else {"entity_url": page_url(entity.title)}
    return {"entity_text": entity.text, **address, "aliases": list(entity.aliases)}


def _answer(
    answer: QuestionAnswer, aid: str, page_url: Callable[[str], str], cased: Callable[[str], str]
) -> dict[str, Any]:
    address = {} if answer.title is None else {"answer_url": page_url(answer.title)}
    proofs = [
        {"proof_text": cased(one.text), "found_in_url": page_url(one.title), "pid": pid_of(aid, number)}
        for number, one in enumerate(answer.proofs)
    ]
    return {"answer_text": answer.text, "aid": aid, "aliases": list(answer.aliases), **address, "proof": proofs}


def _meta(question: Question) -> dict[str, Any]:
    return {
        "key": question.key,
        "property_ids": list(question.property_ids),
        "type_label": question.type_label,
        "entity_ids": [entity.item_id for entity in question.entities],
        "n_answers": question.n_answers,
        "n_validated": question.n_validated,
        "answers": [
            {
                "item_id": answer.item_id,
                "via_id": None if answer.via is None else answer.via.item_id,
                "proofs": [
                    {
                        "page_id": proof.page_id,
                        "element": proof.element,
                        "start_char": proof.start_char,
                        "end_char": proof.end_char,
                        "entailment": proof.entailment,
                        "hypothesis": proof.hypothesis,
                    }
                    for proof in answer.proofs
                ],
            }
            for answer in question.answers
        ],
    }
