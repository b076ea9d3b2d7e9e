"""QAMPARI's joins as SQL: facts to queries, queries to the sentences that may prove them, and these to questions.

Each text is run in a separate database (``kbsource.runtime.warehouse``), after ``JoinRules.macros``. Queries are
numbered as in ``questions.QueryNumbers``. A fact has a number among the facts of simple queries, or among those of
compositions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

import pyarrow as pa

from kbsource.columns import schema_of
from kbsource.rows import Columns, Row
from kbsource.runtime.chunks import rows_batch
from mapping.qampari.classes import ClassTypes, required
from mapping.qampari.names import Name, ValueKind, answer_key, names_of_value
from mapping.qampari.questions import ENTITY_BITS, FAMILY_BITS, QueryNumbers, Relations
from mapping.qampari.records import ProofText
from mapping.qampari.selection import AnswerFilter

_STRINGS = pa.list_(pa.string())
_BITS_OF_WORD = 64

QUERIES = pa.schema([*required("query", "n_answers"), *required("is_tried", of=pa.bool_())])
"""Simple queries with enough answers. A query that has too many answers for a question is not tried."""
QUERY_ANSWERS = pa.schema(required("query", "subject"))
ANSWERS = pa.schema(required("query", "subject", "fact"))
"""Answers of simple queries. Each row has the number of the fact that makes the subject an answer."""
FACT_ROWS = pa.schema(
    [*required("fact"), *required("has_page", of=pa.bool_()), pa.field("hypothesis", pa.string(), nullable=True)]
)
"""Facts. Each row states whether the answer has a page; for a composition, whether the subject or the value has one."""
COUNTED = pa.schema(required("query", "n_answers", "n_with_page", "n_found"))
"""Simple queries whose entity has a name, with the numbers of their answers."""
DECIDED = pa.schema(
    [*COUNTED, pa.field("n_validated", pa.int64()), *required("outcome", of=pa.string())],
)
BASES = pa.schema([*ANSWERS, *required("is_validated", of=pa.bool_())])
"""Answers of the simple queries that compositions are made from."""
CROSSED = pa.schema(required("first", "second", "subject", "first_fact", "second_fact"))
"""The answers of intersections, validated for both queries."""
SAID = pa.schema(
    [
        *required("subject", "property"),
        *required("value", "key", of=pa.string()),
        pa.field("item", pa.int64()),
        pa.field("names", _STRINGS),
    ]
)
"""Values of subjects. Equal values have the same key. The names of items are in another table."""
VALUE_NAMES = pa.schema(list(SAID)[1:])
PAIRS = pa.schema(required("query", "property", "subject", "fact"))
"""Subjects of compositions. Each row has the number of the fact that the subject has a value."""
VALUE_FACTS = pa.schema([*required("fact", "subject", "property"), *required("value", of=pa.string())])
KEYS = pa.schema([*required("fact"), *required("key", of=pa.string())])
"""The keys that equal values of the facts of compositions share."""
COMPOSED = pa.schema(
    [*required("query", "property", "n_answers", "n_with_page", "n_found"), *required("is_judged", of=pa.bool_())]
)
"""Compositions with the numbers of their pairs of subject and value."""


def said_values(values: pa.RecordBatch, kinds: Mapping[str, ValueKind]) -> pa.RecordBatch:
    """Returns rows of ``statements.VALUES`` as rows of SAID."""
    rows = []
    for subject, number, value in zip(*(column.to_pylist() for column in values), strict=True):
        kind = kinds.get(f"P{number}", "text")
        item = int(value[1:]) if kind == "item" else None
        rows.append((subject, number, value, answer_key(kind, value), item, names_of_value(kind, value)))
    return rows_batch(rows, SAID)


class JoinRules(NamedTuple):
    """The options that the joins depend on."""

    keep: AnswerFilter
    most_subjects: int  # properties and values with more subjects are skipped
    takes_all: bool  # true if compositions are made from all simple queries, and not only from questions

    def sql(self, text: str) -> str:
        """Returns one of the texts of this module with these options."""
        return text.format(
            least=self.keep.least,
            most_subjects=self.most_subjects,
            takes_all=str(self.takes_all).lower(),
            entity_bits=ENTITY_BITS,
            entity_mask=(1 << ENTITY_BITS) - 1,
            order_buckets=_ORDER_BUCKETS,
        )

    def macros(self) -> str:
        """Returns the macros that the texts use: parts of a query's number, and the rule that keeps a question."""
        # The share is written with all digits, because a rounded decimal would be another number.
        most, share = self.keep.most, f"{self.keep.share:.17e}"
        return f"""
create macro query_number(property, value) as (property << {ENTITY_BITS} | value) << {FAMILY_BITS};
create macro family(query) as query >> {FAMILY_BITS};
create macro type_place(query) as query & {(1 << FAMILY_BITS) - 1};
create macro entity(query) as (query >> {FAMILY_BITS}) & {(1 << ENTITY_BITS) - 1};
create macro property_of(query) as query >> {ENTITY_BITS + FAMILY_BITS};
create macro outcome_of(n_distinct, n_right, n_all) as case
    when n_distinct < {self.keep.least} then 'too_few_validated'
    when n_distinct > {most} then 'too_many_validated'
    when n_right / n_all < {share} then 'share_too_low'
    else 'kept' end;
create macro may_keep(n_distinct, n_right, n_all) as
    outcome_of(least(n_distinct, {most}), n_right, n_all) = 'kept';
create macro may_keep_simple(n_said, n_all) as may_keep(n_said, least(n_said, {most}), n_all);
"""


RELATIONS = pa.schema([*required("property"), *required("is_typed", of=pa.bool_())])
RELATION_TYPES = pa.schema(required("property", "position", "place", "word", "bit"))
"""Types of relations: their position in the relation, their place in a query's number, and their bit in a fact."""


def relation_rows(relations: Relations) -> Iterator[tuple[int, bool]]:
    """Yields the enabled simple relations, as rows of RELATIONS."""
    for relation in relations.simple.values():
        if relation.is_enabled:
            yield int(relation.property_id[1:]), bool(relation.types)


def relation_type_rows(
    relations: Relations, numbers: QueryNumbers, types: ClassTypes
) -> Iterator[tuple[int, int, int, int, int]]:
    """Yields the types of enabled simple relations that have a class, as rows of RELATION_TYPES."""
    for relation in relations.simple.values():
        for position, label in enumerate(relation.types):
            if relation.is_enabled and label in types.labels:
                word, bit = divmod(types.labels.index(label), _BITS_OF_WORD)
                yield int(relation.property_id[1:]), position, numbers.type_place(label), word, bit


FIND_QUERIES = """
create temp table distinct_facts as
    select property, value, subject, bit_or(types_0) as types_0, bit_or(types_1) as types_1
    from facts semi join (select property, value from facts group by property, value having count(*) >= {least})
    using (property, value) group by property, value, subject;
create temp table pairs as
    select property, value, count(*) as n_subjects, is_typed from distinct_facts join relations using (property)
    group by property, value, is_typed having n_subjects >= {least};
create temp table all_answers as
    select query_number(property, value) as query, subject from distinct_facts join pairs using (property, value)
    where not is_typed and n_subjects <= {most_subjects}
    union all
    select query_number(property, value) | place, subject
    from distinct_facts join pairs using (property, value) join relation_types using (property)
    where n_subjects <= {most_subjects} and (if(word = 0, types_0, types_1) >> bit::ubigint) & 1 = 1;
create temp table queries as
    select query, count(*) as n_answers, {takes_all} or may_keep_simple(count(*), count(*)) as is_tried
    from all_answers group by query having n_answers >= {least};
create temp table answers as
    select query, subject from all_answers semi join (from queries where is_tried) using (query);
"""
"""Makes simple queries of rows of FACTS in ``facts``.

Each type of a typed relation produces a query for the subjects of this type. A subject can be in several queries, or in
no query if it has none of the types. The limits apply to the typed query, with one exception: if there are too many
subjects over all types, property and value are skipped altogether. Typed queries of the same property and value are all
kept, even if their answers are the same.
"""
SKIPPED = """
select
    count(*) filter (is_typed) as n_typed,
    count(*) filter (is_typed and query is null) as n_no_type,
    (select count(*) from pairs where n_subjects > {most_subjects}) as n_too_many
from pairs left join (select distinct family(query) as query from queries)
    on query = family(query_number(property, value))
where n_subjects <= {most_subjects}
"""
"""Counts pairs of property and value: those of typed relations, those with too few subjects of every type, and those
with too many subjects."""
ALL_QUERIES = "select query, n_answers, is_tried from queries order by query"
ALL_ANSWERS = "select query, subject from answers order by query, subject"
ANSWERED_ITEMS = """
select item from (select subject as item from answers union select distinct entity(query) from answers) order by item
"""
"""The items that simple queries are about, and those that answer them."""

UNLISTED_ITEMS = """
select item from (select subject as item from answers union select distinct entity(query) from answers)
anti join named using (item) order by item
"""
NUMBER_FACTS = """
create temp table facts as
    select row_number() over (order by pair, subject) - 1 as fact, pair, subject from (
        select distinct family(query) as pair, subject
        from answers join named on item = entity(query) where len(named.names) > 0
    );
create temp view claims as
    select fact, pair >> {entity_bits} as property, subjects.page_id is not null as has_page,
        subjects.names as subject_names, subjects.page_id as subject_page_id,
        entities.names as value_names, entities.page_id as value_page_id
    from facts join named as subjects on subjects.item = subject
    join named as entities on entities.item = pair & {entity_mask};
"""
"""Numbers the facts of the simple queries whose entity has a name. A fact of several queries gets one number."""
NUMBERED_ANSWERS = """
select query, answers.subject, fact from answers join facts on pair = family(query) and facts.subject = answers.subject
order by query, answers.subject
"""
UNLISTED_VALUES = """
select distinct item from value_names anti join named_values using (item) where item is not null order by item
"""
CLAIM_VALUES = """
create temp view claims as
    select fact, property, subjects.page_id is not null or items.page_id is not null as has_page,
        subjects.names as subject_names, subjects.page_id as subject_page_id,
        if(value_names.item is null, value_names.names, items.names) as value_names, items.page_id as value_page_id
    from facts join named as subjects on subjects.item = subject
    join value_names using (property, value) left join named_values as items on items.item = value_names.item;
"""
"""The values that the facts of compositions state."""
PAGE_IDS = "select page_id from (select subject_page_id as page_id from claims union select value_page_id from claims) \
where page_id is not null order by page_id"
LOOKS = """
select position, fact, direction, names, looks.page_id from (
    select subject_page_id as page, fact, 0::tinyint as direction, value_names as names, value_page_id as page_id
    from claims
    union all
    select value_page_id, fact, 1::tinyint, subject_names, subject_page_id from claims
) as looks join places on places.page_id = page
where len(names) > 0 or looks.page_id is not null
order by position, fact, direction
"""
"""The searches for each fact. The page of the subject is searched for names of the value and links to it, and the
page of the value for names of the subject and links to it.

``places`` has the positions of pages; articles that the release rejected are missing.
"""
WORDINGS = pa.schema(
    [
        *required("property"),
        *required("before", "middle", "after", of=pa.string()),
        *required("is_value_first", of=pa.bool_()),
    ]
)
_PLACEHOLDER = re.compile(r"\{(entity|value)\}")


def wording_rows(sentences: Sequence[tuple[str, str]]) -> Iterator[tuple[int, str, str, str, bool]]:
    """Yields rows of WORDINGS, given properties and their hypotheses, which contain ``{entity}`` and ``{value}`` once
    each.

    >>> list(wording_rows([("P50", "{entity} was written by {value}.")]))
    [(50, '', ' was written by ', '.', False)]
    """
    for property_id, sentence in sentences:
        before, first, middle, _, after = _PLACEHOLDER.split(sentence)
        yield int(property_id[1:]), before, middle, after, first == "value"


STATED_FACTS = """
select fact, has_page, before || if(is_value_first, value_names[1], subject_names[1]) || middle
    || if(is_value_first, subject_names[1], value_names[1]) || after as hypothesis
from claims join wordings using (property) order by fact
"""
"""Rows of FACT_ROWS; a fact about a thing without a name has no hypothesis."""

COUNT_FOUND = """
create temp table found_facts as select distinct fact from found;
create temp table counted as
    select query, count(*) as n_answers, count(*) filter (has_page) as n_with_page, count(found_facts.fact) as n_found
    from answers join facts using (fact) left join found_facts using (fact) group by query;
create temp table needed as
    select distinct fact from answers join counted using (query)
    where {takes_all} or may_keep_simple(n_found, n_answers);
"""
"""Counts the answers for which a sentence was found, and selects the facts that a question may need."""
COUNTED_QUERIES = "select query, n_answers, n_with_page, n_found from counted order by query"
TRIED_SENTENCES = """
select found.*, hypothesis from found semi join needed using (fact) join facts using (fact)
order by fact, direction, number
"""
"""The sentences found for the facts that a question may need."""
SENTENCE_COUNTS = """
select (select count(*) from found_facts) as found, (select count(*) from found) as candidates,
    (select count(*) from needed) as facts
"""

DECIDE_QUERIES = """
create temp table validated as
    select query, subject, fact, proved.fact is not null as is_validated from answers left join proved using (fact);
create temp table decided as
    select *, case
        when not may_keep_simple(n_answers, n_answers) then 'too_many_answers'
        when not may_keep_simple(n_found, n_answers) then 'too_few_found'
        else outcome_of(n_validated, n_validated, n_answers) end as outcome
    from counted join (
        select query, count(*) filter (is_validated) as n_validated from validated group by query
    ) using (query);
"""
WIDER_QUERIES = """
create temp table wider as
    select query from (
        select query, list(subject order by subject) as subjects
        from validated semi join (from decided where outcome = 'kept' and type_place(query) > 0) using (query)
        where is_validated group by query
    ) join breadths on place = type_place(query)
    qualify row_number() over (partition by family(query), subjects order by breadth, place) > 1;
update decided set outcome = 'wider_type' where query in (from wider);
"""
"""Leaves out queries with the same validated answers as a query with a more specific type. The more specific type has
fewer classes, or comes first by label if the numbers are equal.
"""
BREADTHS = pa.schema(required("place", "breadth"))
DECIDED_QUERIES = """
select query, n_answers, n_with_page, n_found,
    if({takes_all} or outcome <> 'too_few_found', n_validated, null) as n_validated, outcome from decided order by query
"""
BASE_ANSWERS = """
select validated.* from validated semi join (from decided where {takes_all} or outcome = 'kept') using (query)
order by query, subject
"""
BASE_SUBJECTS = """
select distinct subject as item
from validated semi join (from decided where {takes_all} or outcome = 'kept') using (query) order by item
"""
CROSS_QUERIES = """
create temp table kept_answers as
    select query, subject, fact, n_validated as n from validated join decided using (query)
    where outcome = 'kept' and is_validated;
create temp table crossed as
    select one.query as first, other.query as second, one.subject, least(one.n, other.n) as fewest,
        one.fact as first_fact, other.fact as second_fact
    from kept_answers as one join kept_answers as other
    on one.subject = other.subject and one.query < other.query and family(one.query) <> family(other.query);
create temp table intersections as
    select first, second, count(*) as n_answers from crossed group by first, second, fewest
    having count(*) >= {least} and count(*) < fewest;
"""
"""Finds pairs of questions that share enough answers. Neither question may have all answers of the other. Two queries
of the same property and value, with different types, are not paired."""
INTERSECTION_ANSWERS = """
select first, second, subject, first_fact, second_fact from crossed semi join intersections using (first, second)
order by first, second, subject
"""

COMPOSE = """
create temp table pairs as
    select distinct query, property, bases.subject, value, key
    from bases join said on said.subject = bases.subject and property <> property_of(query);
create temp table compositions as
    select query, property from (select distinct query, property, key from pairs)
    group by query, property having count(*) >= {least};
create temp table composed_pairs as
    select query, property, subject, value from pairs semi join compositions using (query, property);
create temp table facts as
    select row_number() over (order by subject, property, value) - 1 as fact, subject, property, value
    from (select distinct subject, property, value from composed_pairs);
create temp table value_names as
    select distinct property, value, key, item, names
    from said semi join (select distinct property, value from facts) using (property, value);
"""
"""Makes compositions of simple queries and the values of their answers. A query's own property makes no composition
with it."""
COMPOSED_PAIRS = """
select query, property, subject, fact from composed_pairs join facts using (subject, property, value)
order by property, query, fact
"""
VALUE_FACTS_IN_ORDER = "select fact, subject, property, value from facts order by fact"
KEYS_OF_FACTS = "select fact, key from facts join value_names using (property, value) order by fact"
VALUE_NAMES_IN_ORDER = "select property, value, key, item, names from value_names order by property, value"
VALUE_ITEMS = "select distinct item from value_names where item is not null order by item"
COUNT_VALUES_FOUND = """
create temp table found_facts as select distinct fact from found;
create temp table pair_facts as
    select query, property, pairs.fact, has_page, key, is_validated and found_facts.fact is not null as is_said
    from pairs join bases using (query, subject) join facts on facts.fact = pairs.fact
    join keys on keys.fact = pairs.fact left join found_facts on found_facts.fact = pairs.fact;
create temp table composed as
    select query, property, count(*) as n_answers, count(*) filter (has_page) as n_with_page,
        count(*) filter (is_said) as n_found, may_keep(max(n_keys), n_found, n_answers) as is_judged
    from pair_facts join (
        select query, property, count(key) as n_keys
        from (select distinct query, property, if(is_said, key, null) as key from pair_facts) group by query, property
    ) using (query, property) group by query, property;
create temp table needed as
    select distinct fact from pair_facts join composed using (query, property) where is_judged and is_said;
"""
"""Counts the pairs of a composition whose subject is validated and for whose value a sentence was found, and selects
the facts that a question may need.
"""
COMPOSED_QUERIES = "select query, property, n_answers, n_with_page, n_found, is_judged from composed \
order by property, query"

DECIDE_COMPOSITIONS = """
create temp table right_pairs as
    select query, property, pairs.fact, bases.subject, bases.fact as base_fact, key
    from pairs join bases using (query, subject) join keys on keys.fact = pairs.fact
    semi join value_proofs on value_proofs.fact = pairs.fact
    where is_validated;
create temp table compositions as
    select composed.*, coalesce(n_right, 0) as n_right,
        if(is_judged, outcome_of(coalesce(n_keys, 0), coalesce(n_right, 0), n_answers), 'too_few_found') as outcome
    from composed left join (
        select query, property, sum(n)::bigint as n_right, count(*) as n_keys
        from (select query, property, key, count(*) as n from right_pairs group by query, property, key)
        group by query, property
    ) using (query, property);
create temp table intersections as
    select first, second, count(*) as n_answers, outcome_of(count(*), count(*), count(*)) as outcome
    from crossed group by first, second;
"""
"""A pair of a composition is validated if both of its facts are validated. One fact states that the subject answers the
base query, the other that the subject has the value. All answers of intersections are validated."""
_ORDER_BUCKETS = 256
"""The table of queries is ordered by remainders modulo this number."""
CONSIDERED = pa.schema(
    [
        *required("kind", "first", "second", "n_answers"),
        *(pa.field(name, pa.int64()) for name in ("n_with_page", "n_found", "n_validated")),
        *required("outcome", of=pa.string()),
    ]
)
"""Considered queries: 0 simple, 1 composition of ``first`` with the property ``second``, 2 intersection."""
QUESTION_QUERIES = pa.schema(required("kind", "first", "second"))
CONSIDERED_QUERIES = """
with ranks as (
    select query, row_number() over (order by query) - 1 as rank from (select distinct query from bases)
),
untried as (
    select queries.*, may_keep_simple(n_answers, n_answers) as may_be_kept
    from queries anti join decided using (query)
),
simple as (
    select case when not is_tried then 0 when may_be_kept then 2 else 1 end as stage, query, n_answers,
        null as n_with_page, null as n_found, null as n_validated,
        if(may_be_kept, 'entity_unnamed', 'too_many_answers') as outcome
    from untried
    union all
    select if(outcome = 'too_many_answers', 3, 4), * from decided
),
rows as (
    select stage, entity(query) as rank, property_of(query) as further, coalesce(position, 0) as place, 0 as kind,
        query as first, 0 as second, n_answers, n_with_page, n_found, n_validated, outcome
    from simple left join relation_types on property = property_of(query) and place = type_place(query)
    union all
    select 5, rank, property, 0, 1, query, property, n_answers, n_with_page, n_found, if(is_judged, n_right, null),
        outcome
    from compositions join ranks using (query)
    union all
    select 6, rank, second, 0, 2, first, second, n_answers, null, n_answers, n_answers, outcome
    from intersections join ranks on query = first
)
select kind, first, second, n_answers, n_with_page, n_found, n_validated, outcome
from rows order by stage, rank % {order_buckets}, rank, further, place, second
"""


class AnswerRow(Row):
    """A validated answer of a question."""

    first: int  # number of the query, or of the first query of an intersection
    second: int  # the second query of an intersection, the property of a composition, or 0
    n_answers: int  # number of all answers of the question; for a composition, of its pairs
    entity: Annotated[Name, Columns("entity_")]
    other: Annotated[Name | None, Columns("other_")]  # subject of the second query
    subject: Annotated[Name, Columns("subject_")]
    value: Annotated[Name | None, Columns("value_")]  # for a composition
    key: str | None  # key that equal values share
    proof: Annotated[ProofText, Columns("proof_")]
    further: Annotated[ProofText | None, Columns("further_")]  # proof for the second query, or for the value


_SQL_TYPES = {
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "varchar",
    schema_of(Name).field("names").type: "varchar[]",
}


def _columns(prefix: str, row: type[Row], table: str | None) -> str:
    """Returns the columns of a row in ``AnswerRow``, from a table, or nulls."""
    return ", ".join(
        f"{f'null::{_SQL_TYPES[field.type]}' if table is None else f'{table}.{field.name}'} as {prefix}_{field.name}"
        for field in schema_of(row)
    )


def _answers(first: str, second: str, *, other: bool = False, value: bool = False, key: str = "null::varchar") -> str:
    """Returns the columns of ``AnswerRow``."""
    return ", ".join(
        (
            f"{first} as first, {second} as second, n_answers",
            _columns("entity", Name, "entities"),
            _columns("other", Name, "others" if other else None),
            _columns("subject", Name, "subjects"),
            _columns("value", Name, "used" if value else None),
            f"{key} as key",
            _columns("proof", ProofText, "proofs"),
            _columns("further", ProofText, "further" if other or value else None),
        )
    )


SIMPLE_ANSWERS = f"""
select {_answers("query", "0")}
from bases join (from decided where outcome = 'kept') using (query)
join named as subjects on subjects.item = subject join named as entities on entities.item = entity(query)
join proofs on proofs.fact = bases.fact
where is_validated order by first, subject_item
"""
COMPOSED_ANSWERS = f"""
with used as (
    select fact, value_names.item, if(value_names.item is null, value_names.names, items.names) as names,
        items.page_id, items.title
    from value_facts join value_names using (property, value)
    left join named_values as items on items.item = value_names.item
)
select {_answers("query", "property", value=True, key="key")}
from right_pairs join (from compositions where outcome = 'kept') using (query, property)
join named as subjects on subjects.item = subject join named as entities on entities.item = entity(query)
join used on used.fact = right_pairs.fact join proofs on proofs.fact = base_fact
join value_proofs as further on further.fact = right_pairs.fact
order by second, first, right_pairs.fact
"""
INTERSECTION_ANSWERS_WITH_PROOFS = f"""
select {_answers("crossed.first", "crossed.second", other=True)}
from crossed join (from intersections where outcome = 'kept') as kept
on kept.first = crossed.first and kept.second = crossed.second
join named as subjects on subjects.item = subject join named as entities on entities.item = entity(crossed.first)
join named as others on others.item = entity(crossed.second)
join proofs on proofs.fact = first_fact join proofs as further on further.fact = second_fact
order by first, second, subject_item
"""
KEPT_QUERIES = """
select kind, first, second from (
    select 0 as kind, query as first, 0 as second, query as place, 0 as further from decided where outcome = 'kept'
    union all
    select 1, query, property, property, query from compositions where outcome = 'kept'
    union all
    select 2, first, second, first, second from intersections where outcome = 'kept'
) order by kind, place, further
"""
"""The queries that are questions, in the order of the release."""

FIRST_SENTENCES = """
select fact, null::varchar as hypothesis, null::double as entailment, page_id, element, start_char, sentence_char,
    end_char, text, found, title
from found qualify row_number() over (partition by fact order by direction, number) = 1 order by fact
"""
"""The first sentence found for each fact, as its proof."""
FOUND_COUNTS = "select count(distinct fact) as facts, count(*) as candidates from found"
LOOKS_IN_ORDER = "select position, fact, direction, names, page_id from looks order by position, fact, direction"
