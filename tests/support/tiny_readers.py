"""Models of every kind that reads, small and with drawn weights, in the files of those on the hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.tiny_nli import config, write_tokenizer

WORDS = ("Ada was born in Arlin.", "Bruno lives in Corvo. Nobody knows why.", "Where was Ada born? Who lives in Corvo?")
MAX_TOKENS = 64
_SPREAD = 0.3
"""Of drawn weights: with the usual small ones all words would be equally probable."""


def write_byte_pairs(folder: Path, texts: tuple[str, ...] = WORDS) -> Any:
    """Writes a tokenizer of RoBERTa and BART, ``vocab.json`` and ``merges.txt``, that has the words of texts whole, and
    returns it."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import RobertaTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"], initial_alphabet=alphabet
    )
    tokenizer.train_from_iterator([f" {text}" for text in texts] * 5, trainer)
    trained = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in trained["merges"]]
    (folder / "vocab.json").write_text(json.dumps(trained["vocab"]), encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *map(" ".join, merges)]), encoding="utf-8")
    found = RobertaTokenizerFast(vocab=trained["vocab"], merges=merges, model_max_length=MAX_TOKENS)
    found.save_pretrained(folder)
    return found


def _saved(model: Any, folder: Path, *, seed: int) -> Path:
    import torch

    torch.manual_seed(seed)
    for values in model.parameters():
        if values.dim() > 1:
            torch.nn.init.normal_(values, std=_SPREAD)
    model.save_pretrained(folder)
    return folder


def bert(folder: Path, head: str, *, labels: tuple[str, ...] = ("a", "b"), seed: int = 3) -> Path:
    """Writes a BERT with a head, such as ``QuestionAnswering`` or ``SequenceClassification``."""
    import transformers

    tokenizer = write_tokenizer(folder, texts=WORDS, max_tokens=MAX_TOKENS)
    own = config(len(tokenizer), labels=labels, max_tokens=MAX_TOKENS)
    return _saved(getattr(transformers, f"BertFor{head}")(own), folder, seed=seed)


def roberta(folder: Path, head: str, *, labels: tuple[str, ...] = ("a", "b"), seed: int = 3) -> Path:
    """The same of RoBERTa."""
    import transformers

    tokenizer = write_byte_pairs(folder)
    own = transformers.RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=MAX_TOKENS + 2,
        type_vocab_size=1,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        id2label=dict(enumerate(labels)),
        label2id={name: number for number, name in enumerate(labels)},
    )
    return _saved(getattr(transformers, f"RobertaFor{head}")(own), folder, seed=seed)


def bart_config(tokenizer: Any) -> Any:
    """The config of a small BART."""
    from transformers import BartConfig

    return BartConfig(
        vocab_size=len(tokenizer),
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=MAX_TOKENS,
        bos_token_id=tokenizer.bos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.eos_token_id,
        forced_eos_token_id=tokenizer.eos_token_id,
    )


def bart(folder: Path, *, seed: int = 3) -> Path:
    """Writes a BART."""
    from transformers import BartForConditionalGeneration

    tokenizer = write_byte_pairs(folder)
    model = BartForConditionalGeneration(bart_config(tokenizer))
    model.generation_config.forced_bos_token_id = tokenizer.bos_token_id  # as the published ones have it
    return _saved(model, folder, seed=seed)


def t5(folder: Path, *, seed: int = 3) -> Path:
    """Writes a T5."""
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = write_tokenizer(folder, texts=WORDS, max_tokens=MAX_TOKENS)
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 4, "vocab_size": len(tokenizer)}
    own = T5Config(**sizes, pad_token_id=0, eos_token_id=3, decoder_start_token_id=0)
    return _saved(T5ForConditionalGeneration(own), folder, seed=seed)


def llama(folder: Path, *, seed: int = 3) -> Path:
    """Writes a Llama, a model without an encoder."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = write_tokenizer(folder, texts=WORDS, max_tokens=MAX_TOKENS)
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    marks = {"pad_token_id": 0, "eos_token_id": 3, "bos_token_id": 2, "vocab_size": len(tokenizer)}
    return _saved(
        LlamaForCausalLM(LlamaConfig(**sizes, **marks, max_position_embeddings=MAX_TOKENS)), folder, seed=seed
    )


def rag(folder: Path, kind: str = "Sequence", *, seed: int = 3) -> Path:
    """Writes a RAG, Sequence or Token, with its two tokenizers."""
    import transformers

    questions = write_tokenizer(folder / "question_encoder_tokenizer", texts=WORDS, max_tokens=MAX_TOKENS)
    answers = write_byte_pairs(folder / "generator_tokenizer")
    encoder = transformers.DPRConfig(
        vocab_size=len(questions),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=MAX_TOKENS,
    )
    own = transformers.RagConfig.from_question_encoder_generator_configs(encoder, bart_config(answers), n_docs=3)
    return _saved(getattr(transformers, f"Rag{kind}ForGeneration")(own), folder, seed=seed)
