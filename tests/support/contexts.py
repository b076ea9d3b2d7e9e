"""Pages, a QAMPARI release about them and what a retriever found, for questions with passages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mapping.contexts.export import ContextsFiles, export_contexts
from mapping.contexts.records import ContextsOptions
from mapping.passages.corpus import read_passages
from mapping.passages.cut import Passage
from mapping.qampari.questions import COMPOSITION, SIMPLE
from mapping.qampari.records import ProofText, Question, QuestionAnswer, QuestionEntity
from tests.support.alignments import write_records
from tests.support.passages import page, write_kb
from tests.support.qampari import drawn, undrawn, write_qampari

NAMES = ("Brack", "Sorn", "Tey", "Ullane", "Miravel")
PAGES = tuple(
    page(3 * number + 1, f"{name} page", f"Of all things {name} is by Aldo Vent. Nothing more is known of it.")
    for number, name in enumerate(NAMES)
) + tuple(page(100 + number, f"Other {number}", f"A text number {number}.") for number in range(8))
MANIFEST = "manifest.json"


def proof_of(number: int, *, before: bool = False) -> ProofText:
    """The sentence of a page that proves an answer, or the one behind it with the first before it."""
    proof_page = PAGES[number]
    text = proof_page.elements[1].text
    at = text.index(". ") + 2 if before else 0
    end = len(text) if before else text.index(".") + 1
    return ProofText(text[:end], proof_page.page_id, proof_page.title, 1, 0, end, at, 0.5, "It is so.")


def question_of(key: str, *, subset: str = SIMPLE, proofs: int = 1) -> Question:
    """A question that every page answers."""
    answers = tuple(
        QuestionAnswer(name, (name, f"{name} #1"), f"{name} page", f"Q{number}", (proof_of(number),) * proofs)
        for number, name in enumerate(NAMES)
    )
    about = QuestionEntity("Aldo Vent", ("Aldo Vent",), None, "Q900")
    return Question(subset, key, f"What is by Aldo Vent ({key})?", None, ("P50",), None, (about,), answers, 5, 5)


def write_pages(folder: Path) -> Path:
    """Writes a release of the pages into a folder and gives its path."""
    return write_kb(folder, PAGES, rows_per_shard=4, n_shards=3)


def write_questions(folder: Path, kb: Path) -> Path:
    """Writes a QAMPARI release of four questions, three of them drawn, into a folder and gives its path."""
    sha256 = json.loads((kb / MANIFEST).read_text())["manifest_sha256"]
    questions = [
        drawn(question_of("P50__Q1"), 0, "dev"),
        drawn(question_of("P50__Q2", subset=COMPOSITION, proofs=2), 1, "dev"),
        undrawn(question_of("P50__Q3")),
        drawn(question_of("P50__Q4"), 0, "train"),
    ]
    return write_qampari(folder, questions, facts={"release": {"manifest_sha256": sha256}})


def passages_of(corpus: Path) -> list[Passage]:
    """All passages of a corpus, in order."""
    paths = sorted((corpus / "passages").iterdir())
    return [passage for path in paths for passage in read_passages(str(path))]


def listed(passages: list[Passage]) -> list[dict[str, Any]]:
    """Passages as a retriever lists them, the best first."""
    return [
        {"id": passage.passage_id, "title": passage.title, "text": passage.text, "score": 50.0 - rank}
        for rank, passage in enumerate(passages)
    ]


QIDS = ("0__wikidata_simple__dev", "1__wikidata_comp__dev", "0__wikidata_simple__train")


def write_ranked(path: Path, corpus: Path, qids: tuple[str, ...] = QIDS) -> Path:
    """Writes what a retriever found: the pages of the first two answers, those of no answer, those of the others."""
    passages = sorted(
        passages_of(corpus), key=lambda passage: (passage.page_id > 4, "page" in passage.title, passage.number)
    )
    return write_records(path, [{"qid": qid, "ctxs": listed(passages)} for qid in qids])


def write_contexts(folder: Path, qampari: Path, corpus: Path) -> Path:
    """Writes questions with passages into a folder, and gives their own: the line of one question is empty, another has
    none, and one line is damaged.
    """
    ranked = write_ranked(folder / "ranked.jsonl", corpus, QIDS[:1])
    with ranked.open("a") as file:
        file.write(json.dumps({"qid": QIDS[1], "ctxs": []}) + "\n{\n")
    files = ContextsFiles(str(qampari), str(corpus), (str(ranked),))
    export_contexts(files, str(folder / "contexts"), ContextsOptions(most_ranked=9))
    return folder / "contexts"


def flip_byte(path: Path) -> None:
    """Damages a file in a way that its size does not show."""
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
