"""One tokeniser of a language for all tests of a process: making one takes up to a second."""

from __future__ import annotations

from functools import cache

from mapping.search.tokens import Tokeniser

tokeniser = cache(Tokeniser)
