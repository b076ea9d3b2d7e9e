"""Pages, their passages and questions about them, of which the commands make questions with passages."""

from __future__ import annotations

from pathlib import Path

import pytest

from mapping.passages.cut import CutOptions
from tests.support.contexts import write_pages, write_questions
from tests.support.demo_datasets import chunks_in_this_process
from tests.support.passages import cut_release


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pages(tmp_path_factory.mktemp("kb"))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, kb: Path) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "passages"
    with chunks_in_this_process():
        cut_release(folder, kb, cut=CutOptions(max_words=10))
    return folder


@pytest.fixture
def qampari(tmp_path: Path, kb: Path) -> Path:
    return write_questions(tmp_path / "qampari", kb)
