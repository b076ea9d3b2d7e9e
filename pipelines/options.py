"""Options of each job: plain values, their bounds and their meanings."""

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
"""Where things are, which does not decide a byte."""


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


Output = Annotated[FolderPath, Parameter(help="New folder of what is made, or one left by a run that was killed.")]
Memory = Annotated[
    int,
    Parameter(
        "--worker-memory",
        metavar="MB",
        help="Most memory that one working process may allocate.",
        converter=_mebibytes,
        validator=_enough,
        show_default=lambda n_bytes: str(n_bytes // _MEBIBYTE),
    ),
]
RangeBytes = Annotated[
    AtLeast1 | None,
    Parameter(
        "--range-bytes",
        help="Bytes of the pieces that the dump is read in; by default 1 to 32 MiB, by the size of the dump.",
    ),
]
Truncated = Annotated[bool, Parameter("--allow-truncated", help="Take what can be read of a dump that breaks off.")]
TakenAs = Annotated[
    As,
    Parameter(
        "--as",
        help="Take the choices of the paper, or of the code and files that its authors released, for all options on "
        "which these differ from each other or from the defaults.",
    ),
]
USUAL_MEMORY = 4 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(Checked):
    """Where a job runs; any other option goes to Beam as it is."""

    runner: Name = "local"
    """local: one worker; local-multi: one a core; spark, flink, dataflow: a cluster, see docs/running.md; or a runner
    of Beam."""
    workers: Threads | None = None
    """Workers for local-multi; by default one per core."""
    dry_run: bool = False
    """Look at all that the job reads and where it writes, put its pipeline together, say how large it is, and stop."""
    beam_args: Annotated[tuple[str, ...], Parameter(parse=False)] = ()

    def flags(self) -> list[str]:
        """The flags of Beam that all this stands for."""
        from pipelines.runners.presets import beam_flags

        # So told, Beam asks nothing of the cloud when it looks at its options.
        beam_args = (*self.beam_args, "--dry_run=True") if self.dry_run else self.beam_args
        return beam_flags(self.runner, workers=self.workers, beam_args=beam_args)


@dataclass(frozen=True, slots=True)
class BuildOptions(Checked):
    """What is built, and how."""

    dump: Annotated[Files, Parameter(metavar="DUMP")]
    """Files of one dump, or patterns; quote patterns."""
    _: KW_ONLY
    output: Output
    page_props: File | None = None
    """page_props.sql.gz of the same date: Wikidata items, disambiguation."""
    wikidata: Release | None = None
    """Release that kbsource wikidata made: items by sitelink, with labels, descriptions and aliases."""
    siteinfo: File | None = None
    """siteinfo as JSON from the wiki's API: aliases of namespaces."""
    only_titles: File | None = None
    """Only the articles whose titles the file lists, one a line, and the redirects that lead to them."""
    limit_pages: AtLeast1 | None = None
    """Only the first N pages of the dump, of all namespaces."""
    as_of: Annotated[
        str | None,
        Parameter(metavar="TIME", validator=Like(_TIME, "2019-08-01T00:00:00Z")),
    ] = None
    """Of each page the newest revision not after TIME, like 2019-08-01T00:00:00Z."""
    templates: Literal["definitions", "lua", "rules"] = "definitions"
    """What shows a template that no rule knows: its own definition in the dump, that with the Lua modules that it calls
    (needs kbsource[lua]), or nothing."""
    references: bool = False
    """Tables of references and of their places in the text; a build takes about 1.6 times as long."""
    traces: bool = False
    """Tables of what each page was made from, so that the release can be the base of a later build."""
    base: Release | None = None
    """Release with traces, of an earlier dump: pages that would be made into the same again are taken over. The same
    bytes come, in less time."""
    max_rejects: Share = 0.001
    """Highest share of the pages that may be rejected."""
    max_fallbacks: Share = 0.001
    """Highest share of the articles that may fall back to the simplest extraction, because the parser failed; ten may
    always."""
    allow_truncated: Truncated = False
    page_timeout_s: Annotated[Seconds, Parameter("--page-timeout")] = 60.0
    """Longest time for one page, which is then extracted in a simpler way."""
    worker_memory_bytes: Memory = USUAL_MEMORY
    range_bytes: RangeBytes = None
    parser: Annotated[str, Parameter(parse=False)] = "kbsource.pages.articles:PageParser"
    """``module:class`` of what parses pages, made with the site and, where they are used, the definitions."""

    def data_options(self) -> dict[str, Any]:
        """The options that decide the bytes of the release, as JSON values for the manifest."""
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
    """What the release of Wikidata is made of. Of ``sites`` and ``qualifiers`` None is all."""

    dump: Annotated[Files, Parameter(metavar="DUMP")]
    """JSON dump (.json.bz2, .json.gz, .json, .ndjson), one entity a line; files or patterns."""
    _: KW_ONLY
    output: Output
    languages: Annotated[Words, Parameter(validator=Like("[a-z]{2,}(?:-[a-z0-9]+)*", "en,de"))] = ("en",)
    """Languages of labels, descriptions and aliases, the preferred one first; their variants and mul come with them."""
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
    """Wikis whose sitelinks are kept, like enwiki,dewiki, or all (the default)."""
    qualifiers: Annotated[
        Words | None,
        Parameter(
            converter=_qualifiers, validator=Like("P[1-9][0-9]*", "P580,P582, or all, or none"), show_default=False
        ),
    ] = NEEDED_QUALIFIERS
    """Properties of the qualifiers that are kept, like P580,P582, or all, or none; by default those of time, role and
    certainty."""
    max_rejects: Share = 0.001
    """Highest share of the lines that may be rejected."""
    allow_truncated: Truncated = False
    worker_memory_bytes: Memory = USUAL_MEMORY
    range_bytes: RangeBytes = None

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options`` and for no language."""
        check_options(self)
        if not self.languages:
            raise SetupError("--languages is empty; give at least one, like en.")

    def data_options(self) -> dict[str, Any]:
        """The options that decide the bytes of the release, as JSON values for the manifest."""
        values = {name: value for name, value in asdict(self).items() if name not in _PLACES}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class PageviewsOptions(Checked):
    """Which page views are summed."""

    input: Annotated[Files, Parameter(metavar="VIEWS")]
    """Files of page views (.bz2, .gz or plain), pageview_complete or pagecounts, or patterns."""
    _: KW_ONLY
    output: Output
    site: Annotated[Name, Parameter(validator=Like("[a-z][a-z0-9_]*wiki", "enwiki"))] = "enwiki"
    """Wikipedia whose views are taken."""
    all_access: bool = False
    """Of pagecounts, take the mobile site and hourly files too (en, en.m, en.m.z, en.zero); else en.z alone, as the
    authors of AmbER."""
    max_rejects: Share = 0.001
    """Highest share of the lines that may be rejected."""
    allow_truncated: Truncated = False
    range_bytes: RangeBytes = None

    def data_options(self) -> dict[str, Any]:
        """The options that decide the bytes of the release, as JSON values for the manifest."""
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
    """How alignments are verified by an NLI model."""

    model: Annotated[ModelOptions, FLAT]
    hypothesis: HypothesisKind | None = None
    """What the model judges; by default what goes with the dataset."""
    rescue_sentences: Annotated[AtLeast0, Parameter("--rescue")] = 0
    """Where BLEU is weak, take the sentence of the page that the model finds most likely to say it, of the N that share
    most of its words; 100 is a good number, 0 is for none."""


@dataclass(frozen=True, slots=True)
class AlignOptions:
    """How the evidence of any dataset is found again."""

    kb: Release
    """Folder of the release."""
    _: KW_ONLY
    inputs: Annotated[Files, Parameter("--input")]
    """Files of the dataset, in order; .gz and .bz2 too."""
    output: Output
    split: Split | None = None
    """Rules that records are filtered by; by default as the files' names say, else dev."""
    threshold: Bleu = THRESHOLD
    """Lowest score that is kept."""
    max_elements: AtLeast1 = 1
    """Paragraphs a span may cross."""
    title_map: File | None = None
    """Known moves: a line each, old title, tab, new title or page id."""
    accept_fuzzy: Annotated[float | None, Parameter(metavar="SCORE", validator=Number(gte=60, lte=100))] = None
    """Take the most similar title for a missing one, from 60 to 100."""
    numbering: Numbering = "kilt"
    """Of paragraphs."""
    strips_section: Annotated[bool, Parameter("--strip-section")] = False
    """Section without the newline at its end."""
    stem: Annotated[Name | None, Parameter(validator=name_like)] = None
    """Begins the name of the file that is written; by default the dataset's."""
    max_rejects: Share = 0.01
    """Highest share of the records that may be rejected."""
    worker_memory_bytes: Memory = USUAL_MEMORY
    chunk_records: AtLeast1 = 5_000
    """Records of a file of a table."""
    evidence_timeout_s: Annotated[Seconds, Parameter("--evidence-timeout")] = 60.0
    """Longest time for one piece of evidence, which is then tried once more and given up."""
    verify: Annotated[VerifyOptions | None, FLAT] = None
    accept: Rule | None = None
    """Spans that are kept, in place of --threshold: "bleu>=0.5", "bleu>=0.5 and entailment>=0.5"; signals bleu,
    entailment, neutral, contradiction, with and, or, not and brackets."""
    scratch: FolderPath | None = None
    """Folder for temporary indexes; by default the system's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapOptions(AlignOptions):
    """What is aligned, and how: a dataset of ``mapping.sources.all_sources()``, with what is its own."""

    dataset: str
    split: Split
    references: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    source: SourceOptions | None = None

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for options that do not go together."""
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
                "--rescue names sentences whose BLEU is low, so a rule must take them: "
                '--accept "bleu>=0.5 or entailment>=0.9"'
            )

    @property
    def choices(self) -> SourceOptions:
        """Choices of the dataset's reader; the usual ones where none were made."""
        return self.source or all_sources()[self.dataset].options_type()

    def data_options(self) -> dict[str, Any]:
        """The options that decide the bytes, as JSON values for the manifest."""
        values: dict[str, Any] = {name: getattr(self, name) for name in _DECIDING}
        if self.accept is not None:
            values["accept"] = self.accept
        if self.verify is not None:
            values["verify"] = asdict(self.verify)
            del values["verify"]["model"]
        return {**values, "source": asdict(self.choices), "title_map": self.title_map is not None}


@dataclass(frozen=True, slots=True)
class AgeOptions(Checked):
    """Which evidence is looked for in which releases."""

    releases: Releases
    """Folders of releases of one wiki, of different dates."""
    _: KW_ONLY
    inputs: Annotated[Files, Parameter("--input")]
    """Datasets in KILT's form, a file each; .gz and .bz2 too."""
    output: Output
    from_kb: Annotated[FolderPath | None, Parameter(metavar="PATH")] = None
    """Release or kilt_knowledgesource.json that the datasets were made for, whose places their evidence names; without,
    their evidence must have texts of its own."""
    threshold: Bleu = THRESHOLD
    """Lowest score of a text that still stands."""
    max_rejects: Share = 0.01
    """Highest share of the records of a dataset that may be rejected."""
    worker_memory_bytes: Memory = USUAL_MEMORY
    evidence_timeout_s: Annotated[Seconds, Parameter("--evidence-timeout")] = 60.0
    """Longest time for one piece of evidence, which is then tried once more and given up."""

    def data_options(self) -> dict[str, Any]:
        """The options that decide the bytes, as JSON values for the manifest."""
        return {"threshold": self.threshold}


@dataclass(frozen=True, slots=True)
class FactsOptions(Checked):
    """What is compared, and how answers are proved."""

    old: Release
    """Older release of pages, built with the items of its pages."""
    new: Release
    """Newer release of the same wiki."""
    _: KW_ONLY
    wikidata: Annotated[
        tuple[str, ...],
        Parameter(metavar="OLD NEW", n_tokens=2, converter=releases_named, validator=(path_like, _two)),
    ]
    """Releases of Wikidata of the two days, the older one first."""
    output: Output
    model: Annotated[ModelOptions | None, FLAT] = None
    """None: the sentence that is most like the statement is the proof."""
    least_entailment: Annotated[float, Parameter(metavar="P", validator=Number(gte=0, lt=1))] = 0.5
    """A sentence proves an answer when its probability of entailment is above this; for a model."""
    sentences_before: AtLeast0 = N_BEFORE
    """Sentences of the same paragraph that a proof begins with."""
    questions: File | None = None
    """All questions, by property, TOML; by default those of the package."""

    def data_options(self) -> dict[str, Any]:
        """The options that decide the bytes, as JSON values for the manifest."""
        return {"least_entailment": self.least_entailment, "sentences_before": self.sentences_before}


class Planned(NamedTuple):
    """One alignment of many."""

    name: str  # of the dataset
    options: MapOptions  # its ``output`` is ``name/split`` below the folder of all
    where: str  # where it was asked for, for messages

    @property
    def folder(self) -> str:
        """Folder of the alignment, relative to that of all."""
        return f"{self.name}/{self.options.split}"


@dataclass(frozen=True, slots=True)
class PassagesOptions:
    """Which corpus is made."""

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
            help="Write the passages in this form too; may be given several times. "
            + "; ".join(f"{name}: {form.meaning}" for name, form in FORMS.items()),
        ),
    ] = ()
    base: Release | None = None
    """Passages of an earlier release, cut in the same way: those of pages with the same title and text are taken over.
    The same bytes come, in less time."""
    base_kb: Release | None = None
    """The release that these are of."""
    worker_memory_bytes: Memory = USUAL_MEMORY

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, for a form that is given twice and one that the unit rules out."""
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

    def data_options(self) -> dict[str, Any]:
        """The options that decide the bytes of the corpus, as JSON values for the manifest."""
        return {**asdict(self.cut), "formats": sorted(self.formats)}


@dataclass(frozen=True, slots=True)
class VectorsOptions(Checked):
    """Which vectors are made."""

    passages: Release
    """Passages, as kbsource passages makes them."""
    _: KW_ONLY
    encoder: Annotated[EncoderOptions, FLAT]
    output: Output
    query_model: File | None = None
    """Folder of an encoder for queries, such as DPR's for questions, trained together with that of passages; by default
    one encoder reads both."""
    precision: VectorPrecision = "float16"
    """Of the numbers of a vector: float16; int8, half as large; or bits, a sixteenth."""
    base: Release | None = None
    """Vectors of earlier passages by the same encoder: those of passages whose title and text are there are taken over.
    The same bytes come, in less time."""
    base_passages: Release | None = None
    """The passages that these are of."""


@dataclass(frozen=True, slots=True)
class CheckSourcesOptions(Checked):
    """Whose sources are judged, and by which model."""

    kb: Release
    """Release of pages, built with --references."""
    _: KW_ONLY
    output: NewFile
    """JSON Lines, an object a use of a reference; appears when it is complete."""
    model: Annotated[UsualModelOptions, FLAT] = UsualModelOptions()


@dataclass(frozen=True, slots=True)
class RerankOptions(Checked):
    """Which passages are put in a new order."""

    passages: Release
    """Passages, as kbsource passages makes them, whose index kbsource search made."""
    ranked: File
    """What was found in them: a run of TREC, predictions of KILT, or questions with ctxs; passages or pages, by their
    ids."""
    _: KW_ONLY
    queries: File
    """What was asked, as kbsource search takes it."""
    output: NewFile
    """The same in the new order; appears when it is complete."""
    reranker: Annotated[RerankerOptions, FLAT]
    index: FolderPath | None = None
    """Folder of the passages' index; by default PASSAGES-bm25, beside them."""
    form: FoundForm | None = None
    """kilt, trec or ctxs, as kbsource search has them."""


@dataclass(frozen=True, slots=True)
class ReadOptions(Checked):
    """What is read, by which model, and in which form."""

    questions: File
    """Records of KILT's form, AmbER sets, or questions of QAMPARI, JSON Lines; with ctxs, as kbsource qampari-contexts
    writes them, their own passages are read."""
    _: KW_ONLY
    output: NewFile
    """Predictions, as kbsource evaluate takes them; appears when it is complete."""
    reader: Annotated[ReaderOptions, FLAT]
    form: ReadForm | None = None
    """closed: the question alone; read: one prompt with as many passages as fit; fid: Fusion-in-Decoder, for seq2seq
    models; pig: each passage by itself, the answers united; best: each passage by itself, the most probable answer;
    rag-sequence and rag-token: each passage by itself, weighted by its score; extractive: a span of a passage;
    fact-checking: the class of a claim. By default as the model is made for: extractive, fact-checking, rag-sequence,
    rag-token, or read."""
    retrieved: File | None = None
    """Passages of the questions, as kbsource search writes them, with their texts."""
    passages_key: Annotated[Literal["ctxs", "positive_ctxs"], Parameter("--contexts")] = "ctxs"
    """Which passages of a question with passages are read where --retrieved has none: what was found, or the gold
    ones."""
    top: AtLeast1 = 20
    """Passages of a question at most."""
    prompt: File | None = None
    """Prompt of the form, TOML with prompt and passage; by default that of the package."""
    template_seed: Name | None = None
    """Ask for a slot by one of the record's template_questions, drawn by this seed and the record's id."""
    kb: Release | None = None
    """Release of pages: the provenance of a linked mention is the page that has the answer as its title, and
    --first-sentences are those of its pages."""
    redirects: bool = False
    """The answer to a linked mention may be the title of a redirect."""
    first_sentences: AtLeast1 | None = None
    """For fact-checking: read the first sentences, so many, of the pages of the passages, in place of these."""

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options`` and for options that do not go together."""
        check_options(self)
        if self.redirects and self.kb is None:
            raise SetupError("--redirects needs --kb, the release that has them.")
        if self.first_sentences is not None and self.kb is None:
            raise SetupError("--first-sentences needs --kb, the release that has the pages.")


@dataclass(frozen=True, slots=True)
class QampariOptions:
    """What is made, and how."""

    CHOICES: ClassVar[Choices] = QAMPARI_CHOICES

    kb: Release
    """Knowledge source, built with the items of its pages."""
    wikidata: Release
    """Release of Wikidata, see kbsource wikidata."""
    _: KW_ONLY
    output: Output
    model: Annotated[UsualModelOptions | None, FLAT] = UsualModelOptions()
    """None: the first candidate is the proof."""
    as_: TakenAs | None = None
    relations: File | None = None
    """Relations and their words, TOML; by default those of the package."""
    relation_list: RelationList = "corrected"
    """Relations of the package that are asked for: corrected: all but P275, whose released entry is a slip; paper:
    those of the table of its appendix; released: all of the released code."""
    least_entailment: Annotated[float, Parameter(metavar="P", validator=Number(gte=0, lt=1))] = LEAST_ENTAILMENT
    """A sentence proves a fact when its probability of entailment is above this."""
    sentences_before: AtLeast0 = N_BEFORE
    """Sentences of the same paragraph that a proof begins with."""
    most_subjects: AtLeast1 = MOST_SUBJECTS
    """Properties and values with more subjects are passed over."""
    composition_base: CompositionBase = "kept"
    """Simple queries that compositions are made of: kept: those that passed the filter; all: all that have enough
    answers, as the paper says it."""
    most_specific_types: bool = False
    """Of typed questions about one thing with the same answers keep the one with the most specific type."""
    all_proofs: bool = False
    """Of a value that several things have, the proofs of all of them."""
    has_tables: Annotated[bool, Parameter("--tables", negative="--no-tables")] = True
    """Make questions about the tables of list pages."""
    least_rows: AtLeast1 = LEAST_ROWS
    """Rows that a table needs."""
    table_rows: TableRows = "linked"
    """Rows of a table, of which --least-share must be proved: linked: those that link to a page, as the released code;
    all: all rows, as the paper."""
    key_rule: KeyRule = "any"
    """Columns of a table that the rule may find to be its key: any, or not-last, as the released code."""
    key_columns: File | None = None
    """Key columns of tables, JSON Lines of {title, table, column}; by default a rule finds them."""
    redirect_aliases: bool = False
    """Titles that lead to the page of a table's answer are aliases."""
    seed: Name = "qampari"
    """Of every draw."""
    answer_filter: Annotated[AnswerFilter, FLAT] = AnswerFilter()
    sizes: Annotated[SampleSizes, FLAT] = SampleSizes()
    mixed: Mixed = "train"
    """Intersections of a training with a test relation."""
    with_meta: bool = False
    """Give records a field meta: relations, items, probabilities, places."""
    is_released_case: Annotated[bool, Parameter("--released-case")] = False
    """Write proofs as the published files have them, each sentence in lower case but for its first letter."""
    is_released_wording: Annotated[bool, Parameter("--released-wording")] = False
    """Leave the verbs of compositions as the published questions have them: persons that works for X."""
    worker_memory_bytes: Memory = USUAL_MEMORY

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options`` and for options that do not go together."""
        check_options(self)
        if self.most_subjects < self.answer_filter.least:
            raise SetupError(f"--most-subjects is {self.most_subjects}; give at least {self.answer_filter.least}.")
        if self.relations is not None and self.relation_list != "corrected":
            raise SetupError(
                f"--relation-list {self.relation_list} is one of the package's lists, and --relations {self.relations} "
                "takes its place: leave one out. In a file, enabled = false leaves a relation out."
            )
        check_choices(self, self.as_, self.CHOICES)

    def data_options(self) -> dict[str, Any]:
        """The options that decide the bytes, as JSON values for the manifest."""
        left_out = _PLACES | {"model", "worker_memory_bytes", "as_"}
        return {"as": self.as_} | {name: value for name, value in asdict(self).items() if name not in left_out}


@dataclass(frozen=True, slots=True)
class AmberJobOptions:
    """What is made, and how."""

    CHOICES: ClassVar[Choices] = AMBER_CHOICES

    kb: Release
    """Knowledge source, built with the items of its pages."""
    wikidata: Release
    """Release of Wikidata, see kbsource wikidata."""
    pageviews: Release
    """Release of page views, see kbsource pageviews."""
    _: KW_ONLY
    output: Output
    collection: Words = ()
    """Collections of the types; by default all."""
    types: File | None = None
    """Types, properties and templates, JSON or YAML; by default those of the package, human and nonhuman."""
    as_: TakenAs | None = None
    min_views: AtLeast1 = 5
    """Page views that an entity needs."""
    deprecated: Literal["keep", "drop"] = "keep"
    """Deprecated statements."""
    rules: Annotated[AmberOptions, FLAT] = AmberOptions()
    verify: Annotated[ModelOptions | None, FLAT] = None
    """A model is asked about every tuple; None for none."""
    accept: Rule | None = None
    """Tuples that are kept of those whose page names a value: "bleu>=0.3", "entailment>=0.5"; as for kbsource map."""

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for a rule on what no model tells."""
        check_options(self)
        signals = read_rule(self.accept).signals() if self.accept is not None else frozenset()
        if self.verify is None and (unknown := sorted(signals - {"bleu"})):
            raise SetupError(f"--accept {self.accept!r}: {', '.join(unknown)} is only known with --model MODEL.")
        check_choices(self, self.as_, self.CHOICES)

    def data_options(self) -> dict[str, Any]:
        """The options that decide the bytes, as JSON values for the manifest."""
        left_out = _PLACES | {"verify", "as_"}
        return {"as": self.as_} | {name: value for name, value in asdict(self).items() if name not in left_out}


@dataclass(frozen=True, slots=True)
class EntityLinkingOptions(Checked):
    """Which data are made."""

    kb: Release
    """Folder of a release of pages."""
    _: KW_ONLY
    output: Output
    train: AtLeast0 = 9_000_000
    """Records of train; all that there are, where there are fewer."""
    dev: AtLeast0 = 10_000
    """Records of dev, from other pages."""
    context: Annotated[ContextOptions, FLAT] = ContextOptions()
    exclude: File | None = None
    """Pages whose links are not taken, a title or page id a line: those that an evaluation is about."""
    seed: Name = "kilt"
    """Names what is drawn at random."""

    def data_options(self) -> dict[str, Any]:
        """The options that decide the bytes of the data, as JSON values for the manifest."""
        return {"train": self.train, "dev": self.dev, "seed": self.seed, **asdict(self.context)}
