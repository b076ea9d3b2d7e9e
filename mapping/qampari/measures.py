"""Measures of a QAMPARI release: outcomes of queries and answers, next to the paper's, and the certainty of proofs."""

from __future__ import annotations

from kbsource.release.measures import Measure, ToRows, literals
from mapping.document import ENTAILMENT_BINS, entailment_bin
from mapping.qampari.questions import SUBSETS, TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.records import SPLITS
from mapping.qampari.release import ANSWER_BINS, PUBLISHED, PUBLISHED_WORDS
from mapping.qampari.selection import KEPT, OUTCOMES
from mapping.qampari.table_questions import REASONS


def meaning(subset: str, outcome: str) -> str:
    """Returns the meaning of an outcome of a query. Some outcomes have a different meaning for queries about tables."""
    own = REASONS if subset in (TABLE_SIMPLE, TABLE_COMPOSITION) else {}
    return own.get(outcome) or OUTCOMES.get(outcome, "")


_KIND = "kind of question"
_ORDER = f"list_position({[*SUBSETS]}, subset), subset"
_NAMES = sorted({*OUTCOMES, *REASONS})
_MEANINGS = literals(
    "meanings",
    ("subset", "outcome", "meaning"),
    ((subset, outcome, meaning(subset, outcome)) for subset in SUBSETS for outcome in _NAMES),
)
_STEPS = "['answers', 'with a page', 'with a sentence', if(json($manifest)->>'model' is null, 'not judged', 'proved')]"
_SUMS = ", ".join(
    f"coalesce(sum({name}), 0)::bigint" for name in ("n_answers", "n_with_page", "n_aligned", "n_validated")
)
_GROUPS = (
    ("train", "train", None),
    *(("dev and test", split, None) for split in ("dev", "test")),
    *((subset, split, subset) for subset in SUBSETS for split in ("dev", "test")),
)
_OF_GROUPS = literals("groups", ("name", "split", "subset"), _GROUPS)
_PUBLISHED = literals(
    "published",
    ("place", "name", "mean", "median", "words"),
    ((place, name, *PUBLISHED[name], PUBLISHED_WORDS[name]) for place, name in enumerate(PUBLISHED)),
)
_BINS = literals("bins", ("place", "bin", "last"), ((place, *of) for place, of in enumerate(ANSWER_BINS.items())))
_WORD = r"[^\s\x{0b}\x{1c}-\x{1f}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+"
"""Matches the words into which Python's ``str.split`` splits a text."""
_DRAWN = f"""drawn as (
    select name, len(answers) as n_answers,
        len(regexp_extract_all(coalesce(paraphrase, question_text), '{_WORD}')) as n_words
    from questions join {_OF_GROUPS}
        on questions.split = groups.split and (groups.subset is null or questions.subset = groups.subset))"""
_PROPERTIES = "if(len(property_ids) > 0, property_ids, ['tables'])"

QUERIES = "Funnel"
QUESTIONS = "Questions and answers"
MEASURES = (
    Measure(
        "Outcomes of the queries",
        f"""select subset as "{_KIND}", sum(coalesce(n, 0)) over (partition by subset)::bigint as queries,
            replace(outcome, '_', ' ') as said, coalesce(n, 0) as n, outcome as _outcome
        from (select distinct subset from queries) cross join (select distinct outcome from queries)
            left join (select subset, outcome, count(*) as n from queries group by all) using (subset, outcome)
        order by {_ORDER}, outcome <> '{KEPT}', outcome""",
        section=QUERIES,
        spread="said",
        links={
            "queries": ToRows("queries", {"subset": _KIND}),
            "n": ToRows("queries", {"subset": _KIND, "outcome": "_outcome"}),
        },
        needs=("queries",),
    ),
    Measure(
        "Answers by the last step that they reached",
        f"select unnest({_STEPS}) as step, unnest([{_SUMS}]) as answers, unnest(range(4)) as _place from queries "
        "order by _place",
        section=QUERIES,
        chart="bars",
        about="All considered queries. Answers of intersections were proved before, for their simple queries.",
        needs=("queries",),
    ),
    Measure(
        "Answers by the last step that they reached, by kind of question",
        f"""select "{_KIND}", step, answers from (
            select subset, subset as "{_KIND}", unnest({_STEPS}) as step, unnest([{_SUMS}]) as answers,
                unnest(range(4)) as place from queries group by subset
        ) order by {_ORDER}, place""",
        section=QUERIES,
        spread="step",
        needs=("queries",),
    ),
    Measure(
        "What each outcome means",
        f"""select subset as "{_KIND}", outcome, count(*) as queries,
            count(*) / sum(count(*)) over (partition by subset) as share, coalesce(meaning, '') as meaning
        from queries left join {_MEANINGS} using (subset, outcome) group by subset, outcome, meaning
        order by {_ORDER}, outcome <> '{KEPT}', outcome""",
        is_folded=True,
        needs=("queries",),
    ),
    Measure(
        "Mean answers per question",
        f"""with {_DRAWN} select name as questions, avg(n_answers) as here, mean as "QAMPARI paper"
        from {_PUBLISHED} left join drawn using (name) group by place, name, mean order by place""",
        section=QUESTIONS,
        chart="bars",
        about="Mean number of answers, compared with the published set.",
        needs=("questions",),
    ),
    Measure(
        "Answers per question, compared with the paper",
        f"""with {_DRAWN} select name as questions, count(n_answers) as number, avg(n_answers) as mean,
            published.mean as "mean (paper)", median(n_answers) as median, published.median as "median (paper)",
            avg(n_words) as words, published.words as "words (paper)"
        from {_PUBLISHED} left join drawn using (name) group by place, name, published.mean, published.median,
            published.words order by place""",
        section=QUESTIONS,
        needs=("questions",),
    ),
    Measure(
        "Questions by number of answers",
        f"""with {_DRAWN}, counted as (
            select name, (select min(last) from {_BINS} where n_answers <= last) as last, count(*) as n
            from drawn group by all)
        select bin as answers, coalesce(max(n) filter (name = 'train'), 0) as train,
            coalesce(max(n) filter (name = 'dev and test'), 0) as "dev and test"
        from {_BINS} left join counted using (last) group by place, bin order by place""",
        section=QUESTIONS,
        chart="columns",
        about="Number of questions by number of answers, as in figure 3 of the paper.",
        needs=("questions",),
    ),
    Measure(
        "Questions that passed the filter, and sampled ones by split",
        f"""select subset as "{_KIND}", count(questions.key) as kept,
            {", ".join(f"count(*) filter (split = '{split}') as {split}" for split in SPLITS)}
        from {literals("subsets", ("place", "subset"), enumerate(SUBSETS))} left join questions using (subset)
        group by place, subset order by place""",
        section=QUESTIONS,
        links={"kept": ToRows("questions", {"subset": _KIND})},
        needs=("questions",),
    ),
    Measure(
        "Proofs by property and entailment",
        f"""with proofs as (
            select {_PROPERTIES} as properties, unnest(flatten([a.proofs for a in answers])).entailment as entailment
            from questions
        ), counts as (
            select property, {entailment_bin("entailment")} as place, count(*) as n
            from (select unnest(properties) as property, entailment from proofs) group by all)
        select property, name, coalesce(n, 0) as n
        from (select distinct unnest({_PROPERTIES}) as property from questions)
            cross join {literals("bins", ("place", "name"), enumerate(ENTAILMENT_BINS))}
            left join counts using (property, place)
        order by property, place""",
        section="Entailment of proofs by property",
        page="measures",
        about="Proofs of answers. If a question depends on two properties, its proofs count for both.",
        spread="name",
        is_shaded=True,
        links={"property": "entity"},
        needs=("questions",),
    ),
)
