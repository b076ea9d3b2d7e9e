"""The help of all commands is written in one style."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from cyclopts import App

from mapping.options import DEFAULTS
from pipelines.app import make_app

_ENTRY = re.compile(r"^\* `(?P<name>[^`]+)`(?:: )?(?P<help>.*)$", re.MULTILINE)
_GENERATED = re.compile(r"\s*(?:\*\*\[required\]\*\*|\*\[(?:default|choices): .*?\]\*)")


def _commands(app: App, name: str = "kbsource") -> Iterator[tuple[str, App]]:
    """Returns an iterator over the commands that run, with their names."""
    parts = [part for part in app if not part.startswith("-")]
    if not parts:
        yield name, app
    for part in parts:
        yield from _commands(app[part], f"{name} {part}")


def _helps() -> dict[str, list[tuple[str, str]]]:
    """Returns the name and the help of each option and positional argument, by command."""
    helps = defaultdict(list)
    for name, app in _commands(make_app()):
        app.default_parameter = DEFAULTS
        text = re.sub(r"\n {2,}(?=\S)", " ", app.generate_docs(recursive=False))
        for entry in _ENTRY.finditer(text):
            helps[name].append((entry["name"], _GENERATED.sub("", entry["help"])))
    return helps


def test_every_help_is_a_sentence_with_a_capital_and_a_full_stop() -> None:
    helps = _helps()
    odd = [
        f"{command} {name}: {said}"
        for command, entries in helps.items()
        for name, said in entries
        if not re.fullmatch(r"[A-Z].*\.", said)
    ]

    assert len(helps) > 50
    assert sum(map(len, helps.values())) > 500
    assert odd == []


def test_every_summary_is_a_sentence_with_a_capital_and_a_full_stop() -> None:
    summaries = {name: (app.help or "").partition("\n")[0] for name, app in _commands(make_app())}

    assert [name for name, said in summaries.items() if not re.fullmatch(r"[A-Z].*\.", said)] == []


def test_format_and_form_have_one_meaning_each() -> None:
    """``--format`` is the format of a file; ``--form`` is how a model reads."""
    with_form = {command for command, entries in _helps().items() if "--form CHOICE" in dict(entries)}

    assert with_form == {"kbsource read"}


def test_an_option_has_the_same_kind_of_value_in_all_commands() -> None:
    kinds = defaultdict(set)
    for entries in _helps().values():
        for name, _ in entries:
            if option := re.fullmatch(r"(?P<flag>--[a-z-]+)(?: (?P<value>.+))?", name):
                kinds[option["flag"]].add(option["value"])

    assert {flag: values for flag, values in kinds.items() if len(values) > 1} == {
        "--format": {"CHOICE", "NAME"},  # one format, or several of them
        "--hypothesis": {"CHOICE", "TEXT"},  # of a dataset, or of a pair
        "--output": {"DIR", "FILE"},
        "--system": {"SYSTEM", "SYSTEM..."},
        "--wikidata": {"FILE", "OLD NEW", "RELEASE"},  # a dump, two releases, or a release
    }
