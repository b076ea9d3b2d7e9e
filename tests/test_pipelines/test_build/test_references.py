"""Builds with references: tables of their own, the pages as they are without, invariants that are broken."""

from __future__ import annotations

import json
import re
import shutil
from importlib import resources
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from kbsource.columns import schema_of
from kbsource.errors import DataError
from kbsource.runtime.database import connected
from kbsource.wikitext.reference_rows import Reference, ReferenceUse
from pipelines.cli import main
from tests.support.alignments import read_lines
from tests.support.builds import build_mini, contents, open_release
from tests.support.dumps import dump_xml, page_xml
from tests.support.inspected import client_of, opened_release
from tests.support.published import card_metadata, check_published
from tests.support.verified import verified
from tests.test_kbsource.test_release.test_verify import Release

pytestmark = pytest.mark.usefixtures("module_in_this_process")

HOUSE = """The house<ref name="deed">{{cite book|last=Lee|first=Ann|title=Deeds|year=1901}}</ref> is
[[red]].<ref name=map /> It has gates.{{sfn|Lee|1901|p=7}}<ref group=n>Four of them.</ref>
It burnt{{cn|date=May 2020}} down.<ref name=deed/>{{rp|9}}

{| class="wikitable"
| Gate || North<ref>Plan http://plans.example/n</ref>
|}
{{reflist|refs=<ref name=map>A map.</ref>}}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("noted")
    pages = [page_xml(7, "House", HOUSE), page_xml(3, "Red", "A colour."), page_xml(9, "Gate", "No<ref>x</ref> gate.")]
    dump = folder / "xwiki-20260101-pages-articles.xml"
    dump.write_bytes(dump_xml(pages))
    options = {"dump": dump, "page_props": None, "range_bytes": 900}
    build_mini(folder / "with", references=True, **options)
    build_mini(folder / "without", **options)
    return folder


def test_pages_are_what_they_are_without(built: Path) -> None:
    noted, plain = contents(built / "with"), contents(built / "without")

    assert {name for name in noted if name not in plain} == {
        "refs/refs-00000-of-00001.parquet",
        "ref_uses/ref_uses-00000-of-00001.parquet",
    }
    assert all(noted[name] == content for name, content in plain.items() if name != "manifest.json")
    assert verified(built / "with").findings == ()
    findings = open_release(built / "with").manifest.findings
    assert (findings["refs"], findings["ref_uses"], findings["ref_list_defined"]) == (6, 8, 1)


def test_a_page_has_its_references_and_their_places(built: Path) -> None:
    kb = open_release(built / "with")
    page, found = kb.get("House"), kb.references(7)
    assert page is not None
    text = page.elements[1].text

    assert text == "The house is red. It has gates. It burnt down."
    assert [(ref.form, ref.group, ref.number, ref.text, ref.source) for ref in found.refs] == [
        ("ref", "", 1, "Lee, Ann (1901). Deeds.", None),
        ("ref", "", 2, "A map.", None),
        ("short", "", 3, "Lee 1901, p. 7", 0),
        ("ref", "n", 1, "Four of them.", None),
        ("ref", "", 4, "Plan http://plans.example/n", None),
    ]
    assert [(use.ref, use.cleanup_tag, text[: use.offset][-5:], use.pages) for use in found.uses[:-1]] == [
        (0, None, "house", None),
        (1, None, " red.", None),
        (2, None, "ates.", "7"),
        (3, None, "ates.", None),
        (None, "citation_needed", "burnt", None),
        (0, None, "down.", "9"),
    ]
    assert (found.uses[-1].ref, found.uses[-1].element, found.uses[-1].table) == (4, None, 0)
    sentences = [text[use.sentence_start : use.sentence_end] for use in found.uses[:-1]]
    assert sentences == ["The house is red."] * 2 + ["It has gates."] * 2 + ["It burnt down."] * 2
    assert kb.references(3) == kb.references(404) == ((), ())
    with pytest.raises(DataError, match="--references"):
        open_release(built / "without").references(7)


@pytest.mark.parametrize(
    ("table", "column", "row", "value", "slug"),
    [
        ("ref_uses", "offset", 0, 4000, "span_mismatch"),
        ("ref_uses", "offset", 0, 4, "span_mismatch"),  # behind a blank
        ("ref_uses", "sentence_end", 0, 4000, "span_mismatch"),
        ("ref_uses", "element", 0, 70, "span_mismatch"),
        ("ref_uses", "table", 6, 3, "span_mismatch"),
        ("ref_uses", "ref", 1, 40, "refs_disagree"),
        ("ref_uses", "cleanup_tag", 1, "dubious", "refs_disagree"),
        ("refs", "source", 2, 40, "refs_disagree"),
        ("refs", "number", 1, 5, "refs_disagree"),
        ("refs", "ref", 1, 3, "refs_disagree"),
        ("refs", "markup", 1, "another", "refs_disagree"),
    ],
)
def test_what_breaks_a_law_is_found(
    built: Path, tmp_path: Path, table: str, column: str, row: int, value: object, slug: str
) -> None:
    release = Release(shutil.copytree(built / "with", tmp_path / "broken"))

    def change(read: pa.Table) -> pa.Table:
        values = read[column].to_pylist()
        values[row] = value
        place = read.schema.get_field_index(column)
        return read.set_column(place, read.schema.field(place), pa.array(values, read.schema.types[place]))

    release.spoil_table(f"{table}/{table}-00000-of-00001.parquet", change)
    assert slug in {rule for _, rule in release.rules()}


def test_the_inspector_shows_marks_at_their_places_and_what_they_cite(built: Path) -> None:
    with opened_release(str(built / "with")) as opened:
        shown = client_of(opened).get("/r/with/page/7").text
    said = "reference 1: Lee, Ann (1901). Deeds."
    assert f'The house<a class="fn" href="#r0" data-label="1" aria-label="{said}' in shown
    assert '<span class="fn" role="note" data-label="citation needed" aria-label="doubted: citation needed"' in shown
    assert shown.count('data-label="1: 9"') == 1  # the deed again, with a page
    assert '<a href="http://plans.example/n" rel="noreferrer">source</a>' in shown
    assert shown.index('<li id="r0"') < shown.index("Deeds.", shown.index('<li id="r0"'))


def test_the_inspector_links_addresses_of_the_web_alone(built: Path, tmp_path: Path) -> None:
    release = Release(shutil.copytree(built / "with", tmp_path / "with"))

    def change(read: pa.Table) -> pa.Table:
        urls = {"url": "javascript:alert(1)", "archive_url": "https://archive.example/n"}
        for name, url in urls.items():
            place = read.schema.get_field_index(name)
            read = read.set_column(place, read.schema.field(place), pa.array([url] * len(read), pa.string()))
        return read

    release.spoil_table("refs/refs-00000-of-00001.parquet", change)
    with opened_release(str(tmp_path / "with")) as opened:
        shown = client_of(opened).get("/r/with/page/7").text
    assert '<a href="https://archive.example/n" rel="noreferrer">copy in an archive</a>' in shown
    assert "javascript:" not in shown


def test_the_report_counts_references_addresses_and_paragraphs_without_one(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(built / "with"), "--format", "markdown"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]

    for said in (
        "- references per page: 2",
        "- paragraphs without a reference: 1",
        "| book | 1 | 16.7 % |",
        "| plans.example | 1 | 100.0 % |",
        "| not stated | 1 | 100.0 % |",
        "| citation\\_needed | 1 |",
    ):
        assert said in lines
    assert main(["report", str(built / "without"), "--format", "markdown"]) == 0
    assert "without a reference" not in capsys.readouterr().out


@pytest.mark.slow  # imports every tool
def test_what_is_published_documents_both_tables_and_is_read_by_every_tool(built: Path, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    assert main(["publish", str(built / "with"), "--output", str(folder), "--licence", "CC-BY-SA-4.0"]) == 0
    check_published(folder, tmp_path)
    card = (folder / "README.md").read_text("utf-8")
    fields = {
        record_set["name"]: record_set["field"]
        for record_set in json.loads((folder / "croissant.json").read_text())["recordSet"]
    }
    for table, row in (("refs", Reference), ("ref_uses", ReferenceUse)):
        assert table in [config["config_name"] for config in card_metadata(folder)["configs"]]
        described = {field["name"].rpartition("/")[2]: field["description"] for field in fields[table]}
        for field in schema_of(row):
            meaning = field.metadata[b"description"].decode()
            shown = re.escape(meaning.replace("|", "\\|"))
            assert re.search(rf"^\| `{field.name}` \| .* \| {shown} \|$", card, re.MULTILINE)
            assert described[field.name] == meaning


@pytest.fixture(scope="module")
def db() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(resources.files("kbsource").joinpath("references.sql").read_text("utf-8"))
    return connection


def test_sentences_are_asked_for_with_their_sources(built: Path, db: duckdb.DuckDBPyConnection) -> None:
    asked = "select page, sentence, coalesce(cleanup_tag, reference), url from kb_cited_sentences(?) order by all"
    assert db.execute(asked, [str(built / "with")]).fetchall() == [
        ("Gate", "No gate.", "x", None),
        ("House", "It burnt down.", "Lee, Ann (1901). Deeds.", None),
        ("House", "It burnt down.", "citation_needed", None),
        ("House", "It has gates.", "Four of them.", None),
        ("House", "It has gates.", "Lee 1901, p. 7", None),
        ("House", "The house is red.", "A map.", None),
        ("House", "The house is red.", "Lee, Ann (1901). Deeds.", None),
    ]
    uncited = "select title, text from kb_uncited_paragraphs(?)"
    assert db.execute(uncited, [str(built / "with")]).fetchall() == [("Red", "A colour.")]


def test_sentences_of_a_long_page_are_asked_for_in_little_memory(tmp_path: Path) -> None:
    text = "\n\n".join(f"The house of number {number} is red.<ref>Map {number}.</ref>" for number in range(2500))
    (tmp_path / "xwiki-20260101-pages-articles.xml").write_bytes(dump_xml([page_xml(7, "House", text)]))
    build_mini(tmp_path / "kb", references=True, dump=tmp_path / "xwiki-20260101-pages-articles.xml", page_props=None)
    with connected(reads=[str(tmp_path)], memory_mb=200) as db:
        db.execute(resources.files("kbsource").joinpath("references.sql").read_text("utf-8"))
        asked = "select count(*), count(distinct sentence) from kb_cited_sentences(?)"
        assert db.execute(asked, [str(tmp_path / "kb")]).fetchall() == [(2500, 2500)]


def test_passages_and_evidence_are_joined_to_the_references_that_stand_on_them(
    built: Path, db: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    kb, passages, aligned = str(built / "with"), str(tmp_path / "passages"), str(tmp_path / "aligned")
    assert main(["passages", kb, "--output", passages, "--unit", "sentences", "--max-words", "4"]) == 0
    asked = "select passage_id, coalesce(cleanup_tag, reference) from kb_passage_references(?, ?) order by all"
    first, second, third = (f"7__{number}" for number in range(3))
    assert db.execute(asked, [kb, passages]).fetchall() == [
        (first, "A map."),
        (first, "Lee, Ann (1901). Deeds."),
        (second, "Four of them."),
        (second, "Lee 1901, p. 7"),
        (third, "Lee, Ann (1901). Deeds."),
        (third, "citation_needed"),
        ("9__0", "x"),
    ]
    evidence = {"title": "House", "text": "It has gates"}
    (tmp_path / "own.jsonl").write_text(json.dumps({"id": "q", "output": [{"evidence": [evidence]}]}) + "\n")
    assert main(["map", "jsonl", kb, "--input", str(tmp_path / "own.jsonl"), "--output", aligned]) == 0
    asked = "select example_id, reference from kb_evidence_references(?, ?) order by all"
    assert db.execute(asked, [kb, aligned]).fetchall() == [("q", "Four of them."), ("q", "Lee 1901, p. 7")]


@pytest.mark.parametrize("runner", ["local", "DirectRunner"])
def test_a_model_says_whether_title_and_quote_of_a_source_support_the_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], runner: str
) -> None:
    for library in ("onnxruntime", "onnx", "transformers"):
        pytest.importorskip(library, reason="needs kbsource[nli]")
    from tests.support.tiny_nli import overlap_model

    quoted = "{{cite book|last=Lee|title=Deeds|year=1901|quote=The house is red.}}"
    text = f"The house is red.<ref>{quoted}</ref> It has gates.{{{{sfn|Lee|1901|p=7}}}}<ref>A map.</ref>"
    text += "<ref>{{cite web|title=!}}</ref>\n{|\n| Red <ref name=b>B</ref> || Blue <ref name=b/>\n|}"
    (tmp_path / "xwiki-20260101-pages-articles.xml").write_bytes(dump_xml([page_xml(7, "House", text)]))
    build_mini(tmp_path / "kb", references=True, dump=tmp_path / "xwiki-20260101-pages-articles.xml", page_props=None)
    (tmp_path / "out").mkdir()
    output = tmp_path / "out" / "verdicts.jsonl"
    given = ["--model", str(overlap_model(tmp_path / "model")), "--backend", "onnx", "--runner", runner, "--json"]
    capsys.readouterr()

    assert main(["check-sources", str(tmp_path / "kb"), *given, "--output", str(output)]) == 0

    lines = read_lines(output)
    assert [(line["ref"], line["offset"], line["premise"], line["hypothesis"], line["label"]) for line in lines] == [
        (0, 17, "Deeds. The house is red.", "The house is red.", "entailment"),
        (1, 31, "Deeds. The house is red.", "It has gates.", "neutral"),
        (3, 31, "!", "It has gates.", "neutral"),
    ]
    assert {(line["page_id"], line["element"]) for line in lines} == {(7, 1)}
    assert [line["entailment"] > 0.9 for line in lines] == [True, False, False]
    summary = json.loads(capsys.readouterr().out)
    assert summary["uses"] == 6
    assert summary["not_judgeable"] == 3  # a source without a title, and two uses in a table, which have no place
    assert summary["entailment"] == 1
    assert list(output.parent.iterdir()) == [output]
    (damaged,) = (tmp_path / "kb" / "refs").iterdir()
    content = bytearray(damaged.read_bytes())
    content[10] ^= 1
    damaged.write_bytes(content)
    assert main(["check-sources", str(tmp_path / "kb"), *given, "--output", str(output), "--force"]) == 1
    assert f"{damaged} is damaged or changed" in capsys.readouterr().err


def test_sources_are_judged_of_releases_with_references_alone(
    built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--model", str(tmp_path), "--output", str(tmp_path / "verdicts.jsonl")]
    assert main(["check-sources", str(built / "without"), *given]) == 2
    assert "build it with --references" in capsys.readouterr().err
