"""Parsers of the mini-wiki for which single pages go wrong on purpose."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import structs
from msgspec.structs import replace

from kbsource.errors import SetupError
from kbsource.pages.articles import PageParser, ParsedPage
from kbsource.records import RawPage
from tests.support.guarded_work import misbehave

MOODS = {"Port Sellick": "hang in C", "Lake Miravel": "segfault", "Heron": "type error", "Pell & Daughters": "segfault"}
"""What happens when a page is parsed."""

TOO_DEEP = "River Ullane"
"""The page with an element that no file can hold."""

LOST = "Pell & Daughters"
"""The page that not even the simplest extraction survives."""


class MoodyParser(PageParser):
    """Goes wrong on the pages in ``MOODS``, and on ``LOST`` in the fallback too."""

    def parse(self, raw: RawPage, **options: bool) -> ParsedPage:
        if raw.title in MOODS:
            misbehave(MOODS[raw.title])
        page = super().parse(raw, **options)
        if raw.title != TOO_DEEP:
            return page
        deep = structs.replace(page.text.elements[-1], kind="list_item", level=300)
        return replace(page, text=replace(page.text, elements=(*page.text.elements, deep)))

    def parse_fallback(self, raw: RawPage, status: str) -> ParsedPage:
        if raw.title == LOST:
            misbehave("segfault")
        return super().parse_fallback(raw, status)


class MoodyReferencesParser(PageParser):
    """Goes wrong on the pages in ``MOODS`` where references are read."""

    def parse(self, raw: RawPage, **options: bool) -> ParsedPage:
        if raw.title in MOODS and not options.get("leave_out_references"):
            misbehave(MOODS[raw.title])
        return super().parse(raw, **options)


class FallingParser(PageParser):
    """Fails on every page with an id of the last digit that KBSOURCE_TEST_DIGITS has."""

    def parse(self, raw: RawPage, **options: bool) -> ParsedPage:
        if str(raw.page_id)[-1] in os.environ["KBSOURCE_TEST_DIGITS"]:
            return self.parse_fallback(raw, "fallback_error")
        return super().parse(raw, **options)


class WaitingParser(PageParser):
    """Opens the pipe that KBSOURCE_TEST_PIPE names on page 40 and then waits for ever."""

    def parse(self, raw: RawPage, **options: bool) -> ParsedPage:
        if raw.page_id >= 40:
            os.open(os.environ["KBSOURCE_TEST_PIPE"], os.O_WRONLY)
            misbehave("hang")
        return super().parse(raw, **options)


class GatedParser(PageParser):
    """Waits for ever on the page "Heron" while the pipe that KBSOURCE_TEST_PIPE names exists.

    It writes the process id of the Beam worker into the pipe first.
    """

    def parse(self, raw: RawPage, **options: bool) -> ParsedPage:
        pipe = os.environ.get("KBSOURCE_TEST_PIPE", "")
        if raw.title == "Heron" and os.path.exists(pipe):
            # Stays open, so that the reader sees the end of this process.
            os.write(os.open(pipe, os.O_WRONLY), b"%d\n" % os.getppid())
            misbehave("hang")
        return super().parse(raw, **options)


class RefusingParser(PageParser):
    """Ends the job while KBSOURCE_TEST_REFUSES is set."""

    def parse(self, raw: RawPage, **options: bool) -> ParsedPage:
        if "KBSOURCE_TEST_REFUSES" in os.environ:
            raise SetupError("no parsing today")
        return super().parse(raw, **options)


class SigningParser(PageParser):
    """Leaves a file named after the working folder, which is an executor's own on Spark, in KBSOURCE_TEST_SIGNS."""

    def parse(self, raw: RawPage, **options: bool) -> ParsedPage:
        if "KBSOURCE_TEST_SIGNS" in os.environ:
            Path(os.environ["KBSOURCE_TEST_SIGNS"], os.getcwd().replace("/", "|")).touch()
        return super().parse(raw, **options)
