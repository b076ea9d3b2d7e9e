"""Reading ranges of a dump: every split gives what one sequential reading gives, damage included."""

from __future__ import annotations

import bz2
import codecs
import lzma
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.dump.compressed.damage import Damage
from kbsource.dump.compressed.streams import Compression, iter_pieces
from kbsource.dump.ranges import plan_ranges
from kbsource.dump.reader import read_range
from kbsource.dump.siteinfo import read_header
from kbsource.errors import SetupError
from kbsource.records import BadRecord, RawPage
from tests.support.dumps import (
    FOOTER,
    PACKS,
    STREAMED,
    dump_xml,
    flip,
    header_xml,
    in_pieces,
    multistream,
    one_stream,
    page_xml,
    revision_xml,
    stored,
)
from tests.support.examples import examples

HISTORY = "".join(
    revision_xml(f"version {number} " * number, revision_id=number, timestamp=f"20{number:02}-01-01T00:00:00Z")
    for number in (3, 12, 7, 20, 1)
)
GOOD = [
    page_xml(1, "Alan Turing", "Alan '''Turing''' & <ref>x</ref> [[Ёлка]] “quoted” " * 3),
    page_xml(2, "AT&T", "", redirect="AT&T Corp.#History"),
    page_xml(3, "Talk:Zürich", "Über\n\nuns " * 20, ns=1),
    page_xml(5, "Template:X", "{{{1|<noinclude>}}}", ns=10),
]
MIXED = [
    GOOD[0],
    page_xml(8, "History", revisions=HISTORY),
    GOOD[1],
    b"  <page><title>Cut</title><ns>0</ns><id>99</id><revision><id>1</id>\n",
    page_xml(9, "Headless", "x").replace(b"<page>", b"<pge>"),
    GOOD[2],
    page_xml(11, "Entity", "x").replace(b">x<", b">&nbsp;<"),
    page_xml(12, "Mismatch", "x").replace(b"</comment>", b"</remark>"),
    page_xml(13, "Stub").replace(b'<text xml:space="preserve" />', b'<text bytes="12" id="5" />'),
    GOOD[3],
    page_xml(14, "Last", "The end."),
]
XML = dump_xml(MIXED)
_CUTS = [0, 90, 700, 705, 1300, 2200, 2202, 3000, 3900, len(XML)]
FORMS = {
    "plain": XML,
    "one_stream": one_stream([XML[a:b] for a, b in pairwise(_CUTS)]),
    "multistream": multistream([(index, "", page) for index, page in enumerate(MIXED)])[0],
    "streams_cut_anywhere": b"".join(bz2.compress(XML[a : a + 211]) for a in range(0, len(XML), 211)),
}
PATH = "dumps/enwiki-20260101-pages-articles.xml"
Record = RawPage | BadRecord


def read(
    data: bytes,
    cuts: tuple[int, ...] | list[int] = (),
    *,
    read_bytes: int | None = None,
    as_of: str | None = None,
    text_namespaces: frozenset[int] | None = None,
    whole_bytes: int = 1 << 20,
    max_bytes: int = 1 << 20,
    on_damage: Callable[[int], None] | None = None,
) -> list[Record]:
    """Reads the data as one file in the ranges that the cuts make."""
    stored({PATH: data})
    site = read_header(PATH).site
    (whole,) = plan_ranges([PATH], range_bytes=1 << 40)
    bounds = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    found: list[Record] = []
    for start, end in pairwise(bounds):
        found += read_range(
            replace(whole, start=start, end=end),
            site,
            files=in_pieces(read_bytes),
            as_of=as_of,
            text_namespaces=text_namespaces,
            on_damage=on_damage,
            whole_bytes=whole_bytes,
            max_bytes=max_bytes,
        )
    return found


def pages(records: list[Record]) -> list[RawPage]:
    return [record for record in records if isinstance(record, RawPage)]


def reasons(records: list[Record]) -> list[tuple[str, str]]:
    return [(record.reason, record.key) for record in records if isinstance(record, BadRecord)]


@pytest.mark.slow  # every split
@given(
    form=st.sampled_from(sorted(FORMS)),
    cuts=st.lists(st.integers(0, 1 << 14), max_size=6),
    read_bytes=st.sampled_from([None, 16, 100, 1000]),
    whole_bytes=st.sampled_from([150, 700, 1 << 20]),
    max_bytes=st.sampled_from([400, 900, 1 << 20]),
    damage=st.one_of(
        st.none(),
        st.tuples(st.sampled_from(["flip", "truncate"]), st.integers(0, 1 << 14)),
        st.tuples(st.just("append"), st.integers(1, 40)),
    ),
)
@settings(max_examples=examples(120))
def test_the_ranges_of_any_split_give_what_one_range_gives(
    form: str, cuts: list[int], read_bytes: int | None, whole_bytes: int, max_bytes: int, damage: tuple[str, int] | None
) -> None:
    data = FORMS[form]
    if damage is not None:
        kind, number = damage
        keep = data.find(b"<page>") + 6 if form == "plain" else 14  # what is no dump any more is another matter
        place = max(number % len(data), keep)
        data = {"flip": flip(data, place), "truncate": data[:place], "append": data + b"\x80" * number}[kind]
    limits = {"whole_bytes": whole_bytes, "max_bytes": max_bytes}
    try:
        expected = read(data, **limits)
    except SetupError:
        return  # so little is left that it is no dump
    assert read(data, cuts, read_bytes=read_bytes, **limits) == expected


@pytest.mark.parametrize("form", FORMS)
def test_a_range_reports_exactly_its_bytes_as_progress(form: str) -> None:
    stored({PATH: FORMS[form]})
    site = read_header(PATH).site
    for part in plan_ranges([PATH], range_bytes=700):
        steps: list[int] = []
        list(read_range(part, site, files=in_pieces(100), on_progress=steps.append))
        assert sum(steps) == part.end - part.start
        assert min(steps) > 0


def test_offsets_say_where_a_page_begins() -> None:
    for page in pages(read(XML)):
        assert XML.startswith(b"<page", page.offset)
    blocks = FORMS["multistream"]
    for page in pages(read(blocks)):
        assert blocks.startswith(b"1AY&SY", page.offset)
        assert f"<id>{page.page_id}</id>".encode() in bz2.decompress(b"BZh9" + blocks[page.offset :])


def test_other_text_namespaces_change_nothing_but_texts() -> None:
    everything = read(XML)
    some = read(XML, text_namespaces=frozenset({0}))
    assert reasons(some) == reasons(everything)
    for page, other in zip(pages(some), pages(everything), strict=True):
        assert page.text == (other.text if other.namespace == 0 else "")
        assert (page.page_id, page.title, page.revision_id, page.offset) == (
            other.page_id,
            other.title,
            other.revision_id,
            other.offset,
        )


@pytest.mark.parametrize("whole_bytes", [100, 1 << 20], ids=["by_revisions", "whole"])
@pytest.mark.parametrize(
    ("as_of", "revision_id"),
    [(None, 20), ("2019-12-31T00:00:00Z", 12), ("2012-01-01T00:00:00Z", 12), ("2001-01-01T00:00:00Z", 1)],
)
def test_of_a_history_the_newest_revision_not_after_as_of_is_taken(
    whole_bytes: int, as_of: str | None, revision_id: int
) -> None:
    (page,) = pages(read(dump_xml([page_xml(8, "H", revisions=HISTORY)]), as_of=as_of, whole_bytes=whole_bytes))
    assert page.revision_id == revision_id
    assert page.text == f"version {revision_id} " * revision_id


@pytest.mark.parametrize("whole_bytes", [100, 1 << 20], ids=["by_revisions", "whole"])
@pytest.mark.parametrize(
    ("as_of", "redirect"), [(None, "A"), ("2020-01-01T00:00:00Z", "A"), ("2019-12-31T00:00:00Z", None)]
)
def test_a_redirect_element_tells_of_the_newest_revision_alone(
    whole_bytes: int, as_of: str | None, redirect: str | None
) -> None:
    data = dump_xml([page_xml(8, "H", redirect="A", revisions=HISTORY)])
    (page,) = pages(read(data, as_of=as_of, whole_bytes=whole_bytes))
    assert page.redirect_title == redirect


def test_of_revisions_of_one_second_the_higher_id_is_taken() -> None:
    texts = {5: "old", 6: "new", 4: "older"}
    revisions = "".join(revision_xml(text, revision_id=number) for number, text in texts.items())
    (page,) = pages(read(dump_xml([page_xml(8, "H", revisions=revisions)])))
    assert page.text == "new"


@pytest.mark.parametrize("whole_bytes", [100, 1 << 20], ids=["by_revisions", "whole"])
def test_a_page_without_a_revision_by_then_is_rejected(whole_bytes: int) -> None:
    data = dump_xml([page_xml(8, "H", revisions=HISTORY)])
    assert reasons(read(data, as_of="2000-01-01T00:00:00Z", whole_bytes=whole_bytes)) == [("no_revision_as_of", "8")]


def test_as_of_must_be_a_timestamp() -> None:
    with pytest.raises(SetupError, match="2019-08"):
        read(XML, as_of="2019-08")


def test_a_revision_that_does_not_end_is_given_up_and_the_next_page_read() -> None:
    data = dump_xml([page_xml(1, "Endless", "x" * 5000), page_xml(2, "Next", "y")])
    records = read(data, whole_bytes=500, max_bytes=2000)
    assert reasons(records) == [("page_too_large", "1")]
    assert [page.page_id for page in pages(records)] == [2]


def test_a_long_history_is_read_with_few_bytes_in_hand() -> None:
    revisions = "".join(revision_xml("z" * 1000, revision_id=number) for number in range(1, 400))
    data = dump_xml([page_xml(1, "Long", revisions=revisions)])
    (page,) = pages(read(data, read_bytes=1000, whole_bytes=3000, max_bytes=4000))
    assert page.revision_id == 399


@pytest.mark.parametrize("cut", [1, 13, 200], ids=["inside_the_end_tag", "before_the_end_tag", "inside_a_page"])
@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_xml_that_ends_early_is_told_once(cut: int, pack: Callable[[bytes], bytes]) -> None:
    records = read(pack(XML[: -len(FOOTER) + 12 - cut]))
    assert [reason for reason, _ in reasons(records)].count("truncated_dump") == 1
    assert isinstance(records[-1], BadRecord)
    assert records[-1].reason == "truncated_dump"


@pytest.mark.parametrize("compression", [name for name in PACKS if name != "none"])
def test_a_compressed_file_that_ends_early_is_told_once(compression: Compression) -> None:
    n_missing = 3 if compression == "zstd" else 5  # a part of the checksum
    records = read(PACKS[compression](XML)[:-n_missing])
    assert reasons(records)[-1] == ("truncated_dump", "")
    assert len(pages(records)) == 6


def test_pages_without_a_root_have_no_end_to_miss() -> None:
    records = read(b"".join(GOOD))
    assert reasons(records) == []
    assert len(pages(records)) == 4


@pytest.mark.parametrize("compression", STREAMED)
def test_damage_in_what_is_read_from_its_beginning_keeps_the_pages_before_it(compression: Compression) -> None:
    plenty = [
        page_xml(number, f"T{number}", "".join(f"{number * n * 7919 % 10007} " for n in range(900)))
        for number in range(1, 200)
    ]
    packed = PACKS[compression](dump_xml(plenty))
    middle = len(packed) // 2
    records = read(packed[:middle] + b"\xff" * 50 + packed[middle + 50 :])
    kept = pages(records)
    assert 50 < len(kept) < 100
    assert [page.page_id for page in kept] == [*range(1, len(kept) + 1)]
    # So that a dump of which most is lost needs leave: one damage alone is below any ceiling.
    assert reasons(records)[-2:] == [(f"damaged_{compression}", ""), ("truncated_dump", "")]


@pytest.mark.parametrize("compression", STREAMED)
def test_streams_follow_on_each_other(compression: Compression) -> None:
    pack = PACKS[compression]
    packed = b"".join(pack(XML[start : start + 777]) for start in range(0, len(XML), 777))
    assert read(packed + bytes(100), read_bytes=64) == read(pack(XML))
    for garbage in (b"garbage", b"\n"):
        assert reasons(read(packed + garbage))[-1] == ("trailing_garbage", "")


@pytest.mark.parametrize("compression", STREAMED)
def test_a_file_that_ends_after_the_first_bytes_of_a_stream_is_truncated(compression: Compression) -> None:
    packed = PACKS[compression](XML)
    assert reasons(read(packed + packed[:1]))[-1] == ("truncated_dump", "")


def test_a_file_of_zstandard_without_its_package_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    stored({"a.xml": PACKS["zstd"](XML)})
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(SetupError, match=r"pip install 'kbsource\[build\]'"):
        read_header("a.xml")


def test_frames_for_other_programs_are_skipped() -> None:
    skipped = b"\x5a\x2a\x4d\x18\x04\0\0\0data"
    packed = PACKS["zstd"](XML)
    assert read(skipped + packed + skipped) == read(packed)


@pytest.mark.slow
@pytest.mark.parametrize("compression", STREAMED)
def test_a_small_file_that_decodes_to_much_takes_little_memory(compression: Compression) -> None:
    packed = PACKS[compression](dump_xml([page_xml(1, "A", "x")])) + PACKS[compression](bytes(300_000_000))
    stored({"a": packed})
    tracemalloc.start()
    with open("a", "rb") as file:
        pieces = iter_pieces(file, compression=compression)
        n_bytes = sum(len(piece.data) for piece in pieces if not isinstance(piece, Damage))
        _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_bytes > 300_000_000
    assert peak < 100_000_000


@pytest.mark.parametrize(
    ("data", "remedy"),
    [
        (b"\x28\xb5\x2f\xfd\x00\xa8\x01\0\0", "zstd -dc --long=31"),
        (lzma.compress(XML, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]), "xz -dc"),
    ],
    ids=["zstd", "xz"],
)
def test_a_file_that_claims_much_memory_is_told_how_to_be_written_anew(data: bytes, remedy: str) -> None:
    stored({"a.xml": data})
    with pytest.raises(SetupError, match=f"a.xml .* recompress the file with {remedy}"):
        read_header("a.xml")


def test_of_a_damage_the_stored_bytes_are_told_whatever_the_cuts() -> None:
    packed = [bz2.compress(XML[start : start + 900]) for start in range(0, len(XML), 900)]
    place = len(packed[0]) + len(packed[1])
    data = flip(b"".join(packed), place + 60)
    for cuts in ([], [200, place, place + 100]):
        told: list[int] = []
        read(data, cuts, on_damage=told.append)
        # From the block's magic, behind four bytes of the stream, to that of the stream's end, before ten or eleven.
        assert told in ([len(packed[2]) - 14], [len(packed[2]) - 15])


@pytest.mark.parametrize(
    ("what", "instead", "expected", "kept"),
    [
        (b"</page>", b"</page", [("malformed_xml", "1")], [2, 3, 5]),
        (b"<page>", b"<pge>", [("page_cut", "")], [2, 3, 5]),
        (b"<page>\n    <title>Alan", b"<pALan", [("page_cut", "")], [2, 3, 5]),
        (b"</page>\n  <page>", b"", [("malformed_xml", "1")], [3, 5]),
        (b"</page>\n  <page>\n    <title>AT", b"</page", [("malformed_xml", "1")], [3, 5]),
        (b"</page>\n  <page>", b"</page", [("malformed_xml", "1"), ("page_cut", "")], [3, 5]),
    ],
)
def test_no_page_that_lost_a_tag_goes_without_a_line(
    what: bytes, instead: bytes, expected: list[tuple[str, str]], kept: list[int]
) -> None:
    whole = b"".join(GOOD)
    assert what in whole
    data = dump_xml([whole.replace(what, instead, 1)])
    for form in (data, bz2.compress(data), b"".join(bz2.compress(data[a : a + 150]) for a in range(0, len(data), 150))):
        for cuts in ([], range(0, len(form), 50), range(7, len(form), 61)):
            records = read(form, list(cuts))
            assert reasons(records) == expected
            assert [page.page_id for page in pages(records)] == kept


def test_a_page_that_lost_its_beginning_is_told_once_wherever_the_file_is_cut() -> None:
    data = dump_xml([GOOD[0], GOOD[1].replace(b"<page>", b"<pge>"), *GOOD[2:]])
    expected = read(data)
    start = data.index(b"</page>")
    for cut in range(start, data.index(b"<text", start)):
        assert read(data, [cut], read_bytes=cut) == expected


def test_a_page_whose_beginning_damage_took_is_that_damage_alone() -> None:
    xml = dump_xml(GOOD)
    start = xml.index(b"<page>", xml.index(b"</page>"))
    packed = [*map(bz2.compress, (xml[:start], xml[start : start + 6], xml[start + 6 :]))]
    after = len(packed[0]) + len(packed[1])
    data = flip(b"".join(packed), len(packed[0]) + 20)
    for cuts in ([], [after], [after + 4]):
        records = read(data, cuts)
        assert reasons(records) == [("damaged_block", "")]
        assert [page.page_id for page in pages(records)] == [1, 3, 5]


def test_a_block_lost_inside_a_page_cuts_that_page() -> None:
    xml = dump_xml(GOOD)
    inside = xml.index(b"Alan '''Turing") + 30
    data = b"".join(map(bz2.compress, (xml[:inside], xml[inside : inside + 60], xml[inside + 60 :])))
    place = len(bz2.compress(xml[:inside]))
    records = read(flip(data, place + 50))
    assert reasons(records) == [("page_cut", "1"), ("damaged_block", "")]
    assert records[1].offset == place + 4
    assert [page.page_id for page in pages(records)] == [2, 3, 5]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_other_encodings_are_converted(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    data = pack(XML.decode().encode(encoding))
    records = read(data, read_bytes=97)
    assert [(page.page_id, page.text) for page in pages(records)] == [
        (page.page_id, page.text) for page in pages(read(XML))
    ]
    assert reasons(records) == reasons(read(XML))


def test_a_declared_encoding_is_converted() -> None:
    declaration = '<?xml version="1.0" encoding="ISO-8859-2"?>\n'
    data = (declaration + dump_xml([page_xml(1, "Łódź", "Łódź & więcej")]).decode()).encode("iso-8859-2")
    assert [page.title for page in pages(read(data))] == ["Łódź"]


def test_half_a_surrogate_pair_is_rejected_with_its_page_alone() -> None:
    broken = "".join(page.decode() for page in GOOD).replace("quoted", "quo\ud800ted", 1)
    data = codecs.BOM_UTF16_LE + (header_xml().decode() + broken + FOOTER.decode()).encode("utf-16-le", "surrogatepass")
    records = read(data)
    assert reasons(records) == [("invalid_characters", "1")]
    assert len(pages(records)) == 3


def test_damage_in_utf_16_keeps_the_pages_behind_it() -> None:
    xml = XML.decode().encode("utf-16")
    packed = [bz2.compress(xml[start : start + 1501]) for start in range(0, len(xml), 1501)]
    packed[2] = flip(packed[2], len(packed[2]) // 2)
    records = read(b"".join(packed))
    assert "damaged_block" in dict(reasons(records))
    assert pages(records)[-1].page_id == 14


def test_elements_may_have_a_prefix() -> None:
    xml = XML.replace(b"</", b"</mw:").replace(b"<", b"<mw:").replace(b"<mw:/mw:", b"</mw:")
    xml = xml.replace(b"xmlns=", b"xmlns:mw=", 1)
    records = read(xml, [500, 1500, 2500])
    assert [page.page_id for page in pages(records)] == [1, 8, 2, 3, 5, 14]
    assert reasons(records) == reasons(read(XML))


def test_a_dtd_is_never_expanded() -> None:
    bomb = b'<!DOCTYPE mediawiki [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;"><!ENTITY x SYSTEM "file:///etc/passwd">]>\n'
    page = page_xml(1, "A", "PLACE").replace(b"PLACE", b"&b;")
    other = page_xml(2, "B", "PLACE").replace(b"PLACE", b"&x;")
    records = read(bomb + dump_xml([page, other, GOOD[0]]))
    assert reasons(records) == [("xml_entity", "1"), ("xml_entity", "2")]
    assert len(pages(records)) == 1
