"""Tasks for people in the forms of the tools that they work with."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from xml.sax.saxutils import quoteattr

import orjson

from kbsource.files import Storage
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import write_lines

TaskForm = Literal["jsonl", "csv", "label-studio"]
TASK_FORMS: Mapping[TaskForm, str] = {
    "jsonl": "one JSON object a line",
    "csv": "a row a task, with empty columns for what is said of it",
    "label-studio": "tasks for its import, beside the labelling interface",
}
ANSWER_COLUMNS = ("worker_id", "label", "highlight", "free_text")


@dataclass(frozen=True, slots=True)
class TaskSheet:
    """What people see of a task, and what they may say.

    Attributes:
        name: of the file, without its ending.
        question: what is asked of them.
        shown: fields that they see above the text.
        text: field of the text, in which they may highlight.
        labels: what they may say.
    """

    name: str
    question: str
    shown: Sequence[str]
    text: str
    labels: Sequence[str]


def task_names(name: str, form: TaskForm) -> tuple[str, ...]:
    """Gives the files that a form has.

    >>> task_names("tasks", "label-studio")
    ('tasks.json', 'tasks.xml')
    """
    return {"jsonl": (f"{name}.jsonl",), "csv": (f"{name}.csv",)}.get(form, (f"{name}.json", f"{name}.xml"))


def write_tasks(
    tasks: Iterable[Mapping[str, Any]], sheet: TaskSheet, form: TaskForm, *, output: str, storage: Storage
) -> list[FileEntry]:
    """Writes tasks into a folder and gives the entries of the files.

    Args:
        tasks: fields of each; in forms other than JSON Lines a list is one text, a line each.
        sheet: how they are shown.
        form: of the files.
        output, storage: of the folder.
    """
    names = task_names(sheet.name, form)
    if form == "jsonl":
        lines = (orjson.dumps(task, option=orjson.OPT_APPEND_NEWLINE) for task in tasks)
        return [write_lines(lines, names[0], output=output, storage=storage)]
    flat = ({name: _flat(value) for name, value in task.items()} for task in tasks)
    if form == "csv":
        return [write_lines(_csv_lines(flat), names[0], output=output, storage=storage)]
    return [
        write_lines(_json_array(flat), names[0], output=output, storage=storage),
        write_lines([_interface(sheet).encode()], names[1], output=output, storage=storage),
    ]


def _flat(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return "\n".join(" ".join(part.values()) if isinstance(part, dict) else str(part) for part in value)


def _csv_lines(tasks: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    for number, task in enumerate(tasks):
        if number == 0:
            yield _csv_line([*task, *ANSWER_COLUMNS])
        yield _csv_line([*task.values(), *("" for _ in ANSWER_COLUMNS)])


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
    """Gives the labelling interface. Source: https://labelstud.io/tags, seen November 2026."""
    shown = "".join(f'  <Text name={quoteattr(name)} value="${name}"/>\n' for name in sheet.shown)
    choices = "".join(f"    <Choice value={quoteattr(label)}/>\n" for label in sheet.labels)
    return (
        f"<View>\n  <Header value={quoteattr(sheet.question)}/>\n{shown}"
        '  <Labels name="highlight" toName="text">\n    <Label value="evidence"/>\n  </Labels>\n'
        f'  <Text name="text" value="${sheet.text}"/>\n'
        f'  <Choices name="label" toName="text" choice="single" required="true">\n{choices}  </Choices>\n'
        '  <TextArea name="free_text" toName="text"/>\n</View>\n'
    )
