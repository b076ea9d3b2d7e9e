"""What a report says of AmbER sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kbsource.files import Storage
from kbsource.release.manifest import ListingManifest
from kbsource.release.reader import row_groups
from mapping.amber.kind import AMBER_SETS
from mapping.amber.schema import OUTCOMES
from mapping.amber.statistics import MEASURES
from mapping.charts import Chart, Series
from mapping.reports.any_report import about_section, flat_values, release_name, report_of, table_files
from mapping.reports.crossing import Crossing
from mapping.reports.document import Block, Charts, Document, Section, Table, share

_SIDES = ("made", "published")


def amber_document(path: str, manifest: ListingManifest, storage: Storage) -> Document:
    """Gives the report on a release of AmbER sets. Memory: one row group of numbers."""
    report = report_of(path, storage)
    sections = [about_section(AMBER_SETS, manifest)]
    crossing = Crossing()
    for file in table_files(path, manifest, "tuples"):
        for rows in row_groups(file, storage, ("bleu", "entailment")):
            crossing.add(rows["bleu"], rows["entailment"])
    crossed = crossing.table("Tuples of the sets by both")
    sections.append(Section("BLEU and entailment crossed", (crossed,)))
    for name, of in report["collections"].items():
        sections.append(Section(f"Collection {name}", tuple(_collection(of))))
    entities = tuple(flat_values(report["entities"]))
    sections.append(Section("Entities and page views", (Table("Counts", ("name", "value"), entities),)))
    return Document(release_name(AMBER_SETS, manifest.to_json()), tuple(sections))


def _collection(report: Mapping[str, Any]) -> Iterator[Block]:
    names = report["names"]
    total = sum(names.values())
    rows = tuple(
        (name, n, share(n, total), OUTCOMES[name]) for name, n in ((name, names.get(name, 0)) for name in OUTCOMES)
    )
    yield Table("What became of the names", ("outcome", "names", "share", "meaning"), rows)
    statistics, shares = report["statistics"], report["statistics"]["shares"]
    measures = tuple((name.replace("_", " "), *(statistics[name][of] for of in _SIDES)) for name in MEASURES)
    yield Table("Statistics beside the paper", ("measure", "here", "AmbER paper"), measures)
    if shares:
        order = sorted(shares, key=lambda name: (-shares[name]["made"], name))
        yield Charts(
            (
                Chart(
                    title="Tuples by type and property",
                    about="Per cent of the tuples, beside that of the paper where it has one.",
                    label_name="type and property",
                    labels=tuple(order),
                    series=(
                        Series("here", tuple(shares[name]["made"] for name in order)),
                        Series("AmbER paper", tuple(shares[name]["published"] for name in order)),
                    ),
                    style="bars",
                ),
            )
        )
    signals = report["signals"]
    verdicts = sorted({verdict for cells in _bands(signals) for verdict in cells[3]})
    crossed = tuple((*cells[:3], *(cells[3].get(verdict, 0) for verdict in verdicts)) for cells in _bands(signals))
    if crossed:
        columns = ("property", "value in the passage", "BLEU from", *(name.replace("_", " ") for name in verdicts))
        yield Table("Tuples by property: value found, BLEU and verdict", columns, crossed)


def _bands(signals: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Mapping[str, int]]]:
    for property_id, of_property in signals.items():
        for is_found, bands in of_property.items():
            for band, verdicts in bands.items():
                yield property_id, is_found.replace("_", " "), band.removeprefix("bleu_").replace("_", " "), verdicts
