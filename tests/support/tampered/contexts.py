"""Ways to tamper with questions with passages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mapping.contexts.kind import CONTEXTS
from mapping.passages.cut import CutOptions
from tests.support.contexts import QIDS, write_contexts, write_pages, write_questions
from tests.support.passages import cut_release
from tests.support.tampered.edits import (
    COUNTED,
    Group,
    Place,
    Released,
    Tampered,
    add,
    again,
    at,
    counted,
    drop,
    lines,
    listed,
    manifest,
    put,
    unlisted,
)

CONTEXT_DEV, CONTEXT_TEST = (f"qampari_contexts/{split}_data_with_contexts.jsonl" for split in ("dev", "test"))
READERS = "qampari_fid/dev_data.jsonl"
UNPLACED = "unplaced.jsonl"


def _contexts(folder: Path, release: Path) -> Released:
    kb = write_pages(folder / "kb")
    cut_release(folder / "corpus", kb, cut=CutOptions(max_words=10))
    qampari = write_questions(folder / "qampari", kb)
    contexts = write_contexts(folder, qampari, folder / "corpus")
    return Released(contexts, {"qampari": qampari, "passages": folder / "corpus"})


_READ = ((READERS, "context_differs"),)


_DEV = "0__wikidata_simple__dev"
_NOT_OF_PROOFS = "line 1: positive_ctxs do not match its proofs, or are in another order"


def _ill(what: str, text: str, *edits: Callable[[list[Any]], object], also: tuple[Place, ...] = COUNTED) -> Tampered:
    """Returns a question that is malformed."""
    return Tampered(what, lines(CONTEXT_DEV, *edits), "invalid_context", text, also=also)


def _odd(
    what: str, *edits: Callable[[list[Any]], object], also: tuple[Place, ...] = (), is_compared: bool = False
) -> Tampered:
    """Returns a question that differs from what its parts give."""
    edit, text = lines(CONTEXT_DEV, *edits), f"{_DEV} from byte"
    return Tampered(what, edit, "context_differs", text, also=also, is_compared=is_compared)


def _reader(what: str, *edits: Callable[[list[Any]], object], text: str = f"{_DEV} from byte") -> Tampered:
    """Returns a line for readers that differs from its question."""
    return Tampered(what, lines(READERS, *edits), "context_differs", text)


def _unplaced(
    what: str, invariant: str, text: str, values: dict[str, str], *, file: str = "", also: tuple[Place, ...] = ()
) -> Tampered:
    """Returns a proof that is said to have no passage."""
    return Tampered(what, lines(UNPLACED, add(values)), invariant, text, file, also)


_CONTEXTS = (
    _odd("a question has another text", at(0, question_text="What?"), also=_READ),
    _odd("a line has another question", at(0, question="What?")),
    _odd("a line has no answers", at(0, answers=[])),
    _odd("a line has a further value", at(0, further=1)),
    _ill(
        "a question is of another split",
        "line 1: a proof of 7__wikidata_simple__test has the pid '0__wikidata_simple__dev__0__0'",
        at(0, qid="7__wikidata_simple__test"),
    ),
    _odd("a positive passage has another score", put(3.0, 0, "positive_ctxs", 0, "score")),
    _ill("a passage proves another answer", _NOT_OF_PROOFS, put(f"{_DEV}__4__0", 0, "positive_ctxs", 0, "pid")),
    _ill("a passage is of another question", _NOT_OF_PROOFS, put(f"{QIDS[1]}__0__0", 0, "positive_ctxs", 0, "pid")),
    _ill("passages are in another order", _NOT_OF_PROOFS, lambda read: read[0]["positive_ctxs"].reverse()),
    _odd(
        "a positive passage is missing", drop(-1, 0, "positive_ctxs"), also=((CONTEXT_DEV, "proof_unplaced"), *COUNTED)
    ),
    _odd("a negative passage is missing", drop(-1, 0, "hard_negative_ctxs")),
    _odd("a negative passage is another", put("1__0", 0, "hard_negative_ctxs", 0, "chunk_id")),
    _odd("a negative passage has a pid", put("x", 0, "hard_negative_ctxs", 0, "pid")),
    _odd("a ranked passage has another score", put(49.5, 0, "ctxs", 0, "score"), also=_READ),
    _ill(
        "a score is a whole number", "'score': expected a number with a point, found 50", put(50, 0, "ctxs", 0, "score")
    ),
    _ill("a ranked passage is there twice", "line 1: a ranked passage appears twice", put("4__0", 0, "ctxs", 0, "id")),
    _ill(
        "more passages are ranked than allowed",
        "line 1: 10 ranked passages, but 9 were requested",
        lambda read: read[0]["ctxs"].append({**read[0]["ctxs"][0], "id": "0__0"}),
    ),
    _ill("a question is there twice", f"line 3: {_DEV} was given before", again(0), also=()),
    _ill(
        "an alias is a number",
        "line 1: 'aliases': expected strings, found 7",
        lambda read: read[0]["answer_list"][0]["aliases"].append(7),
    ),
    _ill("a line is no JSON", "line 3: Expecting value: line 1 column 1 (char 0)", add("x"), also=()),
    _reader("a reader is to answer otherwise", at(0, target="x")),
    _reader("a reader gets another text", put("x", 0, "ctxs", 0, "text")),
    _reader("a reader gets a question less", drop(-1), text="1__wikidata_comp__dev from byte 0: "),
    _reader("a reader gets a line more", add("x"), text="more content than expected: x"),
    _unplaced(
        "a proof without a passage is unknown",
        "proof_unplaced",
        "x is not a proof of a question, or has a passage",
        {"pid": "x", "reason": "no_passages"},
        also=COUNTED,
    ),
    _unplaced(
        "a proof has no passage for an unknown reason",
        "invalid_context",
        "line 1: x, x: it occurred before, or has an unknown reason",
        {"pid": "x", "reason": "x"},
    ),
    _unplaced(
        "a proof with a passage is said to have none",
        "proof_unplaced",
        f"{_DEV}__0__0",
        {"pid": f"{_DEV}__0__0", "reason": "no_passages"},
        file=CONTEXT_DEV,
        also=COUNTED,
    ),
    *(
        Tampered(f"other {name} are counted", counted(name, value), "counts", text, also=(("report.json", "counts"),))
        for name, value, text in (
            ("hard_negatives", lambda count: 4, "hard_negatives: 5 counted, 4 written"),
            ("rejected", lambda counts: {}, "rejected: {'malformed_json': 1} counted, {} written"),
            ("proofs", lambda counts: {**counts, "placed": 19}, "proofs: {'all': 20, 'placed': 20, "),
            ("questions", lambda counts: {**counts, "dev": 3}, "questions: {'train': 1, 'dev': 2, "),
        )
    ),
    Tampered(
        "the manifest has no counts",
        manifest(put({}, "counts")),
        "manifest",
        "options and counts are not in the form of questions with passages",
    ),
    Tampered(
        "a file for readers is missing",
        unlisted(READERS),
        "missing",
        "every folder of questions with passages has this file",
    ),
    Tampered(
        "there is a file more",
        listed("further.jsonl", UNPLACED),
        "manifest",
        "further.jsonl is not one of its files",
    ),
    _odd("a positive passage has another text", put("x", 0, "positive_ctxs", 0, "text"), is_compared=True),
    _odd("a positive passage has another title", put("x", 0, "positive_ctxs", 0, "title"), is_compared=True),
    Tampered(
        "a proof with a passage is said to be cut",
        (
            lines(CONTEXT_DEV, drop(-1, 1, "positive_ctxs")),
            lines(UNPLACED, add({"pid": f"{QIDS[1]}__4__1", "reason": "sentence_cut"})),
        ),
        "proof_unplaced",
        "1__wikidata_comp__dev__4__1",
        also=((CONTEXT_DEV, "context_differs"), (UNPLACED, "context_differs"), *COUNTED),
        is_compared=True,
    ),
    Tampered(
        "a question is missing in both of its files",
        (lines(CONTEXT_DEV, drop(0)), lines(READERS, drop(0))),
        "context_differs",
        f"{_DEV} from byte",
        also=(*_READ, *COUNTED),
        is_compared=True,
    ),
    Tampered(
        "a ranked passage is not in the corpus",
        tuple(lines(file, put("1__7", 0, "ctxs", 2, "id")) for file in (CONTEXT_DEV, READERS)),
        "unknown_passage",
        "line 1: 1__7, or with another text",
        is_compared=True,
    ),
)

GROUPS = {
    "contexts": Group(CONTEXTS, _contexts, _CONTEXTS),
}
