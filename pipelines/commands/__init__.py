"""The commands: their names, their summaries, and the function of each. A function returns a ``Summary``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Command(NamedTuple):
    """A command: its function, or the app of its subcommands, and the extra that it needs."""

    name: str
    place: str  # module and function; the module is in ``pipelines``
    summary: str
    extra: str = "align"  # the extra that installs what the command imports; see ``extras.missing_extra``


GROUPS: Mapping[str, tuple[Command, ...]] = {
    "Make": (
        Command("check-dump", "commands.dumps:check_dump", "Check that a dump is complete and undamaged.", "build"),
        Command(
            "check-text",
            "commands.dumps:check_text",
            "Compare the text extracted from wikitext with the pages that readers see.",
            "build",
        ),
        Command("wikidata", "commands.dumps:wikidata", "Build a release of tables from a Wikidata dump.", "build"),
        Command("build", "commands.dumps:build", "Build a release of pages from a wiki dump.", "build"),
        Command("pageviews", "commands.dumps:pageviews", "Sum page views over a period.", "build"),
        Command("passages", "commands.make:passages", "Split the pages of a release into passages for retrievers."),
        Command("vectors", "commands.make:vectors", "Encode passages as vectors for dense retrieval.", "dense"),
        Command(
            "entity-linking",
            "commands.make:entity_linking",
            "Make entity-linking data and an alias table from links.",
        ),
        Command("qampari", "commands.make:qampari", "Make questions with many answers from Wikidata and list pages."),
        Command("amber", "commands.make:amber", "Make sets of entities that share a name, with queries about each."),
        Command("facts", "commands.make:facts", "Make questions whose answers changed between two dates, with proofs."),
    ),
    "Align": (
        Command("map", "commands.map:app", "Align a dataset, or all of them, to a release."),
        Command("locate", "commands.align:locate", "Find a text in a page of a release."),
        Command("age", "commands.make:age", "Measure how much of a benchmark's evidence survives in each release."),
        Command("validate-kilt", "commands.align:validate_kilt", "Check a KILT file against a release."),
        Command("nli", "commands.align:nli", "Ask an NLI model whether a text supports a sentence.", "nli-onnx"),
        Command(
            "check-sources",
            "commands.align:check_sources",
            "Ask an NLI model whether sources support the sentences that cite them.",
            "nli-onnx",
        ),
    ),
    "Look": (
        Command("info", "commands.look:info", "Describe a release and how to open it.", ""),
        Command(
            "catalogue", "commands.share:catalogue", "List the releases in a folder, and what each was made from.", ""
        ),
        Command("show", "commands.show:show", "Show a page, or a row of another kind of release.", ""),
        Command("sql", "commands.query:sql", "Query the tables of a release in SQL.", "verify"),
        Command(
            "verify", "commands.look:verify", "Check a release: recompute its hashes, counts and invariants.", "verify"
        ),
        Command("inspect", "commands.serve:inspect", "Browse releases in a web browser.", "inspect"),
        Command("serve", "commands.serve:serve", "Serve a release of pages to programs and agents.", "serve"),
        Command(
            "report", "commands.look:report", "Write a report on releases as one HTML or Markdown file.", "inspect"
        ),
        Command(
            "templates",
            "commands.look:templates",
            "Show how templates were rendered, and which lose the most text.",
            "",
        ),
        Command("diff", "commands.look:diff", "Compare two releases page by page.", "diff"),
        Command(
            "search",
            "commands.retrieve:search",
            "Find passages or pages by words, mentions, vectors or a combination.",
            "search",
        ),
        Command("rerank", "commands.retrieve:rerank", "Rerank retrieved passages with a cross-encoder.", "search"),
        Command("link", "commands.retrieve:link", "Link the mentions in a text to pages, using only an alias table."),
    ),
    "Evaluate": (
        Command("evaluate", "commands.evaluate:app", "Compute the metrics of a benchmark."),
        Command("read", "commands.retrieve:read", "Answer questions with a model, with or without passages.", "read"),
        Command(
            "benchmark",
            "commands.benchmark:benchmark",
            "Compare retrieval systems, with or without readers, in one table.",
            "search",
        ),
        Command(
            "qampari-contexts", "commands.questions:qampari_contexts", "Attach passages to the questions of QAMPARI."
        ),
        Command(
            "qampari-tasks",
            "commands.questions:tasks_app",
            "Export crowd tasks for a QAMPARI release, and import the verdicts.",
        ),
        Command(
            "campaign",
            "commands.questions:campaign_app",
            "Collect human judgements on whether passages answer questions.",
        ),
    ),
    "Share": (
        Command("publish", "commands.share:publish", "Prepare a release for upload to a dataset hub.", "publish"),
        Command(
            "export", "commands.share:export", "Write the pages of a release as text, Markdown, HTML or JSON Lines.", ""
        ),
        Command(
            "export-kilt", "commands.share:export_kilt", "Write a release in the format of KILT's knowledge source.", ""
        ),
        Command("beir", "commands.retrieve:beir", "Write an aligned dataset and its passages in BEIR's format."),
        Command("training-data", "commands.retrieve:training_data", "Write training data for retrievers and readers."),
        Command("trec", "commands.retrieve:trec", "Convert TREC runs to KILT predictions, and back."),
    ),
    "Start": (
        Command("demo", "commands.demo:demo", "Make every kind of release from a small invented wiki.", ""),
        Command("completion", "app:completion", "Let the shell complete commands and options.", ""),
    ),
}
"""All commands by group, the most useful first."""

COMMANDS: Mapping[str, Command] = {command.name: command for group in GROUPS.values() for command in group}
