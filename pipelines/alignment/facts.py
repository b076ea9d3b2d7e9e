"""What an alignment is by its options and its release alone: names, what all tasks share, and facts of its manifest."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kbsource.files import base_name
from kbsource.release.manifest import Manifest, code_facts
from mapping.entailment_model import model_facts
from mapping.hypotheses import DATASET_HYPOTHESES, HypothesisKind
from mapping.output import input_files, release_facts
from mapping.policy import dataset_named
from mapping.sample import SAMPLED
from mapping.sources import SOURCES
from mapping.tokens import tokeniser_name
from pipelines.alignment.staging import MapJob
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


def map_job(options: MapOptions, release: Manifest, output: str) -> MapJob:
    """Gives what all tasks share."""
    return MapJob(
        output=output,
        kb=os.path.abspath(options.kb),
        pages=tuple(entry.file for entry in release.tables["pages"]),
        page_rows=tuple(entry.rows for entry in release.tables["pages"]),
        lang=release.site.lang,
        dataset=policy_name(options),
        split=options.split,
        has_labels=bool(options.labels),
        threshold=options.threshold,
        max_elements=options.max_elements,
        numbering=options.numbering,
        places_nothing=options.source.nq_null_long_answers == "released",
        strips_section=options.strips_section,
        has_crosswalk=options.dataset == "kilt",
        is_sampled=options.dataset in SAMPLED,
        hypothesis=hypothesis_kind(options),
        rescue_sentences=options.verify.rescue_sentences if options.verify is not None else 0,
        accept=options.accept,
    )


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
