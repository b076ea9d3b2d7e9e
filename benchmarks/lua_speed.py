"""Measures the cost of Lua modules: builds of a generated wiki whose articles convert measures, cite a book and have an
infobox.

The wiki is built with and without modules. In one version, its templates have names for which kbsource has rules; in
the other, they have other names, so that modules render them.
"""

from __future__ import annotations

import argparse
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.build_speed import make
from benchmarks.environment import WORK, machine, table, write_json

NAMES = {
    "by rules": ("Convert", "Cite book", "Infobox place"),
    "by modules": ("Mesure", "Quelle", "Sachkasten"),
}
CHARS = 6000  # of prose in an article
_UNITS = "km:1000 mi:1609.344 m:1 ft:0.3048 kg:1 lb:0.45359237 ha:10000 acre:4046.8564".split()
_DATA = "".join(f"['{unit.partition(':')[0]}'] = {{ scale = {unit.partition(':')[2]} }}, " for unit in _UNITS)
_DATA += "".join(f"['unit{n}'] = {{ scale = {n}.5 }}, " for n in range(200))
MODULES = {
    "Arguments": """
        local p = {}
        local function tidy(value)
            value = value:match('^%s*(.-)%s*$')
            return value ~= '' and value or nil
        end
        function p.read(frame)
            local out = {}
            for key, value in pairs(frame.args) do out[key] = tidy(value) end
            for key, value in pairs(frame:getParent().args) do out[key] = out[key] or tidy(value) end
            return out
        end
        return p""",
    "Units": f"return {{ {_DATA} }}",
    "Convert": """
        local p, units = {}, mw.loadData('Module:Units')
        local pairs_of = { km = 'mi', mi = 'km', m = 'ft', ft = 'm', kg = 'lb', lb = 'kg', ha = 'acre', acre = 'ha' }
        local function grouped(text)
            local n
            repeat text, n = text:gsub('^(-?%d+)(%d%d%d)', '%1,%2') until n == 0
            return text
        end
        function p.convert(frame)
            local args = require('Module:Arguments').read(frame)
            local value, unit = tonumber((args[1]:gsub(',', ''))), args[2]
            local other = args[3] or pairs_of[unit]
            local result = math.floor(value * units[unit].scale / units[other].scale + 0.5)
            return string.format('%s&nbsp;%s (%s&nbsp;%s)', grouped(args[1]), unit, grouped(tostring(result)), other)
        end
        return p""",
    "Citation": """
        local p, read = {}, require('Module:Arguments').read
        function p.cite(frame)
            local args, parts = read(frame), {}
            parts[1] = mw.text.listToText({ args.last .. ', ' .. args.first }) .. ' (' .. args.year .. ')'
            parts[2] = "''" .. mw.ustring.sub(args.title, 1, 200) .. "''"
            parts[3] = mw.text.trim(args.publisher)
            parts[4] = (args.page:find('[-,]') and 'pp. ' or 'p. ') .. mw.ustring.gsub(args.page, '-', '–')
            return '<span class="citation">' .. table.concat(parts, '. ') .. '.</span>'
        end
        return p""",
    "Box": """
        local p, read = {}, require('Module:Arguments').read
        function p.box(frame)
            local args, root = read(frame), mw.html.create('table'):addClass('infobox'):css('width', '22em')
            root:tag('caption'):wikitext(args.title)
            for i = 1, 20 do
                local value = args['data' .. i]
                if value then
                    local row = root:tag('tr')
                    row:tag('th'):attr('scope', 'row'):wikitext(args['label' .. i])
                    row:tag('td'):wikitext(value)
                end
            end
            return tostring(root)
        end
        return p""",
}
_SITEINFO = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en"><siteinfo>
<sitename>Made up</sitename><dbname>enwiki</dbname><base>https://en.wikipedia.org/wiki/Main_Page</base>
<generator>MediaWiki 1.45.0</generator><case>first-letter</case><namespaces>
<namespace key="0" case="first-letter" /><namespace key="10" case="first-letter">Template</namespace>
<namespace key="828" case="first-letter">Module</namespace></namespaces></siteinfo>
"""


def _pages(names: tuple[str, str, str], n_articles: int) -> Iterator[tuple[int, str, str]]:
    """Yields namespace, title and wikitext."""
    convert, cite, box = names
    draw = random.Random(7)
    words = ["".join(draw.choices("aeioulnrstmkp", k=draw.randrange(2, 10))) for _ in range(3000)]

    def sentence() -> str:
        chosen = draw.choices(words, k=draw.randrange(8, 20))
        chosen[3] = f"[[{chosen[3].title()}]]" if draw.random() < 0.5 else chosen[3]
        return f"{' '.join(chosen).capitalize()}."

    def measure() -> str:
        return f"{{{{{convert}|{draw.randrange(1, 5000)}|{draw.choice(_UNITS).partition(':')[0]}}}}}"

    def book() -> str:
        last, first, publisher, *title = draw.choices(words, k=9)
        facts = f"last={last}|first={first}|year={draw.randrange(1900, 2020)}|publisher={publisher}"
        return f"{{{{{cite}|{facts}|title={' '.join(title)}|page={draw.randrange(400)}}}}}"

    for number in range(1, n_articles + 1):
        facts = f"name=Place {number}|area={draw.randrange(900)}|people={draw.randrange(99999)}"
        text = f"{{{{{box}|{facts}}}}}\n'''Place {number}''' is {measure()} from the sea.\n\n"
        while len(text) < CHARS:
            text += f"{sentence()} {sentence()} It is {measure()} long.<ref>{book()}</ref> {sentence()}\n\n"
            text += f"{' '.join(sentence() for _ in range(5))}\n\n"
        yield 0, f"Place {number}", f"{text}== Sources ==\n* {book()}\n"
    yield 10, f"Template:{convert}", "{{#invoke:Convert|convert}}"
    yield 10, f"Template:{cite}", "{{#invoke:Citation|cite}}"
    rows = "label1=Area|data1={{{area|}}}|label2=People|data2={{{people|}}}|label3=Mayor|data3={{{mayor|}}}"
    yield 10, f"Template:{box}", f"{{{{#invoke:Box|box|title={{{{{{name}}}}}}|{rows}}}}}"
    yield from ((828, f"Module:{name}", source) for name, source in MODULES.items())


def write_dump(path: Path, names: tuple[str, str, str], n_articles: int) -> None:
    """Writes the wiki as a dump."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.write(_SITEINFO)
        for number, (namespace, title, text) in enumerate(_pages(names, n_articles), 1):
            model, form = ("Scribunto", "text/plain") if namespace == 828 else ("wikitext", "text/x-wiki")
            file.write(
                f"<page><title>{title}</title><ns>{namespace}</ns><id>{number}</id><revision><id>{number}</id>"
                f"<timestamp>2025-12-01T00:00:00Z</timestamp><contributor><username>A</username><id>1</id></contributor>"
                f'<model>{model}</model><format>{form}</format><text xml:space="preserve">{escape(text)}</text>'
                "</revision></page>\n"
            )
        file.write("</mediawiki>\n")


def measure(n_articles: int, options: list[str]) -> dict[str, Any]:
    """Builds both wikis with each value of ``--templates``."""
    rows = []
    for way, names in NAMES.items():
        dump = WORK / "dumps" / f"lua-{way.replace(' ', '-')}" / "enwiki-20260101-pages-articles.xml"
        write_dump(dump, names, n_articles)
        for templates in ("rules", "definitions", "lua"):
            output = WORK / "releases" / "lua"
            usage = make(
                "build", dump, output=output, options=["--runner", "local", "--templates", templates, *options]
            )
            rows.append({"templates": way, "option": templates, "cpu_s": usage.cpu_s, "peak_mb": usage.peak_tree_mb})
            shutil.rmtree(output)
    return {"machine": machine(), "articles": n_articles, "builds": rows}


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--articles", type=int, default=3000)
    parser.add_argument("--json", help="write the figures here")
    args, options = parser.parse_known_args()
    result = measure(args.articles, options)
    keys = ("templates", "option", "cpu_s", "peak_mb")
    print(
        table(
            ("templates are rendered", "--templates", "CPU s", "peak MB"),
            [[row[key] for key in keys] for row in result["builds"]],
        )
    )
    write_json(args.json, result)


if __name__ == "__main__":
    main()
