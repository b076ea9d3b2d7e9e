"""The model class for each form of reading, and the form that a model is for."""

from __future__ import annotations

from typing import Any

from kbsource.errors import SetupError
from mapping.entail.signal import ModelOptions, load_library, model_folder, opening
from mapping.retrieval.system_options import ReaderOptions, ReadForm, backend_of

_GENERATOR = "mapping.retrieval.generator:Generator"
_OPENERS: dict[ReadForm, str] = {
    "extractive": "mapping.retrieval.span_reader:SpanReader",
    "fact-checking": "mapping.retrieval.fact_checker:FactChecker",
}
_HEADS: dict[str, ReadForm] = {"ForQuestionAnswering": "extractive", "ForSequenceClassification": "fact-checking"}
"""Suffixes of model classes that only one form can use."""
_OTHER_HEADS = ("ForMaskedLM", "ForTokenClassification", "ForMultipleChoice", "ForNextSentencePrediction")
_EXAMPLES: dict[ReadForm, str] = {
    "extractive": "for question answering, such as deepset/roberta-base-squad2",
    "fact-checking": (
        "of three classes for pairs of texts, such as ynie/roberta-large-snli_mnli_fever_anli_R1_R2_R3-nli"
    ),
}
_WRITES = "that writes text, seq2seq or causal"


def opener_of(form: ReadForm) -> str:
    """Returns the module and class that opens the model of a form."""
    return _OPENERS.get(form, _GENERATOR)


def reader_form(options: ReaderOptions) -> ReadForm:
    """Returns the form that a model is for, by the class in its config: extractive, fact-checking or one of RAG's, else
    read.

    Raises:
        SetupError: the model does not exist.
    """
    if options.model.endswith(".gguf"):
        return "read"
    config = read_config(options)
    head = class_of(config)
    if config.model_type == "rag":
        return "rag-token" if head.startswith("RagToken") else "rag-sequence"
    return next((form for end, form in _HEADS.items() if head.endswith(end)), "read")


def read_config(options: ReaderOptions) -> Any:
    """Returns the config of a model.

    Raises:
        SetupError: the model does not exist, or its config cannot be read.
    """
    folder = model_folder(ModelOptions(options.model, backend=backend_of(options.model)))
    transformers = load_library("transformers", purpose="kbsource read")
    transformers.logging.set_verbosity_error()
    with opening(options.model, "its config.json cannot be read"):
        return transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)


def class_of(config: Any) -> str:
    """Returns the class that a model was saved as; empty if its config does not name it."""
    names = getattr(config, "architectures", None)
    return str(names[0]) if isinstance(names, list) and names else ""


def check_head(model: str, config: Any, form: ReadForm) -> None:
    """Raises SetupError if the form cannot use a model of this class."""
    head = class_of(config)
    own = next((end for end, other in _HEADS.items() if other == form), None)
    is_wrong = head.endswith((*_HEADS, *_OTHER_HEADS)) if own is None else bool(head) and not head.endswith(own)
    if is_wrong:
        needed = _EXAMPLES.get(form, _WRITES)
        raise SetupError(f"{model}: is a {head}; --form {form} needs a model {needed}.")
