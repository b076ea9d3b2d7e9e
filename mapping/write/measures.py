"""Measures of an alignment: evidence by outcome and score, how far it moved, BLEU compared with the verdicts of a
model, and the spans with the lowest scores.
"""

from __future__ import annotations

from kbsource.release.measures import Measure, ToRows, literals, meanings_table
from mapping.document import crossed_query
from mapping.records import OUTCOMES

WORST = 20
"""Number of spans shown, those with the lowest BLEU below 1."""
_N_BINS = 20
"""Bins of the histogram of scores: [0, 0.05) … [0.95, 1), and a separate bin for 1."""
MOVES = (
    "same paragraph",
    "other paragraph of the section",
    "other section of the page",
    "same page, no place in it",
    "other page",
    "no page",
)
"""The position of the new span, relative to the old one."""
_MOVES = literals("moves", ("place", "name"), enumerate(MOVES))
_MOVED = """case when new_wikipedia_id is null then 5 when old_wikipedia_id is distinct from new_wikipedia_id then 4
    when new_start_paragraph_id is null then 3 when (old_section = new_section) is not true then 2
    when (old_start_paragraph_id = new_start_paragraph_id) is not true then 1 else 0 end"""
_DRIFT = f"""
    select name as "new place", count(moved) as spans, count(moved) / sum(count(moved)) over () as share,
        avg(score) as "mean BLEU"
    from {_MOVES} left join (select {_MOVED} as moved, score from crosswalk) on moved = place
    where exists (from crosswalk) group by place, name order by place"""
_SPANS = """(from alignments union all by name
    select null::double as entailment, null::double as contradiction, null::varchar as expected_verdict where false)"""
"""The spans of an alignment. The columns that a model fills in are null if the alignment was not verified."""
_SUPPORT = "case when coalesce(expected_verdict = 'contradiction', false) then contradiction else entailment end"
_BINS = literals("bins", ("place", "name"), ((place, f"{place / _N_BINS:.2f}") for place in range(_N_BINS + 1)))
ALIGNMENTS_MEASURES = (
    Measure(
        "Spans of the lowest BLEU in all datasets; the words that changed are marked",
        f"""select replace(_part, '/', ', ') as dataset, example_id as record, title as page, score as "BLEU",
            evidence_text as "old text", text as "new text"
        from alignments where score < 1 order by score, _file, _row limit {WORST}""",
        section="Evidence that is still present, and lost evidence",
        links={"record": ToRows("records", {"example_id": "record"}), "page": "title"},
        compared=("old text", "new text"),
        needs=("alignments",),
        if_empty="No span differs from the text that was searched for.",
    ),
)
"""Contents of the overview of a folder of alignments, besides the outcomes of its datasets."""
MEASURES = (
    Measure(
        "BLEU of the spans",
        f"""with counts as (
            select if(score < 1, least(floor(score * {_N_BINS} + 1e-9)::integer, {_N_BINS}), {_N_BINS}) as place,
                count(*) as n
            from alignments where score is not null group by all)
        select name as "BLEU", coalesce(n, 0) / sum(n) over () as share, coalesce(n, 0) as spans
        from {_BINS} left join counts using (place) where exists (from counts) order by place""",
        section="Outcomes",
        chart="columns",
        about="Share of the spans by the lower bound of their bin; 1.00 is a separate bin.",
        needs=("alignments",),
    ),
    Measure(
        "Evidence by outcome",
        f"""select replace(name, '_', ' ') as outcome, count(*) / sum(count(*)) over () as share,
            count(*) as "pieces of evidence"
        from (select outcome from alignments union all select outcome from misses)
            join {meanings_table(OUTCOMES)} on name = outcome group by place, name order by place""",
        section="Outcomes",
        chart="bars",
        about="The outcome of each piece of evidence, as a share of all.",
        needs=("alignments", "misses"),
    ),
    Measure(
        "How far evidence moved",
        f'select "new place", share, spans from ({_DRIFT}) order by list_position({[*MOVES]}, "new place")',
        section="Drift",
        page="measures",
        chart="bars",
        about="The position of the new span, relative to the old one.",
        needs=("crosswalk",),
    ),
    Measure(
        "How far evidence moved, and how similar it is",
        _DRIFT,
        section="Drift",
        page="measures",
        needs=("crosswalk",),
    ),
    Measure(
        "BLEU and the probability that the text supports the dataset's statement",
        crossed_query(_SPANS, score="score", support=_SUPPORT, where="where n_judged > 0"),
        section="Both signals",
        page="measures",
        spread="support",
        is_shaded=True,
        needs=("alignments",),
    ),
    Measure(
        "Spans of the lowest BLEU; the words that changed are marked",
        f"""select example_id as record, title as page, score as "BLEU", {_SUPPORT} as entailment,
            is_written as written, evidence_text as "old text", text as "new text"
        from {_SPANS} where score < 1 order by score, ordinal, output, evidence limit {WORST}""",
        section="Worst spans",
        links={"record": ToRows("records", {"example_id": "record"}), "page": "title"},
        optional=("entailment",),
        compared=("old text", "new text"),
        needs=("alignments",),
        if_empty="No span differs from the text that was searched for.",
    ),
)
