"""The extractor that the benchmarks run by names of modules."""

from benchmarks.extractors import kbsource_pages
from kbsource.site import Site


def test_whole_pages_are_extracted_and_their_characters_counted() -> None:
    run = kbsource_pages([{"site": 0, "id": 1, "title": "Ab", "text": "One [[link]].\n\nTwo."}], [Site().to_json()])
    assert run() == len("Ab" + "One link." + "Two.")
