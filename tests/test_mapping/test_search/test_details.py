"""Whether a text that is like an evidence still has its numbers, dates and names."""

from __future__ import annotations

import pytest

from mapping.search.details import PageWords, has_other_details
from tests.support.tokenisers import tokeniser

_CHANGED = [
    ("en", "The bridge was opened in 1901.", "The bridge was opened in 1902."),
    ("en", "It has 1,200 seats and 5.5 % of them are free.", "It has 1,200 seats and 55 % of them are free."),
    ("en", "The lake freezes at −5 °C every year.", "The lake freezes at 5 °C every year."),
    ("en", "The mill was built by John Smith in spring.", "The mill was built by John Jones in spring."),
    ("en", "Smith built the old mill by the river.", "Jones built the old mill by the river."),
    ("en", "They won 3 games and lost 5 of them.", "They won 5 games and lost 3 of them."),
    ("en", "The mayor opened it on a Monday in May.", "The mayor opened it on a Monday in June."),
    ("en", "Henry VIII was the owner of the house.", "Henry VII was the owner of the house."),
    ("en", "The Mill river was named by Ann Lee.", "The Stone river was named by Ann Lee."),
    ("en", "He had three sons and a daughter.", "He had four sons and a daughter."),
    ("en", "It was open for twenty-one years.", "It was open for twenty-two years."),
    ("en", "The school has twelve rooms.", "The school has 14 rooms."),
    ("fr", "Le pont fut ouvert au mois de janvier.", "Le pont fut ouvert au mois de février."),
    ("ru", "Мост был открыт в марте в Москве.", "Мост был открыт в марте в Самаре."),
    ("el", "Η γέφυρα άνοιξε στην Αθήνα το καλοκαίρι.", "Η γέφυρα άνοιξε στην Πάτρα το καλοκαίρι."),
    ("hi", "उसका जन्म १९०१ में हुआ था", "उसका जन्म १९०२ में हुआ था"),
    ("ar", "ولد الشاعر عام ١٩٠١ في القاهرة", "ولد الشاعر عام ١٩٠١ في بغداد"),
    ("ar", "ولد الشاعر عام ١٩٠١ في القاهرة", "ولد الشاعر عام ١٩١١ في القاهرة"),
    ("fa", "این پل در ۱۹۰۱ باز شد", "این پل در ۱۹۰۳ باز شد"),
    ("he", "הגשר נפתח בירושלים לפני שנים", "הגשר נפתח בחיפה לפני שנים"),
    ("th", "สะพานเปิดในปี ๒๔๔๔", "สะพานเปิดในปี ๒๔๔๕"),
    ("zh", "他於一九〇一年生於北京市", "他於一九〇二年生於北京市"),
    ("zh", "他於1901年生於北京市", "他於1901年生於南京市"),
    ("ja", "橋は1901年に東京で開通した", "橋は1901年に京都で開通した"),
    ("ko", "다리는 1901년에 서울에서 열렸다", "다리는 1901년에 부산에서 열렸다"),
    ("ka", "ხიდი თბილისში გაიხსნა გაზაფხულზე", "ხიდი ბათუმში გაიხსნა გაზაფხულზე"),
    ("bn", "সেতুটি ১৯০১ সালে খোলা হয়", "সেতুটি ১৯০৪ সালে খোলা হয়"),
]
_SAME = [
    ("en", "The bridge was opened in 1901.", "The bridge was finished and opened in 1901."),
    ("en", "In 1901 the bridge was opened.", "The bridge was opened in 1901."),
    ("en", "It has 1,200 seats for guests.", "It has 1200 seats for visitors."),
    ("en", "It has 1,200 seats for guests.", "It has 1,200 seats for guests and 40 for staff."),
    ("en", "The Mill was named after a stone.", "It was named after a stone."),
    ("en", "When the old bridge fell, all were sad.", "After the old bridge fell, all were sad."),
    ("en", "The school has twelve rooms.", "The school has 12 rooms."),
    ("en", "One of the sons was ill.", "A son was ill."),
    ("fr", "Le pont fut ouvert au mois de janvier.", "Le pont était ouvert au mois de janvier."),
    ("hi", "उसका जन्म १९०१ में हुआ था", "उसका जन्म 1901 में हुआ था"),
    ("ar", "ولد الشاعر عام ١٩٠١ في القاهرة", "ولد الشاعر الكبير عام ١٩٠١ في القاهرة"),
    ("zh", "他於1901年生於北京市", "他於1901年出生於北京市"),
]


def _has_other(lang: str, evidence: str, text: str) -> bool:
    body = [text, "it was built, the seats were for all guests"]
    return has_other_details(evidence, text, PageWords.of("Mill", body, tokeniser(lang)), tokeniser(lang), lang)


@pytest.mark.parametrize(("lang", "evidence", "text"), _CHANGED)
def test_other_numbers_dates_and_names_are_seen(lang: str, evidence: str, text: str) -> None:
    assert _has_other(lang, evidence, text)


@pytest.mark.parametrize(("lang", "evidence", "text"), _SAME)
def test_other_words_change_no_details(lang: str, evidence: str, text: str) -> None:
    assert not _has_other(lang, evidence, text)
