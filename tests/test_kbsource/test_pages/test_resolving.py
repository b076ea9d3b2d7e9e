"""Links of a page from the parser to the release: what is looked up, and what stays as the parser made it."""

from __future__ import annotations

from kbsource.index.title_index import Resolution, Unresolved
from kbsource.pages.articles import PageParser, resolve_page
from kbsource.records import Page, RawPage
from kbsource.site import Site

SITE = Site(lang="en", namespaces={0: "", 4: "Wikipedia"})


class Titles(Unresolved):
    """Resolves every title to another one, with section and page id, and records what was asked for."""

    def __init__(self) -> None:
        self.requested: list[str] = []

    def resolve(self, title: str) -> Resolution:
        self.requested.append(title)
        return Resolution(f"{title} (page)", 7, "Section", 1, "ok")


def resolve(wikitext: str, titles: Unresolved) -> Page:
    raw = RawPage(3, 0, "Own", None, 1, None, "2020-01-01T00:00:00Z", "wikitext", wikitext, "", 0)
    return resolve_page(PageParser(SITE).parse(raw), titles, None, SITE)


def test_links_of_articles_are_looked_up_in_running_text_cells_and_infoboxes() -> None:
    titles = Titles()
    page = resolve("[[a]]\n{|\n| [[book: c]] || d\n|}\n{{Infobox x|e=[[f#G|h]]|i=j}}", titles)
    assert sorted(titles.requested) == ["A", "Book: c", "F"]
    (anchor,) = page.anchors
    assert (anchor.target_title, anchor.target_fragment, anchor.target_page_id) == ("A (page)", "Section", 7)
    linked, plain = page.tables[0].rows[0]
    assert [(link.target_title, link.target_page_id) for link in linked.links] == [("Book: c (page)", 7)]
    assert plain.links == ()
    (link,) = page.infoboxes[0].fields[0].links
    assert (link.target_title, link.target_fragment, link.target_page_id) == ("F (page)", "G", 7)


def test_links_to_the_page_itself_and_to_other_namespaces_are_not_looked_up() -> None:
    titles = Titles()
    page = resolve("[[#Part|a]] [[project:b#C|d]]\n{|\n| [[WP:e]]\n|}", titles)
    assert titles.requested == []
    targets = [(anchor.target_title, anchor.target_fragment, anchor.target_page_id) for anchor in page.anchors]
    assert targets == [("Own", "Part", 3), ("Wikipedia:B", "C", None)]
    (link,) = page.tables[0].rows[0][0].links
    assert (link.target_title, link.target_page_id) == ("Wikipedia:E", None)


def test_a_first_row_of_header_cells_is_the_header_if_other_rows_follow() -> None:
    page = resolve("{|\n! a !! b\n|-\n| c || d\n|}\n{|\n! e\n|}", Unresolved())
    assert [(table.header, len(table.rows)) for table in page.tables] == [(("a", "b"), 1), ((), 1)]
