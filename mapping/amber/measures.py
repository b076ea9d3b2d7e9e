"""Measures of a release of AmbER sets: outcomes of names, statistics compared with the paper's, and the two signals
(BLEU and entailment) of tuples.
"""

from __future__ import annotations

from kbsource.release.measures import Measure, ToRows, literals, meanings_table
from mapping.amber.records import OUTCOMES, TASKS
from mapping.amber.release import MEASURES as STATISTICS
from mapping.amber.release import PUBLISHED
from mapping.document import crossed_query

RANKS_TEXT = (
    "How many page views the entity of a rank has, the most viewed first: few have many, and most have few. "
    "Source: figure 2 of the paper."
)
_COLLECTION = "Collection"
_RANKS = [step * 10**power for power in range(18) for step in (1, 2, 5)]
_PUBLISHED = literals(
    "published",
    ("collection", "place", "figure"),
    ((name, place, figure) for name, figures in PUBLISHED.items() for place, figure in enumerate(figures)),
)
_BY_TASK = ", ".join(f"count(*) filter (task = '{task}') as {task}" for task in TASKS)
_HERE = ", ".join(
    f"coalesce({value}, 0)::double"
    for value in (
        "sets",
        *(f"{name} / nullif(sets, 0)" for name in ("entities", "distinguished", "properties")),
        " + ".join(f"coalesce({task}, 0)" for task in TASKS),
        *TASKS,
    )
)
MEASURES = (
    Measure(
        "Outcomes of the names",
        f"""select collection, name as outcome, coalesce(n, 0) as names,
            names / sum(names) over (partition by collection) as share, meaning, if(n > 0, name, null) as _outcome
        from (select distinct collection from names) cross join {meanings_table(OUTCOMES)}
            left join (select collection, outcome as name, count(*) as n from names group by all) as counts
                using (collection, name)
        order by collection, place""",
        section=_COLLECTION,
        by="collection",
        links={"outcome": ToRows("names", {"collection": "collection", "outcome": "_outcome"})},
        needs=("names",),
    ),
    Measure(
        "Page views of the entities of the sets, by rank",
        # No page has as many views as the upper bound, but a table from another source may contain any number.
        f"""with views as (
            select collection, round(power(10, greatest(least(max(entity.popularity), 18), 0)))::bigint as views
            from (select collection, unnest(entities) as entity from sets)
            where not isnan(entity.popularity) group by collection, entity.qid
        ), ranked as (
            select *, row_number() over (partition by collection order by views desc) as place,
                count(*) over (partition by collection) as n from views)
        select collection, format('{{:,}}', place) as rank, log10(views) as "decimal logarithm of the views"
        from ranked where place = n or place in {(*_RANKS,)} order by collection, place""",
        section=_COLLECTION,
        by="collection",
        chart="columns",
        about=RANKS_TEXT,
        needs=("sets",),
    ),
    Measure(
        "Statistics compared with the paper",
        f"""with here as (
            select collection, [{_HERE}] as figures from (select distinct collection from names)
            left join (select collection, count(*) as sets, sum(len(entities)) as entities from sets group by all)
                using (collection)
            left join (
                select collection, count(distinct (name, qid)) as distinguished, count(*) as properties from tuples
                group by all) using (collection)
            left join (select collection, {_BY_TASK} from set_queries group by all) using (collection)
        )
        select collection, {[name.replace("_", " ") for name in STATISTICS]}[place + 1] as measure, here,
            figure as "AmbER paper"
        from (select collection, unnest(figures) as here, unnest(range(len(figures))) as place from here)
            left join {_PUBLISHED} using (collection, place)
        order by collection, place""",
        section=_COLLECTION,
        by="collection",
        needs=("names", "sets", "tuples", "set_queries"),
    ),
    Measure(
        "Tuples of the sets by both",
        crossed_query("tuples", score="bleu", support="entailment"),
        section="BLEU and entailment combined",
        page="measures",
        spread="support",
        is_shaded=True,
        needs=("tuples",),
    ),
)
