"""Readers of datasets in their original forms; ``DATASETS`` names them all, ``SOURCES`` has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from mapping.sources.reading.base import Source, SourceOptions


class Dataset(NamedTuple):
    """Where a reader is, and what it reads.

    Attributes:
        place: module and class.
        summary: a line about the dataset.
    """

    place: str
    summary: str


DATASETS: Mapping[str, Dataset] = {
    "fever": Dataset("fever:Fever", "FEVER: claims, with the sentences that support or refute them"),
    "hotpotqa": Dataset("hotpotqa:HotpotQa", "HotpotQA: questions that take sentences of two pages"),
    "aidayago2": Dataset("entity_linking:Aida", "AIDA CoNLL-YAGO: mentions in news, with their pages"),
    "wned": Dataset("entity_linking:Wned", "WNED-WIKI: mentions in Wikipedia, with their pages"),
    "cweb": Dataset("entity_linking:Cweb", "WNED-CWEB: mentions in web pages, with their pages"),
    "nq": Dataset("nq:NaturalQuestions", "Natural Questions: what people asked a search engine"),
    "triviaqa": Dataset("triviaqa:TriviaQa", "TriviaQA: trivia questions whose answers have many names"),
    "trex": Dataset("trex:Trex", "T-REx: facts of Wikidata, with sentences that state them"),
    "structured_zeroshot": Dataset("zero_shot:ZeroShot", "Zero-Shot RE: relations, with sentences that answer them"),
    "eli5": Dataset("eli5:Eli5", "ELI5: questions to a forum, with long answers"),
    "wow": Dataset("wow:WizardOfWikipedia", "Wizard of Wikipedia: turns of a dialogue, with what they rest on"),
    "kilt": Dataset("kilt:Kilt", "any KILT file, moved from the knowledge source it was made for"),
    "jsonl": Dataset("own:Own", "data of your own, in the project's format"),
}
"""Every dataset, by the name it has on the command line."""


class _Sources(Mapping[str, Source[Any]]):
    """Readers by dataset; each is imported when it is asked for."""

    def __getitem__(self, name: str) -> Source[Any]:
        module, _, reader = DATASETS[name].place.partition(":")
        source: Source[Any] = getattr(import_module(f"{__name__}.{module}"), reader)()
        return source

    def __iter__(self) -> Iterator[str]:
        return iter(DATASETS)

    def __len__(self) -> int:
        return len(DATASETS)


SOURCES: Mapping[str, Source[Any]] = _Sources()


def usual_choices(dataset: str) -> SourceOptions:
    """Gives the choices of a dataset's reader as they are by default."""
    choices: SourceOptions = SOURCES[dataset].options()
    return choices
