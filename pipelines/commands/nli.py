"""``kbsource nli``: what an NLI model says of a premise and a hypothesis."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from pipelines.commands.flags.common import Command, facts_table, input_lines
from pipelines.options.fields import add_flags, from_flags

if TYPE_CHECKING:
    from mapping.entail.model import CrossEncoder
    from mapping.entail.signal import Pair, Refused, Verdict

_JUDGED_TOGETHER = 512


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from mapping.entail.signal import DEFAULT_MODEL, ModelOptions

    add = parser.add_argument
    add("--premise", metavar="TEXT", help="what is taken as true")
    add("--hypothesis", metavar="TEXT", help="what it should say, one declarative sentence")
    add(
        "--input",
        metavar="FILE",
        help="many at once: JSON Lines with premise and hypothesis, or question and answer in place of the latter; "
        "- for the standard input",
    )
    add(
        "--model",
        default=DEFAULT_MODEL,
        metavar="MODEL",
        help="folder of a cross-encoder, or hub name (default: %(default)s)",
    )
    add_flags(parser, ModelOptions)
    add("--export-onnx", metavar="DIR", help="write the model for --backend onnx into a new folder, and end")
    add("--json", action="store_true", help="one JSON object for each")


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from mapping.entail.model import export_onnx, open_model
    from mapping.entail.signal import ModelOptions, Pair

    options = from_flags(vars(args), ModelOptions, model=args.model)
    if args.export_onnx is not None:
        print(export_onnx(options, args.export_onnx))
        return 0
    if args.input is not None:
        if args.premise is not None or args.hypothesis is not None:
            raise SetupError("--input FILE has the pairs; leave --premise and --hypothesis out.")
        return _judge_many(args.input, open_model(options))
    if args.premise is None or args.hypothesis is None:
        raise SetupError("give --premise and --hypothesis, or --input FILE.")
    model = open_model(options)
    answer = model.judge([Pair(args.premise, args.hypothesis)])[0]
    print(json.dumps(_as_json(answer)) if args.json else _as_text(answer, model.device))
    return 1 if "refusal" in _as_json(answer) else 0


def _judge_many(path: str, model: CrossEncoder) -> int:
    """Prints an object for each line of a file; a line that cannot be used is reported and passed over."""
    n_bad = 0
    lines = _requests(path)
    while group := list(islice(lines, _JUDGED_TOGETHER)):
        good = [(number, record_id, pair) for number, record_id, pair in group if pair is not None]
        n_bad += len(group) - len(good)
        for (number, record_id, _), answer in zip(good, model.judge([pair for *_, pair in good]), strict=True):
            named = {} if record_id is None else {"id": record_id}
            print(json.dumps({"line": number, **named, **_as_json(answer)}, ensure_ascii=False))
    return 1 if n_bad else 0


def _requests(path: str) -> Iterator[tuple[int, Any, Pair | None]]:
    from kbsource.errors import RecordError

    for number, line in input_lines(path):
        try:
            yield number, *_request(line)
        except RecordError as error:
            print(f"kbsource nli: {path}, line {number}: {error}", file=sys.stderr)
            yield number, None, None


def _request(line: str) -> tuple[Any, Pair]:
    from kbsource.errors import RecordError
    from mapping.entail.declarative import state_answer
    from mapping.entail.signal import Pair
    from mapping.sources.reading.fields import only_known, parse_object, text_at

    record = parse_object(line)
    only_known(record, frozenset(("id", "premise", "hypothesis", "question", "answer")))
    if ("hypothesis" in record) == ("question" in record):
        raise RecordError("missing_field", "give a hypothesis, or a question with its answer")
    if "hypothesis" in record:
        hypothesis = text_at(record, "hypothesis")
    else:
        hypothesis = state_answer(text_at(record, "question"), text_at(record, "answer"))
    return record.get("id"), Pair(text_at(record, "premise"), hypothesis)


def _as_json(answer: Verdict | Refused) -> dict[str, Any]:
    from mapping.entail.signal import Refused

    if isinstance(answer, Refused):
        return {"refusal": answer.reason, "detail": answer.detail}
    return {"label": answer.label, **answer._asdict()}


def _as_text(answer: Verdict | Refused, device: str) -> str:
    from mapping.entail.signal import REFUSALS, Refused

    if isinstance(answer, Refused):
        return f"not judged: {REFUSALS[answer.reason]} ({answer.detail or answer.reason})"
    shares = [(name, f"{value:.6f}") for name, value in answer._asdict().items() if value is not None]
    return facts_table([("label", answer.label), *shares, ("device", device)])


COMMAND = Command(
    name="nli",
    summary="ask an NLI model whether a text says what a sentence claims",
    description="Gives the probabilities of entailment, neutral and contradiction. The model is a Hugging Face\n"
    "cross-encoder with safetensors weights; code that comes with a model is never run. Needs kbsource[nli].",
    examples=(
        'kbsource nli --premise "It rises in Lake Miravel." --hypothesis "The Ullane rises in a lake."',
        "kbsource nli --model models/nli --input pairs.jsonl",
        "kbsource nli --model models/nli --export-onnx models/nli-onnx",
    ),
    add_arguments=_add_arguments,
    run=_run,
    needs="nli-onnx",
)
