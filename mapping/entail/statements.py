"""Converts a question with its answer, or a triple of Wikidata, to a statement that an NLI model can judge.

The rules work without a parser, and quote whatever they cannot convert with certainty. *Who wrote Hamlet?* and
*Shakespeare* become *Shakespeare wrote Hamlet.*; *When did the war end?* and *1945* become *The answer to the question
"When did the war end?" is 1945.* If the question word is the subject (who wrote Hamlet, what is the capital of France),
the answer replaces it and the other words keep their order. If a question is ambiguous, it is quoted.

Wikidata relations are identified by their English labels, and many have a sentence of their own in ``relations.toml``:
*place of birth* gives *… was born in …*. For other relations the sentence is *The … of … is …* if the label looks like
a noun; otherwise the label is quoted.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple

from kbsource.sentences import sentence_spans

Number = Literal["singular", "plural"]


class Clause(NamedTuple):
    """What a question says about its answer: *wrote Hamlet* for *who wrote Hamlet*."""

    words: str  # following the answer, beginning with the verb
    number: Number | None  # required by the verb; None if it accepts both
    is_name_for: bool  # the verb equates the answer with a noun: *is the capital of France*


def subject_clause(question: str) -> Clause | None:
    """Returns what a question says about its answer; None unless the question word is certainly the subject.

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
    """Returns whether the text is more than one question, or the answer may belong to another place than the question
    word.
    """
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
    """Returns whether the rest of the question is certainly a noun that names the answer, as in *what is the capital of
    France*.
    """
    if first == "the":
        return wh == "who" or _RELATES.search(rest) is not None
    if first in ("a", "an"):
        return wh != "what"  # for "what", a noun with "a" asks for an explanation, not for an instance
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
    """Returns the first word that is not an adverb (in lower case if it is a verb), the space after it, and the
    rest.
    """
    first, blank, others = rest.partition(" ")
    return _words_of(others) if first in _ADVERBS and others else (first, blank, others)


def _is_regular(word: str) -> bool:
    return word.islower() and word.isalpha() and len(word) > 3 and word.endswith("ed") and word not in _NO_PARTICIPLES


def _is_participle(word: str) -> bool:
    return word in _PARTICIPLES or _is_regular(word)


def _is_ing(word: str) -> bool:
    return word.islower() and word.isalpha() and len(word) > 4 and word.endswith("ing") and word not in _ING_NOUNS


def _has_second_verb(rest: str) -> bool:
    """Returns whether the question may have a second verb, so that its first words are not its subject: *is the song
    named*, *is the king meeting*.
    """
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
# Another question word that does not begin a relative clause, an alternative, a mark that ends a question, a list.
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
# Past forms that are also nouns or base forms.
_ALSO_PAST = _words(
    "beat become bound bred broadcast cast come cost cut fed fit had hit hung hurt led let lit put quit read rung run "
    "set shut sat slept split spread stood sung swum"
)


_LONGEST_SUBJECT = 12
"""Maximum number of words of an answer that replaces a question word; longer ones are usually sentences."""

_MARKS = "?？؟"
_ASKS = re.compile(
    r"\b(?:who|whom|whose|what|which|when|where|why|how)\b"
    r"|^(?:am|are|can|could|did|do|does|had|has|have|is|may|might|must|shall|should|was|were|will|would)\b",
    re.IGNORECASE,
)
_BEGINS_ASKING = re.compile(rf"(?:[a-z]+ )?(?:{_ASKS.pattern})", re.IGNORECASE)
_QUOTED = re.compile(r"""["“«](?P<inner>[^"“”«»]*)["”»]""")
_ENDED = re.compile(r"[.!?…。！？][\"'”’)\]]*$")
_ABBREVIATED = re.compile(
    r"(?:(?:\w\.)+\w|\b[A-Z]|\b(?:jr|sr|inc|ltd|co|corp|bros|st|dr|mt|etc|no|vs))\.$", re.IGNORECASE
)
# Such an answer says how or when, or is not a name.
_NO_SUBJECT = re.compile(
    r"(?:about|after|as|at|because|before|between|by|during|for|from|if|in|near|of|on|over|since|that|through|to|under"
    r"|until|when|where|while|with)(?:\s|$)|(?:yes|no|none|true|false|unknown)$",
    re.IGNORECASE,
)
_NUMBER_COMMA = re.compile(r"(?<=\d),(?=\d{3})")
_LIST = re.compile(r"[^,]+(?:, [^,]+)*,? (?:and|&) [^,]+")


def state_answer(question: str, answer: str) -> str:
    """Returns a sentence stating that the answer answers the question.

    >>> state_answer("who got the first nobel prize in physics", "Wilhelm Röntgen")
    'Wilhelm Röntgen got the first nobel prize in physics.'
    >>> state_answer("Where was Lincoln born?", "Hodgenville")
    'The answer to the question "Where was Lincoln born?" is Hodgenville.'
    """
    question, answer = " ".join(question.split()), without_stop(" ".join(answer.split()))
    if (quoted := _QUOTED.fullmatch(question)) is not None:
        question = quoted["inner"].strip()
    clause = subject_clause(without_stop(question.rstrip(f"{_MARKS} ")))
    if clause is None or not _takes(clause, answer):
        return ended(f'The answer to the question "{_with_question_mark(question)}" is {answer}')
    subject = answer[0].upper() + answer[1:] if answer.split()[0].islower() else answer  # bTV is unchanged
    return ended(f"{subject} {clause.words}")


def ended(text: str) -> str:
    """Returns a sentence with a full stop, unless it already has an end.

    >>> ended("He lives in Washington, D.C."), ended("It is")
    ('He lives in Washington, D.C.', 'It is.')
    """
    return text if _ENDED.search(text) else f"{text}."


def without_stop(text: str) -> str:
    """Returns a phrase without its final full stop, unless that belongs to an abbreviation.

    >>> without_stop("Paris."), without_stop("Washington, D.C."), without_stop("Wait ...")
    ('Paris', 'Washington, D.C.', 'Wait ...')
    """
    if text.endswith("..") or _ABBREVIATED.search(text):
        return text
    return text.removesuffix(".").rstrip()


def _with_question_mark(question: str) -> str:
    """Returns a question with its question mark; other texts, such as a request or a title, are unchanged."""
    if question.rstrip(")\"'”’!")[-1:] in _MARKS or not _ASKS.search(question):
        return question
    if question.endswith("."):
        bare = without_stop(question)
        return f"{bare}?" if _BEGINS_ASKING.match(bare) else question
    return f"{question}?"


def _takes(clause: Clause, answer: str) -> bool:
    """Returns whether an answer can replace the question word as the subject of a clause."""
    plain = _NUMBER_COMMA.sub("", answer)
    if (
        not plain
        or len(plain.split()) > _LONGEST_SUBJECT
        or len(sentence_spans(plain)) != 1
        or _NO_SUBJECT.match(plain)
        or (_ENDED.search(plain) and not _ABBREVIATED.search(plain))
        or ";" in plain
        or " / " in plain
        or ("," in plain and not _LIST.fullmatch(plain))
        or (clause.is_name_for and plain.startswith(("a ", "an ", "A ", "An ")))
    ):
        return False
    return clause.number is None or clause.number == _number(plain)


def _number(answer: str) -> Number | None:
    """Returns the grammatical number of an answer; None if it may be either."""
    if _LIST.fullmatch(answer):
        return "plural"
    # Either a plural or a name: the Steelers, Chris Evans.
    is_open = answer.endswith("s") and not answer.endswith(("ss", "us", "is"))
    return None if is_open and answer.split()[0].lower() not in ("a", "an") else "singular"


SEPARATOR = " [SEP] "
"""Separates subject and relation of a slot-filling query. Source: section 3 of the KILT paper."""


@cache
def relation_sentences() -> dict[str, str]:
    """Returns sentences about subject and object by the English label of a Wikidata property, see
    ``relations.toml``."""
    return tomllib.loads(resources.files("mapping.entail").joinpath("relations.toml").read_text("utf-8"))


# The watch is made by, the tree is native to, the bridge crosses: such labels are not nouns.
_NO_NOUN = re.compile(
    r"(?:\w+ed|has|is|was|does|made|named|found|born|known|taken|given|held|shares|contains|connects|follows|said|kept)\b"
    r"|.*\s(?:about|after|as|at|before|by|for|from|in|into|of|on|to|under|with)$",
    re.IGNORECASE,
)
_MONTHS = "January February March April May June July August September October November December".split()
_MONTH = rf"(?:{'|'.join(_MONTHS)})"
_TIME_STAMP = re.compile(r"(?P<sign>[+-]?)(?P<year>\d{1,9})-(?P<month>\d\d)-(?P<day>\d\d)T00:00:00Z")
_DAY = re.compile(
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?)(?:,? .*)?|\d+-\d\d-\d\d"
)
# By sound, not by spelling: a university, a European, but an uninhabited island; an hour.
_VOWEL = re.compile(
    r"(?!eu|ewe|(?:one|once)\b|uni(?![dmn])|us(?:e|ual|u?r)|utili|uto|uk|ur[au]|uga|u\.?[ksn]\.?(?![a-z]))[aeiou]"
    r"|h(?:our|eir|onest|onou?r)",
    re.IGNORECASE,
)
_WITH_ARTICLE = re.compile(r"(?:a|an|the|one of|some) ", re.IGNORECASE)


class _Object(str):
    """The object of a triple. A sentence may ask for it with an article or a preposition."""

    __slots__ = ()

    def __format__(self, wanted: str) -> str:
        if wanted == "a":
            return with_article(self)
        if wanted == "on":
            return f"{'on' if _DAY.fullmatch(self) else 'in'} {self}"
        return str(self)


def state_triple(query: str, obj: str) -> str | None:
    """Returns a sentence for a slot-filling query, ``subject [SEP] relation``, and its object; None for other queries.

    >>> state_triple("Abraham Lincoln [SEP] place of birth", "Hodgenville")
    'Abraham Lincoln was born in Hodgenville.'
    >>> state_triple("Halvane Isles [SEP] anthem", "Song of the Tide")
    'The anthem of Halvane Isles is Song of the Tide.'
    """
    subject, separator, relation = (" ".join(part.split()) for part in query.rpartition(SEPARATOR))
    found = _Object(_readable_time(without_stop(" ".join(obj.split()))))
    if not separator or not subject or not relation or not found:
        return None
    template = relation_sentences().get(relation.lower()) or _template_of(relation)
    return ended(template.format(s=subject, r=relation, o=found).removesuffix("."))


def _readable_time(text: str) -> str:
    """Returns a Wikidata time stamp in readable form, and any other text unchanged.

    The first of January may mean that only the year is known, so for that date only the year is returned.
    """
    found = _TIME_STAMP.fullmatch(text)
    if found is None:
        return text
    year = f"{int(found['year'])}{' BC' if found['sign'] == '-' else ''}"
    month, day = int(found["month"]), int(found["day"])
    if not 1 <= month <= 12 or not 0 <= day <= 31 or (month, day) == (1, 1):
        return year
    return f"{day} {_MONTHS[month - 1]} {year}" if day else f"{_MONTHS[month - 1]} {year}"


def _template_of(relation: str) -> str:
    """Returns the sentence for a relation without a sentence of its own."""
    if _NO_NOUN.match(relation):
        return 'The value of "{r}" for {s} is {o}.'
    is_plural = relation.endswith("s") and not relation.endswith(("ss", "us", "is", "series"))
    return "Of {s} the {r} include {o}." if is_plural else "The {r} of {s} is {o}."


def with_article(noun: str) -> str:
    """Returns a noun with the indefinite article.

    >>> with_article("island"), with_article("university"), with_article("the moon")
    ('an island', 'a university', 'the moon')
    """
    if _WITH_ARTICLE.match(noun):
        return noun
    return f"{'an' if _VOWEL.match(noun) else 'a'} {noun}"
