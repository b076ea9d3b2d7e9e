"""Readable cases: definitions of templates, uses of them, and what a reader reads."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from kbsource.records import Element
from kbsource.site import Site
from kbsource.wikitext.expansion import expander
from kbsource.wikitext.parse import ParsedText, WikitextParser
from tests.support.definitions import Dictionary

GOLDEN = Path(__file__).parents[3] / "golden" / "templates" / "definitions.toml"
GROUPS = tomllib.loads(GOLDEN.read_text("utf-8"))
DEFINITIONS = {name: source for group in GROUPS.values() for name, source in group["definitions"].items()}
CASES = [(wikitext, shown, *rest) for group in GROUPS.values() for wikitext, shown, *rest in group["cases"]]
PARSER = WikitextParser(Site(lang="ltg"), definitions=Dictionary(DEFINITIONS), exists=frozenset({"Riga"}).__contains__)


def shown(element: Element) -> str:
    if element.kind == "heading":
        return f"h{element.level} {element.text}"
    if element.kind == "list_item":
        return f"{element.marker}{'' if element.ordinal is None else element.ordinal} {element.text}"
    return f"p {element.text}"


def facts(parsed: ParsedText) -> dict[str, list[str]]:
    for anchor in parsed.anchors:
        assert parsed.elements[anchor.element].text[anchor.start : anchor.end] == anchor.text
    return {
        "links": [f"{anchor.text} -> {anchor.target.title}{'*' * anchor.is_made}" for anchor in parsed.anchors],
        "categories": [f"{name}{'*' * (name in parsed.template_categories)}" for name in parsed.categories],
        "tables": ["/".join(";".join(cell.content.text for cell in row) for row in t.rows) for t in parsed.tables],
        "infoboxes": [
            " ".join((box.name, *(f"{name}={value.text}" for name, value in box.fields))) for box in parsed.infoboxes
        ],
        "losses": [kind for kind, _ in parsed.losses],
        "outcomes": [f"{use.name} {use.outcome}" for use in parsed.templates],
    }


def test_golden_set_is_large_enough() -> None:
    assert len(DEFINITIONS) >= 150


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0][:50])
def test_golden(case: tuple[str, str, dict[str, Any]]) -> None:
    wikitext, expected, *rest = case
    parsed = PARSER.parse(wikitext, title="Test page", timestamp="2016-02-19T12:00:00Z")
    assert "\n".join(map(shown, parsed.elements[1:])) == expected
    found = facts(parsed)
    for name, value in (rest[0] if rest else {}).items():
        assert found[name] == value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0][:50])
def test_nothing_shown_depends_on_what_boxes_hold(
    case: tuple[str, str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expander, "without_insides", lambda tree, is_category: tree)
    full = WikitextParser(
        Site(lang="ltg"), definitions=Dictionary(DEFINITIONS), exists=frozenset({"Riga"}).__contains__
    )
    facts_of = {"title": "Test page", "timestamp": "2016-02-19T12:00:00Z"}
    assert full.parse(case[0], **facts_of) == PARSER.parse(case[0], **facts_of)
