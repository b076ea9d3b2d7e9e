"""Builds that take pages over from an earlier release: the bytes of a full build, whatever was edited."""

from __future__ import annotations

import bz2
import gzip
import random
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbsource.errors import SetupError
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.pages.writing import GROUP_CHARS
from tests.support import make_demo, mini_wiki
from tests.support.builds import build_mini, contents
from tests.support.demo_datasets import chunks_in_this_process
from tests.support.dumps import dump_xml, header_xml, page_xml
from tests.support.examples import examples
from tests.support.moody_parser import LOST, MOODS, TOO_DEEP
from tests.support.random_edits import EditedWiki
from tests.support.real_data import real_path
from tests.support.verified import seal, verified

WAYS: dict[str, dict[str, Any]] = {
    "lua with references": {"references": True},
    "definitions": {"templates": "definitions"},
    "rules with references": {"templates": "rules", "references": True},
}


def follow_edits(folder: Path, seed: str, n_edits: int, **options: Any) -> Counter[str]:
    """Builds a wiki after each of some edits, in full and from the release before, and compares; gives how many pages
    were made again, by the kind of edit, and ``all``."""
    wiki = EditedWiki(seed)
    parsed: Counter[str] = Counter()
    base = None
    for number in range(n_edits + 1):
        how = wiki.edit() if number else "first"
        dump, props = wiki.write(folder / f"dump-{number}")
        given = {"dump": dump, "page_props": str(props), "record_dependencies": True, "max_rejects": 0.1, **options}
        full = folder / f"full-{number}"
        n_articles = build_mini(full, **given).manifest.totals.articles
        if base is not None:
            made = build_mini(folder / f"made-{number}", base=str(base), **given)
            assert contents(folder / f"made-{number}") == contents(full), (number, how)
            assert made.taken_over is not None
            parsed.update({how: n_articles - made.taken_over, "all": n_articles})
            shutil.rmtree(folder / f"made-{number}")
            shutil.rmtree(base)
        base = full
    return parsed


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("way", ["lua with references"])
def test_a_build_from_a_base_makes_the_bytes_of_a_full_one(tmp_path: Path, way: str) -> None:
    follow_edits(tmp_path, "a few", 3, **WAYS[way])


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("way", WAYS)
def test_after_each_of_many_edits_the_bytes_are_those_of_a_full_build(tmp_path: Path, way: str) -> None:
    parsed = follow_edits(tmp_path, way, examples(12), **WAYS[way])

    assert 0 < sum(n for how, n in parsed.items() if how != "all") < 0.2 * parsed["all"]


REAL: dict[str, tuple[str, dict[str, Any]]] = {
    "ltg": ("dumpsterdive_smallwiki-pages-articles.xml.gz", {}),
    "fr": ("totocptbgn_frwiki10000.xml.gz", {}),
    "nl": ("semanticizest_nlwiki-20140927-sample.xml.gz", {"references": True}),
    "et": ("andresmit_wiki.xml.gz", {"templates": "rules"}),
    "zh": ("cyberzhg_zhwiki-test-pages.xml.gz", {}),
    "en": ("gensim_enwiki-p10p30302-shortened.xml.bz2", {}),
}


def a_month_later(xml: bytes) -> bytes:
    """A dump with pages edited, moved and deleted, redirects with other targets, and one page more."""
    draw = random.Random("a month")
    fragments = re.findall(rb"[ ]*<page>.*?</page>\n?", xml, re.DOTALL)
    titles = [found[1] for fragment in fragments if (found := re.search(rb"<title>([^<]*)</title>", fragment))]
    later = []
    for fragment in fragments:
        chance = draw.random()
        if chance < 0.05:
            fragment = fragment.replace(b"</text>", b"\n\nSee [[%b]] or {{X|1}}.</text>" % draw.choice(titles))
        elif chance < 0.06:
            continue
        elif chance < 0.07:
            fragment = re.sub(rb"<title>([^<]*)</title>", rb"<title>\1 (moved)</title>", fragment, count=1)
        elif chance < 0.15 and b"<redirect" in fragment:
            fragment = re.sub(rb'<redirect title="[^"]*"', b'<redirect title="%b"' % draw.choice(titles), fragment)
        later.append(fragment)
    start, end = xml.index(fragments[0]), xml.rindex(b"</mediawiki>")
    return xml[:start] + b"".join(later) + page_xml(10**9, "Quite new", "It is [[new]].") + xml[end:]


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("name", REAL)
def test_of_two_real_dumps_the_second_is_made_from_the_first(tmp_path: Path, name: str) -> None:
    file, options = REAL[name]
    path = real_path(f"dumps/{file}")
    xml = (bz2 if path.suffix == ".bz2" else gzip).decompress(path.read_bytes())
    old, new = tmp_path / "old.xml", tmp_path / "new.xml"
    old.write_bytes(xml)
    new.write_bytes(a_month_later(xml))
    given: dict[str, Any] = {"page_props": None, "record_dependencies": True, "max_rejects": 0.2, **options}

    build_mini(tmp_path / "base", dump=old, **given)
    full = build_mini(tmp_path / "full", dump=new, **given)
    made = build_mini(tmp_path / "made", dump=new, base=str(tmp_path / "base"), **given)

    assert contents(tmp_path / "made") == contents(tmp_path / "full")
    assert made.taken_over is not None
    assert made.taken_over > 0.6 * full.manifest.totals.articles


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "release"
    with chunks_in_this_process():
        build_mini(folder, dump=mini_wiki.XML, record_dependencies=True)
    return folder


@pytest.mark.usefixtures("in_this_process")
def test_traces_change_no_other_table_and_are_sound(tmp_path: Path, base: Path) -> None:
    build_mini(tmp_path / "plain", dump=mini_wiki.XML)

    own, plain = contents(base), contents(tmp_path / "plain")
    recorded = {name for name in own if name.partition("/")[0] in ("dependencies", "definitions")}
    assert own.keys() == plain.keys() | recorded
    assert {name for name in plain if own[name] != plain[name]} == {"manifest.json"}
    assert verified(base).findings == ()


def test_traces_of_other_pages_are_found(tmp_path: Path, base: Path) -> None:
    changed = shutil.copytree(base, tmp_path / "changed")
    path = next((changed / "dependencies").iterdir())
    rows = pq.read_table(path)
    file = pq.ParquetFile(path)
    with pq.ParquetWriter(tmp_path / "again", file.schema_arrow, write_page_checksum=True) as writer:
        writer.write_table(pa.concat_tables([rows.slice(1), rows.slice(0, 1)]))
    file.close()
    (tmp_path / "again").replace(path)
    seal(changed)

    assert "dependencies_disagree" in {finding.rule for finding in verified(changed).findings}


def test_pages_that_could_not_be_parsed_are_tried_again(tmp_path: Path, base: Path) -> None:
    given: dict[str, Any] = {"dump": mini_wiki.XML, "record_dependencies": True}
    with chunks_in_this_process({5: (1, "timeout"), 6: (1, "crash"), 7: (1, "error"), 8: (2, "crash")}):
        troubled = build_mini(tmp_path / "troubled", **given)
    with chunks_in_this_process():
        made = build_mini(tmp_path / "made", base=str(tmp_path / "troubled"), **given)

    failed = {f"fallback_{how}": 1 for how in ("timeout", "crash", "error")}
    assert troubled.manifest.parse_statuses == {**failed, "ok": made.manifest.totals.articles - 4}
    assert made.taken_over == made.manifest.totals.articles - 4
    assert contents(tmp_path / "made") == contents(base)


@pytest.mark.slow
def test_what_ends_the_process_ends_it_again_where_pages_are_taken_over(tmp_path: Path, base: Path) -> None:
    """All others are taken over: from a parser that fails on some pages, by one of another name that does not."""
    moody = "tests.support.moody_parser:MoodyParser"
    given: dict[str, Any] = {
        "dump": mini_wiki.XML,
        "record_dependencies": True,
        "page_timeout_s": 2.0,
        "max_rejects": 0.1,
    }
    full = build_mini(tmp_path / "moody", parser=moody, **given)
    made = build_mini(tmp_path / "made", parser=moody, base=str(tmp_path / "moody"), **given)

    assert contents(tmp_path / "made") == contents(tmp_path / "moody")
    n_moody = len({*MOODS, TOO_DEEP, LOST})
    assert made.taken_over == full.manifest.totals.articles - (n_moody - 1)  # LOST is no article


@pytest.mark.usefixtures("in_this_process")
def test_a_base_that_was_made_otherwise_is_refused(tmp_path: Path, base: Path) -> None:
    def refused(match: str, **options: Any) -> None:
        given: dict[str, Any] = {"dump": mini_wiki.XML, "base": str(base), **options}
        with pytest.raises(SetupError, match=match):
            build_mini(tmp_path / "made", **given)

    build_mini(tmp_path / "plain", dump=mini_wiki.XML)
    refused(
        "has no table of dependencies, so no page can be reused. Build that release with --record-dependencies",
        base=str(tmp_path / "plain"),
    )
    refused(
        "made with a different option templates .'lua', here 'definitions'.*give the same option, or leave out --base",
        templates="definitions",
    )
    refused("made with a different option references .False, here True", references=True)
    dump = tmp_path / "wiki.xml"
    dump.write_bytes(
        mini_wiki.XML.read_bytes().replace(b"<case>first-letter</case>", b"<case>case-sensitive</case>", 1)
    )
    refused("made with a different wiki's case .'first-letter', here 'case-sensitive'", dump=dump)
    other = shutil.copytree(base, tmp_path / "other")
    seal(other, code={**PAGES_RELEASE.read(str(base)).code, "sha256": "0"})
    refused("made with a different code sha256 .'0'", base=str(other))
    changed = shutil.copytree(base, tmp_path / "changed")
    for table in ("pages", "dependencies", "definitions"):
        path = next((changed / table).iterdir())
        content = path.read_bytes()
        path.write_bytes(content[:99] + bytes([content[99] ^ 1]) + content[100:])
        refused(rf"{path.name} is damaged or changed \(sha256\)", base=str(changed))
        path.write_bytes(content)
    next((changed / "dependencies").iterdir()).unlink()
    refused(r"dependencies-00000-of-00001.parquet is damaged or changed \(missing\)", base=str(changed))


@pytest.mark.slow  # three builds of megabytes
@pytest.mark.usefixtures("in_this_process")
def test_row_groups_are_those_of_a_full_build_though_pages_come_out_of_several(tmp_path: Path) -> None:
    text = "\n\n".join(f"Sentence {number} of [[Page {number}]]." for number in range(GROUP_CHARS // 300))
    pages = [page_xml(number, f"Page {number}", text) for number in range(1, 41)]
    changed = [page_xml(number, f"Page {number}", f"{text[number * 900 :]}") for number in range(1, 41)]
    old, new = tmp_path / "old.xml", tmp_path / "new.xml"
    old.write_bytes(dump_xml(pages))
    new.write_bytes(dump_xml([changed[n] if n % 7 == 0 else pages[n] for n in range(40)]))
    given: dict[str, Any] = {"page_props": None, "record_dependencies": True}

    build_mini(tmp_path / "base", dump=old, **given)
    build_mini(tmp_path / "full", dump=new, **given)
    made = build_mini(tmp_path / "made", dump=new, base=str(tmp_path / "base"), **given)

    assert made.taken_over == 34
    assert contents(tmp_path / "made") == contents(tmp_path / "full")
    assert pq.ParquetFile(tmp_path / "made/pages/pages-00000-of-00001.parquet").num_row_groups > 3


_HEADER = header_xml(dbname="miniwiki").replace(
    b"    </namespaces>", b'      <namespace key="828">Module</namespace>\n    </namespaces>'
)
_ASKING = {
    "Plain": "Nothing.",
    "Target": "What [[R0]] leads to, over R1 and R2.",
    "Linker": "See [[R0]].",
    "Table": "{|\n| [[Absent]]\n|}",
    "Box": "{{Infobox ship|name=A|port=[[Absent]]}}",
    "Version": "{{#invoke:V|version}}",
    "Asker": "{{#ifexist:Absent|yes|no}}",
    "User": "{{Depth}}",
    "Reader": "{{#invoke:V|depth}}",
    "Indirect": "{{#invoke:V|other}}",
    "Source": "{{#invoke:V|source}}",
    "Citer": "Said.<ref>{{Our cite|title=A title|url=http://example.org}}</ref>",
}
_DEFINING = {
    "Template:Depth": "Three fathoms",
    "Template:Cite web": "[{{{url}}} {{{title}}}]",
    "Template:Our cite": "[{{{url}}} {{{title}}}]",
    "Module:Other": "return {said = 'three'}",
    "Module:V": """local p = {}
function p.version() return mw.site.currentVersion end
function p.depth() return mw.title.new('Template:Depth'):getContent() end
function p.source() return mw.title.new('Module:Other'):getContent() end
function p.other() return require('Module:Other').said end
return p""",
}
_REDIRECTS = {"R0": "R1", "R1": "R2", "R2": "Target"}


def _asking_dump(path: Path, changed: dict[str, str], header: bytes) -> Path:
    texts = {**_ASKING, **_DEFINING, **{name: f"#REDIRECT [[{to}]]" for name, to in _REDIRECTS.items()}, **changed}
    pages = []
    for number, (title, text) in enumerate(texts.items(), start=1):
        ns = {"Template": 10, "Module": 828}.get(title.partition(":")[0], 0)
        redirect = text[len("#REDIRECT [[") : -len("]]")] if text.startswith("#REDIRECT") else None
        pages.append(page_xml(number, title, text, ns=ns, redirect=redirect))
    path.write_bytes(dump_xml(pages, header=header))
    return path


def _props(path: Path, rows: list[make_demo.PropRow]) -> str:
    path.write_bytes(make_demo.gzip_bytes(make_demo.page_props_sql(rows).encode("utf-8")))
    return str(path)


@pytest.mark.slow
@pytest.mark.usefixtures("in_this_process")
def test_exactly_the_pages_that_rest_on_what_changed_are_made_again(tmp_path: Path) -> None:
    given: dict[str, Any] = {"record_dependencies": True, "references": True}
    item = make_demo.PropRow(1, "wikibase_item", "Q1", None)
    props = _props(tmp_path / "page_props.sql.gz", [item])
    build_mini(tmp_path / "base", dump=_asking_dump(tmp_path / "base.xml", {}, _HEADER), page_props=props, **given)

    def follow(
        name: str, expected: int, changed: dict[str, str], *, header: bytes = _HEADER, page_props: str = props
    ) -> None:
        own = {"dump": _asking_dump(tmp_path / f"{name}.xml", changed, header), "page_props": page_props, **given}
        full = build_mini(tmp_path / f"full-{name}", **own)
        made = build_mini(tmp_path / f"made-{name}", base=str(tmp_path / "base"), **own)
        assert contents(tmp_path / f"made-{name}") == contents(tmp_path / f"full-{name}"), name
        assert made.taken_over is not None
        assert full.manifest.totals.articles - made.taken_over == expected, name

    follow("nothing", 0, {})
    follow("generator", 1, {}, header=_HEADER.replace(b"1.46.0", b"1.47.0"))  # Version
    follow("item", 1, {}, page_props=_props(tmp_path / "item.sql.gz", [item._replace(value="Q2")]))
    unclear = make_demo.PropRow(1, "disambiguation", "", None)
    follow("disambiguation", 1, {}, page_props=_props(tmp_path / "unclear.sql.gz", [unclear, item]))
    follow("text", 1, {"Plain": "Something."})
    follow(
        "redirect", 3, {"R2": "#REDIRECT [[Plain]]"}
    )  # Linker and Target, which link to R0; Plain, which R2 leads to
    follow("title", 4, {"Absent": "Is there now."})  # itself, Table, Box, Asker
    follow("template", 2, {"Template:Depth": "Four fathoms"})  # User, Reader
    follow("module", 2, {"Module:Other": "return {said = 'four'}"})  # Indirect, Source
    follow("copy", 1, {"Template:Cite web": "{{{title}}}"})  # Citer: the template that it uses is no copy now
