"""Small seq2seq and causal models, made here, beside a plain loop that takes the likeliest token at each step."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

from kbsource.errors import SetupError
from mapping.retrieval.generator import Generator
from mapping.retrieval.system_options import ReaderOptions
from tests.support.tiny_nli import write_tokenizer

TEXTS = ("Ada was born in Arlin.", "Bruno lives in Corvo. Nobody knows why.", "Ada lives.", "the weather")
NEW_TOKENS = 6


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """Models with an encoder and without, of drawn weights; their own settings ask for what must not count."""
    from transformers import LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration

    made = {}
    for has_encoder in (True, False):
        folder = tmp_path_factory.mktemp("model")
        tokenizer = write_tokenizer(folder)
        torch.manual_seed(3)
        marks: dict[str, Any] = {"pad_token_id": 0, "eos_token_id": 3, "vocab_size": len(tokenizer)}
        model: Any
        if has_encoder:
            sizes = {"d_model": 32, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 4}
            model = T5ForConditionalGeneration(T5Config(**sizes, **marks, decoder_start_token_id=0))
        else:
            sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
            model = LlamaForCausalLM(LlamaConfig(**sizes, **marks, max_position_embeddings=64, bos_token_id=2))
        for values in model.parameters():
            torch.nn.init.normal_(values, std=0.3)
        model.generation_config.update(do_sample=True, temperature=9.0, num_beams=2, repetition_penalty=1.7)
        model.save_pretrained(folder)
        made[has_encoder] = folder
    return made


def _open(folder: Path, **given: Any) -> Generator:
    return Generator(ReaderOptions(str(folder), device="cpu", new_tokens=NEW_TOKENS, **given))


def _plain(generator: Generator, *texts: str) -> str:
    """What is written of texts, by the slow way."""
    model, tokenizer = generator._model, generator._tokenizer
    with torch.inference_mode():
        inputs = [tokenizer(text, return_tensors="pt").input_ids for text in texts]
        if generator.can_fuse:
            states = torch.cat([model.encoder(states_in).last_hidden_state for states_in in inputs], dim=1)
            written = torch.tensor([[0]])
        else:
            written = inputs[0]
        start = written.shape[1]
        for _ in range(NEW_TOKENS):
            if generator.can_fuse:
                scores = model(encoder_outputs=(states,), decoder_input_ids=written).logits
            else:
                scores = model(written).logits
            written = torch.cat([written, scores[:, -1:].argmax(-1)], dim=1)
            if written[0, -1] == 3:
                break
    text: str = tokenizer.decode(written[0, start:], skip_special_tokens=True)
    return text


@pytest.mark.parametrize("has_encoder", [True, False])
@pytest.mark.parametrize("batch_tokens", [1, 4096])
def test_what_is_written_is_the_likeliest_whatever_stands_beside_it(
    folders: dict[bool, Path], has_encoder: bool, batch_tokens: int
) -> None:
    generator = _open(folders[has_encoder], batch_tokens=batch_tokens)
    written = generator.write([(text,) for text in TEXTS])
    assert written == [_plain(generator, text) for text in TEXTS]
    assert len(set(written)) > 1


def test_texts_are_encoded_alone_and_decoded_together(folders: dict[bool, Path]) -> None:
    generator = _open(folders[True])
    assert generator.can_fuse
    fused = generator.write([TEXTS[:3], (TEXTS[1],), TEXTS[2:]])
    assert fused == [_plain(generator, *TEXTS[:3]), _plain(generator, TEXTS[1]), _plain(generator, *TEXTS[2:])]


def test_a_text_is_counted_and_cut_by_tokens(folders: dict[bool, Path]) -> None:
    generator = _open(folders[False], max_tokens=500)
    assert generator.max_tokens == 64 - NEW_TOKENS  # which what is written comes behind
    assert generator.count(["Ada lives.", ""]) == [5, 2]
    assert [generator.cut("Ada lives.", n) for n in (0, 1, 2, 9)] == ["", "Ada", "Ada lives", "Ada lives."]
    assert Generator.sha256(ReaderOptions(str(folders[False]))) != Generator.sha256(ReaderOptions(str(folders[True])))


def test_other_files_are_no_reader(tmp_path: Path, folders: dict[bool, Path]) -> None:
    with pytest.raises(SetupError, match=r"has no config\.json"):
        _open(tmp_path)
    (tmp_path / "config.json").write_text((folders[True] / "config.json").read_text())
    (tmp_path / "pytorch_model.bin").write_bytes(b"code")
    with pytest.raises(SetupError, match=r"has no \*\.safetensors"):
        _open(tmp_path)
    with pytest.raises(SetupError, match="no such file"):
        Generator(ReaderOptions(str(tmp_path / "none.gguf")))


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.99])
def test_a_gguf_file_that_is_cut_off_is_one_line(tmp_path: Path, share: float) -> None:
    gguf = pytest.importorskip("gguf", reason="needs kbsource[read]")
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_token_list(["<unk>", "<s>", "</s>", "Ada", "lives"])
    writer.add_tensor("token_embd.weight", np.ones((5, 32), np.float32))
    for write in ("header_to_file", "kv_data_to_file", "tensors_to_file"):
        getattr(writer, f"write_{write}")()
    writer.close()
    content = path.read_bytes()
    path.write_bytes(content[: max(int(len(content) * share), 5)])
    with pytest.raises(
        SetupError, match=r"model\.gguf: it cannot be opened as a reader \(.*Download the model again"
    ) as told:
        Generator(ReaderOptions(str(path)))
    assert "\n" not in str(told.value)


def test_a_gguf_file_with_countless_layers_is_refused(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf", reason="needs kbsource[read]")
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(4_000_000_000)
    writer.add_tensor("token_embd.weight", np.ones((5, 32), np.float32))
    for write in ("header_to_file", "kv_data_to_file", "tensors_to_file"):
        getattr(writer, f"write_{write}")()
    writer.close()
    with pytest.raises(SetupError, match=r"model\.gguf: llama\.block_count.* at most 1,000 layers are supported"):
        Generator(ReaderOptions(str(path)))


@pytest.mark.parametrize("has_encoder", [True, False])
def test_weights_that_are_missing_are_not_drawn(tmp_path: Path, folders: dict[bool, Path], has_encoder: bool) -> None:
    from safetensors.numpy import load_file, save_file

    other = shutil.copytree(folders[has_encoder], tmp_path / "other")
    tensors = load_file(other / "model.safetensors")
    tensors.pop(min(name for name in tensors if "1." in name))
    save_file(tensors, other / "model.safetensors", {"format": "pt"})
    with pytest.raises(SetupError, match=r"lacks 1 of its weights, such as .*1\."):
        _open(other)
