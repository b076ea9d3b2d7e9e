"""A question and its answer as one declarative sentence, for a model that judges sentences.

Rules without a parser: what they cannot turn for certain is quoted. *Who wrote Hamlet?* and *Shakespeare* give
*Shakespeare wrote Hamlet.*; *When did the war end?* and *1945* give *The answer to the question "When did the war
end?" is 1945.*
"""

from __future__ import annotations

import re

from mapping.entail.subject_questions import Clause, Number, subject_clause
from mapping.search.sentences import sentence_spans

_LONGEST_SUBJECT = 12
"""Words of an answer that takes the place of a question word; longer ones mostly are sentences."""

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
# Such an answer says how or when, or is no name of anything.
_NO_SUBJECT = re.compile(
    r"(?:about|after|as|at|because|before|between|by|during|for|from|if|in|near|of|on|over|since|that|through|to|under"
    r"|until|when|where|while|with)(?:\s|$)|(?:yes|no|none|true|false|unknown)$",
    re.IGNORECASE,
)
_NUMBER_COMMA = re.compile(r"(?<=\d),(?=\d{3})")
_LIST = re.compile(r"[^,]+(?:, [^,]+)*,? (?:and|&) [^,]+")


def state_answer(question: str, answer: str) -> str:
    """Gives a sentence that says that the answer answers the question.

    >>> state_answer("who got the first nobel prize in physics", "Wilhelm Röntgen")
    'Wilhelm Röntgen got the first nobel prize in physics.'
    >>> state_answer("Where was Lincoln born?", "Hodgenville")
    'The answer to the question "Where was Lincoln born?" is Hodgenville.'
    """
    question, answer = unquoted(" ".join(question.split())), without_stop(" ".join(answer.split()))
    clause = subject_clause(without_stop(question.rstrip(f"{_MARKS} ")))
    if clause is None or not _takes(clause, answer):
        return ended(f'The answer to the question "{_asked(question)}" is {answer}')
    subject = answer[0].upper() + answer[1:] if answer.split()[0].islower() else answer  # bTV stays as it is
    return ended(f"{subject} {clause.words}")


def ended(text: str) -> str:
    """Gives a sentence with its full stop, unless it has an end already.

    >>> ended("He lives in Washington, D.C."), ended("It is")
    ('He lives in Washington, D.C.', 'It is.')
    """
    return text if _ENDED.search(text) else f"{text}."


def without_stop(text: str) -> str:
    """Gives a phrase without the full stop behind it; that of an abbreviation stays.

    >>> without_stop("Paris."), without_stop("Washington, D.C."), without_stop("Wait ...")
    ('Paris', 'Washington, D.C.', 'Wait ...')
    """
    if text.endswith("..") or _ABBREVIATED.search(text):
        return text
    return text.removesuffix(".").rstrip()


def unquoted(text: str) -> str:
    """Gives a text without the quotation marks around all of it."""
    found = _QUOTED.fullmatch(text)
    return text if found is None else found["inner"].strip()


def _asked(question: str) -> str:
    """Gives a question with its mark; what does not ask, such as an order or a title, stays as it is."""
    if question.rstrip(")\"'”’!")[-1:] in _MARKS or not _ASKS.search(question):
        return question
    if question.endswith("."):
        bare = without_stop(question)
        return f"{bare}?" if _BEGINS_ASKING.match(bare) else question
    return f"{question}?"


def _takes(clause: Clause, answer: str) -> bool:
    """Says whether an answer may be the subject of a clause."""
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
    """Gives the number of an answer; None where it could be either."""
    if _LIST.fullmatch(answer):
        return "plural"
    # A plural, or a name: the Steelers, Chris Evans.
    is_open = answer.endswith("s") and not answer.endswith(("ss", "us", "is"))
    return None if is_open and answer.split()[0].lower() not in ("a", "an") else "singular"
