"""Where a published release comes from, as PROV-JSON: what was made from what, by which command of which code.

Everything is named by a hash, so that what one release says of its inputs is found again in what these say of
themselves. Source: https://www.w3.org/submissions/2013/SUBM-prov-json-20130424/
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from mapping.publish.subject import Part, Subject

PREFIXES = {
    "prov": "http://www.w3.org/ns/prov#",
    "sha256": "hash://sha256/",
    "release": "urn:kbsource:release:",
    "run": "urn:kbsource:run:",
    "code": "urn:kbsource:code:",
    "kbsource": "urn:kbsource:fact:",
}
"""Of the names: ``sha256`` of files by their content, ``release`` by the sha256 that a manifest has of itself."""


def prov_of(subject: Subject) -> dict[str, Any]:
    """Gives ``prov.json`` as JSON values."""
    prov: dict[str, dict[str, Any]] = defaultdict(dict)
    for part in subject.parts:
        _add_part(prov, part)
    for part in subject.parts[1:]:
        _relate(prov, "hadMember", "prov:collection", _name(subject.whole), "prov:entity", _name(part))
    return {"prefix": PREFIXES, **prov}


def _name(part: Part) -> str:
    return f"release:{part.manifest.sha256}"


def _add_part(prov: dict[str, dict[str, Any]], part: Part) -> None:
    own, run = _name(part), f"run:{part.manifest.sha256}"
    prov["entity"][own] = {"prov:type": "prov:Collection", "prov:label": part.kind.name, "kbsource:folder": part.folder}
    options = json.dumps(part.values.get("options") or {}, ensure_ascii=False, sort_keys=True)
    prov["activity"][run] = {"prov:label": part.kind.made_by, "kbsource:options": options}
    _relate(prov, "wasGeneratedBy", "prov:entity", own, "prov:activity", run)
    code = part.values.get("code") or {}
    if "sha256" in code:
        agent = f"code:{code['sha256']}"
        facts = {f"kbsource:{name}": value for name, value in code.items() if name != "sha256"}
        prov["agent"][agent] = {"prov:type": "prov:SoftwareAgent", "prov:label": "kbsource", **facts}
        _relate(prov, "wasAssociatedWith", "prov:activity", run, "prov:agent", agent)
    used = {f"sha256:{file.sha256}": {"prov:label": file.name, "kbsource:bytes": file.bytes} for file in part.inputs()}
    used |= {f"release:{sha256}": {"prov:label": name} for name, sha256 in part.sources().items()}
    for name, facts in used.items():
        prov["entity"].setdefault(name, facts)
        _relate(prov, "used", "prov:activity", run, "prov:entity", name)
        _relate(prov, "wasDerivedFrom", "prov:generatedEntity", own, "prov:usedEntity", name)
    for entry in part.entries():
        name = f"sha256:{entry.sha256}"
        prov["entity"].setdefault(name, {"prov:label": entry.file, "kbsource:bytes": entry.bytes})
        _relate(prov, "hadMember", "prov:collection", own, "prov:entity", name)


def _relate(prov: dict[str, dict[str, Any]], relation: str, role: str, left: str, other: str, right: str) -> None:
    prov[relation][f"_:{relation}{len(prov[relation])}"] = {role: left, other: right}
