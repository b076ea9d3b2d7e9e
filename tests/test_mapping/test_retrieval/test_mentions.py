"""Mentions that models find: token classifiers as ONNX exports, and spaCy's pipelines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime")

from kbsource.errors import SetupError
from mapping.retrieval.mentions import MentionFinder, open_mention_finder
from tests.support.tiny_encoder import tagger

WORDS = {"ada": "B-PER", "lovelace": "I-PER", "corvo": "LOC", "bruno": "I-PER"}


@pytest.fixture(scope="module")
def finder(tmp_path_factory: pytest.TempPathFactory) -> MentionFinder:
    return open_mention_finder(str(tagger(tmp_path_factory.mktemp("tagger") / "tiny", WORDS)), device="cpu")


def _names(finder: MentionFinder, text: str) -> list[str]:
    (found,) = finder.find([text])
    return [text[start:end] for start, end in found]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Ada Lovelace lives in Corvo.", ["Ada Lovelace", "Corvo"]),
        ("Ada Ada Lovelace", ["Ada", "Ada Lovelace"]),  # B begins another
        ("Bruno Lovelace, Corvo Corvo", ["Bruno Lovelace", "Corvo Corvo"]),  # I alone begins one; kinds alone go on
        ("Corvo Ada", ["Corvo", "Ada"]),
        ("lives in the weather", []),
        ("", []),
        ("  ", []),
    ],
)
def test_words_with_labels_are_mentions(finder: MentionFinder, text: str, names: list[str]) -> None:
    assert _names(finder, text) == names


def test_texts_are_read_together_as_alone(finder: MentionFinder) -> None:
    texts = ["Ada Lovelace", "", "Corvo " * 5, "was fine"]
    assert finder.find(texts) == [finder.find([text])[0] for text in texts]


def test_a_long_text_is_read_to_its_end(tmp_path: Path) -> None:
    finder = open_mention_finder(str(tagger(tmp_path / "tiny", WORDS, max_tokens=16)), device="cpu")
    text = "the weather was fine . " * 9 + "Ada Lovelace"
    assert _names(finder, text) == ["Ada Lovelace"]


def test_a_pipeline_of_spacy_finds_its_entities(tmp_path: Path) -> None:
    import spacy

    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PERSON", "pattern": "Ada Lovelace"}])
    pipeline.to_disk(tmp_path / "ruler")
    assert _names(open_mention_finder(str(tmp_path / "ruler")), "Did Ada Lovelace sail?") == ["Ada Lovelace"]
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(SetupError, match="none finds entities"):
        open_mention_finder(str(tmp_path / "blank"))
    (tmp_path / "blank" / "config.cfg").write_text("[nlp")
    with pytest.raises(SetupError, match="cannot be opened as a spaCy pipeline"):
        open_mention_finder(str(tmp_path / "blank"))


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (
            '[nlp.after_creation]\n@callbacks = "spacy.copy_from_base_model.v1"\ntokenizer = "stranger"',
            "callbacks/spacy",
        ),
        ('[components.more]\nsource = "stranger"', "'more' comes from another pipeline"),
        ('[components.more]\nfactory = "ner"\nsource = "stranger"', "'more' is a ner"),
        ('[components.more]\nfactory = "stranger"', "'more' is a stranger"),
        (
            '[components.more]\nfactory = "ner"\n[components.more.model]\n@readers = "srsly.read_json.v1"',
            "readers/srsly",
        ),
        ('[components.more]\nfactory = "ner"\nx = [{"@loggers": "spacy.ConsoleLogger.v3"}]', "loggers/spacy"),
        ('[components.more]\nfactory = "ner"\nx = ${hidden}\n[hidden]\n@misc = "spacy.KBFromFile.v1"', "misc/spacy.KB"),
        (
            '[components.more]\nfactory = "ner"\n[components.more.x]\n@architectures = "spacy.TorchBiLSTMEncoder.v1"',
            "architectures/spacy.Torch",
        ),
        (
            '[components.more]\nfactory = "ner"\n[components.more.model]\n@layers = "PyTorchWrapper.v3"',
            "layers/PyTorch",
        ),
        ('[components.more]\nfactory = "ner"\n[components.more.model]\n@__dict__ = "create"', "__dict__/create"),
    ],
)
def test_a_pipeline_of_spacy_that_names_what_may_run_code_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: str, said: str
) -> None:
    import spacy

    loot = tmp_path / "loot"
    package = tmp_path / "installed" / "stranger"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"open({str(loot)!r}, 'w').close()")
    (facts := package.parent / "stranger-1.dist-info").mkdir()
    (facts / "METADATA").write_text("Name: stranger\nVersion: 1\n")
    monkeypatch.syspath_prepend(str(package.parent))
    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler")
    pipeline.to_disk(folder := tmp_path / "ruler")
    config = (folder / "config.cfg").read_text()
    for section in ("nlp.after_creation", "components.more"):
        if f"[{section}]" in block:
            config = config.replace("after_creation = null\n", "") if section.startswith("nlp") else config
            config = config.replace('pipeline = ["entity_ruler"]', 'pipeline = ["entity_ruler","more"]')
    (folder / "config.cfg").write_text(f"{config}\n{block}\n")
    with pytest.raises(SetupError, match=re.escape(said)) as caught:
        open_mention_finder(str(folder))
    assert "\n" not in str(caught.value)
    assert not loot.exists()


def test_a_folder_with_the_name_of_a_package_is_read_as_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import spacy

    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": "Ada"}])
    pipeline.to_disk(tmp_path / "pytest")
    monkeypatch.chdir(tmp_path)
    assert _names(open_mention_finder("pytest"), "Ada sails.") == ["Ada"]


def test_a_model_without_a_label_for_nothing_is_refused(tmp_path: Path) -> None:
    folder = tagger(tmp_path / "tiny", {}, labels=("entailment", "neutral"))
    with pytest.raises(SetupError, match="none is O"):
        open_mention_finder(str(folder))


@pytest.mark.parametrize("content", [None, b"", b"[nlp", b"\xff"], ids=["missing", "empty", "half", "noise"])
def test_a_pipeline_of_spacy_with_a_damaged_file_is_told_in_a_line(tmp_path: Path, content: bytes | None) -> None:
    import spacy

    pipeline = spacy.blank("en")
    pipeline.add_pipe("entity_ruler")
    for name in ("config.cfg", "meta.json", "tokenizer", "entity_ruler/cfg", "vocab/strings.json"):
        folder = tmp_path / name.replace("/", "-")
        pipeline.to_disk(folder)
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_bytes(content)
        with pytest.raises(SetupError, match=r"ownload the model again|name a pipeline with ner") as caught:
            open_mention_finder(str(folder))
        assert "\n" not in str(caught.value)
        assert str(folder) in str(caught.value)
