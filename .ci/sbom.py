"""Writes what an installation of locked.txt consists of, as CycloneDX JSON: ``python .ci/sbom.py > sbom.json``.

The same locked.txt gives the same bytes: there is no time and no random number in it.

Source: https://cyclonedx.org/docs/1.6/json/, and purl-spec for ``pkg:pypi``.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[^\s;\\]+)(?:\s*;\s*(?P<marker>[^\\]+?))?\s*\\?")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(locked: str) -> Iterator[dict[str, Any]]:
    """The packages of a locked file, in its order, each with the sums of the files that it may be installed from."""
    for part in re.split(r"^(?=[A-Za-z0-9])", locked, flags=re.MULTILINE)[1:]:
        found = _REQUIREMENT.match(part)
        if found is None:
            raise SystemExit(f"locked.txt: {part.splitlines()[0]!r} is no package with a version; run make lock.")
        name = re.sub(r"[-_.]+", "-", found["name"]).lower()
        sums = _HASH.findall(part)
        if not sums:
            raise SystemExit(f"locked.txt: {name} has no hash; run make lock.")
        purl = f"pkg:pypi/{name}@{found['version']}"
        component = {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": found["version"],
            "purl": purl,
            "hashes": [{"alg": "SHA-256", "content": digest} for digest in sums],
        }
        if found["marker"]:
            component["properties"] = [{"name": "python:marker", "value": found["marker"]}]
        yield component


def bill(project: dict[str, Any], locked: str) -> dict[str, Any]:
    """The bill of materials of a project, its ``pyproject.toml`` table, with what it is installed with."""
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    found = list(components(locked))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "purl": own,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": found,
        "dependencies": [{"ref": own, "dependsOn": [component["bom-ref"] for component in found]}],
    }


if __name__ == "__main__":
    table = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    json.dump(bill(table, (ROOT / "locked.txt").read_text("utf-8")), sys.stdout, indent=2)
    sys.stdout.write("\n")
