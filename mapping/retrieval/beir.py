"""A data set as BEIR has it: the passages as corpus, the inputs of an alignment as queries, and which passage is
relevant to which.

::

    corpus.jsonl          _id, title, text and metadata of every passage
    queries.jsonl         _id and text
    qrels/dev.tsv         query-id, corpus-id, score: 1 for every relevant passage
    qrels/dev.trec        the same as trec_eval has it
    manifest.json         written last

Relevant is a passage that has a part of a written span, or that stands on its page where that is what is asked for or
where the span is a page alone (entity linking). That several passages may be needed together BEIR has no place for.

Source: BEIR (2021), ``GenericDataLoader``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kbsource.errors import SetupError
from kbsource.files import join
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry, ListingManifest, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import check_hashes, row_groups
from kbsource.release.writer import LinesFile, write_lines
from mapping.options import Level
from mapping.passages.corpus import read_passages
from mapping.passages.cut import Passage
from mapping.passages.forms import KiltPages, json_line, line_forms
from mapping.passages.kind import BEIR_DATASET, CORPUS, PASSAGES_CORPUS, QRELS, QUERIES
from mapping.retrieval.queries import read_queries
from mapping.write.kind import ALIGNMENT

_COLUMNS = "example_id output page_id start_element start_char end_element end_char is_written".split()
_Point = tuple[int, int]


class _Gold(NamedTuple):
    """A span that is looked for: number of its query, first and last point; None for the page."""

    query: int
    start: _Point | None
    end: _Point | None

    def is_in(self, passage: Passage) -> bool:
        """Whether a passage of the page has a part of it."""
        if self.start is None or self.end is None:
            return True
        spans = (((span.element, span.start_char), (span.element, span.end_char)) for span in passage.spans)
        return any(start < self.end and end > self.start for start, end in spans)


def make_beir(alignment: str, passages: str, output: str, *, level: Level) -> ListingManifest:
    """Writes the data set of an alignment over a corpus of passages, and gives its manifest.

    Memory: the queries and their spans, a row group of passages.

    Raises:
        SetupError: they are not of one release, are not as they were written, or have no queries.
    """
    aligned, corpus = ALIGNMENT.read(alignment), PASSAGES_CORPUS.read(passages)
    if aligned.made_from() != corpus.made_from():
        raise SetupError(f"{alignment} and {passages} are made from different releases; give those of one release.")
    check_hashes(alignment, aligned.entries())
    check_hashes(passages, corpus.tables["passages"])
    split = str(aligned.facts["split"])
    with ReleaseFolder(output, kind=BEIR_DATASET):
        asked = read_queries(join(alignment, _records_file(aligned)))
        queries = {query.query_id: query.text for query in asked}
        if odd := [query_id for query_id in queries if len(query_id.split()) != 1]:
            raise SetupError(f"{alignment}: id {odd[0]!r} has white space in it, where qrels part their columns.")
        gold = _gold(aligned, alignment, {query_id: number for number, query_id in enumerate(queries)}, level)
        paths = [join(passages, entry.file) for entry in corpus.tables["passages"]]
        corpus_entry, relevant = _write_corpus(paths, gold, output)
        lines = [json_line({"_id": query_id, "text": text}) for query_id, text in queries.items()]
        judged = [(query_id, one) for number, query_id in enumerate(queries) for one in relevant.get(number, ())]
        tsv = (f"{query_id}\t{one}\t1\n".encode() for query_id, one in judged)
        files = [
            corpus_entry,
            write_lines(lines, QUERIES, output=output),
            write_lines([b"query-id\tcorpus-id\tscore\n", *tsv], f"{QRELS}/{split}.tsv", output=output),
            write_lines(
                (f"{query_id} 0 {one} 1\n".encode() for query_id, one in judged), f"{QRELS}/{split}.trec", output=output
            ),
        ]
        facts = {
            "release": corpus.facts["release"],
            "passages": {"manifest": MANIFEST, "manifest_sha256": corpus.sha256},
            "alignment": {"manifest": MANIFEST, "manifest_sha256": aligned.sha256},
            "options": {"level": level},
            "counts": {
                "queries": len(queries),
                "queries_without_relevant": sum(number not in relevant for number in range(len(queries))),
                "passages": corpus_entry.rows,
                "relevant": len(judged),
            },
            "code": code_facts(),
        }
        manifest = BEIR_DATASET.listing(files, facts)
        commit(BEIR_DATASET, manifest, output)
    return manifest


def _records_file(aligned: ListingManifest) -> str:
    """The file of the records: with answers and inputs, where there are several."""
    files = [entry.file for entry in aligned.files if entry.file.endswith("-kilt.jsonl")]
    return min(files, key=lambda file: ("_without_answers" in file or "_id-" in file or "_id_" in file, file))


def _gold(aligned: ListingManifest, folder: str, numbers: Mapping[str, int], level: Level) -> dict[int, list[_Gold]]:
    """The written spans of outputs by page."""
    gold: defaultdict[int, list[_Gold]] = defaultdict(list)
    for entry in aligned.tables["alignments"]:
        for group in row_groups(join(folder, entry.file), _COLUMNS):
            columns = (group[name].to_pylist() for name in _COLUMNS)
            for example_id, output, page_id, *place, is_written in zip(*columns, strict=True):
                if not is_written or output < 0 or example_id not in numbers:
                    continue
                is_page = level == "page" or place[0] is None
                start, end = (None, None) if is_page else ((place[0], place[1]), (place[2], place[3]))
                gold[page_id].append(_Gold(numbers[example_id], start, end))
    return gold


def _write_corpus(
    paths: Iterable[str], gold: Mapping[int, list[_Gold]], output: str
) -> tuple[FileEntry, dict[int, dict[str, None]]]:
    """Writes the corpus, and gives with its entry the ids of the relevant passages by query."""
    (form,), no_pages = line_forms(["beir"]), KiltPages((), "")
    relevant: defaultdict[int, dict[str, None]] = defaultdict(dict)
    with LinesFile(output, CORPUS) as target:
        for passage in (passage for path in paths for passage in read_passages(path)):
            target.write(form.line(passage, no_pages))
            for span in gold.get(passage.page_id, ()):
                if span.is_in(passage):
                    relevant[span.query][passage.passage_id] = None
    return target.entry, relevant
