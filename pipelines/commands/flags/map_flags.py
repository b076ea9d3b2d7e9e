"""The flags of ``kbsource map`` that say what is aligned and how; a configuration of many datasets uses the same words.

None of them has a default here: what is not given is left to ``MapOptions``.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipelines.commands.flags.verify_flags import add_verify_flags, verify_options

if TYPE_CHECKING:
    from mapping.sources.reading.base import SourceOptions, Split
    from pipelines.options.map import MapOptions

DATASETS = (
    "fever",
    "hotpotqa",
    "aidayago2",
    "wned",
    "cweb",
    "trex",
    "structured_zeroshot",
    "nq",
    "triviaqa",
    "eli5",
    "wow",
    "kilt",
    "jsonl",
)
"""Names of the datasets, as in ``mapping.sources.SOURCES``, without importing the readers."""

SPLITS: tuple[Split, ...] = ("train", "dev", "test")

_SPLIT_WORDS: dict[str, Split] = {
    "train": "train",
    "training": "train",
    "dev": "dev",
    "valid": "dev",
    "validation": "dev",
    "val": "dev",
    "test": "test",
}
_WORD = re.compile(r"[a-z]+")

PATHS = ("FILE", "PATH", "DIR")
"""What flags take that name files and folders."""

MODEL = "MODEL"
"""What a flag takes that names the folder of a model, or its name on the hub."""

_REFERENCES = {
    "wiki_pages": ("fever",),
    "abstracts": ("hotpotqa",),
    "raw_text": ("wned", "cweb"),
    "wikidata": ("trex",),
    "from_kb": ("kilt",),
    "campaign": ("nq", "eli5"),
}
_LABELS = ("fever", "hotpotqa", "nq", "triviaqa")
_LINKING = ("aidayago2", "wned", "cweb")
_CHOICES = {
    "window": _LINKING,
    "max_tokens": _LINKING,
    "blank_lines": _LINKING,
    "seed": ("wned", "cweb", "trex", "structured_zeroshot"),
    "sentence_escapes": ("fever",),
    "keep_meta": ("hotpotqa",),
    "min_facts": ("trex",),
    "sample": ("trex",),
    "sample_pool": ("trex",),
    "rel_surface": ("trex",),
    "fold": ("structured_zeroshot",),
    "relation_split": ("structured_zeroshot",),
    "nq_keep_long_short_answers": ("nq",),
    "nq_strip_html": ("nq",),
    "nq_annotation_meta": ("nq",),
    "nq_null_long_answers": ("nq",),
    "nq_tokens": ("nq",),
    "from_numbering": ("kilt",),
    "turns": ("wow",),
}
_COMMON = {
    "threshold": "threshold",
    "max_elements": "max_elements",
    "numbering": "numbering",
    "strip_section": "strips_section",
    "title_map": "title_map",
    "accept_fuzzy": "accept_fuzzy",
    "stem": "stem",
    "max_rejects": "max_rejects",
    "chunk_records": "chunk_records",
    "evidence_timeout": "evidence_timeout_s",
    "accept": "accept",
}


def add_dataset_flags(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    add = parser.add_argument
    add(
        "--input",
        nargs="+",
        metavar="FILE",
        help="files of the dataset, in order; .gz and .bz2 too (needed, but for --all)",
    )
    add(
        "--labels",
        nargs="+",
        metavar="FILE",
        help="fever, hotpotqa, nq, triviaqa: answers of a test file without, by id; it is written with them too",
    )
    add("--wiki-pages", nargs="+", metavar="PATH", help="fever: folder or files of FEVER's own wiki-pages")
    add("--abstracts", nargs="+", metavar="PATH", help="hotpotqa: folder or files of the abstracts it was made from")
    add("--raw-text", nargs="+", metavar="DIR", help="wned, cweb: folder RawText (default: beside the XML file)")
    add("--wikidata", nargs="+", metavar="FILE", help="trex: Wikidata's JSON dump, for labels and aliases")
    add("--from-kb", nargs="+", metavar="PATH", help="kilt: release or kilt_knowledgesource.json it was made for")
    add(
        "--campaign",
        nargs="+",
        metavar="FILE",
        help="nq, eli5: what annotators found: judgements and their passages, or a KILT file with evidence_span; eli5"
        " without it writes every question of dev and test with its answers alone",
    )
    add("--window", choices=("right", "released", "whole"), help="entity linking: how the context is cut")
    add("--max-tokens", type=int, metavar="N", help="entity linking: tokens of the input, tags included")
    add("--blank-lines", choices=("skip", "released"), help="entity linking: blank lines of the TSV in the context")
    add("--seed", metavar="NAME", help="wned, cweb, trex, structured_zeroshot: names what is drawn at random")
    add("--sentence-escapes", choices=("undone", "kept"), help="fever: -LRB- and its like in the evidence")
    add("--keep-meta", action="store_true", default=None, help="hotpotqa: level and type in the record's meta")
    add("--min-facts", type=int, metavar="N", help="trex: facts a relation must have (default: 1000)")
    add(
        "--sample", type=int, metavar="N", help="trex: records of dev and of test, all others are train (default: 5000)"
    )
    add("--sample-pool", type=int, metavar="N", help="trex: records that dev and test are drawn from (default: 40000)")
    add("--rel-surface", action="store_true", default=None, help="trex: surface forms of the relation in meta")
    add("--fold", type=int, metavar="N", help="structured_zeroshot: which of the ten original splits (default: 0)")
    add(
        "--relation-split",
        choices=("original", "random"),
        help="structured_zeroshot: whose relations train, dev and test have (default: original)",
    )
    add(
        "--nq-keep-long-short-answers",
        action=argparse.BooleanOptionalAction,
        help="nq: short answers of more than five tokens stay, without provenance (default: they do)",
    )
    add(
        "--nq-strip-html",
        action=argparse.BooleanOptionalAction,
        help="nq: HTML tokens are no part of answers and evidence (default: they are none)",
    )
    add("--nq-annotation-meta", choices=("own", "released"), help="nq: whose meta long answers have (default: own)")
    add(
        "--nq-null-long-answers",
        choices=("skip", "released"),
        help="nq: released gives a null long answer a span of no characters with BLEU 1.0 (default: skip)",
    )
    add(
        "--nq-tokens",
        choices=("blank", "released"),
        help="nq: what parts tokens; released parts them at any white space, which shifts spans (default: blank)",
    )
    add("--turns", choices=("right", "released"), help="wow: released gives the wizard's utterance away in the input")
    add("--from-numbering", choices=("kilt", "elements"), help="kilt: how --from-kb counts paragraphs")
    add("--threshold", type=float, metavar="BLEU", help="lowest score that is kept (default: 0.5)")
    add("--max-elements", type=int, metavar="N", help="paragraphs a span may cross (default: 1)")
    add("--numbering", choices=("kilt", "elements"), help="of paragraphs (default: kilt)")
    add("--strip-section", action="store_true", default=None, help="section without the newline at its end")
    add("--title-map", metavar="FILE", help="known moves: a line each, old title, tab, new title or page id")
    add(
        "--accept-fuzzy",
        type=float,
        metavar="SCORE",
        help="take the most similar title for a missing one, from 60 to 100",
    )
    add("--stem", metavar="NAME", help="begins the name of the file that is written (default: the dataset's)")
    add(
        "--max-rejects",
        type=float,
        metavar="SHARE",
        help="highest share of the records that may be rejected (default: 0.01)",
    )
    add("--chunk-records", type=int, metavar="N", help="records of a file of a table (default: 5000)")
    add(
        "--evidence-timeout",
        type=float,
        metavar="SECONDS",
        help="longest time for one piece of evidence, which is then tried once more and given up (default: 60)",
    )
    add_verify_flags(parser)


def dataset_flags() -> tuple[str, ...]:
    """Gives the names of the flags, with underscores."""
    parser = argparse.ArgumentParser(add_help=False)
    add_dataset_flags(parser)
    return tuple(dict.fromkeys(action.dest for action in parser._actions))


def split_of(paths: Sequence[str]) -> Split:
    """Gives the split that is meant where none is named: the one that the files are called after, else dev.

    >>> split_of(["fever/shared_task_dev.jsonl"]), split_of(["a/hotpot_train_v1.1.json"]), split_of(["qa", "mine.tsv"])
    ('dev', 'train', 'dev')

    Raises:
        SetupError: they are called after several.
    """
    from kbsource.errors import SetupError

    named: dict[Split, str] = {}
    for path in paths:
        words = _WORD.findall(path.rstrip("/").rsplit("/", 1)[-1].lower())
        named |= {_SPLIT_WORDS[word]: path for word in words if word in _SPLIT_WORDS}
    if len(named) > 1:
        raise SetupError(f"{' and '.join(named.values())} are called after several splits; say which: --split NAME.")
    return next(iter(named), "dev")


def map_options(
    dataset: str,
    given: Mapping[str, Any],
    *,
    kb: str,
    output: str,
    split: Split,
    scratch: str | None,
    worker_memory_mb: int,
) -> MapOptions:
    """Gives the options of one alignment.

    Args:
        dataset: one of ``DATASETS``.
        given: value of each flag of ``add_dataset_flags``, by its name with underscores; None where not given.
        kb: folder of the release.
        output: folder to write.
        split: of the dataset.
        scratch: folder for temporary indexes.
        worker_memory_mb: memory of a working process.

    Raises:
        SetupError: a flag is missing, belongs to another dataset, or its value cannot be.
    """
    from kbsource.errors import SetupError
    from pipelines.options.map import MapOptions

    if not given["input"]:
        raise SetupError("--input is needed: the files of the dataset.")
    labels = given["labels"] or ()
    if labels:
        _check_belongs("labels", _LABELS, dataset)
    common = {field: given[flag] for flag, field in _COMMON.items() if given[flag] is not None}
    return MapOptions(
        dataset=dataset,
        kb=kb,
        inputs=tuple(given["input"]),
        output=output,
        split=split,
        references=_references(dataset, given),
        labels=tuple(labels),
        source=_source_options(dataset, given, scratch),
        verify=verify_options(given),
        worker_memory_bytes=worker_memory_mb << 20,
        **common,
    )


def _references(dataset: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    paths: list[str] = []
    for name, datasets in _REFERENCES.items():
        if given[name] is not None:
            _check_belongs(name, datasets, dataset)
            paths += given[name]
    return tuple(paths)


def _source_options(dataset: str, given: Mapping[str, Any], scratch: str | None) -> SourceOptions:
    from mapping.sources.reading.base import SourceOptions

    chosen: dict[str, Any] = {}
    for name, datasets in _CHOICES.items():
        if given[name] is not None:
            _check_belongs(name, datasets, dataset)
            chosen["numbering" if name == "from_numbering" else name] = given[name]
    return SourceOptions(scratch=scratch, **chosen)


def _check_belongs(name: str, datasets: tuple[str, ...], dataset: str) -> None:
    from kbsource.errors import SetupError

    if dataset not in datasets:
        option = "--" + name.replace("_", "-")
        raise SetupError(f"{option} is for {', '.join(datasets)}, not for {dataset}; leave it out.")
