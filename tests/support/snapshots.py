"""Snapshots of rendered HTML: a small invented wiki, as records, lines and archives."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

Record = dict[str, Any]

_HEAD = (
    '<!DOCTYPE html>\n<html prefix="dc: http://purl.org/dc/terms/" about="https://en.wikipedia.org/wiki/'
    'Special:Redirect/revision/{revision}"><head><meta charset="utf-8"/>'
    '<meta property="mw:pageId" content="{page_id}"/>'
    '<title>{title}</title><base href="//en.wikipedia.org/wiki/"/></head>'
    '<body lang="en" dir="ltr" class="mw-content-ltr mw-parser-output" data-mw-html-version="2.8.0">'
    "{body}</body></html>"
)


def document(body: str, *, page_id: int = 1, title: str = "Ada", revision: int = 101) -> str:
    """Returns a document as Parsoid writes it."""
    return _HEAD.format(body=body, page_id=page_id, title=title, revision=revision)


def record(page_id: int, title: str, body: str, *, revision: int | None = None, **values: Any) -> Record:
    """Returns the record of a page; ``values`` replace or add fields."""
    revision = page_id + 100 if revision is None else revision
    given = {
        "name": title,
        "identifier": page_id,
        "date_modified": "2026-01-02T03:04:05Z",
        "version": {"identifier": revision},
        "previous_version": {"identifier": revision - 50},
        "url": f"https://en.wikipedia.org/wiki/{title.replace(' ', '_')}",
        "namespace": {"identifier": 0},
        "in_language": {"identifier": "en"},
        "is_part_of": {"identifier": "enwiki", "url": "https://en.wikipedia.org"},
        "article_body": {"html": document(body, page_id=page_id, title=title, revision=revision), "wikitext": ""},
    }
    return {**given, **values}


def paired(html: str, wikitext: str, *, page_id: int = 1, title: str = "Ada", **values: Any) -> Record:
    """Returns the record of a page with HTML and wikitext."""
    body = {"html": document(html, page_id=page_id, title=title, revision=page_id + 100), "wikitext": wikitext}
    return record(page_id, title, html, **{"article_body": body, **values})


def records_of(pages: Iterable[Mapping[str, Any]]) -> Iterator[Record]:
    """Iterates over records whose pages are those of a release: paragraphs, links and items."""
    rows = [*pages]
    titles = {row["page_id"]: row["title"] for row in rows}
    for row in rows:
        links: dict[int, list[Mapping[str, Any]]] = {}
        for anchor in row["anchors"]:
            links.setdefault(anchor["element"], []).append(anchor)
        body = []
        for number, element in enumerate(row["elements"][1:], 1):
            assert element["kind"] == "paragraph", element
            text, pieces, at = element["text"], [], 0
            for anchor in links.get(number, ()):
                target = titles.get(anchor["target_page_id"], anchor["target_title"])
                shown = escape(text[anchor["start"] : anchor["end"]])
                pieces += [
                    escape(text[at : anchor["start"]]),
                    f'<a rel="mw:WikiLink" href="./{quote(target)}">{shown}</a>',
                ]
                at = anchor["end"]
            body.append(f"<p>{''.join(pieces)}{escape(text[at:])}</p>")
        yield record(row["page_id"], row["title"], "".join(body), main_entity={"identifier": row["qid"] or ""})


LANTERN = record(
    57,
    "Lantern (ferry)",
    '<section data-mw-section-id="0"><table class="infobox" about="#mwt1" typeof="mw:Transclusion" data-mw=\''
    '{"parts":[{"template":{"target":{"wt":"Infobox ship","href":"./Template:Infobox_ship"},"params":{"length":'
    '{"wt":"31 m"}},"i":0}}]}\'><tbody><tr><th colspan="2">Lantern</th></tr><tr><th>Length</th><td>31&nbsp;m</td></tr>'
    '<tr><th>Route</th><td><a rel="mw:WikiLink" href="./Port_Sellick" title="Port Sellick">Port Sellick</a> to '
    "Fennick</td></tr></tbody></table>"
    '<p>The <b>Lantern</b> was a ferry between <a rel="mw:WikiLink" href="./Sellick" title="Sellick" '
    'class="mw-redirect">Port Sellick</a> and Fennick<span typeof="mw:Entity">&nbsp;</span>Island from 1902.'
    '<sup about="#mwt2" class="mw-ref reference" typeof="mw:Extension/ref" data-mw=\'{"name":"ref","attrs":{},"body":'
    '{"id":"mw-reference-text-cite_note-1"}}\'><a href="./Lantern_(ferry)#cite_note-1">[1]</a></sup> It carried '
    "10<sup>3</sup> people.</p></section>"
    '<section data-mw-section-id="1"><h2 id="Ships">Ships</h2><ul><li>One</li><li>Two<ul><li>Inner</li></ul></li></ul>'
    '<table class="wikitable"><tbody><tr><th>Year</th><th>Ships</th></tr><tr><td rowspan="2">1902</td>'
    '<td>2</td></tr></tbody></table></section><link rel="mw:PageProp/Category" href="./Category:Ferries#Lantern"/>',
    redirects=[{"name": "The Lantern"}, {"name": "Lantern ferry"}],
)
PORT = record(
    12,
    "Port Sellick",
    '<section data-mw-section-id="0"><p>Port Sellick is the capital, with <a rel="mw:WikiLink" href='
    '"./The_Lantern">a ferry</a>.</p></section>',
    redirects=[{"name": "Sellick"}],
)
RECORDS = (LANTERN, PORT)


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    """Writes a record per line; compressed if the name ends in ``.gz``."""
    data = b"".join(json.dumps(own).encode() + b"\n" for own in records)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def write_tar(path: Path, members: Iterable[Iterable[Mapping[str, Any]]], *, form: int = tarfile.PAX_FORMAT) -> Path:
    """Writes an archive with a file of lines per member; the last line of a file has no newline."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=form) as archive:
        for number, own in enumerate(members):
            data = b"\n".join(json.dumps(value).encode() for value in own)
            # such a long name takes a header of its own
            facts = tarfile.TarInfo(f"enwiki_namespace_0_{number}{'x' * 120}.ndjson")
            facts.size = len(data)
            archive.addfile(facts, io.BytesIO(data))
    data = content.getvalue()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path
