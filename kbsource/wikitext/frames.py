"""Definitions of templates at work: what a page may cost, choices between arguments, and the frames they stand in.

Source: https://www.mediawiki.org/wiki/Help:Extension:ParserFunctions and ParserFunctions.php of the extension.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

from kbsource.wikitext.functions.arguments import PageFacts, Template
from kbsource.wikitext.functions.conditions import CHOICES, nth
from kbsource.wikitext.lines import VARIANT_LANGS, choose_variants
from kbsource.wikitext.markers import CURRENCY, CUT, NUMBER, TEMPLATE_LINK, as_expanded, as_read
from kbsource.wikitext.tags import find_closer, strip_extensions
from kbsource.wikitext.templates import TemplateRule, find_function, is_number, magic, numbered_in_place
from kbsource.wikitext.tree import Parameter, Text, Use, count_pieces, read_tree


class Definitions(Protocol):
    """The templates and modules of one dump, looked up by their names in normal form, without namespace."""

    def source(self, name: str) -> str | None:
        """The wikitext of a template, redirects already followed; None where the dump has none."""

    def module(self, name: str) -> str | None:
        """The source of a Lua module; None where the dump has none."""


class BoundError(Exception):
    """A template went over a limit of MediaWiki's, or over what one page may cost; never leaves this package."""


MAX_DEPTH = 100
"""Expansions within expansions: $wgMaxPPExpandDepth; it was 40 until MediaWiki 1.24."""
MAX_WORK = 500_000
"""Units of work on a page: nodes visited, of which MediaWiki allows 1,000,000 with all its templates in one."""
MAX_CHARS = 2 << 20
"""Characters that templates and arguments may give on a page, counted at each level: $wgMaxArticleSize."""
MAX_PIECES = 100_000
"""Pieces of one definition: braces, pipes, equals signs and links. The longest lists of cases have some thousands."""
PIECES_A_UNIT = 16
"""Pieces of a definition that are a unit of work each time that it is used."""
MAX_LOOK_UPS = 500
"""Pages asked for by ``#ifexist``: $wgExpensiveParserFunctionLimit."""
_CHARS_A_UNIT = 128


class Cost:
    """What has been spent, of each kind; a page's when it is the whole, a call's when it is a difference."""

    __slots__ = ("n_chars", "n_look_ups", "work")

    def __init__(self, work: int = 0, n_chars: int = 0, n_look_ups: int = 0) -> None:
        self.work = work
        self.n_chars = n_chars
        self.n_look_ups = n_look_ups

    def spend(self, work: int) -> None:
        """Adds units of work.

        Raises:
            BoundError: the page has none left.
        """
        self.work += work
        if self.work > MAX_WORK:
            raise BoundError("work")

    def give(self, text: str) -> str:
        """A text that a template or an argument came to, and counts it.

        Raises:
            BoundError: the page has more than it may have.
        """
        self.n_chars += len(text)
        if self.n_chars > MAX_CHARS:
            raise BoundError("size")
        return text

    def copy(self, text: str) -> None:
        """Counts a text that is copied."""
        self.work += len(text) // _CHARS_A_UNIT

    def look_up(self) -> bool:
        """Counts a page that is asked for; says whether it may be."""
        self.n_look_ups += 1
        return self.n_look_ups <= MAX_LOOK_UPS

    def counts(self) -> tuple[int, int, int]:
        """What has been spent so far, for ``since``."""
        return self.work, self.n_chars, self.n_look_ups

    def since(self, work: int, n_chars: int, n_look_ups: int) -> Cost:
        """What was spent since these were the counts."""
        return Cost(self.work - work, self.n_chars - n_chars, self.n_look_ups - n_look_ups)

    def add(self, cost: Cost) -> bool:
        """Adds the cost of what is known already where the page can pay it, as if it were new, and says whether."""
        work, n_chars = self.work + cost.work, self.n_chars + cost.n_chars
        n_look_ups = self.n_look_ups + cost.n_look_ups
        if work > MAX_WORK or n_chars > MAX_CHARS or n_look_ups > MAX_LOOK_UPS:
            return False
        self.work, self.n_chars, self.n_look_ups = work, n_chars, n_look_ups
        return True


Parts = tuple[tuple["Text | None", Text], ...]


MAX_SOURCE_CHARS = 2 << 20
"""Longer sources are no pages: $wgMaxArticleSize of MediaWiki, in bytes there."""

_OPAQUE = "nowiki|pre|syntaxhighlight|source|math|templatedata"
_PIECE = re.compile(rf"<(?:!--|(noinclude|includeonly|onlyinclude|{_OPAQUE})(\s[^<>]*)?(/?)>)", re.IGNORECASE)
_CLOSERS = re.compile(r"</?(?:noinclude|includeonly|onlyinclude)(?:\s[^<>]*)?/?>", re.IGNORECASE)


def transcluded(source: str, lang: str, losses: Counter[str]) -> str:
    """What stands on a page for a template's source, before its braces are read.

    Comments are left out, and extension tags as on pages, which are counted in ``losses``. Links are marked as those of
    a template.

    >>> source = "a<noinclude>b</noinclude><!-- c -->[[d]]<includeonly>e</includeonly>"
    >>> transcluded(source, "en", Counter()).replace("\\x1c", "")
    'a[[d]]e'
    """
    if len(source) > MAX_SOURCE_CHARS:
        return ""
    source, _ = as_read(source)
    if "<" in source:
        if "<onlyinclude>" in source and "</onlyinclude>" in source:
            source = "".join(_only(source))
        source = strip_extensions(_included(source), losses)
    if lang in VARIANT_LANGS:
        source = choose_variants(source)
    return source.replace("[[", f"[[{TEMPLATE_LINK}")


def _only(source: str) -> Iterator[str]:
    """What stands between ``<onlyinclude>`` and its closer."""
    position = 0
    while (start := source.find("<onlyinclude>", position)) >= 0:
        position = source.find("</onlyinclude>", start)
        if position < 0:
            return
        yield source[start + len("<onlyinclude>") : position]


def _included(source: str) -> str:
    """The source without what only the template's own page shows; what no tag closes goes to the end."""
    out: list[str] = []
    position = 0
    unclosed: set[str] = set()
    while match := _PIECE.search(source, position):
        out.append(_CLOSERS.sub("", source[position : match.start()]))
        position = match.end()
        tag = (match[1] or "!--").lower()
        if tag in ("includeonly", "onlyinclude") or (match[3] and tag == "noinclude"):
            continue
        if match[3] or tag in unclosed:
            out.append(match[0])
            continue
        if tag == "!--":
            end = source.find("-->", position)
            position = end + 3 if end >= 0 else len(source)
            if end >= 0:  # whether its line goes with it is decided with the tags
                out.append(source[match.start() : position])
        elif tag == "noinclude":
            closer = find_closer(tag, source, position)
            position = closer.end() if closer else len(source)
        elif closer := find_closer(tag, source, position):
            position = closer.end()
            out.append(source[match.start() : position])
        else:
            unclosed.add(tag)
            out.append(match[0])
    out.append(_CLOSERS.sub("", source[position:]))
    return "".join(out)


INFOBOX = '<table class="infobox"></table>'
"""What an infobox within a definition leaves, so that the box around it is known for one."""
_BLOCK_STARTS = ("*", "#", ":", ";", "{|")


class WatchedPage:
    """PageFacts that know whether they were asked for what other pages have otherwise."""

    __slots__ = ("_facts", "is_asked", "lang", "site")

    def __init__(self, facts: PageFacts) -> None:
        self._facts = facts
        self.lang = facts.lang
        self.site = facts.site
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
    """What expansion knows of a wiki."""

    find_rule: Callable[[str], TemplateRule]  #: gives the rule for a name in normal form
    #: gives the definition of a template by its name, None where there is none, its pieces, and references in it
    find_tree: Callable[[str], tuple[Text | None, int, int]]
    name_template: Callable[[str], str]  #: gives the normal form of a template's name
    invoke: Invoke | None  #: runs Lua modules; None where nothing does
    exists: Callable[[str], bool]  #: says whether there is an article of a title


class Engine:
    """What the frames of one page share."""

    __slots__ = ("cost", "depth", "is_invoked", "is_partial", "n_modules", "n_refs", "page", "wiki")

    def __init__(self, wiki: Wiki, page: PageFacts) -> None:
        self.wiki = wiki
        self.page = WatchedPage(page)
        self.cost = Cost()
        self.start()

    def start(self) -> None:
        """Begins a use that stands on the page itself."""
        self.depth = 0  #: texts at work, each within the one before
        self.n_modules = 0  #: calls of modules that were not run, or failed
        self.n_refs = 0  #: references that stand in the definitions that took part
        self.is_partial = False  #: something was left out that nobody knows
        self.page.is_asked = self.is_invoked = False

    def unknown(self) -> str:
        """What stands for what nobody knows."""
        self.is_partial = True
        return CUT

    def by_rule(self, rule: TemplateRule, template: Template) -> str:
        """What a rule makes of a use."""
        text = rule.function(template, self.page, **rule.parameters) if rule.function else None
        if rule.outcome == "infobox":
            return INFOBOX + (text or "")
        if rule.outcome == "unknown":
            return self.unknown()
        if text is None:
            return CUT
        text = as_expanded(text)
        return self.cost.give(f"\n\n{text}\n\n" if rule.is_block else text)


class Frame:
    """A template or module at work, or the page itself: what ``frame`` is to a Lua module.

    Arguments are worked out when asked for.
    """

    __slots__ = ("_arguments", "engine", "names", "parent", "title")

    def __init__(
        self,
        engine: Engine,
        title: str,
        *,
        names: tuple[str, ...] = (),
        arguments: dict[str, Argument] | None = None,
        parent: Frame | None = None,
    ) -> None:
        self.engine = engine
        self.title = title  #: full name of the template or module, ``Template:Age``; of the page for what stands on it
        self.names = names  #: the templates at work, outermost first, this one included
        self.parent = parent  #: the template that invokes a module; None for a template
        self._arguments = arguments or {}

    @property
    def arguments(self) -> Mapping[str, str]:
        """Values by name, numbers as text; those without a name keep the white space around them."""
        return {name: self._argument(name) or "" for name in self._arguments}

    @property
    def page_title(self) -> str:
        """Title of the page, with spaces; a result that asks for it, or for the time, holds on this page only."""
        return self.engine.page.title

    @property
    def timestamp(self) -> str:
        """ISO time of the page's revision."""
        return self.engine.page.timestamp

    def preprocess(self, wikitext: str) -> str:
        """Wikitext with its templates and ``{{{parameters}}}`` expanded in this frame.

        Raises:
            BoundError: it has more pieces than a definition may have, or the page has spent all that it may.
        """
        n_pieces = count_pieces(wikitext)
        if n_pieces > MAX_PIECES:
            raise BoundError("pieces")
        self.spend(n_pieces + wikitext.count("<"))
        return self.read(read_tree(transcluded(wikitext, self.engine.page.lang, Counter())))

    def expand(self, name: str, arguments: Mapping[str, str]) -> str:
        """The expansion of a template or parser function (``#if``, ``lc:``) with these arguments."""
        numbers = sorted((name for name in arguments if name.isdecimal()), key=lambda name: (len(name), name))
        parts: list[tuple[Text | None, Text]] = [((number,), (arguments[number],)) for number in numbers]
        parts += [((key,), (value,)) for key, value in arguments.items() if not key.isdecimal()]
        if name.rstrip(":").casefold() not in magic().functions:
            return self.use(Use((name,), tuple(parts), True))
        first, *others = [value for _, value in parts] or [("",)]
        return self.use(Use((f"{name.rstrip(':')}:", *first), tuple((None, value) for value in others), True))

    def spend(self, work: int) -> None:
        """Charges units of work to the page.

        Raises:
            BoundError: the page has none left. It must pass through.
        """
        self.engine.cost.spend(work)

    def read(self, text: Text) -> str:
        """A text with all its braces worked out.

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
                shown = self.use(node)
                out.append(NUMBER if shown == CUT and out and out[-1][-1:] in CURRENCY else shown)
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
        """What stands for one use, by a rule where there is one and it may be."""
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
            partial, n_modules, n_refs = engine.is_partial, engine.n_modules, engine.n_refs
            text = self._defined(node, name)
            if not any(map(str.isalnum, text)):
                text, engine.is_partial, engine.n_modules, engine.n_refs = None, partial, n_modules, n_refs
        if text is None:
            named = dict(self._with(node.parts, "", ()).arguments) if rule.function else {}
            numbered = {int(key): named.pop(key) for key in list(named) if is_number(key)}
            text = engine.by_rule(rule, numbered_in_place(name, [], named, numbered))
        return f"\n{text}" if not node.begins_line and text.startswith(_BLOCK_STARTS) else text

    def _defined(self, node: Use, name: str) -> str:
        """What a template's definition makes of a use.

        Raises:
            BoundError: it goes round in a loop, or the page has spent all that it may.
        """
        engine = self.engine
        tree, n_pieces, n_refs = engine.wiki.find_tree(name)
        if name in self.names or n_pieces > MAX_PIECES:
            raise BoundError("loop" if name in self.names else "pieces")
        if tree is None:
            return engine.unknown()
        engine.cost.spend(n_pieces // PIECES_A_UNIT)
        engine.n_refs += n_refs
        return engine.cost.give(self._with(node.parts, f"Template:{name}", (*self.names, name)).read(tree))

    def _with(self, parts: Parts, title: str, names: tuple[str, ...], parent: Frame | None = None) -> Frame:
        """The frame of what is used with these arguments."""
        self.engine.cost.spend(len(parts))
        arguments: dict[str, Argument] = {}
        number = 0
        for key, value in parts:
            if key is None:
                number += 1
                arguments[str(number)] = (value, self, False)
            else:
                arguments[self.read(key).strip()] = (value, self, True)
        return Frame(self.engine, title, names=names, arguments=arguments, parent=parent)

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
        if name == "#tag":
            name, values = f"#tag:{first.strip().lower()}", values[1:]
        return engine.by_rule(wiki.find_rule(name), Template(name, values, {}))

    def _invoke(self, module: str, parts: Parts) -> str:
        engine = self.engine
        invoke = engine.wiki.invoke
        if invoke is None or not parts:
            engine.n_modules += 1
            return engine.unknown()
        frame = self._with(parts[1:], f"Module:{module}", self.names, parent=self)
        text = invoke(module, nth(parts, 0, self.read), frame)
        if text is None:
            engine.n_modules += 1
            return engine.unknown()
        engine.is_invoked = True
        return engine.cost.give(as_expanded(text))


Invoke = Callable[[str, str, Frame], "str | None"]
"""Runs a function of a module: (module name, function name, frame with the arguments of ``#invoke``) -> its wikitext;
None where it cannot be run, which leaves a gap as an unknown template does."""
Argument = str | tuple[Text, Frame, bool]
"""A value, or what it is worked out from: the text, the frame that it stands in, and whether it is stripped."""
