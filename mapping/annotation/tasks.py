"""Annotation tasks in the formats of annotation tools, import of the answers, and agreement.

Every folder of tasks contains the content that annotators see, in a ``TaskForm``, and hidden files that state what each
task is about.

Sources: Cohen (1960) and Fleiss (1971) for agreement.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args
from xml.sax.saxutils import quoteattr

import msgspec
import orjson
from cyclopts import Parameter

from kbsource.columns import schema_of
from kbsource.errors import DataError, RecordError, shown_value
from kbsource.files import Folder, join
from kbsource.records import BadRecord
from kbsource.release.kind import CardText, ListingKind
from kbsource.release.layout import check_output
from kbsource.release.manifest import (
    DAMAGED,
    FileEntry,
    ListingManifest,
    SourceFacts,
    code_facts,
    counts_shape,
    input_files,
    shape,
)
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import check_hashes
from kbsource.release.writer import write_lines, write_rejected
from mapping.options import AtLeast1, Checked, Language, Name, Share
from mapping.passages.forms import json_line
from mapping.sources.campaign import judgement_rows
from mapping.sources.raw_records import Json, check_shape

TaskForm = Literal["jsonl", "csv", "label-studio"]
"""One JSON object per line; one row per task, with empty columns for the answers; tasks for Label Studio's import."""


def task_names(name: str, form: TaskForm) -> tuple[str, ...]:
    """Returns the file names for a form.

    >>> task_names("tasks", "label-studio")
    ('tasks.json', 'tasks.xml')
    """
    return {"jsonl": (f"{name}.jsonl",), "csv": (f"{name}.csv",)}.get(form, (f"{name}.json", f"{name}.xml"))


def tasks_kind(
    name: str,
    format: str,
    made_by: str,
    *,
    card: CardText,
    sheet: str,
    hidden: Sequence[str],
    records: Mapping[str, type[Any]],
) -> ListingKind:
    """Returns the kind of a folder of tasks: a sheet in any form, and files that are hidden from annotators."""
    shown = (file for form in get_args(TaskForm) for file in task_names(sheet, form))
    facts = shape("facts", qampari=SourceFacts)
    return ListingKind(
        name=name,
        format=format,
        made_by=made_by,
        card=card,
        tables={},
        files=(*shown, *hidden),
        facts=facts,
        records=records,
    )


N_ANNOTATIONS = 3
"""People who judge each passage. Source: Petroni et al., KILT (2021), section 4."""
STUDY = "pages"
"""Subject of the tasks of a study, as recorded in the manifest."""
N_PAGES = 3
"""Pages that are shown with each query of a study."""
TASKS, PASSAGES, KEY, JUDGEMENTS = "tasks", "passages.jsonl", "key.jsonl", "judgements.jsonl"
_PASSAGE = shape("passage", passage_id=str, wikipedia_id=str, wikipedia_title=str, text=str)
_KEY_LINE = shape(
    "key",
    # for a passage of a campaign
    question_id=str,
    passage_id=str,
    answers=list[str],
    is_gold=bool,
    # for a query of a study
    query_id=str,
    page_ids=Annotated[list[str], msgspec.Meta(min_length=N_PAGES, max_length=N_PAGES)],
    gold=Annotated[int, msgspec.Meta(ge=0, lt=N_PAGES)],
    is_head=bool,
)
_JUDGEMENT = shape(
    "judgement",
    question_id=str,
    passage_id=str,
    query_id=str,
    page_id=str | None,
    worker_id=str,
    label=str,
    highlight=str,
    free_text=str,
    other_passage=str,
)
CAMPAIGN_TASKS = tasks_kind(
    "folder of tasks of a campaign",
    "kbsource-campaign-tasks-1",
    "kbsource campaign tasks",
    card=CardText(
        title="Tasks of an annotation campaign",
        summary="Questions and passages, in the form shown to annotators.",
        holds=("wikipedia", "dataset"),
        tags=("wikipedia",),
    ),
    sheet=TASKS,
    hidden=(PASSAGES, KEY),
    records={PASSAGES: _PASSAGE, KEY: _KEY_LINE},
)
CAMPAIGN = ListingKind(
    name="campaign",
    format="kbsource-campaign-1",
    facts=shape("facts", tasks=SourceFacts, counts=counts_shape("rejected")),
    made_by="kbsource campaign import",
    card=CardText(
        title="Judgements of an annotation campaign",
        summary="Annotators' judgements on whether passages contain the answer to a question.",
        holds=("wikipedia", "dataset"),
        tags=("wikipedia",),
    ),
    shown_by=(("rejected", "key"),),
    tables={"rejected": schema_of(BadRecord)},
    files=(JUDGEMENTS, PASSAGES, KEY),
    records={JUDGEMENTS: _JUDGEMENT, PASSAGES: _PASSAGE, KEY: _KEY_LINE},
)

VALIDATION, VALIDATION_KEY, PARAPHRASE = "validation", "validation_key.jsonl", "paraphrase.jsonl"
PARAPHRASE_CHECK, INSTRUCTIONS = "paraphrase_check.jsonl", "instructions.txt"
EXTENDED, EXTENDED_KEY, FILTER_KEY = "extended", "extended_key.jsonl", "filter_key.jsonl"
_Place = Annotated[int, msgspec.Meta(ge=0)]
_AnswerId = Annotated[str, msgspec.Meta(pattern="^.+__[0-9]{1,9}$")]
CROWD_TASKS = tasks_kind(
    "folder of tasks",
    "kbsource-qampari-tasks-1",
    "kbsource qampari-tasks export",
    card=CardText(
        title="Tasks of annotators for questions with many answers",
        summary="Questions and proofs of a QAMPARI release, in the form shown to annotators.",
        holds=("wikipedia", "wikidata"),
        tags=("wikipedia", "QAMPARI"),
    ),
    sheet=VALIDATION,
    hidden=(
        VALIDATION_KEY,
        PARAPHRASE,
        PARAPHRASE_CHECK,
        INSTRUCTIONS,
        EXTENDED_KEY,
        FILTER_KEY,
        f"{EXTENDED}.jsonl",
        f"{EXTENDED}.csv",
    ),
    records={
        VALIDATION_KEY: shape("key", task_id=str, qid=str, aid=_AnswerId, is_wrong=bool, subset=str, key=str),
        PARAPHRASE: shape("paraphrase", qid=str, question_text=str),
        EXTENDED_KEY: shape("key", qid=str, names=list[str]),
        FILTER_KEY: shape("key", task_id=str, premise=str, hypothesis=str, sentence_char=_Place),
    },
)


@dataclass(frozen=True, slots=True)
class CandidateOptions(Checked):
    """Options of the selection of passages."""

    per_question: AtLeast1 = 4
    """Number of passages per question."""
    least_overlap: Share = 0.1
    """Minimum share of the tokens of a gold answer that a passage must contain."""
    language: Annotated[Language, Parameter("--lang")] = "en"
    """Language whose stop words are not counted as tokens."""
    stop_words: Annotated[bool, Parameter("--count-stop-words")] = False
    """Count stop words too."""
    with_gold: bool = False
    """Include the passage of the gold provenance, to find annotators who do not read; needs --kb."""
    seed: Name = "kilt"
    """Seed for the order of the passages shown."""


Reject = Callable[[BadRecord], None]
T = TypeVar("T")
ANSWER_COLUMNS = ("worker_id", "label", "highlight", "free_text")


@dataclass(frozen=True, slots=True)
class TaskSheet:
    """The fields that annotators see, and the answers that they can give."""

    name: str  # name of the file, without its suffix
    question: str  # the question to annotators
    shown: Sequence[str]  # fields shown above the text
    text: str  # field whose text they may highlight
    labels: Sequence[str]  # the answers from which annotators choose
    further: Sequence[str] = ()  # further text fields, besides ``free_text``
    answer_columns: Sequence[str] = ANSWER_COLUMNS  # columns of a CSV for their answers
    help: str = ""  # short instructions, shown with each task


def write_tasks(
    tasks: Iterable[Mapping[str, Any]], sheet: TaskSheet, form: TaskForm, *, output: str
) -> list[FileEntry]:
    """Writes tasks into a folder; returns the entries of the files. In forms other than JSON Lines, a list becomes one
    text with one line per element."""
    names = task_names(sheet.name, form)
    if form == "jsonl":
        lines = (orjson.dumps(task, option=orjson.OPT_APPEND_NEWLINE) for task in tasks)
        return [write_lines(lines, names[0], output=output)]
    flat = ({name: _flat(value) for name, value in task.items()} for task in tasks)
    if form == "csv":
        return [write_lines(_csv_lines(flat, (*sheet.answer_columns, *sheet.further)), names[0], output=output)]
    return [
        write_lines(_json_array(flat), names[0], output=output),
        write_lines(io.BytesIO(_interface(sheet).encode()), names[1], output=output),
    ]


def _flat(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return "\n".join(" ".join(part.values()) if isinstance(part, dict) else str(part) for part in value)


def _csv_lines(tasks: Iterable[dict[str, Any]], columns: Sequence[str]) -> Iterator[bytes]:
    """Writes a CSV line by line. A row whose cells contain line breaks is several lines, since ``verify`` counts line
    breaks."""
    for number, task in enumerate(tasks):
        if number == 0:
            yield _csv_line([*task, *columns])
        yield from io.BytesIO(_csv_line([*task.values(), *("" for _ in columns)]))


def _csv_line(values: Iterable[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode()


def _json_array(tasks: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    before = b"[\n"
    for task in tasks:
        yield before + orjson.dumps({"data": task})
        before = b",\n"
    yield b"\n]\n" if before == b",\n" else b"[]\n"


def _interface(sheet: TaskSheet) -> str:
    """Returns the labelling interface. Source: https://labelstud.io/tags, seen November 2026."""
    shown = "".join(f'  <Text name={quoteattr(name)} value="${name}"/>\n' for name in sheet.shown)
    choices = "".join(f"    <Choice value={quoteattr(label)}/>\n" for label in sheet.labels)
    further = "".join(
        f'  <TextArea name={quoteattr(name)} toName="text" placeholder={quoteattr(name.replace("_", " "))}/>\n'
        for name in sheet.further
    )
    hint = f'  <Text name="help" value={quoteattr(sheet.help)}/>\n' if sheet.help else ""
    return (
        f"<View>\n  <Header value={quoteattr(sheet.question)}/>\n{hint}{shown}"
        '  <Labels name="highlight" toName="text">\n    <Label value="evidence"/>\n  </Labels>\n'
        f'  <Text name="text" value="${sheet.text}"/>\n'
        f'  <Choices name="label" toName="text" choice="single" required="true">\n{choices}  </Choices>\n'
        f'  <TextArea name="free_text" toName="text"/>\n{further}</View>\n'
    )


def write_task_folder(
    kind: ListingKind,
    tasks: Iterable[Mapping[str, Any]],
    sheet: TaskSheet,
    form: TaskForm,
    *,
    hidden: Mapping[str, Iterable[bytes]],
    facts: Mapping[str, Any],
    output: str,
) -> None:
    """Writes tasks, the hidden files and the manifest into an empty folder.

    The ``facts`` of the manifest are read last, after all tasks have been written.
    """
    with ReleaseFolder(output, kind=kind):
        files = write_tasks(tasks, sheet, form, output=output)
        files += [write_lines(lines, name, output=output) for name, lines in hidden.items()]
        commit(kind, kind.listing(files, {**facts, "code": code_facts()}), output)


def checked_folder(kind: ListingKind, folder: str) -> ListingManifest:
    """Returns the manifest of a folder of tasks, or of a campaign.

    Raises:
        SetupError: the folder is not of the expected kind, or was changed after it was written.
    """
    manifest = kind.read(folder)
    check_hashes(folder, manifest.entries())
    return manifest


def is_study(manifest: ListingManifest) -> bool:
    """Returns whether tasks, or a campaign, are a study of pages; all others are about passages."""
    return bool(option_of(manifest, "about") == STUDY)


def option_of(manifest: ListingManifest, name: str) -> Any:
    """Returns the value of an option that tasks were made with; None if the manifest does not have it."""
    options = manifest.facts.get("options")
    return options.get(name) if isinstance(options, dict) else None


def passage_texts(kind: ListingKind, folder: str, manifest: ListingManifest) -> dict[str, str]:
    """Returns the texts of the passages, or pages, that tasks are about, by id."""
    return {line["passage_id"]: line["text"] for line in kind.lines(folder, manifest, PASSAGES)}


def named_in(known: Mapping[str, T], name: str, folder: str, what: str) -> T:
    """Returns the entry with an id that another file of the folder names.

    Raises:
        DataError: there is no such entry.
    """
    if name not in known:
        raise DataError(f"{folder}: one of its files names {what} {shown_value(name)}, which is missing; {DAMAGED}")
    return known[name]


def copy_lines(tasks: str, names: Sequence[str], *, output: str) -> Iterator[FileEntry]:
    """Copies files of a folder of tasks into another folder; yields their entries."""
    for name in names:
        with Folder.of(join(tasks, name)).open() as file:
            yield write_lines(file, name, output=output)


def highlight_span(highlight: str, text: str) -> tuple[int, int]:
    """Returns the first and one past the last code point of a highlight in its passage, ignoring changes of white
    space.

    Raises:
        RecordError: ``highlight_not_found``.

    >>> highlight_span("a  lake", "It is a lake.")
    (6, 12)
    """
    pattern = r"\s+".join(map(re.escape, highlight.split()))
    found = re.search(pattern, text) or re.search(pattern, text, re.IGNORECASE)
    if found is None:
        raise RecordError("highlight_not_found", f"{highlight[:80]!r} is not in the passage")
    return found.span()


def read_annotations(
    paths: Sequence[str],
    read: Callable[[Json], T | None],
    *,
    fits: Callable[[Json], bool],
    expected: str,
    stage: str,
    reject: Reject,
) -> Iterator[T]:
    """Returns an iterator over the annotators' answers in files of any form: JSON Lines, CSV or Label Studio exports,
    plain or compressed.

    ``read`` returns the answer in a record, or None. At least one of the first records of a file must satisfy
    ``fits``.

    Raises:
        SetupError: a file cannot be read, or is not of the expected kind; raised before the first record.
    """
    for path in paths:
        check_shape(path, judgement_rows(path), fits, expected=expected)

    def answers() -> Iterator[T]:
        for raw in (raw for path in paths for raw in judgement_rows(path)):
            with raw.rejecting(reject, stage=stage):
                if (found := read(raw.parse())) is not None:
                    yield found

    return answers()


MIN_COMMON = 10
"""Minimum number of passages that two annotators must both have judged for their kappa to count."""

Labels = Mapping[str, Mapping[str, bool]]
"""The label of each annotator, by passage: whether the passage suffices to answer the question."""


def import_annotations(
    tasks: str,
    manifest: ListingManifest,
    files: Sequence[str],
    output: str,
    *,
    id_name: str,
    row: Callable[[Json], dict[str, Any]],
    expected: str,
    options: Mapping[str, Any],
) -> dict[str, int]:
    """Writes the annotators' answers to the tasks of a campaign into an empty folder; returns their number.

    Rows of a sheet without a label are incomplete; they are counted as ``unanswered``.

    Args:
        manifest: of the folder of tasks.
        id_name: key in every record that identifies its task.
        row: returns the values to keep of a record with a label; raises RecordError.
        expected: the expected contents of the files, for errors.

    Raises:
        SetupError: a file is not of the expected kind, or ``output`` is not empty.
    """
    check_output(output)
    counts: Counter[str] = Counter(judgements=0, unanswered=0)
    rejected: list[BadRecord] = []

    def line(record: Json) -> bytes | None:
        is_answered = bool(record.get("label")) or id_name not in record
        kept = row(record) if is_answered else None
        counts["judgements" if is_answered else "unanswered"] += 1
        return None if kept is None else json_line(kept)

    lines = read_annotations(
        files,
        line,
        fits=lambda record: id_name in record,
        expected=expected,
        stage="judgement",
        reject=rejected.append,
    )
    with ReleaseFolder(output, kind=CAMPAIGN):
        entries = [write_lines(lines, JUDGEMENTS, output=output), *copy_lines(tasks, (PASSAGES, KEY), output=output)]
        entries.append(write_rejected(rejected, output=output))
        counts["rejected"] = len(rejected)
        facts = {
            "tasks": {"manifest_sha256": manifest.sha256},
            "inputs": [asdict(file) for file in input_files(files)],
            "options": {**options},
            "counts": dict(counts),
            "code": code_facts(),
        }
        commit(CAMPAIGN, CAMPAIGN.listing(entries, facts), output)
    return dict(counts)


class PairKappa(NamedTuple):
    """The agreement of two annotators."""

    first: str  # names of the two annotators, in alphabetical order
    second: str
    n_common: int  # passages that both judged
    kappa: float | None  # Cohen's; None for fewer than ``MIN_COMMON`` passages


def pair_kappas(labels: Labels) -> list[PairKappa]:
    """Returns the agreement of every two annotators with a passage in common, in alphabetical order."""
    common: defaultdict[tuple[str, str], list[tuple[bool, bool]]] = defaultdict(list)
    for said in labels.values():
        for first, second in combinations(sorted(said), 2):
            common[first, second].append((said[first], said[second]))
    return [
        PairKappa(*pair, len(both), cohen_kappa(both) if len(both) >= MIN_COMMON else None)
        for pair, both in sorted(common.items())
    ]


def cohen_kappa(both: list[tuple[bool, bool]]) -> float:
    """Returns Cohen's kappa of two annotators' labels; 1 if both always use the same single label.

    >>> round(cohen_kappa([(True, True), (True, False), (False, False), (False, False)]), 3)
    0.5
    """
    n = len(both)
    observed = sum(first == second for first, second in both) / n
    firsts, seconds = (sum(column) / n for column in zip(*both, strict=True))
    return _kappa(observed, firsts * seconds + (1 - firsts) * (1 - seconds))


def mean_kappa(pairs: list[PairKappa]) -> float | None:
    """Returns the mean over the pairs that count; None without such pairs."""
    kappas = [pair.kappa for pair in pairs if pair.kappa is not None]
    return sum(kappas) / len(kappas) if kappas else None


def fleiss_kappa(labels: Labels) -> float | None:
    """Returns Fleiss' kappa over the passages with at least two judgements; None without such passages.

    Source: Fleiss (1971), using the number of judgements of each passage instead of a fixed number.
    """
    counts = [(sum(said.values()), len(said)) for said in labels.values() if len(said) > 1]
    if not counts:
        return None
    agreed = [(yes * (yes - 1) + (n - yes) * (n - yes - 1)) / (n * (n - 1)) for yes, n in counts]
    share = sum(yes for yes, _ in counts) / sum(n for _, n in counts)
    return _kappa(sum(agreed) / len(agreed), share * share + (1 - share) * (1 - share))


def _kappa(observed: float, expected: float) -> float:
    return 1.0 if expected == 1 else (observed - expected) / (1 - expected)
