"""``kbsource benchmark``: compares systems on datasets in one table.

Its configuration lists datasets and systems. A system has the options of ``kbsource search`` and, below ``reader``, the
options of ``kbsource read``, as on the command line but without their dashes::

    datasets:
      nq: aligned/nq/nq-dev-kilt.jsonl         # a file of gold records, or a release that contains some
      amber: amber/enwiki-20261001
    systems:
      bm25: {}                                  # the name is also the --system, unless the options contain another
      linker: {system: aliases, linking: linking/enwiki-20261001, top: 20}
      bm25 and T5: {system: bm25, top: 20, reader: {model: models/t5-base, form: fid}}

Paths are relative to the folder of the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Argument, CycloptsError, Parameter
from msgspec import to_builtins

from kbsource.errors import SetupError
from kbsource.files import absolute, join
from kbsource.records import BadRecord
from kbsource.temporary import TemporaryFolder
from mapping.options import DEFAULTS, AtLeast0, File, FolderPath, Model, Release, Releases, System
from pipelines.argument_faults import fault_text
from pipelines.commands.config import ConfigFile, ConfigItem, Items
from pipelines.commands.retrieve import TOP, read, search
from pipelines.options.read import ReadOptions
from pipelines.options.shared import RunOptions
from pipelines.progress import Progress
from pipelines.terminal import Summary, command_line, table_text

if TYPE_CHECKING:
    from mapping.retrieval.benchmark import Dataset
    from pipelines.jobs.benchmark import PlannedSystem

_NAME = re.compile(r"[^\W_][\w.,:+ -]*(?:/[^\W_][\w.,:+ -]*)*")
_OF_THE_COMMAND = frozenset(("queries", "output", "negatives", "questions", "retrieved", "dry-run"))
"""Options of ``kbsource search`` and ``read`` that a system cannot have."""


def benchmark(
    passages: Release,
    datasets: Releases = (),
    /,
    *,
    output: FolderPath,
    systems: Annotated[tuple[System, ...], Parameter("--system")] = (),
    linking: FolderPath | None = None,
    model: Model | None = None,
    config: File | None = None,
    resamples: Annotated[AtLeast0, Parameter("--bootstrap")] = 1000,
) -> Summary:
    """Compare retrieval systems, with or without readers, in one table.

    Runs every system on the questions of every dataset. Prints the metrics of KILT, QAMPARI and AmbER with 95 %
    intervals, seconds and memory, beside the values that the papers report. Run the same command again to
    resume a run that was killed.

    Args:
        passages: Folder that kbsource passages wrote.
        datasets: Releases with questions (aligned datasets, a QAMPARI release, AmbER sets, entity-linking data), files
            of gold records, or folders of such files.
        output: New folder for the results, or the folder of a run that was killed.
        systems: Retrieval systems, as for kbsource search --system; several may be given.
        linking: Folder that kbsource entity-linking wrote, for systems that use aliases.
        model: Encoder that made the vectors, for systems that use dense. The vectors are expected in PASSAGES-vectors;
            to name other folders and models, use --config.
        config: YAML file with further datasets and systems and their options; see docs/benchmark.md for an example.
        resamples: Number of resamples for the intervals; 0 for no intervals.

    Examples:
        kbsource benchmark passages/enwiki-20261001 aligned qampari/enwiki-20261001 amber/enwiki-20261001 \\
            --system bm25 aliases aliases+bm25 --linking linking/enwiki-20261001 --output benchmark
        kbsource benchmark passages/enwiki-20261001 aligned --system bm25 dense bm25,dense \\
            --model models/bge-small-en-v1.5 --output benchmark
        kbsource benchmark passages/enwiki-20261001 --config systems.yaml --output benchmark
    """
    from mapping.retrieval.benchmark import datasets_of, score_rows
    from mapping.retrieval.layouts import paper_tables
    from pipelines.jobs.benchmark import make_benchmark

    found = [dataset for path in datasets for dataset in datasets_of(path)]
    flags = {"aliases": ("--linking", linking), "dense": ("--model", model)}
    if model is not None and not any("dense" in system for system in systems):
        raise SetupError(
            "--model is only for systems that use dense. Leave it out, or name such a system, like --system bm25,dense."
        )
    planned = []
    for system in dict.fromkeys(systems):
        own = [f"{flag}={value}" for part, (flag, value) in flags.items() if part in system and value is not None]
        planned.append(_system(passages, system, (f"--system={system}", *own)))
    if config is not None:
        given = _Config(config, passages)
        found += given.datasets
        planned += given.systems
    _check_names(
        "dataset",
        [dataset.name for dataset in found],
        "Name a file of questions, or a release that contains questions.",
    )
    _check_names("system", [system.name for system in planned], "Name a system, like --system bm25.")
    scores, costs, rejected = make_benchmark(
        passages, found, planned, absolute(output.rstrip("/") or "/"), resamples=resamples, progress=Progress()
    )
    systems_named = [system.name for system in planned]
    rows = list(score_rows(found, systems_named, scores))
    return Summary(
        title=f"The table is in {output}, together with the predictions, values and costs. papers.md has the same "
        f"results in the layout of the papers' tables.",
        text=table_text(
            [("dataset", "metric", "n", *systems_named, "published"), *(row.texts() for row in rows)],
            right=range(2, 3 + len(planned)),
        ),
        values={
            "output": output,
            "scores": to_builtins(scores),
            "costs": to_builtins(costs),
            "tables": [table.to_json() for table in paper_tables(found, systems_named, scores)],
            "published": [
                {"dataset": row.dataset, "metric": row.metric, **figure._asdict()}
                for row in rows
                for figure in row.published
            ],
        },
        faults=rejected,
        next=command_line("inspect", output),
    )


def _system(passages: str, name: str, options: Sequence[str], reader: Sequence[str] = ()) -> PlannedSystem:
    """Returns the system for some options of ``kbsource search PASSAGES`` and, if it has a reader, of ``kbsource read
    QUESTIONS``; raises CycloptsError if an option is invalid."""
    from pipelines.jobs.benchmark import PlannedSystem

    bound = _typed("search").parse_args([passages, *options], exit_on_error=False, print_error=False)[1]
    given = {key: argument for key, argument in bound.arguments.items() if key != "passages"}
    top, find = given.get("top") or TOP, partial(search, passages, **given)
    if not reader:
        return PlannedSystem(name, tuple(options), top, find)
    typed = ["questions", "--output=output", *reader]
    reading = _typed("read").parse_args(typed, exit_on_error=False, print_error=False)[1].arguments
    said = (f"--reader-{option.removeprefix('--')}" for option in reader)
    answer = partial(_read, find=find, **reading)
    return PlannedSystem(name, (*options, *said), min(top, reading["options"].top), answer)


def _read(
    *, queries: str, output: str, find: Callable[..., Summary], options: ReadOptions, run: RunOptions = RunOptions()
) -> Summary:
    """Has a reader answer a file of queries, with the results of a system unless it reads no passages."""
    with TemporaryFolder() as folder:
        faults: list[BadRecord | str] = []
        found = None
        if options.form != "closed":
            found = join(folder, "found.jsonl")
            faults += find(queries=queries, output=found).faults
        answered = read(replace(options, questions=queries, output=output, retrieved=found), run=run)
    return replace(answered, faults=[*faults, *answered.faults])


def _check_names(of: str, names: Sequence[str], remedy: str) -> None:
    if not names:
        raise SetupError(f"There is no {of}. {remedy}")
    for name in names:
        if _NAME.fullmatch(name) is None:
            raise SetupError(
                f"{of} {name!r} cannot be part of a file name; use letters, digits, spaces and - _ . , : +."
            )
        if names.count(name) > 1:
            raise SetupError(f"{of} {name!r} is given twice; give one of them another name in a configuration.")


@cache
def _typed(command: Literal["search", "read"]) -> App:
    """Returns a command as a separate command line, which parses the options of systems."""
    app = App(name=command, default_parameter=DEFAULTS)
    app.default(search if command == "search" else read)
    return app


@cache
def _options(command: Literal["search", "read"]) -> dict[str, Argument]:
    """Returns the options that a configuration may contain for a system, or for its reader."""
    named = {
        option.name.removeprefix("--"): option
        for option in _typed(command).assemble_argument_collection()
        if option.show
    }
    left_out = {*_OF_THE_COMMAND, *(("form",) if command == "search" else ())}
    return {key: option for key, option in named.items() if key.islower() and key not in left_out}


class _Config(ConfigFile):
    """The datasets and systems of a configuration."""

    def __init__(self, path: str, passages: str) -> None:
        from mapping.retrieval.benchmark import datasets_of

        super().__init__(path, expected="datasets or systems")
        top = self.items(self.root, "the configuration", allowed=("datasets", "systems"))
        named: dict[str, Items] = {key: self.items(item.value, key) for key, item in top.items()}
        self.datasets: list[Dataset] = [
            dataset
            for name, item in named.get("datasets", {}).items()
            for dataset in datasets_of(self.near(self.text(item.value, name)), name)
        ]
        self.systems = [self._system(passages, name, item) for name, item in named.get("systems", {}).items()]

    def _system(self, passages: str, name: str, item: ConfigItem) -> PlannedSystem:
        own = self.items(item.value, f"system {name!r}", allowed=(*_options("search"), "reader"))
        reader: Items = {}
        if (given := own.pop("reader", None)) is not None:
            reader = self.items(given.value, f"the reader of {name!r}", allowed=_options("read"))
        tokens, of_reader = self._tokens("search", own), self._tokens("read", reader)
        if "system" not in own and "--form=closed" not in of_reader:
            tokens.insert(0, f"--system={name}")
        try:
            return _system(passages, name, tokens, of_reader)
        except CycloptsError as error:
            self.fail(item.key, f"system {name!r}: {fault_text(error).rstrip('.')}")

    def _tokens(self, command: Literal["search", "read"], items: Items) -> list[str]:
        return [part for key, value in items.items() for part in self.typed(_options(command)[key], key, value)]
