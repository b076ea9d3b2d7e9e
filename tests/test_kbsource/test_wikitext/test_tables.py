"""Tables and infoboxes: structure, texts and links of their cells, and where they stand."""

from __future__ import annotations

import pytest

from kbsource.records import Table
from kbsource.site import Site
from kbsource.wikitext.parse import ParsedText, WikitextParser


def parse(wikitext: str) -> ParsedText:
    return WikitextParser(Site()).parse(wikitext, title="T")


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_rows_headers_caption_and_attributes() -> None:
    (table,) = parse(
        "a\n{| class=\"wikitable\"\n|+ The ''caption''\n! Name !! style=\"x\" | Age\n|-\n"
        '| colspan="2" | [[Ann]] || 5\n|- style="y"\n! scope="row" | Bob\n| rowspan=3 | 7\n|}\nb'
    ).tables
    assert table.caption == "The caption"
    assert texts(table) == [["Name", "Age"], ["Ann", "5"], ["Bob", "7"]]
    assert [[cell.is_header for cell in row] for row in table.rows] == [[True, True], [False, False], [True, False]]
    assert table.rows[1][0].colspan == 2
    assert table.rows[2][1].rowspan == 3
    assert table.element == 1


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        pytest.param(
            "{{{!}} class=x\n! a\n{{!}}-\n{{!}}b{{!}}{{!}}c{{!}}|d|{{!}}e\n{{!}}}\nf",
            [[["a"], ["b", "c", "d", "e"]]],
            id="templates for pipes",
        ),
        pytest.param(
            "a\n[[File:x.png|thumb|\n{|\n| b\n{|\n| c\n|}\n|}\n]]\n{|\n| d\n{|\n| e\n|}\n|}",
            [[["d"]], [["e"]]],
            id="tables in captions of files are left out with them",
        ),
        pytest.param("{|\n| a\n{|\n| b\n|}\n| c\n|}", [[["a", "c"]], [["b"]]], id="a nested table follows its own"),
        pytest.param("{|\n| [[a|b]] c || align=right | [[d|e]]\n|}", [[["b c", "e"]]], id="pipes of links"),
        pytest.param("{|\n| [[a || b]]\n| c\n|}", [[["a", "b", "c"]]], id="a link over two cells is no link"),
    ],
)
def test_cells(wikitext: str, expected: list[list[list[str]]]) -> None:
    assert [texts(table) for table in parse(wikitext).tables] == expected


def test_names_of_attributes_are_ascii() -> None:
    [table] = parse("{|\n| colspan=2 row\u017fpan=3 | a\n|}").tables
    assert [(cell.text, cell.colspan, cell.rowspan) for row in table.rows for cell in row] == [("a", 2, 1)]


def test_a_second_caption_is_a_line_of_the_first() -> None:
    (table,) = parse('{|\n|+ style="x"| a\n|+ b\nc\n| d\n|}').tables
    assert table.caption == "a\nb\nc"


def test_links_in_cells_have_offsets_in_the_cell() -> None:
    (table,) = parse("{|\n| see [[Ann|her]] and [[bus]]es\n* [[x]]\n* y\n|}").tables
    content = table.rows[0][0]
    assert content.text == "see her and buses\nx\ny"
    assert [(content.text[link.start : link.end], link.target_title) for link in content.links] == [
        ("her", "Ann"),
        ("buses", "Bus"),
        ("x", "X"),
    ]


def test_an_html_table_is_a_table() -> None:
    parsed = parse("x<table><tr><th>A</th></tr><tr><td colspan=2>b [[c]]</td></tr></table>y")
    (table,) = parsed.tables
    assert texts(table) == [["A"], ["b c"]]
    assert [element.text for element in parsed.elements[1:]] == ["x", "y"]


def test_infobox_fields_are_text_with_links() -> None:
    parsed = parse(
        "{{Infobox town\n| name = '''Ar'''\n| region = [[North|the north]]\n| empty =\n"
        "| list =\n* a\n* [[b]]\n}}\nText."
    )
    (infobox,) = parsed.infoboxes
    assert infobox.name == "Infobox town"
    assert [(field.name, field.text) for field in infobox.fields] == [
        ("name", "Ar"),
        ("region", "the north"),
        ("list", "a\nb"),
    ]
    region = infobox.fields[1]
    assert [region.text[link.start : link.end] for link in region.links] == ["the north"]
    assert infobox.element == 0
    assert [element.text for element in parsed.elements[1:]] == ["Text."]


@pytest.mark.parametrize(
    ("wikitext", "text"),
    [
        ("a {{lc:{{Infobox|b=c}}}} d", "a d"),
        ("a {{urlencode:{{Infobox|b=c}}}} d", "a d"),
        ("a {{#sub:{{Infobox|b=c}}|0|2}} d", "a d"),
        ("a {{ISSN|{{Infobox|b=c}}}}5", "a ISSN 5"),
    ],
)
def test_what_functions_make_of_the_place_of_an_infobox_is_no_text(wikitext: str, text: str) -> None:
    parsed = parse(wikitext)
    assert [element.text for element in parsed.elements[1:]] == [text]
    assert [infobox.fields[0].name for infobox in parsed.infoboxes] == ["b"]


def test_no_name_or_example_of_lost_text_holds_the_place_of_an_infobox() -> None:
    parsed = parse("{{Infobox|{{Infobox|b=c}}=d}} {{zzz none|e {{Infobox|f=g}}}}")
    assert [infobox.fields[0].name for infobox in parsed.infoboxes] == ["b", "", "f"]
    assert parsed.lost["Zzz none", "unknown"] == (1, "{{zzz none|e}}")


def test_lines_of_an_infobox_value_stay_apart() -> None:
    parsed = parse("{{Infobox x|a=[[A]] (R)<br>[[B|b<BR />b]] (D) <br /> '''c<br>d'''<br>#12<br>{{nowrap|e f}}\n}}")
    (value,) = parsed.infoboxes[0].fields
    assert value.text == "A (R)\nb b (D)\nc\nd\n#12\ne f"
    assert [value.text[link.start : link.end] for link in value.links] == ["A", "b b"]


def test_a_template_in_a_cell_is_rendered() -> None:
    (table,) = parse("{|\n| {{nowrap|a b}} {{!}} c\n|}").tables
    assert "c" in texts(table)[0][0]


def cells(wikitext: str) -> list[list[str]]:
    return [[cell.text for cell in row] for row in parse(wikitext).tables[0].rows]


def test_line_breaks_in_cells_are_newlines() -> None:
    header = "{|\n|+ Cap<br>tion\n! [[A]]<br>[[B]] !! a<br />* b\n"
    table = f"{header}|-\n| '''c''<br>''d''' || [[x|y<br>z]] || [http://x a<br>b]\n|}}"
    assert cells(f"a<br>b\n{table}") == [["A\nB", "a\n* b"], ["c\nd", "y z", "a\nb"]]
    assert parse(f"a<br>b\n{table}").elements[1].text == "a b"
    head = parse(table).tables[0].rows[0][0]
    assert [(head.text[link.start : link.end], link.target_title) for link in head.links] == [("A", "A"), ("B", "B")]


@pytest.mark.parametrize(
    "block",
    [
        "{{ubl|x|y}}",
        "{{unbulleted list|x|{{nowrap|y}}}}",
        "<ul><li>x</li><li>y</ul>",
        "<ol><li>x<ul><li>y</li></ul></li></ol>",
        "<dl><dt>x</dt><dd>y</dd></dl>",
        "<pre>x\ny</pre>",
        "<poem>x\n\ny</poem>",
        "{{#tag:poem|x\n\ny}}",
        "<syntaxhighlight lang=c>x\ny</syntaxhighlight>",
        "<div>x</div><blockquote>y</blockquote>",
    ],
)
def test_a_line_of_cells_goes_on_after_a_block(block: str) -> None:
    assert cells(f"{{|\n| {block} c || d\n|}}") == [["x\ny\nc", "d"]]
    assert cells(f"{{|\n! a || {block}<ref>r</ref> c !! {block} || e\n|-\n| f\n|}}") == [
        ["a", "x\ny\nc", "x\ny", "e"],
        ["f"],
    ]
    assert cells(f"{{|\n| a\n{block} c || d\n|}}")[0][0] == "a\nx\ny\nc || d"


def test_a_heading_in_a_line_of_cells_is_text() -> None:
    assert cells("{|\n| a <h4>x</h4><h4>y</h4> c || d\n|}") == [["a\nx\ny\nc", "d"]]


def test_a_line_of_cells_goes_on_after_a_nested_table() -> None:
    tables = parse("{|\n| a <table><tr><td>b || c</td></tr></table> d || e\n| f\n|}").tables
    assert [texts(table) for table in tables] == [[["a\nd", "e", "f"]], [["b || c"]]]


def test_formulas_of_their_own_are_on_lines_of_their_own() -> None:
    assert cells("{|\n| a <math display=block>x</math> b || c\n|}") == [["a\n$x$\nb", "c"]]
    (box,) = parse("{{Infobox x|a=b<chem display='block'>H2O</chem>c}}").infoboxes
    assert box.fields[0].text == "b\n$\\ce{H2O}$\nc"


def test_lines_of_a_cell_have_no_white_space_around_them() -> None:
    (table,) = parse("{|\n| [[A]] <br>[[B]]\n| [[C]]<br/> <br/>[[D]] \n|}").tables
    first, second = (cell for cell in table.rows[0])
    assert (first.text, second.text) == ("A\nB", "C\nD")
    assert [cell.text[link.start : link.end] for cell in (first, second) for link in cell.links] == ["A", "B", "C", "D"]


def test_a_link_that_its_cell_does_not_close_goes_on_in_the_next() -> None:
    assert cells("{|\n![[Foo|Bar!!]] x\n|-\n|[[File:A.jpg|test\n|left]] || z\n|}") == [["Bar", "x"], ["", "", "z"]]
    assert cells("{|\n|[[A]] || b]] || c\n|}") == [["A", "b", "c"]]
    assert cells("{|\n|[[Foo|a || see [[A]] b\n|}") == [["Foo a", "see A b"]]


def test_exclamation_marks_in_nowiki_part_no_cells() -> None:
    assert cells("{|\n!<nowiki>foo!!bar</nowiki> !! b\n|}") == [["foo!!bar", "b"]]
    assert cells("{|\n! a <math>n!!!</math> !! <chem>A!!B</chem> !! c\n|}") == [["a $n!!!$", r"$\ce{A!!B}$", "c"]]
    assert cells("{|\n! {{#tag:math|n!!}} !! <syntaxhighlight inline>x !! y</syntaxhighlight>\n|}") == [
        ["$n!!$", "x !! y"]
    ]
    assert cells("{|\n! <pre>a !! b</pre>\n! c\n!!d!!e\n|}") == [["a !! b", "c", "!d", "e"]]


def test_a_caption_of_a_file_may_cross_cells_and_rows() -> None:
    assert cells("{|\n| [[File:A.jpg|thumb|cap\n| more || x\n]] q\n|}") == [["", "", "q"]]
    assert cells("{|\n|[[File:A.jpg|thumb|A [[b]] c\n|-\n! d [[e|f]]\n| g ]] || h\n|-\n| i\n|}") == [
        [""],
        ["", "", "h"],
        ["i"],
    ]
    assert cells("{|\n|[[Foo|a\n|-\n| c]] d\n|}") == [["Foo a"], ["c d"]]


def test_cells_are_separated_after_block_elements() -> None:
    assert cells("{|\n| a<div>b</div>c || d\n  | e<hr>f||g\n|}") == [["a\nb\nc", "d", "e\nf", "g"]]
    assert cells("{|\n! a<p>b</p>c !! d\n! ''<center>e</center>'' f !! g\n|}") == [["a\nb\nc", "d", "e\nf", "g"]]
    assert cells("{|\n| {{nowrap|a{{clear}}b}} || d\n|}") == [["a\nb", "d"]]


def test_pipes_and_marks_in_the_cells_of_an_html_table_are_text() -> None:
    wikitext = "<table><tr><td>a || b | c</td><th rowspan=2>d !! e</th><td>* f</td><td>\n* g\n* h</td></tr></table>"
    assert cells(wikitext) == [["a || b | c", "d !! e", "* f", "g\nh"]]


def test_captions_of_files_in_cells_go_with_their_headings() -> None:
    parsed = parse("{|\n|[[File:A.jpg|thumb|A [[b]]\n== x ==\n]] q\n|-\n| c\n|}\nd\n== e ==\n{|\n| [[f\n== g ==")
    assert [texts(table) for table in parsed.tables] == [[["q"], ["c"]], [["f"]]]
    assert [element.text for element in parsed.elements[1:]] == ["d", "e", "g"]


def test_unnamed_fields_of_an_infobox_have_their_numbers() -> None:
    parsed = parse("{{Taxobox | classe | Mammalia | |name=x|5=y}}")
    assert [(field.name, field.text) for field in parsed.infoboxes[0].fields] == [
        ("1", "classe"),
        ("2", "Mammalia"),
        ("5", "y"),
        ("name", "x"),
    ]


def test_block_elements_end_a_line_of_a_field() -> None:
    (box,) = parse("{{Infobox x|a=b<hr>c|d=e{{clear}}f|g={{reflist}}|h=i<references/>j}}").infoboxes
    assert [(field.name, field.text) for field in box.fields] == [("a", "b\nc"), ("d", "e\nf"), ("h", "i\nj")]


def test_tables_in_a_caption_in_a_cell_go_with_it() -> None:
    parsed = parse("{|\n|foo\n|[[File:A.jpg|thumb|\n{|\n|bar\n{|\n|baz\n|}\n|}\n]]\n|z\n{|\n|in\n|}\n|}")
    shown = [[[cell.text for cell in row] for row in table.rows] for table in parsed.tables]
    assert shown == [[["foo", "", "z"]], [["in"]]]


def test_attributes_alone_are_text_unless_something_is_cut_behind_them() -> None:
    assert cells("{|\n| align=center {{zzz}}\n| align=center\n|}") == [["", "align=center"]]


def test_line_breaks_and_empty_labels_leave_single_spaces_and_no_marks() -> None:
    parser = WikitextParser(Site(lang="en"))
    assert parser.plain("[[A | [[B]]]] c") == "A B c"
    assert parser.plain_structure("a [[Main|<nowiki/>]] b |<nowiki/>]] c") == "a b | c"
