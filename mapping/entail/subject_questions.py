"""Questions whose question word is the subject: who wrote Hamlet, what is the capital of France.

There the answer can take the question word's place and the words stay in their order. Nothing is parsed; a question
is taken only where the words at its beginning leave no other reading, and of what could be one of two things neither
is.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from mapping.search.sentences import sentence_spans

Number = Literal["singular", "plural"]


class Clause(NamedTuple):
    """What is said of the answer.

    Attributes:
        words: behind it, the verb first.
        number: that the verb wants; None where it takes both.
        is_name_for: the verb puts the answer and a noun on one level: *is the capital of France*.
    """

    words: str
    number: Number | None
    is_name_for: bool


def subject_clause(question: str) -> Clause | None:
    """Gives what a question says of its answer; None where the question word is not its subject for certain.

    >>> subject_clause("who wrote Hamlet")
    Clause(words='wrote Hamlet', number=None, is_name_for=False)
    >>> subject_clause("who did she marry") is None
    True
    """
    found = _BEGINS.fullmatch(question)
    if found is None or _is_odd(question, found["wh"], found["rest"].lstrip()):
        return None
    wh = found["wh"].lower()
    verb, rest = "is" if found["is"] else found["verb"], found["rest"].lstrip()
    if verb in _BE:
        clause = _after_be(wh, verb, rest)
        return None if found["is"] and not rest.startswith(_AFTER_SHORT) else clause
    if found["is"]:
        return None
    if verb in _HAVE:
        return _after_have(verb, rest) if wh in ("who", "what") else None
    return _after_other(verb, rest) if wh == "who" else None


def _is_odd(question: str, wh: str, rest: str) -> bool:
    """Says whether the question is more than one, or its gap may be elsewhere."""
    lower = question.lower()
    return (
        (wh.isupper() and not question.isupper())  # the WHO
        or len(sentence_spans(question)) != 1
        or _SEVERAL.search(lower, len(wh)) is not None
        or _STRANDED.search(lower) is not None
        or _QUESTION_WORD.match(rest.lower()) is not None
    )


def _after_be(wh: str, verb: str, rest: str) -> Clause | None:
    first, _, others = _words_of(rest)
    number: Number = "singular" if verb in ("is", "was") else "plural"
    words = f"{verb} {rest}"
    if _is_participle(first) and not (wh == "what" and first in _NAMES):
        return Clause(words, number, False)
    if wh == "who" and _is_ing(first) and others:
        return Clause(words, number, False)
    if wh != "which" and first in _PLACES:
        return Clause(words, number, False)
    if not others or not _is_noun(wh, first, rest) or _has_second_verb(rest):
        return None
    return Clause(words, number, True)


def _is_noun(wh: str, first: str, rest: str) -> bool:
    """Says whether a noun and nothing else follows for certain, one that the answer is another name of."""
    if first == "the":
        return wh == "who" or _RELATES.search(rest) is not None
    if first in ("a", "an"):
        return wh != "what"  # a thing is said to be of a kind, a kind is explained
    if _POSSESSED.match(rest):
        return wh != "which"
    return wh == "who" and _OFFICE.match(rest) is not None


def _after_have(verb: str, rest: str) -> Clause | None:
    first, _, _ = _words_of(rest)
    is_object = _HAD.match(rest) is not None and not _has_second_verb(rest)
    if not (_is_participle(first) or is_object):
        return None
    number: dict[str, Number | None] = {"has": "singular", "have": "plural", "had": None}
    return Clause(f"{verb} {rest}", number[verb], False)


def _after_other(verb: str, rest: str) -> Clause | None:
    adverb = ""
    if verb in _ADVERBS:
        adverb, (verb, _, rest) = f"{verb} ", rest.partition(" ")
    words = f"{adverb}{verb} {rest}".rstrip()
    if verb in _PAST or _is_regular(verb):
        return Clause(words, None, False)
    is_present = (
        verb.isalpha()
        and verb.islower()
        and len(verb) > 3
        and verb.endswith("s")
        and not verb.endswith(("ss", "us", "is"))
    )
    return Clause(words, "singular", False) if is_present and verb not in _NO_PRESENT else None


def _words_of(rest: str) -> tuple[str, str, str]:
    """Gives the first word behind an adverb, in lower case where it is, the blank and what follows."""
    first, blank, others = rest.partition(" ")
    return _words_of(others) if first in _ADVERBS and others else (first, blank, others)


def _is_regular(word: str) -> bool:
    return word.islower() and word.isalpha() and len(word) > 3 and word.endswith("ed") and word not in _NO_PARTICIPLES


def _is_participle(word: str) -> bool:
    return word in _PARTICIPLES or _is_regular(word)


def _is_ing(word: str) -> bool:
    return word.islower() and word.isalpha() and len(word) > 4 and word.endswith("ing") and word not in _ING_NOUNS


def _has_second_verb(rest: str) -> bool:
    """Says whether a verb may follow that belongs to the question: *is the song named*, *is the king meeting*."""
    words = re.findall(r"\w+", rest.lower())
    until = next((place for place, word in enumerate(words) if word in _RELATIVES), len(words))
    return any(_is_participle(word) or word in _ALSO_PAST or _is_ing(word) for word in (*words[:until], words[-1]))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BEGINS = re.compile(
    r"(?P<wh>who|what|which)(?:(?P<is> ?['’]s)| (?P<verb>[a-z]+))(?=\s|$)(?P<rest>.*)", re.IGNORECASE | re.DOTALL
)
_BE = _words("is are was were")
_HAVE = _words("has have had")
_AFTER_SHORT = ("the ", "not the ")
_ADVERBS = _words(
    "not also now still once first last always actually currently eventually famously finally originally really "
    "recently"
)

_QUESTION_WORD = re.compile(r"(?:who|whom|whose|what|which|when|where|why|how)\b")
# Another question word that begins no relative clause, a choice, a mark that ends a question, a list.
_SEVERAL = re.compile(
    r"\b(?:what|whom|why|which|or)\b|(?:\band|,)\s+(?:who|whose|when|where|how)\b|[?？؟;]"
    r"|\b(?:who|whose|when|where|how)(?:\s+and\b|$)"
)
_PREPOSITION = (
    "(?:about|after|against|around|as|at|before|behind|between|by|during|for|from|in|into|like|near|of|off|on|onto|over"
    "|than|through|to|toward|towards|under|until|upon|with|without)"
)
# Who was Lincoln shot by: the gap is at the end. Who was he at war with in 1812: it is in the middle.
_STRANDED = re.compile(
    rf"\s{_PREPOSITION}(?:$|\s+(?:{_PREPOSITION}|when|while|because|and|today|now|then|originally)(?:\s|$))"
)

_RELATES = re.compile(
    r"\b(?:of|most|first|second|third|fourth|fifth|last|next|only|main|official|current|original|former|name|\w+est)\b"
    r"|['’]s\b",
    re.IGNORECASE,
)
_POSSESSED = re.compile(r"[^'’]{1,60}?\w ?['’]s \w")
_OFFICE = re.compile(
    r"(?:(?:vice|prime) )?(?:president|minister|king|queen|emperor|pope|mayor|governor|head|captain|chairman|leader"
    r"|speaker|responsible|eligible) (?:of|for|to)\b"
)
_PLACES = _words("in on at behind inside outside under")
_HAD = re.compile(
    r"(?:a|an|no|more|fewer|one|two|three|four|five|six|seven|eight|nine|ten|\d[\d,.]*|"
    r"the (?:most|first|second|third|last|only|best|worst|record|right|power|authority|same|final|\w+est)) \w",
    re.IGNORECASE,
)
_RELATIVES = _words("who whose that when where while")
_NAMES = _words("called named termed known considered")

_NO_PARTICIPLES = _words("alfred fred hundred indeed jared mildred need sacred speed feed breed seed united wed")
_ING_NOUNS = _words(
    "during evening morning spring string thing something anything nothing everything wedding building beijing ceiling "
    "viking according including"
)
_NO_PRESENT = _words("does others always perhaps james charles thomas")
_PAST = _words(
    "ate became began bought broke brought built came caught chose cut drank drew drove dug fell fed felt fled flew "
    "forgot fought found froze gave got grew heard held hid hit kept knew laid lay led left lent lit lost made meant "
    "met paid put quit ran rang read rode rose said sang sank sat saw sent sewed shook shot slept sold spent split "
    "spoke spread stood stole struck stuck swam swept swore taught threw told took understood underwent went withdrew "
    "woke won wore wove wrote"
)
_PARTICIPLES = _words(
    "been begun beaten bitten blown born borne bought broken brought built buried caught chosen done drawn driven "
    "drunk eaten fallen flown forbidden forgotten fought found frozen given gone gotten grown heard held hidden kept "
    "known laid left lent lost made meant met overthrown paid ridden risen said seen sent shaken shot shown sold "
    "spent spoken stolen struck stuck sung sunk sworn taken taught thrown told torn understood withdrawn woken won "
    "worn woven written"
)
# Past forms that are nouns and base forms too.
_ALSO_PAST = _words(
    "beat become bound bred broadcast cast come cost cut fed fit had hit hung hurt led let lit put quit read rung run "
    "set shut sat slept split spread stood sung swum"
)
