"""The commands: a function each, which returns a ``Summary``; this says what they are called and where they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Command(NamedTuple):
    """Where a command's function is, or the app of its parts, and what it needs."""

    name: str
    place: str  # in ``pipelines``
    summary: str
    extra: str = "align"  # that brings all that it imports; see ``extras.missing_extra``


GROUPS: Mapping[str, tuple[Command, ...]] = {
    "Make": (
        Command("check-dump", "commands.dumps:check_dump", "Say whether a dump is complete and sound.", "build"),
        Command("wikidata", "commands.dumps:wikidata", "Make a release of tables from a dump of Wikidata.", "build"),
        Command("build", "commands.dumps:build", "Build a release of pages from a dump.", "build"),
        Command("pageviews", "commands.dumps:pageviews", "Make a release of the page views of a time.", "build"),
        Command("passages", "commands.make:passages", "Cut the pages of a release into passages for retrievers."),
        Command("vectors", "commands.make:vectors", "Make vectors of passages with a sentence encoder.", "dense"),
        Command(
            "entity-linking",
            "commands.make:entity_linking",
            "Make entity-linking data and an alias table out of links.",
        ),
        Command("qampari", "commands.make:qampari", "Make questions with many answers out of Wikidata and list pages."),
        Command("amber", "commands.make:amber", "Make sets of entities that share a name, with queries about each."),
        Command("facts", "commands.make:facts", "Make questions whose answers moved between two days, with proofs."),
    ),
    "Align": (
        Command("map", "commands.map:app", "Align a dataset, or all of them, to a release."),
        Command("locate", "commands.align:locate", "Find where a text stands in a page of a release."),
        Command("age", "commands.make:age", "Say how fast a benchmark rots, from release to release."),
        Command("validate-kilt", "commands.align:validate_kilt", "Check a KILT file against a release."),
        Command(
            "nli", "commands.align:nli", "Ask an NLI model whether a text says what a sentence claims.", "nli-onnx"
        ),
        Command(
            "check-sources",
            "commands.align:check_sources",
            "Ask an NLI model whether sources support the sentences that cite them.",
            "nli-onnx",
        ),
    ),
    "Look": (
        Command("info", "commands.look:info", "Say what a release is and how to open it.", ""),
        Command(
            "catalogue", "commands.share:catalogue", "List the releases of a folder, and what was made from what.", ""
        ),
        Command("show", "commands.look:show", "Show a page of a release, or a row of another kind.", ""),
        Command("sql", "commands.query:sql", "Query the tables of a release in SQL.", "verify"),
        Command("verify", "commands.look:verify", "Recompute everything that a release claims.", "verify"),
        Command("inspect", "commands.serve:inspect", "Read releases as web pages.", "inspect"),
        Command("serve", "commands.serve:serve", "Answer programs and agents from a release of pages.", "serve"),
        Command("report", "commands.look:report", "Write what releases are and hold as one web page.", "inspect"),
        Command("templates", "commands.look:templates", "Show what templates show, and those that lose most text.", ""),
        Command("diff", "commands.look:diff", "Say what became of every page of a release in a later one.", "diff"),
        Command(
            "search",
            "commands.retrieve:search",
            "Find passages or pages by words, mentions, vectors, or several of them.",
            "search",
        ),
        Command("rerank", "commands.retrieve:rerank", "Put a run in the order of a cross-encoder.", "search"),
        Command("link", "commands.retrieve:link", "Link the mentions of a text to pages, by an alias table alone."),
    ),
    "Evaluate": (
        Command("evaluate", "commands.evaluate:app", "Give the metrics of a benchmark."),
        Command("read", "commands.retrieve:read", "Have a model answer questions, with passages or without.", "read"),
        Command(
            "benchmark",
            "commands.benchmark:benchmark",
            "Measure retrieval systems, with readers or without, on datasets, in one table.",
            "search",
        ),
        Command(
            "qampari-contexts", "commands.questions:qampari_contexts", "Give the questions of QAMPARI their passages."
        ),
        Command(
            "qampari-tasks", "commands.questions:tasks_app", "Ask people about a QAMPARI release, and take in verdicts."
        ),
        Command("campaign", "commands.questions:campaign_app", "Have people judge whether passages answer questions."),
    ),
    "Share": (
        Command("publish", "commands.share:publish", "Prepare a folder of a release for a dataset hub.", "publish"),
        Command(
            "export", "commands.share:export", "Write the pages of a release as text, Markdown, HTML or JSON Lines.", ""
        ),
        Command(
            "export-kilt", "commands.share:export_kilt", "Write a release in the form of KILT's knowledge source.", ""
        ),
        Command("beir", "commands.retrieve:beir", "Write an aligned dataset over passages as BEIR has datasets."),
        Command("training-data", "commands.retrieve:training_data", "Write training data for retrievers and readers."),
        Command("trec", "commands.retrieve:trec", "Turn runs of TREC into predictions of KILT, and back."),
    ),
    "Start": (
        Command("demo", "commands.demo:demo", "Make every kind of release of a small invented wiki.", ""),
        Command("completion", "app:completion", "Let the shell complete commands and options.", ""),
    ),
}
"""What can be typed, in the order in which it is of use."""

COMMANDS: Mapping[str, Command] = {command.name: command for group in GROUPS.values() for command in group}
