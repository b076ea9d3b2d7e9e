"""Commands that make data from releases: passages, vectors, entity-linking data, questions, AmbER sets and facts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from cyclopts import Parameter

from kbsource.errors import SetupError
from kbsource.release.manifest import ListingManifest
from mapping.entail.signal import DEFAULT_MODEL, UsualModelOptions
from mapping.options import FLAT, AtLeast0, flag_of
from mapping.qampari.evidence import LEAST_ENTAILMENT
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, SUBSETS, TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.selection import POOL_SIZES
from pipelines.commands.dumps import Run, made_summary
from pipelines.options.age import AgeOptions
from pipelines.options.amber import AmberJobOptions
from pipelines.options.entity_linking import EntityLinkingOptions
from pipelines.options.facts import FactsOptions
from pipelines.options.passages import PassagesOptions
from pipelines.options.qampari import QampariOptions
from pipelines.options.shared import RunOptions
from pipelines.options.vectors import VectorsOptions
from pipelines.progress import Progress, size
from pipelines.terminal import Row, Summary, facts_table, table_text

if TYPE_CHECKING:
    from pipelines.jobs.shared_inputs import MadeRelease

_GROUPS_SHOWN = 8
_NO_EVIDENCE = {"evidence": 0, "fates": [], "present": [], "half_life_years": None}


def passages(options: Annotated[PassagesOptions, FLAT], *, run: Run = RunOptions()) -> Summary:
    """Split the pages of a release into passages for retrievers.

    Splits the running text of every page into passages of consecutive whole sentences. No text is lost. Writes a
    Parquet table with the exact position of each passage and, last, manifest.json. Options not listed here are passed
    to Beam unchanged.

    Examples:
        kbsource passages releases/enwiki-20261001 --output passages/enwiki-20261001
        kbsource passages releases/enwiki-20261001 --output passages/enwiki-20261001 \\
            --format pyserini dpr --max-words 120 --split-long-sentences
        kbsource passages releases/enwiki-20261001 --output passages/enwiki-20261001-tables --unit words-100 --tables
        kbsource passages releases/enwiki-20261101 --output passages/enwiki-20261101 \\
            --base passages/enwiki-20261001 --base-kb releases/enwiki-20261001
    """
    from pipelines.jobs.passages import make_passages

    made = make_passages(options, flags=run.flags(), progress=Progress())
    counts, entries = made.manifest.facts["counts"], list(made.manifest.entries())
    rows: list[Row] = [
        ("pages", counts["pages"]),
        ("  without running text", counts["pages_without_text"]),
        *(("  reused", n) for n in made.report.values()),
        ("passages", counts["passages"]),
        ("  of one longer sentence", counts["long_passages"]),
        ("tokens" if options.cut.unit.startswith("tokens") else "words", counts["words"]),
        ("  in a passage (mean)", f"{counts['words'] / max(counts['passages'], 1):.1f}"),
        ("files", size(sum(entry.bytes for entry in entries))),
    ]
    sizes = {entry.file: entry.bytes for entry in entries}
    return made_summary(made, rows, against=("--kb", options.kb), counts=counts, bytes=sizes)


def vectors(options: Annotated[VectorsOptions, FLAT], *, run: Run = RunOptions()) -> Summary:
    """Encode passages as vectors for dense retrieval.

    Encodes the title and text of every passage with a sentence encoder. kbsource search --system dense uses the
    vectors, which are in the order of the passages. manifest.json is written last and identifies the encoder by the
    hashes of its files. The model runs through RunInference on every runner. Options not listed here are passed to Beam
    unchanged.

    Examples:
        kbsource vectors passages/enwiki-20261001 --model models/bge-small-en-v1.5 \\
            --output passages/enwiki-20261001-vectors
        kbsource vectors passages/enwiki-20261001 --model models/dpr-ctx_encoder-multiset-base \\
            --query-model models/dpr-question_encoder-multiset-base --output passages/enwiki-20261001-dpr
    """
    from pipelines.jobs.vectors import make_vectors

    made = make_vectors(options, flags=run.flags(), progress=Progress())
    counts, encoder = made.manifest.facts["counts"], made.manifest.facts["encoder"]
    sizes = {entry.file: entry.bytes for entry in made.manifest.entries()}
    rows: list[Row] = [
        ("encoder", encoder["name"]),
        *(
            ("  of queries", query_encoder["name"])
            for query_encoder in [made.manifest.facts.get("query_encoder")]
            if query_encoder
        ),
        ("passages", counts["passages"]),
        *(("  with a reused vector", n) for n in made.report.values()),
        (f"  truncated, of more than {encoder['max_tokens']} tokens", counts["truncated"]),
        ("numbers of a vector", encoder["dimension"]),
        ("files", size(sum(sizes.values()))),
    ]
    return made_summary(made, rows, against=("--passages", options.passages), counts=counts, bytes=sizes)


def entity_linking(options: Annotated[EntityLinkingOptions, FLAT], *, run: Run = RunOptions()) -> Summary:
    """Make entity-linking data and an alias table from links.

    Samples the links in paragraphs and list items as records in the format of KILT's BLINK data. train and dev come
    from different pages. For every mention, counts how often it links to each page, and writes the counts as an alias
    table for kbsource link. manifest.json is written last. Options not listed here are passed to Beam unchanged.

    Examples:
        kbsource entity-linking releases/enwiki-20261001 --output linking/enwiki-20261001
        kbsource entity-linking releases/enwiki-20261001 --output linking/small --train 100000 --dev 1000 \\
            --context-chars 250 --exclude wned-pages.txt
    """
    from pipelines.jobs.entity_linking import make_entity_linking

    made = make_entity_linking(options, flags=run.flags(), progress=Progress())
    counts = made.manifest.facts["counts"]
    rows: list[Row] = [("pages", counts["pages"])]
    if options.exclude is not None:
        rows.append(("  excluded", counts["excluded_pages"]))
        rows.append(("  lines of the list that name no page", counts["exclusion"]["unmatched"]))
    rows.append(("links", counts["links"]))
    rows += [(f"  skipped: {reason}", n_links) for reason, n_links in counts["skipped"].items() if n_links]
    rows.append(("  duplicates", counts["duplicates"]))
    for split, wanted in (("train", options.train), ("dev", options.dev)):
        fewer = f" of {wanted:,} requested: the pages of {split} have no more" if counts[split] < wanted else ""
        rows.append((split, f"{counts[split]:,}{fewer}"))
    rows += [
        ("mentions", counts["mentions"]),
        ("  with their pages", counts["aliases"]),
        ("files", size(sum(entry.bytes for entry in made.manifest.entries()))),
    ]
    return made_summary(made, rows, against=("--kb", options.kb), counts=counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSizes:
    """Number of questions of each subset, in development and test together."""

    simple: Annotated[AtLeast0, Parameter("--pool-simple")] = POOL_SIZES[SIMPLE]
    """Number of wikidata_simple questions in development and test together."""
    compositions: Annotated[AtLeast0, Parameter("--pool-compositions")] = POOL_SIZES[COMPOSITION]
    """Number of wikidata_composition questions in development and test together."""
    intersections: Annotated[AtLeast0, Parameter("--pool-intersections")] = POOL_SIZES[INTERSECTION]
    """Number of wikidata_intersection questions in development and test together."""
    table_simple: Annotated[AtLeast0, Parameter("--pool-table-simple")] = POOL_SIZES[TABLE_SIMPLE]
    """Number of wikitables_simple questions in development and test together."""
    table_compositions: Annotated[AtLeast0, Parameter("--pool-table-compositions")] = POOL_SIZES[TABLE_COMPOSITION]
    """Number of wikitables_composition questions in development and test together."""

    def by_subset(self) -> dict[str, int]:
        """Returns the numbers by subset."""
        return {subset: getattr(self, field.name) for subset, field in zip(POOL_SIZES, fields(self), strict=True)}


def qampari(
    options: Annotated[QampariOptions, FLAT],
    *,
    pool: Annotated[PoolSizes, FLAT] = PoolSizes(),
    run: Run = RunOptions(),
) -> Summary:
    """Make questions with many answers from Wikidata and list pages.

    Derives queries from Wikidata and from the tables of list pages. Searches the pages for sentences that state each
    answer, and has an NLI model judge these sentences. Writes questions in QAMPARI's format, and every considered query
    with its outcome. With --model none, a proof links two entities by name: it is the first sentence on the page of one
    entity that names the other. Options not listed here are passed to Beam unchanged.

    Examples:
        kbsource qampari releases/enwiki-20261001 releases/wikidata-20261001 \\
            --output releases/qampari-20261001
        kbsource qampari releases/miniwiki-20260101 releases/miniwikidata-20260101 --model none \\
            --output releases/qampari-mini
    """
    from pipelines.jobs.qampari import make_qampari

    model = options.model or UsualModelOptions()
    is_usual = options.least_entailment == LEAST_ENTAILMENT
    if model.model == "none":
        none = UsualModelOptions(model="none")
        hints = get_type_hints(UsualModelOptions, include_extras=True)
        odd = [name for field in fields(none) if getattr(model, name := field.name) != getattr(none, name)]
        flags = [flag_of(name, hints[name]) for name in odd] + ([] if is_usual else ["--least-entailment"])
        for flag in flags:
            raise SetupError(f"{flag} needs a model, and --model none uses none; leave one of the two out.")
        options = replace(options, model=None)
    elif is_usual and os.path.basename(os.path.normpath(model.model)).partition("@")[0] != os.path.basename(
        DEFAULT_MODEL
    ):
        sys.stderr.write(
            f"kbsource qampari: warning: --model {model.model} is used with {LEAST_ENTAILMENT}, the threshold chosen "
            f"for {os.path.basename(DEFAULT_MODEL)}. Set one for your model with --least-entailment.\n"
        )
    if not options.has_tables:
        of_tables = {"--key-columns": options.key_columns, "--redirect-aliases": options.redirect_aliases}
        for flag in (flag for flag, value in of_tables.items() if value):
            raise SetupError(
                f"{flag} is for questions about tables, and --no-tables makes no such questions; leave "
                f"one of the two out."
            )
    options = replace(options, sizes=replace(options.sizes, pool=pool.by_subset()))
    return qampari_summary(make_qampari(options, flags=run.flags(), progress=Progress()))


def qampari_summary(made: MadeRelease[ListingManifest]) -> Summary:
    """Returns the summary of a QAMPARI release: how many queries passed each step, and how many were drawn."""
    report = made.report
    is_judged = made.manifest.facts["model"] is not None
    parts = [funnel_text(report, is_judged=is_judged), _drawn_text(report["questions"]), *_why_empty(report)]
    timed_out = sum(made.manifest.facts["counts"]["timed_out"].values())
    return made_summary(made, [("searches that took too long", timed_out)], text="\n\n".join(parts), **report)


def _why_empty(report: Mapping[str, Any]) -> list[str]:
    """Explains why there is no question; returns an empty string if there are questions."""
    funnel = report["funnel"].values()
    if any(counts.get("kept", 0) for counts in funnel):
        return []
    if any(counts.get("queries", 0) for counts in funnel):
        return ["No query became a question. The table queries/ gives the outcome of each query."]
    return [
        "No query was found, so there are no questions: no property or value in Wikidata has enough subjects, and no "
        "list page has a usable table. Check that both releases are complete and belong to the same wiki."
    ]


def funnel_text(report: Mapping[str, Any], *, is_judged: bool) -> str:
    """Formats how many queries and answers of each subset passed each step. Without a model, proofs are not judged."""
    proved = "validated" if is_judged else "unjudged"
    head = ("subset", "queries", "answers", "with page", "found", proved, "kept")
    names = ("queries", "answers", "answers_with_page", "answers_aligned", "answers_validated", "kept")
    rows: list[tuple[str, ...]] = [head]
    gone: list[str] = []
    for subset in SUBSETS:
        counts = report["funnel"].get(subset, {})
        cells = [f"{counts.get(name, 0):,}" for name in names]
        if subset == INTERSECTION:
            cells[names.index("answers_with_page")] = (
                "-"  # These answers are validated already, so no proof is searched for.
            )
        rows.append((subset, *cells))
        others = [
            f"{count:,} {name}"
            for name, count in sorted(counts.items())
            if name not in ("queries", "answers", "kept") and not name.startswith("answers_")
        ]
        gone += [f"{subset}, dropped: {', '.join(others)}"] if others else []
    return "\n".join([table_text(rows, right=range(1, len(head))), *gone])


def _drawn_text(questions: Mapping[str, Any]) -> str:
    measures = {"mean": "mean answers", "median": "median", "words": "mean words"}
    head = ("set", "questions", *(part for said in measures.values() for part in (said, "published")))
    rows: list[tuple[str, ...]] = [head]
    for name, counts in questions["answers"].items():
        both = (counts[key] for own in measures for key in (own, f"published_{own}"))
        rows.append((name, f"{counts['questions']:,}", *("-" if value is None else f"{value:g}" for value in both)))
    return table_text(rows, right=range(1, len(head)))


def amber(options: Annotated[AmberJobOptions, FLAT], *, run: Run = RunOptions()) -> Summary:
    """Make sets of entities that share a name, with queries about each.

    Finds names that several Wikidata entities share. For each of these entities, finds properties that no other entity
    of the name has and values that the entity's page mentions. Writes AmbER sets (questions, slots and claims about
    each entity), and every considered name with its outcome. Options not listed here are passed to Beam unchanged.

    Examples:
        kbsource amber releases/enwiki-20261001 releases/wikidata-20261001 releases/views-202610 \\
            --output releases/amber-20261001 --collection human,nonhuman
    """
    from pipelines.jobs.amber import make_amber

    made = make_amber(options, flags=run.flags(), progress=Progress())
    parts = [
        f"{name}\n{facts_table(_collection_rows(collection))}"
        for name, collection in made.report["collections"].items()
    ]
    return made_summary(made, [], text="\n\n".join(parts), **made.report)


def _collection_rows(report: Mapping[str, Any]) -> Iterable[Row]:
    """Prints the outcomes of a collection's names, and its statistics next to those of the paper."""
    yield from ((f"names: {outcome}", n) for outcome, n in report["names"].items() if n)
    for name, statistic in report["statistics"].items():
        if name != "shares":
            published = "" if statistic["published"] is None else f"  (published: {statistic['published']:,})"
            yield name, f"{statistic['made']:,}{published}"


def age(options: Annotated[AgeOptions, FLAT], *, run: Run = RunOptions()) -> Summary:
    """Measure how much of a benchmark's evidence survives in each release.

    Searches several releases of a wiki for every piece of evidence in datasets of KILT's format. Reports how much
    evidence each release still contains, which pieces were lost, when and why, and the half-life of the evidence. A
    page that is the same in two releases is searched only once. To make releases of several dates from one history
    dump, use kbsource build --as-of. Options not listed here are passed to Beam unchanged.

    Examples:
        kbsource age releases/enwiki-20190801 releases/enwiki-20230801 releases/enwiki-20261001 \\
            --input fever-dev-kilt.jsonl --input nq-dev-kilt.jsonl --output ages/enwiki
        kbsource inspect ages/enwiki releases/enwiki-20190801 releases/enwiki-20261001
    """
    from mapping.age import FATES, half_life_text
    from pipelines.jobs.age import measure_age as look_in_all

    made = look_in_all(options, flags=run.flags(), progress=Progress())
    every: dict[str, Any] = next(iter(made.report["groups"]["all"]), _NO_EVIDENCE)
    dates = [release["dump_date"] for release in made.report["releases"]]
    fates = [fate for fate in FATES if any(own[fate] for own in every["fates"])]
    table = [("release", "present", *(fate.replace("_", " ") for fate in fates))]
    for day, n_present, own in zip(dates, every["present"], every["fates"], strict=False):
        share = f"{100 * n_present / every['evidence']:.1f} %"
        table.append((day, share, *(f"{own[fate]:,}" for fate in fates)))
    groups = [
        (name, group["name"], f"{group['evidence']:,}", half_life_text(group["half_life_years"]))
        for name in ("dataset", "infobox", "size")
        for group in made.report["groups"][name][:_GROUPS_SHOWN]
    ]
    parts = [
        table_text(table, right=range(1, len(table[0]))),
        table_text([("by", "", "evidence", "half-life"), *groups], right=[2]),
    ]
    rows: list[Row] = [
        ("records rejected", made.manifest.facts["counts"]["rejected"]),
        ("pieces of evidence", every["evidence"]),
        ("half-life", half_life_text(every["half_life_years"])),
    ]
    return made_summary(made, rows, text="\n\n".join(parts), **made.report)


def facts(options: Annotated[FactsOptions, FLAT], *, run: Run = RunOptions()) -> Summary:
    """Make questions whose answers changed between two dates, with proofs.

    Compares the statements of two releases of Wikidata about the subjects of pages. Searches the older release of pages
    for the old answers, and the newer one for the new answers. Writes every fact with its outcome, a question, and an
    old and a new proof with BLEU and, with --model, entailment. Also writes the questions in KILT's format. Options not
    listed here are passed to Beam unchanged.

    Examples:
        kbsource facts releases/enwiki-20260901 releases/enwiki-20261001 \\
            --wikidata releases/wikidata-20260901 releases/wikidata-20261001 --output facts/enwiki-202610
        kbsource verify facts/enwiki-202610 --old releases/enwiki-20260901 --new releases/enwiki-20261001
    """
    from mapping.facts import PROBLEMS, QUESTION
    from pipelines.jobs.facts import moved_facts

    made = moved_facts(options, flags=run.flags(), progress=Progress())
    counts: dict[str, dict[str, int]] = made.report["facts"]
    problems = [problem for problem in PROBLEMS if any(own[problem] for own in counts.values())]
    names = (QUESTION, *problems)
    table: list[tuple[str, ...]] = [("outcome", "facts", *(name.replace("_", " ") for name in names))]
    for outcome, own in counts.items():
        table.append((outcome, f"{sum(own.values()):,}", *(f"{own[name]:,}" for name in names)))
    text = table_text(table, right=range(1, len(table[0])))
    return made_summary(made, [], text=text, against=("--old", options.old, "--new", options.new), **made.report)
