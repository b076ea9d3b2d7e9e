"""Commands that find a text in a page, check a KILT file, and have a model judge pairs of sentences."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from kbsource.errors import RecordError, SetupError, counted
from kbsource.files import Folder, base_name, is_local
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import ListingManifest
from mapping.decide import with_outcome
from mapping.entail.signal import UNJUDGED_REASONS, Pair, UnjudgedPair, UsualModelOptions, Verdict, answer_values
from mapping.options import FLAT, AtLeast1, Bleu, File, FileOrPipe, FolderPath, Release, Text, Title, check_ending
from mapping.records import Alignment, PageKey
from mapping.search.numbering import Numbering
from mapping.sources.own import TEXT_KEYS, evidence_text
from mapping.sources.raw_records import is_integer, iter_lines, only_known, parse_object, text_at
from mapping.write.kind import ALIGNMENT
from pipelines.commands.dumps import Run
from pipelines.options.check_sources import CheckSourcesOptions
from pipelines.options.shared import RunOptions
from pipelines.progress import Progress
from pipelines.terminal import Row, Summary, command_line, facts_table, on_one_line, show_line, text_width

if TYPE_CHECKING:
    from mapping.entail.model import CrossEncoder
    from mapping.search.page_search import Locator
    from mapping.write.validate import Validation

_KINDS = ("title", "url", "page_id", "qid")
_FORMS = {
    "url": (re.compile(r".*/.*"), "--url", "give an address, like https://en.wikipedia.org/wiki/Alan_Turing"),
    "page_id": (re.compile(r"[0-9]+"), "--id", "give a page id, a number like 1208; a title is for --title"),
    "qid": (re.compile(r"[Qq][0-9]+"), "--qid", "give a Wikidata item, like Q7251"),
}
"""For each kind of page name: its pattern, its option, and what to write instead."""
_SHOWN = ("outcome", "page_id", "title", "found_by", "hops", "section", "span", "text", "suggestions")
_MEANINGS = {
    "exact": "the page contains the text",
    "near": "the page contains a similar text",
    "sentence": "the wording differs, but a sentence of the page contains all names and most words of the text",
    "weak": "nothing in the page is similar enough; this is the most similar part",
    "page_only": "the page exists; no text was given",
    "page_missing": "the release has no such page",
    "page_ambiguous": "that is a disambiguation page",
    "empty_evidence": "there is no text to look for",
}


def locate(
    release: Release,
    text: Text | None = None,
    /,
    *,
    title: Annotated[Title | None, Parameter(metavar="TITLE")] = None,
    url: Annotated[Title | None, Parameter(metavar="URL")] = None,
    page_id: Annotated[Title | None, Parameter("--id", metavar="ID")] = None,
    qid: Annotated[Title | None, Parameter(metavar="QID")] = None,
    input: FileOrPipe | None = None,
    evidence: Text | None = None,
    max_elements: AtLeast1 = 1,
    threshold: Bleu = 0.5,
    numbering: Numbering = "elements",
    title_map: File | None = None,
) -> Summary:
    """Find a text in a page of a release.

    Searches a page for the span that best matches a text: first the exact text, then the same words, then the highest
    BLEU. If the best BLEU is below the threshold, it returns a sentence that contains all names in the text and most of
    its words, if the page has one. Exit code 1 if the page is missing or has no match.

    Args:
        release: Folder of a release of pages.
        text: The text to find; the same as --evidence.
        title: Title of the page; redirects are followed.
        url: URL of the page in its wiki.
        page_id: Page id, a number.
        qid: Wikidata item, like Q7251.
        input: File of many texts, instead of TEXT: JSON Lines with title, url, page_id or qid, and evidence (or text,
            or quote); - reads the standard input.
        evidence: The text to find; without it, only the page is looked up.
        max_elements: Maximum number of paragraphs or list items that a match may span.
        threshold: Minimum score of a similar text that counts as a match.
        numbering: How positions are counted, and which text is searched: the elements of the release, or the paragraphs
            that export-kilt writes.
        title_map: File of known page moves, one per line: old title, tab, new title or page id.

    Examples:
        kbsource locate releases/enwiki-20261001 --title "Abraham Lincoln" --evidence "Born in Hodgenville, Kentucky"
        kbsource locate releases/enwiki-20261001 --input evidences.jsonl
    """
    from mapping.search.page_search import Locator
    from mapping.search.resolve import read_moves

    named = {"title": title, "url": url, "page_id": page_id, "qid": qid}
    for kind, (form, flag, remedy) in _FORMS.items():
        if (value := named[kind]) is not None and form.fullmatch(value) is None:
            raise SetupError(f"{flag} is {value!r}; {remedy}.")
    keys = [PageKey(kind, value) for kind, value in named.items() if value is not None]
    if text is not None and (evidence is not None or input is not None):
        raise SetupError(f"TEXT is {text[:80]!r}; --evidence or --input already gives the text; leave TEXT out.")
    evidence = evidence if text is None else text
    if len(keys) + (input is not None) != 1:
        again = f": kbsource locate {shlex.quote(release)} {shlex.quote(text[:80])} --title TITLE" if text else ""
        search = " kbsource search finds pages for a text." if text else ""
        raise SetupError(f"name the page by one of --title, --url, --id and --qid, or give --input{again}.{search}")
    moves = read_moves(title_map) if title_map else None
    with ExitStack() as stack:
        locator = stack.enter_context(
            Locator.open(
                release,
                max_elements=max_elements,
                numbering=numbering,
                moves=moves,
            )
        )
        if input is not None:
            faults: list[str] = []
            return Summary(stream=_located(input, locator, threshold, faults, stack.pop_all()), faults=faults)
        alignment = _locate(locator, keys[0], evidence, threshold)
    return Summary(
        text=alignment_text(alignment, unit="paragraph" if numbering == "kilt" else "element"),
        next="" if alignment.title is None else show_line(release, alignment.title),
        values=_as_json(alignment),
        is_ok=alignment.outcome in ("exact", "near", "sentence", "page_only"),
    )


def _locate(locator: Locator, key: PageKey, evidence: str | None, threshold: float) -> Alignment:
    found = with_outcome(locator.locate(key, evidence), threshold)
    return locator.with_sentence(found) if found.outcome == "weak" else found


def _located(path: str, locator: Locator, threshold: float, faults: list[str], stack: ExitStack) -> Iterator[str]:
    """Locates the evidence in each line of a file, and writes the results as JSON. Lines that cannot be used are added
    to ``faults``.
    """
    with stack:
        for number, line in input_lines(path):
            try:
                key, evidence, record_id = _parsed_line(line)
            except RecordError as error:
                faults.append(f"kbsource locate: {path}, line {number}: {error}")
                continue
            named = {} if record_id is None else {"id": record_id}
            shown = {"line": number, **named, **_as_json(_locate(locator, key, evidence, threshold))}
            yield json.dumps(shown, ensure_ascii=False)


def _parsed_line(line: str) -> tuple[PageKey, str | None, Any]:
    record = parse_object(line)
    only_known(record, frozenset({*_KINDS, *TEXT_KEYS, "id"}))
    kinds = [kind for kind in _KINDS if kind in record]
    if len(kinds) != 1:
        raise RecordError(
            "missing_field",
            f"the line names no page, or several ways to find one; give exactly one of {', '.join(_KINDS)}",
        )
    (kind,) = kinds
    value = str(record[kind]) if kind == "page_id" and is_integer(record[kind]) else text_at(record, kind)
    return PageKey(kind, value), evidence_text(record, TEXT_KEYS), record.get("id")


def _as_json(alignment: Alignment) -> dict[str, Any]:
    import msgspec

    shown: dict[str, Any] = msgspec.to_builtins({name: getattr(alignment, name) for name in _SHOWN})
    return shown


def alignment_text(alignment: Alignment, *, unit: str) -> str:
    """Formats an alignment for reading. ``unit`` names what its positions count."""
    rows: list[Row] = [("outcome", f"{alignment.outcome}: {_MEANINGS[alignment.outcome]}")]
    if alignment.page_id is not None:
        over = f", over {alignment.hops} redirect{'s' if alignment.hops > 1 else ''}" if alignment.hops else ""
        rows.append(("page", f"{alignment.title} (page id {alignment.page_id}), found by {alignment.found_by}{over}"))
    if (span := alignment.span) is not None:
        where = f"{unit} {span.start_element}, characters {span.start_char} to {span.end_char}"
        if span.end_element != span.start_element:
            where = (
                f"{unit} {span.start_element}, character {span.start_char}, to {unit} {span.end_element}, "
                f"character {span.end_char}"
            )
        rows += [("section", alignment.section), ("place", where), ("BLEU", f"{span.score:.4f} ({span.match})")]
    lines = [facts_table(rows)]
    if alignment.text is not None:
        lines.append(textwrap.indent(textwrap.fill(alignment.text, text_width() - 2), "  "))
    if alignment.suggestions:
        lines.append(
            "similar titles\n"
            + facts_table((f"  {suggestion.title}", f"{suggestion.score:.1f}") for suggestion in alignment.suggestions)
        )
    return "\n\n".join(lines)


def input_lines(path: str) -> Iterator[tuple[int, str]]:
    """Reads the number and text of each line of a file, compressed or not, or of the standard input for ``-``."""
    if path == "-":
        for number, line in enumerate(sys.stdin, start=1):
            text = line.removeprefix("\ufeff") if number == 1 else line
            if text.strip():
                yield number, text
        return
    for raw in iter_lines(path):
        yield raw.line, raw.data.decode("utf-8", "replace")


# Rules that a file made for another snapshot breaks.
_OF_ANOTHER = frozenset({"page_unknown", "paragraph_range", "section_differs", "title_differs"})
_RIGHTFUL = (
    ", and its manifest confirms this: every record was rejected. report.json in the same folder gives the reasons."
)
_BROKEN = (
    ". Warning: no manifest in its folder confirms that it has no records, so a download or a run may have been "
    "interrupted. Download the file again, or align the dataset again."
)


def validate_kilt(
    release: Release,
    file: File,
    /,
    *,
    alignments: FolderPath | None = None,
    numbering: Literal["kilt", "elements"] | None = None,
) -> Summary:
    """Check a KILT file against a release.

    Checks the types, ids, pages, positions and sections of a KILT file, and recomputes BLEU if the evidence is known.
    The exit code is 1 if a rule is broken, or if the file is empty and the manifest in its folder does not confirm
    this.

    Args:
        release: Folder of the release that the file was made for.
        file: KILT file, plain or compressed.
        alignments: Output folder of kbsource map, which contains the evidence that BLEU is computed from; by default
            the folder of FILE, if kbsource map wrote it.
        numbering: Numbering of paragraphs; by default the numbering of the alignments, or kilt if there are none.

    Examples:
        kbsource validate-kilt releases/enwiki-20261001 aligned/fever/fever-dev-kilt.jsonl
        kbsource validate-kilt releases/enwiki-20190801 nq-dev-kilt.jsonl --json
    """
    from kbsource.lookup import KnowledgeSource
    from mapping.write.validate import check_kilt as validate

    if alignments is not None and not Folder.of(f"{alignments}/alignments").exists():
        raise SetupError(
            f"--alignments {alignments}: this folder has no table alignments/; name a folder that kbsource map wrote."
        )
    beside = file.rpartition("/")[0] or "."
    own = _alignment_in(beside)
    folder = alignments or (beside if own is not None else None)
    if numbering is None:
        manifest = own if alignments is None else ALIGNMENT.read(alignments)
        options = {} if manifest is None else manifest.facts.get("options") or {}
        numbering = "elements" if options.get("numbering") == "elements" else "kilt"
    with KnowledgeSource.open(release) as source:
        result = validate(file, source, numbering=numbering, alignments=folder)
    values = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    values["findings"] = [finding._asdict() for finding in result.findings]
    entries = own.files if result.is_empty and own is not None else ()
    is_rightful = not result.is_empty or any((entry.file, entry.rows) == (base_name(file), 0) for entry in entries)
    is_ok = result.is_valid and is_rightful
    if result.is_empty:
        text = f"{file} is empty{_RIGHTFUL if is_rightful else _BROKEN}"
    else:
        text = validation_text(result, is_scored=folder is not None)
    again = command_line("evaluate", "kilt", file, "PREDICTIONS") if is_ok else ""
    return Summary(text=text, values={"ok": is_ok, **values}, is_ok=is_ok, next=again)


def validation_text(result: Validation, *, is_scored: bool) -> str:
    """Formats what was checked and found. ``is_scored`` is true if alignments were available."""
    from mapping.write.validate import RULES

    lines = [
        on_one_line(
            f"line {finding.line}, {finding.example_id}: {RULES[finding.rule]} ({finding.rule}): {finding.detail}"
        )
        for finding in result.findings
    ]
    lines += [
        f"{count:>8,} {'time' if count == 1 else 'times'}: {RULES[rule]} ({rule})"
        for rule, count in sorted(result.broken.items())
    ]
    if sum(result.broken.values()) > len(result.findings):
        lines.append("Only the first cases of each rule are shown.")
    lines.append(
        f"{'Valid' if result.is_valid else 'NOT valid'}: {counted(result.records, 'records')}, "
        f"{counted(result.outputs, 'outputs')}, {counted(result.spans, 'spans')} checked, "
        f"{result.located:,} with characters, BLEU of {result.rescored:,} recomputed."
    )
    if result.outputs and not result.spans:
        lines.append(
            "No output has provenance, so nothing was compared with the release. If your file contains evidence "
            "instead, align it with kbsource map jsonl."
        )
    elif result.located and not result.rescored and is_scored:
        lines.append(
            "The table alignments contains none of the records, so BLEU was not computed. It may belong to "
            "another file."
        )
    if result.broken.keys() & _OF_ANOTHER:
        lines.append("If the file was made for another snapshot, align it to this release with kbsource map kilt.")
    return "\n".join(lines)


def _alignment_in(folder: str) -> ListingManifest | None:
    """Returns the manifest of the alignment in a folder, or None."""
    places = Folder.of(f"{folder}/{MANIFEST}"), Folder.of(f"{folder}/alignments")
    return ALIGNMENT.read(folder) if all(place.exists() for place in places) else None


_JUDGED_TOGETHER = 512


def nli(
    *,
    premise: Text | None = None,
    hypothesis: Text | None = None,
    input: FileOrPipe | None = None,
    model: Annotated[UsualModelOptions, FLAT] = UsualModelOptions(),
    export_onnx: FolderPath | None = None,
) -> Summary:
    """Ask an NLI model whether a text supports a sentence.

    Prints the probabilities of entailment, neutral and contradiction. The model is a Hugging Face cross-encoder with
    safetensors weights; code that comes with a model is never run. Needs kbsource[nli].

    Args:
        premise: The text that is taken as true.
        hypothesis: The sentence to judge, one declarative sentence.
        input: Many pairs at once: JSON Lines with premise and hypothesis, or with question and answer instead of
            hypothesis; - reads the standard input.
        export_onnx: Convert the model for --backend onnx, write it into a new folder, and exit.

    Examples:
        kbsource nli --premise "It rises in Lake Miravel." --hypothesis "The Ullane rises in a lake."
        kbsource nli --model models/nli --input pairs.jsonl
        kbsource nli --model models/nli --export-onnx models/nli-onnx
    """
    from mapping.entail.model import export_onnx as export
    from mapping.entail.model import open_model

    if export_onnx is not None:
        pair = ("--premise", "It rises in Lake Miravel.", "--hypothesis", "It rises in a lake.")
        again = command_line("nli", "--model", export_onnx, "--backend", "onnx", *pair)
        return Summary(text=str(export(model, export_onnx)), next=again)
    if input is not None:
        if premise is not None or hypothesis is not None:
            raise SetupError("--input FILE has the pairs; leave --premise and --hypothesis out.")
        faults: list[str] = []
        return Summary(stream=_verdict_lines(input, open_model(model), faults), faults=faults)
    if premise is None or hypothesis is None:
        raise SetupError("give --premise and --hypothesis, or --input FILE.")
    judge = open_model(model)
    answer = judge.judge([Pair(premise, hypothesis)])[0]
    values = answer_values(answer)
    return Summary(text=_verdict_text(answer, judge.device), values=values, is_ok="unjudged_reason" not in values)


def check_sources(options: Annotated[CheckSourcesOptions, FLAT], *, run: Run = RunOptions()) -> Summary:
    """Ask an NLI model whether sources support the sentences that cite them.

    Checks each place where a reference is cited: a model judges whether the source's title and quoted words support the
    sentence before the citation. Writes one line for each citation: its position, the premise and the hypothesis, and
    the probabilities. The sources themselves are not downloaded, so a low probability only suggests that a citation
    should be checked. The model runs through RunInference on every runner. Run the same command again to resume a run
    that was killed. Options not listed here are passed to Beam unchanged. Needs kbsource[nli].

    Examples:
        kbsource check-sources releases/enwiki-20261001 --model models/nli --output verdicts.jsonl
    """
    from pipelines.jobs.check_sources import check_sources

    check_ending("--output", options.output, "JSON Lines", fitting=["jsonl"])
    counts = check_sources(options, flags=run.flags(), progress=Progress())
    return Summary(
        rows=[("uses of references", counts.total()), *((f"  {label}", n) for label, n in sorted(counts.items()))],
        values={"output": options.output, "uses": counts.total(), **counts},
        next=sorted_verdicts(options.output) if is_local(options.output) else "",
    )


def sorted_verdicts(path: str) -> str:
    """Returns the command line that shows the verdicts of a file, those with the lowest entailment first."""
    from kbsource.runtime.database import quoted

    query = f"from {quoted(path)} order by entailment"
    return shlex.join(("python", "-c", f"import duckdb; print(duckdb.sql({query!r}))"))


def _verdict_lines(path: str, model: CrossEncoder, faults: list[str]) -> Iterator[str]:
    """Judges the pair in each line of a file, and writes the results as JSON. Lines that cannot be used are added to
    ``faults``.
    """
    lines = _pairs(path, faults)
    while group := list(islice(lines, _JUDGED_TOGETHER)):
        for (number, record_id, _), answer in zip(group, model.judge([pair for *_, pair in group]), strict=True):
            named = {} if record_id is None else {"id": record_id}
            yield json.dumps({"line": number, **named, **answer_values(answer)}, ensure_ascii=False)


def _pairs(path: str, faults: list[str]) -> Iterator[tuple[int, Any, Pair]]:
    for number, line in input_lines(path):
        try:
            yield number, *_pair(line)
        except RecordError as error:
            faults.append(f"kbsource nli: {path}, line {number}: {error}")


def _pair(line: str) -> tuple[Any, Pair]:
    from mapping.entail.statements import state_answer

    record = parse_object(line)
    only_known(record, frozenset(("id", "premise", "hypothesis", "question", "answer")))
    if ("hypothesis" in record) == ("question" in record):
        raise RecordError("missing_field", "give a hypothesis, or a question with its answer")
    if "hypothesis" in record:
        hypothesis = text_at(record, "hypothesis")
    else:
        hypothesis = state_answer(text_at(record, "question"), text_at(record, "answer"))
    return record.get("id"), Pair(text_at(record, "premise"), hypothesis)


def _verdict_text(answer: Verdict | UnjudgedPair, device: str) -> str:
    if isinstance(answer, UnjudgedPair):
        return f"not judged: {UNJUDGED_REASONS[answer.reason]} ({answer.detail or answer.reason})"
    shares = [(name, f"{value:.6f}") for name, value in answer._asdict().items() if value is not None]
    return facts_table([("label", answer.label), *shares, ("device", device)])
