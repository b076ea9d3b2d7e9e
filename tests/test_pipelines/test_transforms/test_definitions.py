"""The store of templates and modules as a step of anyone's own pipeline."""

from __future__ import annotations

from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to

from kbsource.errors import SetupError
from kbsource.index.definition_store import DefinitionStore
from kbsource.site import Site
from pipelines.transforms import BuildDefinitions, ParseWikitext, ReadWikipediaDump
from tests.support import defined_wiki


@pytest.mark.parametrize("is_stored", [False, True])
def test_templates_of_all_ranges_are_in_one_store(tmp_path: Path, is_stored: bool) -> None:
    dump = defined_wiki.write_dumps(tmp_path)
    folder = str(tmp_path / "staged") if is_stored else None
    for _ in range(2):  # the second time what is in the folders is taken
        read = ReadWikipediaDump(dump, range_bytes=700, folder=folder, has_definitions=True)
        with TestPipeline(runner="FnApiRunner") as pipeline:
            stores = (pipeline | read).definitions | BuildDefinitions(str(tmp_path / "store"))
            assert_that(stores, equal_to([str(tmp_path / "store")]))
    found = DefinitionStore(str(tmp_path / "store"), read.site)

    assert found.source("Twice") == found.source("Zeime-de") == defined_wiki.TEMPLATES["Zeime-de"][0]
    assert (found.source("Loop"), found.module("Numbers")) == (None, defined_wiki.MODULES["Numbers"])
    assert len(found) == len(defined_wiki.TEMPLATES)


def test_a_store_that_is_there_is_taken(tmp_path: Path) -> None:
    for dump in (defined_wiki.write_dumps(tmp_path), str(tmp_path / "*articles1.xml")):
        with TestPipeline(runner="FnApiRunner") as pipeline:
            read = ReadWikipediaDump(dump, has_definitions=True)
            _ = (pipeline | read).definitions | BuildDefinitions(str(tmp_path / "store"))

    assert len(DefinitionStore(str(tmp_path / "store"), Site(lang="ltg"))) == len(defined_wiki.TEMPLATES)


def test_definitions_are_not_asked_for_by_default(tmp_path: Path) -> None:
    with TestPipeline(runner="FnApiRunner") as pipeline:
        dump = pipeline | ReadWikipediaDump(defined_wiki.write_dumps(tmp_path))
        assert_that(dump.definitions | beam.combiners.Count.Globally(), equal_to([0]))


def test_definitions_need_an_index() -> None:
    with pytest.raises(SetupError, match="together with an index"):
        ParseWikitext(Site(), definitions=object())
