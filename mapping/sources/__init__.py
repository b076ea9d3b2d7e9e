"""Readers of datasets in their original forms; ``SOURCES`` names them all."""

from __future__ import annotations

from mapping.sources.base import Source
from mapping.sources.entity_linking import AIDA, WNED_CWEB, WNED_WIKI
from mapping.sources.fever import Fever
from mapping.sources.hotpotqa import HotpotQa
from mapping.sources.kilt import Kilt
from mapping.sources.own import Own

SOURCES: dict[str, Source] = {
    source.name: source for source in (Fever(), HotpotQa(), AIDA, WNED_WIKI, WNED_CWEB, Kilt(), Own())
}
