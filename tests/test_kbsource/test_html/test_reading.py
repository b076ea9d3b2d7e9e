"""What rendered HTML becomes: cases in the terms of readers, and input that is not what it should be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kbsource.errors import RecordError
from kbsource.html.reading import MAX_DEPTH, HtmlReader, extract_html_fallback
from kbsource.site import Site
from kbsource.wikitext.parse import ParsedText
from tests.support.snapshots import document

READER = HtmlReader(Site(lang="en", dbname="enwiki"))
NOTED_READER = HtmlReader(Site(lang="en", dbname="enwiki"), has_references=True)


def parse(body: str, **values: Any) -> ParsedText:
    return READER.parse(document(body), title="Ada", **values)


def lines(parsed: ParsedText) -> list[str]:
    """Returns the elements after the title, with a prefix that tells their kind."""
    prefixes = {"heading": "=", "paragraph": "", "list_item": ""}
    return [
        prefixes[element.kind] * element.level + element.marker + (" " if element.marker else "") + element.text
        for element in parsed.elements[1:]
    ]


def links(parsed: ParsedText) -> list[tuple[str, str, bool]]:
    for anchor in parsed.anchors:
        assert parsed.elements[anchor.element].text[anchor.start : anchor.end] == anchor.text
    return [(anchor.text, anchor.written_target, anchor.from_template) for anchor in parsed.anchors]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>One\ntwo  <i>three</i>.</p><p>Four</p>", ["One two three.", "Four"]),
        ("<div>Loose <span>text</span><p>Inside</p> after</div>", ["Loose text", "Inside", "after"]),
        ("<blockquote>Quoted<br/>twice</blockquote>", ["Quoted twice"]),
        ('<h2 id="A">A <i>b</i></h2><p>c</p>', ["==A b", "c"]),
        ('<div class="mw-heading mw-heading3"><h3>Own</h3></div>', ["===Own"]),
        ('<section data-mw-section-id="-1"><p>Kept</p></section>', ["Kept"]),
        ("<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>", ["* a", "** b", "* c"]),
        ("<ol><li>a<p>b</p></li></ol><dl><dt>t</dt><dd>d</dd></dl>", ["# a b", "; t", ": d"]),
        ("<pre>a\n  b</pre>", ["a b"]),
        # what readers see as one character or one word
        ('<p>5<span typeof="mw:Entity">&nbsp;</span>km<span typeof="mw:DisplaySpace">\u00a0</span>%</p>', ["5 km %"]),
        ("<p>10<sup>18</sup>, x<sup>k+1</sup>, 19<sup>th</sup>, H<sub>2</sub>O</p>", ["10¹⁸, x^(k+1), 19th, H2O"]),
        ("<p>x<sup><i>n</i>+1</sup>, 10<sup>2<sup>3</sup></sup>, 10<sup>2<br/>3</sup></p>", ["xⁿ⁺¹, 102³, 10²³"]),
        ('<p>1<sup><span style="display:none">0</span>st</sup> 10<sup><span>2</span></sup></p>', ["1st 10²"]),
        ('<p>10<sup><span typeof="mw:Entity">−</span>2</sup></p>', ["10⁻²"]),
        # control characters
        ("<p>a \x7f b&#127;c&#1;</p>", ["a bc"]),
        ('<p>a <span typeof="mw:Nowiki">[[b]]</span></p>', ["a [[b]]"]),
        # formulas, whose MathML is hidden
        (
            """<p>so <span class="mwe-math-element" typeof="mw:Extension/math" data-mw='{"body":{"extsrc":" x^2 "}}'>"""
            '<span style="display: none"><math><mi>x</mi></math></span></span> holds</p>',
            ["so $x^2$ holds"],
        ),
        (
            '<p>so <span class="mwe-math-element"><span style="display: none"><math alttext="{\\displaystyle x^2}">'
            "<mi>x</mi></math></span></span></p>",
            ["so $x^2$"],
        ),
        # not text
        ('<p>a<sup class="mw-ref reference" typeof="mw:Extension/ref"><a href="#n">[1]</a></sup> b</p>', ["a b"]),
        ('<p>a<style>b{}</style><span style="display:none">c</span><link rel="x"/></p>', ["a"]),
        ('<figure typeof="mw:File/Thumb"><figcaption>A view</figcaption></figure><p>a</p>', ["a"]),
        ('<div class="navbox" role="navigation">a</div><div class="hatnote">b</div><p>c</p>', ["c"]),
        # text of several templates as one piece
        (
            """<div about="#mwt1" typeof="mw:Transclusion" data-mw='{"parts":[{"template":{"target":{"wt":"div col"},"""
            """"params":{}}},"* a stub",{"template":{"target":{"wt":"div col end"},"params":{}}}]}'>"""
            "<ul><li>a stub</li></ul></div>",
            ["* a stub"],
        ),
        (
            """<p>a<meta typeof="mw:LanguageVariant" data-mw-variant='{"add":true,"name":{"t":"b"}}'/></p>""",
            ["a"],
        ),
        (
            """<p>-<span typeof="mw:LanguageVariant" data-mw-variant='{"twoway":[{"l":"zh-hans","t":"网<b>络</b>"},"""
            """{"l":"zh-hant","t":"網路"}]}'></span>-</p>""",
            ["-网络-"],
        ),
    ],
)
def test_the_text_is_as_readers_see_it(body: str, expected: list[str]) -> None:
    assert lines(parse(body)) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            '<p>see <a rel="mw:WikiLink" href="./Bus_stop#The_end">bus es</a>.</p>',
            [("bus es", "Bus stop#The end", False)],
        ),
        ('<p><a rel="mw:WikiLink" href="./A%3F"> a </a></p>', [("a", "A?", False)]),
        (
            '<p><a rel="mw:WikiLink" class="new" href="./X?action=edit&amp;redlink=1">x</a></p>',
            [("x", "X", False)],
        ),
        ('<p><a rel="mw:WikiLink" class="mw-selflink-fragment" href="./Ada#End">e</a></p>', [("e", "Ada#End", False)]),
        (
            '<p><a href="/wiki/Zürich">z</a> <a href="/w/index.php?title=New_x&amp;redlink=1">n</a></p>',
            [("z", "Zürich", False), ("n", "New x", False)],
        ),
        ('<p><a class="mw-selflink selflink">Ada</a> <a rel="mw:WikiLink/Interwiki" href="https://a">w</a></p>', []),
        ('<p><a rel="mw:ExtLink" class="external text" href="https://a.example">page</a></p>', []),
        ('<p>10<sup><a rel="mw:WikiLink" href="./Square">2</a></sup></p>', [("2", "Square", False)]),
        # a link from the template itself, and one that the page's own text has in an argument
        (
            """<p><span about="#mwt3" typeof="mw:Transclusion" data-mw='{"parts":[{"template":{"target":{"wt":"t"},"""
            """"params":{"1":{"wt":"[[own|x]]"}}}}]}'><a rel="mw:WikiLink" href="./Own">x</a> """
            '<a rel="mw:WikiLink" href="./Other">y</a></span></p>',
            [("x", "Own", False), ("y", "Other", True)],
        ),
    ],
)
def test_links_have_targets_and_exact_spans(body: str, expected: list[tuple[str, str, bool]]) -> None:
    assert links(parse(body)) == expected


def test_a_line_break_in_a_link_does_not_end_it() -> None:
    parsed = parse('<p><a rel="mw:WikiLink" href="./A">one<br/>two</a></p>')
    assert links(parsed) == [("one two", "A", False)]


def test_tables_keep_cells_spans_links_and_captions() -> None:
    parsed = parse(
        '<p>before</p><table class="wikitable"><caption>Ships</caption><tbody><tr><th>Year</th><th>Name</th></tr>'
        '<tr><td rowspan="2" colspan="x">1902</td><td><ul><li>a</li><li><a href="./B" rel="mw:WikiLink">b</a></li></ul>'
        "</td></tr></tbody></table><p>after</p>"
    )
    (table,) = parsed.tables
    assert (table.element, table.caption, len(table.rows)) == (1, "Ships", 2)
    assert [(cell.text, cell.is_header, cell.rowspan, cell.colspan) for row in table.rows for cell in row] == [
        ("Year", True, 1, 1),
        ("Name", True, 1, 1),
        ("1902", False, 2, 1),
        ("a\nb", False, 1, 1),
    ]
    (link,) = table.rows[1][1].links
    assert (link.start, link.end, link.target_title) == (2, 3, "B")
    assert lines(parsed) == ["before", "after"]


def test_a_table_in_a_cell_follows_the_table_around_it() -> None:
    parsed = parse("<table><tr><td>a<table><tr><td>inner</td></tr></table>b</td></tr></table>")
    assert [table.rows[0][0].text for table in parsed.tables] == ["a\nb", "inner"]


def test_an_infobox_has_the_labels_and_values_that_readers_see() -> None:
    data = json.dumps({"parts": [{"template": {"target": {"wt": "Infobox ship\n"}, "params": {}}}]})
    parsed = parse(
        f'<div class="infobox_v3" about="#mwt1" typeof="mw:Transclusion" data-mw=\'{data}\'><div>Lantern</div><table>'
        '<tr><th>Length<sup typeof="mw:Extension/ref">[1]</sup></th><td>31 '
        '<a rel="mw:WikiLink" href="./Metre">m</a></td></tr>'
        "<tr><th>Empty</th><td></td></tr></table></div><p>Text</p>"
    )
    (box,) = parsed.infoboxes
    assert (box.name, [(field.name, field.text) for field in box.fields]) == ("Infobox ship", [("Length", "31 m")])
    assert [link.target_title for link in box.fields[0].links] == ["Metre"]
    assert lines(parsed) == ["Text"]


def test_categories_come_with_how_they_were_made() -> None:
    parsed = parse(
        '<link rel="mw:PageProp/Category" href="./Category:Ferries#sort_key,%20a%23b"/>'
        '<div class="navbox"><link rel="mw:PageProp/Category" href="./Category:Made#%20" about="#mwt1"/></div>'
        '<link rel="mw:PageProp/Category" href="./Category:Ships_of_1902"/>'
        '<meta property="mw:PageProp/disambiguation"/>'
    )
    assert (parsed.categories, parsed.template_categories) == (("Ferries", "Made", "Ships of 1902"), ("Made",))
    assert parsed.category_sort_keys == ("sort_key, a#b", " ", "")
    assert parsed.is_disambiguation


def test_templates_are_counted_by_whether_they_show_text() -> None:
    def use(name: str) -> str:
        return json.dumps({"parts": [{"template": {"target": {"wt": name}, "params": {}}}]})

    parsed = parse(
        f"<p><span typeof='mw:Transclusion' about='#mwt1' data-mw='{use('convert')}'>5 km</span></p>"
        f"<div class='navbox' typeof='mw:Transclusion' about='#mwt2' data-mw='{use('nav')}'>a</div>"
        "<p><span typeof='mw:Transclusion' data-mw='{broken'>b</span></p>"
    )
    uses = [(use.name, use.outcome, use.uses) for use in parsed.templates]
    assert uses == [("Convert", "expanded", 1), ("Nav", "dropped", 1)]


def transclusion(number: int, *names: str, **arguments: str) -> str:
    values = {name: {"wt": value} for name, value in arguments.items()}
    parts = [{"template": {"target": {"wt": name}, "params": values}} for name in names]
    return f"typeof='mw:Transclusion' about='#mwt{number}' data-mw='{json.dumps({'parts': parts})}'"


@pytest.mark.parametrize(
    ("body", "uses", "shown", "lost"),
    [
        # a word of a sentence, with a note and a style
        (
            f"<p><span {transclusion(1, 'convert')}>5 km<style>a {{b}}</style></span>"
            '<sup typeof="mw:Extension/ref">[1]</sup></p>',
            [("Convert", "expanded")],
            {("Convert", "expanded"): 3},
            {},
        ),
        # a box whose first element is only its style
        (
            f"<link {transclusion(1, 'nav', list='[[A]] b')}/><div class='navbox' about='#mwt1'>ab c</div>",
            [("Nav", "dropped")],
            {},
            {("Nav", "dropped"): (3, "{{nav|list=[[A]] b}}")},
        ),
        # a box beside words
        (
            f"<p>one <span {transclusion(1, 'both')}>two</span></p><div class='navbox' about='#mwt1'>abc</div>",
            [("Both", "expanded")],
            {("Both", "expanded"): 3},
            {("Both", "expanded"): (3, "{{both}}")},
        ),
        # what nobody sees is not lost
        (f"<div style='display:none' {transclusion(1, 'data')}>abc</div>", [("Data", "dropped")], {}, {}),
        (f"<meta {transclusion(1, 'sort key')}/>", [("Sort key", "expanded")], {}, {}),
        # several templates that make one piece, with words of the page between them
        (
            f"<div {transclusion(1, 'col begin', 'col end')}><ul><li>abc</li></ul></div>",
            [("Col begin", "expanded"), ("Col end", "expanded")],
            {("Col begin", "expanded"): 3},
            {},
        ),
        # an infobox: labels and values are kept, rows of one cell are not
        (
            f"<table class='infobox' {transclusion(1, 'infobox ship')}><tr><td colspan='2'>Lantern</td></tr>"
            "<tr><th>Length</th><td>31 m</td></tr></table>",
            [("Infobox ship", "expanded")],
            {("Infobox ship", "expanded"): 3},
            {("Infobox ship", "expanded"): (7, "{{infobox ship}}")},
        ),
        # a template within a box of the page, and one within that template
        (
            f"<div class='navbox'>x <i {transclusion(1, 'outer')}>ab<b {transclusion(2, 'inner')}>c</b></i></div>",
            [("Inner", "expanded"), ("Outer", "dropped")],
            {},
            {("Outer", "dropped"): (3, "{{outer}}")},
        ),
        # two uses: numbers are added, the first is the example
        (
            f"<div class='navbox' {transclusion(1, 'nav', a='1')}>ab</div>"
            f"<div class='navbox' {transclusion(2, 'nav', a='2')}>c</div>",
            [("Nav", "dropped")],
            {},
            {("Nav", "dropped"): (3, "{{nav|a=1}}")},
        ),
    ],
)
def test_what_templates_show_and_lose_is_counted(
    body: str,
    uses: list[tuple[str, str]],
    shown: dict[tuple[str, str], int],
    lost: dict[tuple[str, str], tuple[int, str]],
) -> None:
    parsed = parse(body)
    assert [(use.name, use.outcome) for use in parsed.templates] == uses
    assert parsed.shown == shown
    assert parsed.lost == lost


def test_the_page_is_found_in_what_a_skin_puts_around_it() -> None:
    skin = '<html><body><div id="nav">Menu</div><div class="mw-parser-output"><p>Page</p></div>Foot</body></html>'
    assert lines(READER.parse(skin, title="Ada")) == ["Page"]


@pytest.mark.parametrize(
    ("html", "reason"),
    [("", "html_empty"), ("<div>" * (MAX_DEPTH + 50) + "a", "html_too_deep")],
)
def test_html_that_is_no_page_has_a_reason(html: str, reason: str) -> None:
    with pytest.raises(RecordError) as fault:
        READER.parse(html, title="Ada")
    assert fault.value.reason == reason


def test_a_link_that_is_all_of_a_template_is_made_by_it() -> None:
    def call(group: str, *parameters: str) -> str:
        values = {str(number): {"wt": value} for number, value in enumerate(parameters, 1)}
        data = json.dumps({"parts": [{"template": {"target": {"wt": "port"}, "params": values}}]})
        return f"<a rel='mw:WikiLink' href='./Port' about='{group}' typeof='mw:Transclusion' data-mw='{data}'>Port</a>"

    written = "<a rel='mw:WikiLink' href='./Sea'>sea</a>"
    parsed = parse(f"<p>{call('#mwt1')} {call('#mwt2', '[[Port]]')} {written}</p>")

    assert [is_made for *_, is_made in links(parsed)] == [True, False, False]


def test_the_fallback_keeps_lines_and_headings() -> None:
    parsed = extract_html_fallback(
        document("<h2>A &amp; b</h2><p>Some <b>text</b></p><script>no()</script><ul><li>item\x03</li></ul>"),
        title="Ada",
    )
    assert lines(parsed) == ["==A & b", "Some text", "item"]


CITE = json.dumps(
    {
        "parts": [
            {
                "template": {
                    "target": {"wt": "cite book"},
                    "params": {
                        "title": {"wt": "Ferries"},
                        "last": {"wt": "Lee"},
                        "date": {"wt": "2001"},
                        "ref": {"wt": "{{sfnref|Lee|2001}}"},
                    },
                }
            }
        ]
    }
)
SFN = json.dumps(
    {
        "parts": [
            {
                "template": {
                    "target": {"wt": "sfn"},
                    "params": {"1": {"wt": "Lee"}, "2": {"wt": "2001"}, "p": {"wt": "5"}},
                }
            }
        ]
    }
)
DOUBT = json.dumps({"parts": [{"template": {"target": {"wt": "citation needed"}, "params": {}}}]})


def marker(number: int, *, name: str = "", template: str = "") -> str:
    data = template or json.dumps({"name": "ref", "attrs": {"name": name} if name else {}})
    types = f"mw:Extension/ref{' mw:Transclusion' * bool(template)}"
    return (
        f"<sup class='mw-ref reference' typeof='{types}' about='#mwt{number}0' data-mw='{data}'>"
        f"<a href='./Ada#cite_note-{number}'>[{number}]</a></sup>"
    )


LEE = marker(2, name="lee")
NOTED = (
    f"<p>It ran.{marker(1)} It sank{LEE}, later.{LEE}</p>"
    f"<p>Short.{marker(3, template=SFN)} Doubtful.<sup class='noprint Inline-Template' "
    f"typeof='mw:Transclusion' about='#mwt9' data-mw='{DOUBT}'>[citation needed]</sup></p>"
    f"<table><tr><td>In a cell{marker(1)}</td></tr></table>"
    "<div class='reflist'><div class='mw-references-wrap' typeof='mw:Extension/references' data-mw='{}'><ol>"
    "<li id='cite_note-1'><span class='mw-reference-text'>Own [words] <a rel='mw:ExtLink' href='https://a.example/b'>A"
    f" page</a></span></li><li id='cite_note-2'><span class='mw-reference-text'><cite typeof='mw:Transclusion' "
    f"about='#mwt7' data-mw='{CITE}'>Lee (2001). Ferries.</cite></span></li><li id='cite_note-3'><span class="
    "'mw-reference-text'>Lee 2001, p. 5.</span></li></ol></div></div>"
)


def test_references_are_read_and_placed_as_in_wikitext() -> None:
    plain, noted = (own.parse(document(NOTED), title="Ada") for own in (READER, NOTED_READER))
    assert lines(noted) == ["It ran. It sank, later.", "Short. Doubtful."]
    assert (noted.elements, noted.anchors, noted.tables) == (plain.elements, plain.anchors, plain.tables)
    references = noted.references
    assert references is not None
    refs = [
        (ref.form, ref.number, ref.name, ref.text, ref.template, ref.source, ref.citation and ref.citation.title)
        for ref in references.refs
    ]
    assert refs == [
        ("ref", 1, None, "Own [words] A page", None, None, "A page"),
        ("ref", 2, "lee", "Lee (2001). Ferries.", "Cite book", None, "Ferries"),
        ("short", 3, None, "Lee 2001, p. 5", None, 1, None),
        ("ref", 4, None, "Own [words] A page", None, None, "A page"),
    ]
    assert references.refs[0].citation is not None
    assert references.refs[0].citation.url == "https://a.example/b"
    places = [(use.ref, use.cleanup_tag, use.element, use.offset, use.table) for use in references.uses]
    assert places == [
        (0, None, 1, 7, None),
        (1, None, 1, 15, None),
        (1, None, 1, 23, None),
        (2, None, 2, 6, None),
        (None, "citation_needed", 2, 16, None),
        (3, None, None, None, 0),
    ]


def test_references_outside_the_text_are_numbered_as_on_the_page() -> None:
    efn = json.dumps(
        {"parts": [{"template": {"target": {"wt": "efn"}, "params": {"1": {"wt": "A note<ref>x</ref>"}}}}]}
    )
    notes = "".join(
        f"<li id='cite_note-{n}'><span class='mw-reference-text'>{text}</span></li>"
        for n, text in enumerate(
            ["In the caption", "Label", "Row", "Value", "Picture", "Body", f"Note{marker(8)}", "Inner"], 1
        )
    )
    noted = NOTED_READER.parse(
        document(
            f"<table class='infobox'><caption>Ada{marker(1)}</caption><tr><td colspan='2'>x{marker(3)}</td></tr>"
            f"<tr><th>Born{marker(2)}</th><td>1815{marker(4)}</td></tr></table>"
            f"<figure typeof='mw:File/Thumb'><figcaption>A ship{marker(5)}</figcaption></figure>"
            f"<p>Text.{marker(6)} More.{marker(7, template=efn)}</p>"
            f"<div class='reflist'><div typeof='mw:Extension/references' data-mw='{{}}'><ol>{notes}</ol></div></div>"
        ),
        title="Ada",
    )
    references = noted.references
    assert references is not None
    assert [(ref.form, ref.number, ref.group, ref.text) for ref in references.refs] == [
        ("ref", 1, "", "In the caption"),
        ("ref", 2, "", "Row"),
        ("ref", 3, "", "Label"),
        ("ref", 4, "", "Value"),
        ("ref", 5, "", "Picture"),
        ("ref", 6, "", "Body"),
        ("ref", 7, "", "Inner"),
        ("note", 1, "lower-alpha", "A note"),
    ]
    assert [(use.ref, use.infobox, use.offset, use.within) for use in references.uses] == [
        (0, 0, None, None),
        (1, 0, None, None),
        (2, 0, None, None),
        (3, 0, None, None),
        (4, None, None, None),
        (5, None, 5, None),
        (6, None, None, 7),
        (7, None, 11, None),
    ]


def test_details_of_a_reference_belong_to_its_use() -> None:
    def use(number: int, **further: object) -> str:
        data = json.dumps({"name": "ref", "body": {"id": "x"}, **further})
        return f"<sup typeof='mw:Extension/ref' data-mw='{data}'><a href='./Ada#cite_note-{number}'>[1.1]</a></sup>"

    def note(number: int, text: str, details: str = "") -> str:
        return f"<li id='cite_note-{number}'><span class='mw-reference-text'>{text}</span>{details}</li>"

    details = f"<ol class='mw-subreference-list'>{note(2, 'p. 5')}{note(3, 'p. <i>7</i>')}</ol>"
    noted = NOTED_READER.parse(
        document(
            f"<p>One.{use(2, attrs={'details': 'p. 5'}, mainRef='book', isSubRefWithMainBody=1)} "
            f"Two.{use(1, attrs={'name': 'book'})} Three.{use(3, attrs={}, mainRef='book')} Four.{use(4, attrs={})}</p>"
            f"<ol class='references'>{note(1, 'Lee 2001', details)}{note(4, 'Roe 1999')}</ol>"
        ),
        title="Ada",
    )
    assert noted.references is not None
    assert [(ref.number, ref.name, ref.text) for ref in noted.references.refs] == [
        (1, "book", "Lee 2001"),
        (2, None, "Roe 1999"),
    ]
    assert [(use.ref, use.pages) for use in noted.references.uses] == [(0, "p. 5"), (0, None), (0, "p. 7"), (1, None)]


def test_notes_that_are_repeated_without_end_are_left_out() -> None:
    def page(n: int, name: str = "") -> str:
        note = f"<li id='cite_note-1'><span class='reference-text'>{'word ' * 10_000}</span></li>"
        return document(f"<p>{f'a{marker(1, name=name)} ' * n}</p><ol>{note}</ol>")

    few, many, named = (
        NOTED_READER.parse(html, title="Ada").references for html in (page(3), page(1_000), page(1_000, "lee"))
    )
    assert few is not None
    assert many is not None
    assert named is not None
    assert (len(few.refs), many.refs, many.counts) == (3, (), {"failed": 1})
    assert (len(named.refs), len(named.uses)) == (1, 1_000)


def test_a_page_whose_references_are_left_out_says_so() -> None:
    parsed = NOTED_READER.parse(document(NOTED), title="Ada", leave_out_references=True)
    assert parsed.references is not None
    assert (parsed.references.refs, parsed.references.counts) == ((), {"failed": 1})
