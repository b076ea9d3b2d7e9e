"""Files that people and servers give beside data, each value another one in turn: read, or named in a line."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from kbsource.dump.check import dump_findings
from kbsource.dump.dates import check_one_day
from kbsource.dump.siteinfo import merge_siteinfo_json, read_siteinfo_json
from kbsource.errors import SetupError
from kbsource.site import Site
from mapping.amber.records import load_collections
from mapping.facts import load_templates
from mapping.qampari.list_tables import read_key_columns
from mapping.qampari.questions import load_relations
from mapping.retrieval.reader import read_prompt
from pipelines.commands.benchmark import _Config
from pipelines.commands.map import read_alignments
from tests.support.strangers import Way, changed, ways

pytestmark = pytest.mark.slow  # every command over changed inputs

OTHERS: list[Any] = [
    ..., 7, -1, 2**80, 1.5, 1e300, True, None, "", "x", "\0", "a\nb", "x" * 5000, "\ud800", [], [None], [[1]], {},
    {"a": None}, {"a": [1]},
]  # fmt: skip
"""What stands in place of a value; ``...`` for nothing."""
MOST_CHARS = 1000


class Given(NamedTuple):
    """A file that is given, how it is written, and what reads it."""

    name: str
    values: Any
    read: Callable[[str], Any]


STATUS = {
    "version": "0.8",
    "jobs": {
        "articles": {
            "status": "done",
            "files": {
                "pages.xml": {"size": 5, "url": "/x", "md5": "0" * 32, "sha1": "0" * 40},
                "ltgwiki-20260901-pages.xml": {},
            },
        },
        "history": {"status": "waiting"},
    },
}
SITEINFO = {
    "query": {
        "general": {"wikiid": "xwiki", "sitename": "X", "base": "https://x.org/wiki/A", "generator": "MediaWiki"},
        "namespaces": {"0": {"id": 0, "*": "", "canonical": "x"}, "1": {"id": 1, "name": "T"}},
        "namespacealiases": [{"id": 1, "alias": "TT"}],
    }
}
COLLECTIONS = {
    "human": {
        "types": {"Q5": ["P19"]},
        "qa_templates": {"P19": {"all": ["Where is $entity?"], "Q5": ["Where was $entity born?"]}},
        "fc_templates": {"P19": ["$entity is from $object"]},
        "released": {
            "qa_templates": {"P19": {"all": ["Where was $entity?"]}},
            "fc_templates": {"P19": ["$entity was of $object"]},
        },
    }
}
RELATIONS = {
    "wanted_types": ["human", "film"],
    "type_words": {"film": "films"},
    "classes": {"film": "Q1"},
    "types": {"P57": ["film"]},
    "simple": {
        "P57": {
            "label": "director",
            "ask": "Which",
            "predicate": "was by {entity}",
            "of_many": "were by {entity}",
            "claim": "was {entity}",
            "enabled": True,
        },
        "P50": {"label": "author", "ask": "Who", "noun": "book", "plural": "books", "predicate": "has {entity}"},
    },
    "composition": {"P57": {"noun": "x", "ask": "Who", "link": "of", "claim": "{entity} {value}", "enabled": True}},
}
MAPPED = {
    "options": {"threshold": 0.4},
    "datasets": {
        "fever": {"wiki-pages": "wiki", "splits": {"dev": {"input": ["a.jsonl", "b.jsonl"], "strip-section": True}}},
        "other": {"dataset": "aidayago2", "splits": {"test": {"input": "a.tsv"}}},
    },
}
SYSTEMS = {
    "systems": {
        "bm25": {},
        "pages": {"system": "bm25", "top": 1, "level": "page"},
        "read": {"system": "bm25", "reader": {"model": "m", "form": "read"}},
    }
}


def _status(path: str) -> None:
    """As a check of the dump reads it, whose finding is raised, and as what wants files of one day does."""
    dump = Path(path).parent / "pages.xml"
    dump.write_text("<mediawiki/>")
    check_one_day([str(dump)])
    found = dump_findings([str(dump)]).findings
    assert all("\n" not in finding.message and len(finding.message) < MOST_CHARS for finding in found)
    assert "bad_checksum_list" not in {finding.code for finding in found}


def _siteinfo(path: str) -> None:
    site = merge_siteinfo_json(Site(lang="de"), read_siteinfo_json(path))
    assert site.namespace_by_name is not None
    assert Site.from_json(site.to_json()) == site


GIVEN = {
    "dumpstatus": Given("dumpstatus.json", STATUS, _status),
    "siteinfo": Given("siteinfo.json", SITEINFO, _siteinfo),
    "collections": Given("c.json", COLLECTIONS, lambda path: load_collections(path, (), "corrected")),
    "released collections": Given("c.yaml", COLLECTIONS, lambda path: load_collections(path, (), "released")),
    "key columns": Given("k.jsonl", {"title": "List of lakes", "table": 0, "column": 1}, read_key_columns),
    "relations": Given("r.toml", RELATIONS, load_relations),
    "questions": Given("q.toml", {"P36": "What is the capital of {entity}?"}, load_templates),
    "prompt": Given(
        "p.toml", {"prompt": "{input} {passages}", "passage": "{text}"}, lambda path: read_prompt(path, "read")
    ),
    "map": Given("m.yaml", MAPPED, lambda path: read_alignments(path, "kb", "out")),
    "benchmark": Given("b.yaml", SYSTEMS, lambda path: _Config(path, "passages")),
}
UNREADABLE: dict[str, list[bytes]] = {
    "json": [
        b"", b"{", b"7", b'{"a": NaN}', b"\xff", b"[" * 100_000, b'{"a": "\\ud800"}', b"\x1f\x8b\x08broken",
        b"9" * 5000, b"\xef\xbb\xbf{}", b"null", b'"x"', gzip.compress(b"{")[:-3] + b"\0\0\0",
    ],
    "yaml": [
        b"", b"a: !!python/object:os.x 1", b"? [1]\n: 2", b"a: !!timestamp x", b"a: !!bool x", b"!!int '':",
        b"a: *b", b"<<: 1", b"[[[[", b"\0", b"a: " + b"[" * 20_000, b"!!binary x: 1", b"%YAML 9.9\n---\na: 1",
        b'a: "\\U00110000"', b'"\\ud800": 1', b"\xff\xfe", b"a: 1\n---\nb: 2", b"a: *" + b"b" * 5000, b"&a [*a]",
        b"&a {a: *a}", b"\t- x",
    ],
    "toml": [
        b"a = " + b"[" * 5000, b"\xff", b"a = 9999-99-99", b"x", b"a = 0x", b"a = " + b"9" * 5000,
        b"a" + b".b" * 3000 + b" = 1", b'a = "\\ud800"', b"[a]\n[a]", b'a = "x\nb"', b"a = 99999-01-01T00:00:00Z",
    ],
}  # fmt: skip


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {_toml(member)}' for key, member in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if value is None:
        raise ValueError("TOML has no null")
    return json.dumps(value)


def written(name: str, values: Any) -> str:
    """Returns the values in the form of a file of that name; raises ValueError where that has no such values."""
    if name.endswith(".yaml"):
        return yaml.safe_dump(values)
    if not name.endswith(".toml"):
        return json.dumps(values)
    if not isinstance(values, dict):
        raise ValueError("TOML is a table")
    return "".join(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in values.items())


def renamed(values: Any, way: Way, name: str) -> Any:
    """Returns the values with another key in a place."""
    copied = copy.deepcopy(values)
    inside = copied
    for key in way[:-1]:
        inside = inside[key]
    inside[name] = inside.pop(way[-1])
    return copied


def variants(values: Any) -> Iterator[Any]:
    """The values with another one, or another key, at each place in turn."""
    for way in ways(values):
        yield from (changed(values, way, other) for other in OTHERS if way or other is not ...)
        if way and isinstance(way[-1], str):
            yield from (renamed(values, way, name) for name in ("", "x", "a\nb", "\0", "x" * 5000, "\ud800"))


def told(read: Callable[[str], Any], path: Path) -> str | None:
    """What is wrong with how a file is read or refused; None for nothing."""
    try:
        read(str(path))
    except SetupError as error:
        fault = str(error)
        if "\n" in fault or len(fault) > MOST_CHARS or str(path) not in fault:
            return f"says {fault[:300]!r}"
    except Exception as error:  # noqa: BLE001  # whatever it is
        return repr(error)
    return None


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(form, marks=[pytest.mark.slow] if form in ("map", "benchmark") else [])  # which bind command lines
        for form in GIVEN
    ],
)
def test_every_other_value_is_read_or_named(form: str, tmp_path: Path) -> None:
    given = GIVEN[form]
    path = tmp_path / given.name
    path.write_text(written(given.name, given.values))
    if form != "dumpstatus":  # whose dump has no page
        given.read(str(path))
    wrong = []
    for values in variants(given.values):
        try:
            path.write_text(written(given.name, values))
        except (ValueError, yaml.YAMLError):  # the form has no such value
            continue
        if (said := told(given.read, path)) is not None:
            wrong.append((path.read_text()[:200], said))
    assert wrong == []


@pytest.mark.parametrize("form", GIVEN)
def test_what_is_no_such_file_is_named(form: str, tmp_path: Path) -> None:
    given = GIVEN[form]
    path = tmp_path / given.name
    wrong = []
    for content in UNREADABLE[path.suffix[1:].replace("jsonl", "json")]:
        path.write_bytes(content)
        if (said := told(given.read, path)) is not None:
            wrong.append((content[:100], said))
    assert wrong == []


def test_a_file_that_is_too_large_to_be_one_is_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "siteinfo.json").write_bytes(gzip.compress(b" " * (64 << 20), 1))
    with pytest.raises(SetupError, match=r"siteinfo\.json: larger than 32 MB"):
        read_siteinfo_json(str(tmp_path / "siteinfo.json"))
