"""Expansion of templates by their definitions, as MediaWiki's PPFrame does it: lazily, and within limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kbsource.wikitext.expansion.budget import MAX_DEPTH, MAX_PIECES, PIECES_A_UNIT, Cost
from kbsource.wikitext.expansion.choices import CHOICES, ERROR, Parts, nth
from kbsource.wikitext.expansion.definitions import BoundError, Frame, Invoke
from kbsource.wikitext.expansion.transclusion import transcluded
from kbsource.wikitext.expansion.tree import Parameter, Text, Use, read_tree
from kbsource.wikitext.functions.arguments import PageFacts, Template
from kbsource.wikitext.functions.measures.expressions import evaluate
from kbsource.wikitext.functions.rulebook import TemplateRule, magic
from kbsource.wikitext.functions.times.clock import read_moment
from kbsource.wikitext.markers import CUT
from kbsource.wikitext.templates import find_function

INFOBOX = '<table class="infobox"></table>'
"""What an infobox within a definition leaves, so that the box around it is known for one."""
_BLOCK_STARTS = ("*", "#", ":", ";", "{|")
_LARGEST_GAP = 100


class WatchedPage:
    """PageFacts that know whether they were asked for what other pages have otherwise."""

    __slots__ = ("_facts", "is_asked", "lang")

    def __init__(self, facts: PageFacts) -> None:
        self._facts = facts
        self.lang = facts.lang
        self.is_asked = False

    @property
    def title(self) -> str:
        self.is_asked = True
        return self._facts.title

    @property
    def timestamp(self) -> str:
        self.is_asked = True
        return self._facts.timestamp

    @property
    def date(self) -> tuple[int, int, int] | None:
        self.is_asked = True
        return self._facts.date


class Wiki(NamedTuple):
    """What expansion knows of a wiki.

    Attributes:
        find_rule: gives the rule for a name in normal form.
        find_tree: gives the definition of a template by its name, None where there is none, and its pieces.
        name_template: gives the normal form of a template's name.
        invoke: runs Lua modules; None where nothing does.
        exists: says whether there is an article of a title.
    """

    find_rule: Callable[[str], TemplateRule]
    find_tree: Callable[[str], tuple[Text | None, int]]
    name_template: Callable[[str], str]
    invoke: Invoke | None
    exists: Callable[[str], bool]


class Engine:
    """What the frames of one page share.

    Attributes:
        wiki: what is known of the wiki.
        page: the page.
        cost: what has been spent on it.
        depth: texts at work, each within the one before.
        is_invoked: a module has run since the last ``start``.
        is_partial: likewise, something was left out that nobody knows.
        n_modules: likewise, calls of modules that were not run, or failed.
    """

    __slots__ = ("cost", "depth", "is_invoked", "is_partial", "n_modules", "page", "wiki")

    def __init__(self, wiki: Wiki, page: PageFacts) -> None:
        self.wiki = wiki
        self.page = WatchedPage(page)
        self.cost = Cost()
        self.start()

    def start(self) -> None:
        """Begins a use that stands on the page itself."""
        self.depth = self.n_modules = 0
        self.page.is_asked = self.is_invoked = self.is_partial = False

    def unknown(self) -> str:
        """Gives what stands for what nobody knows."""
        self.is_partial = True
        return CUT

    def by_rule(self, rule: TemplateRule, template: Template) -> str:
        """Gives what a rule makes of a use."""
        text = rule.function(template, self.page, **rule.parameters) if rule.function else None
        if rule.outcome == "infobox":
            return INFOBOX + (text or "")
        if rule.outcome == "unknown":
            return self.unknown()
        if text is None:
            return CUT
        return self.cost.give(f"\n\n{text}\n\n" if rule.is_block else text)


class TemplateFrame:
    """A template or module at work, or the page itself; a ``Frame``. Arguments are worked out when asked for.

    Attributes:
        engine: what all frames of the page share.
        title: as in ``Frame``.
        names: the templates at work, outermost first, this one included.
        parent: as in ``Frame``.
    """

    __slots__ = ("_arguments", "engine", "names", "parent", "title")

    def __init__(
        self,
        engine: Engine,
        title: str,
        *,
        names: tuple[str, ...] = (),
        arguments: dict[str, Argument] | None = None,
        parent: TemplateFrame | None = None,
    ) -> None:
        self.engine = engine
        self.title = title
        self.names = names
        self.parent = parent
        self._arguments = arguments or {}

    @property
    def arguments(self) -> Mapping[str, str]:
        return {name: self._argument(name) or "" for name in self._arguments}

    @property
    def page_title(self) -> str:
        return self.engine.page.title

    @property
    def timestamp(self) -> str:
        return self.engine.page.timestamp

    def preprocess(self, wikitext: str) -> str:
        return self.read(read_tree(transcluded(wikitext, self.engine.page.lang)))

    def expand(self, name: str, arguments: Mapping[str, str]) -> str:
        numbers = sorted((name for name in arguments if name.isdecimal()), key=int)
        parts: list[tuple[Text | None, Text]] = [((number,), (arguments[number],)) for number in numbers]
        parts += [((key,), (value,)) for key, value in arguments.items() if not key.isdecimal()]
        if name.rstrip(":").casefold() not in magic().functions:
            return self.use(Use((name,), tuple(parts), True))
        first, *others = [value for _, value in parts] or [("",)]
        return self.use(Use((f"{name.rstrip(':')}:", *first), tuple((None, value) for value in others), True))

    def spend(self, work: int) -> None:
        self.engine.cost.spend(work)

    def read(self, text: Text) -> str:
        """Gives a text with all its braces worked out.

        Raises:
            BoundError: it goes too deep, or the page has spent all that it may.
        """
        engine = self.engine
        engine.cost.spend(1 + len(text))
        if engine.depth >= MAX_DEPTH:
            raise BoundError("depth")
        engine.depth += 1
        out: list[str] = []
        for node in text:
            if isinstance(node, str):
                engine.cost.copy(node)
                out.append(node)
            elif isinstance(node, Parameter):
                out.append(self._parameter(node))
            else:
                out.append(self.use(node))
        engine.depth -= 1
        return out[0] if len(out) == 1 else "".join(out)

    def _argument(self, name: str) -> str | None:
        value = self._arguments.get(name)
        if value is None or isinstance(value, str):
            return value
        text, frame, is_stripped = value
        found = frame.read(text)
        self._arguments[name] = found = found.strip() if is_stripped else found
        return found

    def _parameter(self, node: Parameter) -> str:
        name = self.read(node.name).strip()
        value = self._argument(name)
        if value is not None:
            return self.engine.cost.give(value)
        return f"{{{{{{{name}}}}}}}" if node.default is None else self.read(node.default)

    def use(self, node: Use, *, is_by_rule: bool = True) -> str:
        """Gives what stands for one use, by a rule where there is one and it may be."""
        engine, wiki = self.engine, self.engine.wiki
        head = self.read(node.head)
        if ":" in head and (found := find_function(head)):
            return self._function(*found, node.parts)
        if not node.parts and (variable := magic().variables.get(head.strip())):
            return engine.by_rule(wiki.find_rule(variable), Template(variable, (), {}))
        name = wiki.name_template(head)
        if not name or head.lstrip().startswith(":"):
            return engine.unknown()
        rule = wiki.find_rule(name)
        text = None
        if rule.outcome == "unknown" or not is_by_rule:
            text = self._defined(node, name)
        elif rule.yields and name not in self.names:
            partial, n_modules = engine.is_partial, engine.n_modules
            text = self._defined(node, name)
            if not any(map(str.isalnum, text)):
                text, engine.is_partial, engine.n_modules = None, partial, n_modules
        if text is None:
            given = self._with(node.parts, "", ()).arguments if rule.function else {}
            text = engine.by_rule(rule, _template(name, given))
        return f"\n{text}" if not node.begins_line and text.startswith(_BLOCK_STARTS) else text

    def _defined(self, node: Use, name: str) -> str:
        """Gives what a template's definition makes of a use.

        Raises:
            BoundError: it goes round in a loop, or the page has spent all that it may.
        """
        engine = self.engine
        tree, n_pieces = engine.wiki.find_tree(name)
        if name in self.names or n_pieces > MAX_PIECES:
            raise BoundError("loop" if name in self.names else "pieces")
        if tree is None:
            return engine.unknown()
        engine.cost.spend(n_pieces // PIECES_A_UNIT)
        return engine.cost.give(self._with(node.parts, f"Template:{name}", (*self.names, name)).read(tree))

    def _with(
        self, parts: Parts, title: str, names: tuple[str, ...], parent: TemplateFrame | None = None
    ) -> TemplateFrame:
        """Gives the frame of what is used with these arguments."""
        self.engine.cost.spend(len(parts))
        arguments: dict[str, Argument] = {}
        number = 0
        for key, value in parts:
            if key is None:
                number += 1
                arguments[str(number)] = (value, self, False)
            else:
                arguments[self.read(key).strip()] = (value, self, True)
        return TemplateFrame(self.engine, title, names=names, arguments=arguments, parent=parent)

    def _function(self, name: str, first: str, parts: Parts) -> str:
        engine, wiki = self.engine, self.engine.wiki
        if name in CHOICES:
            return CHOICES[name](first.strip(), parts, self.read)
        if name == "#ifexist":
            title = first.strip()
            is_there = bool(title) and engine.cost.look_up() and wiki.exists(title)
            return nth(parts, 0 if is_there else 1, self.read)
        if name == "#invoke":
            return self._invoke(first.strip(), parts)
        values = (first, *(nth(parts, number, self.read) for number in range(len(parts))))
        if name == "#expr" and first.strip() and evaluate(first) is None:
            return ERROR
        if name == "#time" and values[1:] and values[1] and read_moment(values[1], engine.page) is None:
            return ERROR
        if name == "#tag":
            name, values = f"#tag:{first.strip().lower()}", values[1:]
        return engine.by_rule(wiki.find_rule(name), Template(name, values, {}))

    def _invoke(self, module: str, parts: Parts) -> str:
        engine = self.engine
        invoke = engine.wiki.invoke
        if invoke is None or not parts:
            engine.n_modules += 1
            return engine.unknown()
        frame: Frame = self._with(parts[1:], f"Module:{module}", self.names, parent=self)
        text = invoke(module, nth(parts, 0, self.read), frame)
        if text is None:
            engine.n_modules += 1
            return engine.unknown()
        engine.is_invoked = True
        return engine.cost.give(text)


Argument = str | tuple[Text, TemplateFrame, bool]
"""A value, or what it is worked out from: the text, the frame that it stands in, and whether it is stripped."""


def _template(name: str, arguments: Mapping[str, str]) -> Template:
    """Gives a use for the rules: numbered arguments in their places, far numbers among the named ones."""
    named = dict(arguments)
    positional: list[str] = []
    for number in sorted(
        int(key) for key in named if key.isdecimal() and key.isascii() and key[0] != "0" and len(key) < 5
    ):
        if number - len(positional) <= _LARGEST_GAP:
            positional += [""] * (number - len(positional) - 1)
            positional.append(named.pop(str(number)))
    return Template(name, tuple(positional), named)
