"""The KILT form of a page: texts, markers, offsets, keys; and page A beside the record that KILT released."""

from __future__ import annotations

import difflib
import io
import json
from typing import Any

import pytest
from msgspec import structs

from kbsource.dump.ranges import plan_ranges
from kbsource.dump.reader import read_range
from kbsource.dump.siteinfo import read_header
from kbsource.index.title_index import Resolution
from kbsource.kilt import KiltForm, kilt_record, kilt_texts, section_name, write_kilt
from kbsource.pages.articles import PageParser, resolve_page
from kbsource.records import Page, RawPage
from kbsource.release.pages.reading import ItemTerms
from kbsource.site import Site
from tests.support.real_data import real_path


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ((), "Section::::Abstract."),
        (("Plot",), "Section::::Plot."),
        (("Use in writing systems", "English"), "Section::::Use in writing systems.:English."),
        (("Why?", "Now!", "Inc."), "Section::::Why?:Now!:Inc.."),
    ],
)
def test_section_name(path: tuple[str, ...], name: str) -> None:
    assert section_name(path) == name


SITE = Site(base_url="https://en.wikipedia.org/wiki/Main_Page", dbname="enwiki")


class Titles:
    """Stands for a title index that knows one article and one redirect to it."""

    def resolve(self, title: str) -> Resolution:
        if title in ("Known", "Alias"):
            return Resolution("Known", 7, "Part" if title == "Alias" else None, int(title == "Alias"), "ok")
        return Resolution(title, None, None, 0, "unknown")

    def redirects_to(self, page_id: int) -> tuple[str, ...]:
        return ()


def page_of(wikitext: str, title: str = "T") -> Page:
    raw = RawPage(3, 0, title, None, 11, None, "2020-01-02T03:04:05Z", "wikitext", wikitext, "f", 0)
    return resolve_page(PageParser(SITE).parse(raw), Titles(), None, SITE)


def test_headings_carry_their_path_and_a_full_stop_unless_they_end_in_a_mark() -> None:
    texts, _ = kilt_texts(page_of("lead\n== A ==\n=== What? ===\nx\n=== No! ===\ny\n== B ==\nz"))
    assert texts == [
        "T\n",
        "lead\n",
        "Section::::A.\n",
        "Section::::A.:What?\n",
        "x\n",
        "Section::::A.:No!\n",
        "y\n",
        "Section::::B.\n",
        "z\n",
    ]


def test_headings_without_content_are_left_out_but_not_those_of_filled_subsections() -> None:
    texts, _ = kilt_texts(page_of("== A ==\n== B ==\n=== C ===\n=== D ===\nx\n=== E ===\n== F =="))
    assert texts == ["T\n", "Section::::B.\n", "Section::::B.:D.\n", "x\n"]


def test_items_have_their_marker_and_indented_lines_are_left_out() -> None:
    texts, _ = kilt_texts(page_of("# a\n# b\n## c\n* d\n:e\n; f\n\n(only this)\n\n...\n\n(a) b (c)"))
    assert texts == [
        "T\n",
        "BULLET::::1. a\n",
        "BULLET::::2. b\n",
        "BULLET::::1. c\n",
        "BULLET::::- d\n",
        "BULLET::::- f\n",
        "(a) b (c)\n",
    ]


def test_anchors_slice_to_their_text_and_name_the_article_they_lead_to() -> None:
    record = kilt_record(page_of("see [[known|it]]\n== On [[alias]] ==\n* the [[Other thing#A b|other]]\n:[[gone]]"))
    texts = record["text"]
    for anchor in record["anchors"]:
        assert texts[anchor["paragraph_id"]][anchor["start"] : anchor["end"]] == anchor["text"]
    assert record["anchors"] == [
        {
            "text": "it",
            "href": "known",
            "paragraph_id": 1,
            "start": 4,
            "end": 6,
            "wikipedia_title": "Known",
            "wikipedia_id": "7",
        },
        {
            "text": "alias",
            "href": "alias",
            "paragraph_id": 2,
            "start": 14,
            "end": 19,
            "wikipedia_title": "Known",
            "wikipedia_id": "7",
        },
        {"text": "other", "href": "Other%20thing%23A%20b", "paragraph_id": 3, "start": 16, "end": 21},
    ]


def test_the_record_has_the_released_keys_in_order_and_string_ids() -> None:
    record = kilt_record(page_of("x [[Category:B]][[Category:A, c]]"))
    assert list(record) == ["_id", "wikipedia_id", "wikipedia_title", "text", "anchors", "categories", "history"]
    assert (record["_id"], record["wikipedia_id"], record["categories"]) == ("3", "3", "B,A, c")
    assert record["history"] == {
        "revid": 11,
        "timestamp": "2020-01-02T03:04:05Z",
        "parentid": 0,
        "pageid": 3,
        "url": "https://en.wikipedia.org/w/index.php?title=T&oldid=11",
    }
    documented = kilt_record(page_of("x"), form=KiltForm(has_pre_dump=True))["history"]
    assert list(documented) == ["revid", "timestamp", "parentid", "pre_dump", "pageid", "url"]
    assert documented["pre_dump"] is True


def test_links_to_redirects_can_stay_without_their_article() -> None:
    page = page_of("[[known]], [[:Known#x|it]], [[alias]], [[gone]]")
    resolved = [anchor.get("wikipedia_id") for anchor in kilt_record(page)["anchors"]]
    direct = [
        anchor.get("wikipedia_id") for anchor in kilt_record(page, form=KiltForm(resolves_redirects=False))["anchors"]
    ]
    assert (resolved, direct) == (["7", "7", "7", None], ["7", "7", None, None])


def test_rows_of_the_hub_have_a_value_for_everything() -> None:
    row = kilt_record(page_of("see [[known|it]] or [[gone]]"), form=KiltForm(is_hub=True))
    assert row["kilt_id"] == row["wikipedia_id"] == "3"
    assert row["text"] == {"paragraph": ["T\n", "see it or gone\n"]}
    assert row["anchors"] == {
        "paragraph_id": [1, 1],
        "start": [4, 10],
        "end": [6, 14],
        "text": ["it", "gone"],
        "href": ["known", "gone"],
        "wikipedia_title": ["Known", ""],
        "wikipedia_id": ["7", ""],
    }
    assert row["wikidata_info"] == {
        **dict.fromkeys(("description", "enwikiquote_title", "wikidata_id", "wikidata_label", "wikipedia_title"), ""),
        "aliases": {"alias": []},
    }
    assert (row["history"]["pre_dump"], row["history"]["parentid"]) == (False, 0)


def test_the_address_of_a_revision_has_the_title_percent_encoded() -> None:
    url = "https://en.wikipedia.org/w/index.php?title=AC%2FDC_%26_title%3D&oldid=11"
    page = structs.replace(page_of("x"), title="AC/DC & title=", url=url)
    assert kilt_record(page)["history"]["url"] == (
        "https://en.wikipedia.org/w/index.php?title=AC/DC%20%26%20title%3D&oldid=11"
    )


@pytest.mark.parametrize(
    ("terms", "info"),
    [
        pytest.param(None, {}, id="no table"),
        pytest.param(ItemTerms(None, None, (), False), {}, id="Wikidata has no such item"),
        pytest.param(
            ItemTerms("t", "a letter", ("tee", "T"), True),
            {"wikidata_label": "t", "description": "a letter", "aliases": ["tee", "T"], "wikipedia_title": "T"},
            id="all",
        ),
        pytest.param(
            ItemTerms("t", None, (), False), {"wikidata_label": "t", "aliases": None}, id="by page_props, a label alone"
        ),
        pytest.param(ItemTerms(None, None, (), True), {"aliases": None, "wikipedia_title": "T"}, id="a sitelink alone"),
    ],
)
def test_wikidata_info_has_what_is_known_of_the_item(terms: ItemTerms | None, info: dict[str, Any]) -> None:
    record = kilt_record(structs.replace(page_of("x"), qid="Q9"), terms)
    assert list(record["wikidata_info"].items()) == [("wikidata_id", "Q9"), *info.items()]
    assert list(record)[-2:] == ["wikidata_info", "history"]
    assert "wikidata_info" not in kilt_record(page_of("x"), terms)


def test_one_json_object_a_line() -> None:
    sink = io.BytesIO()
    assert write_kilt([page_of("a\n\nb"), page_of("c", "Ü")], sink) == 2
    lines = sink.getvalue().splitlines()
    assert [json.loads(line)["wikipedia_title"] for line in lines] == ["T", "Ü"]


def test_page_a_has_the_sections_of_the_released_record_and_most_of_its_paragraphs() -> None:
    """KILT's page A is of July 2019, the dump's of April 2016: three years of edits lie between them.

    Beside those edits the texts differ in two ways. KILT puts italics in straight double quotes, which MediaWiki does
    not show; here they are plain. KILT lost what templates say (``the letter  represents``); here it stands.
    """
    dump = str(real_path("dumps/gensim_enwiki-p10p30302-shortened.xml.bz2"))
    released = json.loads(real_path("kilt/knowledgesource_A.jsonl").read_text("utf-8").splitlines()[0])
    site = read_header(dump).site
    (dump_range,) = plan_ranges([dump], range_bytes=1 << 40)
    raw = next(
        page
        for page in read_range(dump_range, site, text_namespaces=frozenset({0}))
        if isinstance(page, RawPage) and page.title == "A" and page.namespace == 0
    )
    record = kilt_record(resolve_page(PageParser(site).parse(raw), Titles(), None, site))
    assert (record["_id"], record["wikipedia_title"]) == (released["_id"], released["wikipedia_title"])
    assert set(released) - {"wikidata_info"} == set(record)

    def sections(texts: list[str]) -> list[str]:
        return [text for text in texts if text.startswith("Section::::")]

    # The works that the section "References" lists by templates are read here; in the released record it is empty.
    texts = record["text"]
    first = texts.index("Section::::References.\n")
    last = next(n for n in range(first + 1, len(texts)) if texts[n].startswith("Section::::"))
    texts = [*texts[:first], *texts[last:]]
    assert sections(texts) == sections(released["text"])

    old = [text.replace('"', "") for text in released["text"]]
    alike = [text for text in texts if difflib.get_close_matches(text.replace('"', ""), old, n=1, cutoff=0.75)]
    assert len(alike) >= 0.85 * len(texts)
    hrefs = {anchor["href"].replace("_", "%20") for anchor in released["anchors"]}
    shared = [anchor for anchor in record["anchors"] if anchor["href"].replace("_", "%20") in hrefs]
    assert len(shared) >= 0.6 * len(record["anchors"])
    for anchor in record["anchors"]:
        assert record["text"][anchor["paragraph_id"]][anchor["start"] : anchor["end"]] == anchor["text"]
