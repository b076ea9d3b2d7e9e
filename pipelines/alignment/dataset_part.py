"""What an alignment is by its options and its release alone: names, one part of a job, and facts of its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kbsource.files import base_name
from kbsource.release.manifest import code_facts, input_files
from kbsource.release.pages.kind import PagesManifest
from mapping.decide.policy import dataset_named
from mapping.entail.hypotheses import DATASET_HYPOTHESES, HypothesisKind
from mapping.entail.model import model_facts
from mapping.search.tokens import tokeniser_name
from pipelines.alignment.filtering import FilterOptions
from pipelines.alignment.reading import EvidenceFiles
from pipelines.alignment.release_pages import SearchSettings
from pipelines.options.map import MapOptions
from pipelines.stores.storage import absolute, storage_for

InputFacts = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class DatasetPart:
    """One dataset of a job.

    Attributes:
        options: how it is aligned.
        facts: see ``alignment_facts``.
    """

    options: MapOptions
    facts: dict[str, Any]

    @property
    def output(self) -> str:
        """Folder of the alignment."""
        return absolute(self.options.output.rstrip("/") or "/")

    @property
    def is_sampled(self) -> bool:
        """Whether the dataset has no splits of its own, see ``mapping.decide.sample``."""
        return self.options.choices.sample_records is not None


def policy_name(options: MapOptions) -> str:
    """Gives the name that the policy goes by: for KILT files that of the dataset they hold."""
    if options.dataset == "kilt":
        return dataset_named(base_name(options.inputs[0]))
    return options.dataset


def file_stem(options: MapOptions) -> str:
    """Gives what the name of the KILT file begins with."""
    if options.stem is not None:
        return options.stem
    if options.dataset != "kilt":
        return options.dataset
    name = base_name(options.inputs[0])
    known = name.partition(f"-{options.split}")[0]
    return known if known != name else policy_name(options)


def has_ids_alone(options: MapOptions) -> bool:
    """Says whether the KILT file that is moved is one without inputs, by its published name."""
    return options.dataset == "kilt" and f"-{options.split}_id" in base_name(options.inputs[0])


def hypothesis_kind(options: MapOptions) -> HypothesisKind | None:
    """Gives what a model judges spans by; None where none is asked."""
    if options.verify is None:
        return None
    return options.verify.hypothesis or DATASET_HYPOTHESES.get(policy_name(options), "evidence")


def evidence_files(options: MapOptions) -> EvidenceFiles:
    """Gives what is read."""
    return EvidenceFiles(
        options.dataset,
        options.inputs,
        options.split,
        options.references,
        options.labels,
        options.choices,
        hypothesis_kind(options),
        options.chunk_records,
        options.max_rejects,
        options.scratch,
    )


def search_settings(options: MapOptions) -> SearchSettings:
    """Gives how pages are searched."""
    return SearchSettings(
        threshold=options.threshold,
        max_elements=options.max_elements,
        numbering=options.numbering,
        places_nothing=options.choices.places_nothing,
        accept_fuzzy=options.accept_fuzzy,
        rescue_sentences=options.verify.rescue_sentences if options.verify is not None else 0,
    )


def filter_options(options: MapOptions) -> FilterOptions:
    """Gives which records are kept."""
    return FilterOptions(
        policy_name(options),
        options.split,
        options.threshold,
        options.accept,
        is_verified=options.verify is not None,
        strips_section=options.strips_section,
    )


def input_facts(options: MapOptions, known: dict[str, list[dict[str, Any]]] | None = None) -> InputFacts:
    """Gives every file that is read with its size and hash, by what it is; reads them all.

    Args:
        options: name the files.
        known: facts by path, which are taken from it and put into it: datasets share references.
    """
    given = {"records": options.inputs, "references": options.references}
    if options.labels:
        given["labels"] = options.labels
    if options.title_map is not None:
        given["title_map"] = (options.title_map,)
    known = {} if known is None else known
    for path in (path for paths in given.values() for path in paths if path not in known):
        known[path] = [asdict(entry) for entry in input_files((path,), storage_for(path))]
    return {name: [entry for path in paths for entry in known[path]] for name, paths in given.items()}


def alignment_facts(
    options: MapOptions, release: PagesManifest, inputs: Mapping[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """Gives the part of the manifest that is known before anything is read: same facts, same bytes."""
    return {
        "dataset": options.dataset,
        "policy": policy_name(options),
        "split": options.split,
        "release": release.facts(),
        "inputs": inputs,
        "options": options.data_options(),
        "code": {**asdict(code_facts()), "tokeniser": tokeniser_name(release.site.lang)},
        **({} if options.verify is None else {"model": model_facts(options.verify.model)}),
    }
