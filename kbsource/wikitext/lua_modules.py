"""Runs Lua modules in place of MediaWiki: answers the requests of Scribunto's library about frames, titles, languages
and time.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import time as clock
import unicodedata
import urllib.parse
import zlib
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple

from kbsource.languages import edition_code, interwiki_prefixes, language_codes
from kbsource.numerals import unescape
from kbsource.site import CANONICAL_NAMESPACES, TEMPLATE, Site
from kbsource.titles import clean_title, is_valid_title, normalise_title, split_namespace, upper_first
from kbsource.wikitext.dependencies import GENERATOR, MODULE, Dependencies
from kbsource.wikitext.expander import Argument, BoundError, Definitions, Frame
from kbsource.wikitext.functions import foreign
from kbsource.wikitext.functions.arguments import PageFacts
from kbsource.wikitext.functions.clock import read_moment, write_moment
from kbsource.wikitext.functions.inflection import inflect, plural_form
from kbsource.wikitext.functions.messages import fallbacks, message
from kbsource.wikitext.functions.numbers import format_number, local_digits, unformat_number
from kbsource.wikitext.markers import CUT, LITERAL_OF, find_marks, unliteral, without_forged_marks

INSTRUCTIONS_A_UNIT = 100
"""Lua instructions per unit of a page's work budget. The whole budget allows about a second of Lua."""
MAX_BYTES = 2 << 20
"""Maximum size in bytes of a text passed between a module and the library: $wgMaxArticleSize, as in Scribunto."""
STOP = b"\0stop\0"
"""Answer to the sandbox if the page's budget is exhausted."""
FAULT = b"\0fault\0"
"""Answer, with a message, if a function receives an invalid argument."""
MAX_SECONDS = 20.0
"""Maximum CPU seconds of one run. A last resort: the other limits normally stop a module long before."""
_UNITS_A_LOOK_UP = 100
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_REFERENCE = re.compile(r"&(?:lt|gt|amp|quot|nbsp|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_ANY_REFERENCE = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")
# Wikimedia's projects by prefix: first those with one wiki per language, then the others. Source: the interwiki map of
# Wikimedia, 2024.
_PROJECTS = {
    "b": "wikibooks", "n": "wikinews", "q": "wikiquote", "s": "wikisource", "v": "wikiversity", "voy": "wikivoyage",
    "w": "wikipedia", "wikibooks": "wikibooks", "wikinews": "wikinews", "wikipedia": "wikipedia",
    "wikiquote": "wikiquote", "wikisource": "wikisource", "wikiversity": "wikiversity", "wikivoyage": "wikivoyage",
    "wikt": "wiktionary", "wiktionary": "wiktionary",
}  # fmt: skip
_COMMON_PROJECTS = {
    "c": "commons.wikimedia", "commons": "commons.wikimedia", "d": "www.wikidata", "f": "www.wikifunctions",
    "foundation": "foundation.wikimedia", "incubator": "incubator.wikimedia", "m": "meta.wikimedia",
    "meta": "meta.wikimedia", "mw": "www.mediawiki", "species": "species.wikimedia", "wikidata": "www.wikidata",
    "wikispecies": "species.wikimedia",
}  # fmt: skip


@cache
def _interwiki(edition: str) -> dict[str, str]:
    """Returns the URL pattern of each interwiki prefix (lower case), with ``$1`` for the title. The URLs of sites
    outside Wikimedia lead through Meta-Wiki.
    """
    meta = "https://meta.wikimedia.org/wiki/Special:GoToInterwiki"
    urls = {prefix: f"{meta}/{prefix}:$1" for prefix in sorted(interwiki_prefixes())}
    urls |= {prefix: f"https://{edition}.{name}.org/wiki/$1" for prefix, name in _PROJECTS.items()}
    urls |= {prefix: f"https://{host}.org/wiki/$1" for prefix, host in _COMMON_PROJECTS.items()}
    return urls | {code: f"https://{edition_code(code)}.wikipedia.org/wiki/$1" for code in sorted(language_codes())}


def _is_of_wikimedia(url: str) -> bool:
    return "/Special:GoToInterwiki/" not in url


@lru_cache(maxsize=64)
def _language_names(inside: str) -> dict[str, str]:
    """Returns the names of languages by code. Without ``inside``, each name is in its own language; otherwise it is in
    ``inside``, or else in its fallback languages, of which English is the last.
    """
    names = foreign.language_names("autonyms")
    for lang in reversed((inside, *fallbacks(inside), "en") if inside else ()):
        names = names | foreign.language_nouns(lang)
    return names


Value = str | int | float | bytes | bool | None


class LibraryRequest(NamedTuple):
    """A kind of request that the library may send to the host."""

    #: kinds of the arguments, one letter each: ``s`` text, in which bytes that are not UTF-8 are replaced; ``u`` text,
    #: an error if it is not UTF-8; ``y`` text, None if it is not UTF-8; ``n`` number; ``b`` boolean; ``v`` any of them
    #: or None. ``*`` after the last letter: the last argument may be repeated
    takes: str
    answer: Callable[..., Value | tuple[Value, ...]]
    bytes_a_unit: int = 1024  #: bytes of the arguments that cost one unit of the page's work budget


class ArgumentError(Exception):
    """A function of the library received an invalid argument; Lua code sees an error."""


_KINDS = {"s": "string", "u": "string", "y": "string", "n": "number", "b": "boolean", "v": "string"}
_LARGEST = 2.0**53
_DECIMAL = re.compile(rb"\s{0,9}[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,3})?\s{0,9}")
_BETWEEN_CUTS = re.compile(f"{CUT}([^{CUT}]+){CUT}")
_MAX_MARKS = 1000  # maximum in a row; normalisation sorts them in quadratic time


def _taken(value: object, kind: str) -> Value:
    """Returns a value converted to the kind of an argument. Numbers become texts and texts numbers as in Lua.

    Raises:
        ArgumentError: the value cannot be converted, or is too large.
    """
    if kind == "v" and (value is None or isinstance(value, bool | int | float)):
        return value
    if kind == "b" and isinstance(value, bool):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if kind == "n" and value == value:
            return min(max(value, -_LARGEST), _LARGEST)
        if kind in "suy":
            return f"{value:.14g}"
    if isinstance(value, bytes) and kind in "suyv":
        if len(value) > MAX_BYTES:
            raise ArgumentError(f"string of more than {MAX_BYTES} bytes")
        try:
            return _orderly(value.decode("utf-8", "strict" if kind in "uy" else "replace"))
        except UnicodeDecodeError as error:
            if kind == "y":
                return None
            raise ArgumentError("string is not UTF-8") from error
    if isinstance(value, bytes) and kind == "n" and _DECIMAL.fullmatch(value):
        return _taken(float(value), kind)
    raise ArgumentError(f"{_KINDS[kind]} expected, got {_named(value)}")


def _orderly(text: str) -> str:
    """Returns the text unchanged if it can be normalised in reasonable time.

    Raises:
        ArgumentError: it has too many combining marks in a row.
    """
    if len(text) > _MAX_MARKS and not text.isascii():
        marks = [letter for letter in set(text) if unicodedata.combining(unicodedata.normalize("NFKD", letter)[0])]
        if marks and re.search(f"[{re.escape(''.join(marks))}]{{{_MAX_MARKS}}}", text):
            raise ArgumentError(f"more than {_MAX_MARKS} combining marks side by side")
    return text


def _in_normal_form(text: str) -> str:
    """Returns the wikitext of a module in Unicode normal form C, in which MediaWiki stores all text. A text that would
    take too long is returned unchanged.
    """
    if text.isascii():
        return text
    try:
        return unicodedata.normalize("NFC", _orderly(text))
    except ArgumentError:
        return text


def _all_taken(values: tuple[object, ...], kinds: str) -> list[Value]:
    """Returns the values converted to the kinds of the arguments."""
    if kinds.endswith("*"):
        kinds = kinds[:-2] + kinds[-2] * (len(values) - len(kinds) + 2)
    if len(values) != len(kinds):
        raise ArgumentError(f"{len(kinds)} values expected, got {len(values)}")
    return [_taken(value, kind) for value, kind in zip(values, kinds, strict=True)]


def _encoded(answer: Value | tuple[Value, ...]) -> Value | tuple[Value, ...]:
    """Returns an answer in the form passed to Lua."""
    if isinstance(answer, tuple):
        return tuple(value.encode("utf-8", "replace") if isinstance(value, str) else value for value in answer)
    encoded = answer.encode("utf-8", "replace") if isinstance(answer, str) else answer
    if isinstance(encoded, bytes) and len(encoded) > 2 * MAX_BYTES:
        raise ArgumentError(f"its result has more than {2 * MAX_BYTES} bytes")
    return encoded


def _named(value: object) -> str:
    """Returns Lua's name for the type of a value."""
    if isinstance(value, bool) or value is None:
        return "nil" if value is None else "boolean"
    return "string" if isinstance(value, bytes) else "nan" if value != value else "number"


class Host:
    """Answers the requests of the library while a module runs."""

    def __init__(
        self, frame: Frame, site: Site, definitions: Definitions, modules: LuaModules, exists: Callable[[str], bool]
    ) -> None:
        self._frame = frame
        self._site = site
        self._definitions = definitions
        self._modules = modules
        self._exists = exists
        self._children: list[Frame] = []
        self._marks: set[str] = set()  # structural markers in the texts passed to the module
        self.bound: BoundError | None = None  #: the limit that the page exceeded; None if none
        self._last = clock.thread_time() + MAX_SECONDS

    def __call__(self, name: bytes, *values: object) -> Value | tuple[Value, ...]:
        """Answers a request; texts are passed as UTF-8. No exception propagates through Lua.

        Before the arguments are processed, their size is charged to the page's budget.
        """
        question = _QUESTIONS[name.decode()]
        try:
            n_bytes = sum(len(value) for value in values if isinstance(value, bytes))
            self._frame.spend(1 + n_bytes // question.bytes_a_unit)
            return _encoded(question.answer(self, *_all_taken(values, question.takes)))
        except ArgumentError as error:
            return FAULT, f"bad argument to '{name.decode()}' ({error})".encode()
        except (BoundError, RecursionError) as error:
            self.bound = error if isinstance(error, BoundError) else BoundError("depth")
            return STOP

    def _spend(self, instructions: float) -> None:
        self._frame.spend(int(instructions) // INSTRUCTIONS_A_UNIT)
        if clock.thread_time() > self._last:
            raise BoundError("time")

    # Frames.

    def _frame_of(self, number: float) -> Frame:
        """Returns the frame of the module (0), of the template that invokes it (1), or of a child frame created by
        the module (from 2).
        """
        frames = [self._frame, self._frame.parent or self._frame, *self._children]
        if not 0 <= number < len(frames):
            raise ArgumentError("no such frame")
        return frames[int(number)]

    def _given(self, wikitext: str) -> str:
        """Records the markers in wikitext passed to the module, because its output may contain them."""
        self._marks |= find_marks(wikitext)
        return wikitext

    def taken(self, wikitext: str) -> str:
        """Returns wikitext from the module, without markers that it did not receive."""
        return without_forged_marks(wikitext, self._marks)

    def _arguments_of(self, flat: tuple[str, ...]) -> dict[str, str]:
        """Returns the arguments that the module passes as a list of alternating keys and values."""
        texts = [*map(self.taken, flat)]
        return dict(zip(texts[::2], texts[1::2], strict=True))

    def _preprocess(self, number: float, wikitext: str) -> str:
        return self._given(self._frame_of(number).preprocess(self.taken(wikitext)))

    def _child(self, number: float, title: str, *flat: str) -> int:
        self._frame.spend(_UNITS_A_LOOK_UP)
        frame = self._frame_of(number)
        arguments: dict[str, Argument] = {**self._arguments_of(flat)}
        child = Frame(frame.engine, title or frame.title, names=frame.names, arguments=arguments, parent=frame)
        self._children.append(child)
        return len(self._children) + 1

    def _empty_frame(self) -> int:
        """Returns the number of a new frame without arguments and without a parent, on the page itself."""
        frame = Frame(self._frame.engine, names=self._frame.names)
        self._children.append(frame)
        return len(self._children) + 1

    def _arguments(self, number: int) -> bytes:
        arguments = self._frame_of(number).arguments
        numbers = [key for key in arguments if key.isdecimal() and key.isascii()]
        if len(numbers) > 1:
            numbers.sort(key=lambda key: (len(key), key))
        others = arguments if not numbers else [key for key in arguments if not (key.isdecimal() and key.isascii())]
        texts = [text for key in (*numbers, *others) for text in (key, arguments[key])]
        self._given("".join(texts))
        encoded = [text.encode("utf-8", "replace") for text in texts]
        return b"".join([b"%d:%s" % (len(text), text) for text in encoded])

    def _expand(self, number: int, name: str, *flat: str) -> str:
        return self._given(self._frame_of(number).expand(self.taken(name), self._arguments_of(flat)))

    # Pages.

    def _module(self, written: str) -> tuple[bytes | None, str]:
        number, name = split_namespace(clean_title(written), self._site)
        if number != MODULE:
            return None, f"module '{written}' not found"
        found = self._modules.compiled(upper_first(name, self._site.lang))
        self._frame.spend(len(found[0]) // 4096 if found[0] is not None else _UNITS_A_LOOK_UP)
        return found

    def _namespaces(self) -> str:
        site = self._site
        aliases = dict.fromkeys((*site.aliases, *site.language_facts.namespace_aliases))
        rows = []
        for number in sorted({0} | set(site.namespaces or CANONICAL_NAMESPACES)):
            canonical = CANONICAL_NAMESPACES.get(number, ("",))[0]
            name = site.namespaces.get(number, canonical)
            others = "|".join(alias for alias, of in aliases if of == number and alias not in (name, canonical))
            rows.append(f"{number}\t{name}\t{canonical}\t{others}\n")
        return "".join(rows)

    def _namespace(self, name: str) -> int | None:
        return 0 if not name else self._site.namespace_by_name.get(clean_title(name).casefold())

    def _split(self, written: str, namespace: int = 0) -> tuple[int, str, str, str] | None:
        """Returns namespace, title without its prefix, fragment, and interwiki prefix.

        Source: MediaWikiTitleCodec::splitTitleString of MediaWiki 1.39.
        """
        text, _, fragment = clean_title(unescape(written)).partition("#")
        text = text.strip(" ")
        prefix, colon, rest = text.lstrip(": ").partition(":")
        prefix = prefix.strip(" ").lower()
        if colon and self._site.namespace_by_name.get(prefix) is None and prefix in _interwiki(self._site.edition):
            if prefix not in self._site.own_prefixes:
                return 0, rest.strip(" "), fragment, prefix
            text = rest
        number, name = split_namespace(normalise_title(text, self._site), self._site)
        if not number and namespace and not text.startswith(":"):
            number, name = namespace, upper_first(name, self._site.lang)
        if not is_valid_title(name, namespace=number):
            return None
        return number, name, fragment, ""

    def _url(self, kind: str, page: str, query: str) -> str | None:
        found = self._split(page)
        if found is None:
            return None
        number, name, fragment, interwiki = found
        space = self._site.namespaces.get(number, CANONICAL_NAMESPACES.get(number, ("",))[0])
        # Source: wfUrlencode of MediaWiki 1.39.
        target = urllib.parse.quote(f"{space}:{name}".lstrip(":").replace(" ", "_"), safe="/:(),!*@;$~-._")
        if interwiki:
            url = _interwiki(self._site.edition)[interwiki].replace("$1", target).partition("//")[2]
            prefix, path = "//", f"{url}?{query}" if query else url
        else:
            prefix = "" if kind == "localUrl" else f"//{self._site.host}"
            path = f"/w/index.php?title={target}&{query}" if query else f"/wiki/{target}"
        if kind == "canonicalUrl":
            prefix = f"{'http' if self._site.base_url.startswith('http:') else 'https'}:{prefix}"
        if fragment and kind != "localUrl":
            path += f"#{fragment.replace(' ', '_')}"
        return f"{prefix}{path}"

    def _interwiki_rows(self) -> str:
        own = self._site.own_prefixes
        rows = _interwiki(self._site.edition).items()
        return "".join(
            f"{prefix}\t{url}\t{'+' if _is_of_wikimedia(url) else '-'}{'+' if prefix in own else '-'}\n"
            for prefix, url in rows
        )

    def _there(self, title: str) -> bool:
        self._frame.spend(_UNITS_A_LOOK_UP)
        number, _ = split_namespace(title, self._site)
        return self._definition(title) is not None if number else self._exists(title)

    def _content(self, title: str) -> str | None:
        self._frame.spend(_UNITS_A_LOOK_UP)
        return self._definition(title)

    def _definition(self, title: str) -> str | None:
        number, name = split_namespace(title, self._site)
        if number == TEMPLATE:
            self._modules.dependencies.template(name)
            return self._definitions.source(name)
        if number == MODULE:
            self._modules.dependencies.module(name)
            return self._definitions.module(name)
        return None

    def _version(self) -> str:
        self._modules.dependencies.names.add(GENERATOR)
        return self._site.generator.removeprefix("MediaWiki ") or "1.39"

    # Languages, numbers, time.

    def _now(self) -> int | None:
        found = read_moment("", PageFacts(self._site.lang, "", self._frame.timestamp))
        return None if found is None else (found[1] - _EPOCH) // datetime.timedelta(seconds=1)

    def _date(self, form: str, seconds: float) -> str:
        try:
            moment = _EPOCH + datetime.timedelta(seconds=int(seconds))
        except OverflowError:
            return ""
        if form != "*t":
            return moment.strftime(form)
        names = {"year": moment.year, "month": moment.month, "day": moment.day, "hour": moment.hour}
        names |= {"min": moment.minute, "sec": moment.second}
        names |= {"wday": moment.isoweekday() % 7 + 1, "yday": moment.timetuple().tm_yday}
        return " ".join(f"{name}={value}" for name, value in names.items())

    def _format_date(self, form: str, written: Value, lang: str) -> str | None:
        text = str(written)
        facts = PageFacts(lang)
        found = read_moment(text, facts)
        if found is None:
            facts = PageFacts(lang, "", self._frame.timestamp)
            found = read_moment(text, facts)
            if found is None:
                return None
        if not (found[0].month and found[0].day):  # a module needs complete dates
            text = found[1].replace(tzinfo=None).isoformat(" ")
        return write_moment(form, text, facts, lang)

    def _decode(self, text: str, is_any: Value) -> str:
        pattern = _ANY_REFERENCE if is_any else _REFERENCE
        return pattern.sub(lambda found: unescape(found[0]), text)

    def _unstrip(self, text: str) -> str:
        """Returns a text with its literal characters restored as wikitext, and without the markers around them."""
        text = text.replace(LITERAL_OF["&"], "&amp;").replace(LITERAL_OF["<"], "&lt;")
        return unliteral(_BETWEEN_CUTS.sub(r"\1", text))

    def _part(self, text: str, first: float, last: float) -> str:
        start, end = int(first), int(last)
        start = max(start + len(text), 0) if start < 0 else max(start - 1, 0)
        return text[start : max(end + len(text) + 1 if end < 0 else end, 0)]

    def _one_to_one(self, text: str, *, is_upper: bool) -> str:
        changed = text.upper() if is_upper else text.lower()
        if len(changed) == len(text):
            return changed
        pairs = ((letter, letter.upper() if is_upper else letter.lower()) for letter in text)
        return "".join(other if len(other) == 1 else letter for letter, other in pairs)


# Names as in PHP. Source: hash_algos of PHP 8.1.
_HASHES = "md5 sha1 sha224 sha256 sha384 sha512 sha3-224 sha3-256 sha3-384 sha3-512 adler32 crc32b"


def _digest(name: str, text: str) -> str | None:
    if name not in _HASHES.split():
        return None
    data = text.encode("utf-8", "replace")
    if name in ("adler32", "crc32b"):
        return f"{zlib.adler32(data) if name == 'adler32' else zlib.crc32(data):08x}"
    return hashlib.new(name.replace("sha3-", "sha3_"), data, usedforsecurity=False).hexdigest()


_QUESTIONS = {
    "spend": LibraryRequest("n", Host._spend),
    "arguments": LibraryRequest("n", Host._arguments),
    "has_parent": LibraryRequest("", lambda host: host._frame.parent is not None),
    "frame_title": LibraryRequest("n", lambda host, number: host._frame_of(number).shown_title),
    "child": LibraryRequest("nss*", Host._child, 64),
    "empty_frame": LibraryRequest("", Host._empty_frame),
    "expensive": LibraryRequest("", lambda host: host._frame.engine.look_up()),
    "preprocess": LibraryRequest("ns", Host._preprocess, 64),
    "expand": LibraryRequest("nss*", Host._expand, 64),
    "module": LibraryRequest("s", Host._module, 64),
    "namespaces": LibraryRequest("", Host._namespaces),
    "namespace": LibraryRequest("s", Host._namespace, 64),
    "title": LibraryRequest("sn", lambda host, written, space: host._split(written, int(space)) or (None,) * 4, 8),
    "page_title": LibraryRequest("", lambda host: host._frame.page_title),
    "exists": LibraryRequest("s", Host._there, 64),
    "content": LibraryRequest("s", Host._content, 64),
    "url": LibraryRequest("sss", Host._url, 8),
    "interwiki": LibraryRequest("", Host._interwiki_rows),
    "is_local": LibraryRequest(
        "s", lambda host, prefix: not prefix or _is_of_wikimedia(_interwiki(host._site.edition).get(prefix, ""))
    ),
    "now": LibraryRequest("", Host._now),
    "date": LibraryRequest("sn", Host._date, 2),
    "format_date": LibraryRequest("sss", Host._format_date, 2),
    "plural": LibraryRequest("sss*", lambda host, lang, number, *forms: plural_form(number, forms, lang), 64),
    "language_name": LibraryRequest("ss", lambda host, code, inside: _language_names(inside).get(code.lower()), 64),
    "decode": LibraryRequest("sb", Host._decode, 8),
    "sub": LibraryRequest("unn", Host._part),
    "unstrip": LibraryRequest("s", Host._unstrip, 64),
    "site_name": LibraryRequest("", lambda host: host._site.name),
    "host": LibraryRequest("", lambda host: f"//{host._site.host}"),
    "wiki_id": LibraryRequest("", lambda host: host._site.dbname),
    "version": LibraryRequest("", Host._version),
    "code": LibraryRequest("", lambda host: host._site.lang),
    "hash_names": LibraryRequest("", lambda host: _HASHES),
    "hash": LibraryRequest("ss", lambda host, name, text: _digest(name, text), 128),
    "message": LibraryRequest("ss", lambda host, key, lang: message(key, lang), 64),
    "fallbacks": LibraryRequest("s", lambda host, lang: " ".join(fallbacks(lang)), 64),
    "language_names": LibraryRequest(
        "s",
        lambda host, inside: "".join(f"{code}\t{name}\n" for code, name in _language_names(inside).items()),
    ),
    "upper_first": LibraryRequest("ss", lambda host, text, lang: upper_first(text, lang), 64),
    "grammar": LibraryRequest("sss", lambda host, word, case, lang: inflect(word, case, lang), 64),
    "is_rtl": LibraryRequest("s", lambda host, lang: foreign.is_right_to_left(lang)),
    "category": LibraryRequest(
        "n", lambda host, code: unicodedata.category(chr(int(code))) if 0 <= code < 0x110000 else "Cn"
    ),
    "same": LibraryRequest("s", lambda host, text: text),
    "length": LibraryRequest("y", lambda host, text: None if text is None else len(text)),
    "upper": LibraryRequest("u", lambda host, text: host._one_to_one(text, is_upper=True), 32),
    "lower": LibraryRequest("u", lambda host, text: host._one_to_one(text, is_upper=False), 32),
    "normalise": LibraryRequest("sy", lambda host, form, text: text and unicodedata.normalize(form, text), 8),
    "format_number": LibraryRequest(
        "ssb",
        lambda host, number, lang, is_grouped: (format_number if is_grouped else local_digits)(number, lang),
        16,
    ),
    "plain_number": LibraryRequest("ss", lambda host, text, lang: unformat_number(text, lang), 64),
}


MAX_MEMORY = 32 << 20
"""Maximum memory of a module in bytes. MediaWiki allows 50 % more, but for all modules of a page together.

The module itself may use 24 MiB. The sandbox sends a request only if the rest has room for the largest answer.
"""
MAX_NESTED = 10
"""Maximum nesting depth of modules: the wikitext that a module expands may call another module."""
_UNITS_A_RUN = 250  # cost of preparing a Lua state for a run
_MAX_REMEMBERED_BYTES = 32 << 20
_BYTES_A_NAME = 512
_COMPILE = b"""function(source, name)
    local compiled, problem = loadstring(source, name)
    if compiled then return string.dump(compiled), '' end
    return nil, problem
end"""
_BYTECODE = "\x1b"  # modules may not contain bytecode


class LuaModules:
    """The modules of a wiki. Implements ``Invoke``. Without ``exists``, modules see no article as existing.

    Compiled modules are cached, and Lua states are reused. Nothing else passes from one run to the next, neither
    variables nor memory in use, so limits do not depend on earlier runs.
    """

    def __init__(
        self,
        definitions: Definitions,
        site: Site,
        exists: Callable[[str], bool] | None = None,
        dependencies: Dependencies | None = None,
    ) -> None:
        self.dependencies = dependencies or Dependencies(site)  #: records the dependencies of modules
        self._definitions = definitions
        self._site = site
        self._exists = exists or (lambda title: False)
        self._compiler = _new_state().eval(_COMPILE)
        self._compiled: dict[str, tuple[bytes | None, str]] = {}
        self._n_bytes = 0
        self._n_running = 0
        folder = resources.files("kbsource.wikitext").joinpath("lua")
        sources = {path.name.removesuffix(".lua"): path.read_text("utf-8") for path in folder.iterdir()}
        self._library = {name: self._compile(source, f"={name}")[0] for name, source in sources.items()}
        self._idle: list[_State] = []  # states to reuse

    def compiled(self, name: str) -> tuple[bytes | None, str]:
        """Returns the compiled module and an empty string, or None and an error message. The name must be in normal
        form.
        """
        self.dependencies.module(name)
        found = self._compiled.get(name)
        if found is None:
            source = self._definitions.module(name)
            if source is None or source.startswith(_BYTECODE) or len(source) > MAX_BYTES:
                found = (None, f"module '{name}' not found")
            else:
                found = self._compile(source, f"=Module:{name}")
            n_bytes = _BYTES_A_NAME + len(name) + len(found[0] or b"")
            self._n_bytes += n_bytes
            if self._n_bytes > _MAX_REMEMBERED_BYTES:
                self._compiled.clear()
                self._n_bytes = n_bytes
            self._compiled[name] = found
        return found

    def __call__(self, module: str, function: str, frame: Frame) -> str | None:
        """Returns the wikitext that a function of a module returns; None if it fails."""
        import lupa.lua51

        name = upper_first(clean_title(module), self._site.lang)
        if self.compiled(name)[0] is None:
            return None
        if self._n_running >= MAX_NESTED:
            raise BoundError("depth")
        frame.spend(_UNITS_A_RUN)
        host = Host(frame, self._site, self._definitions, self, self._exists)
        self._n_running += 1
        state = self._idle.pop() if self._idle else _State(self._library)
        try:
            text = state.run(host, f"Module:{name}", function.strip())
        except lupa.lua51.LuaMemoryError as error:
            raise BoundError("memory") from error
        except lupa.lua51.LuaError as error:
            if host.bound is None and "stopped" not in str(error).split("\n", 1)[0]:
                return None
            raise host.bound or BoundError("memory") from error
        finally:
            self._n_running -= 1
        if host.bound is not None:
            raise host.bound
        if state.clean():
            self._idle.append(state)
        return host.taken(_in_normal_form(text.decode("utf-8", "replace")))

    def _compile(self, source: str, name: str) -> tuple[bytes | None, str]:
        import lupa.lua51

        try:
            compiled, problem = self._compiler(source.encode("utf-8", "replace"), name.encode())
        except lupa.lua51.LuaMemoryError:
            return None, "not enough memory"
        return compiled, bytes(problem).decode("utf-8", "replace")


class _State:
    """A Lua state with the library. It runs one module after another; see ``lua/state.lua``."""

    def __init__(self, library: dict[str, bytes | None]) -> None:
        state = _new_state()
        self._desk = _Desk()
        load = state.eval(b"function(compiled, ...) return loadstring(compiled)(...) end")
        add, self._run, self._clean = load(library["state"], self._desk)
        for name, compiled in library.items():
            add(name.encode(), compiled)
        del load, add, state  # not part of the size that the first cleaning records
        self.clean()

    def run(self, host: Host, module: str, function: str) -> bytes:
        """Calls a function of a module and returns its result; errors in Lua are raised."""
        self._desk.host = host
        try:
            return bytes(self._run(module.encode(), function.encode()))
        finally:
            self._desk.host = None

    def clean(self) -> bool:
        """Resets the state after a run; returns whether it is as it was before its first run."""
        return bool(self._clean())


class _Desk:
    """Passes requests from a Lua state to the host of the current run."""

    __slots__ = ("host",)

    def __init__(self) -> None:
        self.host: Host | None = None

    def __call__(self, name: bytes, *values: object) -> Value | tuple[Value, ...]:
        return self.host(name, *values) if self.host is not None else STOP


def _new_state() -> Any:
    """Returns a Lua state that can access only the Python objects that are passed to it."""
    import lupa.lua51

    return lupa.lua51.LuaRuntime(
        encoding=None,
        register_eval=False,
        register_builtins=False,
        unpack_returned_tuples=True,
        attribute_filter=_refuse,
        max_memory=MAX_MEMORY,
    )


def _refuse(value: object, name: object, is_set: bool) -> object:
    raise AttributeError("no attribute of a Python object is open to Lua")
