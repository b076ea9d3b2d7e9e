"""The store of templates and modules: names, redirects, revisions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from kbsource.errors import SetupError
from kbsource.index.definition_store import DEFINITION_ROWS, DefinitionStore, build_definitions, definition_name
from kbsource.runtime.chunks import rows_batch
from kbsource.site import Site

SITE = Site(lang="de", namespaces={0: "", 10: "Vorlage", 828: "Modul"})
Row = tuple[str, int, int, str | None, str]


def row(name: str, text: str = "", *, target: str | None = None, revision: int = 1, page: int = 1) -> Row:
    return f"10:{name}", revision, page, target, text


def store(folder: Path, *batches: list[Row]) -> DefinitionStore:
    build_definitions((rows_batch(rows, DEFINITION_ROWS) for rows in batches), str(folder))
    return DefinitionStore(str(folder), SITE)


@pytest.mark.parametrize(
    ("namespace", "title", "name"),
    [
        (10, "Vorlage:lang_ru", "10:Lang ru"),
        (10, "Template:A:b/Doku", "10:A:b/Doku"),
        (828, "Modul:wikidata", "828:Wikidata"),
    ],
)
def test_names_have_no_prefix_of_their_wiki(namespace: int, title: str, name: str) -> None:
    assert definition_name(namespace, title, "de") == name


def test_texts_are_found_by_name_in_whatever_batch(tmp_path: Path) -> None:
    found = store(tmp_path, [row("A", "a"), row("B", "β" * 9)], [], [row("C", ""), ("828:M", 1, 1, None, "return {}")])

    assert [found.source(name) for name in ("A", "B", "C", "D", "M")] == ["a", "β" * 9, "", None, None]
    assert found.module("m") == "return {}"
    assert len(found) == 4


def test_a_name_may_have_any_prefix_of_the_wiki_for_templates(tmp_path: Path) -> None:
    found = store(tmp_path, [row("A", "a"), row("Modul:A", "odd")])

    assert [found.source(name) for name in ("Vorlage:a", "Template: A", "Modul:A", "User:A")] == ["a", "a", "odd", None]


def test_two_redirects_are_followed_and_no_more(tmp_path: Path) -> None:
    chain = [row(str(n), target=f"10:{n + 1}") for n in range(3)]
    loops = [row("Self", target="10:Self"), row("X", target="10:Y"), row("Y", target="10:X")]
    found = store(tmp_path, [*chain, *loops, row("Away", target="2:User")], [row("3", "end")])

    assert [found.source(name) for name in ("3", "2", "1", "0")] == ["end", "end", "end", None]
    assert [found.source(name) for name in ("Self", "X", "Y", "Away")] == [None] * 4
    assert len(found) == 3


def test_redirects_name_their_target_whether_it_exists_or_not(tmp_path: Path) -> None:
    chain = [row(str(n), target=f"10:{n + 1}") for n in range(2)]
    found = store(tmp_path, [*chain, row("2", "end"), row("X", target="10:Convert"), row("Away", target="2:User")])

    assert [found.target(name) for name in ("0", "1", "2", "X", "Vorlage:x")] == ["2", "2", "2", "Convert", "Convert"]
    assert [found.target(name) for name in ("Away", "Nowhere")] == ["Away", "Nowhere"]
    assert [found.source(name) for name in ("0", "X")] == ["end", None]


def test_of_pages_with_one_name_the_newest_revision_counts(tmp_path: Path) -> None:
    moved = [row("A", "old", revision=3, page=9), row("A", "new", revision=5, page=2)]
    left = [row("B", "text", revision=3, page=2), row("B", target="10:A", revision=6, page=5)]
    for number, rows in enumerate(([*moved, *left], [*left, *moved][::-1])):
        found = store(tmp_path / str(number), [*rows])
        assert (found.source("A"), found.source("B")) == ("new", "new")


@pytest.mark.parametrize("batches", [(), ([],)])
def test_a_dump_without_templates_has_an_empty_store(tmp_path: Path, batches: tuple[list[Row], ...]) -> None:
    found = store(tmp_path, *batches)

    assert len(found) == 0
    assert found.source("A") is None
    assert found.module("A") is None


def test_files_of_another_format_are_refused(tmp_path: Path) -> None:
    store(tmp_path, [row("A", "a")])
    schema = pa.schema([("text", pa.string())])
    with pa.OSFile(str(tmp_path / "definitions.arrow"), "wb") as file, pa.ipc.new_file(file, schema):
        pass
    with pytest.raises(SetupError, match="format 'none'"):
        DefinitionStore(str(tmp_path), SITE)
