"""T-REx: facts of Wikidata with the sentences of Wikipedia abstracts that state them.

Source: https://hadyelsahar.github.io/t-rex/ (files) and section 4.2 of the KILT paper (facts with more than 20
provenances and relations with fewer than 1,000 facts left out, in this order; facts with the same subject and relation
are one record).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage, join
from kbsource.identity import stable_uuid
from kbsource.records import BadRecord
from mapping.options import check_options, option
from mapping.records import Evidence, Example, Output, PageKey, iter_evidence
from mapping.sources.forms.trex_documents import literal_value, mention_of, parse_document
from mapping.sources.forms.trex_facts import FactMention, Facts, Triples
from mapping.sources.forms.trex_labels import EntityLabels, iter_entities, keep_labels, labels_of
from mapping.sources.reading.base import Inputs, LeftOut, Source, SourceOptions, Split, Tally, references_option
from mapping.sources.reading.examples import ExclusionError, exclude, reject
from mapping.sources.reading.files_in import RawRecord, check_shape, iter_array

_FILES = ("re-nlg_*.json", "re-nlg_*.json.gz", "re-nlg_*.json.bz2")


@dataclass(frozen=True, slots=True)
class TrexOptions(SourceOptions):
    """Choices of T-REx.

    The larger ``sample_pool``, the more records are aligned for dev and test; which are drawn stays the same.
    """

    seed: str = option("kilt", "names what is drawn at random", metavar="NAME")
    min_facts: int = option(1_000, "facts a relation must have, else all of them are left out", lowest=1)
    sample: int = option(5_000, "records of dev and of test, all others are train", lowest=0, remedy="give 0 or more")
    sample_pool: int = option(40_000, "records, in the order of the draw, that dev and test are drawn from")
    rel_surface: bool = option(False, "surface forms of the relation in meta")

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options`` and for a pool that is too small."""
        check_options(self)
        if self.sample_pool < 2 * self.sample:
            raise SetupError(
                f"--sample-pool is {self.sample_pool}; for a --sample of {self.sample} give at least {2 * self.sample}."
            )

    @property
    def sample_records(self) -> int:
        """Records of dev and of test."""
        return self.sample


class Trex(Source[TrexOptions]):
    """Reads the documents of T-REx, and labels and aliases from Wikidata's JSON dump as references.

    A record of the counts is a triple of a document, or a document that cannot be read. An example is all facts of one
    subject and relation. Examples come in the order of the draw, a hash of seed, subject and relation, the same for
    every split: of that order the first that stand the filter are dev and test, see ``mapping.decide.sample``.
    """

    name = "trex"
    options = TrexOptions
    references = references_option("--wikidata", "Wikidata's JSON dump, for labels and aliases", "FILE")

    def check(self, inputs: Inputs, split: Split, *, storage: Storage, options: TrexOptions) -> None:
        """See ``Source.check``."""
        self.check_split(split)
        for path in record_files(inputs, storage):
            check_shape(
                path,
                iter_array(storage, path),
                lambda record: {"text", "sentences_boundaries", "triples"} <= record.keys(),
                expected="documents of T-REx, one JSON array of objects with docid, title, text and triples",
            )
        if not inputs.references:
            raise SetupError("trex needs --wikidata, Wikidata's JSON dump: its triples name things by their ids alone.")
        for path in inputs.references:
            check_shape(
                path,
                iter_entities(storage, path),
                lambda entity: {"id", "labels"} <= entity.keys(),
                expected="entities of Wikidata, one JSON object a line with id, labels and aliases",
            )

    def read(
        self, inputs: Inputs, split: Split, *, storage: Storage, options: TrexOptions, tally: Tally
    ) -> Iterator[Example | BadRecord]:
        """See ``Source.read``."""
        with Facts(inputs.scratch, seed=options.seed) as facts:
            for path in record_files(inputs, storage):
                for raw in iter_array(storage, path):
                    yield from _add_document(raw, facts, tally)
            facts.sort()
            pool = None if split == "train" else options.sample_pool
            chosen = _Chosen(facts, min_facts=options.min_facts, pool=pool)
            for triples, objects in chosen.records():
                items = (name for name in objects if literal_value(name) is None)
                for entity in (triples.subject, triples.relation, *items):
                    facts.want(entity)
            files = (iter_entities(storage, path) for path in inputs.references)
            yield from keep_labels(files, scratch=facts, tally=tally)
            records = _Records(facts, has_rel_surface=options.rel_surface)
            for triples, objects in chosen.records(tally):
                example = records.example(triples, objects, tally)
                if example is not None:
                    tally.examples += 1
                    tally.evidences += sum(1 for _ in iter_evidence(example))
                    yield example


def record_files(inputs: Inputs, storage: Storage) -> list[str]:
    """Gives the files of documents, those of folders by their names.

    Raises:
        SetupError: a folder holds none.
    """
    paths: list[str] = []
    for given in inputs.records:
        if given.endswith((".json", ".gz", ".bz2")):
            paths.append(given)
            continue
        found = sorted(path for pattern in _FILES for path in storage.glob(join(given, pattern)))
        if not found:
            raise SetupError(f"{given} holds no files of T-REx (re-nlg_0-10000.json, …).")
        paths += found
    return paths


def _add_document(raw: RawRecord, facts: Facts, tally: Tally) -> Iterator[BadRecord]:
    """Keeps the triples of a document that some sentence states, counts them and gives those that cannot be used."""
    try:
        document = parse_document(raw)
    except RecordError as error:
        tally.records += 1
        yield reject(raw, error, tally)
        return
    mentions = []
    for number, triple in enumerate(document.triples):
        tally.records += 1
        try:
            mention = mention_of(triple)
            document.sentence(mention.sentence)
        except ExclusionError as exclusion:
            exclude(raw, exclusion.reason, tally, key=f"{document.item}, triple {number}")
        except RecordError as error:
            yield reject(raw, error, tally, key=f"{document.item}, triple {number}")
        else:
            mentions.append(mention)
    if mentions:
        facts.add_mentions(document, mentions, file=raw.file, line=raw.line)


class _Chosen:
    """The facts that the rules of the dataset keep.

    Args:
        facts: sorted.
        min_facts: that a relation must have.
        pool: records, in the order of the draw, that are given; None for all.
    """

    def __init__(self, facts: Facts, *, min_facts: int, pool: int | None) -> None:
        self._facts = facts
        self._counts = facts.counts()
        self._min_facts = min_facts
        self._pool = pool

    def records(self, tally: Tally | None = None) -> Iterator[tuple[Triples, frozenset[str]]]:
        """Gives every record with the objects of its facts, and tells a tally the mentions that are left out."""
        n_records = 0
        for triples in self._facts.triples():
            objects, many = triples.well_founded()
            reason = None
            if self._counts[triples.relation] < self._min_facts:
                reason = "rare_relation"
            elif objects and n_records == self._pool:
                reason = "other_split"
            if tally is not None:
                _exclude(triples, many, "too_many_provenances", self._facts, tally)
                if reason is not None:
                    _exclude(triples, objects, reason, self._facts, tally)
            if objects and reason is None:
                n_records += 1
                yield triples, objects


def _exclude(triples: Triples, objects: frozenset[str], reason: str, facts: Facts, tally: Tally) -> None:
    """Counts the mentions of objects as left out."""
    for mention in triples.mentions:
        if mention.object in objects:
            _, file, line = facts.document(mention.document)
            tally.leave(LeftOut(_id_of(triples), file, line, "excluded", reason))


def _id_of(triples: Triples) -> str:
    return stable_uuid("trex", triples.subject, triples.relation)


class _Records:
    """Makes examples of facts.

    Args:
        facts: know sentences, documents and labels.
        has_rel_surface: the relation's surface forms stand in ``meta``.
    """

    def __init__(self, facts: Facts, *, has_rel_surface: bool) -> None:
        self._facts = facts
        self._has_rel_surface = has_rel_surface

    def example(self, triples: Triples, objects: frozenset[str], tally: Tally) -> Example | None:
        """Gives the record of some facts, None where a label is missing; counts mentions left out or merged."""
        mentions = [mention for mention in triples.mentions if mention.object in objects]
        subject, relation = (labels_of(entity, self._facts) for entity in (triples.subject, triples.relation))
        if subject is None or relation is None:
            _exclude(triples, objects, f"no_{'relation' if subject else 'subject'}_label", self._facts, tally)
            return None
        labels = self._object_labels(mentions)
        named = [mention for mention in mentions if mention.object in labels]
        _exclude(triples, objects - labels.keys(), "no_object_label", self._facts, tally)
        if not named:
            return None
        (_, file, line), *others = (self._facts.document(triple.document) for triple in named)
        for _, other, number in others:
            tally.leave(LeftOut(_id_of(triples), other, number, "merged"))
        meta = {
            "subj_aliases": list(subject.aliases),
            "sub_surface": _distinct(triple.subject_surface for triple in named),
            "obj_surface": _distinct(triple.object_surface for triple in named),
        }
        if self._has_rel_surface:
            meta["rel_surface"] = _distinct(triple.relation_surface for triple in named)
        return Example(
            _id_of(triples),
            f"{subject.label} [SEP] {relation.label}",
            self._outputs(named, labels),
            meta,
            file=file,
            line=line,
        )

    def _object_labels(self, mentions: list[FactMention]) -> dict[str, EntityLabels]:
        """Gives the names of the objects that have one, objects in the order they were met.

        A literal is called as the first sentence that names it does, else by its value.
        """
        labels: dict[str, EntityLabels] = {}
        for name in dict.fromkeys(mention.object for mention in mentions):
            value = literal_value(name)
            if value is not None:
                surfaces = _distinct(mention.object_surface for mention in mentions if mention.object == name)
                labels[name] = EntityLabels(surfaces[0] if surfaces else value, ())
            elif found := labels_of(name, self._facts):
                labels[name] = found
        return labels

    def _outputs(self, mentions: list[FactMention], labels: dict[str, EntityLabels]) -> tuple[Output, ...]:
        """Gives an output for each object and sentence, then one for each other name of an object."""
        places: dict[str, dict[tuple[str, int], FactMention]] = {name: {} for name in labels}
        for mention in mentions:
            places[mention.object].setdefault((mention.item, mention.sentence), mention)
        # Two objects of one name that stand in the same sentence are the same answer.
        outputs = dict.fromkeys(
            Output(labels[name].label, (self._evidence(place),)) for name in labels for place in places[name].values()
        )
        said = {names.label for names in labels.values()}
        aliases = dict.fromkeys(alias for names in labels.values() for alias in names.aliases)
        return (*outputs, *(Output(alias) for alias in aliases if alias not in said))

    def _evidence(self, mention: FactMention) -> Evidence:
        title, _, _ = self._facts.document(mention.document)
        text = self._facts.sentence(mention.text)
        return Evidence(PageKey("qid", mention.item), text, fallback=PageKey("title", title))


def _distinct(surfaces: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(surface for surface in surfaces if surface is not None))
