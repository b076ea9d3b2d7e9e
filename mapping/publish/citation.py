"""How a published release is cited, for programs.

Source: https://github.com/citation-file-format/citation-file-format/blob/1.2.0/schema-guide.md
"""

from __future__ import annotations

from typing import Any

import yaml

from mapping.publish.rights import Right, holders
from mapping.publish.subject import Subject, toml_facts


def citation_text(subject: Subject, rights: tuple[Right, ...]) -> str:
    """Gives the file ``CITATION.cff``."""
    values: dict[str, Any] = {
        "cff-version": "1.2.0",
        "message": "If you use this data set, please cite it and what it was made from.",
        "type": "dataset",
        "title": subject.title,
        "abstract": subject.about.summary,
        "authors": [{"name": holder} for holder in _authors(subject, rights)],
        "version": subject.version,
        "identifiers": [
            {
                "type": "other",
                "value": f"sha256:{subject.whole.manifest.sha256}",
                "description": "the release's manifest",
            }
        ],
        "keywords": [*subject.about.tags, "kbsource"],
    }
    # Several licences would mean a choice between them.
    if len(licences := {right.licence for right in rights}) == 1 and (licence := licences.pop()) is not None:
        values["license"] = licence
    if subject.url is not None:
        values["url"] = subject.url
    if subject.day is not None:
        values["date-released"] = subject.day
    if cited := _cited(subject):
        values["references"] = [
            {"type": "data", "title": source["name"], "authors": [{"name": source["holder"]}], "url": source["source"]}
            for source in cited
        ]
    text: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=1000)
    return text


def _cited(subject: Subject) -> list[dict[str, str]]:
    """Gives the benchmarks that it is made from."""
    known = toml_facts("licences.toml")["dataset"]
    return [known[name] for name in subject.datasets if name in known]


def _authors(subject: Subject, rights: tuple[Right, ...]) -> list[str]:
    """Gives whose work it is, but for benchmarks, which are cited by themselves."""
    cited = {source["holder"] for source in _cited(subject)}
    return [holder for holder in holders(rights) if holder not in cited]
