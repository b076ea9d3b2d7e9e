"""A small corpus of passages."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mapping.passages.cut import CutOptions
from tests.support.demo_datasets import chunks_in_this_process
from tests.support.passages import CORPUS_CUT, CORPUS_FORMS, CORPUS_PAGES, cut_release, write_kb


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_kb(tmp_path_factory.mktemp("kb"), CORPUS_PAGES)


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory, kb: Path) -> Path:
    folder = tmp_path_factory.mktemp("cut") / "corpus"
    with chunks_in_this_process():
        cut_release(folder, kb, cut=CORPUS_CUT, formats=CORPUS_FORMS)
    return folder


@pytest.fixture
def corpus(tmp_path: Path, cut: Path) -> Path:
    return shutil.copytree(cut, tmp_path / "corpus")


@pytest.fixture(scope="module")
def chunks(tmp_path_factory: pytest.TempPathFactory, release: Path) -> Path:
    folder = tmp_path_factory.mktemp("chunks") / "corpus"
    with chunks_in_this_process():
        cut_release(
            folder, release, cut=CutOptions(unit="tokens-100"), formats=("kilt", "kilt-compat", "beir", "colbert")
        )
    return folder
