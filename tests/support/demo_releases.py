"""Releases of every kind made from the demo; ``python -m tests.support.demo_releases`` renews their golden reports."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from kbsource.files import Folder
from mapping.qampari.records import SPLITS
from pipelines.cli import main as kbsource
from tests.support import mini_wiki, mini_wikidata
from tests.support.builds import build_mini
from tests.support.demo_datasets import map_demo
from tests.support.edited_wiki import write_edited
from tests.support.entities import make
from tests.support.moved_builds import build_moved
from tests.support.real_data import ROOT
from tests.support.tiny_encoder import tiny_encoder

GOLDEN = ROOT / "tests" / "golden" / "reports"
FOLDERS = (
    "wikidata",
    "release",
    "aligned",
    "again",
    "qampari",
    "passages",
    "contexts",
    "tasks",
    "asked",
    "said",
    "views",
    "amber",
    "linking",
    "index",
    "vectors",
    "beir",
    "diff",
    "benchmark",
    "age",
    "facts",
    "vectors-usearch",
    "tfidf-passage",
    "training",
)


_DIGEST = re.compile(r"\b[0-9a-f]{12,64}\b")
_VERSION = re.compile(r"\b\d+(\.\d+)+\b(\+changed)?")
_SIZE = re.compile(r"( bytes \| )[\d,]+")
_MEASURED = {"bytes", "share of bytes", "seconds", "queries a second", "most memory, bytes"}
"""Columns whose values depend on the versions of libraries or on the machine."""


def make_releases(folder: Path) -> None:
    """Makes a release of every kind in a folder, under the names of ``FOLDERS``."""
    (
        wikidata,
        kb,
        aligned,
        again,
        qampari,
        passages,
        contexts,
        tasks,
        asked,
        said,
        views,
        amber,
        linking,
        index,
        vectors,
        beir,
        diff,
        benchmark,
        age,
        facts,
        _,
        _,
        training,
    ) = (str(folder / name) for name in FOLDERS)
    encoder = str(tiny_encoder(folder / "tiny"))
    make(mini_wikidata.DUMP, output=folder / "wikidata", max_rejects=mini_wikidata.MAX_REJECTS)
    build_mini(kb, wikidata=wikidata, references=True, record_dependencies=True, max_rejects=mini_wiki.MAX_REJECTS)
    map_demo(folder / "release", folder / "aligned")
    dump, props = write_edited(folder)
    build_mini(folder / "later", dump=dump, page_props=str(props))
    (folder / "moved").mkdir()
    build_moved(folder / "moved")
    records = f"{aligned}/fever/dev/fever-dev-kilt.jsonl"
    for command in (
        ["map", "kilt", kb, "--input", records, "--split", "dev", "--from-kb", kb, "--output", again],
        ["qampari", kb, wikidata, "--model", "none", "--output", qampari],
        ["passages", kb, "--output", passages],
        ["vectors", passages, "--model", encoder, "--output", vectors],
        *(
            [
                *("search", passages, "--index", index, "--queries", f"{qampari}/qampari_data/{split}_data.jsonl"),
                *("--top", "200", "--output", f"{folder}/bm25-{split}.jsonl"),
            ]
            for split in SPLITS
        ),
        [
            *("qampari-contexts", qampari, passages, "--output", contexts),
            *("--retrieved", *(f"{folder}/bm25-{split}.jsonl" for split in SPLITS)),
        ],
        [
            *("search", passages, "Where is it?", "--index", index, "--system", "dense", "--vectors", vectors),
            *("--model", encoder, "--approximate"),
        ],
        ["search", passages, "Where is it?", "--index", index, "--system", "tfidf", "--tfidf", f"{folder}/tfidf"],
        ["search", passages, "--index", index, "--queries", records, "--output", f"{folder}/bm25-fever.jsonl"],
        [
            *("training-data", f"{aligned}/fever/dev", "--for", "dpr", "--passages", passages, "--output", training),
            *("--retrieved", f"{folder}/bm25-fever.jsonl"),
        ],
        ["qampari-tasks", "export", qampari, "--output", tasks],
        ["entity-linking", kb, "--output", linking, "--train", "100", "--dev", "10"],
        [
            "campaign",
            "candidates",
            records,
            records,
            "--kb",
            kb,
            "--least-overlap",
            "0",
            "--output",
            f"{folder}/candidates.jsonl",
        ],
        ["campaign", "tasks", f"{folder}/candidates.jsonl", "--output", asked],
        ["campaign", "import", asked, f"{asked}/tasks.jsonl", "--output", said],
        ["beir", f"{aligned}/fever/dev", passages, "--output", beir],
        ["diff", kb, f"{folder}/later", "--output", diff],
        [
            *("facts", kb, f"{folder}/moved/later", "--output", facts),
            *("--wikidata", wikidata, f"{folder}/moved/later-wikidata"),
        ],
        ["age", kb, f"{folder}/later", "--input", records, "--from-kb", kb, "--output", age],
        ["pageviews", str(mini_wiki.VIEWS), "--site", mini_wikidata.SITE, "--output", views],
        [
            *("amber", kb, wikidata, views, "--output", amber),
            *("--types", str(mini_wikidata.AMBER_TYPES), "--false-objects", "wikidata"),
        ],
        [
            *("benchmark", passages, aligned, qampari, amber, linking, "--linking", linking, "--output", benchmark),
            *("--system", "bm25", "aliases", "aliases+bm25"),
        ],
    ):
        assert kbsource(command) == 0, command


def report(folder: Path, name: str) -> str:
    """Returns the Markdown report on a release, without hashes and measured values."""
    output = folder / f"{name}.md"
    assert kbsource(["report", str(folder / name), "--force", "--output", str(output)]) == 0
    return steady(output.read_text("utf-8").replace(str(folder), "DEMO"))


def steady(text: str) -> str:
    """Returns a report without what differs between machines and commits.

    >>> print(steady("| file | bytes |\\n| :-- | --: |\\n| 0123456789abcdef | 12 |"), end="")
    | file | bytes |
    | :-- | --: |
    | HASH | … |
    """
    lines, measured = [], frozenset[int]()
    for line in text.splitlines():
        if not line.startswith("| "):
            measured = frozenset()
        elif not measured:
            names = enumerate(line.strip("| ").split(" | "))
            measured = frozenset(place for place, name in names if name in _MEASURED) or frozenset({-1})
        elif not line.startswith("| :--"):
            cells = enumerate(line.removeprefix("| ").removesuffix(" |").split(" | "))
            line = f"| {' | '.join('…' if place in measured else cell for place, cell in cells)} |"
        if "version" in line:
            line = _VERSION.sub("VERSION", line)
        lines.append(_SIZE.sub(r"\1…", _DIGEST.sub("HASH", line)))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the golden files anew."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        make_releases(folder)
        Folder.of(str(GOLDEN)).delete()
        GOLDEN.mkdir(parents=True)
        for name in FOLDERS:
            (GOLDEN / f"{name}.md").write_text(report(folder, name), "utf-8")


if __name__ == "__main__":
    main()
