"""Natural Questions: no record is lost, and outputs follow the rules, whatever the annotations."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mapping.records import Example
from mapping.sources.nq import MAX_ANSWER_TOKENS, NqOptions, NqQuestions
from mapping.sources.reading.base import Tally
from mapping.sources.reading.examples import read_examples
from mapping.sources.reading.files_in import RawRecord
from mapping.sources.reading.reasons import EXCLUDED, REJECTED
from mapping.sources.reading.scratch import Scratch
from tests.support.dataset_sources import is_balanced
from tests.support.nq_records import nq_annotation, nq_question

_TOKENS = st.sampled_from(["a", "b", "c", "<P>", "</P>", "<Li>", ".", "\u180e", "<i>"])


_PLACES = st.tuples(st.integers(-1, 9), st.integers(-1, 9))


_ANNOTATIONS = st.lists(
    st.builds(
        lambda short, long, choice: nq_annotation(*short, long=long, choice=choice),
        st.lists(_PLACES, max_size=3),
        st.just((-1, -1)) | _PLACES,
        st.sampled_from(["NONE", "NONE", "YES", "NO", "?"]),
    ),
    max_size=3,
)


_RECORDS = st.builds(
    lambda number, tokens, annotations: nq_question(*annotations, text=" ".join(tokens), example_id=number),
    st.integers(-3, 3),
    st.lists(_TOKENS, min_size=6, max_size=8),
    _ANNOTATIONS,
)


def _expected(record: dict[str, Any]) -> list[tuple[str | None, str | None]] | None:
    """Gives answer and evidence of each output, by the rules word for word; None for a record that is left out."""
    tokens = record["document_text"].split(" ")
    tags = {"<P>", "</P>", "<Li>"}

    def words(place: dict[str, int]) -> list[str] | None:
        start, end = place["start_token"], place["end_token"]
        if not 0 <= start < end <= len(tokens):
            return None
        return [one for one in tokens[start:end] if one not in tags]

    outputs: list[tuple[str | None, str | None]] = []
    has_short = False
    for annotation in record["annotations"]:
        for place in annotation["short_answers"]:
            found = words(place)
            if found is None:
                return None
            answer = " ".join(found)
            is_short = len(found) <= MAX_ANSWER_TOKENS
            has_short |= bool(found) and is_short
            if found and answer not in [one for one, _ in outputs]:
                outputs.append((answer, answer if is_short else None))
    if not has_short:
        return None
    long_answers: list[str] = []
    for annotation in record["annotations"]:
        place = annotation["long_answer"]
        if (place["start_token"], place["end_token"]) != (-1, -1):
            found = words(place)
            if found is None:
                return None
            if " ".join(found) not in long_answers:
                long_answers.append(" ".join(found))
    return [*outputs, *((None, text) for text in long_answers)]


@given(st.lists(_RECORDS, max_size=8))
def test_no_record_is_lost_without_a_reason_and_outputs_follow_the_rules(records: list[dict[str, Any]]) -> None:
    raws = [RawRecord("f", line, 0, json.dumps(one).encode()) for line, one in enumerate(records, 1)]
    tally = Tally()
    questions = NqQuestions("dev", campaign=lambda key: None, options=NqOptions())
    with Scratch(None) as scratch:
        rows = list(
            read_examples(
                [raws],
                id_of=lambda record: str(record["example_id"]),
                convert=questions.example,
                scratch=scratch,
                tally=tally,
            )
        )
    assert is_balanced(tally)
    assert tally.records == len(records)
    assert set(tally.excluded) <= EXCLUDED.keys()
    assert set(tally.rejected) <= REJECTED.keys()
    given_lines = {row.line for row in rows if isinstance(row, Example)}
    seen: set[int] = set()
    for line, record in enumerate(records, 1):
        is_valid = all(one["yes_no_answer"] != "?" for one in record["annotations"])
        expected = _expected(record) if is_valid else None
        is_given = expected is not None and record["example_id"] not in seen
        assert (line in given_lines) == is_given
        if is_given:
            seen.add(record["example_id"])
    for row in rows:
        if isinstance(row, Example):
            shown = [(out.answer, out.evidence[0].text if out.evidence else None) for out in row.outputs]
            assert shown == _expected(records[row.line - 1])
