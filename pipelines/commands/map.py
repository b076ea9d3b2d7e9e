"""``kbsource map``: converts a dataset to KILT records with evidence in a release. Each dataset is a subcommand.

The configuration of ``kbsource map all`` lists datasets, their files, and the options for aligning each::

    options: {threshold: 0.5}               # for every dataset
    datasets:
      fever:                                # folder in the output; also the dataset, unless ``dataset`` names it
        wiki-pages: fever/wiki-pages        # for every split
        splits:
          dev: {input: [fever/shared_task_dev.jsonl, fever/fever2-fixers-dev.jsonl]}
          test: {input: fever/shared_task_test.jsonl}

Options are those of the command line without their dashes. Options of a split override options of its dataset, which
override the options of all datasets. Paths are relative to the folder of the configuration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Argument, ArgumentCollection, CycloptsError, Parameter

from kbsource.errors import SetupError
from kbsource.files import join
from mapping.options import DEFAULTS, FLAT, File, FolderPath, Release, path_like
from mapping.sources import all_sources
from mapping.sources.source import SPLIT_WORDS, SPLITS, SourceOptions, Split
from pipelines.argument_faults import fault_text
from pipelines.commands.config import ConfigFile, ConfigItem, Items
from pipelines.commands.dumps import Run, made_summary
from pipelines.options.map_dataset import MapCommandOptions, MapOptions, PlannedAlignment
from pipelines.options.shared import USUAL_MEMORY, Memory, Output, RunOptions
from pipelines.progress import Progress
from pipelines.terminal import Summary, command_line, nearest

if TYPE_CHECKING:
    import yaml


LABELS = Parameter(
    help="File of answers by id, for a test file without answers. A file with these answers is also written.",
    metavar="FILE",
    validator=path_like,
)
_SPLIT_WORDS: dict[str, Split] = {**SPLIT_WORDS, "training": "train"}
_WORD = re.compile(r"[a-z]+")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_OF_THE_COMMAND = frozenset(("kb", "output", "split", "worker-memory", "scratch", "runner", "workers", "dry-run"))
"""Options that are not allowed in a configuration."""
_DESCRIPTION = """\
Finds the evidence of a dataset in the pages of a release, and writes the dataset as KILT records. Also writes a table
of all alignments, a table of all misses, and the counts. manifest.json is written last. Options not listed here are
passed to Beam unchanged."""

app = App(
    name="map",
    help="Align a dataset, or all of them, to a release.\n\n"
    f"{_DESCRIPTION} kbsource map DATASET --help describes a dataset.",
    default_parameter=DEFAULTS,
)
for _name, _source in all_sources().items():
    app.command(f"{__name__}:{_name}", name=_name, help=f"{_source.summary}.\n\n{_DESCRIPTION}")


def __getattr__(name: str) -> Callable[..., Summary]:
    """Returns the command of a dataset; its module is imported only when the command is used."""
    if name not in all_sources():
        raise AttributeError(name)
    return _command_of(name)


@cache
def _command_of(dataset: str) -> Callable[..., Summary]:
    """Returns the command of a dataset, with the options that all datasets share and those that only this one has."""
    reader = all_sources()[dataset]

    def align(
        options: MapCommandOptions,
        *,
        references: tuple[str, ...] = (),
        labels: tuple[str, ...] = (),
        source: SourceOptions | None = None,
        run: RunOptions = RunOptions(),
    ) -> Summary:
        for flag in run.beam_args:
            if owners := takers().get(flag.partition("=")[0]):
                raise SetupError(f"{flag} works only for {', '.join(owners)}, not for {dataset}; leave it out.")
        return _align(
            dataset_options(dataset, options, references=references, labels=labels, source=source), flags=run.flags()
        )

    hidden = Parameter(parse=False)
    align.__annotations__ = {
        "options": Annotated[MapCommandOptions, FLAT],
        "references": Annotated[tuple[str, ...], reader.references or hidden],
        "labels": Annotated[tuple[str, ...], LABELS if reader.labels is not None else hidden],
        "source": Annotated[reader.options_type | None, FLAT if fields(reader.options_type) else hidden],
        "run": Run,
    }
    own = " ".join(("", *(reader.references.name or ()), reader.references.metavar or "")) if reader.references else ""
    example = f"kbsource map {dataset} releases/enwiki-20261001 --input FILE{own} --output aligned/{dataset}"
    align.__doc__ = f"{reader.summary}.\n\nExamples:\n    {example}\n"
    return align


@cache
def takers() -> Mapping[str, Sequence[str]]:
    """Returns the datasets that accept each flag, for flags that not all datasets accept."""
    found: dict[str, list[str]] = {}
    common = set(_arguments("jsonl"))
    for dataset in all_sources():
        for flag in _arguments(dataset).keys() - common:
            found.setdefault(flag, []).append(dataset)
    return found


@cache
def _arguments(dataset: str) -> dict[str, Argument]:
    """Returns the options of a dataset's command by name, without the negative forms of switches."""
    collection: ArgumentCollection = app[dataset].assemble_argument_collection()
    return {argument.name: argument for argument in collection if argument.show and argument.name.startswith("--")}


def dataset_options(dataset: str, options: MapCommandOptions, **own: Any) -> MapOptions:
    """Returns the options of an alignment: the common options and the dataset's own.

    Raises:
        SetupError: the split is unknown, or a value is invalid.
    """
    alignment = options.alignment
    given = {field.name: getattr(alignment, field.name) for field in fields(alignment)}
    return MapOptions(
        options.kb,
        dataset=dataset,
        output=options.output,
        worker_memory_bytes=options.worker_memory_bytes,
        **{**given, **own, "split": alignment.split or split_of(alignment.inputs)},
    )


def split_of(paths: Sequence[str]) -> Split:
    """Returns the split to use if none is given: the split in the file names, or dev if they contain none.

    >>> split_of(["fever/shared_task_dev.jsonl"]), split_of(["a/hotpot_train_v1.1.json"]), split_of(["qa", "mine.tsv"])
    ('dev', 'train', 'dev')

    Raises:
        SetupError: the file names contain several splits.
    """
    named: dict[Split, str] = {}
    for path in paths:
        words = _WORD.findall(path.rstrip("/").rsplit("/", 1)[-1].lower())
        named |= {_SPLIT_WORDS[word]: path for word in words if word in _SPLIT_WORDS}
    if len(named) > 1:
        raise SetupError(
            f"The names of {' and '.join(dict.fromkeys(named.values()))} contain {' and '.join(named)}; give the "
            "split with --split NAME."
        )
    return next(iter(named), "dev")


def _align(options: MapOptions, *, flags: Sequence[str]) -> Summary:
    from mapping.write.report import report_text
    from pipelines.jobs.map_dataset import map_dataset

    made = map_dataset(options, flags=flags, progress=Progress())
    # The variants without inputs or answers have longer names.
    kilt_file = min((entry.file for entry in made.manifest.files if entry.file.endswith(".jsonl")), key=len)
    path = f"{made.output.rstrip('/')}/{kilt_file}"
    summary = made_summary(made, [], text=report_text(made.report), **made.report)
    if not made.report["counts"]["written"]:
        why = (
            f"No record was written: {path} is empty. The counts above show why. The table misses lists every piece "
            f"of evidence that was not found, with the reason."
        )
        return replace(summary, title=why)
    check = command_line("validate-kilt", options.kb, path)
    return replace(summary, title=f"The records are in {path}.", next=check)


@app.command(name="all")
def align_all(
    kb: Release,
    /,
    *,
    config: File,
    output: Output,
    scratch: FolderPath | None = None,
    worker_memory_bytes: Memory = USUAL_MEMORY,
    run: Run = RunOptions(),
) -> Summary:
    """Align every dataset and split in a configuration.

    If a dataset fails, the others are still aligned. Run the same command again to align the missing ones. The keys of
    the configuration are options of the command line, for all datasets, for one dataset, or for one split; see
    docs/manual.md for an example.

    Args:
        kb: Folder of the release.
        config: YAML file with datasets, their files and options.
        output: Folder for all alignments, each in its own folder.
        scratch: Folder for temporary indexes; by default the system's.

    Examples:
        kbsource map all releases/enwiki-20261001 --config datasets.yaml --output aligned
    """
    from mapping.write.report import overview_text
    from pipelines.jobs.map_dataset import map_all

    of_datasets = takers().keys() | _arguments("jsonl")
    if odd := [flag for flag in run.beam_args if flag.partition("=")[0] in of_datasets]:
        raise SetupError(f"{odd[0]} belongs in {config}, not on the command line of map all.")
    output = output.rstrip("/") or "/"
    planned = [
        planned_run._replace(
            options=replace(planned_run.options, scratch=scratch, worker_memory_bytes=worker_memory_bytes)
        )
        for planned_run in read_alignments(config, kb, output)
    ]
    made = map_all(planned, kb=kb, output=output, flags=run.flags(), progress=Progress())
    kept = f", {len(made.kept)} of them in an earlier run" if made.kept else ""
    rows = [("alignments", f"{len(made.report['datasets'])}{kept}")]
    summary = made_summary(made, rows, text=overview_text(made.report), kept=made.kept, **made.report)
    return replace(summary, title=f"Each alignment has its own folder in {output}.")


def read_alignments(path: str, kb: str, output: str) -> list[PlannedAlignment]:
    """Returns the alignments in a configuration, in its order, for a release and an output folder.

    Raises:
        SetupError: the file is missing, is not YAML, or contains something invalid; the message names the line and what
            is allowed there.
    """
    return list(_Config(path, kb, output).planned())


class _Config(ConfigFile):
    def __init__(self, path: str, kb: str, output: str) -> None:
        super().__init__(path, expected="datasets")
        self._kb, self._output = kb, output

    def planned(self) -> Iterator[PlannedAlignment]:
        root = self.root
        top = self.items(root, "the configuration", allowed=("options", "datasets"))
        if "datasets" not in top:
            self.fail(root, "the key 'datasets' is missing")
        common = self.items(top["options"].value, "options", allowed=_keys("jsonl")) if "options" in top else {}
        datasets = self.items(top["datasets"].value, "datasets")
        if not datasets:
            self.fail(top["datasets"].key, "'datasets' is empty; name a dataset")
        for name, item in datasets.items():
            if not _NAME.fullmatch(name):
                self.fail(item.key, f"{name!r} cannot be the name of a folder; use letters, digits, '.', '-' and '_'")
            yield from self._splits(name, item, common)

    def _splits(self, name: str, item: ConfigItem, common: Items) -> Iterator[PlannedAlignment]:

        own = self.items(item.value, f"dataset {name!r}")
        dataset = self.text(own.pop("dataset").value, "dataset") if "dataset" in own else name
        if dataset not in all_sources():
            self.fail(
                item.key,
                f"there is no dataset {dataset!r}.{nearest(dataset, all_sources())} Choose one of: "
                f"{', '.join(all_sources())}",
            )
        self._check_keys(own, f"dataset {name!r}", dataset, also=("dataset", "splits"))
        if "splits" not in own:
            self.fail(item.key, f"dataset {name!r} has no 'splits'")
        for split, inner in self.items(own.pop("splits").value, f"the splits of {name!r}", allowed=SPLITS).items():
            nearer = self.items(inner.value, f"split {split!r}")
            self._check_keys(nearer, f"split {split!r}", dataset)
            place = join(self._output, name, split)
            options = self._options(
                dataset, {**common, **own, **nearer}, inner.key, ("--split", split, "--output", place)
            )
            yield PlannedAlignment(name, options, self.where(inner.key))

    def _options(self, dataset: str, items: Items, at: yaml.Node, tokens: Sequence[str]) -> MapOptions:
        keys = _keys(dataset)
        typed = [
            self._kb,
            *tokens,
            *(part for key, item in items.items() for part in self.typed(keys[key], key, item)),
        ]
        try:
            _, bound, _ = app[dataset].parse_args(typed, exit_on_error=False, print_error=False)
            return dataset_options(dataset, **bound.arguments)
        except CycloptsError as error:
            named = error.argument.name.removeprefix("--") if error.argument is not None else ""
            self.fail(items[named].value if named in items else at, fault_text(error).rstrip("."))
        except SetupError as error:
            self.fail(at, str(error).rstrip("."))

    def _check_keys(self, items: Items, what: str, dataset: str, also: Sequence[str] = ()) -> None:
        allowed = [*also, *_keys(dataset)]
        for key, item in items.items():
            if key not in allowed:
                if owners := takers().get(f"--{key}"):
                    self.fail(
                        item.key, f"{what}: {key!r} works only for {', '.join(owners)}, not for {dataset}; leave it out"
                    )
                self.fail(
                    item.key,
                    f"{what}: there is no option {key!r}.{nearest(key, allowed)} Allowed options: {', '.join(allowed)}",
                )


def _keys(dataset: str) -> dict[str, Argument]:
    """Returns the options that a configuration may set for a dataset."""
    options = {name.removeprefix("--"): argument for name, argument in _arguments(dataset).items()}
    return {key: option for key, option in options.items() if key not in _OF_THE_COMMAND}
