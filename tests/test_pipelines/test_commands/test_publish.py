"""``kbsource publish``: the release as it is, what describes it, and that everybody reads it."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import yaml

from kbsource.lookup import KnowledgeSource
from pipelines.cli import main
from tests.support import mini_wikidata
from tests.support.alignments import evidence, map_mini, record, write_records
from tests.support.builds import build_mini, contents
from tests.support.dumps import dump_xml, page_xml, revision_xml
from tests.support.entities import make
from tests.support.published import card_metadata, check_published
from tests.support.verified import seal, verified

LICENCE = ["--licence", "CC-BY-SA-4.0"]
ADDED = {"README.md", "LICENSE", "ATTRIBUTION.md", "CITATION.cff", "croissant.json", "prov.json"}


@pytest.fixture(scope="module")
def published(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The mini-wiki, published."""
    folder = tmp_path_factory.mktemp("published") / "miniwiki"
    flags = ["--repo-id", "lab/miniwiki", "--date", "2026-12-01"]
    assert main(["publish", str(release), "--output", str(folder), *LICENCE, *flags]) == 0
    return folder


@pytest.mark.slow  # imports every tool
def test_every_tool_reads_every_table_as_it_is(published: Path, tmp_path: Path) -> None:
    check_published(published, tmp_path)


def test_what_is_loaded_without_a_name_are_the_pages(published: Path, tmp_path: Path) -> None:
    from datasets import load_dataset

    rows = load_dataset(str(published), cache_dir=str(tmp_path))["train"]
    with KnowledgeSource.open(published) as source:
        pages = list(source)
    assert [(row["title"], [element["text"] for element in row["elements"]]) for row in rows] == [
        (page.title, [element.text for element in page.elements]) for page in pages
    ]


def test_a_published_release_is_sound_and_opens(published: Path, release: Path) -> None:
    report = verified(published)
    assert report.is_sound
    assert set(report.extra) == ADDED
    with KnowledgeSource.open(published) as source, KnowledgeSource.open(release) as before:
        assert source.by_title("Halvane Isles") == before.by_title("Halvane Isles") is not None


def test_the_release_is_there_byte_for_byte_and_was_not_touched(release: Path, tmp_path: Path) -> None:
    before = contents(release)
    assert main(["publish", str(release), "--output", str(tmp_path / "one"), *LICENCE]) == 0
    assert main(["publish", str(release), "--output", str(tmp_path / "other"), *LICENCE, "--copy"]) == 0
    assert contents(release) == before
    written = contents(tmp_path / "one")
    assert written == contents(tmp_path / "other")
    assert {name: content for name, content in written.items() if name not in ADDED} == before
    for name in ADDED:
        assert str(tmp_path).encode() not in written[name]
        assert str(release).encode() not in written[name]


def test_files_are_linked_where_that_is_possible(release: Path, tmp_path: Path) -> None:
    file = "pages/pages-00000-of-00001.parquet"
    for flags, is_linked in (([], True), (["--link"], True), (["--copy"], False)):
        folder = tmp_path / "-".join(["p", *flags])
        assert main(["publish", str(release), "--output", str(folder), *LICENCE, *flags]) == 0
        assert (folder / file).samefile(release / file) is is_linked


def test_without_links_there_are_copies_or_an_error(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_link(source: str, target: str) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.link", no_link)
    assert main(["publish", str(release), "--output", str(tmp_path / "linked"), *LICENCE, "--link"]) == 2
    assert "use --copy" in capsys.readouterr().err
    assert main(["publish", str(release), "--output", str(tmp_path / "linked"), *LICENCE]) == 0
    assert verified(tmp_path / "linked").is_sound


def test_card_and_croissant_say_where_it_lies_and_what_it_holds(published: Path) -> None:
    metadata = card_metadata(published)
    assert (metadata["language"], metadata["license"], metadata["size_categories"]) == (
        ["en"],
        "cc-by-sa-4.0",
        ["n<1K"],
    )
    assert [config["config_name"] for config in metadata["configs"] if config.get("default")] == ["pages"]
    card = (published / "README.md").read_text("utf-8")
    assert "103 pages read = 66 articles + 20 redirects + 15 other namespaces + 2 rejected" in card
    assert "| `anchors` | list of struct | internal links, ordered by element and start |" in card
    assert 'load_dataset("lab/miniwiki", "pages", split="train")' in card
    croissant = json.loads((published / "croissant.json").read_text("utf-8"))
    assert (croissant["url"], croissant["datePublished"]) == (
        "https://huggingface.co/datasets/lab/miniwiki",
        "2026-12-01",
    )
    sums = {resource["contentUrl"]: resource["sha256"] for resource in croissant["distribution"]}
    files = {name: content for name, content in contents(published).items() if name not in ADDED}
    assert sums == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


@pytest.mark.parametrize("base", ["javascript:alert(1)", "https://a/><script>"])
def test_what_a_manifest_has_for_an_address_becomes_a_link_of_the_web_or_none(
    release: Path, tmp_path: Path, base: str
) -> None:
    hostile = shutil.copytree(release, tmp_path / "hostile")
    dump = json.loads((hostile / "manifest.json").read_bytes())["dump"]
    seal(hostile, dump={**dump, "site": {**dump["site"], "base_url": base}})

    assert main(["publish", str(hostile), "--output", str(tmp_path / "out"), *LICENCE]) == 0

    assert "url" not in json.loads((tmp_path / "out" / "croissant.json").read_bytes())
    texts = [path.read_text("utf-8") for path in (tmp_path / "out").iterdir() if path.name in ADDED]
    assert [text for text in texts if base in text] == []


def test_the_citation_keeps_to_its_format(published: Path) -> None:
    """Source: https://github.com/citation-file-format/citation-file-format/blob/1.2.0/schema.json"""
    values = yaml.safe_load((published / "CITATION.cff").read_text("utf-8"))
    assert {"authors", "cff-version", "message", "title"} <= values.keys()
    assert values.keys() <= {
        *("abstract", "authors", "cff-version", "date-released", "identifiers", "keywords", "license", "message"),
        *("references", "title", "type", "url", "version"),
    }
    assert (values["cff-version"], values["type"], values["license"]) == ("1.2.0", "dataset", "CC-BY-SA-4.0")
    assert values["version"] == "2026.1.1"
    assert str(values["date-released"]) == "2026-12-01"
    assert all(
        {"type", "value"} <= identifier.keys() and identifier["type"] == "other" for identifier in values["identifiers"]
    )


def test_provenance_leads_from_the_files_to_the_inputs(published: Path) -> None:
    prov = json.loads((published / "prov.json").read_text("utf-8"))
    manifest = json.loads((published / "manifest.json").read_text("utf-8"))
    own = f"release:{manifest['manifest_sha256']}"
    derived = {
        derivation["prov:usedEntity"]
        for derivation in prov["wasDerivedFrom"].values()
        if derivation["prov:generatedEntity"] == own
    }
    assert derived == {f"sha256:{input_file['sha256']}" for input_file in manifest["inputs"]}
    named = {*prov["entity"], *prov["activity"], *prov["agent"]}
    relations = [
        relation for name in prov.keys() - {"prefix", "entity", "activity", "agent"} for relation in prov[name].values()
    ]
    assert {name for relation in relations for name in relation.values()} <= named
    assert {name.partition(":")[0] for name in named} <= prov["prefix"].keys()


@pytest.mark.slow
def test_wikidata_is_published_without_being_told_the_licence(tmp_path: Path) -> None:
    make(mini_wikidata.DUMP, output=tmp_path / "wikidata", max_rejects=mini_wikidata.MAX_REJECTS)
    assert main(["publish", str(tmp_path / "wikidata"), "--output", str(tmp_path / "out")]) == 0
    assert card_metadata(tmp_path / "out")["license"] == "cc0-1.0"
    check_published(tmp_path / "out", tmp_path / "cache")


def test_an_alignment_keeps_the_rights_of_its_data_set(release: Path, tmp_path: Path, in_this_process: None) -> None:
    records = write_records(tmp_path / "own.jsonl", [record("a", [evidence("nothing of it", title="Halvane Isles")])])
    map_mini(tmp_path / "aligned", release, "jsonl", records)
    assert main(["publish", str(tmp_path / "aligned"), "--output", str(tmp_path / "out"), *LICENCE]) == 0
    metadata = card_metadata(tmp_path / "out")
    assert (metadata["license"], metadata["license_link"]) == ("other", "LICENSE")
    assert "records of jsonl: none named; ask its owners" in (tmp_path / "out" / "LICENSE").read_text("utf-8")
    assert "license" not in yaml.safe_load((tmp_path / "out" / "CITATION.cff").read_text("utf-8"))
    assert verified(tmp_path / "out").is_sound


def test_a_dataset_that_was_aligned_in_two_ways_is_two(release: Path, tmp_path: Path, in_this_process: None) -> None:
    write_records(
        tmp_path / "own.jsonl", [record("a", [evidence("the capital is Port Sellick", title="Halvane Isles")])]
    )
    datasets = {
        name: {"dataset": "jsonl", "splits": {"dev": {"input": "own.jsonl"}}, **more}
        for name, more in (("jsonl", {}), ("by-elements", {"numbering": "elements"}))
    }
    (tmp_path / "all.yaml").write_text(yaml.safe_dump({"datasets": datasets}))
    config, output = str(tmp_path / "all.yaml"), str(tmp_path / "aligned")
    assert main(["map", "all", str(release), "--config", config, "--output", output]) == 0
    assert main(["publish", output, "--output", str(tmp_path / "out"), *LICENCE]) == 0
    files = {
        config_of_card["config_name"]: [file["path"] for file in config_of_card["data_files"]]
        for config_of_card in card_metadata(tmp_path / "out")["configs"]
    }
    for name in datasets:
        assert files[f"{name}-kilt"] == [f"hub/{name}-kilt/validation.parquet"]
        assert files[f"{name}-records"] == [f"{name}/dev/records/records-00000-of-00001.parquet"]


@pytest.mark.parametrize(("day", "is_known"), [("2023-06-06", False), ("2023-06-07", True)])
@pytest.mark.usefixtures("in_this_process")
def test_whoever_knows_the_day_of_a_dump_is_asked_where_no_revision_says_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, day: str, is_known: bool
) -> None:
    dump = tmp_path / "undated.xml"
    revisions = [revision_xml("a", timestamp=f"{at}T23:59:59Z") for at in ("2019-01-01", day)]
    dump.write_bytes(dump_xml([page_xml(n, f"P{n}", revisions=text) for n, text in enumerate(revisions, 1)]))
    build_mini(tmp_path / "kb", dump=dump, page_props=None)
    capsys.readouterr()
    assert main(["publish", str(tmp_path / "kb"), "--output", str(tmp_path / "out")]) == 0
    licence, said = (tmp_path / "out" / "LICENSE").read_text("utf-8"), capsys.readouterr().out
    assert "CC-BY-SA-4.0" in licence
    assert ("--licence" in licence) == ("--licence" in said) == (not is_known)


def test_what_cannot_be_published_is_said(release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(release, cut)
    (cut / "redirects" / "redirects-00000-of-00001.parquet").unlink()
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "notes.txt").write_text("mine")
    out = str(tmp_path / "out")
    for command, said in (
        ([str(cut), "--output", out, *LICENCE], "redirects-00000-of-00001.parquet is missing"),
        ([str(release), "--output", str(taken), *LICENCE], "the folder is not empty and was not left by a killed run"),
        ([str(tmp_path), "--output", out, *LICENCE], "no manifest.json"),
    ):
        assert main(["publish", *command]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    for flags, said in (
        (["--licence", "mine"], "--licence is mine. Choose one of "),
        (["--repo-id", "lab"], "--repo-id is lab. Write it like OWNER/NAME."),
        (["--date", "soon"], "--date is soon. Write it like 2026-12-01."),
        (["--link", "--copy"], "--link and --copy exclude each other"),
    ):
        assert main(["publish", str(release), "--output", out, *flags]) == 2
        assert said in capsys.readouterr().err


def test_a_run_that_was_killed_is_begun_anew(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("mapping.publish.folder.commit", killed)
        assert main(["publish", str(release), "--output", str(tmp_path / "out"), *LICENCE]) == 130
    assert not (tmp_path / "out" / "manifest.json").exists()
    assert main(["publish", str(release), "--output", str(tmp_path / "out"), *LICENCE]) == 0
    assert verified(tmp_path / "out").is_sound
