"""What decides the bytes of an alignment, as its manifest has it, told from the options alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kbsource.files import base_name
from kbsource.release.manifest import Manifest, code_facts
from mapping.entailment_model import model_facts
from mapping.hypotheses import DATASET_HYPOTHESES, HypothesisKind
from mapping.output import input_files, release_facts
from mapping.policy import dataset_named
from mapping.sources import SOURCES
from mapping.tokens import tokeniser_name
from pipelines.options_map import MapOptions
from pipelines.storage import storage_for


def policy_name(options: MapOptions) -> str:
    """Gives the name that the policy goes by: for KILT files that of the dataset they hold."""
    if options.dataset == "kilt":
        return dataset_named(base_name(options.inputs[0]))
    return SOURCES[options.dataset].stem


def file_stem(options: MapOptions) -> str:
    """Gives what the name of the KILT file begins with."""
    if options.stem is not None:
        return options.stem
    if options.dataset != "kilt":
        return SOURCES[options.dataset].stem
    name = base_name(options.inputs[0])
    known = name.partition(f"-{options.split}")[0]
    return known if known != name else policy_name(options)


def hypothesis_kind(options: MapOptions) -> HypothesisKind | None:
    """Gives what a model judges spans by; None where none is asked."""
    if options.verify is None:
        return None
    return options.verify.hypothesis or DATASET_HYPOTHESES.get(policy_name(options), "evidence")


def input_facts(options: MapOptions) -> dict[str, list[dict[str, Any]]]:
    """Gives every file that is read with its size and hash, by what it is; reads them all."""
    given = {"records": options.inputs, "references": options.references}
    if options.labels:
        given["labels"] = options.labels
    if options.title_map is not None:
        given["title_map"] = (options.title_map,)
    return {name: [asdict(entry) for entry in input_files(paths, storage_for(*paths))] for name, paths in given.items()}


def alignment_facts(
    options: MapOptions, release: Manifest, inputs: Mapping[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """Gives the part of the manifest that is known before anything is read: same facts, same bytes."""
    return {
        "dataset": options.dataset,
        "policy": policy_name(options),
        "split": options.split,
        "release": release_facts(release),
        "inputs": inputs,
        "options": options.data_options(),
        "code": {**asdict(code_facts()), "tokeniser": tokeniser_name(release.site.lang)},
        **({} if options.verify is None else {"model": model_facts(options.verify.model)}),
    }
