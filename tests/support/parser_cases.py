"""Compares the text of pages with the HTML that MediaWiki's own parser tests expect; a tool to run by hand.

usage: python -m tests.support.parser_cases FOLDER [--show N]

``FOLDER`` holds the ``.txt`` files of a checked-out suite (``tests/parser`` of MediaWiki or Parsoid). A case counts
where a page shows what it tests: cases that the suite disables, transforms before saving, edit summaries, other
languages' variants, and hooks that the suite defines for itself are out. The text of a case is compared as readers see
it: white space is normalised, and what a release leaves out by design is taken out of the HTML first: tables of
contents, edit links, pictures with their captions, categories, reference marks and lists, numbers of links without a
label, links to templates and files that are missing, and errors. Images of other sites, which no Wikipedia allows, and
cases about control characters, which no dump can hold, are out. Brackets, braces and pipes are not compared, since a
release drops those that open nothing, and where a page has tables, which a release keeps apart, the order of words is
not. A case whose rendering shows such markup and that differs all the same is counted apart.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from kbsource.site import Site
from kbsource.titles import clean_title
from kbsource.wikitext.parse import ParsedText, WikitextParser
from tests.support.wikitexts import Dictionary

_SECTION = re.compile(r"^!!\s*([\w/+*-]+)[^\n]*\n", re.MULTILINE)
_LANGUAGE = re.compile(r"\blanguage\s*=\s*\"?([a-z-]+)")
_TITLE = re.compile(r"\btitle\s*=\s*\"?\[\[([^\]]+)\]\]")
# What no page of an article's text shows: options of cases, and tags and functions that only the suite knows.
_OUT_OPTIONS = re.compile(
    r"\b(?:pst|msg|comment|disabled|subpage|preload|cat|ill|section=|replace=|wtVariantLanguage|htmlVariantLanguage"
    r"|variant|showtitle|showindicators|wgRawHtml|wgAllowExternalImages|externalimages|thumbsize|styletag"
    r"|annotations|max\w+|wgMax\w+|wgNonincludableNamespaces|wgInterwikiMagic|wgMaxArticleSize|maxIncludeSize|userLanguage|wrap|parsoid-only|local)\b"
)
_OUT_WIKITEXT = re.compile(
    r"<(?:tag|pwraptest|statictag|sealtag|asidetag|annotationtag|embed|spantag|divtag|tvar|translate|ext|indicator|html"
    r"|section|noinclude|includeonly|onlyinclude|staticTag|aside|dummy|timeline|graph|video|audio|ruby|meta|link|style"
    r"|languages?|langconvert|charinsert|categorytree|shortcodes?|rawhtml|maplink|mapframe)\b|-\{|\{\{#(?:tag|bcp47|format|dir|lang|interwikilink|contentmodel|spantag)"
    r"|\{\{(?:int|:|PAGESIZE|MediaWiki:|CURRENT|LOCAL|REVISION|NUMBER|PAGESIN|PROTECTION|SPECIAL|int:|gender|anchorencode|filepath|#special"
    r"|DEFAULTSORT|DISPLAYTITLE|SERVER|SCRIPT|STYLE|SITENAME|msg:|raw:|msgnw|subst|safesubst|CONTENTLANG|PAGELANG|DIRMARK"
    r"|USERLANG|!\}\}|ns:|nse:|fullurl|localurl|canonicalurl|urlencode|plural|grammar|ARTICLE|SUBJECT|TALK|ROOT|BASE)"
    r"|~~~|<t\u00e5g|\bbullet\b|\blocal:|\bisbn\b|\brfc\b|\bpmid\b",
    re.IGNORECASE,
)


_OTHER_IMAGE = re.compile(r'<img src="https?://(?!example\.com/images)')


class Case(NamedTuple):
    """One case of the suite."""

    file: str
    name: str
    wikitext: str
    html: str
    options: str


def read_suite(folder: Path) -> tuple[list[Case], dict[tuple[str, str], str]]:
    """Returns the cases of all files, and the pages that they define by file and title."""
    cases: list[Case] = []
    articles: dict[tuple[str, str], str] = {}
    for path in sorted(set(folder.glob("*.txt")) - {folder / "badCharacters.txt"}):
        source = path.read_text("utf-8", errors="replace")
        pieces = _SECTION.split(source)
        current: dict[str, str] = {}
        for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
            if name in ("test", "article"):
                current = {}
            current[name] = body.removesuffix("\n")
            if name == "endarticle":
                articles[path.name, clean_title(current.get("article", "").strip())] = current.get("text", "")
            elif name == "end" and "test" in current:
                html = next((current[key] for key in ("html/php", "html/*", "html") if key in current), None)
                if html is not None and "wikitext" in current:
                    options = f"{current.get('options', '')}\n{current.get('config', '')}"
                    cases.append(Case(path.name, current["test"].strip(), current["wikitext"], html, options))
    return cases, articles


_BLOCK = frozenset(
    """p div h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table tr td th caption pre blockquote hr br center figure section
    figcaption tbody thead aside article""".split()
)
_VOID = frozenset("br hr img wbr meta link input col area base source track param".split())
# Classes of what a release does not show.
_HIDDEN = frozenset(
    """toc mw-editsection thumb gallery reference references mw-references-wrap error autonumber floatright floatleft
    floatnone center-image gallerybox thumbinner image mw-file-description mw-cite-backlink mw-empty-elt-hidden
    catlinks mw-references""".split()
)
_TEMPLATE = frozenset({"Template", "Şablon", "Шаблон", "Šablon", "Vorlage"})
_HIDDEN_TAGS = frozenset("figure img script style video audio map rp gallery".split())


class _Text(HTMLParser):
    """The text that a piece of HTML shows."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self._stack: list[tuple[str, bool]] = []

    def _is_hidden(self) -> bool:
        return any(hidden for _, hidden in self._stack)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Opens an element."""
        facts = {name: value or "" for name, value in attributes}
        if tag in _BLOCK:
            self.out.append(" ")
        if tag in _VOID:
            return
        classes = frozenset(facts.get("class", "").split())
        kind = facts.get("typeof", "")
        hidden = (
            tag in _HIDDEN_TAGS
            or not _HIDDEN.isdisjoint(classes)
            or kind.startswith(("mw:File", "mw:Error"))
            or facts.get("id") == "toc"
            or ("new" in classes and facts.get("title", "").partition(":")[0] in _TEMPLATE)
            or ("Special:Upload" in facts.get("href", "") and facts.get("title", "").startswith("File:"))
        )
        self._stack.append((tag, hidden))

    def handle_endtag(self, tag: str) -> None:
        """Closes the element that was opened last with this tag."""
        if tag in _BLOCK:
            self.out.append(" ")
        for place in range(len(self._stack) - 1, -1, -1):
            if self._stack[place][0] == tag:
                del self._stack[place:]
                return

    def handle_data(self, data: str) -> None:
        """Takes text."""
        if not self._is_hidden():
            self.out.append(data)


def text_of_html(html: str) -> str:
    """Returns what readers see of a piece of HTML, with single spaces."""
    parser = _Text()
    parser.feed(html)
    parser.close()
    return normalised("".join(parser.out))


_NO_CHARACTER = re.compile("[\U0010fffe\U0010ffff]")  # the last two code points, which Python's parser of HTML drops
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ", "0123456789+-=()ni")


def normalised(text: str) -> str:
    """Returns the text with single spaces and raised signs on the line."""
    return " ".join(_NO_CHARACTER.sub("", text.translate(_SUPERSCRIPT)).replace("^(", "").split())


_BROKEN = re.compile(r"\[\[|\]\]|\{\{|\}\}")
_PARAMETER = re.compile(r"\{\{\{[^{}|]*\}\}\}")
_MARKUP = str.maketrans(dict.fromkeys("[]{}|", " "))


def is_same(expected: str, found: str, *, is_ordered: bool) -> bool:
    """Whether two texts are the same but for broken markup."""
    words = [_PARAMETER.sub("", text).translate(_MARKUP).split() for text in (expected, found)]
    if not is_ordered:
        words = [sorted(text) for text in words]
    return words[0] == words[1] or ("".join(words[0]) == "".join(words[1]) and " " not in expected.strip("[]{}| "))


def text_of_page(parsed: ParsedText) -> str:
    """Returns the text of a page, each table behind the element that it follows."""
    tables: dict[int, list[str]] = {}
    for table in parsed.tables:
        cells = [cell.text for row in table.rows for cell in row]
        tables.setdefault(table.element, []).extend([table.caption or "", *cells])
    out: list[str] = []
    for number, element in enumerate(parsed.elements):
        if number:
            out.append(element.text)
        out += tables.get(number, ())
    return normalised("\n".join(out))


_NAMESPACES = {
    -2: "Media", -1: "Special", 0: "", 1: "Talk", 2: "User", 3: "User talk", 4: "Project", 5: "Project talk",
    6: "File", 7: "File talk", 8: "MediaWiki", 9: "MediaWiki talk", 10: "Template", 11: "Template talk", 12: "Help",
    13: "Help talk", 14: "Category", 15: "Category talk", 100: "MemoryAlpha", 828: "Module",
}  # fmt: skip


def _templates(articles: dict[str, str]) -> dict[str, str]:
    """The templates among the pages, redirects followed."""
    named = [(*title.partition(":"), text) for title, text in articles.items()]
    found = {name.strip(): text for prefix, _, name, text in named if prefix.title() in _TEMPLATE}
    found = {name[:1].upper() + name[1:]: text for name, text in found.items()}
    for name, text in list(found.items()):
        if match := re.match(r"#REDIRECT\s*\[\[Template:([^\]]+)\]\]", text, re.IGNORECASE):
            found[name] = found.get(match[1][:1].upper() + match[1][1:], "")
    return found


def judge(cases: list[Case], articles: dict[tuple[str, str], str]) -> Iterator[tuple[Case, str, str, bool]]:
    """Yields each case that counts, with the text expected, the text of the page, and whether they are the same."""
    parsers: dict[tuple[str, str], WikitextParser] = {}
    templates: dict[str, dict[str, str]] = {}
    for case in cases:
        is_out = _OUT_OPTIONS.search(case.options) or "language variants" in case.name
        if is_out or _OUT_WIKITEXT.search(case.wikitext) or _OTHER_IMAGE.search(case.html):
            continue
        language = _LANGUAGE.search(case.options)
        lang = language[1] if language else "en"
        if (case.file, lang) not in parsers:
            ranked = sorted(articles, key=lambda key: (key[0] == case.file, key[0] == "parserTests.txt"))
            pages = {key[1]: articles[key] for key in ranked}
            templates[case.file] = _templates(pages)
            parsers[case.file, lang] = WikitextParser(
                Site(lang=lang, name="MediaWiki", namespaces=_NAMESPACES),
                definitions=Dictionary(templates[case.file]),
                exists=frozenset(pages).__contains__,
            )
        title = _TITLE.search(case.options)
        parsed = parsers[case.file, lang].parse(case.wikitext, title=title[1] if title else "Parser test")
        defined = templates[case.file]
        if any(use.name in defined and use.outcome in ("rendered", "dropped") for use in parsed.templates):
            continue  # a rule, and not the suite's definition, says what it shows
        expected, found = text_of_html(case.html), text_of_page(parsed)
        yield case, expected, found, is_same(expected, found, is_ordered=not parsed.tables)


def main() -> int:
    """Prints the counts and the cases that differ."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--show", type=int, default=20, help="cases that differ to print")
    options = arguments.parse_args()
    cases, articles = read_suite(options.folder)
    wrong: Counter[str] = Counter()
    n_broken = 0
    n_right = 0
    for case, expected, found, is_right in judge(cases, articles):
        if is_right:
            n_right += 1
            continue
        if _BROKEN.search(expected):
            n_broken += 1
            continue
        wrong[case.file] += 1
        if wrong.total() <= options.show:
            sys.stdout.write(f"--- {case.file}: {case.name}\n{case.wikitext}\n")
            sys.stdout.write(f"  expected: {expected}\n  found:    {found}\n")
    n_counted = n_right + n_broken + wrong.total()
    sys.stdout.write(f"{len(cases)} cases with HTML, {n_counted} count, {n_right} right, {wrong.total()} wrong, ")
    sys.stdout.write(f"{n_broken} differ where broken markup is shown as it is written\n{dict(wrong)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
