"""Which licence a release is under, by its manifest."""

from __future__ import annotations

from typing import Any

import pytest

from kbsource.errors import SetupError
from kbsource.release.kind import Kind
from kbsource.release.pages.kind import PAGES_RELEASE
from mapping.kinds import KINDS
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.publish.card import cell
from mapping.publish.catalogues import citation_file
from mapping.publish.subject import (
    Part,
    Subject,
    attribution_text,
    hub_licences,
    licence_text,
    limits_of,
    rights_of,
)
from mapping.write.kind import ALIGNMENT


def _subject(kind: Kind[Any], facts: dict[str, Any], **given: Any) -> Subject:
    return Subject(parts=(Part("", kind, kind.manifest.from_json({"format": kind.format, **facts}, "here")),), **given)


def _release(wiki: str, date: str | None) -> dict[str, Any]:
    return {"release": {"wiki": wiki, "dump_date": date, "manifest_sha256": "0" * 64}}


@pytest.mark.parametrize(
    ("wiki", "date", "licence"),
    [
        ("enwiki", "20260101", "CC-BY-SA-4.0"),
        ("zh_yuewiki", "20230607", "CC-BY-SA-4.0"),
        ("enwiki", "20230601", "CC-BY-SA-3.0"),
        ("enwiki", "20190801", "CC-BY-SA-3.0"),
        ("enwiki", None, "CC-BY-SA-4.0"),
        ("dewiktionary", "20200101", "CC-BY-SA-3.0"),
        ("miniwiki", "20260101", "CC0-1.0"),
    ],
)
def test_text_of_wikipedia_is_under_the_licence_of_its_day(wiki: str, date: str | None, licence: str) -> None:
    subject = _subject(PASSAGES_CORPUS, _release(wiki, date))
    (right,) = rights_of(subject)
    assert right.licence == licence
    assert ("which is unknown" in right.note) == (date is None)


def test_a_revision_of_after_the_new_terms_says_what_its_dump_does_not() -> None:
    for newest, is_known in (("20230607", True), ("20230606", False), (None, False)):
        (right,) = rights_of(_subject(PASSAGES_CORPUS, _release("enwiki", None), newest=newest))
        assert (right.licence, "--licence" in right.note) == ("CC-BY-SA-4.0", not is_known)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (_release("miniwiki", "20270101"), "wiki miniwiki: kbsource does not know the licence"),
        (_release("enwikinews", "20260101"), "wiki enwikinews: kbsource does not know the licence"),
        ({}, r"wiki \?: kbsource does not know the licence"),
    ],
)
def test_where_the_licence_is_not_known_it_must_be_given(facts: dict[str, Any], said: str) -> None:
    with pytest.raises(SetupError, match=said):
        rights_of(_subject(PASSAGES_CORPUS, facts))
    given = rights_of(_subject(PASSAGES_CORPUS, facts, licence="CC-BY-4.0"))
    assert [right.licence for right in given] == ["CC-BY-4.0"]


def test_a_data_set_keeps_its_own_licence() -> None:
    facts = {**_release("enwiki", "20260101"), "dataset": "hotpotqa", "split": "dev"}
    subject = _subject(ALIGNMENT, facts)
    rights = rights_of(subject)
    assert hub_licences(rights) == ["cc-by-sa-4.0"]
    text, citation = attribution_text(subject, rights), citation_file(subject, rights)
    assert "records of HotpotQA: by the authors of HotpotQA" in text
    assert "<https://en.wikipedia.org/?curid=N>" in text
    assert "license: CC-BY-SA-4.0" in citation
    assert "title: HotpotQA" in citation


def test_what_may_not_be_passed_on_is_said() -> None:
    facts = {**_release("enwiki", "20260101"), "dataset": "aidayago2", "split": "dev"}
    subject = _subject(ALIGNMENT, facts)
    rights = rights_of(subject)
    assert hub_licences(rights) == ["cc-by-sa-4.0", "cc-by-sa-3.0"]
    assert "Reuters" in licence_text(subject, rights)
    unknown = rights_of(_subject(ALIGNMENT, {**facts, "dataset": "triviaqa"}))
    assert hub_licences(unknown) == ["other"]


def test_what_a_manifest_says_is_no_markup() -> None:
    subject = _subject(PASSAGES_CORPUS, _release("en<b>`|\nwiki", "2026<i>0101"), licence="CC-BY-4.0")
    assert (subject.wiki, subject.snapshot, subject.version) == ("enbwiki", None, "1.0.0")
    assert cell("a|b`c\n<d>") == "a\\|b'c &lt;d>"


def test_every_kind_is_described() -> None:
    cards = [kind.card for kind in KINDS]
    assert all(card is not None and card.title and card.summary and card.holds for card in cards)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "Templates without a rule are left out"),
        ({"options": {"templates": "definitions"}}, "Templates without a rule are left out"),
        (
            {"options": {"templates": "definitions"}, "findings": {"template_definitions": 5}},
            "Templates without a rule are expanded from their definitions in the dump, without Lua",
        ),
        ({"options": {"templates": "lua"}, "findings": {"template_definitions": 5}}, "definitions and Lua modules"),
        ({"options": {"templates": "lua"}, "dump": {"content": "html"}}, "The pages were rendered by MediaWiki"),
        ({"options": {"templates": "lua"}, "dump": {"content": "wikitext"}}, "Templates without a rule are left out"),
    ],
)
def test_what_is_said_of_templates_is_what_the_manifest_says(values: dict[str, Any], said: str) -> None:
    assert PAGES_RELEASE.card is not None
    assert said in limits_of(PAGES_RELEASE.card, values)[0]
