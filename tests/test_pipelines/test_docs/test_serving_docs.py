"""The lines of docs/serving.md, asked of the mini-wiki."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

pytest.importorskip("tantivy")

from mapping.retrieval.index import make_index
from mapping.serving.operations import OPERATIONS, SHAPES
from tests.support.passages import cut_release
from tests.support.real_data import ROOT
from tests.support.served import app_of, opened_served

PAGE = (ROOT / "docs" / "serving.md").read_text("utf-8")
LINES = [line for line in PAGE.splitlines() if line.startswith("curl ")]


@pytest.fixture(scope="module")
def client(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    corpus = tmp_path_factory.mktemp("served") / "passages"
    cut_release(corpus, release)
    make_index(str(corpus), f"{corpus}-bm25")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(corpus.parent))
        with opened_served(str(release), str(corpus)) as served:
            yield TestClient(app_of(served))


def _sent(line: str) -> tuple[str, str, str]:
    """Method, address and body of a line of curl."""
    words, data, is_get, url = iter(shlex.split(line)[1:]), [], False, ""
    for word in words:
        if word == "-G":
            is_get = True
        elif word == "-d":
            data.append(next(words))
        elif word == "--data-urlencode":
            name, _, value = next(words).partition("=")
            data.append(urlencode({name: value}))
        else:
            assert word.startswith("http://127.0.0.1:8766/"), word
            url = word
    return ("GET", f"{url}?{'&'.join(data)}", "") if is_get or not data else ("POST", url, "&".join(data))


@pytest.mark.parametrize("line", LINES)
def test_every_line_is_answered(line: str, client: TestClient) -> None:
    method, url, body = _sent(line)
    url = url.removesuffix("?")
    answer = client.request(method, url.replace("http://127.0.0.1:8766", "http://localhost"), content=body)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    (name,) = re.findall(r"8766/([\w/]+)", line)
    shown = {
        "search": lambda: "118 steps" in found["passages"][0]["text"],
        "section": lambda: found["elements"][0]["text"] == "History",
        "passage": lambda: "118 steps" in found["text"],
        "resolve": lambda: found["title"] == "Halvane Isles",
        "links": lambda: len(found["links"]) == 5,
        "cite": lambda: found["text"] == "The Halvane Isles",
        "check": lambda: found["verified"],
    }
    assert shown.get(name, lambda: found["release"])()


def test_every_operation_is_shown_and_every_bound_is_that_of_the_code() -> None:
    from mapping.serving.server import MOST_WAITING, THREADS

    assert {re.findall(r"8766/([\w/]+)", line)[0] for line in LINES} == {*OPERATIONS, *SHAPES}
    assert f"{MOST_WAITING - THREADS} more may wait" in PAGE
