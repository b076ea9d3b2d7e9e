"""The relations that questions are made of: their words and the classes that answers are told apart by."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from kbsource.errors import SetupError
from kbsource.files import LocalStorage

_PROPERTY = re.compile(r"P[1-9]\d*")
_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_TABLES = {"wanted_types", "simple", "types", "composition"}
_OPTIONAL = {"type_words", "classes"}
_ITEM = re.compile(r"Q[1-9]\d*")
_PERSONS = "persons"


@dataclass(frozen=True, slots=True)
class SimpleRelation:
    """A relation that is asked for the subjects of: "which subjects have this property with that value?"

    Attributes:
        property_id: of Wikidata.
        label: what the relation is called; not unique.
        ask: the question's first words: Who, Which, What, …
        noun: what the answers are, such as ``books``; None for persons and for types.
        plural: what the answers are in a question about something of theirs; None for types.
        predicate: the rest of the question, with ``{entity}``.
        claim: predicate of the hypothesis, whose subject is the answer, with ``{entity}``.
        types: labels of the classes that answers are told apart by, in the order in which they are tried; empty where
            they are not.
        is_enabled: whether questions are made of it.
        of_many: the predicate for several answers, with ``{entity}``; None where it changes by is, was or has at its
            beginning alone.
    """

    property_id: str
    label: str
    ask: str
    noun: str | None
    plural: str | None
    predicate: str
    claim: str
    types: tuple[str, ...] = ()
    is_enabled: bool = True
    of_many: str | None = None

    @property
    def is_typed(self) -> bool:
        """Whether each type of answers makes a question of its own."""
        return bool(self.types)

    def hypothesis(self, answer: str, entity: str) -> str:
        """Gives the sentence that says that an answer is right."""
        return f"{answer} {self.claim.replace('{entity}', entity)}."


@dataclass(frozen=True, slots=True)
class CompositionRelation:
    """A relation that is asked for the values of, for subjects that a simple question gives.

    Attributes:
        property_id: of Wikidata.
        noun: what the values are, such as ``dates of birth``.
        ask: Who or What.
        link: what joins the noun to the subjects, such as ``of``.
        sentence: the hypothesis, with ``{entity}`` for the subject and ``{value}``.
        is_enabled: whether questions are made of it.
    """

    property_id: str
    noun: str
    ask: str
    link: str
    sentence: str
    is_enabled: bool = True

    def hypothesis(self, value: str, entity: str) -> str:
        """Gives the sentence that says that an entity has this value."""
        names = {"value": value, "entity": entity}
        return _PLACEHOLDER.sub(lambda found: names[found[1]], self.sentence)


@dataclass(frozen=True, slots=True)
class Relations:
    """All relations, by property and in the order of the file.

    Attributes:
        simple: relations whose subjects are asked for.
        composition: relations whose values are asked for.
        wanted_types: labels of the classes that answers may be told apart by.
        type_words: what a question calls a class, where that is not its label.
        classes: the Wikidata item of a class, where it is not left to be found by the label.
    """

    simple: Mapping[str, SimpleRelation]
    composition: Mapping[str, CompositionRelation]
    wanted_types: tuple[str, ...]
    type_words: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)

    def property_ids(self) -> set[str]:
        """Gives the properties whose statements are needed, of the relations that are enabled."""
        every: list[SimpleRelation | CompositionRelation] = [*self.simple.values(), *self.composition.values()]
        return {relation.property_id for relation in every if relation.is_enabled}

    def word_for(self, label: str) -> str:
        """Gives what a question calls the answers of a type."""
        return self.type_words.get(label, label)


def load_relations(path: str | None = None) -> Relations:
    """Gives the relations of a TOML file; None for those that come with the package.

    Raises:
        SetupError: the file cannot be read, or an entry is not what the head of the package's file says; the message
            names file, entry, and what was expected.
    """
    file = Path(path) if path is not None else resources.files("mapping.qampari") / "relations.toml"
    try:
        with file.open("rb") if path is None else LocalStorage().open_read(path) as opened:
            data = tomllib.loads(opened.read().decode("utf-8-sig"))
    except FileNotFoundError as error:
        raise SetupError(f"{file}: no such file.") from error
    except OSError as error:
        raise SetupError(f"{file} cannot be read: {error.strerror}. Give a file of relations.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SetupError(f"{file} is no TOML: {error}. Compare it with mapping/qampari/relations.toml.") from error
    return _Reader(str(file)).relations(data)


class _Reader:
    """Checks every value, so that a slip in a file of relations does not end as an odd question."""

    def __init__(self, file: str) -> None:
        self._file = file

    def relations(self, data: dict[str, Any]) -> Relations:
        if data.keys() - _OPTIONAL != _TABLES:
            expected = f"the tables {', '.join(sorted(_TABLES))}, and perhaps {', '.join(sorted(_OPTIONAL))}"
            self._fail("", expected, ", ".join(data) or "none")
        wanted = self._strings("wanted_types", data["wanted_types"])
        words = self._table("type_words", data.get("type_words", {}))
        for label, word in words.items():
            self._known_type(f"type_words.{label}", label, wanted)
            self._string(f"type_words.{label}", word)
        classes = self._table("classes", data.get("classes", {}))
        for label, item in classes.items():
            self._known_type(f"classes.{label}", label, wanted)
            if not isinstance(item, str) or not _ITEM.fullmatch(item):
                self._fail(f"classes.{label}", "a Wikidata item like Q11424", item)
        types = {name: self._strings(f"types.{name}", one) for name, one in self._table("types", data["types"]).items()}
        simple = {
            name: self._simple(name, one, types.get(name, ()), wanted)
            for name, one in self._entries("simple", data["simple"])
        }
        if stray := sorted(types.keys() - simple.keys()):
            self._fail(f"types.{stray[0]}", "a relation of [simple]", stray[0])
        composition = {
            name: self._composition(name, one, simple.get(name))
            for name, one in self._entries("composition", data["composition"])
        }
        return Relations(simple, composition, wanted, words, classes)

    def _entries(self, place: str, table: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, one in self._table(place, table).items():
            if not _PROPERTY.fullmatch(name):
                self._fail(f"{place}.{name}", "a property such as P50", name)
            yield name, self._table(f"{place}.{name}", one)

    def _simple(
        self, name: str, entry: dict[str, Any], types: tuple[str, ...], wanted: tuple[str, ...]
    ) -> SimpleRelation:
        place = f"simple.{name}"
        self._keys(place, entry, {"label", "ask", "noun", "plural", "predicate", "of_many", "claim", "enabled"})
        for label in types:
            self._known_type(f"types.{name}", label, wanted)
        ask = self._string(f"{place}.ask", entry.get("ask"))
        noun = self._string(f"{place}.noun", entry["noun"]) if "noun" in entry else None
        if types and noun is not None:
            self._fail(f"{place}.noun", "none, since the relation has types", noun)
        plural = self._string(f"{place}.plural", entry["plural"]) if "plural" in entry else noun
        if plural is None and not types:
            if ask != "Who":
                self._fail(place, "noun, plural or types, since the question does not begin with Who alone", ask)
            plural = _PERSONS
        predicate = self._template(f"{place}.predicate", entry.get("predicate"), {"entity"})
        claim = self._template(f"{place}.claim", entry["claim"], {"entity"}) if "claim" in entry else predicate
        of_many = self._template(f"{place}.of_many", entry["of_many"], {"entity"}) if "of_many" in entry else None
        label = self._string(f"{place}.label", entry.get("label"))
        is_enabled = self._enabled(place, entry)
        return SimpleRelation(name, label, ask, noun, plural, predicate, claim, types, is_enabled, of_many)

    def _composition(self, name: str, entry: dict[str, Any], simple: SimpleRelation | None) -> CompositionRelation:
        place = f"composition.{name}"
        self._keys(place, entry, {"noun", "ask", "link", "claim", "enabled"})
        noun, ask, link = (self._string(f"{place}.{key}", entry.get(key)) for key in ("noun", "ask", "link"))
        if "claim" in entry:
            sentence = f"{self._template(f'{place}.claim', entry['claim'], {'entity', 'value'})}."
        elif simple is not None:
            sentence = simple.hypothesis("{entity}", "{value}")
        else:
            self._fail(place, "a claim, since it is no simple relation", "none")
        return CompositionRelation(name, noun, ask, link, sentence, self._enabled(place, entry))

    def _known_type(self, place: str, label: str, wanted: tuple[str, ...]) -> None:
        if label not in wanted:
            self._fail(place, "a label of wanted_types", label)

    def _enabled(self, place: str, entry: dict[str, Any]) -> bool:
        value = entry.get("enabled", True)
        return value if isinstance(value, bool) else self._fail(f"{place}.enabled", "true or false", value)

    def _template(self, place: str, value: Any, names: set[str]) -> str:
        text = self._string(place, value)
        if sorted(_PLACEHOLDER.findall(text)) != sorted(names):
            self._fail(place, " and ".join(f"{{{name}}} once" for name in sorted(names)), text)
        return text

    def _keys(self, place: str, entry: dict[str, Any], known: set[str]) -> None:
        if unknown := sorted(entry.keys() - known):
            self._fail(f"{place}.{unknown[0]}", f"one of {', '.join(sorted(known))}", unknown[0])

    def _strings(self, place: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not value or len({*map(str, value)}) < len(value):
            self._fail(place, "a list of strings, each once", value)
        return tuple(self._string(place, part) for part in value)

    def _string(self, place: str, value: Any) -> str:
        return value if isinstance(value, str) and value.strip() else self._fail(place, "a text", value)

    def _table(self, place: str, value: Any) -> dict[str, Any]:
        return value if isinstance(value, dict) else self._fail(place, "a table", value)

    def _fail(self, place: str, expected: str, found: Any) -> NoReturn:
        raise SetupError(f"{self._file}: {place or 'top level'}: expected {expected}; found {str(found)[:80]!r}.")
