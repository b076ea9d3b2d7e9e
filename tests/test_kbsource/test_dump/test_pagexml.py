"""The XML of one page: what is read, what is rejected and why."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.dump.pagexml import PageAssembler, Revision, XmlPageReader, page_key
from kbsource.errors import RecordError
from kbsource.records import RawPage
from kbsource.site import Site
from kbsource.wikitext.markers import ANY_CONTROL
from tests.support.dumps import NAMESPACES, page_xml
from tests.support.examples import examples
from tests.support.growth import assert_linear

SITE = Site(namespaces=NAMESPACES)
PLAIN = page_xml(12, "Zürich & <co>", "PLACE", redirect="A &amp; 'b'#c").strip()


def with_text(element: str, *, ns: str = "0") -> bytes:
    """Gives a page whose ``<text>`` element is this."""
    return (
        f"<page><title>T</title><ns>{ns}</ns><id>1</id><revision><id>2</id><timestamp>2020-01-01T00:00:00Z</timestamp>"
        f"<contributor><ip>::1</ip></contributor>{element}</revision></page>"
    ).encode("utf-8", "surrogatepass")


def read(data: bytes) -> RawPage:
    """Reads a page as ``reader`` does."""
    head, revisions = XmlPageReader().read_page(data)
    assembler = PageAssembler(SITE, file="f", as_of=None, text_namespaces=None)
    best: Revision | None = None
    for revision in revisions:
        best = assembler.newer(best, revision)
    return assembler.assemble(head, best, has_later=False, offset=0)


def reason(data: bytes) -> tuple[str, str]:
    with pytest.raises(RecordError) as caught:
        read(data)
    return caught.value.reason, caught.value.detail


def test_a_page_as_exporters_write_it_is_read() -> None:
    page = read(PLAIN)
    assert (page.title, page.redirect_title, page.text) == ("Zürich & <co>", "A &amp; 'b'", "PLACE")


def test_attributes_are_read_in_linear_time() -> None:
    def work(n: int) -> None:
        attributes = " ".join(f'a{number}=""' for number in range(n))
        assert read(with_text(f"<text {attributes}>a</text>")).text == "a"

    assert_linear(work, 2_000)


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ('<text xml:space="preserve">a\n b </text>', "a\n b "),
        ("<text>&lt;&gt;&amp;&quot;</text>", '<>&"'),
        ("<text>&amp;lt;&amp;nbsp;</text>", "&lt;&nbsp;"),
        ("<text>&#039;&apos;&#65;&#x1F600;</text>", "''A😀"),
        ("<text><![CDATA[a <b> & c]]> d</text>", "a <b> & c d"),
        ("<text>a<!-- gone -->b</text>", "ab"),
        ("<text>a\r\nb\rc</text>", "a\nb\nc"),
        ("<text>a&#13;b&#xD;&#10;c</text>", "a\nb\nc"),
        ('<text bytes="0" />', ""),
        ('<text xml:space="preserve" />', ""),
        ("<text/>", ""),
        ("<text></text>", ""),
        ('<text id="5" bytes="0" />', ""),
        ('<text bytes="7" sha1="abc" xml:space="preserve">content</text>', "content"),
        ("<text>\ufffd\U0010ffff\u0085\u2028</text>", "\ufffd\U0010ffff\u0085\u2028"),
    ],
)
def test_texts_stand_for(element: str, text: str) -> None:
    assert read(with_text(element)).text == text


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ('<text deleted="deleted" />', "text_deleted"),
        ('<text bytes="7" sha1="" deleted="deleted" xml:space="preserve" />', "text_deleted"),
        ('<text id="5" bytes="7" />', "text_missing"),
        ('<text bytes="123" sha1="abc" location="tt:5" id="5" />', "text_missing"),
        ('<text id="5" />', "text_missing"),
        ("", "missing_field"),
        ("<text>&nbsp;</text>", "xml_entity"),
        ("<text>a & b</text>", "malformed_xml"),
        ("<text>a < b</text>", "malformed_xml"),
        ("<text>a ]]> b</text>", "malformed_xml"),
        ("<text>a<i>b</i>c</text>", "malformed_xml"),
        ("<text>a</txet>", "malformed_xml"),
        ('<text bytes="1" bytes="1">a</text>', "malformed_xml"),
        ("<text>a\x07b</text>", "invalid_characters"),
        ("<text>a\ufffeb</text>", "invalid_characters"),
        ("<text>a&#0;b</text>", "invalid_characters"),
        ("<text>a&#xFFFF;b</text>", "invalid_characters"),
        ("<text>a\ud800b</text>", "invalid_characters"),
    ],
)
def test_texts_that_are_not_there_or_broken_are_rejected(element: str, expected: str) -> None:
    assert reason(with_text(element))[0] == expected


@pytest.mark.parametrize("element", ['<text deleted="deleted" />', '<text id="5" bytes="7" />', ""])
def test_absent_texts_of_other_namespaces_are_empty(element: str) -> None:
    assert read(with_text(element, ns="10")).text == ""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (b"<title>Z\xc3\xbcrich &amp; &lt;co&gt;</title>", b"", ("missing_field", "title")),
        (b"Z\xc3\xbcrich &amp; &lt;co&gt;", b"", ("missing_field", "title")),
        (b"<id>12</id>", b"", ("missing_field", "id")),
        (b"<id>120</id>", b"", ("missing_field", "revision id")),
        (b"<timestamp>2020-01-01T00:00:00Z</timestamp>", b"", ("missing_field", "timestamp")),
        (b"<id>12</id>", b"<id>twelve</id>", ("invalid_field", "id is 'twelve'")),
        (b"<id>12</id>", b"<id></id>", ("invalid_field", "id is ''")),
        (b"<id>120</id>", b"<id>-120</id>", ("invalid_field", "revision id is '-120'")),
        (b"<ns>0</ns>", b"<ns>main</ns>", ("invalid_field", "ns is 'main'")),
        (b"2020-01-01T00:00:00Z", b"yesterday", ("invalid_field", "timestamp is 'yesterday'")),
        (
            b"2020-01-01T00:00:00Z",
            b"2019-02-31T00:00:00Z",
            ("invalid_field", "timestamp is '2019-02-31T00:00:00Z': day is out of range for month"),
        ),
    ],
)
def test_missing_and_wrong_fields_are_named(old: bytes, new: bytes, expected: tuple[str, str]) -> None:
    assert old in PLAIN
    assert reason(PLAIN.replace(old, new)) == expected


def test_a_page_without_revision_is_rejected() -> None:
    assert reason(b"<page><title>A</title><id>1</id></page>") == ("missing_field", "revision")


@pytest.mark.parametrize(
    ("title", "namespace"), [("User:A", 2), ("user talk:A", 3), ("A: the movie", 0), ("Template:X", 10)]
)
def test_a_missing_ns_is_told_by_the_title(title: str, namespace: int) -> None:
    assert read(page_xml(1, title, "x", ns=None).strip()).namespace == namespace


@pytest.mark.parametrize(
    ("old", "new", "attribute", "value"),
    [
        (b"<model>wikitext</model>", b"<model>css</model>", "model", "css"),
        (b"<model>wikitext</model>\n      <format>text/x-wiki</format>", b"", "model", "wikitext"),
        (b"<revision>", b"<revision><parentid>0</parentid>", "parent_revision_id", None),
        (b"<id>120</id>", b"<id>120</id><parentid>9</parentid>", "parent_revision_id", 9),
        (b"<id>120</id>", b"<id> 120\n</id>", "revision_id", 120),
        (b"<redirect title=\"A &amp;amp; 'b'#c\" />", b"", "redirect_title", None),
        (b"<redirect title=\"A &amp;amp; 'b'#c\" />", b"<redirect />", "redirect_title", ""),
        (b"'b'", b"&#039;b&#039;", "redirect_title", "A &amp; 'b'"),
        (b"<page>", b'<page xmlns="http://www.mediawiki.org/xml/export-0.10/">', "page_id", 12),
        (b"<sha1>", b"<content><role>x</role><text>other slot</text></content><sha1>", "text", "PLACE"),
        (b"<contributor>", b'<contributor deleted="deleted" /><x>', "page_id", None),
        (b"<comment>", b"<minor /><comment>", "text", "PLACE"),
        (b"</page>", b"<upload><timestamp>x</timestamp></upload></page>", "timestamp", "2020-01-01T00:00:00Z"),
    ],
)
def test_elements_of_all_schemas_are_understood(old: bytes, new: bytes, attribute: str, value: object) -> None:
    assert old in PLAIN
    data = PLAIN.replace(old, new)
    if new.endswith(b"<x>"):
        assert reason(data)[0] == "malformed_xml"
    else:
        assert getattr(read(data), attribute) == value


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (b"<page><title>A</title><id>7</id><revision><id>8</id>", "7"),
        (b"<page><title>A &amp; B</title><revision><id>8</id>", "A & B"),
        (b"<page><revision><id>8</id>", ""),
        (b"<page><title>A</ti", "A"),
        (b"<page><ti", ""),
    ],
)
def test_the_key_of_a_broken_page_is_what_its_head_still_tells(data: bytes, key: str) -> None:
    assert page_key(data) == key


REASONS = {
    *("", "invalid_characters", "xml_entity", "malformed_xml", "missing_field", "invalid_field"),
    *("text_deleted", "text_missing"),
}
_TOKENS = [
    b"<page>", b"</page>", b"<title>", b"</title>", b"<ns>0</ns>", b"<id>1</id>", b"<revision>", b"</revision>",
    b"<timestamp>2020-01-01T00:00:00Z</timestamp>", b"<timestamp>2020-13-99T99:00:00Z</timestamp>", b"<minor />",
    b"<contributor><ip>1</ip></contributor>", b"<comment>x</comment>", b"<text>", b"</text>", b"<text />",
    b'<text bytes="3">', b'<text bytes="3" bytes="3">', b'<text id="1"/>', b'<text deleted="deleted" />',
    b'<text xml:space="preserve">', b'<text unknown="1">', b"<sha1>ab</sha1>", b"<sha1 />", b"\n  ", b"\r\n",
    b"<redirect />", b'<redirect title="A &quot;B&quot;#C" />', b'<redirect title="&bad;" />',
    b"<parentid>0</parentid>",
    b"<model>wikitext</model><format>text/x-wiki</format>", b"<model>a&amp;b</model><format>f</format>",
    b"<restrictions>edit=x</restrictions>", b"<origin>5</origin>", b"&", b"&lt;", b"&amp;lt;", b"&#039;", b"&#10;",
    b"&#0;", b"&nbsp;", b"&lt", b"]]>", b"<![CDATA[", b"<!-- x -->", b"A", b"Z\xc3\xbc", b"\xff", b"\x00", b"\x0c",
    b"\xef\xbf\xbe", b"\xef\xbf\xbd", b"<b>", b">", b'"', b"<id>007</id>", b"<id>12345678901234567890</id>",
]  # fmt: skip


@given(
    edits=st.lists(
        st.tuples(st.integers(0, len(PLAIN)), st.integers(0, 12), st.sampled_from([*_TOKENS, b""])), max_size=3
    )
)
@settings(max_examples=examples(250))
def test_an_edited_page_is_read_or_rejected(edits: list[tuple[int, int, bytes]]) -> None:
    data = PLAIN
    for place, n_removed, token in edits:
        data = data[:place] + token + data[place + n_removed :]
    try:
        page = read(data)
    except RecordError as error:
        reason = error.reason
    else:
        reason = "" if not ANY_CONTROL.search(page.title + page.text) else "control_character"
    assert reason in REASONS
