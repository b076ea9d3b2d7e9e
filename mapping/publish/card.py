"""Describes a release for people: meanings of tables and columns, and the dataset card with metadata for a hub."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import yaml

from kbsource.release.manifest import Count
from kbsource.runtime.database import quoted
from mapping.column_meanings import Known, column_rows, table_head
from mapping.publish.catalogues import record_name
from mapping.publish.configs import Config, hub_values
from mapping.publish.subject import Part, Right, Subject, hub_licences, limits_of


def markdown_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


_SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B")


def cell(text: str) -> str:
    """Returns untrusted text, escaped for a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")


def prose(text: str) -> str:
    """Returns untrusted text, escaped for Markdown outside of code, where brackets, too, could make links."""
    return cell(text).replace("[", "\\[")


def _place(part: Part) -> str:
    return f"`{cell(part.folder)}`" if part.folder else "all"


def size_category(n_rows: int) -> str:
    """Returns the hub's name of a size.

    >>> size_category(66), size_category(10_000), size_category(7_000_000), size_category(2_000_000_000)
    ('n<1K', '10K<n<100K', '1M<n<10M', 'n>1B')
    """
    place = len(str(n_rows)) - len("999")
    if place <= 0:
        return f"n<{_SIZES[0]}"
    return f"n>{_SIZES[-1]}" if place >= len(_SIZES) else f"{_SIZES[place - 1]}<n<{_SIZES[place]}"


def card_text(subject: Subject, configs: Sequence[Config], rights: tuple[Right, ...]) -> str:
    """Returns the content of ``README.md``."""
    metadata = yaml.safe_dump(_metadata(subject, configs, rights), sort_keys=False, allow_unicode=True, width=1000)
    known: Known = {}
    limits = limits_of(subject.card, subject.whole.values)
    for part in subject.parts:
        limits += [cell(remark) for remark in part.kind.remarks(part.manifest)] if part.kind.remarks is not None else []
    if names := [f"`{config.name}`" for config in configs if config.total == 0]:
        limits.append(
            f"Without rows: {', '.join(names)}. `datasets` loads such tables with `streaming=True` only; every other "
            "tool loads them as they are."
        )
    sections = {
        "What it is": _what(subject, rights),
        "How to load it": _loading(subject, configs),
        "Tables and files": "\n\n".join(_tables(configs, known)),
        "Counts": "\n\n".join(_counts(subject)),
        "How it was made": "\n\n".join(_provenance(subject)),
        "Limitations": "\n".join(f"- {limit}" for limit in limits) or "None known.",
        "Licence": "\n".join(f"- {right.what}: {right.shown}. {right.note}".rstrip() for right in rights)
        + "\n\nSee [LICENSE](LICENSE) and [ATTRIBUTION.md](ATTRIBUTION.md).",
        "Citation": "[CITATION.cff](CITATION.cff) has it in a form for programs.",
    }
    body = "\n\n".join(f"## {head}\n\n{text}" for head, text in sections.items())
    return f"---\n{metadata}---\n\n# {subject.title}\n\n{body}\n"


def _metadata(subject: Subject, configs: Sequence[Config], rights: tuple[Right, ...]) -> dict[str, Any]:
    licences = hub_licences(rights)
    values: dict[str, Any] = {"pretty_name": subject.title}
    if subject.languages:
        values["language"] = subject.languages
    values["license"] = licences if len(licences) > 1 else licences[0]
    if licences == ["other"]:
        values |= {"license_name": "several", "license_link": "LICENSE"}
    if configs:
        values["size_categories"] = [size_category(configs[0].total)]
    if subject.card.tasks:
        values["task_categories"] = list(subject.card.tasks)
    values["tags"] = [*subject.card.tags, "kbsource", "croissant"]
    if configs:
        values["configs"] = hub_values(configs)
    return values


def _what(subject: Subject, rights: tuple[Right, ...]) -> str:
    facts = [("release", f"`{subject.whole.manifest.sha256}`"), ("format", f"`{subject.whole.manifest.format}`")]
    if subject.wiki:
        facts.append(("wiki", f"{subject.wiki}{f', <{subject.host}>' if subject.host else ''}"))
    if subject.snapshot_day:
        facts.append(("snapshot", subject.snapshot_day))
    if subject.languages:
        facts.append(("languages", ", ".join(subject.languages)))
    facts.append(("licences", ", ".join(dict.fromkeys(right.shown for right in rights))))
    return f"{subject.card.summary}\n\n{markdown_table(('', ''), facts)}"


def _literal(text: str) -> str:
    """Returns a text as a Python literal. Names are untrusted text, and people copy and run the code."""
    return json.dumps(text, ensure_ascii=False)


def _loading(subject: Subject, configs: Sequence[Config]) -> str:
    where = subject.repo_id or "FOLDER"
    lines: list[str] = []
    if configs:
        main = configs[0]
        split = next((split for split in main.splits if main.n_rows(split)), next(iter(main.splits)))
        lines += [
            "from datasets import load_dataset",
            f"rows = load_dataset({_literal(where)}, {_literal(main.name)}, split={_literal(split)})",
        ]
        file = main.splits[split][0].file
        place = file if main.table is None else file.rpartition("/")[0]
        pattern = file if main.table is None else f"{place}/*.parquet"
        lines += [
            "",
            "import duckdb, mlcroissant, pandas, polars  # run inside the folder; each works by itself",
            f"duckdb.sql({_literal(f'select * from {quoted(pattern)}')})",
            f"polars.scan_parquet({_literal(pattern)})",
            f"pandas.read_parquet({_literal(place)})",
            f"spark.read.parquet({_literal(place)})",
            f'mlcroissant.Dataset("croissant.json").records({_literal(record_name(main, split))})',
        ]
    if "pages" in subject.whole.manifest.tables:
        lines += [
            "",
            "from kbsource.lookup import KnowledgeSource",
            'page = KnowledgeSource.open("FOLDER").by_title("Alan Turing")',
        ]
    parts = ["```python\n" + "\n".join(lines) + "\n```"] if lines else []
    if any(config.table is None for config in configs):
        parts.append(
            "`hub/` contains a copy of the release's JSON Lines files as Parquet, because `datasets` loads all files "
            "of a folder in one format. Columns without a common type contain JSON there. kbsource does not read it."
        )
    parts.append(
        "`kbsource verify FOLDER` recomputes every hash and every invariant of the release. It lists the other "
        "files of this folder; they are not a fault."
    )
    return "\n\n".join(parts)


def _tables(configs: Sequence[Config], known: Known) -> Iterator[str]:
    rows = [
        (f"`{config.name}`", split, f"{config.n_rows(split):,}", str(len(entries)))
        for config in configs
        for split, entries in config.splits.items()
    ]
    yield markdown_table(("configuration", "split", "rows", "files"), rows)
    shown: set[tuple[str, ...]] = set()
    for config in configs:
        if config.table is None or config.schema is None or (config.table, *config.schema.names) in shown:
            continue
        shown.add((config.table, *config.schema.names))
        columns = list(column_rows(config.schema, known, config.table))
        head = table_head(config.table)
        yield f"### {config.table}\n\n{head}\n\n{markdown_table(('column', 'type', 'meaning'), columns)}"


def _counts(subject: Subject) -> Iterator[str]:
    """Lists what was read and its outcomes, by release."""
    invariants = [(_place(part), prose(invariant)) for part in subject.parts if (invariant := counts_equation(part))]
    if invariants:
        yield "The counts of all inputs and outputs agree:\n\n" + markdown_table(("part", "invariant"), invariants)
    counts = subject.whole.values.get("counts")
    plain = [] if invariants or not isinstance(counts, Mapping) else list(_flat(counts))
    if plain:
        yield markdown_table(("count", "n"), plain)
    sizes = {}
    for part in subject.parts:
        for entry in part.entries():
            sizes[entry.file] = entry.bytes
    yield f"{len(sizes):,} files, {sum(sizes.values()):,} bytes; `manifest.json` has the sha256 of each."


def _flat(counts: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for name, value in counts.items():
        if isinstance(value, Mapping) and not path:
            yield from _flat(value, f"{name}, ")
        elif isinstance(value, int):
            yield prose(f"{path}{name}"), f"{value:,}"


def counts_equation(part: Part) -> str:
    """Returns the number of records read as the sum of their outcomes: ``103 pages read = 66 articles + …``; an empty
    string if the manifest has no such counts.
    """
    counts = part.values.get("totals") or part.values.get("records")
    if not isinstance(counts, Mapping):
        return ""
    numbers = {}
    for name, n in counts.items():
        with suppress(msgspec.ValidationError):  # a manifest may contain more counts than the invariant uses
            count = msgspec.convert(n, Count | dict[str, Count])
            numbers[name] = sum(count.values()) if isinstance(count, dict) else count
    read = next((name for name in numbers if name == "read" or name.endswith("_read")), None)
    if read is None:
        return ""
    terms = " + ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in numbers.items() if name != read)
    return f"{numbers[read]:,} {read.replace('_', ' ')} = {terms}"


def _provenance(subject: Subject) -> Iterator[str]:
    code = subject.whole.values.get("code") or {}
    version = f" {prose(code['kbsource'])}" if "kbsource" in code else ""
    yield f"By `{subject.whole.kind.made_by}` of kbsource{version}. Same inputs, options and code give the same bytes."
    if options := subject.whole.values.get("options"):
        shown = json.dumps(options, ensure_ascii=False, indent=2, sort_keys=True).replace("`", "'")
        yield f"Options that affect the output:\n\n```json\n{shown}\n```"
    if len(subject.parts) > 1:
        yield "The options of each part are in its `manifest.json`."
    inputs = []
    for part in subject.parts:
        where = _place(part)
        inputs += [
            (where, f"`{cell(file.name)}`", f"{file.bytes:,}", f"`{cell(file.sha256)}`") for file in part.inputs()
        ]
        if part is subject.whole or part.sources() != subject.whole.sources():
            sources = part.sources().items()
            inputs += [(where, f"manifest of: {prose(name)}", "", f"`{cell(sha256)}`") for name, sha256 in sources]
    if inputs:
        yield "Inputs; a release is represented by its manifest:\n\n" + markdown_table(
            ("part", "input", "bytes", "sha256"), inputs
        )
