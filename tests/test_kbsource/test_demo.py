"""The embedded mini-wiki: its files agree, its numbers are right, its features are all there."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from tests.support import make_demo as make
from tests.support import mini_wiki
from tests.support.mini_wiki_features import FEATURES

XML = mini_wiki.XML.read_bytes()
HEAD, PAGES, FOOT = make.split_xml(XML)
DEMO_PAGES = [make.parse_page(page) for page in PAGES]
TEXTS = {page.page_id: page.text for page in DEMO_PAGES}
ARTICLE_TEXTS = {
    page.page_id: page.text
    for page in DEMO_PAGES
    if page.namespace == 0 and not page.is_redirect and page.page_id not in mini_wiki.REJECTED_PAGE_IDS
}


@pytest.mark.parametrize("feature", FEATURES)
def test_an_article_has(feature: str) -> None:
    assert any(re.search(FEATURES[feature], text) for text in ARTICLE_TEXTS.values())


@pytest.mark.parametrize("name", sorted(make.derived_files(XML)))
def test_derived_file_is_what_make_writes(name: str) -> None:
    made = make.derived_files(XML)[name]
    committed = (mini_wiki.FOLDER / name).read_bytes()
    if name.endswith(".gz"):  # builds of zlib differ in how they compress, not in what they hold
        assert gzip.decompress(committed) == gzip.decompress(made)
        assert committed[4:8] == b"\0\0\0\0", "the gzip header holds a time"
    elif name.endswith("sums.txt"):
        assert [line.split()[1] for line in committed.splitlines()] == [line.split()[1] for line in made.splitlines()]
    else:
        assert committed == made


@pytest.mark.parametrize(("file", "algorithm"), [(mini_wiki.MD5SUMS, "md5"), (mini_wiki.SHA1SUMS, "sha1")])
def test_checksums_are_those_of_the_files(file: Path, algorithm: str) -> None:
    lines = file.read_text("ascii").splitlines()
    found = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert found == {
        path.name: hashlib.new(algorithm, path.read_bytes()).hexdigest()
        for path in (mini_wiki.XML, mini_wiki.MULTISTREAM, mini_wiki.INDEX, mini_wiki.PAGE_PROPS)
    }


def test_bytes_and_sha1_of_every_text_are_real() -> None:
    assert make.stamp(XML) == XML


def test_stamp_repairs_an_edited_text() -> None:
    edited = XML.replace(b"I watch the tide.", b"I watch the &lt;tide&gt; no more.")
    stamped = make.stamp(edited)
    digest = make.base36_sha1(b"I watch the <tide> no more.").encode()
    assert b'<text bytes="27" sha1="%b" xml:space="preserve">I watch the &lt;tide' % digest in stamped
    assert b"      <sha1>%b</sha1>\n" % digest in stamped
    assert make.stamp(stamped) == stamped


def test_base36_sha1_of_nothing_is_the_one_every_dump_has_for_an_empty_page() -> None:
    assert make.base36_sha1(b"") == "phoiac9h4m842xq45sp7s6u21eteeq1"


@pytest.mark.parametrize(
    "xml", [b"<mediawiki>\n</mediawiki>\n", HEAD + PAGES[0] + b"<!-- lost -->\n" + PAGES[1] + FOOT]
)
def test_split_xml_refuses_what_it_cannot_cut(xml: bytes) -> None:
    with pytest.raises(SetupError):
        make.split_xml(xml)


def test_multistream_is_a_head_ten_pages_each_and_a_foot() -> None:
    streams: list[tuple[int, bytes]] = []
    data = mini_wiki.MULTISTREAM.read_bytes()
    while data:
        decompressor = bz2.BZ2Decompressor()
        offset = mini_wiki.MULTISTREAM.stat().st_size - len(data)
        streams.append((offset, decompressor.decompress(data)))
        data = decompressor.unused_data
    assert b"".join(content for _, content in streams) == XML
    assert streams[0][1] == HEAD
    assert streams[-1][1] == FOOT == b"</mediawiki>\n"
    counts = [content.count(b"  <page>\n") for _, content in streams[1:-1]]
    assert counts[:-1] == [10] * (len(counts) - 1)
    assert 0 < counts[-1] < 10

    index = bz2.decompress(mini_wiki.INDEX.read_bytes()).decode().splitlines()
    expected = [
        f"{offset}:{page_id}:{title}"
        for offset, content in streams
        for title, page_id in re.findall(r"<title>(.*)</title>\n.*\n    <id>(\d+)<", content.decode())
    ]
    assert index == expected


def test_every_page_is_well_formed_but_the_broken_one() -> None:
    broken: list[int] = []
    for page in DEMO_PAGES:
        try:
            ET.fromstring(page.xml)
        except ET.ParseError:
            broken.append(page.page_id)
    assert broken == [mini_wiki.BROKEN_PAGE_ID]
    ET.fromstring(HEAD + FOOT)


def test_the_broken_page_stands_in_the_middle() -> None:
    position = [page.page_id for page in DEMO_PAGES].index(mini_wiki.BROKEN_PAGE_ID)
    assert len(PAGES) // 3 < position < len(PAGES) * 2 // 3


def test_page_ids_and_titles_are_unique_and_ids_ascend() -> None:
    ids = [page.page_id for page in DEMO_PAGES]
    assert ids == sorted(set(ids))
    assert len({page.title for page in DEMO_PAGES}) == len(ids)


def test_counts_are_those_that_end_to_end_tests_rely_on() -> None:
    main = [page for page in DEMO_PAGES if page.namespace == 0]
    redirects = [page.title for page in main if page.is_redirect]
    assert len(DEMO_PAGES) == mini_wiki.N_PAGES
    assert len(ARTICLE_TEXTS) == mini_wiki.N_ARTICLES
    assert len(redirects) == mini_wiki.N_REDIRECTS
    assert len(DEMO_PAGES) - len(main) == mini_wiki.N_OTHER_NAMESPACES
    assert len(mini_wiki.REJECTED_PAGE_IDS) == mini_wiki.N_REJECTED
    assert mini_wiki.N_PAGES == (
        mini_wiki.N_ARTICLES + mini_wiki.N_REDIRECTS + mini_wiki.N_OTHER_NAMESPACES + mini_wiki.N_REJECTED
    )
    assert sorted(redirects) == sorted(mini_wiki.REDIRECTS)
    assert Counter(fact.status for fact in mini_wiki.REDIRECTS.values()) == mini_wiki.N_REDIRECTS_BY_STATUS
    assert Counter(page.namespace for page in DEMO_PAGES if page.namespace) == mini_wiki.N_PAGES_BY_NAMESPACE


def test_redirect_facts_follow_from_the_texts() -> None:
    targets: dict[str, str] = {}
    for page in DEMO_PAGES:
        if page.is_redirect:
            inside = re.search(r"\[\[(.*?)\]\]", page.text)
            assert inside is not None
            written = re.split(r"[#|]", inside[1].replace("&amp;", "&").replace("_", " "))[0].strip(" :")
            targets[page.title] = written[0].upper() + written[1:]
    articles = {page.title for page in DEMO_PAGES if page.page_id in ARTICLE_TEXTS}
    for title, fact in mini_wiki.REDIRECTS.items():
        seen, here = [title], targets[title]
        while here in targets and here not in seen:
            seen.append(here)
            here = targets[here]
        if here in targets:
            assert fact.status == "loop"
        elif here in articles:
            assert (fact.status, fact.final_title) == ("ok" if len(seen) == 1 else "double", here)
        else:
            assert fact.status == ("cross_namespace" if ":" in here else "missing_target")


def test_page_props_has_the_rows_and_the_form_of_a_real_table() -> None:
    sql = gzip.decompress(mini_wiki.PAGE_PROPS.read_bytes()).decode()
    rows = re.findall(r"[ ,]\((\d+),'(\w+)','((?:[^'\\]|\\.)*)',(NULL|-?\d+)\)", sql)
    items = {int(page): value for page, name, value, _ in rows if name == "wikibase_item"}
    articles = set(ARTICLE_TEXTS)
    assert sql.count("INSERT INTO `page_props` VALUES ") == 2
    assert sql.count("`,`") == 4, "keys name their columns"
    claimant = mini_wiki.QID_CLAIMANT_PAGE_ID
    assert items[claimant] == items[mini_wiki.QID_OWNER_PAGE_ID]
    assert {page: items.get(page) for page in articles - {claimant}} == {
        page: mini_wiki.expected_qid(page) for page in articles - {claimant}
    }
    assert set(items) - set(TEXTS) == {make.VANISHED_PAGE_ID}
    assert [int(page) for page, name, _, _ in rows if name == "disambiguation"] == list(
        mini_wiki.DISAMBIGUATION_PAGE_IDS
    )
    assert ("87", "defaultsort", "Orla\\'s Day, Saint", "NULL") in rows
    assert ("102", "defaultsort", "Tin\\\\Salt", "NULL") in rows
    assert ("54", "displaytitle", "MV <i>Patient Heron</i>", "NULL") in rows


def test_titles_hold_every_kind_of_sign() -> None:
    titles = [page.title for page in DEMO_PAGES if page.namespace == 0]
    for sign in "/,'&+%?():-.":
        assert any(sign in title for title in titles), sign
    for first, last in (("\u0370", "\u03ff"), ("\u0600", "\u06ff"), ("\u3040", "\u9fff"), ("\u00c0", "\u00ff")):
        assert any(first <= character <= last for title in titles for character in title), first
