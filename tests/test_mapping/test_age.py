"""What became of evidence from release to release, and half-lives beside what likelihood says of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from mapping.age import EvidenceResult, Fate, KnownPage, fates_of, first_with, half_life
from mapping.records import Alignment, PageKey, Span

DATES = ("20190801", "20200801", "20210801", "20220801")
SPAN = Span(1, 0, 1, 4, 1.0, "exact")
PAGE = KnownPage(1, 2_000, "Infobox river")


def found(outcome: str, page_id: int | None = 7, section: str | None = "Course") -> Alignment:
    has_span = outcome in ("exact", "near", "weak")
    return Alignment(
        PageKey("page_id", "7"),
        "text",
        outcome=outcome,
        page_id=page_id,
        section=section,
        span=SPAN if has_span else None,
    )


def fates(*outcomes: Alignment, pages: tuple[KnownPage | None, ...] | None = None) -> list[Fate]:
    known = tuple(None if outcome.page_id is None else PAGE for outcome in outcomes) if pages is None else pages
    return list(fates_of("nq-dev", [*map(EvidenceResult, outcomes)], known, DATES[: len(outcomes)]))


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([found("exact"), found("exact"), found("weak"), found("exact")], ["exact", "exact", "weak lost", "exact"]),
        ([found("exact"), found("exact", section="Mouth"), found("near", 8)], ["exact", "moved", "moved"]),
        ([found("near"), found("exact")], ["near", "exact"]),
        ([found("weak"), found("exact", section="Mouth"), found("exact")], ["weak", "exact", "moved"]),
        ([found("page_only"), found("page_missing", None)], ["page_only", "page_gone lost"]),
        (
            [found("exact"), found("page_ambiguous"), found("page_missing", None)],
            ["exact", "page_gone lost", "page_gone"],
        ),
        ([found("empty_evidence"), found("search_timeout")], ["not_searched", "not_searched"]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) and isinstance(value[0], str) else "",
)
def test_evidence_is_newly_lost_once(outcomes: list[Alignment], expected: list[str]) -> None:
    assert [f"{fate.fate} lost" if fate.newly_lost else fate.fate for fate in fates(*outcomes)] == expected


def test_evidence_that_is_near_with_other_details_is_lost() -> None:
    rows = list(
        fates_of(
            "nq-dev",
            [EvidenceResult(found("near")), EvidenceResult(found("near", section="End"), True)],
            [PAGE] * 2,
            DATES,
        )
    )
    assert [(row.fate, row.newly_lost) for row in rows] == [("near", False), ("near_changed", True)]


def test_moved_evidence_is_present_in_its_new_page() -> None:
    own = [EvidenceResult(found(outcome)) for outcome in ("exact", "weak", "weak", "exact")]
    other = {
        1: EvidenceResult(found("exact", 8)),
        2: EvidenceResult(found("near", 8), True),
        3: EvidenceResult(found("exact", 8)),
    }
    rows = list(fates_of("nq-dev", own, [PAGE] * 4, DATES, question="Who?", elsewhere=other))
    assert [(row.fate, row.page_id, row.newly_lost) for row in rows] == [
        ("exact", 7, False),
        ("moved", 8, False),
        ("near_changed", 8, True),
        ("exact", 7, False),
    ]
    assert {row.question for row in rows} == {"Who?"}


def test_what_is_gone_keeps_its_last_title() -> None:
    there, gone = structs.replace(found("exact"), title="River"), found("page_missing", None)
    assert [fate.last_title for fate in fates(gone, there, gone)] == [None, "River", "River"]


def test_the_kind_of_a_page_is_that_of_where_it_was_first_found() -> None:
    later = KnownPage(2, 30_000, None)
    rows = fates(found("page_missing", None), found("exact"), found("exact"), pages=(None, PAGE, later))
    assert {(row.infobox, row.size) for row in rows} == {("Infobox river", "1,000–5,000 characters")}
    assert [row.is_searched for row in rows] == [False, True, True]


def test_a_page_is_searched_in_the_first_release_that_has_it_so() -> None:
    pages = [None, KnownPage(1, 5, None), KnownPage(2, 5, None), KnownPage(1, 5, None)]
    assert [first_with(pages, number) for number in (1, 2, 3)] == [1, 2, 1]


def test_a_half_life_from_two_releases_is_known_by_a_formula() -> None:
    for share in (0.1, 0.5, 0.9):
        estimate = half_life({(0.0, 3.0): round(1000 * share)}, {3.0: 1000 - round(1000 * share)})
        assert estimate is not None
        assert estimate.years == pytest.approx(-3 * math.log(2) / math.log(1 - share), rel=1e-6)
    assert half_life({}, {}) is None
    without_loss = half_life({}, {2.0: 100})
    assert without_loss is not None
    assert without_loss.years is without_loss.high is None
    assert without_loss.low == pytest.approx(math.log(2) * 200 / 1.920729, rel=1e-5)


@given(st.lists(st.integers(0, 200), min_size=2, max_size=4), st.integers(0, 200))
def test_no_rate_is_likelier_and_the_bounds_are_where_the_ratio_says(losses: list[int], n_present: int) -> None:
    lost = {(float(year), year + 1.0): n for year, n in enumerate(losses) if n}
    present = {float(len(losses)): n_present} if n_present else {}
    estimate = half_life(lost, present)
    if not lost or estimate is None or estimate.years is None:
        assert not lost
        return

    def log_likelihood(years: float) -> float:
        survival = lambda time: 2 ** (-time / years)  # noqa: E731
        terms = [n * math.log(survival(start) - survival(end)) for (start, end), n in lost.items()]
        return sum(terms) + sum(n * math.log(survival(time)) for time, n in present.items())

    if not present and set(lost) == {(0.0, 1.0)}:
        assert (estimate.years, estimate.low) == (0.0, 0.0)  # all were lost at once: nothing bounds the rate
        return
    best = log_likelihood(estimate.years)
    assert all(log_likelihood(estimate.years * factor) <= best + 1e-9 for factor in (0.8, 0.99, 1.01, 1.25))
    for bound in (estimate.low, estimate.high):
        assert bound is not None
        assert best - log_likelihood(bound) == pytest.approx(1.920729, abs=1e-3)
