"""The commands: their names, their summaries, and the function of each. A function returns a ``Summary``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Command(NamedTuple):
    """A command: its function, or the app of its subcommands, and the extra that it needs."""

    name: str
    place: str  # module and function; the module is in ``pipelines``
    summary: str
    guide: str  # page of the documentation that explains it
    extra: str = "align"  # the extra that installs what the command imports; see ``extras.missing_extra``
    job: str | None = None  # module of its Beam job, in ``pipelines.jobs``


GROUPS: Mapping[str, tuple[Command, ...]] = {
    "Make": (
        Command(
            "check-dump",
            "commands.dumps:check_dump",
            "Check that a dump is complete and undamaged.",
            "manual.md#checking-a-dump",
            "build",
        ),
        Command(
            "check-text",
            "commands.dumps:check_text",
            "Compare the text extracted from wikitext with the pages that readers see.",
            "manual.md#comparing-with-the-page",
            "build",
        ),
        Command(
            "wikidata",
            "commands.dumps:wikidata",
            "Build a release of tables from a Wikidata dump.",
            "manual.md#wikidata",
            "build",
            job="wikidata",
        ),
        Command(
            "build",
            "commands.dumps:build",
            "Build a release of pages from a wiki dump.",
            "manual.md#building-a-release",
            "build",
            job="build",
        ),
        Command(
            "pageviews",
            "commands.dumps:pageviews",
            "Sum page views over a period.",
            "manual.md#page-views",
            "build",
            job="pageviews",
        ),
        Command(
            "passages",
            "commands.make:passages",
            "Split the pages of a release into passages for retrievers.",
            "passages.md#the-corpus",
            job="passages",
        ),
        Command(
            "vectors",
            "commands.make:vectors",
            "Encode passages as vectors for dense retrieval.",
            "passages.md#vectors",
            "dense",
            job="vectors",
        ),
        Command(
            "entity-linking",
            "commands.make:entity_linking",
            "Make entity-linking data and an alias table from links.",
            "entity_linking.md",
            job="entity_linking",
        ),
        Command(
            "qampari",
            "commands.make:qampari",
            "Make questions with many answers from Wikidata and list pages.",
            "qampari.md",
            job="qampari",
        ),
        Command(
            "amber",
            "commands.make:amber",
            "Make sets of entities that share a name, with queries about each.",
            "amber.md",
            job="amber",
        ),
        Command(
            "facts",
            "commands.make:facts",
            "Make questions whose answers changed between two dates, with proofs.",
            "facts.md",
            job="facts",
        ),
    ),
    "Align": (
        Command(
            "map",
            "commands.map:app",
            "Align a dataset, or all of them, to a release.",
            "alignment.md#a-dataset",
            job="map_dataset",
        ),
        Command(
            "locate",
            "commands.align:locate",
            "Find a text in a page of a release.",
            "alignment.md#one-piece-of-evidence",
        ),
        Command(
            "age",
            "commands.make:age",
            "Measure how much of a benchmark's evidence survives in each release.",
            "age.md",
            job="age",
        ),
        Command(
            "validate-kilt",
            "commands.align:validate_kilt",
            "Check a KILT file against a release.",
            "alignment.md#checking-a-kilt-file",
        ),
        Command(
            "nli",
            "commands.align:nli",
            "Ask an NLI model whether a text supports a sentence.",
            "alignment.md#models",
            "nli-onnx",
        ),
        Command(
            "check-sources",
            "commands.align:check_sources",
            "Ask an NLI model whether sources support the sentences that cite them.",
            "references.md#does-a-source-support-its-sentence",
            "nli-onnx",
            job="check_sources",
        ),
    ),
    "Look": (
        Command(
            "info", "commands.look:info", "Describe a release and how to open it.", "manual.md#what-a-release-is", ""
        ),
        Command(
            "catalogue",
            "commands.share:catalogue",
            "List the releases in a folder, and what each was made from.",
            "publishing.md#a-folder-of-releases",
            "",
        ),
        Command(
            "show",
            "commands.show:show",
            "Show a page, or a row of another kind of release.",
            "manual.md#showing-a-page",
            "",
        ),
        Command(
            "sql", "commands.query:sql", "Query the tables of a release in SQL.", "recipes.md#kbsource-sql", "verify"
        ),
        Command(
            "verify",
            "commands.look:verify",
            "Check a release: recompute its hashes, counts and invariants.",
            "manual.md#verifying-a-release",
            "verify",
        ),
        Command("inspect", "commands.serve:inspect", "Browse releases in a web browser.", "inspector.md", "inspect"),
        Command(
            "serve", "commands.serve:serve", "Serve a release of pages to programs and agents.", "serving.md", "serve"
        ),
        Command(
            "report",
            "commands.look:report",
            "Write a report on releases as one HTML or Markdown file.",
            "manual.md#a-report",
            "inspect",
        ),
        Command(
            "templates",
            "commands.look:templates",
            "Show how templates were rendered, and which lose the most text.",
            "manual.md#comparing-templates",
            "",
        ),
        Command("diff", "commands.look:diff", "Compare two releases page by page.", "diff.md", "diff"),
        Command(
            "search",
            "commands.retrieve:search",
            "Find passages or pages by words, mentions, vectors or a combination.",
            "passages.md#search",
            "search",
        ),
        Command(
            "rerank",
            "commands.retrieve:rerank",
            "Rerank retrieved passages with a cross-encoder.",
            "passages.md#search",
            "search",
            job="read",
        ),
        Command(
            "link",
            "commands.retrieve:link",
            "Link the mentions in a text to pages, using only an alias table.",
            "entity_linking.md#the-alias-table",
        ),
    ),
    "Evaluate": (
        Command("evaluate", "commands.evaluate:app", "Compute the metrics of a benchmark.", "evaluation.md"),
        Command(
            "read",
            "commands.retrieve:read",
            "Answer questions with a model, with or without passages.",
            "benchmark.md#readers",
            "read",
            job="read",
        ),
        Command(
            "benchmark",
            "commands.benchmark:benchmark",
            "Compare retrieval systems, with or without readers, in one table.",
            "benchmark.md",
            "search",
        ),
        Command(
            "qampari-contexts",
            "commands.questions:qampari_contexts",
            "Attach passages to the questions of QAMPARI.",
            "passages.md#questions-with-passages",
        ),
        Command(
            "qampari-tasks",
            "commands.questions:tasks_app",
            "Export crowd tasks for a QAMPARI release, and import the verdicts.",
            "qampari.md#tasks-for-people",
        ),
        Command(
            "campaign",
            "commands.questions:campaign_app",
            "Collect human judgements on whether passages answer questions.",
            "campaign.md",
        ),
    ),
    "Share": (
        Command(
            "publish",
            "commands.share:publish",
            "Prepare a release for upload to a dataset hub.",
            "publishing.md",
            "publish",
        ),
        Command(
            "export",
            "commands.share:export",
            "Write the pages of a release as text, Markdown, HTML or JSON Lines.",
            "text.md",
            "",
        ),
        Command(
            "export-kilt",
            "commands.share:export_kilt",
            "Write a release in the format of KILT's knowledge source.",
            "manual.md#the-kilt-knowledge-source",
            "",
        ),
        Command(
            "beir",
            "commands.retrieve:beir",
            "Write an aligned dataset and its passages in BEIR's format.",
            "passages.md#search",
        ),
        Command(
            "training-data",
            "commands.retrieve:training_data",
            "Write training data for retrievers and readers.",
            "training_data.md",
        ),
        Command(
            "trec", "commands.retrieve:trec", "Convert TREC runs to KILT predictions, and back.", "passages.md#search"
        ),
    ),
    "Start": (
        Command(
            "demo",
            "commands.demo:demo",
            "Make every kind of release from a small invented wiki.",
            "tutorial_demo.md",
            "",
        ),
        Command(
            "completion",
            "app:completion",
            "Let the shell complete commands and options.",
            "installing.md#shell-completion",
            "",
        ),
    ),
}
"""All commands by group, the most useful first."""

COMMANDS: Mapping[str, Command] = {command.name: command for group in GROUPS.values() for command in group}
