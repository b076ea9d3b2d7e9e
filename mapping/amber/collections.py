"""Collections: types of entities, the properties that tell them apart, and the words for these; read from a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from kbsource.errors import SetupError
from kbsource.files import Storage
from mapping.amber.records import Collection, TemplateForm

ANY = "all"
"""Of templates: for values of any type."""
_KEYS = {"types", "qa_templates", "fc_templates"}
_RELEASED = "released"
_ID = {"item": re.compile(r"Q[1-9]\d*"), "property": re.compile(r"P[1-9]\d*"), "name": re.compile(r"[\w-]+")}
_REMEDY = "Compare it with mapping/amber/collections.json."


def load_collections(
    path: str | None, storage: Storage | None, names: Sequence[str], templates: TemplateForm
) -> tuple[Collection, ...]:
    """Gives collections of a file in JSON or YAML.

    Args:
        path: of the file; None for that of the package.
        storage: of the path.
        names: which collections, in that order; none for all.
        templates: ``released`` takes the wording of the published files where the file has it too.

    Raises:
        SetupError: the file, or a name, is none; the message names file, entry and what was expected.
    """
    if path is None or storage is None:
        path = "mapping/amber/collections.json"
        content = (resources.files("mapping.amber") / "collections.json").read_bytes()
    else:
        with storage.open_read(path) as file:
            content = file.read()
    try:
        data = json.loads(content) if path.endswith(".json") else _from_yaml(content)
    except ValueError as error:
        raise SetupError(f"{path} is neither JSON nor YAML: {error}. {_REMEDY}") from error
    reader = _Reader(path)
    found = {name: reader.collection(name, one, templates) for name, one in reader.entries("", data, "name")}
    if unknown := [name for name in names if name not in found]:
        raise SetupError(f"--collection {unknown[0]}: {path} has {', '.join(found)}; choose of these.")
    return tuple(found[name] for name in names or found)


def _from_yaml(content: bytes) -> Any:
    import yaml  # not there where releases are only read

    try:
        return yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


class _Reader:
    def __init__(self, path: str) -> None:
        self._path = path

    def collection(self, name: str, data: Any, templates: TemplateForm) -> Collection:
        own = dict(self.entries(name, data, "name"))
        if own.keys() - {_RELEASED} != _KEYS:
            self._fail(name, f"{', '.join(sorted(_KEYS))} and perhaps {_RELEASED}", ", ".join(own))
        types = {
            one: self._texts(f"{name}.types.{one}", many, "property")
            for one, many in self.entries(f"{name}.types", own["types"], "item")
        }
        qa, fc = dict(own["qa_templates"]), dict(own["fc_templates"])
        if templates == _RELEASED:
            published = own.get(_RELEASED, {})
            qa |= {one: {**qa.get(one, {}), **typed} for one, typed in published.get("qa_templates", {}).items()}
            fc |= published.get("fc_templates", {})
        collection = Collection(
            name,
            types,
            {},
            {one: self._typed(f"{name}.qa_templates.{one}", many) for one, many in qa.items()},
            {one: self._templates(f"{name}.fc_templates.{one}", many, 2) for one, many in fc.items()},
        )
        for kind, known in (("qa_templates", collection.qa_templates), ("fc_templates", collection.fc_templates)):
            if missing := sorted(collection.property_ids - known.keys()):
                self._fail(f"{name}.{kind}", f"templates of {missing[0]}, which is a property of types", "none")
        return collection

    def entries(self, place: str, data: Any, kind: str) -> Iterator[tuple[str, Any]]:
        if not isinstance(data, Mapping) or not data:
            self._fail(place, f"entries by {kind}", data)
        for key, one in data.items():
            if not isinstance(key, str) or not _ID[kind].fullmatch(key):
                self._fail(place, f"the id of a Wikidata {kind}" if kind != "name" else "a plain word", key)
            yield key, one

    def _typed(self, place: str, data: Any) -> dict[str, tuple[str, ...]]:
        if not isinstance(data, Mapping) or ANY not in data:
            self._fail(place, f"templates by type, {ANY} among them", data)
        return {one: self._templates(f"{place}.{one}", many, 1) for one, many in data.items()}

    def _templates(self, place: str, data: Any, n_things: int) -> tuple[str, ...]:
        texts = self._texts(place, data, None)
        for text in texts:
            for thing in ("$entity", "$object")[:n_things]:
                if thing not in text:
                    self._fail(place, f"{thing} in it", text)
        return texts

    def _texts(self, place: str, data: Any, kind: str | None) -> tuple[str, ...]:
        if not isinstance(data, list) or not data:
            self._fail(place, "a list", data)
        for one in data:
            if not isinstance(one, str) or (kind is not None and not _ID[kind].fullmatch(one)):
                self._fail(place, "a text" if kind is None else f"the id of a Wikidata {kind}", one)
        return tuple(data)

    def _fail(self, place: str, expected: str, found: Any) -> None:
        shown = str(found)[:80]
        raise SetupError(f"{self._path}: {place or 'top level'}: expected {expected}; found {shown!r}. {_REMEDY}")
