"""``kbsource vectors``: a vector a passage on any number of workers, runs that were killed, invariants."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("onnxruntime")

import pipelines.jobs.vectors as job
from kbsource.columns import rows_of
from kbsource.errors import SetupError
from kbsource.release.writer import write_rows
from mapping.passages.corpus import read_passages
from mapping.passages.cut import CutOptions
from mapping.retrieval.encoder import open_encoder
from mapping.retrieval.system_options import EncoderOptions
from mapping.retrieval.vector_forms import FORMS
from mapping.retrieval.vector_kind import PASSAGE_VECTORS, TABLE, VECTORS, PassageVector, VectorPrecision
from mapping.retrieval.vectors import VectorIndex
from pipelines.cli import main
from tests.support.builds import contents
from tests.support.passages import CORPUS_CUT, CORPUS_PAGES, cut_release, page, write_kb
from tests.support.tiny_encoder import DIMENSION, encode_corpus, tiny_encoder
from tests.support.verified import seal, verified

pytestmark = pytest.mark.usefixtures("module_in_this_process")

FIRST = "vectors/vectors-00000-of-00002.parquet"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, kb: Path) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "corpus"
    cut_release(folder, kb, cut=CORPUS_CUT)
    return folder


@pytest.fixture(scope="module")
def made(corpus: Path, model: Path) -> Path:
    encode_corpus(corpus, model, corpus.parent / "made")
    return corpus.parent / "made"


def test_passages_have_their_vectors_in_their_order(tmp_path: Path, corpus: Path, model: Path) -> None:
    flags = ["vectors", str(corpus), "--model", str(model), "--output", str(tmp_path / "vectors")]
    assert main(flags) == 0
    made = tmp_path / "vectors"
    passages = [passage for path in sorted((corpus / "passages").iterdir()) for passage in read_passages(str(path))]
    rows = [row for path in sorted((made / TABLE).iterdir()) for row in _rows(path)]
    assert [(row.page_id, row.number) for row in rows] == [(passage.page_id, passage.number) for passage in passages]
    encoder = open_encoder(EncoderOptions(str(model)))
    wanted, _ = encoder.encode_passages([(passage.title, passage.text) for passage in passages])
    assert [row.vector for row in rows] == [vector.tobytes() for vector in wanted.astype("<f2")]
    facts = PASSAGE_VECTORS.read(str(made)).facts
    assert facts["encoder"] == encoder.facts
    assert facts["counts"] == {"passages": len(passages), "truncated": 0}
    report = verified(made, passages=corpus)
    assert report.findings == ()
    assert report.counts["vectors"] == len(passages)


@pytest.mark.parametrize(("precision", "n_bytes"), [("int8", 16), ("bits", 2)])
def test_vectors_of_fewer_bits_are_made_searched_and_verified(
    tmp_path: Path, corpus: Path, precision: VectorPrecision, n_bytes: int
) -> None:
    model, output = tiny_encoder(tmp_path / "tiny", dimension=16), tmp_path / "out"
    flags = ["vectors", str(corpus), "--model", str(model), "--output", str(output)]
    assert main([*flags, "--precision", precision]) == 0
    stored = [row.vector for path in sorted((output / TABLE).iterdir()) for row in _rows(path)]
    assert {len(vector) for vector in stored} == {n_bytes}
    vectors = FORMS[precision].unpack(np.frombuffer(b"".join(stored), np.uint8).reshape(-1, n_bytes))
    scores = open_encoder(EncoderOptions(str(model))).encode_queries(["the river"]) @ vectors.T
    (found,) = VectorIndex(str(corpus), str(output), str(model)).search(["the river"], 8, "passage")
    assert [hit.score for hit in found] == pytest.approx(sorted(scores[0], reverse=True), abs=1e-4)
    assert verified(output, passages=corpus).is_sound

    def blank(rows: list[PassageVector]) -> None:
        rows[0] = PassageVector(rows[0].page_id, rows[0].number, bytes([1] * n_bytes))

    _rewritten(output, blank)
    assert verified(output, passages=corpus).is_sound == (precision == "bits")


def test_directions_alone_are_not_kept_of_vectors_with_lengths(
    tmp_path: Path, corpus: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["vectors", str(corpus), "--output", str(tmp_path / "out"), "--model"]
    longer = tiny_encoder(tmp_path / "longer", modules=[{"type": "sentence_transformers.models.Transformer"}])
    assert main([*flags, str(longer), "--precision", "int8"]) == 2
    assert "also needs their lengths" in capsys.readouterr().err
    assert main([*flags, str(model), "--precision", "bits"]) == 2
    assert "packs 8 numbers into a byte, and vectors of tiny have 12 numbers" in capsys.readouterr().err


def test_what_was_encoded_is_not_encoded_again(
    tmp_path: Path, corpus: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []

    def encode(passages: pa.RecordBatch, *given: Any, most: int) -> Any:
        if len(encoded) == most:
            raise SetupError("killed")
        encoded.append(passages["page_id"][0].as_py())
        return _encode_batch(passages, *given)

    _encode_batch = job.encode_batch
    monkeypatch.setattr(job, "encode_batch", lambda *given: encode(*given, most=1))
    with pytest.raises(SetupError, match="killed"):
        encode_corpus(corpus, model, tmp_path / "vectors")
    monkeypatch.setattr(job, "encode_batch", lambda *given: encode(*given, most=2))
    encode_corpus(corpus, model, tmp_path / "vectors")
    assert len(encoded) == len(set(encoded)) == 2
    assert verified(tmp_path / "vectors", passages=corpus).is_sound


@pytest.mark.parametrize("max_tokens", [None, 4], ids=["whole", "cut"])
def test_vectors_of_passages_that_are_known_are_taken_over(
    tmp_path: Path, corpus: Path, model: Path, max_tokens: int | None
) -> None:
    pages = [
        page(3, "Sorn", "Headed", "The Sorn is a river. It dries up.", "Its fish are old.", kinds=["heading"]),
        page(4, "Between", "It is the last."),
        *CORPUS_PAGES[1:-1],
    ]
    cut_release(tmp_path / "new", write_kb(tmp_path / "kb", pages, rows_per_shard=3), cut=CORPUS_CUT)
    old = {"base": str(tmp_path / "old"), "base_passages": str(corpus)}
    encode_corpus(corpus, model, tmp_path / "old", max_tokens=max_tokens)
    encode_corpus(tmp_path / "new", model, tmp_path / "full", max_tokens=max_tokens)
    made = encode_corpus(tmp_path / "new", model, tmp_path / "made", max_tokens=max_tokens, **old)
    assert contents(tmp_path / "made") == contents(tmp_path / "full")
    counts = made.manifest.facts["counts"]
    assert made.report == {"taken_over": counts["passages"] - 2}
    assert (counts["truncated"] > 0) == (max_tokens is not None)


def test_vectors_that_may_be_others_are_not_taken_over(
    tmp_path: Path, corpus: Path, made: Path, model: Path, kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(match: str, base: Path, passages: Path, encoder: Path = model, **given: Any) -> None:
        with pytest.raises(SetupError, match=match):
            encode_corpus(corpus, encoder, tmp_path / "out", base=str(base), base_passages=str(passages), **given)

    cut_release(tmp_path / "longer", kb, cut=CutOptions(max_words=9))
    refused("were not made from .*longer", made, tmp_path / "longer")
    refused("made with a different precision .'float16', here 'int8'", made, corpus, precision="int8")
    refused("made with a different encoder", made, corpus, tiny_encoder(tmp_path / "other", dimension=8))
    changed = shutil.copytree(made, tmp_path / "changed")
    path = next((changed / "vectors").iterdir())
    content = path.read_bytes()
    path.write_bytes(content[:99] + bytes([content[99] ^ 1]) + content[100:])
    refused(rf"{path.name} is damaged or changed \(sha256\)", changed, corpus)
    with pytest.raises(SetupError, match="Give --base and --base-passages together"):
        encode_corpus(corpus, model, tmp_path / "out", base=str(made))
    facts, computed = open_encoder(EncoderOptions(str(model))).facts, {"device": "cuda", "texts_at_once": 64}
    monkeypatch.setattr(job, "open_encoder", lambda options: SimpleNamespace(facts=facts, computed=computed))
    refused("On a GPU, the last digits.*--device cpu", made, corpus)


def _rows(path: Path) -> list[PassageVector]:
    return rows_of(pq.read_table(path), PassageVector)


def _rewritten(folder: Path, change: Callable[[list[PassageVector]], Any]) -> None:
    rows = _rows(folder / FIRST)
    change(rows)
    (folder / FIRST).unlink()
    entry = write_rows(rows, TABLE, VECTORS, output=str(folder / "again"))
    (folder / "again" / entry.file).rename(folder / FIRST)
    (folder / "again" / TABLE).rmdir()
    (folder / "again").rmdir()
    seal(folder)


def _vector(*numbers: float) -> bytes:
    return np.array([*numbers, *[0.0] * (DIMENSION - len(numbers))], "<f2").tobytes()


def _put(row: int, vector: bytes) -> Callable[[list[PassageVector]], Any]:
    def change(rows: list[PassageVector]) -> None:
        rows[row] = PassageVector(rows[row].page_id, rows[row].number, vector)

    return change


@pytest.mark.parametrize(
    ("change", "file", "rule", "example"),
    [
        (_put(1, b"12"), FIRST, "invalid_vector", "3__1: 2 bytes"),
        (_put(1, _vector(0.6, 0.6)), FIRST, "invalid_vector", "3__1: its length is 0.84"),
        (_put(1, _vector(float("nan"))), FIRST, "invalid_vector", "3__1: its length is nan"),
        (lambda rows: rows.reverse(), FIRST, "passages_disagree", "3__0 where the passage is 5__2"),
        (lambda rows: rows.pop(), "manifest.json", "counts", "counts.passages: 7 counted, 8 written"),
    ],
)
def test_broken_vectors_are_found(
    tmp_path: Path, corpus: Path, made: Path, change: Any, file: str, rule: str, example: str
) -> None:
    _rewritten(shutil.copytree(made, tmp_path / "changed"), change)
    findings = {
        (finding.file, finding.rule): finding.example
        for finding in verified(tmp_path / "changed", passages=corpus).findings
    }
    assert example in findings[file, rule]


def test_passages_and_queries_may_have_encoders_of_their_own(
    tmp_path: Path, corpus: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tiny_encoder(tmp_path / "other", seed=8)
    made = tmp_path / "vectors"
    encode_corpus(corpus, model, made, query_model=str(other))
    facts = PASSAGE_VECTORS.read(str(made)).facts
    assert (facts["encoder"]["name"], facts["query_encoder"]["name"]) == ("tiny", "other")
    assert verified(made, passages=corpus).is_sound
    passages = [passage for name in sorted((corpus / "passages").iterdir()) for passage in read_passages(str(name))]
    query, searched = "ada lives", VectorIndex(str(corpus), str(made), str(other))
    (found,) = searched.search([query], 3, "passage")
    rows = open_encoder(EncoderOptions(str(model))).encode_passages(
        [(passage.title, passage.text) for passage in passages]
    )[0]
    scores = rows @ open_encoder(EncoderOptions(str(other))).encode_queries([query])[0]
    best = passages[int(np.argmax(scores))]
    assert (found[0].page_id, found[0].number) == (best.page_id, best.number)
    assert found[0].score == pytest.approx(scores.max(), abs=1e-3)

    with pytest.raises(SetupError, match="was made for other, and"):
        VectorIndex(str(corpus), str(made), str(model))
    for given, said in ((("--model", str(model)), "give --query-model instead of --model"), ((), "needs --model")):
        flags = ["search", str(corpus), "ada", "--system", "dense", "--vectors", str(made), *given]
        assert main(flags) == 2
        assert said in capsys.readouterr().err
    small = tiny_encoder(tmp_path / "small", dimension=8)
    with pytest.raises(SetupError, match="its vectors have dimension 8, but the vectors of the passages have 12"):
        encode_corpus(corpus, model, tmp_path / "none", query_model=str(small))
