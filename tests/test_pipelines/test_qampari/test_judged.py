"""QAMPARI whose facts a model judges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mapping.entail import model as entailment_model
from mapping.entail.model import open_model
from mapping.entail.signal import ModelOptions, Pair, Verdict
from mapping.qampari.questions import COMPOSITION, load_relations
from mapping.qampari.records import ProofText
from mapping.qampari.selection import AnswerFilter
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.qampari import facts
from tests.support.builds import contents, open_release, rows
from tests.support.installed import skip_without
from tests.support.qampari_oracle import Oracle, check, considered, undrawn_questions
from tests.support.qampari_worlds import RELATIONS, Maker, World, options_for, random_maker, run_job
from tests.support.tiny_nli import overlap_model

pytestmark = pytest.mark.slow

skip_without("onnxruntime", "onnx", "transformers", reason="needs kbsource[nli]")

STRICT = 0.5
"""Of the words of a hypothesis three quarters must be there: the names and the words between them."""
GIVEN: dict[str, Any] = {"answer_filter": AnswerFilter(3, 14, 0.4), "most_subjects": 26}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return random_maker(5, n_works=130).write(tmp_path_factory.mktemp("random"))


@pytest.fixture(scope="module")
def model(world: World, tmp_path_factory: pytest.TempPathFactory) -> ModelOptions:
    texts = [RELATIONS, *(element.text for page in open_release(world.kb) for element in page.elements)]
    texts += [label["text"] for row in rows(world.wikidata, "items") for label in row["labels"]]
    return ModelOptions(str(overlap_model(tmp_path_factory.mktemp("model"), texts=texts)), backend="onnx")


@pytest.fixture(scope="module")
def made(world: World, model: ModelOptions, tmp_path_factory: pytest.TempPathFactory) -> MadeRelease:
    output = tmp_path_factory.mktemp("made") / "release"
    return run_job(options_for(world, output, model=model, least_entailment=STRICT, **GIVEN))


@pytest.fixture(scope="module")
def expected(world: World, model: ModelOptions) -> Oracle:
    """What comes out when each pair is judged by itself."""
    judge = open_model(model)

    @cache
    def entailment(pair: Pair) -> float:
        (verdict,) = judge.judge([pair])
        assert isinstance(verdict, Verdict)
        return verdict.entailment

    relations = load_relations(str(world.relations))
    return Oracle(world.wikidata, world.kb, relations, judge=entailment, least_entailment=STRICT, **GIVEN)


def _proofs(output: Path) -> dict[tuple[str, str | None, int], ProofText]:
    return {
        (undrawn_question.key, answer.item_id or answer.text, place): proof
        for undrawn_question in undrawn_questions(output)
        for answer in undrawn_question.answers
        for place, proof in enumerate(answer.proofs)
    }


def test_every_query_and_question_as_slow_and_obvious_code_has_it(made: MadeRelease, expected: Oracle) -> None:
    check(made, expected)
    assert {query.outcome for query in expected.queries.values()} >= {
        "kept",
        "too_few_found",
        "too_few_validated",
        "share_too_low",
    }


def test_the_model_is_asked_about_facts_that_a_question_may_come_of_until_it_accepts_a_sentence(
    made: MadeRelease, expected: Oracle
) -> None:
    for kind in ("simple", "compositions"):
        counts = made.report["facts"][kind]
        assert counts["unjudged"] == 0
        assert counts["facts"] < counts["all"]
        assert counts["facts"] - counts["proved"] < counts["judged"]


def test_proofs_carry_probability_and_hypothesis_and_some_are_not_the_first_sentence(
    world: World, made: MadeRelease, tmp_path: Path
) -> None:
    run_job(options_for(world, tmp_path / "unjudged", **GIVEN))
    judged, first = _proofs(Path(made.output)), _proofs(tmp_path / "unjudged")

    assert judged
    for proof in judged.values():
        assert proof.entailment is not None
        assert proof.hypothesis is not None
        assert proof.entailment > STRICT
        words = set(re.findall(r"\w+", proof.hypothesis.lower()))
        assert len(words & set(re.findall(r"\w+", proof.text.lower()))) / len(words) > 0.5
    assert all(proof.entailment is None and proof.hypothesis for proof in first.values())
    both = judged.keys() & first.keys()
    assert any(judged[key].text == first[key].text for key in both)
    assert any(judged[key].text != first[key].text for key in both)


def test_a_higher_threshold_drops_facts(world: World, model: ModelOptions, made: MadeRelease, tmp_path: Path) -> None:
    above = max(proof.entailment or 0 for proof in _proofs(Path(made.output)).values())
    strict = run_job(options_for(world, tmp_path / "a", model=model, least_entailment=above, **GIVEN))
    mild = run_job(options_for(world, tmp_path / "b", model=model, least_entailment=0.001, **GIVEN))

    assert strict.report["facts"]["simple"]["proved"] == 0  # only what is above counts
    assert strict.report["questions"]["kept"]["wikidata_simple"] == 0
    n_mild, n_strict = (run.report["facts"]["simple"]["proved"] for run in (mild, made))
    assert n_mild > n_strict > 0


class _Doubting:
    """Accepts all but what has to do with two languages."""

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict]:
        """A verdict for each pair."""
        return [Verdict(0.1 if re.search("Tongue (40|41)", pair.hypothesis) else 0.9, 0, 0) for pair in pairs]


def test_more_values_with_a_sentence_than_a_question_may_have_are_judged(
    model: ModelOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = Maker()
    maker.add("Q4", "Ann Author")
    for number in range(5):
        tongues = f"Tongue {40 + number} and Tongue {45 + number}"
        claims = "P50 Q4", f"P407 Q{40 + number}", f"P407 Q{45 + number}"
        page = [f"Book {number} was written by Ann Author. It is in {tongues}."]
        maker.add(f"Q{101 + number}", f"Book {number}", *claims, page=page)
    for number in range(40, 50):
        maker.add(f"Q{number}", f"Tongue {number}")
    monkeypatch.setattr(entailment_model, "open_model", lambda options: _Doubting())
    given = {"model": model, "least_entailment": STRICT}

    run_job(options_for(maker.write(tmp_path), tmp_path / "made", answer_filter=AnswerFilter(5, 8, 0.8), **given))

    found = considered(tmp_path / "made")[COMPOSITION, "P407__P50__Q4"]
    assert (found.n_aligned, found.n_validated, found.outcome) == (10, 8, "kept")


def test_the_same_bytes_with_smaller_chunks(
    world: World, model: ModelOptions, made: MadeRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts, "FACTS_AT_ONCE", 19)
    run_job(options_for(world, tmp_path / "cut", model=model, least_entailment=STRICT, **GIVEN))
    assert contents(tmp_path / "cut") == contents(Path(made.output))


def test_the_manifest_names_the_model(made: MadeRelease, model: ModelOptions) -> None:
    manifest = (Path(made.output) / "manifest.json").read_text("utf-8")
    assert str(Path(model.model).name) in manifest
    assert f'"least_entailment": {STRICT}' in manifest
