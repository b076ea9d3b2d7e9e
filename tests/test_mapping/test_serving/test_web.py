"""The server by HTTP: clients that there are, bounds, and errors that programs can read."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from mapping.inspector.frame import BODY_BYTES
from mapping.serving.operations import LONGEST_QUERY, MOST, OPERATIONS, SHAPES, STATUS, Search, ServedRelease
from tests.support.browser import served as served_by
from tests.support.served import SORN, TEY, app_of

ODD: tuple[Any, ...] = (
    *("", "Sorn", "Q7", "wikidata:", "-1", "9" * 30, "\x00", "\ud800", "𝔘", "a\nb", "http://", ":", "#", "x" * 3_000),
    *("https://en.wikipedia.org/?curid=99999999999999999999", "Brack.\nCourse", "5__0", "999999999999999999__1", "in"),
    *(None, True, [], {}, 0, 3, -1, 1.5, 2**31 - 1, 2**53, 2**63, 2**70, ["goats"], ["goats"] * 600, 'OR NOT ("'),
)
"""What a parameter may be given."""


def _client(served: ServedRelease, *, host: str = "127.0.0.1", longest_s: float = 10.0) -> TestClient:
    return TestClient(app_of(served, longest_s=longest_s), base_url=f"http://{host}:8766")


@pytest.fixture(scope="module")
def client(served: ServedRelease) -> Iterator[TestClient]:
    with _client(served) as client:
        yield client


class ColbertV2:
    """What DSPy's client does: https://github.com/stanfordnlp/dspy, dspy/dsp/colbertv2.py."""

    def __init__(self, client: TestClient, *, post: bool) -> None:
        self._client, self._post = client, post

    def __call__(self, query: str, k: int) -> list[dict[str, Any]]:
        asked = {"query": query, "k": k}
        if self._post:
            headers = {"Content-Type": "application/json; charset=utf-8"}
            return self._client.post("/api/search", json=asked, headers=headers).json()["topk"][:k]
        topk = self._client.get("/api/search", params=asked).json()["topk"][:k]
        return [{**hit, "long_text": hit["text"]} for hit in topk]


def test_the_client_of_dspy_finds_passages_by_get_and_post(client: TestClient) -> None:
    found, posted = (ColbertV2(client, post=post)("goats of the Sorn", 2) for post in (False, True))
    assert found == posted
    assert [hit["rank"] for hit in found] == [1, 2]
    assert found[0]["score"] >= found[1]["score"] > 0
    assert [hit["long_text"] for hit in posted] == [hit["text"] for hit in found]
    assert found[0]["text"].startswith("Tey | ")
    assert (found[0]["pid"], found[0]["page_id"], found[0]["revision_id"]) == (found[0]["passage_id"], TEY, 72)


@pytest.mark.parametrize("scored", [True, False])
def test_the_client_of_search_r1_finds_passages_for_several_questions(client: TestClient, scored: bool) -> None:
    asked = {"queries": ["goats", "Brack"], "topk": 1, "return_scores": scored}
    result = client.post("/retrieve", json=asked).json()["result"]
    assert [len(own) for own in result] == [1, 1]
    (goats,), (brack,) = result
    documents = [hit["document"] if scored else hit for hit in (goats, brack)]
    assert all("score" in hit for hit in (goats, brack))
    # As its agent reads them: the title is the first line.
    titles = [document["contents"].split("\n")[0] for document in documents]
    assert titles == ['"Tey"', '"Sorn"']
    assert documents[1]["contents"].split("\n")[1] == documents[1]["text"] == "It rises in Brack."
    assert documents[1]["id"].startswith(f"{SORN}__")


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/search", {"query": "goats", "k": 3}),
        ("/page", {"page": "Sorn", "element": 1}),
        ("/links", {"page": "Sorn", "direction": "in"}),
        ("/cite", {"page": "Sorn", "element": 1, "start_char": 4, "end_char": 8}),
        ("/check", {"quote": "rises", "page": "Sorn", "revision_id": 70}),
    ],
)
def test_get_and_post_answer_the_same(path: str, asked: dict[str, Any], client: TestClient) -> None:
    answer = client.get(path, params=asked)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.json() == client.post(path, json=asked).json()


def test_the_first_address_says_what_can_be_asked(client: TestClient, served: ServedRelease) -> None:
    head = client.get("/").json()
    assert head["release"] == served.sha256
    assert head["operations"] == [f"/{name}" for name in (*OPERATIONS, *SHAPES)]


@pytest.mark.parametrize(
    ("method", "path", "asked", "status", "reason"),
    [
        ("GET", "/nothing", {}, 404, "unknown_address"),
        ("GET", "/search", {}, 400, "bad_request"),
        ("GET", "/search", {"params": {"query": "a", "k": MOST + 1}}, 400, "bad_request"),
        ("GET", "/search", {"params": {"query": "a", "k": "many"}}, 400, "bad_request"),
        ("GET", "/search", {"params": {"query": "a" * (LONGEST_QUERY + 1)}}, 400, "bad_request"),
        ("GET", "/search", {"params": {"query": "a", "limit": 3}}, 400, "bad_request"),
        ("GET", "/page", {"params": {"page": "Nowhere"}}, 404, "unknown_page"),
        ("POST", "/search", {"content": b"query=a"}, 400, "bad_request"),
        ("POST", "/search", {"content": b'{"query": "\xff"}'}, 400, "bad_request"),
        ("POST", "/search", {"json": {"query": "a", "k": "3"}}, 400, "bad_request"),
        ("POST", "/search", {"content": b" " * (BODY_BYTES + 1)}, 413, "too_large"),
        ("POST", "/", {}, 405, "wrong_method"),
        ("POST", "/retrieve", {"json": {"queries": []}}, 400, "bad_request"),
    ],
)
def test_what_cannot_be_answered_is_told_as_json(
    method: str, path: str, asked: dict[str, Any], status: int, reason: str, client: TestClient
) -> None:
    answer = client.request(method, path, **asked)
    assert (answer.status_code, answer.json()["reason"]) == (status, reason)
    assert answer.json()["detail"]


def test_whatever_is_asked_is_answered_or_refused(client: TestClient) -> None:
    seeded, operations = random.Random("asked"), {**OPERATIONS, **SHAPES}
    n_answered = 0
    for _ in range(400):
        name = seeded.choice([*operations])
        fields = operations[name].__struct_fields__
        asked = {field: seeded.choice(ODD) for field in fields if seeded.random() < 0.7} | {"page": "Sorn"}
        asked = {field: value for field, value in asked.items() if field in fields}
        answer = client.post(f"/{name}", content=json.dumps(asked))
        n_answered += answer.status_code == 200
        assert answer.status_code == (STATUS[answer.json()["reason"]] if answer.status_code != 200 else 200), asked
        assert answer.status_code < 500, asked
    assert n_answered > 20


@pytest.mark.parametrize(
    ("host", "status"), [("localhost", 200), ("127.0.0.1", 200), ("reader.local", 200), ("evil.example", 400)]
)
def test_only_names_of_this_machine_and_a_given_host_are_answered(
    served: ServedRelease, host: str, status: int
) -> None:
    with _client(served, host=host) as client:
        assert client.get("/resolve?page=Sorn").status_code == status


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_but_asking_is_possible(client: TestClient, method: str) -> None:
    answer = client.request(method, "/search")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD, POST")
    assert answer.json()["reason"] == "wrong_method"


@pytest.mark.parametrize("path", ["/", "/resolve?page=Sorn", "/mcp", "/nothing", "/openapi.json"])
def test_other_names_and_other_sites_are_refused_as_json(served: ServedRelease, path: str) -> None:
    refused = (
        (400, "wrong_host", {"Host": "evil.example"}),
        (400, "wrong_host", {"Host": "127.0.0.1.evil.example:8766"}),
        (400, "wrong_host", {"Host": "127.0.0.1:8766@evil.example"}),
        (400, "wrong_host", {"Host": ""}),
        (403, "other_site", {"Sec-Fetch-Site": "cross-site"}),
        (403, "other_site", {"Sec-Fetch-Site": "same-site"}),
        (403, "other_site", {"Origin": "https://evil.example"}),
        (403, "other_site", {"Origin": "null"}),
        (403, "other_site", {"Origin": "http://127.0.0.1:3000"}),
    )
    with _client(served) as client:
        for method in ("GET", "POST"):
            for status, reason, headers in refused:
                answer = client.request(method, path, headers=headers)
                assert (answer.status_code, answer.json()["reason"]) == (status, reason), headers
        own = {"Origin": "http://127.0.0.1:8766", "Sec-Fetch-Site": "same-origin"}
        assert client.get("/resolve?page=Sorn", headers=own).status_code == 200
        assert client.get("/resolve?page=Sorn", headers={"Sec-Fetch-Site": "none"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "asked"), [("/page", {"page": "Sorn"}), ("/section", {"page": "Sorn", "section": "Course"})]
)
def test_an_unknown_element_is_told(client: TestClient, path: str, asked: dict[str, Any]) -> None:
    answer = client.post(path, json={**asked, "element": 99})
    assert (answer.status_code, answer.json()["reason"]) == (404, "unknown_element")
    assert client.post(path, json={**asked, "element": 3}).json()["elements"]


def test_an_unknown_parameter_is_answered_with_those_that_there_are(client: TestClient) -> None:
    for answer in (client.get("/page", params={"title": "Sorn"}), client.post("/page", json={"element": 3})):
        assert (answer.status_code, answer.json()["reason"]) == (400, "bad_request")
        assert answer.json()["detail"].endswith("; the parameters are page, element")


def test_titles_like_an_unknown_one_are_proposed(served: ServedRelease, client: TestClient) -> None:
    served.finder.titles.wait()
    for title in ("Sorm", "the sorns", "Sonr", "https://en.wikipedia.org/wiki/Sonr"):
        answer = client.get("/page", params={"page": title})
        assert (answer.status_code, answer.json()["reason"]) == (404, "unknown_page")
        assert "similar titles: " in answer.json()["detail"], title
        assert "Sorn" in answer.json()["detail"]
    assert "similar" not in client.get("/page", params={"page": "Zzyzx"}).json()["detail"]
    assert "similar" not in client.get("/page", params={"page": ""}).json()["detail"]


def test_titles_are_sorted_before_anyone_asks_for_one(
    folders: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with ServedRelease.open(folders[0]):
        latest = time.monotonic() + 60
        while not [*tmp_path.rglob("titles-*/index.sha256")]:
            assert time.monotonic() < latest
            time.sleep(0.01)


def test_several_questions_can_be_asked_in_an_address(client: TestClient) -> None:
    answer = client.get("/retrieve", params={"queries": ["goats", "Brack"], "topk": 1})
    assert [len(own) for own in answer.json()["result"]] == [1, 1]
    assert client.get("/retrieve?queries=goats").status_code == 200


def test_the_openapi_description_says_what_is_answered(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    assert {"title", "version"} <= described["info"].keys()
    assert set(described["paths"]) == {"/", *(f"/{name}" for name in (*OPERATIONS, *SHAPES))}

    def references(value: Any) -> Iterator[str]:
        for key, own in value.items() if isinstance(value, dict) else enumerate(value):
            if key == "$ref":
                yield own
            elif isinstance(own, (dict, list)):
                yield from references(own)

    for reference in references(described):
        found = described
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
    operations = [own for path in described["paths"].values() for own in path.values()]
    assert len({own["operationId"] for own in operations}) == len(operations)
    for own in operations:
        assert all(answer.get("description") or "$ref" in answer for answer in own["responses"].values())
    schemas = described["components"]["schemas"]
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    for name, operation in {**OPERATIONS, **SHAPES}.items():
        path = described["paths"][f"/{name}"]
        assert path["post"]["requestBody"]["content"]["application/json"]["schema"] == {
            "$ref": f"#/components/schemas/{operation.__name__}"
        }
        assert {
            parameter["name"]: parameter["schema"] for parameter in path["get"]["parameters"]
        } == operation.schema()["properties"]
    reasons = {
        reason
        for response in described["components"]["responses"].values()
        for reason in response["description"].split(", ")
    }
    assert reasons == set(STATUS)


@pytest.mark.slow
def test_a_long_request_does_not_keep_others_waiting_and_ends_when_it_is_given_up(
    served: ServedRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def hits(self: ServedRelease, query: str, k: int) -> list[Any]:
        begun.append(query)
        time.sleep(0.005)
        return []

    from mapping.serving import server

    monkeypatch.setattr(ServedRelease, "hits", hits)
    with served_by(app_of(served, longest_s=2)) as url, ThreadPoolExecutor(60) as threads:

        def ask(number: int) -> None:
            timeout = 0.3 if number % 2 else 30
            with suppress(httpx.ReadTimeout):
                httpx.post(f"{url}/retrieve", json={"queries": ["long"] * 500, "topk": 1}, timeout=timeout)

        asked = [threads.submit(ask, number) for number in range(60)]
        while len(begun) < 100:
            time.sleep(0.01)
        for _ in range(3):
            start = time.monotonic()
            assert httpx.get(f"{url}/search?query=short", timeout=20).status_code == 200
            assert time.monotonic() - start < 10
        for request in asked:
            request.result()
        n_begun = len(begun)
        time.sleep(0.3)
        assert len(begun) <= n_begun + server.THREADS
    assert begun.count("long") < 10_000


def test_what_takes_too_long_is_given_up_and_no_more_wait_than_may(
    served: ServedRelease, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = Event()

    def answer(request: Search, served: ServedRelease) -> dict[str, Any]:
        free.wait()
        return {}

    monkeypatch.setattr(Search, "answer", answer)
    monkeypatch.setattr("mapping.serving.server.MOST_WAITING", 2)
    with _client(served, longest_s=0.01) as client:
        told = [client.get("/search?query=a") for _ in range(3)]
        free.set()
    assert [(response.status_code, response.json()["reason"]) for response in told] == [
        (503, "too_slow"),
        (503, "too_slow"),
        (503, "busy"),
    ]


def test_damage_is_told(served: ServedRelease, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from kbsource.errors import DataError

    def damaged(page_id: int) -> None:
        raise DataError("pages-00000.parquet is damaged or changed.")

    monkeypatch.setattr(served.source, "by_id", damaged)
    answer = client.get("/page?page=Sorn")
    assert (answer.status_code, answer.json()["reason"]) == (500, "damaged")
