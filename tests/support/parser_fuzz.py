"""Tries the parser with made-up pages, mutants of pages, and nestings that grow, for a given CPU time.

    python -m tests.support.parser_fuzz --cpu-minutes 15 --seed 1

Every page is parsed with and without references, and with definitions and Lua modules with and without references.
Both must obey the invariants and show the same. Without definitions a page may take 20 ms and 50 µs a character, with
any parser 500 MB. Prints every page that breaks a rule, as a line of Python; the exit status is then 1. Every five
minutes of CPU time, and at the end, it prints how many pages it tried and the CPU time of each parser. Runs with
different seeds try different pages.
"""

from __future__ import annotations

import argparse
import random
import re
import resource
import signal
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple

from kbsource.index.title_index import Unresolved
from kbsource.pages.articles import ParsedPage, page_with_references, resolve_page
from kbsource.records import RawPage
from kbsource.release.pages.writing import check_page
from kbsource.site import Site
from kbsource.wikitext.lua_modules import LuaModules
from kbsource.wikitext.parse import ParsedText, WikitextParser
from tests.support import mini_wiki
from tests.support.real_data import real_data_folder
from tests.support.shrinking import shrunk
from tests.support.wikitexts import Dictionary, check_laws

SITE = Site()
TITLE = "T"
TIMESTAMP = "2021-03-05T12:30:00Z"
MS_A_PAGE, US_A_CHAR = 20, 50
MAX_MEGABYTES = 500
_ADDRESS_SPACE = 4 << 30
_MINUTES_A_LINE = 5
_MOST_SECONDS = 30
_GOLDEN = Path(__file__).resolve().parents[1] / "golden"
_MOST_CHARS = 6_000

_PIECES = r"""
[[ ]] [[A| [[B]] [[File:A.jpg|thumb| [[Category:B]] [[fr:c]] [[:de:d]] [[A#b| [ ] [http://x.y [http://x.y_z]
http://x.y [//x.y [ftp:// [mailto:a@b.c [http://[::1]/ ht tp:// {{ }} {{{ }}} {{{a| {{{1}}} {{{{ }}}} {| |} |-
|+ || !! ! | = '' ''' ''''' == === * # : ; ;a:b ---- < > <ref> </ref> <ref/> <ref·name=a> <ref·name="a"·/>
<ref·group=n·name=b>x</ref> <ref>x</ref> <ref>http://x.y <ref>[http://x.y ]</ref> <references> </references>
<references/> <references·group=n> <!-- --> <nowiki> </nowiki> <nowiki/> <br> <br/> <div> </div> <div·class="a">
<span·style='b'> </span> <small> </small> <sup> </sup> <sub> <table> <tr> <td> <td·colspan=2> </table> <ul> <ol>
<li> </ul> <h2> </h2> <b> </b> <i> <math> </math> <math>x</math> <pre> </pre> <poem> </poem> <gallery>
</gallery> A.jpg| <imagemap> <syntaxhighlight·lang="c"> </syntaxhighlight> <noinclude> </noinclude>
<includeonly> <onlyinclude> <code> </code> <timeline> &lt; &#91; &nbsp; &#0; &#13; &#10; &amp; & &#xD800; -{ }-
-{zh-hans: __NOTOC__ __a__ ~~~~ ~~~ __ _ File:a.jpg| Category:b infobox {{Infobox| |a= {{Infobox·x|a=
{{convert|5|km}} {{nowrap| {{nowrap|a}} {{lang|fr| {{!}} {{=}} {{(( {{#if: {{#if:a| {{#switch: {{#switch:a|a=
{{#expr: 1+1 {{#tag:ref| {{#tag:ref|x}} {{#tag:nowiki| {{#invoke:M|f {{#invoke:M|f| {{#invoke:M|echo|
{{#invoke:M|each| {{#invoke:M|html| {{#invoke:M|unicode| {{#invoke:M|preprocess|
{{#invoke:M|expand|Wrap| {{#invoke:M|expand|#tag:ref| {{#invoke:M|quote| {{Lua| {{Lua|a}} {{Wrap| {{Wrap|a}} {{Twice|
{{Rows {{Self {{Loop {{Ref·it}} {{Bold| {{Box| {{cite·book| {{cite·book|title= |title= |url= |doi=10.1/ |id=
|ref= {{cite·web|url= {{citation| {{ISSN| {{doi| {{sfn| {{sfn|A|2000}} {{harvnb|A|2000}} {{efn| {{efn|n}}
{{refn| {{r|a}} {{r| {{rp|4}} {{rp| {{cn}} {{cn| {{dead·link}} {{dead·link|date=May·2010}} {{reflist}}
{{reflist|refs= {{notelist}} {{unbulleted·list| {{ubl| {{unknown| {{unknown}} {{main| {{quote| $ ${{x|1}} ($ ( )
{{lc: {{uc: {{urlencode: {{#sub: {{padright: {{#tag: |5|7 rowspan=2 colspan=3 ſ ı K
. , ; " « » “ ” word Word, é 漢字 𝒳 İ es 's · ·· ·a
""".split()
PIECES = [
    *(piece.replace("·", " ") for piece in _PIECES),
    "\n",
    "\n",
    "\n",
    "\n\n",
    " ",
    " ",
    " ",
    "\t",
    "\u00a0",
    "\x0b",
]

TEMPLATES = {
    "Wrap": "{{{1|}}}",
    "Twice": "{{{1}}} and {{{1}}}{{#if:{{{2|}}}| {{{2}}}}}",
    "Rows": "{|\n|-\n| {{{1|}}} || b\n|}",
    "Self": "a {{Self}}",
    "Loop": "{{Twice|{{Twice|{{{1|}}}}}}}",
    "Ref it": "a<ref>b</ref>",
    "Bold": "'''{{{1|}}}''' [[{{{1|a}}}|b]]",
    "Box": '<div class="navbox">{{{1}}}</div>{{{2|c}}}',
    "Lua": "{{#invoke:M|parent|{{{1|}}}}}",
}
MODULES = {
    "M": r"""
        local p = {}
        local function values(frame)
            local t = {}
            for k, v in pairs(frame.args) do t[#t + 1] = tostring(k) .. tostring(v) end
            table.sort(t)
            return t
        end
        function p.f(frame) return table.concat(values(frame), ',') .. frame:preprocess('{{Wrap|x}}') end
        function p.echo(frame) return frame.args[1] end
        function p.parent(frame) return (frame.args[1] or '') .. table.concat(values(frame:getParent()), '\n') end
        function p.each(frame)
            local out = {}
            for word in (frame.args[1] or ''):gmatch('[^|%s]+') do out[#out + 1] = '* ' .. word end
            return table.concat(out, '\n')
        end
        function p.html(frame)
            local root = mw.html.create('table'):addClass(frame.args[2] or 'infobox')
            for _, value in ipairs(values(frame)) do root:tag('tr'):tag('td'):wikitext(value) end
            return tostring(root)
        end
        function p.unicode(frame)
            local text = mw.text.trim(frame.args[1] or '')
            return mw.ustring.upper(mw.ustring.sub(text, 2, -2)) .. mw.ustring.gsub(text, '%a', '%0%0')
        end
        function p.quote(frame) return mw.text.nowiki(frame.args[1] or '') .. mw.text.unstrip(frame.args[2] or '') end
        function p.preprocess(frame) return frame:preprocess(frame.args[1] or '{{Lua|b}}') end
        function p.expand(frame) return frame:callParserFunction(frame.args[1] or 'lc:', frame.args[2] or 'A') end
        return p
        """
}

NESTINGS: dict[str, Callable[[int], str]] = {
    "links": lambda n: "[[a|" * n + "b" + "]]" * n,
    "plain brackets": lambda n: "[[" * n + "b" + "]]" * n,
    "files": lambda n: "[[File:a.jpg|thumb|" * n + "b" + "]]" * n,
    "external links": lambda n: "[http://a b " * n + "]" * n,
    "addresses": lambda n: "[http://a" * n + "]" * n,
    "templates": lambda n: "{{a|" * n + "b" + "}}" * n,
    "templates with names": lambda n: "{{a|b=" * n + "c" + "}}" * n,
    "heads of templates": lambda n: "{{a" * n + "b" + "}}" * n,
    "parameters": lambda n: "{{{a|" * n + "b" + "}}}" * n,
    "heads of parameters": lambda n: "{{{a" * n + "b" + "}}}" * n,
    "braces": lambda n: "{" * n + "a|b" + "}" * n,
    "known templates": lambda n: "{{nowrap|" * n + "b" + "}}" * n,
    "infoboxes": lambda n: "{{Infobox|a=" * n + "b" + "}}" * n,
    "tables": lambda n: "{|\n|\n" * n + "b" + "\n|}" * n,
    "tables in rows": lambda n: "{|\n|-\n| a\n| " * n + "\n|}" * n,
    "html tables": lambda n: "<table><tr><td>" * n + "b" + "</td></tr></table>" * n,
    "tags": lambda n: "<div>" * n + "b" + "</div>" * n,
    "inline tags": lambda n: "<small>" * n + "b" + "</small>" * n,
    "raised": lambda n: "a<sup>" * n + "2" + "</sup>" * n,
    "html lists": lambda n: "<ul><li>" * n + "b" + "</li></ul>" * n,
    "lists": lambda n: "\n".join("*" * number for number in range(min(n, 300))) + "*" * n + "a",
    "terms": lambda n: ";a:" * n + "b",
    "quotes": lambda n: "''a'''b" * n + "'''''" * n,
    "variants": lambda n: "-{a|" * n + "b" + "}-" * n,
    "comments": lambda n: "<!--" * n + "a" + "-->" * n,
    "nowiki": lambda n: "<nowiki>" * n + "a" + "</nowiki>" * n,
    "poems": lambda n: "<poem>" * n + "a" + "</poem>" * n,
    "pre": lambda n: "<pre>" * n + "a" + "</pre>" * n,
    "math": lambda n: "<math>" * n + "a" + "</math>" * n,
    "references": lambda n: "<ref>" * n + "a" + "</ref>" * n,
    "named references": lambda n: "<ref name=a>" * n + "a" + "</ref>" * n,
    "lists of references": lambda n: "<references>" * n + "<ref name=a>b</ref>" + "</references>" * n,
    "galleries": lambda n: "<gallery>\nA.jpg|" * n + "a<ref>b</ref>" + "\n</gallery>" * n,
    "imagemaps and galleries": lambda n: "<imagemap><gallery>" * n + "<ref>b</ref>" + "</gallery></imagemap>" * n,
    "lists and galleries": lambda n: "<references><gallery>" * n + "<ref>b</ref>" + "</gallery></references>" * n,
    "citations": lambda n: "{{Cite book|" * n + "=" + "}}" * n,
    "values of citations": lambda n: "{{cite book|title=" * n + "a" + "}}" * n,
    "values of citations in a reference": lambda n: "<ref>" + "{{cite book|title=" * n + "a" + "}}" * n + "</ref>",
    "ids of citations": lambda n: "{{cite book|title=b|id=" * n + "a" + "}}" * n,
    "notes": lambda n: "{{efn|a" * n + "b" + "}}" * n,
    "notes with citations": lambda n: "{{efn|{{cite book|title=" * n + "b" + "}}}}" * n,
    "notes with references": lambda n: "{{efn|a<ref>c</ref>" * n + "b" + "}}" * n,
    "notes by tag": lambda n: "{{#tag:ref|a" * n + "b" + "}}" * n,
    "lists by template": lambda n: "{{reflist|refs=" * n + "<ref name=a>b</ref>" + "}}" * n,
    "reused": lambda n: "{{r|" * n + "b" + "}}" * n,
    "shortened notes": lambda n: "{{sfn|" * n + "b|2000" + "}}" * n,
    "doubts": lambda n: "{{cn|" * n + "b" + "}}" * n,
    "pages": lambda n: "{{rp|" * n + "b" + "}}" * n,
    "if": lambda n: "{{#if:a|" * n + "b" + "}}" * n,
    "conditions": lambda n: "{{#if:" * n + "b" + "|c}}" * n,
    "switch": lambda n: "{{#switch:a|a=" * n + "b" + "}}" * n,
    "cases": lambda n: "{{#switch:a|" + "b=c|" * n + "d}}",
    "expressions": lambda n: "{{#expr:" + "(" * n + "1" + ")" * n + "}}",
    "signs": lambda n: "{{#expr:" + "-" * n + "1}}",
    "sums": lambda n: "{{#expr:1" + "+1" * n + "}}",
    "definitions": lambda n: "{{Wrap|" * n + "b" + "}}" * n,
    "boxes": lambda n: "{{Box|1|" * n + "b" + "}}" * n,
    "modules": lambda n: "{{#invoke:M|f|" * n + "b" + "}}" * n,
    "arguments of modules": lambda n: "{{Lua|" * n + "a<ref>b</ref>" + "}}" * n,
    "wikitext of modules": lambda n: "{{#invoke:M|preprocess|" * n + "{{Lua|b}}" + "}}" * n,
    "tables of modules": lambda n: "{{#invoke:M|html|" * n + "b" + "}}" * n,
    "unknown around references": lambda n: "{{unknown|" * n + "a<ref>b</ref>" + "}}" * n,
    "known around references": lambda n: "{{nowrap|" * n + "a<ref>b</ref>" + "}}" * n,
    "many references in a template": lambda n: "{{nowrap|" + "a<ref>b</ref>" * n + "}}",
    "many citations in a template": lambda n: "{{unknown|" + "{{cite book|title=a}}" * n + "}}",
    "many references in an unknown one": lambda n: "{{unknown|" + "a<ref>b</ref>" * n + "}}",
    "tables with references": lambda n: "{|\n| a<ref>b</ref>\n" * n + "|}\n" * n,
    "links with references": lambda n: "[[a|<ref>b</ref>" * n + "]]" * n,
    "mixed": lambda n: "{{nowrap|[[a|<small>{|\n|" * n + "b" + "\n|}</small>]]}}" * n,
    "attributes": lambda n: "<ref " + "a=b " * n + "/>",
    "quotes of attributes": lambda n: '<ref name="' + "a='" * n + "/>",
    "words of attributes": lambda n: "<ref " + "a" * n + "/>",
    "addresses of citations": lambda n: "{{cite web|url=" + "http://" * n + "}}",
    "names of authors": lambda n: "{{cite book|vauthors=" + "((" * n + "a" + "))" * n + "}}",
    "identifiers": lambda n: "<ref>" + "doi:10.1000/ab " * n + "</ref>",
    "sentences": lambda n: "A. b.<ref>c</ref> " * n,
    "unclosed tags": lambda n: "<div>a" * n,
    "unclosed comments": lambda n: "<!-- a " * n,
    "unclosed tables": lambda n: "{|\n| a\n" * n,
    "captions": lambda n: "{|\n" + "|+ a [[File:b.jpg|thumb|\n" * n + "|}",
    "spans of cells": lambda n: "{|\n" + "| rowspan=9999 colspan=9999 | a\n|-\n" * n + "|}",
    "attributes of cells": lambda n: "{|\n| " + 'colspan="3" ' * n + "{{unknown}}\n|}",
    "cells of a line": lambda n: "{|\n| " + "[[a|b || " * n + "c]]\n|}",
    "opened links": lambda n: "[[a|b " * n,
    "closed links": lambda n: "a]] " * n,
    "pipes of a link": lambda n: "[[File:a.jpg" + "|b=c" * n + "]]",
    "html headings": lambda n: "<h2>a " * n + "</h2>" * n,
    "definition lists": lambda n: "<dl><dt>a<dd>" * n + "b" + "</dd></dt></dl>" * n,
    "terms with tags": lambda n: ";" + "<b>a:" * n + "</b>" * n,
    "blocks in addresses": lambda n: "[http://a b<div>" * n + "</div>]" * n,
    "escaped entities": lambda n: "&" + "amp;" * n + "lt;",
    "switches": lambda n: "__NOTOC" * n + "__" * n,
    "tags in identifiers": lambda n: "{{doi|" + "<b " * n + "a}}>",
    "ampersands in identifiers": lambda n: "{{ISSN|" + "&l" * n + "}};",
    "comparisons": lambda n: "{{#ifeq:a|a|" * n + "b" + "}}" * n,
    "ifexpr": lambda n: "{{#ifexpr:1|" * n + "b" + "}}" * n,
    "iferror": lambda n: "{{#iferror:" * n + "{{#expr:1/0}}" + "|c}}" * n,
    "ifexist": lambda n: "{{#ifexist:A|" * n + "b" + "}}" * n,
    "padding": lambda n: "{{padleft:" * n + "b" + "|9|0}}" * n,
    "keys of a switch": lambda n: "{{#switch:a|" + "b|" * n + "#default=c}}",
    "powers": lambda n: "{{#expr:" + "2^" * n + "1}}",
    "functions of expressions": lambda n: "{{#expr:" + "sin " * n + "1}}",
    "comparisons of expressions": lambda n: "{{#expr:" + "(1<" * n + "1" + ")" * n + "}}",
    "prefixes of a name": lambda n: "{{" + "subst:" * n + "a}}",
    "substitutions": lambda n: "{{subst:" * n + "Wrap|a" + "}}" * n,
    "defaults of parameters": lambda n: "{{{a|{{{b|" * n + "c" + "}}}}}}" * n,
    "arguments": lambda n: "{{unknown" + "|a=b" * n + "}}",
    "money": lambda n: "($" + "{{x|1}}$" * n + ")",
    "conversions": lambda n: "{{convert|5|km}}" * n,
    "conversions in one another": lambda n: "{{convert|{{convert|" * n + "5" + "|km}}|mi}}" * n,
    "lists of lines": lambda n: "*#:;" * n + "a",
    "indents and tables": lambda n: ":{|\n|a\n" * n + "|}\n" * n,
    "listed works": lambda n: "* {{cite book|title=a|author={{cite book|title=b}}}}\n" * n,
    "short notes": lambda n: "{{sfn|A|2000}}{{harvnb|A|2000|p=" * n + "1" + "}}" * n,
    "groups of references": lambda n: (
        "".join(f"<ref group=g{k} name=n{k}>a</ref>" for k in range(n)) + "<references group=g1/>" * n
    ),
    "uses of a name": lambda n: "<ref name=a/>" * n + "<ref name=a>b</ref>" * n,
    "references in captions": lambda n: "[[File:a.jpg|thumb|b<ref>c</ref>" * n + "]]" * n,
    "definitions in rows": lambda n: "{|\n{{Rows|" * n + "a" + "}}\n|}" * n,
    "loops": lambda n: "{{Loop|" * n + "a" + "}}" * n,
}


_HEADS = """
{{efn|a {{efn|name=x| {{efn|a<ref>c</ref> {{#tag:ref| {{#tag:references| {{cite·book|title=a
{{cite·book|title=b|id= {{cite·book|ref= {{sfn| {{harvnb| {{rp| {{cn| {{r| {{reflist|refs= {{ISSN| {{nowrap|
{{lang|fr| {{#if:a| {{unknown| {{Infobox|a= {{Wrap| {{Rows| {{Lua| {{#invoke:M|echo| {{#invoke:M|html|
"""
# What nests in any order: what opens it, and what closes that.
LINKS_OF_CHAINS = {
    **dict.fromkeys((head.replace("·", " ") for head in _HEADS.split()), "}}"),
    "{{{a|": "}}}",
    "[[a|": "]]",
    "[[File:a.jpg|thumb|": "]]",
    "[http://a b ": "]",
    "{|\n| a ": "\n|}\n",
    "<small>": "</small>",
    "''": "''",
}


def chain(openers: Sequence[str], n: int) -> str:
    """What these open within one another, n times."""
    closers = [LINKS_OF_CHAINS[opener] for opener in reversed(openers)]
    return "".join(openers) * n + "b" + "".join(closers) * n


class Page(NamedTuple):
    """Wikitext and where it is from."""

    origin: str
    wikitext: str


class Parsers:
    """The parser in the four ways in which it is tried."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.plain = WikitextParser(SITE)
        self.noted = WikitextParser(SITE, has_references=True)
        definitions = Dictionary(TEMPLATES, MODULES)
        facts = {"definitions": definitions, "exists": {"A"}.__contains__}
        self.defined = WikitextParser(SITE, invoke=LuaModules(definitions, SITE, {"A"}.__contains__), **facts)
        self.all = WikitextParser(
            SITE, invoke=LuaModules(definitions, SITE, {"A"}.__contains__), has_references=True, **facts
        )


def parse(parser: WikitextParser, wikitext: str) -> ParsedText:
    """The page as of a time; raises TimeoutError after ``_MOST_SECONDS``."""
    signal.setitimer(signal.ITIMER_VIRTUAL, _MOST_SECONDS)
    try:
        return parser.parse(wikitext, title=TITLE, timestamp=TIMESTAMP)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _give_up(*_: object) -> None:
    raise TimeoutError(f"more than {_MOST_SECONDS} s")


def check_released(parsed: ParsedText) -> None:
    """Raises RecordError where the page could not be released."""
    raw = RawPage(1, 0, TITLE, None, 1, None, TIMESTAMP, "wikitext", "", "f", 0)
    page = resolve_page(ParsedPage(raw, parsed, "ok"), Unresolved(), None, SITE)
    check_page(page_with_references(page, parsed.references))


def difference(plain: ParsedText, noted: ParsedText) -> str | None:
    """The first field in which a page with references is another, with both values; None where none is."""
    for name in plain.__slots__:
        before, after = getattr(plain, name), getattr(noted, name)
        if name != "references" and name != "dependencies" and before != after:
            return f"{name}: {before!r} is {after!r} with references"[:1000]
    return None


def faults(parsers: Parsers, wikitext: str, *, is_timed: bool = True) -> Iterator[str]:
    """The rules that a page breaks."""
    for before, after, has_bound in (("plain", "noted", True), ("defined", "all", False)):
        found = []
        for name in (before, after):
            parser: WikitextParser = getattr(parsers, name)
            allowed = (MS_A_PAGE * 1000 + US_A_CHAR * len(wikitext)) / 1e6
            reset_peak()
            resident = megabytes("VmRSS")
            spent = []
            for _ in range(4):
                started = process_time()
                try:
                    parsed = parse(parser, wikitext)
                    check_laws(parsed)
                    check_released(parsed)
                except Exception as error:  # noqa: BLE001  # whatever it is, it is the finding
                    yield f"{name}: {type(error).__name__}: {error}"[:1000]
                    return
                spent.append(process_time() - started)
                parsers.seconds[name] += spent[-1]
                if spent[-1] <= allowed:
                    break
            else:
                if has_bound and is_timed:
                    yield f"{name}: {min(spent) * 1000:.0f} ms, {allowed * 1000:.0f} are allowed"
            if (peak := megabytes("VmHWM") - resident) > MAX_MEGABYTES:
                yield f"{name}: {peak} MB"
            found.append(parsed)
        if said := difference(*found):
            yield f"{after}: {said}"
        references = found[1].references
        if references is not None and references.counts["failed"]:
            yield f"{after}: the references failed"


def megabytes(field: str) -> int:
    """A figure of this process, in MB."""
    status = Path("/proc/self/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)
    return 0 if found is None else int(found[1]) // 1024


def reset_peak() -> None:
    """Has the kernel measure the peak of this process anew."""
    Path("/proc/self/clear_refs").write_text("5")


def soup(rng: random.Random) -> Page:
    """Pieces of markup in any order."""
    pieces = rng.choices(PIECES, k=rng.randrange(1, 45))
    return Page("soup", rng.choice(["", "", " "]).join(pieces))


def mutants(rng: random.Random, stock: list[str]) -> Page:
    """A part of a page, with some edits."""
    text = rng.choice(stock)
    start = rng.randrange(max(len(text) - _MOST_CHARS // 2, 1))
    text = text[start : start + rng.randrange(200, _MOST_CHARS)]
    for _ in range(rng.randrange(1, 9)):
        at, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        end = min(end, at + rng.choice([1, 2, 10, 200]))
        edit = rng.randrange(6)
        if edit == 0:
            text = text[:at] + text[end:]
        elif edit == 1:
            text = text[:end] + text[at:]
        elif edit == 2:
            text = text[:at] + rng.choice(PIECES) + text[at:end] + rng.choice(PIECES) + text[end:]
        else:
            text = text[:at] + "".join(rng.choices(PIECES, k=rng.randrange(1, 4))) + text[at:]
    return Page("mutant", text)


def stock_of_pages() -> list[str]:
    """Wikitext of the mini-wiki, of golden cases and, where they are there, of real slices."""
    found = re.findall(r"<text[^>]*>([^<]+)</text>", mini_wiki.XML.read_text("utf-8"))
    pages = [text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") for text in found]
    for path in sorted(_GOLDEN.glob("*/*.toml")):
        cases = tomllib.loads(path.read_text("utf-8")).values()
        texts = [str(value) for group in cases if isinstance(group, list) for case in group for value in case.values()]
        pages.append("\n".join(texts))
    if (real_data_folder() / "dumps").exists():
        from tests.test_kbsource.test_wikitext.test_real import SLICES, articles

        pages += [raw.text for relative in SLICES for _, raw in articles(relative)]
    return [page for page in pages if page]


def exponents(
    parsers: Parsers, name: str, sizes: tuple[int, ...] = (50, 100, 200, 400, 800, 1600, 3200)
) -> dict[str, float]:
    """By parser, how the time of a nesting grows with it: the steepest slope over two doublings, of logarithms.

    Times below 10 ms are not looked at.
    """
    from math import log2

    made = NESTINGS[name]
    found = {}
    for way in ("plain", "noted", "defined", "all"):
        times: list[tuple[int, float]] = []
        for size in sizes:
            wikitext = made(size)
            spent = []
            for _ in range(2):
                started = process_time()
                parse(getattr(parsers, way), wikitext)
                spent.append(process_time() - started)
            times.append((len(wikitext), min(spent)))
            if min(spent) > 5:
                break
        slopes = [
            log2(after / before) / log2(n_after / n_before)
            for (n_before, before), (n_after, after) in zip(times, times[2:], strict=False)
            if before > 0.01 and n_after > 2 * n_before
        ]
        found[way] = max(slopes, default=0.0)
    return found


def say(text: str) -> None:
    """Prints a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--cpu-minutes", type=float, default=15, help="ends after so much CPU time of this process")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--faults", type=int, default=50, help="ends after so many")
    given = arguments.parse_args()
    signal.signal(signal.SIGVTALRM, _give_up)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    rng = random.Random(given.seed)
    parsers, stock = Parsers(), stock_of_pages()
    for warm in NESTINGS.values():
        for way in ("plain", "noted", "defined", "all"):
            parse(getattr(parsers, way), warm(3))
    tried: Counter[str] = Counter()
    n_faults = n_lines = 0

    def report() -> None:
        seconds = {name: round(spent) for name, spent in parsers.seconds.items()}
        say(
            f"seed {given.seed}: {n_faults} faults in {sum(tried.values())} pages ({dict(tried)}), "
            f"{process_time() / 60:.1f} minutes of CPU, seconds by parser: {seconds}"
        )

    while process_time() < 60 * given.cpu_minutes and n_faults < given.faults:
        if process_time() > 60 * _MINUTES_A_LINE * (n_lines + 1):
            n_lines += 1
            report()
        kind = rng.randrange(20)
        if kind == 0:
            name = rng.choice([*NESTINGS])
            page = Page(f"nesting {name}", NESTINGS[name](int(2 ** rng.uniform(1, 11))))
        elif kind == 1:
            openers = rng.choices([*LINKS_OF_CHAINS], k=rng.randrange(2, 4))
            page = Page(f"chain {openers}", chain(openers, int(2 ** rng.uniform(1, 7))))
        else:
            page = soup(rng) if kind < 11 else mutants(rng, stock)
        tried[page.origin.split()[0]] += 1
        said = [*faults(parsers, page.wikitext)]
        if said:
            n_faults += 1
            is_timed = " are allowed" in said[0] or said[0].endswith("MB")
            text = page.wikitext
            if not is_timed:
                text = shrunk(text, lambda part: next(faults(parsers, part, is_timed=False), None) is not None)
            say(f"{page.origin}: {said[0]}\n    {text[:2000]!r}")
            if not is_timed and (left := next(faults(parsers, text, is_timed=False), None)):
                say(f"    {left}")
    report()
    return min(n_faults, 1)


if __name__ == "__main__":
    sys.exit(main())
