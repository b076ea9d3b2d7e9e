"""What encoders make of texts, by what their files say."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from kbsource.errors import SetupError
from mapping.retrieval.encoder import open_encoder
from mapping.retrieval.system_options import EncoderOptions
from tests.support.tiny_encoder import DIMENSION, tiny_encoder, token_table
from tests.support.tiny_nli import write_tokenizer

TEXTS = ["ada lives in corvo", "bruno", "", "The weather was fine. The weather was fine."]


def _ids(folder: Path, text: str, *, has_marks: bool = True) -> list[int]:
    from tokenizers import Tokenizer

    found: list[int] = (
        Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text, add_special_tokens=has_marks).ids
    )
    return found


def _of_length_1(vectors: Any) -> Any:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    said = {"prompts": {"query": "Ada: ", "document": "not "}}
    return tiny_encoder(tmp_path_factory.mktemp("encoder") / "tiny", config_sentence_transformers=said)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_tokens_are_pooled(folder: Path, pooling: Any) -> None:
    encoder = open_encoder(EncoderOptions(str(folder), pooling=pooling))
    found, n_cut = encoder.encode(TEXTS, prefix="")
    table = token_table(1_000)
    rows = [table[_ids(folder, text)] for text in TEXTS]
    wanted = np.stack([row.mean(axis=0) if pooling == "mean" else row[0] for row in rows])
    assert found.dtype == np.float32
    assert n_cut == 0
    np.testing.assert_allclose(found, _of_length_1(wanted), atol=1e-6)
    assert encoder.facts["pooling"] == pooling
    assert encoder.facts["dimension"] == DIMENSION


def _with_external_tensors(folder: Path, location: str) -> None:
    """Moves the tensors of an ONNX graph to a file beside it, which the graph names by this location."""
    import onnx

    model = onnx.load(folder / "model.onnx")
    onnx.save(model, folder / "model.onnx", save_as_external_data=True, location="model.onnx_data", size_threshold=0)
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = location
    (folder / "model.onnx").write_bytes(model.SerializeToString())


@pytest.mark.parametrize("place", ["", "onnx"])
def test_tensors_beside_a_graph_are_read_from_the_cache_of_the_hub(tmp_path: Path, place: str) -> None:
    """There, every file is a link to a blob."""
    downloaded = tiny_encoder(tmp_path / "downloaded")
    wanted = open_encoder(EncoderOptions(str(downloaded))).encode(TEXTS, prefix="")[0]
    _with_external_tensors(downloaded, "model.onnx_data")
    snapshot, blobs = tmp_path / "models--a--b" / "snapshots" / "c0ffee", tmp_path / "models--a--b" / "blobs"
    blobs.mkdir(parents=True)
    for number, file in enumerate(sorted(file for file in downloaded.rglob("*") if file.is_file())):
        is_graph = file.name.startswith("model.onnx")
        link = snapshot / (place if is_graph else "") / file.relative_to(downloaded)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(file.rename(blobs / str(number)), link.parent))
    assert open_encoder(EncoderOptions(str(snapshot))).encode(TEXTS, prefix="")[0].tobytes() == wanted.tobytes()


@pytest.mark.parametrize("location", ["../secret", "{secret}", "linked", "*/_ORT_MEM_ADDR_/*"])
def test_a_graph_whose_tensors_are_outside_its_folder_is_refused(tmp_path: Path, location: str) -> None:
    secret = tmp_path / "secret"
    folder = tiny_encoder(tmp_path / "tiny")
    _with_external_tensors(folder, location.format(secret=secret))
    (folder / "model.onnx_data").rename(secret)
    (folder / "linked").symlink_to(secret)
    with pytest.raises(SetupError, match="its weights cannot be opened") as caught:
        open_encoder(EncoderOptions(str(folder)))
    assert "\n" not in str(caught.value)


def test_the_vector_of_a_text_hangs_on_nothing_else(folder: Path) -> None:
    encoder = open_encoder(EncoderOptions(str(folder)))
    together = encoder.encode(TEXTS, prefix="")[0]
    assert [row.tobytes() for row in together] == [encoder.encode([text], prefix="")[0].tobytes() for text in TEXTS]


def test_prefixes_are_those_of_the_files_or_of_the_options(folder: Path) -> None:
    encoder = open_encoder(EncoderOptions(str(folder)))
    plain = open_encoder(EncoderOptions(str(folder), query_prefix="", passage_prefix=""))
    assert (encoder.encode_queries(["lives"]) == plain.encode_queries(["Ada: lives"])).all()
    passages = [("Ada", "She lives.")]
    assert (encoder.encode_passages(passages)[0] == plain.encode_queries(["not Ada\nShe lives."])).all()


def test_what_is_too_long_is_cut_and_counted(folder: Path) -> None:
    short = open_encoder(EncoderOptions(str(folder), max_tokens=4))
    whole = open_encoder(EncoderOptions(str(folder)))
    assert (whole.facts["max_tokens"], short.facts["max_tokens"]) == (64, 4)
    vectors, n_cut = short.encode(["ada lives", "ada lives in corvo"], prefix="")
    assert n_cut == 1
    assert (vectors[0] == vectors[1]).all()
    assert (vectors[0] == whole.encode(["ada lives"], prefix="")[0]).all()


def _static(folder: Path, **tensors: Any) -> Path:
    from safetensors.numpy import save_file

    write_tokenizer(folder)
    save_file(tensors, str(folder / "model.safetensors"))
    return folder


def test_static_vectors_are_the_mean_of_known_tokens(tmp_path: Path) -> None:
    table = token_table(1_000)
    folder = _static(tmp_path / "static", embeddings=table)
    found, _ = open_encoder(EncoderOptions(str(folder))).encode(["ada \u4e16 lives", "\u4e16"], prefix="")
    known = _ids(folder, "ada lives", has_marks=False)
    np.testing.assert_allclose(found[0], _of_length_1(table[known].mean(axis=0)), atol=1e-6)
    assert not found[1].any()
    # A table with fewer rows than tokens, and weights.
    mapping, weights = np.arange(1_000) // 2, np.linspace(0.5, 2, 1_000, dtype=np.float32)
    folder = _static(tmp_path / "mapped", embeddings=table[:500], mapping=mapping, weights=weights)
    found, _ = open_encoder(EncoderOptions(str(folder))).encode(["ada lives"], prefix="")
    wanted = (table[mapping[known]] * weights[known, None]).mean(axis=0)
    np.testing.assert_allclose(found[0], _of_length_1(wanted), atol=1e-6)


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ({"pooling": {}}, {}, "give --pooling cls or --pooling mean"),
        ({"pooling": {"pooling_mode_max_tokens": True}}, {}, "pooled by pooling_mode_max_tokens"),
        ({"modules": [{"type": "sentence_transformers.models.Dense"}]}, {}, "has a module Dense"),
        ({"sentence_bert_config": {}}, {}, "give --max-tokens"),
        ({"further_inputs": ["position_ids"]}, {}, "needs the input 'position_ids'"),
        ({}, {"device": "cuda"}, "has no CUDA"),
    ],
)
def test_what_is_not_done_is_refused(tmp_path: Path, files: Any, options: Any, message: str) -> None:
    folder = tiny_encoder(tmp_path / "tiny", **files)
    with pytest.raises(SetupError, match=message):
        open_encoder(EncoderOptions(str(folder), **options))


def test_only_what_is_normalised_has_length_1(tmp_path: Path) -> None:
    modules = [{"type": f"sentence_transformers.models.{name}"} for name in ("Transformer", "Pooling")]
    folder = tiny_encoder(tmp_path / "tiny", modules=modules)  # type: ignore[arg-type]  # as it is in that file
    encoder = open_encoder(EncoderOptions(str(folder)))
    assert encoder.facts["normalisation"] == "none"
    wanted = token_table(1_000)[_ids(folder, "ada")].mean(axis=0)
    np.testing.assert_allclose(encoder.encode(["ada"], prefix="")[0][0], wanted, atol=1e-6)


def test_a_folder_without_an_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"no tokenizer\.json in it"):
        open_encoder(EncoderOptions(str(tmp_path)))
    write_tokenizer(tmp_path)
    with pytest.raises(SetupError, match=r"neither model\.onnx nor model\.safetensors"):
        open_encoder(EncoderOptions(str(tmp_path)))
    _static(tmp_path, weight=np.zeros(3, np.float32))
    with pytest.raises(SetupError, match="not a table of static vectors"):
        open_encoder(EncoderOptions(str(tmp_path)))
    (tmp_path / "tokenizer.json").write_text(json.dumps({}))
    with pytest.raises(SetupError, match=r"its tokenizer\.json cannot be read"):
        open_encoder(EncoderOptions(str(tmp_path)))


def _mean(ids: list[int]) -> Any:
    return token_table(1_000)[ids].mean(axis=0)


def test_title_and_text_may_be_two_segments(folder: Path) -> None:
    encoder = open_encoder(EncoderOptions(str(folder), text_form="pair", passage_prefix="", max_tokens=12))
    found, n_cut = encoder.encode_passages([("ada", "bruno lives"), ("ada", "the weather was fine . " * 9)])
    ids = _ids(folder, "ada")
    np.testing.assert_allclose(found[0], _mean([*ids, *_ids(folder, "bruno lives")[1:]]), atol=1e-6)
    long = _ids(folder, "the weather was fine . " * 9)
    np.testing.assert_allclose(found[1], _mean([*ids, *long[1 : 12 - len(ids)], long[-1]]), atol=1e-6)
    assert n_cut == 1
    assert encoder.facts["normalisation"] == "none"  # scores are inner products


MARKS = ("[unused0]", "[unused1]", "[unused2]")


@pytest.fixture(scope="module")
def linker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder(tmp_path_factory.mktemp("linker") / "tiny", further_tokens=MARKS)


def _marked(folder: Path, *parts: str) -> list[int]:
    """The tokens of texts, and of marks that stand for themselves."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    named = [[tokenizer.token_to_id(part)] if part in MARKS else _ids(folder, part, has_marks=False) for part in parts]
    return [
        tokenizer.token_to_id("[CLS]"),
        *(token_id for own in named for token_id in own),
        tokenizer.token_to_id("[SEP]"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "n_left", "n_right"),
    [
        ("the weather was fine .", "lives in corvo", 5, 3),  # all of it
        ("was fine " * 20, "was fine " * 20, 13, 14),  # half on each side
        ("the", "was fine " * 20, 1, 26),  # what one side does not need is the other's
        ("was fine " * 20, "the", 26, 1),
        ("", "", 0, 0),
    ],
)
def test_a_mention_is_read_between_its_marks(linker: Path, before: str, after: str, n_left: int, n_right: int) -> None:
    encoder = open_encoder(EncoderOptions(str(linker), text_form="blink"))
    found = encoder.encode_queries([f"{before} [START_ENT] ada [END_ENT] {after}"])
    left, right = before.split()[len(before.split()) - n_left :], after.split()[:n_right]
    wanted = _mean(_marked(linker, " ".join(left), "[unused0]", "ada", "[unused1]", " ".join(right)))
    np.testing.assert_allclose(found[0], wanted, atol=1e-6)


def test_an_entity_is_its_title_and_its_text(linker: Path) -> None:
    encoder = open_encoder(EncoderOptions(str(linker), text_form="blink"))
    found, n_cut = encoder.encode_passages([("ada", "lives in corvo"), ("ada", "was fine " * 70)])
    np.testing.assert_allclose(found[0], _mean(_marked(linker, "ada", "[unused2]", "lives in corvo")), atol=1e-6)
    assert n_cut == 1
    np.testing.assert_allclose(
        encoder.encode_queries(["ada"])[0], _mean(_marked(linker, "[unused0]", "ada", "[unused1]")), atol=1e-6
    )
    long = encoder.encode_queries([f"[START_ENT] {'ada ' * 90} [END_ENT] lives"])
    np.testing.assert_allclose(long[0], _mean(_marked(linker, "[unused0]", "ada " * 28, "[unused1]")), atol=1e-6)


def test_blinks_form_needs_its_tokens(folder: Path) -> None:
    with pytest.raises(SetupError, match=r"no token \[unused0\], which --text-form blink needs"):
        open_encoder(EncoderOptions(str(folder), text_form="blink"))
