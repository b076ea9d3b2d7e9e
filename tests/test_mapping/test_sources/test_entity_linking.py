"""AIDA CoNLL-YAGO and WNED: documents, mentions, contexts, windows and splits."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from mapping.records import PageKey
from mapping.sources.entity_linking import WnedOptions
from mapping.sources.mentions import LinkingOptions, released_window, token_spans, window, wned_split
from mapping.sources.source import REJECTED
from tests.support.dataset_sources import DATA, Reading, is_balanced, read_source
from tests.support.real_data import real_path

CASES = {
    "World Cup 'qualifier'.": "World Cup ' qualifier ' .",
    "She didn't; he'll, they're 'tis.": "She did n't ; he 'll , they 're 't is .",
    "The ’90s and rock ’n’ roll: it’s": "The ’90s and rock ’ n ’ roll : it ’s",
    "I cannot (gonna) say": "I can not ( gon na ) say",
    "Mr. J. R. Hale of the U.S. left Inc. behind.": "Mr. J. R. Hale of the U.S. left Inc. behind .",
    "It ended. He left": "It ended . He left",
    'He said "so." Then': 'He said " so . " Then',
    "In the U.S.": "In the U.S .",
    "at 12:30, 3,000 of them: all": "at 12:30 , 3,000 of them : all",
    "well... no--never": "well ... no -- never",
    "R&D of AT&T & co": "R&D of AT&T & co",
    "$5.50 or 20%?!": "$ 5.50 or 20 % ? !",
    "the dogs' bone": "the dogs ' bone",
    "state-of-the-art": "state-of-the-art",
    "«Élodie» … “fin”": "« Élodie » … “ fin ”",
    "": "",
    "...": "...",
    "'": "'",
}


@pytest.mark.parametrize("text", CASES)
def test_tokens_are_those_of_the_treebank(text: str) -> None:
    assert " ".join(text[start:end] for start, end in token_spans(text)) == CASES[text]


@given(st.text("aZ.,:'&-\" \n’()9nNtTsS", max_size=30))
def test_tokens_are_all_of_the_text_but_white_space_in_order(text: str) -> None:
    spans = list(token_spans(text))
    assert "".join(text[start:end] for start, end in spans) == "".join(text.split())
    assert all(start < end and not text[start:end].isspace() for start, end in spans)


def sentences(text: str) -> Iterator[tuple[str, list[str]]]:
    """Sentences as the tokens part them, with their tokens."""
    begin, tokens = 0, []
    for start, end in token_spans(text):
        tokens.append(text[start:end])
        closed = [token for token in tokens if token not in tuple("])}>\"'")]
        if closed and closed[-1] == "." and text[end : end + 1].isspace():
            yield text[begin:end], tokens
            begin, tokens = end, []
    if tokens:
        yield text[begin:], tokens


# What the Treebank's script does not know: typographic quotes, opening single quotes, names with an ampersand.
UNKNOWN = re.compile(r"''|``|[’‘“”„«»…]|(?:^|[\s(\[\"])'\w|[:,]{2}|\w&\w")


@pytest.mark.slow
def test_real_sentences_have_the_tokens_that_nltk_gives_them() -> None:
    texts = [path.read_text("utf-8") for path in sorted(real_path("datasets/wned-wiki/RawText").iterdir())]
    pages = sorted(real_path("datasets/fever/wiki-pages").iterdir())
    texts += [json.loads(line)["text"] for path in pages for line in path.read_text("utf-8").splitlines()]
    from nltk.tokenize import TreebankWordTokenizer  # type: ignore[import-untyped]  # brings SciPy

    nltk = TreebankWordTokenizer()
    known = [sentence for text in texts for sentence in sentences(text) if not UNKNOWN.search(sentence[0])]
    assert len(known) > 2000
    for sentence, tokens in known:
        assert tokens == [re.sub("``|''", '"', token) for token in nltk.tokenize(sentence)]


AIDA = DATA / "aida" / "aidayago2.tsv"
XML = DATA / "wned" / "wned.xml"
RAW_TEXT = DATA / "wned" / "RawText"
URL = "http://mini.example.org/wiki/"
PORT = f"Port\tB\tPort Sellick\tX\t{URL}Port_Sellick\t15\t/m/1"


def _names(reading: Reading) -> list[str]:
    return [example.example_id.partition("_")[2] for example in reading.examples]


def _both_halves(path: Path, *references: Path, seed: str = "kilt") -> list[Reading]:
    options = WnedOptions(seed=seed)
    return [read_source("wned", path, *references, split=split, options=options) for split in ("dev", "test")]


def _aida(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("lines", "reasons"),
    [
        pytest.param([PORT], [("line 1", "no_document")], id="no document"),
        pytest.param(["-DOCSTART-", PORT], [("line 1", "malformed_docstart"), ("line 2", "no_document")], id="no id"),
        pytest.param(["-DOCSTART- (1)", "a\tB\ta\tX\tU"], [("1", "missing_column")], id="five columns"),
        pytest.param(["-DOCSTART- (1)", "a\tB\ta\tX\t\t15"], [("1", "missing_column")], id="empty address"),
        pytest.param(["-DOCSTART- (1)", "a\tB"], [("1", "missing_column")], id="two columns"),
        pytest.param(["-DOCSTART- (1)", "a\tO\ta\tX\tU\t1"], [("1", "bad_tag")], id="other tag"),
        pytest.param(
            ["-DOCSTART- (1)", PORT, "-DOCSTART- (1)", PORT],
            [("22fda2a5-9ce8-59ba-b325-409168d0e58c_1:0", "duplicate_id")],
            id="document again",
        ),
    ],
)
def test_bad_lines_are_rejected_and_the_rest_goes_on(
    tmp_path: Path, lines: list[str], reasons: list[tuple[str, str]]
) -> None:
    path = _aida(tmp_path / "aida.tsv", *lines, "-DOCSTART- (9 END)", PORT)
    reading = read_source("aidayago2", path, split="train", is_checked=False)
    assert [(bad.key, bad.reason) for bad in reading.rejected] == reasons
    assert _names(reading)[-1] == "9 END:0"


TOKENS = st.integers(0, 60).map(lambda count: [f"t{number}" for number in range(count)])


@given(TOKENS, st.integers(1, 30), TOKENS, st.integers(2, 40))
def test_the_window_is_the_longest_balanced_one_that_fits(
    left: list[str], n_mention: int, right: list[str], max_tokens: int
) -> None:
    mention = " ".join("m" * n_mention)
    before, after = window(left, mention, right, max_tokens=max_tokens)
    assert left[len(left) - len(before) :] == before
    assert right[: len(after)] == after
    budget = max(0, max_tokens - 2 - n_mention)
    assert len(before) + len(after) == min(budget, len(left) + len(right))
    # Neither side gives way to the other's surplus beyond its half.
    assert len(before) == len(left) or len(after) <= budget // 2
    assert len(after) == len(right) or len(before) <= -(-budget // 2)


@pytest.mark.parametrize(("n_left", "n_right", "kept"), [(1000, 1000, (136, 27)), (130, 130, (130, 3)), (5, 5, (5, 5))])
def test_the_released_window_keeps_too_little_of_the_right(n_left: int, n_right: int, kept: tuple[int, int]) -> None:
    shown = released_window(["l"] * n_left, "M", ["r"] * n_right, max_tokens=256).split()
    assert (shown.count("l"), shown.count("r")) == kept


def test_a_mention_longer_than_the_window_keeps_no_context_and_ends() -> None:
    mention = " ".join(["m"] * 300)
    assert window(["l"], mention, ["r"], max_tokens=256) == ([], [])
    assert "m m" in released_window(["l"] * 9, mention, ["r"] * 9, max_tokens=256)


@pytest.mark.parametrize(
    ("choice", "n_tokens"), [("right", 256), ("released", 166), ("whole", 2003)], ids=["right", "released", "whole"]
)
def test_the_window_is_chosen_by_option_and_meta_is_never_cut(tmp_path: Path, choice: str, n_tokens: int) -> None:
    mention = f"M\tB\tM\tX\t{URL}M\t15\t/m/1"
    path = _aida(tmp_path / "aida.tsv", "-DOCSTART- (1)", *["l"] * 1000, mention, *["r"] * 1000)
    options = LinkingOptions(window=choice)  # type: ignore[arg-type]
    (example,) = read_source("aidayago2", path, split="train", options=options).examples
    assert example.input is not None
    assert len(example.input.split()) == n_tokens
    assert example.meta is not None
    assert len(example.meta["left_context"].split()) == len(example.meta["right_context"].split()) == 1000


def test_wned_is_split_by_document_with_a_seed() -> None:
    names = [f"document {number}" for number in range(400)]
    halves = Counter(wned_split(name, dataset="wned", seed="kilt") for name in names)
    assert set(halves) == {"dev", "test"}
    assert 160 < halves["dev"] < 240
    other = [wned_split(name, dataset="wned", seed="other") for name in names]
    assert other != [wned_split(name, dataset="wned", seed="kilt") for name in names]
    assert other != [wned_split(name, dataset="cweb", seed="other") for name in names]


def test_xml_and_tsv_of_a_document_name_the_same_pages_in_the_same_half() -> None:
    from_xml = _both_halves(XML)
    from_tsv = _both_halves(DATA / "wned" / "wned.conll")
    for xml, tsv in zip(from_xml, from_tsv, strict=True):
        assert [name for name in _names(xml) if "Élodie" not in name] == _names(tsv)
        assert all(example.outputs[0].evidence[0].page.kind == "url" for example in tsv.examples)
    pages = {_name: example for xml in from_xml for _name, example in zip(_names(xml), xml.examples, strict=True)}
    assert len(pages) == 5
    first = pages["Élodie:0"]
    assert first.outputs[0].evidence[0].page == PageKey("title", "Port Sellick")
    assert first.input == (
        "Élodie Vauquelin-Marr was a composer from [START_ENT] Port  Sellick [END_ENT]"
        " . She knew R&D at Pell & Daughters ."
    )
    assert sum((xml.tally.excluded for xml in from_xml), Counter()) == Counter(not_in_kb=1)


@pytest.mark.parametrize(
    ("old", "new", "reason", "n_lost"),
    [
        pytest.param("<offset>0</offset>", "<offset>1</offset>", "offset_mismatch", 1, id="offset"),
        pytest.param("<offset>0</offset>", "<offset>x</offset>", "wrong_type", 1, id="offset is text"),
        pytest.param("<offset>0</offset>", "", "missing_field", 1, id="no offset"),
        pytest.param("</annotation>", "", "malformed_xml", 1, id="not closed"),
        pytest.param("<wikiName>P</wikiName>", "<wikiName>&e;</wikiName>", "malformed_xml", 1, id="entity"),
        pytest.param('docName="a"', "", "missing_field", 1, id="no name"),
        pytest.param('docName="a"', 'docName="zzz"', "missing_raw_text", 1, id="no text"),
        pytest.param('docName="a"', 'docName="../wned.xml"', "missing_raw_text", 1, id="path that leads out"),
        pytest.param("</document>", "", "malformed_xml", 1, id="document is not closed"),
    ],
)
def test_a_bad_document_is_rejected_and_the_rest_goes_on(
    tmp_path: Path, old: str, new: str, reason: str, n_lost: int
) -> None:
    (tmp_path / "RawText").mkdir()
    documents = []
    for name in "ab":
        (tmp_path / "RawText" / name).write_text("P and more")
        annotation = "<mention>P</mention><wikiName>P</wikiName><offset>0</offset><length>1</length>"
        documents.append(f'<document docName="{name}">\n<annotation>{annotation}</annotation>\n</document>\n')
    assert old in documents[0]
    documents[0] = documents[0].replace(old, new, 1)
    path = tmp_path / "wned.xml"
    doctype = '<!DOCTYPE x [<!ENTITY e "P">]>'
    path.write_text(f"<?xml version='1.0'?>{doctype}<x>\n{''.join(documents)}</x>")
    halves = _both_halves(path)
    assert sorted(name for half in halves for name in _names(half)) == ["b:0"]
    rejected = [bad for half in halves for bad in half.rejected]
    # A document without a readable name belongs to no half, so both report it.
    assert {bad.reason for bad in rejected} == {reason}
    assert {bad.file for bad in rejected} == {"wned.xml"}
    assert all(bad.detail.startswith("line 2: ") for bad in rejected)


def _annotation(mention: str = "P", title: str = "P", offset: object = 0) -> str:
    return (
        f"<annotation><mention>{mention}</mention><wikiName>{title}</wikiName><offset>{offset}</offset>"
        "<length>1</length></annotation>"
    )


ANNOTATIONS = st.sampled_from(
    [
        _annotation(),
        _annotation(mention="m", offset=6),
        _annotation(title="NIL"),
        _annotation(title=""),
        _annotation(offset=1),
        _annotation(offset="-1"),
        _annotation(offset="one"),
        "<annotation><mention>P</mention></annotation>",
    ]
)
# A name may come twice, and the last one has no text.
DOCUMENTS = st.lists(st.tuples(st.sampled_from("abc"), st.lists(ANNOTATIONS, max_size=4)), min_size=1, max_size=5)


@given(documents=DOCUMENTS)
def test_no_annotation_is_lost_without_a_reason(tmp_path: Path, documents: list[tuple[str, list[str]]]) -> None:
    (tmp_path / "RawText").mkdir(exist_ok=True)
    for name in "ab":
        (tmp_path / "RawText" / name).write_text("P and more")
    written = "".join(f'<document docName="{name}">{"".join(inside)}</document>' for name, inside in documents)
    (tmp_path / "wned.xml").write_text(f"<x>{written}</x>")
    halves = _both_halves(tmp_path / "wned.xml")
    assert all(is_balanced(half.tally) for half in halves)
    assert sum(half.tally.records for half in halves) == sum(len(inside) for _, inside in documents)
    assert all(bad.reason in REJECTED for half in halves for bad in half.rejected)
    assert sum(len(half.rejected) for half in halves) == sum(half.tally.rejected.total() for half in halves)


def test_xml_without_its_texts_stops_at_once(tmp_path: Path) -> None:
    (tmp_path / "wned.xml").write_bytes(XML.read_bytes())
    with pytest.raises(SetupError, match="Give the folder RawText"):
        read_source("wned", tmp_path / "wned.xml")
    assert read_source("wned", tmp_path / "wned.xml", RAW_TEXT).tally.records


def test_real_wned_documents() -> None:
    halves = _both_halves(real_path("datasets/wned-wiki/wikipedia.xml"))
    assert [half.rejected for half in halves] == [[], []]
    assert sum(half.tally.examples for half in halves) == 922
    documents = [{name.rpartition(":")[0] for name in _names(half)} for half in halves]
    assert documents[0].isdisjoint(documents[1])
    assert len(documents[0] | documents[1]) == 40
    inputs = [example.input or "" for half in halves for example in half.examples]
    assert all(len(shown.split()) <= 256 for shown in inputs)


def test_real_aida_records_come_out_of_their_document_as_released(tmp_path: Path) -> None:
    records = [json.loads(line) for line in real_path("kilt/aidayago2-dev-kilt.jsonl").open(encoding="utf-8")]
    whole = records[0]["meta"]
    tokens = " ".join((whole["left_context"], whole["mention"], whole["right_context"])).split(" ")
    lines = ["-DOCSTART- (947testa CRICKET)"]
    starts = {}
    for record in records:
        start = len(record["meta"]["left_context"].split(" "))
        while not tokens[start]:
            start += 1
        starts[start] = record["meta"]["mention"]
    inside = 0
    mention = ""
    for number, token in enumerate(tokens):
        if number in starts:
            mention = starts[number]
            inside = len(mention.split())
            lines.append(f"{token}\tB\t{mention}\tX\t{URL}X\t1\t/m/1")
        elif inside:
            lines.append(f"{token}\tI\t{mention}\tX\t{URL}X\t1\t/m/1")
        else:
            lines.append(token)
        inside = max(0, inside - 1)
    path = _aida(tmp_path / "aida.tsv", *lines)
    options = LinkingOptions(window="whole", blank_lines="released")
    reading = read_source("aidayago2", path, options=options)
    assert [(example.input, example.meta) for example in reading.examples] == [
        (record["input"], record["meta"]) for record in records
    ]
    assert [example.example_id.rpartition("_")[2] for example in reading.examples] == [
        record["id"].rpartition("_")[2] for record in records
    ]
