"""Readers of datasets in their original forms; ``SOURCES`` names them all."""

from __future__ import annotations

from mapping.sources.eli5 import Eli5
from mapping.sources.entity_linking import AIDA, WNED_CWEB, WNED_WIKI
from mapping.sources.fever import Fever
from mapping.sources.hotpotqa import HotpotQa
from mapping.sources.kilt import Kilt
from mapping.sources.nq import NaturalQuestions
from mapping.sources.own import Own
from mapping.sources.reading.base import Source
from mapping.sources.trex import Trex
from mapping.sources.triviaqa import TriviaQa
from mapping.sources.wow import WizardOfWikipedia
from mapping.sources.zero_shot import ZeroShot

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Fever(),
        HotpotQa(),
        AIDA,
        WNED_WIKI,
        WNED_CWEB,
        NaturalQuestions(),
        TriviaQa(),
        Trex(),
        ZeroShot(),
        Eli5(),
        WizardOfWikipedia(),
        Kilt(),
        Own(),
    )
}
