"""Generators of data sets in their original formats and of any size; ``GENERATORS`` lists all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.synthetic import (
    aidayago2,
    cweb,
    eli5,
    fever,
    hotpotqa,
    nq,
    structured_zeroshot,
    trex,
    triviaqa,
    wned,
    wow,
)
from benchmarks.synthetic.form import Synthetic

GENERATORS: dict[str, Callable[[Path, int], Synthetic]] = {
    "aidayago2": aidayago2.write,
    "cweb": cweb.write,
    "eli5": eli5.write,
    "eli5-parquet": eli5.write_parquet,
    "fever": fever.write,
    "hotpotqa": hotpotqa.write,
    "nq": nq.write,
    "nq-simplified": nq.write_simplified,
    "structured_zeroshot": structured_zeroshot.write,
    "trex": trex.write,
    "triviaqa": triviaqa.write,
    "wned": wned.write,
    "wow": wow.write,
}
"""Dataset -> what writes about so many bytes of its records, and what they need beside them, into a folder."""
