"""Writes a BEIR data set: the passages as corpus, the inputs of an alignment as queries, and the relevant passages of
each query.

::

    corpus.jsonl          _id, title, text and metadata of every passage
    queries.jsonl         _id and text
    qrels/dev.tsv         query-id, corpus-id, score: 1 for every relevant passage
    qrels/dev.trec        the same in the format of trec_eval
    manifest.json         written last

A passage is relevant if it contains part of a written span. If relevance by page is requested, or if the span is only a
page (entity linking), every passage of that page is relevant. BEIR cannot express that several passages are needed
together. White space in a query id, which separates the columns of qrels, is percent-encoded in all files (``column``).

Source: BEIR (2021), ``GenericDataLoader``.
"""

from __future__ import annotations

import pyarrow as pa

from kbsource.errors import SetupError
from kbsource.files import join
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import ListingManifest, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import check_hashes
from kbsource.release.sql import add_release, connected
from kbsource.release.writer import write_lines
from mapping.options import Level
from mapping.passages.corpus import read_passages
from mapping.passages.forms import KiltPages, json_line, line_forms
from mapping.passages.kind import BEIR_DATASET, CORPUS, PASSAGES_CORPUS, QRELS, QUERIES
from mapping.retrieval.queries import read_queries
from mapping.retrieval.runs import column
from mapping.write.kind import ALIGNMENT

RECORDS = "-kilt.jsonl"
"""Suffix of the names of record files."""
RELEVANT = """
select example_id, passage_id, place, min(passages._file_number) as file_number, min(passages._row) as row from queries
join alignments using (example_id) join passages using (page_id)
where is_written and output >= 0 and ({any_passage} or start_element is null or list_bool_or([
    (span.element, span.start_char) < (end_element, end_char)
    and (span.element, span.end_char) > (start_element, start_char) for span in spans]))
group by place, example_id, passage_id order by place, file_number, row"""
"""Pairs of a query and a passage that contains part of one of its spans, ordered by query, then by passage."""


def records_file(aligned: ListingManifest) -> str:
    """Returns the file with the records of an alignment; if there are several, the one with answers and inputs."""
    named = [entry.file for entry in aligned.files if entry.file.endswith(RECORDS)]
    if not named:
        raise SetupError("The alignment lists no file of records (…-kilt.jsonl); align the dataset again.")
    return min(named, key=lambda file: ("_without_answers" in file or "_id-" in file or "_id_" in file, file))


def make_beir(alignment: str, passages: str, output: str, *, level: Level) -> ListingManifest:
    """Writes the data set for an alignment and a corpus of passages; returns its manifest.

    Memory: the queries, the relevant passages, a row group of passages, and the memory of the join.

    Raises:
        SetupError: the two are not from one release, were changed after they were written, or have no queries.
    """
    aligned, corpus = ALIGNMENT.read(alignment), PASSAGES_CORPUS.read(passages)
    if aligned.made_from() != corpus.made_from():
        raise SetupError(
            f"{alignment} and {passages} are made from different releases; name data from the same release."
        )
    check_hashes(alignment, aligned.entries())
    check_hashes(passages, corpus.tables["passages"])
    split = str(aligned.facts["split"])
    asked = read_queries(join(alignment, records_file(aligned)))
    queries = {query.query_id: query.input for query in asked}
    if "" in queries:
        raise SetupError(
            f"{alignment}: a record has an empty id, which qrels cannot contain; give every record an id "
            f"and align the dataset again."
        )
    with ReleaseFolder(output, kind=BEIR_DATASET):
        with connected(reads=[alignment, passages]) as db:
            add_release(db, ALIGNMENT, alignment)
            add_release(db, PASSAGES_CORPUS, passages, places=True)
            db.register("queries", pa.table({"example_id": list(queries), "place": range(len(queries))}))
            found = db.execute(RELEVANT.format(any_passage=level == "page")).fetchall()
        relevant = [(column(query_id), passage_id) for query_id, passage_id, *_ in found]
        (form,), no_pages = line_forms(["beir"]), KiltPages((), "")
        paths = [join(passages, entry.file) for entry in corpus.tables["passages"]]
        every = (form.line(passage, no_pages) for path in paths for passage in read_passages(path))
        lines = [json_line({"_id": column(query_id), "text": text}) for query_id, text in queries.items()]
        tsv = (f"{query_id}\t{passage}\t1\n".encode() for query_id, passage in relevant)
        trec = (f"{query_id} 0 {passage} 1\n".encode() for query_id, passage in relevant)
        files = [
            write_lines(every, CORPUS, output=output),
            write_lines(lines, QUERIES, output=output),
            write_lines([b"query-id\tcorpus-id\tscore\n", *tsv], f"{QRELS}/{split}.tsv", output=output),
            write_lines(trec, f"{QRELS}/{split}.trec", output=output),
        ]
        facts = {
            "release": corpus.facts["release"],
            "passages": {"manifest": MANIFEST, "manifest_sha256": corpus.sha256},
            "alignment": {"manifest": MANIFEST, "manifest_sha256": aligned.sha256},
            "options": {"level": level},
            "counts": {
                "queries": len(queries),
                "ids_escaped": sum(column(query_id) != query_id for query_id in queries),
                "queries_without_relevant": len(queries) - len({query_id for query_id, _ in relevant}),
                "passages": files[0].rows,
                "relevant": len(relevant),
            },
            "code": code_facts(),
        }
        manifest = BEIR_DATASET.listing(files, facts)
        commit(BEIR_DATASET, manifest, output)
    return manifest
