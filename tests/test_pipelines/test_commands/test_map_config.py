"""The configuration of ``kbsource map all``."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbsource.errors import SetupError
from mapping.sources import all_sources
from pipelines.commands.map import read_alignments
from pipelines.options.map_dataset import MapOptions, PlannedAlignment


def _read(path: Path, text: str) -> list[PlannedAlignment]:
    path.write_text(text, "utf-8")
    return read_alignments(str(path), "kb", "out")


def test_options_nearer_to_the_split_count_and_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    train, dev, test, odd = _read(
        tmp_path / "datasets.yaml",
        """
options: {threshold: 0.4, max-elements: 2}
datasets:
  fever:
    wiki-pages: wiki
    threshold: 0.5
    splits:
      train: {input: [a.jsonl, /b.jsonl], threshold: 0.0, strip-section: true}
      dev:
        input: gs://bucket/dev.jsonl
      test: {input: t.jsonl, labels: t-labels.jsonl}
  released-window:
    dataset: aidayago2
    window: released
    splits: {dev: {input: aida.tsv}}
""",
    )

    assert [(planned.name, planned.options.dataset, planned.options.split) for planned in (train, dev, test, odd)] == [
        ("fever", "fever", "train"),
        ("fever", "fever", "dev"),
        ("fever", "fever", "test"),
        ("released-window", "aidayago2", "dev"),
    ]
    options = train.options
    assert options.inputs == (f"{tmp_path}/a.jsonl", "/b.jsonl")
    assert options.references == (f"{tmp_path}/wiki",)
    assert (options.threshold, options.max_elements, options.strips_section) == (0.0, 2, True)
    assert dev.options.inputs == ("gs://bucket/dev.jsonl",)
    assert (dev.options.threshold, dev.options.strips_section) == (0.5, False)
    assert test.options.labels == (f"{tmp_path}/t-labels.jsonl",)
    assert (odd.options.source.window, odd.options.threshold) == ("released", 0.4)


def test_what_is_not_said_is_left_to_the_options(tmp_path: Path) -> None:
    (entry,) = _read(tmp_path / "c.yaml", "datasets: {jsonl: {splits: {dev: {input: a}}}}")

    assert entry.options == MapOptions(
        "kb", dataset="jsonl", inputs=(f"{tmp_path}/a",), output="out/jsonl/dev", split="dev"
    )
    assert entry.options.choices == all_sources()["jsonl"].options_type()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("datasets:\n  fever:\n    treshold: 1\n", 3, ("there is no option 'treshold'", "threshold", "splits")),
        (
            "datasets:\n  fever:\n    splits:\n      dev:\n        window: x\n",
            5,
            ("'window' works only for aidayago2",),
        ),
        ("datasets:\n  fever:\n    splits:\n      dev: {input: x, threshold: high}\n", 4, ("threshold", "high")),
        ("datasets:\n  fever:\n    splits:\n      validation: {input: x}\n", 4, ("'validation'", "train, dev, test")),
        ("datasets:\n  fevr:\n    splits: {dev: {input: x}}\n", 2, ("'fevr'", "fever, ")),
        ("datasets:\n  a/b:\n    dataset: fever\n    splits: {dev: {input: x}}\n", 2, ("'a/b'", "folder")),
        ("datasets:\n  fever: {wiki-pages: x}\n", 2, ("no 'splits'",)),
        ("datasets:\n  fever:\n    splits: {dev: {input: x}, dev: {input: y}}\n", 3, ("twice",)),
        (
            "datasets:\n  fever:\n    splits:\n      dev: {input: x, strip-section: maybe}\n",
            4,
            ("true or false", "maybe"),
        ),
        ("datasets:\n  fever:\n    splits:\n      dev: {input: x, stem: [a, b]}\n", 4, ("'stem'", "value")),
        ("datasets:\n  fever:\n    splits:\n      dev: {input: }\n", 4, ("'input'", "value")),
        ("datasets:\n  fever:\n    splits: dev\n", 3, ("name: value",)),
        (
            "options:\n  threshold: 0.5\n  kb: x\ndatasets: {jsonl: {splits: {dev: {input: x}}}}\n",
            3,
            ("there is no key 'kb'",),
        ),
        ("data: {}\n", 1, ("there is no key 'data'", "options, datasets")),
        ("options: {threshold: 0.5}\n", 1, ("the key 'datasets' is missing",)),
        ("datasets: {}\n", 1, ("'datasets' is empty",)),
        ("- fever\n", 1, ("name: value",)),
    ],
)
def test_what_means_nothing_is_refused_with_its_line_and_what_is_allowed(
    tmp_path: Path, text: str, line: int, said: tuple[str, ...]
) -> None:
    with pytest.raises(SetupError) as caught:
        _read(tmp_path / "c.yaml", text)

    message = str(caught.value)
    assert f"c.yaml, line {line}: " in message
    for part in said:
        assert part in message


@pytest.mark.parametrize(
    ("text", "said"), [("", "empty"), ("a: [", "is not valid YAML"), ("a: \x00", "is not valid YAML")]
)
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SetupError, match=said):
        _read(tmp_path / "c.yaml", text)


def test_tags_make_no_objects(tmp_path: Path) -> None:
    (entry,) = _read(
        tmp_path / "c.yaml", "datasets: {jsonl: {splits: {dev: {input: !!python/object/apply:os.getcwd x}}}}"
    )

    assert entry.options.inputs == (f"{tmp_path}/x",)


def test_a_model_is_a_folder_beside_the_file_or_a_name_on_the_hub(tmp_path: Path) -> None:
    (tmp_path / "models" / "nli").mkdir(parents=True)
    text = "datasets: {{fever: {{splits: {{dev: {{input: a, model: {}}}}}}}}}"

    (here,) = _read(tmp_path / "c.yaml", text.format("models/nli"))
    (there,) = _read(tmp_path / "c.yaml", text.format("someone/nli"))

    models = [planned.options.verify.model.model for planned in (here, there) if planned.options.verify is not None]
    assert models == [f"{tmp_path}/models/nli", "someone/nli"]


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="no such file"):
        read_alignments(str(tmp_path / "none.yaml"), "kb", "out")


def test_a_choice_of_another_dataset_is_refused_and_a_wrong_one_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"line 1: split 'dev': 'window' works only for aidayago2, wned, cweb, not"):
        _read(tmp_path / "c.yaml", "datasets: {fever: {splits: {dev: {input: a, window: released}}}}")
    with pytest.raises(SetupError, match=r"line 1: --window is left. Choose one of right, "):
        _read(tmp_path / "c.yaml", "datasets: {wned: {splits: {dev: {input: a, window: left}}}}")
