"""Tries the reader of HTML with made-up pages, mutants of pages, and nestings, for a given CPU time.

    python -m tests.support.html_fuzz --cpu-minutes 15 --seed 1

Every page is read with and without references, by the fallback, and with the templates of its text. All must obey the
invariants, and show the same with and without references. A page may take 20 ms and 10 µs a character. Prints every
page that breaks a rule, as a line of Python; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from time import process_time

from kbsource.errors import RecordError
from kbsource.html.reading import HtmlReader, extract_html_fallback
from kbsource.html.text_runs import HtmlRunReader
from kbsource.site import Site
from kbsource.wikitext.parse import ParsedText
from tests.support.parser_fuzz import check_released, difference, say
from tests.support.real_data import real_data_folder
from tests.support.shrinking import shrunk
from tests.support.snapshots import RECORDS, document
from tests.support.wikitexts import check_laws

SITE = Site(lang="en", dbname="enwiki")
TITLE = "Ada"
MS_A_PAGE, US_A_CHAR = 20, 10
_ADDRESS_SPACE = 4 << 30
_MOST_SECONDS = 30
_MOST_CHARS = 12_000
_REASONS = frozenset({"html_empty", "html_too_deep"})

_TAGS = """
p div section ul ol li dl dt dd table tbody tr th td caption a b i span sup sub br hr pre blockquote h1 h2 h3 h4 small
cite figure figcaption img math annotation semantics mi mrow ruby rb rt rp style script link meta template center poem
abbr code svg title head body html nav object select option button input form details summary wbr bdi q s u
""".split()


def _call(name: str, **arguments: str) -> str:
    values = {key: {"wt": value} for key, value in arguments.items()}
    return json.dumps({"parts": [{"template": {"target": {"wt": name}, "params": values}}]})


_CALLS = (
    _call("convert"),
    _call("sfn", **{"1": "Lee", "2": "2001"}),
    _call("cite book", title="A [[b", ref="{{sfnref|Lee|2001}}"),
    _call("efn", **{"1": "note {{x"}),
    _call("Infobox ship\n", length="[[B]]"),
    _call("cn"),
    _call("reflist", refs="<ref name=a>b</ref>"),
    '{"parts":["* a",{"template":{"target":{"wt":"col begin"}}},"b\\u0001\\ud800"]}',
    '{"parts":[{"template":{"target":{"wt":"#if:a","function":"if"}}}]}',
    '{"parts":{"a":[]}}',
    '{"attrs":{"name":"a&quot;","group":"n"},"body":{"id":"cite_note-1","extsrc":" x^\\u0002{2}\\n"}}',
    '{"attrs":{"name":7,"group":[]},"body":{"extsrc":"{\\\\displaystyle"}}',
    '{"body":[]}',
    "[]",
    "{",
    "[" * 500,
)
_TYPES = """
mw:Transclusion mw:Extension/ref mw:Extension/references mw:Extension/math mw:Extension/chem mw:Extension/gallery
mw:Extension/poem mw:File/Thumb mw:Image mw:LanguageVariant mw:Nowiki mw:Entity mw:DisplaySpace mw:ExpandedAttrs
""".split()
_CLASSES = """
infobox navbox hatnote reflist references mw-ref reference noprint mw-parser-output mw-references wikitable metadata
mwe-math-element mwe-math-element-block external extiw autonumber new mw-redirect selflink taxobox sidebar gallery
""".split()
_ATTRIBUTES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("class", tuple(_CLASSES)),
    ("typeof", tuple(_TYPES)),
    ("about", ("#mwt1", "#mwt2", "#mwt3", "#mwt", "#a")),
    ("data-mw", _CALLS),
    (
        "data-mw-variant",
        ('{"twoway":[{"l":"a","t":"x<b>y"}]}', '{"disabled":{"t":"\x03z"}}', '{"name":[1]}', '{"filter":{"t":"< <"}}'),
    ),
    (
        "href",
        (
            "./A_b#c",
            "./%00%FF",
            "./Ada#cite_note-1",
            "#cite_note-1",
            "./Category:C#k%00",
            "/wiki/Z%C3%BC",
            "https://a.example/[b]",
            "//a.example",
            "/w/index.php?title=New&redlink=1",
            "./X?action=edit&amp;redlink=1",
            "./" + "a" * 300,
            "",
        ),
    ),
    ("rel", ("mw:WikiLink", "mw:ExtLink", "mw:WikiLink/Interwiki", "mw:PageProp/Category", "mw:referencedBy")),
    ("id", ("cite_note-1", "cite_note-2", "catlinks", "mw-reference-text-cite_note-1")),
    ("style", ("display:none", "float:right", "DISPLAY : NONE;")),
    ("rowspan", ("2", "0", "99999999999", "-1", "²")),
    ("colspan", ("3", "x", "1000000")),
    ("alttext", ("{\\displaystyle x^2}", "a\x05b", "$")),
    ("role", ("navigation", "presentation", "note")),
)
_TEXTS = """
a word, é 漢字 & < > &amp; &lt; &#1; &#13; &#127; &#xD800; &#xFFFE; &#0; &nbsp; &shy; [[ ]] {{ }} | ''' $ $x$ ( ) [1] ^
2 18 th . ; \x00 \x01 \x03 \x04 \x06 \x06T3 \x06F \x0b \x0c \x1c \x1e \x1f \x7f \x85 \ufdd0 \ufffe \u200f \u2028 \u200b
\ud800 \ud81f \U0010ffff ſ İ <!-- --> <![CDATA[ ]]> <?a <!DOCTYPE </ <a/> "
""".split(" ")
_NOTE = "<sup typeof='mw:Extension/ref' data-mw='{}'><a href='#cite_note-1'>a</a></sup>"
FLAT: dict[str, Callable[[int], str]] = {
    "paragraphs": lambda n: "<p>a b</p>" * n,
    "one paragraph": lambda n: f"<p>{'<i>a</i> b' * n}</p>",
    "unclosed paragraphs": lambda n: "<p>a " * n,
    "items": lambda n: f"<ul>{'<li>a</li>' * n}</ul>",
    "rows": lambda n: f"<table>{'<tr><td>a</td><td>b</td></tr>' * n}</table>",
    "rows of an infobox": lambda n: f"<table class=infobox>{'<tr><th>a</th><td>b</td></tr>' * n}</table>",
    "infoboxes": lambda n: "<table class=infobox><tr><th>a</th><td>b</td></tr></table>" * n,
    "cells without a table": lambda n: f"<table class=infobox><tr>{'<td>b</td>' * n}</tr></table>",
    "captions": lambda n: f"<table>{'<caption>a</caption>' * n}</table>",
    "navigation": lambda n: f"<div class=navbox>{'<b>a</b>' * n}</div>" + "<div class=navbox>a</div>" * n,
    "uses": lambda n: "".join(
        f"<span typeof='mw:Transclusion' about='#mwt{k}' data-mw='{_CALLS[0]}'>a</span>" for k in range(n)
    ),
    "uses in a box": lambda n: f"<div class=navbox>{FLAT['uses'](n)}</div>",
    "one group": lambda n: f"<span about='#mwt1' typeof='mw:Transclusion' data-mw='{_CALLS[0]}'>a</span>" * n,
    "notes": lambda n: (
        "".join(
            f"a<sup typeof='mw:Extension/ref' data-mw='{{}}'><a href='#cite_note-{k}'>a</a></sup>" for k in range(n)
        )
        + "".join(f"<li id=cite_note-{k}><span class=reference-text>b</span></li>" for k in range(n))
    ),
    "one named note": lambda n: (
        f"a{_NOTE}".replace("{}", '{"attrs":{"name":"a"}}') * n
        + f"<li id=cite_note-1><span class=reference-text>{'b ' * n}</span></li>"
    ),
    "notes in a note": lambda n: f"a{_NOTE}<li id=cite_note-1><span class=reference-text>{_NOTE * n}</span></li>",
    "notes in cells": lambda n: f"<table>{f'<tr><td>a{_NOTE}</td></tr>' * n}</table>",
    "raised": lambda n: "a<sup>18</sup>" * n,
    "raised words": lambda n: f"a<sup>{'<b>1</b> ' * n}</sup>",
    "links": lambda n: "<a href='./A'>a</a> " * n,
    "different links": lambda n: " ".join(f"<a href='./A{k}'>a</a>" for k in range(n)),
    "a link over lines": lambda n: f"<a href='./A'>{'<p>b</p>' * n}</a>",
    "a link of many pieces": lambda n: f"<a href='./A'>{'<b>b</b>' * n}</a>",
    "line breaks": lambda n: f"<p>{'a<br/>' * n}</p>",
    "formulas": lambda n: "<span class=mwe-math-element><math alttext=a></math></span>" * n,
    "variants": lambda n: '<span typeof=\'mw:LanguageVariant\' data-mw-variant=\'{"name":{"t":"<b>a"}}\'></span>' * n,
    "comments": lambda n: "a<!-- b -->" * n,
    "opened": lambda n: "<" * n,
    "ampersands": lambda n: "&" * n + "amp;" * n,
    "headings": lambda n: "".join(f"<h{k % 6 + 1}>a</h{k % 6 + 1}>" for k in range(n)),
    "categories": lambda n: "".join(f"<link rel='mw:PageProp/Category' href='./Category:A{k}#b'/>" for k in range(n)),
}
"""Pages that grow in width."""
NESTINGS: dict[str, Callable[[int], str]] = {
    **{tag: lambda n, tag=tag: f"<{tag}>a" * n + f"</{tag}>" * n for tag in _TAGS},  # type: ignore[misc]
    **{f"unclosed {tag}": lambda n, tag=tag: f"<{tag}>a " * n for tag in _TAGS},  # type: ignore[misc]
    "lists": lambda n: "<ul><li>a" * n + "</li></ul>" * n,
    "tables": lambda n: "<table><tr><td>a" * n + "</td></tr></table>" * n,
    "infoboxes": lambda n: "<table class=infobox><tr><th>a</th><td>b" * n + "</td></tr></table>" * n,
    "labels": lambda n: f"<table class=infobox><tr><th>{'<b>a' * n}</th><td>b</td></tr></table>",
    "uses": lambda n: "".join(
        f"<span typeof='mw:Transclusion' about='#mwt{k}' data-mw='{_CALLS[0]}'>a" for k in range(n)
    ),
    "uses in boxes": lambda n: "".join(
        f"<div class=navbox typeof='mw:Transclusion' about='#mwt{k}' data-mw='{_CALLS[0]}'>a" for k in range(n)
    ),
    "raised with tags": lambda n: f"a<sup>{'<b>' * n}1",
    "links": lambda n: "<a href='./A'>a" * n,
    "formulas": lambda n: "<span class=mwe-math-element>" * n + "<math alttext=a>",
    "variants": lambda n: '<span typeof=\'mw:LanguageVariant\' data-mw-variant=\'{"name":{"t":"<b>a"}}\'>' * n,
}
"""Pages that grow in depth."""


class Readers:
    """The reader in the ways in which it is tried."""

    def __init__(self) -> None:
        self.plain = HtmlReader(SITE)
        self.noted = HtmlReader(SITE, has_references=True)
        self.runs = HtmlRunReader(SITE)


def _limited(make: Callable[[], ParsedText]) -> ParsedText | str:
    """Returns the page, or the reason why there is none; raises TimeoutError after ``_MOST_SECONDS``."""
    signal.setitimer(signal.ITIMER_VIRTUAL, _MOST_SECONDS)
    try:
        return make()
    except RecordError as error:
        if error.reason not in _REASONS:
            raise
        return error.reason
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _give_up(*_: object) -> None:
    raise TimeoutError(f"more than {_MOST_SECONDS} s")


def faults(readers: Readers, html: str, *, is_timed: bool = True) -> Iterator[str]:
    """The rules that a page breaks."""
    ways: dict[str, Callable[[], ParsedText]] = {
        "plain": lambda: readers.plain.parse(html, title=TITLE),
        "noted": lambda: readers.noted.parse(html, title=TITLE),
        "fallback": lambda: extract_html_fallback(html, title=TITLE),
        "runs": lambda: readers.runs.parse(html, title=TITLE)[0],
    }
    allowed = (MS_A_PAGE * 1000 + US_A_CHAR * len(html)) / 1e6
    found: dict[str, ParsedText | str] = {}
    for name, make in ways.items():
        spent = []
        for _ in range(4):
            started = process_time()
            try:
                page = _limited(make)
                if not isinstance(page, str):
                    check_laws(page)
                    check_no_controls(page)
                    check_released(page)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is the finding
                yield f"{name}: {type(error).__name__}: {error}"[:1000]
                return
            spent.append(process_time() - started)
            if spent[-1] <= allowed:
                break
        else:
            if is_timed:
                yield f"{name}: {min(spent) * 1000:.0f} ms, {allowed * 1000:.0f} are allowed"
        found[name] = page
    plain, noted, runs = found["plain"], found["noted"], found["runs"]
    if isinstance(plain, str) or isinstance(noted, str) or isinstance(runs, str):
        if not plain == noted == runs:
            yield f"reasons {plain if isinstance(plain, str) else '-'} and {noted if isinstance(noted, str) else '-'}"
        return
    if said := difference(plain, noted):
        yield f"noted: {said}"
    if plain.elements != runs.elements or plain.anchors != runs.anchors:
        yield "runs: another text"
    if noted.references is not None and noted.references.counts["failed"]:
        yield "noted: the references failed"


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def check_no_controls(parsed: ParsedText) -> None:
    """Raises AssertionError where a text has a control character or half of a surrogate pair."""
    texts = [element.text for element in parsed.elements[1:]]
    texts += [
        *parsed.categories,
        *(written for anchor in parsed.anchors for written in (anchor.text, anchor.written_target)),
    ]
    texts += [anchor.target_title + (anchor.target_fragment or "") for anchor in parsed.anchors]
    contents = [cell for table in parsed.tables for row in table.rows for cell in row]
    contents += [value for box in parsed.infoboxes for value in box.fields]
    texts += [text for box in parsed.infoboxes for text in (box.name, *(field.name for field in box.fields))]
    texts += [table.caption or "" for table in parsed.tables]
    texts += [content.text for content in contents]
    texts += [link.target_title + (link.target_fragment or "") for content in contents for link in content.links]
    texts += [use.name for use in parsed.templates] + [lost.example or "" for lost in parsed.lost.values()]
    for text in texts:
        assert not _CONTROL.search(text), repr(text[:200])


def element(rng: random.Random) -> str:
    """Returns the beginning of an element, or the end of one."""
    tag = rng.choice(_TAGS)
    if rng.randrange(3) == 0:
        return f"</{tag}>"
    written = [tag]
    for name, values in rng.sample(_ATTRIBUTES, k=rng.choice([0, 0, 1, 1, 2, 3, 4])):
        value = rng.choice(values)
        quote = '"' if "'" in value or '"' not in value else "'"
        written.append(f"{name}={quote}{value}{quote}")
    return f"<{' '.join(written)}{'/' * (rng.randrange(20) == 0)}>"


def piece(rng: random.Random) -> str:
    """Returns an element or a text."""
    return element(rng) if rng.randrange(5) < 3 else rng.choice([*_TEXTS, " ", "\n"])


def soup(rng: random.Random) -> str:
    """Returns elements and texts in any order."""
    return "".join(piece(rng) for _ in range(rng.randrange(1, 60)))


def mutant(rng: random.Random, stock: list[str]) -> str:
    """Returns a part of a page, with some edits."""
    text = rng.choice(stock)
    start = rng.randrange(max(len(text) - _MOST_CHARS // 2, 1))
    text = text[start : start + rng.randrange(200, _MOST_CHARS)]
    for _ in range(rng.randrange(1, 12)):
        at, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        end = min(end, at + rng.choice([1, 2, 10, 200, 1000]))
        edit = rng.randrange(8)
        if edit == 0:
            text = text[:at] + text[end:]
        elif edit == 1:
            text = text[:end] + text[at:]
        elif edit == 2:
            text = text[:at] + piece(rng) + text[at:end] + piece(rng) + text[end:]
        elif edit == 3 and (tags := [*re.finditer(r"<[^<>]*>", text)]):
            gone = rng.choice(tags)
            text = text[: gone.start()] + text[gone.end() :]
        elif edit == 4 and (values := [*re.finditer(r"=\"[^\"]*\"|='[^']*'", text)]):
            gone = rng.choice(values)
            value = rng.choice(rng.choice(_ATTRIBUTES)[1])
            text = f'{text[: gone.start()]}="{value}"{text[gone.end() :]}'
        else:
            text = text[:at] + "".join(piece(rng) for _ in range(rng.randrange(1, 4))) + text[at:]
    return text


def stock_of_pages() -> list[str]:
    """Returns the HTML of the invented records and, if the real ones are there, of these."""
    pages = [record["article_body"]["html"] for record in RECORDS]
    for path in sorted((real_data_folder() / "html").glob("*/*.ndjson.gz")):
        for line in gzip.decompress(path.read_bytes()).splitlines():
            record = json.loads(line)
            body = record.get("article_body") or record
            pages.append(body.get("html") or "")
    return [page for page in pages if len(page) > 200]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--cpu-minutes", type=float, default=15, help="ends after so much CPU time of this process")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--faults", type=int, default=50, help="ends after so many")
    given = arguments.parse_args()
    signal.signal(signal.SIGVTALRM, _give_up)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    rng = random.Random(given.seed)
    readers, stock = Readers(), stock_of_pages()
    tried: Counter[str] = Counter()
    n_faults = n_lines = 0

    def report() -> None:
        say(
            f"seed {given.seed}: {n_faults} faults in {tried.total()} pages ({dict(tried)}), {process_time():.0f} CPU s"
        )

    while process_time() < 60 * given.cpu_minutes and n_faults < given.faults:
        if process_time() > 300 * (n_lines + 1):
            n_lines += 1
            report()
        kind = rng.randrange(20)
        if kind == 0:
            made = NESTINGS if rng.randrange(2) else FLAT
            name = rng.choice([*made])
            origin, html = f"nesting {name}", made[name](int(2 ** rng.uniform(1, 12)))
        elif kind < 10:
            origin, html = "soup", soup(rng)
        else:
            origin, html = "mutant", mutant(rng, stock)
        if kind and rng.randrange(2):
            html = document(html)
        tried[origin.split()[0]] += 1
        if said := [*faults(readers, html)]:
            n_faults += 1
            is_timed = " are allowed" in said[0]
            text = (
                html
                if is_timed
                else shrunk(html, lambda part: next(faults(readers, part, is_timed=False), None) is not None)
            )
            say(f"{origin}: {said[0]}\n    {text[:3000]!r}")
    report()
    return min(n_faults, 1)


if __name__ == "__main__":
    sys.exit(main())
