"""What two releases differ in, counted: as JSON, as Markdown, and for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kbsource.diff.schema import PAGE_OUTCOMES, REDIRECT_OUTCOMES, SECTION_OUTCOMES, SPAN_OUTCOMES

MOST_CHANGED = 20
FLAGS = """
select count_if(text_changed), count_if(title_changed), count_if(qid_moved),
    coalesce(sum(pages.old_chars), 0)::bigint,
    coalesce(
        sum(case when new_page_id is null then 0 when text_changed then n_kept else pages.old_chars end), 0
    )::bigint
from pages left join kept on kept.old_page_id = pages.old_page_id where pages.old_page_id is not null
"""
"""Pages whose text, title or place of their item is another; code points of all old pages, and those kept."""
MOST_CHANGED_PAGES = f"""
select new_title, pages.old_page_id, outcome, pages.old_chars, new_chars, n_kept
from pages join kept on kept.old_page_id = pages.old_page_id
where outcome <> 'merged' and n_kept < pages.old_chars
order by pages.old_chars - n_kept desc, pages.old_page_id limit {MOST_CHANGED}
"""
_HEADS = {
    "page_changes": ("Pages", PAGE_OUTCOMES),
    "section_changes": ("Sections of pages whose text changed", SECTION_OUTCOMES),
    "span_changes": ("Pieces of elements of pages that are not what they were", SPAN_OUTCOMES),
    "redirect_changes": ("Redirects", REDIRECT_OUTCOMES),
}


def share(part: int, whole: int) -> float:
    """Gives a share; of nothing all was kept."""
    return part / whole if whole else 1.0


def report_text(report: Mapping[str, Any]) -> str:
    """Gives the report as Markdown."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    old, new = report["old"], report["new"]
    yield f"# {old['wiki']}: {old['dump_date']} and {new['dump_date']}"
    text, flags = report["text"], report["flags"]
    kept = f"{text['kept_chars']:,} of {text['old_chars']:,} characters"
    yield f"\n{100 * text['kept_share']:.2f} % of the old text is kept: {kept}."
    yield f"Text changed on {flags['text_changed']:,} pages, title on {flags['title_changed']:,};"
    yield f"{flags['qid_moved']:,} items are now those of other pages."
    for table, (head, meanings) in _HEADS.items():
        yield f"\n## {head}\n\n| outcome | number | meaning |\n| --- | ---: | --- |"
        yield from (f"| {name} | {n:,} | {meanings[name]} |" for name, n in report["counts"][table].items())
    yield "\n## Pages that lost most text\n\n| page | id | outcome | characters | now | kept |"
    yield "| --- | ---: | --- | ---: | ---: | ---: |"
    for page in report["most_changed"]:
        yield (
            f"| {_cell(page['title'])} | {page['old_page_id']} | {page['outcome']} | {page['old_chars']:,} | "
            f"{page['new_chars']:,} | {100 * page['kept']:.1f} % |"
        )


def _cell(text: str) -> str:
    """Gives text as a cell of a table, which no title can break out of.

    >>> _cell("A|B *C* <D>")
    'A\\\\|B \\\\*C\\\\* \\\\<D\\\\>'
    """
    return "".join(f"\\{char}" if char in "\\|*_`[]<>&#~" else char for char in text)
