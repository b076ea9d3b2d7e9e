"""Options of each job: plain values, their limits and their help texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from cyclopts import Parameter, Token
from cyclopts.validators import Number

from kbsource.errors import SetupError
from kbsource.wikidata.entity import NEEDED_QUALIFIERS
from mapping.acceptance import read_rule
from mapping.amber.records import AMBER_CHOICES, AmberOptions
from mapping.decide import THRESHOLD
from mapping.entail.signal import ModelOptions, UsualModelOptions
from mapping.entity_linking.records import ContextOptions
from mapping.options import (
    FLAT,
    As,
    AtLeast0,
    AtLeast1,
    Bleu,
    Checked,
    Choices,
    File,
    Files,
    FolderPath,
    FoundForm,
    Like,
    Model,
    Name,
    NewFile,
    Release,
    Releases,
    Rule,
    Seconds,
    Share,
    Threads,
    Words,
    check_choices,
    check_options,
    listed,
    name_like,
    path_like,
    releases_named,
)
from mapping.passages.cut import CutOptions
from mapping.passages.forms import FORMS, line_forms
from mapping.qampari.evidence import LEAST_ENTAILMENT, N_BEFORE
from mapping.qampari.list_tables import LEAST_ROWS, KeyRule
from mapping.qampari.questions import RelationList
from mapping.qampari.selection import (
    MOST_SUBJECTS,
    QAMPARI_CHOICES,
    AnswerFilter,
    CompositionBase,
    Mixed,
    SampleSizes,
)
from mapping.qampari.table_questions import TableRows
from mapping.retrieval.system_options import EncoderOptions, ReaderOptions, ReadForm, RerankerOptions
from mapping.retrieval.vector_kind import VectorPrecision
from mapping.search.numbering import Numbering
from mapping.sources import all_sources
from mapping.sources.source import HypothesisKind, SourceOptions, Split

_MEBIBYTE = 1 << 20
_TIME = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\dZ"
_MOST_MEMORY = 1 << 46
_PLACES = frozenset("dump kb base wikidata pageviews output page_props siteinfo relations key_columns types".split())
"""Options that locate inputs and outputs. They do not change the bytes of the output."""


def _mebibytes(type_: Any, tokens: Sequence[Token]) -> int:
    try:
        n_bytes = int(tokens[0].value) * _MEBIBYTE
    except ValueError:
        raise ValueError("Give a whole number of MB.") from None
    _enough(type_, n_bytes)
    return n_bytes


def _enough(type_: Any, n_bytes: int) -> None:
    if n_bytes < 256 * _MEBIBYTE:
        raise ValueError("A worker needs at least 256 MB.")
    if n_bytes > _MOST_MEMORY:
        raise ValueError(f"No machine has as much; give at most {_MOST_MEMORY // _MEBIBYTE} MB.")


Output = Annotated[FolderPath, Parameter(help="New output folder, or one left by a run that was killed.")]
Memory = Annotated[
    int,
    Parameter(
        "--worker-memory",
        metavar="MB",
        help="Maximum memory that one worker process may allocate.",
        converter=_mebibytes,
        validator=_enough,
        show_default=lambda n_bytes: str(n_bytes // _MEBIBYTE),
    ),
]
RangeBytes = Annotated[
    AtLeast1 | None,
    Parameter(
        "--range-bytes",
        help="Bytes per range of the dump; by default 1 to 32 MiB, depending on its size.",
    ),
]
Truncated = Annotated[bool, Parameter("--allow-truncated", help="Read as much as possible of a truncated dump.")]
TakenAs = Annotated[
    As,
    Parameter(
        "--as",
        help="Use the settings of the paper, or of the code and files that its authors released, for every option "
        "where these differ from each other or from the defaults.",
    ),
]
USUAL_MEMORY = 4 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(Checked):
    """Where a job runs. All other options are passed to Beam unchanged."""

    runner: Name = "local"
    """local: one worker; local-multi: one worker per core; spark, flink or dataflow: a cluster, see docs/running.md; or
    any other Beam runner."""
    workers: Threads | None = None
    """Number of workers for local-multi; by default one per core."""
    dry_run: bool = False
    """Check the inputs and the output location, construct the pipeline, print its size, and stop."""
    beam_args: Annotated[tuple[str, ...], Parameter(parse=False)] = ()

    def flags(self) -> list[str]:
        """Returns the Beam flags for these options."""
        from pipelines.runners.presets import beam_flags

        # With this flag, Beam does not contact the cloud when it validates its options.
        beam_args = (*self.beam_args, "--dry_run=True") if self.dry_run else self.beam_args
        return beam_flags(self.runner, workers=self.workers, beam_args=beam_args)


@dataclass(frozen=True, slots=True)
class BuildOptions(Checked):
    """Inputs and options of a build."""

    dump: Annotated[Files, Parameter(metavar="DUMP")]
    """Files of a single dump, or quoted patterns."""
    _: KW_ONLY
    output: Output
    page_props: File | None = None
    """page_props.sql.gz of the same date, for Wikidata items and disambiguation pages."""
    wikidata: Release | None = None
    """Release made by kbsource wikidata, for items by sitelink, with labels, descriptions and aliases."""
    siteinfo: File | None = None
    """siteinfo as JSON from the wiki's API, for aliases of namespaces."""
    only_titles: File | None = None
    """Build only the articles whose titles are in this file, one per line, and the redirects to them."""
    limit_pages: AtLeast1 | None = None
    """Read only the first N pages of the dump, counting all namespaces."""
    as_of: Annotated[
        str | None,
        Parameter(metavar="TIME", validator=Like(_TIME, "2019-08-01T00:00:00Z")),
    ] = None
    """Use the newest revision of each page that is not after TIME, like 2019-08-01T00:00:00Z."""
    templates: Literal["definitions", "lua", "rules"] = "definitions"
    """How templates are rendered: definitions: by their definitions in the dump, or else by rules; lua: also by the Lua
    modules that definitions call (needs kbsource[lua]); rules: by rules only."""
    references: bool = False
    """Write tables of references and of their positions in the text. A build takes about 1.6 times as long."""
    traces: bool = False
    """Write tables of what each page was made from. A later build can then use the release as its --base."""
    base: Release | None = None
    """Release of an earlier dump, built with --traces. Pages whose result would be the same are copied from it. The
    output has the same bytes and takes less time."""
    max_rejects: Share = 0.001
    """Maximum share of pages that may be rejected."""
    max_fallbacks: Share = 0.001
    """Maximum share of articles that may fall back to the simplest extraction because the parser failed. Ten articles
    are always allowed."""
    allow_truncated: Truncated = False
    page_timeout_s: Annotated[Seconds, Parameter("--page-timeout")] = 60.0
    """Maximum time for one page. A page that takes longer is extracted in a simpler way."""
    worker_memory_bytes: Memory = USUAL_MEMORY
    range_bytes: RangeBytes = None
    parser: Annotated[str, Parameter(parse=False)] = "kbsource.pages.articles:PageParser"
    """``module:class`` of the page parser. It is constructed with the site and, if they are used, the definitions."""

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the release, as JSON values for the manifest."""
        values = {name: value for name, value in asdict(self).items() if name not in _PLACES}
        return {**values, "only_titles": self.only_titles is not None}


def _all_or_listed(type_: Any, tokens: Sequence[Token]) -> tuple[str, ...] | None:
    return None if [token.value for token in tokens] == ["all"] else listed(type_, tokens)


def _qualifiers(type_: Any, tokens: Sequence[Token]) -> tuple[str, ...] | None:
    return () if [token.value for token in tokens] == ["none"] else _all_or_listed(type_, tokens)


def _two(type_: Any, value: Sequence[str]) -> None:
    if len(value) != 2:
        raise ValueError("Give two, OLD and NEW.")


@dataclass(frozen=True, slots=True)
class WikidataOptions:
    """Inputs and options of a release of Wikidata. For ``sites`` and ``qualifiers``, None means all."""

    dump: Annotated[Files, Parameter(metavar="DUMP")]
    """JSON dump (.json or .ndjson, plain or compressed) with one entity per line; files or patterns."""
    _: KW_ONLY
    output: Output
    languages: Annotated[Words, Parameter(validator=Like("[a-z]{2,}(?:-[a-z0-9]+)*", "en,de"))] = ("en",)
    """Languages of labels, descriptions and aliases, the preferred one first. Their variants and mul are included."""
    sites: Annotated[
        Words | None,
        Parameter(
            converter=_all_or_listed,
            validator=Like(
                "[a-z][a-z0-9_]*(?:wiki|wiktionary|wikibooks|wikinews|wikiquote|wikisource|wikiversity|wikivoyage)",
                "enwiki,dewiki, or all",
            ),
        ),
    ] = None
    """Wikis whose sitelinks are included, like enwiki,dewiki, or all (the default)."""
    qualifiers: Annotated[
        Words | None,
        Parameter(
            converter=_qualifiers, validator=Like("P[1-9][0-9]*", "P580,P582, or all, or none"), show_default=False
        ),
    ] = NEEDED_QUALIFIERS
    """Properties whose qualifiers are included, like P580,P582, or all, or none; by default the properties of time,
    role and certainty."""
    max_rejects: Share = 0.001
    """Maximum share of lines that may be rejected."""
    allow_truncated: Truncated = False
    worker_memory_bytes: Memory = USUAL_MEMORY
    range_bytes: RangeBytes = None

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and if there is no language."""
        check_options(self)
        if not self.languages:
            raise SetupError("--languages is empty; give at least one, like en.")

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the release, as JSON values for the manifest."""
        values = {name: value for name, value in asdict(self).items() if name not in _PLACES}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class PageviewsOptions(Checked):
    """Page views to be summed."""

    input: Annotated[Files, Parameter(metavar="VIEWS")]
    """Files of page views, plain or compressed, from pageview_complete or pagecounts, or patterns."""
    _: KW_ONLY
    output: Output
    site: Annotated[Name, Parameter(validator=Like("[a-z][a-z0-9_]*wiki", "enwiki"))] = "enwiki"
    """Wikipedia whose views are summed."""
    all_access: bool = False
    """With pagecounts, include the mobile site and hourly files (en, en.m, en.m.z, en.zero). By default only en.z is
    counted, as by the authors of AmbER."""
    max_rejects: Share = 0.001
    """Maximum share of lines that may be rejected."""
    allow_truncated: Truncated = False
    range_bytes: RangeBytes = None

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the release, as JSON values for the manifest."""
        values = asdict(self)
        del values["input"], values["output"]
        return values


_DECIDING = (
    "threshold",
    "max_elements",
    "accept_fuzzy",
    "numbering",
    "strips_section",
    "max_rejects",
    "chunk_records",
    "evidence_timeout_s",
    "worker_memory_bytes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions(Checked):
    """Options for verifying alignments with an NLI model."""

    model: Annotated[ModelOptions, FLAT]
    hypothesis: HypothesisKind | None = None
    """Hypothesis that the model judges; the default depends on the dataset."""
    rescue_sentences: Annotated[AtLeast0, Parameter("--rescue")] = 0
    """If BLEU is low, choose the sentence that most probably entails the hypothesis, among the N sentences of the page
    that share most words with it. 100 is a good value; 0 turns this off."""


@dataclass(frozen=True, slots=True)
class AlignOptions:
    """Options for aligning the evidence of any dataset."""

    kb: Release
    """Folder of the release."""
    _: KW_ONLY
    inputs: Annotated[Files, Parameter("--input")]
    """Files of the dataset, in order; they may be compressed (.bz2, .gz, .xz, .zst)."""
    output: Output
    split: Split | None = None
    """Split whose filter rules apply; by default the split in the file names, else dev."""
    threshold: Bleu = THRESHOLD
    """Minimum BLEU score of an accepted span."""
    max_elements: AtLeast1 = 1
    """Maximum number of paragraphs in a span."""
    title_map: File | None = None
    """File of known page moves, one per line: old title, tab, new title or page id."""
    accept_fuzzy: Annotated[float | None, Parameter(metavar="SCORE", validator=Number(gte=60, lte=100))] = None
    """Replace a missing title by the most similar one, if the similarity is at least SCORE (60 to 100)."""
    numbering: Numbering = "kilt"
    """Numbering of paragraphs: as in KILT, or by the elements of the release."""
    strips_section: Annotated[bool, Parameter("--strip-section")] = False
    """Write sections without the newline at the end."""
    stem: Annotated[Name | None, Parameter(validator=name_like)] = None
    """Start of the output file's name; by default the dataset's name."""
    max_rejects: Share = 0.01
    """Maximum share of records that may be rejected."""
    worker_memory_bytes: Memory = USUAL_MEMORY
    chunk_records: AtLeast1 = 5_000
    """Number of records per table file."""
    evidence_timeout_s: Annotated[Seconds, Parameter("--evidence-timeout")] = 60.0
    """Maximum time for one piece of evidence. If it takes longer, it is tried once more and then given up."""
    verify: Annotated[VerifyOptions | None, FLAT] = None
    accept: Rule | None = None
    """Rule for accepting spans, instead of --threshold: "bleu>=0.5", "bleu>=0.5 and entailment>=0.5". The signals are
    bleu, entailment, neutral and contradiction; combine them with and, or, not and brackets."""
    scratch: FolderPath | None = None
    """Folder for temporary indexes; by default the system's temporary folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOptions(AlignOptions):
    """Options for aligning one dataset of ``mapping.sources.all_sources()``, including the dataset's own."""

    dataset: str
    split: Split
    references: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    source: SourceOptions | None = None

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and for options that exclude each other."""
        if self.dataset not in all_sources():
            raise SetupError(f"No dataset {self.dataset!r}. Choose one of: {', '.join(all_sources())}.")
        if self.labels and self.split != "test":
            raise SetupError(
                f"--labels is for the test split, whose records have no answers; {self.split} has its own."
            )
        check_options(self)
        self._check_acceptance()

    def _check_acceptance(self) -> None:
        signals = read_rule(self.accept).signals() if self.accept is not None else frozenset()
        if self.verify is None and (unknown := signals - {"bleu"}):
            names = ", ".join(sorted(unknown))
            raise SetupError(f"--accept {self.accept!r}: {names} is only known with --model MODEL.")
        if self.verify is not None and self.verify.rescue_sentences and not signals & {"entailment", "contradiction"}:
            raise SetupError(
                "--rescue chooses sentences whose BLEU is low, so the rule must accept them: "
                '--accept "bleu>=0.5 or entailment>=0.9"'
            )

    @property
    def choices(self) -> SourceOptions:
        """Options of the dataset's reader; its defaults if none are set."""
        return self.source or all_sources()[self.dataset].options_type()

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the output, as JSON values for the manifest."""
        values: dict[str, Any] = {name: getattr(self, name) for name in _DECIDING}
        if self.accept is not None:
            values["accept"] = self.accept
        if self.verify is not None:
            values["verify"] = asdict(self.verify)
            del values["verify"]["model"]
        return {**values, "source": asdict(self.choices), "title_map": self.title_map is not None}


@dataclass(frozen=True, slots=True)
class AgeOptions(Checked):
    """Datasets whose evidence is searched for, and the releases to search."""

    releases: Releases
    """Folders of releases of the same wiki from different dates."""
    _: KW_ONLY
    inputs: Annotated[Files, Parameter("--input")]
    """Datasets in KILT's format, one file each; they may be compressed (.bz2, .gz, .xz, .zst)."""
    output: Output
    from_kb: Annotated[FolderPath | None, Parameter(metavar="PATH")] = None
    """Release or kilt_knowledgesource.json that the datasets refer to. Without it, their evidence must contain its own
    text."""
    threshold: Bleu = THRESHOLD
    """Minimum score of a text that counts as still present."""
    max_rejects: Share = 0.01
    """Maximum share of a dataset's records that may be rejected."""
    worker_memory_bytes: Memory = USUAL_MEMORY
    evidence_timeout_s: Annotated[Seconds, Parameter("--evidence-timeout")] = 60.0
    """Maximum time for one piece of evidence. If it takes longer, it is tried once more and then given up."""

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the output, as JSON values for the manifest."""
        return {"threshold": self.threshold}


@dataclass(frozen=True, slots=True)
class FactsOptions(Checked):
    """Releases to compare, and options for proving answers."""

    old: Release
    """Older release of pages, built with the Wikidata items of its pages."""
    new: Release
    """Newer release of the same wiki."""
    _: KW_ONLY
    wikidata: Annotated[
        tuple[str, ...],
        Parameter(metavar="OLD NEW", n_tokens=2, converter=releases_named, validator=(path_like, _two)),
    ]
    """Releases of Wikidata for the two dates, the older one first."""
    output: Output
    model: Annotated[ModelOptions | None, FLAT] = None
    """If None, the sentence most similar to the statement is the proof."""
    least_entailment: Annotated[float, Parameter(metavar="P", validator=Number(gte=0, lt=1))] = 0.5
    """A sentence proves an answer if its entailment probability is above this; only with --model."""
    sentences_before: AtLeast0 = N_BEFORE
    """Number of preceding sentences of the same paragraph that a proof includes."""
    questions: File | None = None
    """TOML file with all questions, by property; by default the package's own."""

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the output, as JSON values for the manifest."""
        return {"least_entailment": self.least_entailment, "sentences_before": self.sentences_before}


class Planned(NamedTuple):
    """One of several alignments."""

    name: str  # name of the dataset
    options: MapOptions  # its ``output`` is ``name/split`` in the folder of all alignments
    where: str  # where it was requested, for messages

    @property
    def folder(self) -> str:
        """Folder of the alignment, relative to the folder of all alignments."""
        return f"{self.name}/{self.options.split}"


@dataclass(frozen=True, slots=True)
class PassagesOptions:
    """Inputs and options of a corpus of passages."""

    kb: Release
    """Folder of a release of pages."""
    _: KW_ONLY
    output: Output
    cut: Annotated[CutOptions, FLAT] = CutOptions()
    formats: Annotated[
        tuple[str, ...],
        Parameter(
            "--format",
            metavar="NAME",
            choices=tuple(FORMS),
            help="Write the passages in this format too; may be given several times. "
            + "; ".join(f"{name}: {form.meaning}" for name, form in FORMS.items()),
        ),
    ] = ()
    base: Release | None = None
    """Passages of an earlier release, cut with the same options. Passages of pages with the same title and text are
    copied from it. The output has the same bytes and takes less time."""
    base_kb: Release | None = None
    """Release of pages that the --base passages were cut from."""
    worker_memory_bytes: Memory = USUAL_MEMORY

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and for formats that are repeated or that the unit
        excludes."""
        check_options(self)
        if unknown := [name for name in self.formats if name not in FORMS]:
            raise SetupError(f"--format is {unknown[0]}. Choose one of {', '.join(FORMS)}.")
        if len(set(self.formats)) < len(self.formats):
            raise SetupError(f"--format is {', '.join(self.formats)}; give each form once.")
        if self.cut.is_by_sentence and any(form.needs_pages for form in line_forms(self.formats)):
            raise SetupError(
                "--format kilt names paragraphs of KILT, which not all running text has; cut with --unit tokens-100 "
                "or words-100."
            )
        if self.cut.tables and any(form.needs_pages for form in line_forms(self.formats)):
            raise SetupError("--format kilt names paragraphs of KILT, which tables do not have; leave --tables out.")

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the corpus, as JSON values for the manifest."""
        return {**asdict(self.cut), "formats": sorted(self.formats)}


@dataclass(frozen=True, slots=True)
class VectorsOptions(Checked):
    """Inputs and options of a release of vectors."""

    passages: Release
    """Passages made by kbsource passages."""
    _: KW_ONLY
    encoder: Annotated[EncoderOptions, FLAT]
    output: Output
    query_model: Model | None = None
    """Encoder for queries, as a folder or a name on the hub, that was trained together with the passage encoder, such
    as DPR's question encoder. By default, one encoder encodes both."""
    precision: VectorPrecision = "float16"
    """Precision of a vector's numbers: float16; int8, half as large; or bits, a sixteenth as large."""
    base: Release | None = None
    """Vectors of earlier passages by the same encoder. Vectors of passages with the same title and text are copied from
    it. The output has the same bytes and takes less time."""
    base_passages: Release | None = None
    """Passages that the --base vectors were made from."""


@dataclass(frozen=True, slots=True)
class CheckSourcesOptions(Checked):
    """Release whose sources are judged, and the model that judges them."""

    kb: Release
    """Release of pages, built with --references."""
    _: KW_ONLY
    output: NewFile
    """JSON Lines file with one object per use of a reference. The file appears when it is complete."""
    model: Annotated[UsualModelOptions, FLAT] = UsualModelOptions()


@dataclass(frozen=True, slots=True)
class RerankOptions(Checked):
    """Options for reranking search results."""

    passages: Release
    """Passages made by kbsource passages and indexed by kbsource search."""
    ranked: File
    """Search results in these passages: a TREC run, KILT predictions, or questions with ctxs, with ids of passages or
    pages."""
    _: KW_ONLY
    queries: File
    """Queries of the search, in any format that kbsource search accepts."""
    output: NewFile
    """The results in the new order. The file appears when it is complete."""
    reranker: Annotated[RerankerOptions, FLAT]
    index: FolderPath | None = None
    """Folder of the passages' index; by default PASSAGES-bm25, next to the passages."""
    form: FoundForm | None = None
    """Format of the results: kilt, trec or ctxs, as in kbsource search."""


@dataclass(frozen=True, slots=True)
class ReadOptions(Checked):
    """Questions to read, the model that reads them, and the form of its inputs."""

    questions: File
    """JSON Lines: records in KILT's format, AmbER sets, or QAMPARI questions. If questions have ctxs, as written by
    kbsource qampari-contexts, these passages are read."""
    _: KW_ONLY
    output: NewFile
    """Predictions for kbsource evaluate. The file appears when it is complete."""
    reader: Annotated[ReaderOptions, FLAT]
    form: ReadForm | None = None
    """closed: only the question; read: one prompt with as many passages as fit; fid: Fusion-in-Decoder, for seq2seq
    models; pig: each passage separately, all answers united; best: each passage separately, the most probable answer;
    rag-sequence and rag-token: each passage separately, weighted by its score; extractive: a span of a passage;
    fact-checking: the class of a claim. By default the form that the model was made for: extractive, fact-checking,
    rag-sequence, rag-token, or read."""
    retrieved: File | None = None
    """Passages for the questions, with texts, as written by kbsource search."""
    passages_key: Annotated[Literal["ctxs", "positive_ctxs"], Parameter("--contexts")] = "ctxs"
    """A question's own passages to read if --retrieved has no passages for it: the retrieved ones (ctxs) or the gold
    ones (positive_ctxs)."""
    top: AtLeast1 = 20
    """Maximum number of passages per question."""
    prompt: File | None = None
    """TOML file with the keys prompt and passage; by default the package's prompt for the form."""
    template_seed: Name | None = None
    """Phrase a slot as one of the record's template_questions, drawn with this seed and the record's id."""
    kb: Release | None = None
    """Release of pages. The provenance of a linked mention is the page whose title is the answer; --first-sentences
    reads pages of this release."""
    redirects: bool = False
    """Also accept the title of a redirect as the answer to a linked mention."""
    first_sentences: AtLeast1 | None = None
    """For fact-checking: instead of the passages, read the first N sentences of their pages."""

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and for options that exclude each other."""
        check_options(self)
        if self.redirects and self.kb is None:
            raise SetupError("--redirects needs --kb, the release that has them.")
        if self.first_sentences is not None and self.kb is None:
            raise SetupError("--first-sentences needs --kb, the release that has the pages.")


@dataclass(frozen=True, slots=True)
class QampariOptions:
    """Inputs and options of the job."""

    CHOICES: ClassVar[Choices] = QAMPARI_CHOICES

    kb: Release
    """Release of pages, built with the Wikidata items of its pages."""
    wikidata: Release
    """Release of Wikidata made by kbsource wikidata."""
    _: KW_ONLY
    output: Output
    model: Annotated[UsualModelOptions | None, FLAT] = UsualModelOptions()
    """If None, the first candidate is the proof."""
    as_: TakenAs | None = None
    relations: File | None = None
    """TOML file with relations and their wording; by default the package's own."""
    relation_list: RelationList = "corrected"
    """The package's relations to ask about: corrected: all but P275, whose released entry is a mistake; paper: the
    relations in the table of the paper's appendix; released: all relations of the released code."""
    least_entailment: Annotated[float, Parameter(metavar="P", validator=Number(gte=0, lt=1))] = LEAST_ENTAILMENT
    """A sentence proves a fact if its entailment probability is above this."""
    sentences_before: AtLeast0 = N_BEFORE
    """Number of preceding sentences of the same paragraph that a proof includes."""
    most_subjects: AtLeast1 = MOST_SUBJECTS
    """Maximum number of subjects; properties and values with more subjects are skipped."""
    composition_base: CompositionBase = "kept"
    """Simple queries that compositions are made from: kept: queries that passed the filter; all: all queries with
    enough answers, as in the paper."""
    most_specific_types: bool = False
    """If several typed questions about one thing have the same answers, keep only the one with the most specific
    type."""
    all_proofs: bool = False
    """If several things share a value, include the proofs of all of them."""
    has_tables: Annotated[bool, Parameter("--tables", negative="--no-tables")] = True
    """Make questions about the tables of list pages."""
    least_rows: AtLeast1 = LEAST_ROWS
    """Minimum number of rows in a table."""
    table_rows: TableRows = "linked"
    """Rows of a table that count for --least-share: linked: only rows that link to a page, as in the released
    code; all: all rows, as in the paper."""
    key_rule: KeyRule = "any"
    """Columns that the rule may choose as a table's key: any: all columns; not-last: all but the last, as in the
    released code."""
    key_columns: File | None = None
    """JSON Lines file of tables' key columns, {title, table, column}; by default, a rule finds them."""
    redirect_aliases: bool = False
    """Count the titles of redirects to the page of a table's answer as aliases."""
    seed: Name = "qampari"
    """Seed of every draw."""
    answer_filter: Annotated[AnswerFilter, FLAT] = AnswerFilter()
    sizes: Annotated[SampleSizes, FLAT] = SampleSizes()
    mixed: Mixed = "train"
    """Intersections of a training relation and a test relation: train: use them for training; drop: skip them."""
    with_meta: bool = False
    """Add a field meta to the records: relations, items, probabilities, positions."""
    is_released_case: Annotated[bool, Parameter("--released-case")] = False
    """Write proofs as in the published files: each sentence in lower case except for its first letter."""
    is_released_wording: Annotated[bool, Parameter("--released-wording")] = False
    """Leave the verbs of compositions as in the published questions: persons that works for X."""
    worker_memory_bytes: Memory = USUAL_MEMORY

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and for options that exclude each other."""
        check_options(self)
        if self.most_subjects < self.answer_filter.least:
            raise SetupError(f"--most-subjects is {self.most_subjects}; give at least {self.answer_filter.least}.")
        if self.relations is not None and self.relation_list != "corrected":
            raise SetupError(
                f"--relation-list {self.relation_list} is one of the package's lists, and --relations {self.relations} "
                "replaces it: leave one out. In a file, enabled = false leaves a relation out."
            )
        check_choices(self, self.as_, self.CHOICES)

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the output, as JSON values for the manifest."""
        left_out = _PLACES | {"model", "worker_memory_bytes", "as_"}
        return {"as": self.as_} | {name: value for name, value in asdict(self).items() if name not in left_out}


@dataclass(frozen=True, slots=True)
class AmberJobOptions:
    """Inputs and options of the job."""

    CHOICES: ClassVar[Choices] = AMBER_CHOICES

    kb: Release
    """Release of pages, built with the Wikidata items of its pages."""
    wikidata: Release
    """Release of Wikidata made by kbsource wikidata."""
    pageviews: Release
    """Release of page views made by kbsource pageviews."""
    _: KW_ONLY
    output: Output
    collection: Words = ()
    """Collections of types to make sets for; by default all."""
    types: File | None = None
    """JSON or YAML file with types, properties and templates; by default the package's own, human and nonhuman."""
    as_: TakenAs | None = None
    min_views: AtLeast1 = 5
    """Minimum number of page views of an entity."""
    deprecated: Literal["keep", "drop"] = "keep"
    """Keep or drop deprecated statements."""
    rules: Annotated[AmberOptions, FLAT] = AmberOptions()
    verify: Annotated[ModelOptions | None, FLAT] = None
    """The model that judges every tuple; None for no model."""
    accept: Rule | None = None
    """Rule for accepting tuples whose page names a value: "bleu>=0.3", "entailment>=0.5"; see kbsource map."""

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and for a rule that needs a model if there is
        none."""
        check_options(self)
        signals = read_rule(self.accept).signals() if self.accept is not None else frozenset()
        if self.verify is None and (unknown := sorted(signals - {"bleu"})):
            raise SetupError(f"--accept {self.accept!r}: {', '.join(unknown)} is only known with --model MODEL.")
        check_choices(self, self.as_, self.CHOICES)

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the output, as JSON values for the manifest."""
        left_out = _PLACES | {"verify", "as_"}
        return {"as": self.as_} | {name: value for name, value in asdict(self).items() if name not in left_out}


@dataclass(frozen=True, slots=True)
class EntityLinkingOptions(Checked):
    """Inputs and options of entity-linking data."""

    kb: Release
    """Folder of a release of pages."""
    _: KW_ONLY
    output: Output
    train: AtLeast0 = 9_000_000
    """Maximum number of records in train."""
    dev: AtLeast0 = 10_000
    """Number of records in dev, which come from other pages than train."""
    context: Annotated[ContextOptions, FLAT] = ContextOptions()
    exclude: File | None = None
    """File of pages whose links are not used, such as the pages of an evaluation: one title or page id per line."""
    seed: Name = "kilt"
    """Seed of the random draws."""

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the data, as JSON values for the manifest."""
        return {"train": self.train, "dev": self.dev, "seed": self.seed, **asdict(self.context)}
