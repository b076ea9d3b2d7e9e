"""Readers of every kind, by small models made here, beside slow ways to the same answers."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
import torch

from kbsource.errors import RecordError, SetupError
from mapping.entail.signal import Pair, Verdict
from mapping.retrieval.fact_checker import FactChecker
from mapping.retrieval.generator import Generator
from mapping.retrieval.reader import log_shares
from mapping.retrieval.reader_models import reader_form
from mapping.retrieval.span_reader import QuestionPassage, SpanReader
from mapping.retrieval.system_options import ReaderOptions
from tests.support import tiny_readers

CLASSES = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")
TEXTS = ("Ada was born in Arlin. Who?", "Bruno lives in Corvo. Nobody knows why. Who?", "Ada lives. Who?")
SCORES = (3.0, 2.5, 1.0)
CONTEXT = "Ada was born in Arlin. Bruno lives in Corvo."
NEW_TOKENS = 5
SEEDS = (3, 4, 5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a model when it is first wanted."""
    root, made = tmp_path_factory.mktemp("models"), dict[str, Path]()
    makers: dict[str, Callable[[Path], Path]] = {
        "bert-qa": lambda path: tiny_readers.bert(path, "QuestionAnswering"),
        "roberta-qa": lambda path: tiny_readers.roberta(path, "QuestionAnswering"),
        "bert-fc": lambda path: tiny_readers.bert(path, "SequenceClassification", labels=CLASSES),
        "roberta-fc": lambda path: tiny_readers.roberta(path, "SequenceClassification", labels=CLASSES),
        "bart": tiny_readers.bart,
        "t5": tiny_readers.t5,
        "rag-sequence": lambda path: tiny_readers.rag(path, "Sequence"),
        "rag-token": lambda path: tiny_readers.rag(path, "Token"),
    }

    def make(name: str) -> Path:
        if name not in made:
            made[name] = makers[name](root / name)
        return made[name]

    return make


def _options(folder: Path, **given: Any) -> ReaderOptions:
    return ReaderOptions(str(folder), device="cpu", **{"new_tokens": NEW_TOKENS, **given})


WRITERS = ["bart", "t5", "rag-sequence", "rag-token"]


def _log_probabilities(generator: Generator, text: str, ids: list[int]) -> list[float]:
    """Of each token of an answer to one text, by the model as a whole; a forced token is certain."""
    model, tokenizer = generator._model, generator._tokenizer
    start = model.generation_config.decoder_start_token_id
    first = model.generation_config.forced_bos_token_id
    inputs = tokenizer(text, return_tensors="pt").input_ids
    with torch.inference_mode():
        logits = model(input_ids=inputs, decoder_input_ids=torch.tensor([[start, *ids[:-1]]])).logits[0]
    found = logits.log_softmax(-1)[range(len(ids)), ids].tolist()
    return [0.0, *found[1:]] if first is not None else found


@pytest.mark.parametrize("name", WRITERS)
def test_answers_are_scored_by_the_mean_of_their_tokens(folder: Callable[[str], Path], name: str) -> None:
    generator = Generator(_options(folder(name)))
    found = generator.write_scored(TEXTS)
    assert [span.text for span in found] == generator.write([(text,) for text in TEXTS])
    for place, text in enumerate(TEXTS):
        ids, _ = generator._generated({0: text})[0]
        assert len(ids) == NEW_TOKENS or ids[-1] in generator._ends
        assert found[place].score == pytest.approx(sum(_log_probabilities(generator, text, ids)) / len(ids), abs=2e-5)


@pytest.mark.parametrize("name", WRITERS)
def test_the_answer_of_rag_sequence_is_the_most_probable_over_all_passages(
    folder: Callable[[str], Path], name: str
) -> None:
    generator = Generator(_options(folder(name)))
    answers = [generator._generated({0: text})[0][0] for text in TEXTS]
    decided = set()
    for scores in (SCORES, (0.0, 9.0, 0.0), (1.0, 1.0, 1.0)):
        weights = log_shares(scores)

        def marginal(ids: list[int], weights: tuple[float, ...] = weights) -> float:
            marginals = [
                math.exp(weight + sum(_log_probabilities(generator, text, ids)))
                for text, weight in zip(TEXTS, weights, strict=True)
            ]
            return math.log(sum(marginals))

        best = max(answers, key=marginal)
        decided.add(tuple(best))
        expected = generator._tokenizer.decode(best, skip_special_tokens=True)
        assert generator.write_marginal([(TEXTS, weights), (TEXTS[:1], (0.0,))], by_token=False) == [
            expected,
            *generator.write([(TEXTS[0],)]),
        ]
        with torch.inference_mode():
            computed = generator._marginals(TEXTS, weights, [tuple(answer) for answer in answers])
        assert computed == pytest.approx([marginal(answer) for answer in answers], abs=2e-4)


@pytest.mark.parametrize("name", WRITERS)
def test_every_token_of_rag_token_is_the_most_probable_over_all_passages(
    folder: Callable[[str], Path], name: str
) -> None:
    generator = Generator(_options(folder(name)))
    model, weights = generator._model, log_shares(SCORES)
    written: list[int] = []
    while len(written) < NEW_TOKENS and not (written and written[-1] in generator._ends):
        first = model.generation_config.forced_bos_token_id
        if not written and first is not None:
            written.append(first)
            continue
        total = torch.zeros(model.config.vocab_size)
        for text, weight in zip(TEXTS, weights, strict=True):
            inputs = generator._tokenizer(text, return_tensors="pt").input_ids
            given = torch.tensor([[model.generation_config.decoder_start_token_id, *written]])
            with torch.inference_mode():
                logits = model(input_ids=inputs, decoder_input_ids=given).logits[0, -1]
            total += math.exp(weight) * logits.softmax(-1)
        written.append(int(total.argmax()))
    expected = generator._tokenizer.decode(written, skip_special_tokens=True)
    assert generator.write_marginal([(TEXTS, weights), (TEXTS[1:2], (0.0,))], by_token=True) == [
        expected,
        *generator.write([(TEXTS[1],)]),
    ]


@pytest.mark.parametrize("kind", ["Sequence", "Token"])
def test_the_sums_are_those_of_transformers(folder: Callable[[str], Path], kind: str) -> None:
    """RAG of transformers gets the same passages with the same scores, in place of its own retriever."""
    import transformers

    path = folder(f"rag-{kind.lower()}")
    generator = Generator(_options(path))
    model = getattr(transformers, f"Rag{kind}ForGeneration").from_pretrained(path).eval()
    batch = generator._tokenizer(list(TEXTS), return_tensors="pt", padding=True)
    answers = [generator._generated({0: text})[0][0] for text in TEXTS]
    scores = torch.tensor([SCORES])
    for ids in answers:
        given = torch.tensor([[model.generator.config.decoder_start_token_id, *ids]])
        with torch.inference_mode():
            found = model(
                context_input_ids=batch.input_ids,
                context_attention_mask=batch.attention_mask,
                decoder_input_ids=given,
                doc_scores=scores,
                n_docs=len(TEXTS),
            )
            expected = -float(model.get_nll(found.logits, scores, given, n_docs=len(TEXTS)).sum())
        if kind == "Token":
            log_marginals = torch.tensor([_log_probabilities(generator, text, ids) for text in TEXTS])
            own = float((log_marginals + torch.tensor(log_shares(SCORES))[:, None]).logsumexp(0).sum())
        else:
            with torch.inference_mode():
                (own,) = generator._marginals(TEXTS, log_shares(SCORES), [tuple(ids)])
        assert own == pytest.approx(expected, abs=1e-3)


def _plain_span(reader: SpanReader, question: str, context: str, start: int, end: int) -> tuple[str, float] | None:
    """The best span of a passage that is one window, by looking at every pair of tokens."""
    encoded = reader._tokenizer(question, context, return_offsets_mapping=True)
    names = [name for name in reader._tokenizer.model_input_names if name in encoded]
    with torch.inference_mode():
        found = reader._computer._model(**{name: torch.tensor([encoded[name]]) for name in names})
    starts, ends = found.start_logits[0].tolist(), found.end_logits[0].tolist()
    spans = []
    for first, last in product(range(len(starts)), repeat=2):
        parts = [encoded.sequence_ids(0)[place] for place in (first, last)]
        begin, stop = encoded["offset_mapping"][first][0], encoded["offset_mapping"][last][1]
        whole = [encoded["offset_mapping"][place] for place in (first, last)]
        if parts == [1, 1] and first <= last < first + NEW_TOKENS and all(start <= a < b <= end for a, b in whole):
            spans.append((starts[first] + ends[last] - starts[0] - ends[0], context[begin:stop]))
    return max(((text, score) for score, text in spans), key=lambda scored: scored[1], default=None)


@pytest.mark.parametrize("name", ["bert-qa", "roberta-qa"])
def test_a_span_is_the_best_of_all_less_that_of_no_answer(folder: Callable[[str], Path], name: str) -> None:
    reader = SpanReader(_options(folder(name)))
    questions = ["Where was Ada born?", "Who lives in Corvo?"]
    parts = [(0, len(CONTEXT)), (0, 22), (23, len(CONTEXT)), (5, 5)]
    pairs = [QuestionPassage(question, CONTEXT, *part) for question, part in product(questions, parts)]
    found = reader.spans(pairs)
    for pair, span in zip(pairs, found, strict=True):
        expected = _plain_span(reader, *pair)
        if expected is None:
            assert span is None
        else:
            assert span is not None
            assert CONTEXT[span.start_char : span.end_char] == expected[0]
            assert span.score == pytest.approx(expected[1], abs=2e-5)
    assert reader.spans(pairs[::-1]) == found[::-1]


@pytest.mark.parametrize("name", ["bert-qa", "roberta-qa"])
def test_a_long_passage_is_read_in_windows(folder: Callable[[str], Path], name: str) -> None:
    reader = SpanReader(_options(folder(name), max_tokens=30))
    long = " ".join([CONTEXT] * 6)
    (found,) = reader.spans([QuestionPassage("Who?", long, 0, len(long))])
    windows = list(reader._windows([QuestionPassage("Who?", long, 0, len(long))]))
    assert len(windows) > 3
    assert found is not None
    assert long[found.start_char : found.end_char].strip()
    with pytest.raises(RecordError, match=r"prompt_too_long: the question without passages has \d+ tokens"):
        reader.check(long)


@pytest.mark.parametrize("name", ["bert-fc", "roberta-fc"])
def test_a_claim_is_judged_by_three_classes(folder: Callable[[str], Path], name: str) -> None:
    path = folder(name)
    checker = FactChecker(_options(path))
    pairs = [Pair(text, "Ada lives in Corvo.") for text in (*TEXTS, CONTEXT)]
    found = checker.judge(pairs)
    assert all(
        isinstance(verdict, Verdict) and sum(filter(None, verdict)) == pytest.approx(1, abs=1e-5) for verdict in found
    )
    for pair, verdict in zip(pairs, found, strict=True):
        assert checker.judge([pair])[0] == pytest.approx(verdict, abs=5e-6)  # the last digit moves with the batch
    named = FactChecker(_options(path, labels=("contradiction", "entailment", "neutral"))).judge(pairs[:1])[0]
    assert isinstance(named, Verdict)
    assert isinstance(found[0], Verdict)
    assert (named.entailment, named.contradiction) == (found[0].contradiction, found[0].entailment)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("bert-qa", "extractive"),
        ("roberta-qa", "extractive"),
        ("bert-fc", "fact-checking"),
        ("roberta-fc", "fact-checking"),
        ("bart", "read"),
        ("t5", "read"),
        ("rag-sequence", "rag-sequence"),
        ("rag-token", "rag-token"),
    ],
)
def test_a_model_has_the_form_that_it_is_made_for(folder: Callable[[str], Path], name: str, form: str) -> None:
    assert reader_form(ReaderOptions(str(folder(name)))) == form


OPENERS: dict[str, Callable[[ReaderOptions], Any]] = {
    "extractive": SpanReader,
    "fact-checking": FactChecker,
    "read": Generator,
}


@pytest.mark.parametrize(
    ("name", "form", "said"),
    [
        ("bert-fc", "extractive", "is a BertForSequenceClassification; --form extractive needs a model for question"),
        ("bart", "extractive", "is a BartForConditionalGeneration; --form extractive needs"),
        (
            "roberta-qa",
            "fact-checking",
            "is a RobertaForQuestionAnswering; --form fact-checking needs a model of",
        ),
        ("rag-token", "fact-checking", "is a RagTokenForGeneration; --form fact-checking needs"),
        ("bert-qa", "read", "is a BertForQuestionAnswering; --form read needs a model that writes text"),
        ("roberta-fc", "read", "is a RobertaForSequenceClassification; --form read needs"),
    ],
)
def test_a_model_of_another_kind_is_refused(folder: Callable[[str], Path], name: str, form: str, said: str) -> None:
    with pytest.raises(SetupError, match=said):
        OPENERS[form](_options(folder(name)))


@pytest.mark.parametrize(
    ("name", "form", "weight"),
    [
        ("bert-qa", "extractive", "qa_outputs.weight"),
        ("roberta-qa", "extractive", "qa_outputs.bias"),
        ("bert-fc", "fact-checking", "classifier.weight"),
        ("roberta-fc", "fact-checking", "classifier.out_proj.bias"),
        ("bart", "read", "1.fc1.weight"),
        ("t5", "read", "1.layer.0.SelfAttention.q.weight"),
        ("rag-sequence", "read", "1.fc1.weight"),
        ("rag-token", "read", "question_encoder"),
    ],
)
def test_weights_that_are_missing_are_not_drawn(
    folder: Callable[[str], Path], tmp_path: Path, name: str, form: str, weight: str
) -> None:
    from safetensors.numpy import load_file, save_file

    path = shutil.copytree(folder(name), tmp_path / "model")
    tensors = load_file(path / "model.safetensors")
    tensors.pop(next(tensor for tensor in sorted(tensors) if weight in tensor))
    save_file(tensors, path / "model.safetensors", {"format": "pt"})
    with pytest.raises(SetupError, match="lacks 1 of its weights"):
        OPENERS[form](_options(path))


def test_a_head_of_another_size_is_refused(tmp_path: Path) -> None:
    three = tiny_readers.bert(tmp_path / "qa", "QuestionAnswering", labels=("a", "b", "c"))
    with pytest.raises(SetupError, match="has 3 outputs for a token; --form extractive needs 2"):
        SpanReader(_options(three))
    two = tiny_readers.bert(tmp_path / "fc", "SequenceClassification", labels=("entailment", "not_entailment"))
    with pytest.raises(SetupError, match=r"has 2 classes \(entailment, not_entailment\); --form fact"):
        FactChecker(_options(two))
    unnamed = tiny_readers.bert(tmp_path / "un", "SequenceClassification", labels=("LABEL_0", "LABEL_1", "LABEL_2"))
    with pytest.raises(SetupError, match="--label-names entailment,neutral,contradiction"):
        FactChecker(_options(unnamed))
    value = json.loads((two / "config.json").read_text())
    value["id2label"] = {"0": "SUPPORTS", "1": "REFUTES", "2": "NEI"}
    (two / "config.json").write_text(json.dumps(value))
    with pytest.raises(SetupError, match="weights"):
        FactChecker(_options(two))


@pytest.mark.parametrize(
    ("name", "file", "key", "value", "said"),
    [
        ("bart", "config.json", "activation_dropout", None, "it cannot be run"),
        ("bart", "config.json", "decoder_attention_heads", -1, "it cannot be run"),
        ("bart", "config.json", "decoder_layers", 10**30, "at most 1,000 layers are supported"),
        ("bart", "generation_config.json", "eos_token_id", {"a": 1}, "eos_token_id in its settings is {'a': 1}"),
        (
            "t5",
            "tokenizer_config.json",
            "model_max_length",
            "x",
            "model_max_length in its tokenizer_config.json is 'x'",
        ),
        ("bert-qa", "config.json", "num_hidden_layers", 1001, "at most 1,000 layers are supported"),
    ],
)
def test_settings_that_cannot_be_are_told_when_a_model_is_opened(
    folder: Callable[[str], Path], tmp_path: Path, name: str, file: str, key: str, value: Any, said: str
) -> None:
    path = shutil.copytree(folder(name), tmp_path / "model")
    settings = json.loads((path / file).read_text())
    (path / file).write_text(json.dumps({**settings, key: value}))
    with pytest.raises(SetupError) as told:
        OPENERS["extractive" if name == "bert-qa" else "read"](_options(path))
    assert said in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["bert-qa", "bert-fc", "rag-token"])
def test_a_folder_without_its_files_is_refused(folder: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    form = {"bert-qa": "extractive", "bert-fc": "fact-checking", "rag-token": "read"}[name]
    for pattern, said in (("*.safetensors", r"has no \*\.safetensors"), ("config.json", r"has no config\.json")):
        path = shutil.copytree(folder(name), tmp_path / pattern.replace("*", "x"))
        for file in path.glob(pattern):
            file.unlink()
        with pytest.raises(SetupError, match=said):
            OPENERS[form](_options(path))
    path = shutil.copytree(folder(name), tmp_path / "damaged")
    (path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(SetupError, match=r"cannot be opened|that can be opened"):
        OPENERS[form](_options(path))


def test_the_hash_of_rag_has_its_tokenizer(folder: Callable[[str], Path], tmp_path: Path) -> None:
    path = shutil.copytree(folder("rag-token"), tmp_path / "rag")
    before = Generator.sha256(_options(path))
    (path / "generator_tokenizer" / "merges.txt").write_text("#version: 0.2")
    assert Generator.sha256(_options(path)) != before
