"""Expands uses of templates by their definitions, and caches the results that are the same on every page.

Source: https://www.mediawiki.org/wiki/Help:Extension:ParserFunctions and ParserFunctions.php of the extension.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from kbsource.site import CATEGORY, TEMPLATE, Site
from kbsource.titles import clean_title, split_namespace, upper_first
from kbsource.wikitext.dependencies import MODULE, Dependencies
from kbsource.wikitext.functions.arguments import PageFacts, Template
from kbsource.wikitext.functions.conditions import CHOICES, namespace_text, stripped_argument
from kbsource.wikitext.functions.numbers import NBSP
from kbsource.wikitext.markers import (
    BLANKS,
    CURRENCY,
    CUT,
    LINE,
    NUMBER,
    TEMPLATE_LINK,
    as_expanded,
    unmark_separators,
    without_marks,
)
from kbsource.wikitext.templates import (
    FixedOutcome,
    Rendering,
    TemplateRule,
    find_function,
    find_rule,
    find_variable,
    fixed_outcomes_of,
    is_number,
    name_function,
    normalise_template_name,
    numbered_in_place,
    split_arguments,
)
from kbsource.wikitext.tree import (
    Parameter,
    Text,
    Use,
    count_pieces,
    read_boxes,
    read_tree,
    transcluded,
    without_insides,
)


class Definitions(Protocol):
    """The templates and modules of a dump, looked up by name in normal form, without namespace."""

    def source(self, name: str) -> str | None:
        """Returns the wikitext of a template, with redirects followed, or None."""

    def target(self, name: str) -> str:
        """Returns the name of the template that a name resolves to, following redirects; the name itself if it is not a
        redirect to a template.
        """

    def module(self, name: str) -> str | None:
        """Returns the source of a Lua module, or None."""


class BoundError(Exception):
    """A template exceeded a limit of MediaWiki, or the page's budget. This error never leaves the package."""


MAX_DEPTH = 100
"""Maximum depth of nested expansions: $wgMaxPPExpandDepth; it was 40 until MediaWiki 1.24."""
MAX_WORK = 500_000
"""Units of work per page: visited nodes. MediaWiki allows 1,000,000 for all templates of a page together."""
MAX_CHARS = 2 << 20
"""Maximum number of characters that templates and arguments may produce on a page, counted at each level:
$wgMaxArticleSize.
"""
MAX_PIECES = 100_000
"""Maximum number of syntax elements in one definition: braces, pipes, equals signs and links. The longest lists of
cases have some thousands.
"""
PIECES_A_UNIT = 16
"""Number of syntax elements of a definition that count as one unit of work each time it is used."""
MAX_LOOK_UPS = 500
"""Maximum number of pages looked up by ``#ifexist``: $wgExpensiveParserFunctionLimit."""
_CHARS_A_UNIT = 128
_EXPRESSIONS = frozenset({"#expr", "#ifexpr"})
_CHARS_OF_EXPRESSION_A_UNIT = 8


Parts = tuple[tuple["Text | None", Text], ...]


INFOBOX = '<table class="infobox"></table>'
"""Placeholder for an infobox in a definition, so that a box around it is recognised as an infobox."""
_NOTHING = f"{CUT}{LINE} \n"
BLOCK_STARTS = ("*", "#", ":", ";", "{|")
"""Beginnings of the output of a template or parser function that make it begin on a new line."""


class WatchedPage:
    """Facts about a page, like ``PageFacts``. They record whether a fact was requested that differs between pages."""

    __slots__ = ("_facts", "is_asked", "lang", "site")
    lang: str
    site: Site
    title: str
    timestamp: str

    def __init__(self, facts: PageFacts | WatchedPage) -> None:
        self._facts = facts
        self.lang = facts.lang
        self.site = facts.site
        self.is_asked = False

    def __getattr__(self, name: str) -> Any:
        self.is_asked = True
        return getattr(self._facts, name)


class Frame:
    """The frame of a template or module being expanded, or of the page itself; a Lua module sees it as ``frame``.

    Arguments are expanded on demand.
    """

    __slots__ = ("_arguments", "_missing", "engine", "names", "parent", "title")

    def __init__(
        self,
        engine: PageExpander,
        title: str = "",
        *,
        names: tuple[str, ...] = (),
        arguments: dict[str, Argument] | None = None,
        parent: Frame | None = None,
    ) -> None:
        self.engine = engine
        self.title = title  #: full name of the template or module, ``Template:Age``; empty for the page itself
        self.names = names  #: the templates being expanded, outermost first, including this one
        self.parent = parent  #: the template that invokes a module; None for a template
        self._arguments = arguments or {}
        # what was recorded while arguments were expanded: is_partial, n_modules and n_refs of the engine
        self._missing: tuple[tuple[bool, int, int], ...] = ()

    @property
    def arguments(self) -> Mapping[str, str]:
        """Values by name, with numbers as text. Unnamed arguments keep their surrounding white space."""
        return {name: self._argument(name) or "" for name in self._arguments}

    @property
    def shown_title(self) -> str:
        """Full name of the template or module, or the title of the page, as ``page_title``."""
        return self.title or self.page_title

    @property
    def page_title(self) -> str:
        """Title of the page, with spaces. A result that uses it, or the time, is not cached for other pages."""
        return self.engine.page.title

    @property
    def timestamp(self) -> str:
        """ISO time of the page's revision."""
        return self.engine.page.timestamp

    def preprocess(self, wikitext: str) -> str:
        """Returns wikitext with its templates and ``{{{parameters}}}`` expanded in this frame.

        Raises:
            BoundError: it has more syntax elements than a definition may have, or the page's budget is exhausted.
        """
        n_pieces = count_pieces(wikitext)
        if n_pieces > MAX_PIECES:
            raise BoundError("pieces")
        self.spend(n_pieces + wikitext.count("<"))
        return self.read(read_tree(transcluded(wikitext, self.engine.page.lang, Counter(), is_marked=True)))

    def expand(self, name: str, arguments: Mapping[str, str]) -> str:
        """Returns the expansion of a template or parser function (``#if``, ``lc:``) with these arguments."""
        numbers = sorted((name for name in arguments if name.isdecimal()), key=lambda name: (len(name), name))
        parts: list[tuple[Text | None, Text]] = [((number,), (arguments[number],)) for number in numbers]
        named: list[tuple[Text | None, Text]] = [
            ((key,), (value,)) for key, value in arguments.items() if not key.isdecimal()
        ]
        if name_function(name.rstrip(":")) is None:
            return self.use(Use((name,), (*parts, *named), True))
        first, *others = [value for _, value in parts] or [("",)]
        unnamed = ((None, value) for value in others)
        return self.use(Use((f"{name.rstrip(':')}:", *first), (*unnamed, *named), True))

    def spend(self, work: int) -> None:
        """Charges units of work to the page. Raises BoundError if its limit is used up; callers must not catch this."""
        self.engine.spend(work)

    def read(self, text: Text) -> str:
        """Returns a text with all its braces expanded.

        Raises:
            BoundError: it is nested too deeply, or the page's budget is exhausted.
        """
        engine = self.engine
        engine.spend(1 + len(text))
        if engine.depth >= MAX_DEPTH:
            raise BoundError("depth")
        engine.depth += 1
        out: list[str] = []
        for node in text:
            if isinstance(node, str):
                engine.work += len(node) // _CHARS_A_UNIT
                out.append(node)
            elif isinstance(node, Parameter):
                out.append(self._parameter(node))
            else:
                shown = self.use(node)
                out.append(NUMBER if shown == CUT and out and out[-1][-1:] in CURRENCY else shown)
        engine.depth -= 1
        return out[0] if len(out) == 1 else "".join(out)

    def _argument(self, name: str) -> str | None:
        value = self._arguments.get(name)
        if value is None or isinstance(value, str):
            return value
        text, frame, is_stripped = value
        engine = self.engine
        was_partial, n_modules, n_refs = engine.is_partial, engine.n_modules, engine.n_refs
        engine.is_partial = False
        found = frame.read(text)
        if engine.is_partial or engine.n_modules != n_modules or engine.n_refs != n_refs:
            self._missing = (
                *self._missing,
                (engine.is_partial, engine.n_modules - n_modules, engine.n_refs - n_refs),
            )
        engine.is_partial |= was_partial
        self._arguments[name] = found = found.strip(BLANKS) if is_stripped else found
        return found

    def arguments_again(self) -> dict[str, str]:
        """Returns the arguments for a rule that replaces the definition, and records their expansion again.

        They are not expanded a second time, because the work would double with every level of nested uses.
        """
        for is_partial, n_modules, n_refs in self._missing:
            self.engine.is_partial |= is_partial
            self.engine.n_modules += n_modules
            self.engine.n_refs += n_refs
        return dict(self.arguments)

    def _parameter(self, node: Parameter) -> str:
        name = self.read(node.name).strip(BLANKS)
        value = self._argument(name)
        if value is not None:
            return self.engine.give(value)
        return f"{{{{{{{name}}}}}}}" if node.default is None else self.read(node.default)

    def use(self, node: Use, *, is_by_rule: bool = True) -> str:
        """Returns the expansion of a use, by a rule where it has precedence or the definition is incomplete, if
        ``is_by_rule`` allows it.
        """
        engine, wiki = self.engine, self.engine.wiki
        head = self.read(node.head)
        if ":" in head and (found := find_function(head)):
            return _on_own_line(self._function(*found, node.parts), node)
        if not node.parts and (variable := find_variable(head.strip(BLANKS))):
            return engine.by_rule(wiki.find_rule(variable), Template(variable, (), {}))
        name = wiki.name_template(head)
        if not name or head.lstrip(BLANKS).startswith(":"):
            return engine.unknown()
        name, rule = wiki.resolve(name)
        text = None
        frames: list[Frame] = []
        if rule.outcome == "unknown" or not is_by_rule:
            text = self._defined(node, name, frames)
        elif rule.follows_definition and name not in self.names:
            text = engine.if_complete(lambda: self._defined(node, name, frames))
        if text is None:
            named = {}
            if rule.function or rule.body:
                named = frames[0].arguments_again() if frames else dict(self._with(node.parts, "", ()).arguments)
            numbered = {int(key): named.pop(key) for key in list(named) if is_number(key)}
            text = engine.by_rule(rule, numbered_in_place(name, [], named, numbered))
        return _on_own_line(text, node)

    def _defined(self, node: Use, name: str, frames: list[Frame]) -> str:
        """Returns the expansion of a use by the template's definition; ``name`` with redirects followed. ``frames``
        receives the frame of the definition.

        Raises:
            BoundError: it is recursive, or the page's budget is exhausted.
        """
        engine = self.engine
        tree, n_pieces, n_refs = engine.wiki.find_tree(name)
        if name in self.names or n_pieces > MAX_PIECES:
            raise BoundError("loop" if name in self.names else "pieces")
        if tree is None:
            return engine.unknown()
        engine.spend(n_pieces // PIECES_A_UNIT)
        engine.n_refs += n_refs
        frames.append(self._with(node.parts, engine.wiki.template_prefix + name, (*self.names, name)))
        return engine.give(frames[0].read(tree))

    def _with(self, parts: Parts, title: str, names: tuple[str, ...], parent: Frame | None = None) -> Frame:
        """Returns the frame of a use with these arguments."""
        self.engine.spend(len(parts))
        arguments: dict[str, Argument] = {}
        number = 0
        for key, value in parts:
            if key is None:
                number += 1
                arguments[str(number)] = (value, self, False)
            else:
                arguments[self.read(key).strip(BLANKS)] = (value, self, True)
        return Frame(self.engine, title, names=names, arguments=arguments, parent=parent)

    def _function(self, name: str, first: str, parts: Parts) -> str:
        engine, wiki = self.engine, self.engine.wiki
        if name in _EXPRESSIONS:
            engine.spend(len(first) // _CHARS_OF_EXPRESSION_A_UNIT)
        if name in CHOICES:
            return CHOICES[name](first.strip(BLANKS), parts, self.read)
        if name == "#ifexist":
            title = first.strip(BLANKS)
            is_there = bool(title) and engine.look_up() and wiki.exists(title)
            return stripped_argument(parts, 0 if is_there else 1, self.read)
        if name == "#invoke":
            return self._invoke(first.strip(BLANKS), parts)
        if name == "#tag":  # white space around its content stays
            name = f"#tag:{without_marks(first).strip(BLANKS).lower()}"
            values = tuple(self.read(value if key is None else (*key, "=", *value)) for key, value in parts)
        else:
            values = (first, *(stripped_argument(parts, number, self.read) for number in range(len(parts))))
        return engine.by_rule(wiki.find_rule(name), Template(name, values, {}))

    def _invoke(self, module: str, parts: Parts) -> str:
        engine = self.engine
        invoke = engine.wiki.invoke
        if invoke is None or not parts:
            engine.n_modules += 1
            return engine.unknown()
        frame = self._with(parts[1:], engine.wiki.module_title(module), self.names, parent=self)
        text = invoke(module, stripped_argument(parts, 0, self.read), frame)
        if text is None:
            engine.n_modules += 1
            return engine.unknown()
        engine.is_invoked = True
        return engine.give(as_expanded(text))


Invoke = Callable[[str, str, Frame], "str | None"]
"""Runs a function of a module: (module name, function name, frame with the arguments of ``#invoke``) -> its
wikitext; None if it cannot be run, which is treated like an unknown template.
"""
Argument = str | tuple[Text, Frame, bool]
"""A value, or its source: the text, the frame that it belongs to, and whether it is stripped."""
MAX_REMEMBERED_CHARS = 64 << 20
"""Number of characters that a process caches: definitions, and uses with their expansions, each up to this size."""
_CHARS_A_PIECE = 64  # cost of a syntax element of a tree in the cache
_CHARS_A_NAME = 64  # cost of a dependency's name in the cache
MAX_NAMES = 1 << 16
"""Number of names of templates whose redirects a process caches."""
_TAG_REF = re.compile(r"\{\{\s*#tag:\s*ref\b", re.IGNORECASE)
_NO_VALUE = re.compile(r"\{{3}[^{}]*\}{3}")
_DOUBLED = re.compile(r"\{(?=\{)|(?<=\})\}")


class Expansion(NamedTuple):
    """The expansion of a use."""

    #: ``expanded``; ``invoked`` if a module took part; ``limit_exceeded`` if a limit was exceeded; ``unknown`` if there
    #: is no definition, or only unknown templates in it. The text is empty for the last two
    outcome: str
    #: the expansion, with only what readers see in running text or in tables
    wikitext: str = ""
    is_infobox: bool = False  #: its box is an infobox
    n_modules: int = 0  #: number of calls of Lua modules that were not run, or failed
    n_refs: int = 0  #: number of references in the definitions used
    #: true if something was left out that a rule may show: an unknown template, a module that was not run, or a box
    #: beside the text if the expansion has nothing else
    is_incomplete: bool = False


_Value = TypeVar("_Value")
_LIMIT_EXCEEDED = Expansion("limit_exceeded", is_incomplete=True)


class _Memory(Generic[_Value]):
    """A cache of values by text, limited in size; it never changes a result."""

    def __init__(self) -> None:
        self._values: dict[str, _Value] = {}
        self._n_chars = 0

    def get(self, key: str) -> _Value | None:
        return self._values.get(key)

    def add(self, key: str, value: _Value, n_chars: int) -> None:
        self._n_chars += n_chars + len(key)
        if self._n_chars > MAX_REMEMBERED_CHARS:
            self._values.clear()
            self._n_chars = n_chars + len(key)
        self._values[key] = value


class Expander:
    """Expands the uses on a wiki's pages. It holds caches; create one per process."""

    def __init__(
        self,
        definitions: Definitions,
        site: Site,
        find_rule: Callable[[str], TemplateRule],
        *,
        invoke: Invoke | None = None,
        exists: Callable[[str], bool] | None = None,
        dependencies: Dependencies | None = None,
    ) -> None:
        """Prepares the expansion.

        Args:
            find_rule: returns the rule for a name. A rule has precedence over the definition if it is marked so;
                otherwise it replaces a missing or incomplete definition.
            exists: returns whether an article exists; by default, none does.
            dependencies: records dependencies.
        """
        self.dependencies = dependencies or Dependencies(site)
        self._definitions = definitions
        self._site = site
        self._trees: _Memory[tuple[Text | None, int, int]] = _Memory()
        self.known: _Memory[tuple[Expansion, tuple[int, int, int], frozenset[str]]] = _Memory()
        self.find_rule = find_rule
        self._resolved: dict[str, tuple[str, TemplateRule]] = {}
        self._fixed_outcome = fixed_outcomes_of(site.lang, self.resolve)
        self.invoke = invoke
        self.exists = exists or (lambda title: False)
        self.template_prefix = (
            f"{namespace_text(TEMPLATE, site)}:"  #: the wiki's own name of the namespace, and a colon
        )

    def module_title(self, name: str) -> str:
        """Returns the full name of a module, with the wiki's own name of the namespace."""
        return f"{namespace_text(MODULE, self._site)}:{upper_first(clean_title(name), self._site.lang)}"

    def name_template(self, head: str) -> str:
        """Returns the normal form of a template's name, without the wiki's own prefix for templates."""
        name = normalise_template_name(head, self._site.lang)
        if ":" in name:
            namespace, rest = split_namespace(name, self._site)
            name = normalise_template_name(rest, self._site.lang) if namespace == TEMPLATE else name
        return name

    def resolve(self, name: str) -> tuple[str, TemplateRule]:
        """Returns the name that a name in normal form resolves to, with redirects of the wiki followed, and the rule
        for it; if it has no rule, the rule for the original name.
        """
        self.dependencies.template(name)
        found = self._resolved.get(name)
        if found is None:
            target = self._definitions.target(name)
            rule = self.find_rule(target)
            if target != name and rule.outcome == "unknown":
                rule = self.find_rule(name)
            if len(self._resolved) >= MAX_NAMES:
                self._resolved.clear()
            found = self._resolved[name] = target, rule
        return found

    def fixed_outcome(self, head: str) -> FixedOutcome | None:
        """Returns the result of ``fixed_outcomes_of``, with redirects of the wiki followed."""
        found = self._fixed_outcome(head)
        if found is not None:
            self.dependencies.template(found.name)
        return found

    def is_category(self, prefix: str) -> bool:
        """Returns whether links with this prefix put a page into a category."""
        return split_namespace(f"{prefix}:x", self._site)[0] == CATEGORY

    def find_tree(self, name: str) -> tuple[Text | None, int, int]:
        """Returns the parsed definition of a template (or None), its number of syntax elements, and of
        references.
        """
        self.dependencies.template(name)
        found = self._trees.get(name)
        if found is None:
            source = self._definitions.source(name)
            cut: Counter[str] = Counter()
            text = None if source is None else transcluded(source, self._site.lang, cut)
            n_pieces = 0 if text is None else count_pieces(text)
            is_there = text is not None and n_pieces <= MAX_PIECES
            tree = without_insides(read_tree(text), self.is_category) if text is not None and is_there else None
            found = (tree, n_pieces, cut["ref"] + len(_TAG_REF.findall(text or "")))
            self._trees.add(name, found, len(text or "") + _CHARS_A_PIECE * n_pieces)
        return found


class PageExpander:
    """Expands the uses on one page, which share the page's budget; its attributes record what was spent."""

    __slots__ = (
        "depth",
        "is_invoked",
        "is_partial",
        "n_chars",
        "n_look_ups",
        "n_modules",
        "n_refs",
        "page",
        "wiki",
        "work",
    )

    def __init__(self, wiki: Expander, page: PageFacts | WatchedPage) -> None:
        self.wiki = wiki
        self.page = WatchedPage(page)
        self.work = self.n_chars = self.n_look_ups = 0
        self._start()

    def _start(self) -> None:
        """Begins a use on the page itself."""
        self.depth = 0  #: number of texts being expanded, each inside the previous one
        self.n_modules = 0  #: number of calls of modules that were not run, or failed
        self.n_refs = 0  #: number of references in the definitions used
        self.is_partial = False  #: an unknown template was left out
        self.page.is_asked = self.is_invoked = False

    def spend(self, work: int) -> None:
        """Charges units of work to the page.

        Raises:
            BoundError: the page's budget of work is exhausted.
        """
        self.work += work
        if self.work > MAX_WORK:
            raise BoundError("work")

    def give(self, text: str) -> str:
        """Charges the output of a template or an argument to the page, and returns it.

        Raises:
            BoundError: the page's output is too large.
        """
        self.n_chars += len(text)
        if self.n_chars > MAX_CHARS:
            raise BoundError("size")
        return text

    def look_up(self) -> bool:
        """Counts a page that ``#ifexist`` looks up; returns whether the limit allows it."""
        self.n_look_ups += 1
        return self.n_look_ups <= MAX_LOOK_UPS

    def _pay(self, work: int, n_chars: int, n_look_ups: int) -> bool:
        """Charges the cost of a cached result if the page's budget allows it, as if it were new; returns whether it
        does.
        """
        work, n_chars, n_look_ups = self.work + work, self.n_chars + n_chars, self.n_look_ups + n_look_ups
        if work > MAX_WORK or n_chars > MAX_CHARS or n_look_ups > MAX_LOOK_UPS:
            return False
        self.work, self.n_chars, self.n_look_ups = work, n_chars, n_look_ups
        return True

    def unknown(self) -> str:
        """Returns the replacement for an unknown template."""
        self.is_partial = True
        return CUT

    def if_complete(self, expand: Callable[[], str]) -> str | None:
        """Returns an expansion; None if something unknown was left out, in which case only its cost is recorded."""
        before = self.is_partial, self.n_modules, self.n_refs
        self.is_partial = False
        text = expand()
        if not self.is_partial:
            self.is_partial = before[0]
            return text
        self.is_partial, self.n_modules, self.n_refs = before
        return None

    def by_rule(self, rule: TemplateRule, template: Template) -> str:
        """Returns the result of a rule for a use."""
        text = run_rule(rule, template, self.page)
        if rule.outcome == "infobox":
            return INFOBOX + (text or "")
        if rule.outcome == "unknown":
            return self.unknown()
        if text is None:
            return CUT
        text = as_expanded(text)
        return self.give(f"\n\n{text}\n\n" if rule.is_block else text)

    def expand(self, inner: str, name: str) -> Expansion:
        """Returns the expansion of a use, from the text between its braces with inner templates expanded; ``name``
        in normal form.
        """
        known, dependencies = self.wiki.known, self.wiki.dependencies
        remembered = known.get(inner)
        # If the budget does not cover a cached result, it is expanded as far as possible, as if it were not cached.
        if remembered is not None and self._pay(*remembered[1]):
            dependencies.names |= remembered[2]
            return remembered[0]
        self._start()
        work, n_chars, n_look_ups = self.work, self.n_chars, self.n_look_ups
        try:
            text, names = dependencies.apart(lambda: self._worked_out(inner))
        except BoundError:
            return _LIMIT_EXCEEDED
        expanded = self._seen(text)
        if not self.page.is_asked and self.n_look_ups <= MAX_LOOK_UPS:
            spent = self.work - work, self.n_chars - n_chars, self.n_look_ups - n_look_ups
            known.add(inner, (expanded, spent, names), len(text) + _CHARS_A_NAME * len(names))
        return expanded

    def _worked_out(self, inner: str) -> str:
        """Returns the expansion of the use; raises BoundError."""
        self.spend(inner.count("|"))
        parts = [
            (None if name is None else (unmark_separators(name),), (unmark_separators(value),))
            for name, value in split_arguments(inner)
        ]
        return Frame(self).use(Use(parts[0][1], tuple(parts[1:]), True), is_by_rule=False)

    def _seen(self, text: str) -> Expansion:
        if "{{" in text or "}}" in text:  # parameters without a value, and unmatched braces
            text = _DOUBLED.sub("", _NO_VALUE.sub(CUT, text))
        text, kinds = read_boxes(text, self.wiki.is_category)
        if self.is_partial and not kinds and not any(map(str.isalnum, text)):
            return Expansion("unknown", n_modules=self.n_modules, n_refs=self.n_refs, is_incomplete=True)
        if text.startswith(BLOCK_STARTS):
            text = LINE + text
        outcome = "invoked" if self.is_invoked else "expanded"
        is_incomplete = self.is_partial or ("aside" in kinds and not text.strip(_NOTHING))
        return Expansion(outcome, text, "infobox" in kinds, self.n_modules, self.n_refs, is_incomplete)


def _on_own_line(text: str, node: Use) -> str:
    """Returns the output of a template or parser function. If it begins with a list, an indented line or a table, it
    begins on a new line.

    Source: braceSubstitution of MediaWiki's Parser.
    """
    return f"\n{text}" if not node.begins_line and text.startswith(BLOCK_STARTS) else text


class _NoDefinitions:
    """Takes the place of the definitions if a dump has none."""

    def source(self, name: str) -> None:
        return None

    def target(self, name: str) -> str:
        return name

    def module(self, name: str) -> None:
        return None


@cache
def _rules_only(lang: str) -> Expander:
    return Expander(_NoDefinitions(), Site(lang=lang), find_rule(lang))


@cache
def _body_tree(body: str, lang: str) -> Text:
    """Returns the tree of a definition in ``rules/*.wiki``. Its links are still unmarked, like those in the output of a
    function."""
    return read_tree(transcluded(body, lang, Counter()).replace(f"[[{TEMPLATE_LINK}", "[["))


_MOST_CHARS_ADDED = 1000


def run_rule(rule: TemplateRule, template: Template, page: PageFacts | WatchedPage) -> str | None:
    """Returns the wikitext that a rule's function or definition makes of a use; None for nothing."""
    if rule.function is not None:
        return rule.function(template, page, **rule.parameters)
    if rule.body is None:
        return None
    arguments = {str(number): value for number, value in enumerate(template.positional, 1)}
    arguments |= template.named | {"0": template.name}
    engine = PageExpander(_rules_only(page.lang), page)
    frame = Frame(engine, names=(template.name,), arguments=dict(arguments))
    try:
        text = frame.read(_body_tree(rule.body, page.lang))
    except BoundError:
        return template.shown()
    n_chars = sum(map(len, arguments.values()))
    if len(text) > 2 * n_chars + _MOST_CHARS_ADDED:  # the arguments are not words of a sentence
        return template.shown()
    return text.replace(CUT, "").replace("&#32;", " ").replace("&nbsp;", NBSP) or None


_FIXED = {outcome: Rendering(outcome, "") for outcome in ("dropped", "unknown", "infobox")}


def render_use(template: Template, page: PageFacts, rule: TemplateRule | None = None) -> Rendering:
    """Returns the rendering of a use by a rule, by default the rule for its name in the page's language; never fails on
    wrong or missing arguments.
    """
    if rule is None:
        rule = find_rule(page.lang)(template.name)
    if rule.function is None and rule.body is None:
        return _FIXED[rule.outcome]
    text = run_rule(rule, template, page)
    return _FIXED["dropped"] if text is None else Rendering(rule.outcome, text, rule.is_block)
