"""Reads T-REx: facts of Wikidata, with the sentences of Wikipedia abstracts that state them.

Source: https://hadyelsahar.github.io/t-rex/ (file format; the annotators that aligned the triples), section 4.2 of the
KILT paper (facts with more than 20 provenances and relations with fewer than 1,000 facts are removed, in this order;
facts with the same subject and relation form one record), and for labels and aliases
https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html (format of entities; one per line in dumps).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from kbsource.dump.compressed.streams import SUFFIXES, without_suffix
from kbsource.errors import RecordError, SetupError
from kbsource.files import glob, join
from kbsource.identity import stable_sha256, stable_uuid
from kbsource.records import BadRecord
from mapping.options import AtLeast0, AtLeast1, Name, check_options
from mapping.records import Evidence, Example, Output, PageKey, RecordFate
from mapping.sources.examples import ExclusionError, Origin, keep_wanted, leave_out
from mapping.sources.raw_records import (
    MAX_RECORD_BYTES,
    Json,
    RawRecord,
    check_shape,
    is_integer,
    iter_array,
    iter_lines,
    list_at,
    objects_at,
    text_at,
)
from mapping.sources.scratch import Scratch
from mapping.sources.source import (
    Averages,
    Ownership,
    Policy,
    PublishedFigures,
    Source,
    SourceOptions,
    Tally,
    by_split,
    references_option,
)

_FILES = tuple(f"re-nlg_*.json{suffix}" for suffix in SUFFIXES)
_ITEM = re.compile(r"https?://www\.wikidata\.org/(?:entity|wiki)/(Q[1-9][0-9]{0,17})")
_PROPERTY = re.compile(r".*/(P[1-9][0-9]{0,17})")
_LITERAL = "^^"
# Annotator whose triples occur in no sentence.
_NO_ALIGNER = "No-Aligner"

_LANGUAGES = ("en", "mul")
"""Languages of the labels: English, then "mul", Wikidata's default for all languages, which is shown to English readers
if there is no English label.
"""
_HEAD = re.compile(rb'\{\s*(?:"type"\s*:\s*"[a-z]+"\s*,\s*)?"id"\s*:\s*"([A-Z][0-9]+)"')

MAX_PROVENANCES = 20
"""Facts stated by more sentences are excluded. Source: section 4.2 of the KILT paper."""
_SORT = "CREATE TABLE ordered AS SELECT * FROM mentions ORDER BY rank, subject, relation, rowid"
_INSERT = "INSERT INTO mentions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_RANK_DIGITS = 15


class TrexDocument(NamedTuple):
    """One abstract. Each sentence is a pair of offsets (start, end) into the text. Sentences and triples are
    unchanged.
    """

    item: str  # Wikidata id of the subject of its page
    title: str
    text: str
    sentences: list[Any]
    triples: list[Json]

    def sentence(self, number: int) -> str:
        """Returns the text of a sentence; raises RecordError: ``unknown_sentence``, ``wrong_type``."""
        if not 0 <= number < len(self.sentences):
            raise RecordError(
                "unknown_sentence",
                f"{self.title!r} has {len(self.sentences)} sentences, so there is no number {number}",
            )
        bounds = self.sentences[number]
        if not (isinstance(bounds, list) and len(bounds) == 2 and all(map(is_integer, bounds))):
            raise RecordError("wrong_type", f"a sentence's boundaries must be two integers, found {repr(bounds)[:80]}")
        start, end = bounds
        if not 0 <= start <= end <= len(self.text):
            raise RecordError(
                "unknown_sentence",
                f"{self.title!r} has {len(self.text)} characters, so no sentence is at [{start}, {end})",
            )
        return self.text[start:end]


class StatedFact(NamedTuple):
    """A fact as stated by one sentence, with Wikidata ids; the object may be a literal, as written.

    The surfaces are the words used in the sentence; None for an entity that the sentence does not name.
    """

    subject: str
    relation: str
    object: str
    sentence: int  # number of the sentence in its document
    subject_surface: str | None
    relation_surface: str | None
    object_surface: str | None
    item: str = ""  # item of the document's page
    place: int = 0  # key of the sentence in the index


def parse_trex(raw: RawRecord) -> TrexDocument:
    """Parses a document.

    Raises:
        RecordError: ``malformed_json``, ``missing_field``, ``record_too_long``, ``unknown_uri``, ``wrong_type``.
    """
    if len(raw.data) > MAX_RECORD_BYTES:
        raise RecordError("record_too_long", f"more than {MAX_RECORD_BYTES} bytes")
    try:
        value = orjson.loads(raw.data)
    except orjson.JSONDecodeError as error:
        raise RecordError("malformed_json", f"{error} in {raw.data[:80]!r}") from error
    if not isinstance(value, dict):
        raise RecordError("wrong_type", f"expected an object, found {repr(value)[:80]}")
    return TrexDocument(
        _item(text_at(value, "docid" if "docid" in value else "uri")),
        text_at(value, "title"),
        text_at(value, "text"),
        list_at(value, "sentences_boundaries"),
        objects_at(value, "triples"),
    )


def mention_of(triple: Json) -> StatedFact:
    """Converts a triple to a mention.

    Raises:
        ExclusionError: ``no_sentence``.
        RecordError: ``missing_field``, ``unknown_uri``, ``wrong_type``.
    """
    sentence = triple.get("sentence_id")
    if sentence is None or triple.get("annotator") == _NO_ALIGNER:
        raise ExclusionError("no_sentence")
    if not is_integer(sentence):
        raise RecordError("wrong_type", f"'sentence_id': expected an integer, found {repr(sentence)[:80]}")
    subject, relation, object_ = (_part(triple, name) for name in ("subject", "predicate", "object"))
    written = text_at(object_, "uri")
    return StatedFact(
        _item(text_at(subject, "uri")),
        _id(_PROPERTY, text_at(relation, "uri"), "property"),
        written if _LITERAL in written else _item(written),
        sentence,
        _surface(subject),
        _surface(relation),
        _surface(object_),
    )


def literal_value(written: str) -> str | None:
    """Returns the value of a literal without its type; None for an item.

    >>> literal_value("1821-05-04T00:00:00Z^^http://www.w3.org/2001/XMLSchema#dateTime")
    '1821-05-04T00:00:00Z'
    """
    value, mark, _ = written.rpartition(_LITERAL)
    return value if mark else None


def _part(triple: Json, name: str) -> Json:
    value = triple.get(name)
    if not isinstance(value, dict):
        raise RecordError(
            "missing_field" if name not in triple else "wrong_type", f"{name!r} of a triple must be an object"
        )
    return value


def _surface(part: Json) -> str | None:
    surface = part.get("surfaceform")
    if surface is not None and not isinstance(surface, str):
        raise RecordError("wrong_type", f"'surfaceform': expected a string, found {repr(surface)[:80]}")
    return surface or None


def _item(uri: str) -> str:
    return _id(_ITEM, uri, "item")


def _id(pattern: re.Pattern[str], uri: str, kind: str) -> str:
    found = pattern.fullmatch(uri)
    if found is None:
        raise RecordError("unknown_uri", f"{uri[:200]!r} is not the URI of a Wikidata {kind}")
    return found[1]


class EntityLabels(NamedTuple):
    """The names of an entity that English readers see: its label, and its aliases in order."""

    label: str
    aliases: tuple[str, ...]


def iter_entities(path: str) -> Iterator[RawRecord]:
    """Reads the entities of a dump, one per line, without the brackets and commas of the array."""
    for raw in iter_lines(path):
        data = raw.data.strip(b"[], \t")
        if data:
            yield raw._replace(data=data)


def labels_of(entity: str, scratch: Scratch) -> EntityLabels | None:
    """Returns the labels stored for an entity; None if it is unknown or has no English label."""
    kept = scratch.get(entity)
    if kept is None:
        return None
    label, aliases = orjson.loads(kept)
    return None if label is None else EntityLabels(label, tuple(aliases))


def english(entity: Json) -> tuple[str | None, list[str]]:
    """Returns the label and the distinct aliases of an entity; raises RecordError: ``missing_field``,
    ``wrong_type``."""
    labels, aliases = _terms(entity, "labels"), _terms(entity, "aliases")
    found = [labels[language] for language in _LANGUAGES if language in labels]
    others = [other for language in _LANGUAGES if aliases.get(language) for other in list_at(aliases, language)]
    return _value(found[0]) if found else None, list(dict.fromkeys(map(_value, others)))


def _terms(entity: Json, key: str) -> dict[str, Any]:
    """Returns an entity's terms by language. PHP writes an empty object as a list."""
    value = entity.get(key) or {}
    if not isinstance(value, dict):
        raise RecordError("wrong_type", f"{key!r}: expected an object, found {repr(value)[:80]}")
    return value


def _value(term: object) -> str:
    if not isinstance(term, dict):
        raise RecordError("wrong_type", f"a term must be an object, found {repr(term)[:80]}")
    return text_at(term, "value")


def _id_and_labels(raw: RawRecord) -> tuple[str, Callable[[], bytes]]:
    # Almost all entities are irrelevant here, and their ids are found without parsing them.
    if head := _HEAD.match(raw.data):
        return head[1].decode("ascii"), lambda: orjson.dumps(english(raw.parse_reference("an entity")))
    entity = raw.parse_reference("an entity")
    return text_at(entity, "id"), lambda: orjson.dumps(english(entity))


class Triples(NamedTuple):
    """All mentions of facts with the same subject and relation, in the order in which they were read."""

    subject: str
    relation: str
    mentions: list[StatedFact]

    @property
    def record_id(self) -> str:
        """Returns the id of the record for these triples."""
        return stable_uuid("trex", self.subject, self.relation)

    def well_founded(self) -> tuple[frozenset[str], frozenset[str]]:
        """Divides the objects into those whose facts have at most ``MAX_PROVENANCES`` provenances and those whose facts
        have more.
        """
        places: dict[str, set[tuple[str, int]]] = {}
        for mention in self.mentions:
            seen = places.setdefault(mention.object, set())
            if len(seen) <= MAX_PROVENANCES:
                seen.add((mention.item, mention.sentence))
        many = frozenset(name for name, seen in places.items() if len(seen) > MAX_PROVENANCES)
        return frozenset(places) - many, many


class FactIndex(Scratch):
    """Mentions and label texts in an index on disk, in a random order that depends on ``seed``.

    First call ``add_mentions`` for every document, then ``sort`` once; only then query it.
    """

    schema = f"""{Scratch.schema}
    CREATE TABLE sentences (number INTEGER PRIMARY KEY, title TEXT, file TEXT, line INTEGER, text TEXT);
    CREATE TABLE mentions (
        rank INTEGER, subject TEXT, relation TEXT, object TEXT, sentence INTEGER,
        subject_surface TEXT, relation_surface TEXT, object_surface TEXT, item TEXT, place INTEGER
    );
    """

    def __init__(self, folder: str | None, *, seed: str) -> None:
        super().__init__(folder)
        self._seed = seed
        self._n_sentences = 0

    def add_mentions(self, document: TrexDocument, mentions: list[StatedFact], *, file: str, line: int) -> None:
        """Stores the mentions of a document and their sentences.

        Raises:
            RecordError: as ``TrexDocument.sentence``; nothing is stored.
        """
        numbers: dict[int, int] = {}
        for mention in mentions:
            numbers.setdefault(mention.sentence, self._n_sentences + len(numbers) + 1)
        places = [(key, document.title, file, line, document.sentence(number)) for number, key in numbers.items()]
        self._n_sentences += len(places)
        self._database.executemany("INSERT INTO sentences VALUES (?, ?, ?, ?, ?)", places)
        self._database.executemany(
            _INSERT,
            (
                (
                    int(stable_sha256(self._seed, "trex", mention.subject, mention.relation)[:_RANK_DIGITS], 16),
                    *mention._replace(item=document.item, place=numbers[mention.sentence]),
                )
                for mention in mentions
            ),
        )

    def sort(self) -> None:
        """Sorts the mentions in the order of their records."""
        self._database.execute(_SORT)
        self._database.execute("DROP TABLE mentions")

    def triples(self) -> Iterator[Triples]:
        """Reads the mentions of each record, in the order of the draw."""
        rows = self._database.execute("SELECT * FROM ordered ORDER BY rowid")
        for (subject, relation), group in groupby(rows, key=itemgetter(1, 2)):
            yield Triples(subject, relation, [StatedFact(*row[1:]) for row in group])

    def counts(self) -> Counter[str]:
        """Returns the number of facts of each relation, not counting those with too many provenances."""
        counts: Counter[str] = Counter()
        for triple in self.triples():
            counts[triple.relation] += len(triple.well_founded()[0])
        return counts

    def place(self, mention: StatedFact) -> tuple[str, str, int, str]:
        """Returns title, file and line of a mention's document, and the text of its sentence."""
        row: tuple[str, str, int, str] = self._database.execute(
            "SELECT title, file, line, text FROM sentences WHERE number = ?", (mention.place,)
        ).fetchone()
        return row


@dataclass(frozen=True, slots=True)
class TrexOptions(SourceOptions):
    """Options of T-REx.

    A larger ``sample_pool`` aligns more records for dev and test; it does not change which are drawn.
    """

    seed: Name = "kilt"
    """Seed of the random draw."""
    min_facts: AtLeast1 = 1_000
    """Minimum number of facts of a relation; relations with fewer are excluded."""
    sample: AtLeast0 = 5_000
    """Number of records of dev and of test; all others are train."""
    sample_pool: AtLeast0 = 40_000
    """Number of records, in the order of the draw, that dev and test are drawn from."""
    rel_surface: bool = False
    """Adds the surface forms of the relation to meta."""

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options`` and for a pool that is too small."""
        check_options(self)
        if self.sample_pool < 2 * self.sample:
            raise SetupError(
                f"--sample-pool is {self.sample_pool}; for a --sample of {self.sample} give at least {2 * self.sample}."
            )

    @property
    def sample_records(self) -> int:
        """Number of records of dev and of test."""
        return self.sample


class Trex(Source[TrexOptions]):
    """The documents of T-REx, with labels and aliases from Wikidata's JSON dump as references.

    A record in the counts is a triple of a document, or an unreadable document. An example consists of all facts with
    one subject and relation. Examples are ordered by a hash of seed, subject and relation, which is the same for every
    split. The first in that order that pass the filter become dev and test, see ``mapping.decide``.
    """

    name = "trex"
    summary = "T-REx: facts of Wikidata, with sentences that state them"
    options_type = TrexOptions
    references = references_option("--wikidata", "JSON dump of Wikidata, for labels and aliases.", "FILE")
    policies = by_split(Policy(input_meta=("subj_aliases", "sub_surface"), has_section_third=True))
    hypothesis = "triple"
    metric = "accuracy"
    # The paper gives 2.3 million facts.
    published = PublishedFigures(
        {"train": 2_284_168, "dev": 5_000, "test": 5_000},
        Averages(1, 1.68, 1.26, 5.29),
        statistics={"relations_kept": 113, "facts_kept": 2_300_000},
    )
    ownership = Ownership("T-REx", "the authors of T-REx", "https://hadyelsahar.github.io/t-rex/", "CC-BY-SA-4.0")

    def check_inputs(self) -> None:
        for path in self._files():
            check_shape(
                path,
                iter_array(path),
                lambda record: {"text", "sentences_boundaries", "triples"} <= record.keys(),
                expected="documents of T-REx, one JSON array of objects with docid, title, text and triples",
            )
        if not self.inputs.references:
            raise SetupError("trex needs --wikidata, Wikidata's JSON dump: its triples name items only by their ids.")
        for path in self.inputs.references:
            check_shape(
                path,
                iter_entities(path),
                lambda entity: {"id", "labels"} <= entity.keys(),
                expected="entities of Wikidata, one JSON object a line with id, labels and aliases",
            )

    def read(self) -> Iterator[Example | BadRecord]:
        with FactIndex(self.inputs.scratch, seed=self.options.seed) as self.facts:
            for path in self._files():
                for raw in iter_array(path):
                    yield from self._keep_document(raw)
            self.facts.sort()
            self._counts = self.facts.counts()
            kept = [n for n in self._counts.values() if n >= self.options.min_facts]
            self.tally.statistics.update(
                relations=len(self._counts),
                relations_kept=len(kept),
                facts=self._counts.total(),
                facts_kept=sum(kept),
            )
            for triples, objects in self._chosen(None):
                items = (name for name in objects if literal_value(name) is None)
                for entity in (triples.subject, triples.relation, *items):
                    self.facts.want(entity)
            for path in self.inputs.references:
                entities = iter_entities(path)
                yield from keep_wanted(entities, _id_and_labels, scratch=self.facts, tally=self.tally)
            for triples, objects in self._chosen(self.tally):
                if (example := self._example(triples, objects)) is not None:
                    yield self.tally.count_example(example)

    def _files(self) -> list[str]:
        """Returns the document files, in the order of their names within folders; raises SetupError if a folder has
        none."""
        paths: list[str] = []
        for given in self.inputs.records:
            if without_suffix(given) != given or given.endswith(".json"):
                paths.append(given)
                continue
            found = sorted(path for pattern in _FILES for path in glob(join(given, pattern)))
            if not found:
                raise SetupError(f"{given} contains no files of T-REx (re-nlg_0-10000.json, …).")
            paths += found
        return paths

    def _keep_document(self, raw: RawRecord) -> Iterator[BadRecord]:
        """Stores the triples of a document that a sentence states; yields those that cannot be used."""
        try:
            document = parse_trex(raw)
        except RecordError as error:
            yield from leave_out(Origin(raw), error, self.tally)
            return
        mentions = []
        for number, triple in enumerate(document.triples):
            try:
                mention = mention_of(triple)
                document.sentence(mention.sentence)
            except (ExclusionError, RecordError) as error:
                yield from leave_out(Origin(raw, key=f"{document.item}, triple {number}"), error, self.tally)
            else:
                self.tally.records += 1
                mentions.append(mention)
        if mentions:
            self.facts.add_mentions(document, mentions, file=raw.file, line=raw.line)

    def _chosen(self, tally: Tally | None) -> Iterator[tuple[Triples, frozenset[str]]]:
        """Selects the records that the rules keep, with the objects of their facts; counts excluded mentions in a
        tally."""
        pool = None if self.split == "train" else self.options.sample_pool
        n_records = 0
        for triples in self.facts.triples():
            objects, many = triples.well_founded()
            reason = None
            if self._counts[triples.relation] < self.options.min_facts:
                reason = "rare_relation"
            elif objects and n_records == pool:
                reason = "other_split"
            if tally is not None:
                self._exclude(triples, many, "too_many_provenances")
                if reason is not None:
                    self._exclude(triples, objects, reason)
            if objects and reason is None:
                n_records += 1
                yield triples, objects

    def _exclude(self, triples: Triples, objects: frozenset[str], reason: str) -> None:
        """Counts the mentions of objects as excluded."""
        for mention in triples.mentions:
            if mention.object in objects:
                _, file, line, _ = self.facts.place(mention)
                self.tally.count_skipped(RecordFate(None, triples.record_id, file, line, "excluded", reason))

    def _example(self, triples: Triples, objects: frozenset[str]) -> Example | None:
        """Returns the record of some facts, or None if a label is missing; counts excluded and merged mentions."""
        mentions = [mention for mention in triples.mentions if mention.object in objects]
        subject, relation = (labels_of(entity, self.facts) for entity in (triples.subject, triples.relation))
        if subject is None or relation is None:
            self._exclude(triples, objects, f"no_{'relation' if subject else 'subject'}_label")
            return None
        labels = self._object_labels(mentions)
        named = [mention for mention in mentions if mention.object in labels]
        self._exclude(triples, objects - labels.keys(), "no_object_label")
        if not named:
            return None
        (_, file, line, _), *others = map(self.facts.place, named)
        for _, other, number, _ in others:
            self.tally.count_skipped(RecordFate(None, triples.record_id, other, number, "merged"))
        meta = {
            "subj_aliases": list(subject.aliases),
            "sub_surface": _distinct(triple.subject_surface for triple in named),
            "obj_surface": _distinct(triple.object_surface for triple in named),
        }
        if self.options.rel_surface:
            meta["rel_surface"] = _distinct(triple.relation_surface for triple in named)
        text = f"{subject.label} [SEP] {relation.label}"
        return Example(triples.record_id, text, self._outputs(named, labels), meta, file, line)

    def _object_labels(self, mentions: list[StatedFact]) -> dict[str, EntityLabels]:
        """Returns the names of the objects that have one, in the order the objects were read.

        A literal is named as in the first sentence that names it, or else by its value.
        """
        labels: dict[str, EntityLabels] = {}
        for name in dict.fromkeys(mention.object for mention in mentions):
            value = literal_value(name)
            if value is not None:
                surfaces = _distinct(mention.object_surface for mention in mentions if mention.object == name)
                labels[name] = EntityLabels(surfaces[0] if surfaces else value, ())
            elif found := labels_of(name, self.facts):
                labels[name] = found
        return labels

    def _outputs(self, mentions: list[StatedFact], labels: dict[str, EntityLabels]) -> tuple[Output, ...]:
        """Returns one output for each object and sentence, then one for each other name of an object."""
        places: dict[str, dict[tuple[str, int], StatedFact]] = {name: {} for name in labels}
        for mention in mentions:
            places[mention.object].setdefault((mention.item, mention.sentence), mention)
        # Two objects with the same name in the same sentence are the same answer.
        outputs = dict.fromkeys(
            Output(labels[name].label, (self._evidence(place),)) for name in labels for place in places[name].values()
        )
        said = {names.label for names in labels.values()}
        aliases = dict.fromkeys(alias for names in labels.values() for alias in names.aliases)
        return (*outputs, *(Output(alias) for alias in aliases if alias not in said))

    def _evidence(self, mention: StatedFact) -> Evidence:
        title, _, _, text = self.facts.place(mention)
        return Evidence(PageKey("qid", mention.item), text, fallback=PageKey("title", title))


def _distinct(surfaces: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(surface for surface in surfaces if surface is not None))


SOURCES = (Trex,)
