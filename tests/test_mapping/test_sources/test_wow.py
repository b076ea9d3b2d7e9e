"""Wizard of Wikipedia: which turns count, what stands in front of them, and whose page a sentence is of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.records import Example
from mapping.sources.wow import WizardOptions
from tests.support.dataset_sources import read_source
from tests.support.real_data import ROOT

DEMO = ROOT / "kbsource" / "demo" / "datasets" / "wow"
SENTENCE = "It rises in Lake Miravel."


def _apprentice(text: str = "Hello?", **passages: list[str]) -> dict[str, Any]:
    return {"speaker": "0_Apprentice", "text": text, "retrieved_passages": [passages]}


def _wizard(text: str = "Well.", checked: Any = None, passage: Any = None, **passages: list[str]) -> dict[str, Any]:
    turn: dict[str, Any] = {"speaker": "1_Wizard", "text": text, "retrieved_passages": [passages]}
    turn["checked_sentence"] = {"self_River_Ullane_0": SENTENCE} if checked is None else checked
    return turn | ({} if passage is None else {"checked_passage": passage})


def _dialogue(*turns: Any, **fields: Any) -> dict[str, Any]:
    return {"chosen_topic": "Topic", "chosen_topic_passage": [], "dialog": list(turns)} | fields


def _write(path: Path, *dialogues: Any) -> Path:
    path.write_text(
        "["
        + ",\n".join(dialogue if isinstance(dialogue, str) else json.dumps(dialogue) for dialogue in dialogues)
        + "]"
    )
    return path


def _example(path: Path, *turns: Any, options: WizardOptions | None = None, **fields: Any) -> Example:
    (example,) = read_source("wow", _write(path, _dialogue(*turns, **fields)), options=options).examples
    return example


def _title(example: Example) -> str:
    ((evidence,),) = (output.evidence for output in example.outputs)
    assert evidence.page.kind == "title"
    return evidence.page.value


@pytest.mark.parametrize(
    ("checked", "reason"),
    [
        pytest.param({}, "nothing_checked", id="empty"),
        pytest.param({"self_T_0": " "}, "nothing_checked", id="blank"),
        pytest.param({"no_passages_used": "no_passages_used"}, "no_passages_used", id="none used"),
        pytest.param({"self_T_0": "no_passages_used"}, "no_passages_used", id="none used, under another key"),
    ],
)
def test_a_turn_without_a_sentence_is_left_out(tmp_path: Path, checked: dict[str, str], reason: str) -> None:
    path = _write(tmp_path / "x.json", _dialogue(_apprentice(), _wizard(checked=checked)))
    assert read_source("wow", path).tally.excluded == {reason: 1}
    gone = {key: value for key, value in _wizard().items() if key != "checked_sentence"}
    path = _write(tmp_path / "y.json", _dialogue(_apprentice(), gone))
    assert read_source("wow", path).tally.excluded == {"nothing_checked": 1}


HOLDS = {"River Ullane": ["A river.", SENTENCE]}
ELSEWHERE = {"Low Water": ["An album.", SENTENCE]}


@pytest.mark.parametrize(
    ("passage", "key", "shown", "title"),
    [
        pytest.param({"p": "Low Water"}, "self_River_Ullane_0", ELSEWHERE, "Low Water", id="checked passage holds it"),
        pytest.param({"p": "Low Water"}, "self_River_Ullane_0", HOLDS, "River Ullane", id="it does not: the key"),
        pytest.param({"p": "Gone"}, "self_River_Ullane_0", {}, "River Ullane", id="it is not shown: the key"),
        pytest.param({}, "self_River_Ullane_0", ELSEWHERE, "River Ullane", id="none checked: the key"),
        pytest.param(
            {"p": "Low Water", "q": "T"}, "self_River_Ullane_0", ELSEWHERE, "River Ullane", id="two checked: the key"
        ),
        pytest.param({}, "chosen_Tin/Salt_12", {}, "Tin/Salt", id="slash"),
        pytest.param({}, "partner_Élodie_Vauquelin-Marr_3", {}, "Élodie Vauquelin-Marr", id="accent"),
        pytest.param({}, "partner_C'est_la_mer_(film)_1", {}, "C'est la mer (film)", id="many words"),
        pytest.param({}, "salt", ELSEWHERE, "Low Water", id="key without a title: who holds it"),
        pytest.param({}, "self_0", ELSEWHERE, "Low Water", id="key with two parts"),
        pytest.param({}, "self___0", ELSEWHERE, "Low Water", id="key with an empty title"),
        pytest.param({"p": 7}, "self", ELSEWHERE, "Low Water", id="checked passage is no text"),
    ],
)
def test_the_page_of_a_sentence(
    tmp_path: Path, passage: dict[str, Any], key: str, shown: dict[str, list[str]], title: str
) -> None:
    apprentice = _apprentice() | {"retrieved_passages": [shown]}
    wizard = _wizard(checked={key: SENTENCE}, passage=passage)
    assert _title(_example(tmp_path / "x.json", apprentice, wizard)) == title


def test_passages_of_later_turns_do_not_count_and_the_last_shown_comes_first(tmp_path: Path) -> None:
    wizard = _wizard(checked={"": SENTENCE})
    turns = [_apprentice(Old=[SENTENCE]), _apprentice(New=[SENTENCE]), wizard, _apprentice(Later=[SENTENCE])]
    assert _title(_example(tmp_path / "x.json", *turns)) == "New"


def test_the_chosen_topic_holds_its_own_passage(tmp_path: Path) -> None:
    turns = [_apprentice(), _wizard(checked={"": SENTENCE})]
    assert _title(_example(tmp_path / "x.json", *turns, chosen_topic_passage=[SENTENCE])) == "Topic"
    checked = [_apprentice(), _wizard(passage={"chosen_topic_0": "Topic"})]
    assert _title(_example(tmp_path / "y.json", *checked, chosen_topic_passage=[SENTENCE])) == "Topic"


def test_dialogues_are_numbered_over_all_files(tmp_path: Path) -> None:
    dialogue = _dialogue(_apprentice(), _wizard())
    path = _write(tmp_path / "a.json", dialogue, '{"dialog": }', dialogue)
    reading = read_source("wow", [path, path])
    assert [example.example_id for example in reading.examples] == [f"dev-{number}-1" for number in (0, 2, 3, 5)]


_TURNS = st.lists(
    st.tuples(
        st.sampled_from(["0_Wizard", "1_Wizard", "Wizard", "0_Apprentice", "1_Apprentice"]),
        st.sampled_from(["a", "b", "c", " "]),
        st.sampled_from(
            [{}, {"self_T_0": "s"}, {"x": "s"}, {"self_T_0": ""}, {"no_passages_used": "no_passages_used"}]
        ),
    ),
    max_size=6,
)
_DIALOGUES = st.lists(st.one_of(st.sampled_from(['{"dialog": }', "7", "{}", '{"dialog": [{}]}']), _TURNS), max_size=6)


@given(dialogues=_DIALOGUES)
def test_no_turn_is_lost_without_a_reason_and_none_is_used_twice(
    tmp_path_factory: pytest.TempPathFactory, dialogues: list[Any]
) -> None:
    written = [
        dialogue
        if isinstance(dialogue, str)
        else _dialogue(
            *({"speaker": who, "text": text, "checked_sentence": checked} for who, text, checked in dialogue)
        )
        for dialogue in dialogues
    ]
    path = _write(tmp_path_factory.mktemp("wow") / "x.json", _dialogue(_apprentice(), _wizard("first")), *written)
    reading = read_source("wow", path)  # asserts that the counts add up and that ids are unique

    wanted = {"dev-0-1": ("Hello?", "first")}
    n_records = 1
    for number, dialogue in enumerate(dialogues, start=1):
        spoken = [] if isinstance(dialogue, str) else [turn for turn in dialogue if turn[0].endswith("Wizard")]
        n_records += max(len(spoken), 1)
        for turn, (who, text, checked) in enumerate([] if isinstance(dialogue, str) else dialogue):
            history = [said for _, said, _ in dialogue[:turn]]
            is_chosen = who.endswith("Wizard") and bool(checked.get("self_T_0"))
            if is_chosen and text.strip() and "".join(history).strip():
                wanted[f"dev-{number}-{turn}"] = ("\n".join(history), text)
    assert reading.tally.records == n_records
    assert {example.example_id: (example.input, example.outputs[0].answer) for example in reading.examples} == wanted
    assert len(reading.examples) + reading.tally.excluded.total() + len(reading.rejected) == n_records
