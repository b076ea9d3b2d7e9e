"""Options of ``kbsource read``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from kbsource.errors import SetupError
from mapping.options import FLAT, AtLeast1, Checked, File, Name, NewFile, Release, check_options
from mapping.retrieval.system_options import ReaderOptions, ReadForm


@dataclass(frozen=True, slots=True)
class ReadOptions(Checked):
    """Questions to read, the model that reads them, and the form of its inputs."""

    questions: File
    """JSON Lines: records in KILT's format, AmbER sets, or QAMPARI questions. If questions have ctxs, as written by
    kbsource qampari-contexts, these passages are read."""
    _: KW_ONLY
    output: NewFile
    """Predictions for kbsource evaluate. The file appears when it is complete."""
    reader: Annotated[ReaderOptions, FLAT]
    form: ReadForm | None = None
    """closed: only the question; read: one prompt with as many passages as fit; fid: Fusion-in-Decoder, for seq2seq
    models; pig: each passage separately, all answers united; best: each passage separately, the most probable answer;
    rag-sequence and rag-token: each passage separately, weighted by its score; extractive: a span of a passage;
    fact-checking: the class of a claim. By default the form that the model was made for: extractive, fact-checking,
    rag-sequence, rag-token, or read."""
    retrieved: File | None = None
    """Passages for the questions, with texts, as written by kbsource search."""
    passages_key: Annotated[Literal["ctxs", "positive_ctxs"], Parameter("--contexts")] = "ctxs"
    """Passages in a question's own record to read if --retrieved has none for it: ctxs (search results) or
    positive_ctxs (gold)."""
    top: AtLeast1 = 20
    """Maximum number of passages per question."""
    prompt: File | None = None
    """TOML file with the keys prompt and passage; by default the package's prompt for the form."""
    template_seed: Name | None = None
    """Phrase a slot as one of the record's template_questions, drawn with this seed and the record's id."""
    kb: Release | None = None
    """Release of pages. The provenance of a linked mention is the page whose title is the answer; --first-sentences
    reads pages of this release."""
    redirects: bool = False
    """Also accept the title of a redirect as the answer to a linked mention."""
    first_sentences: AtLeast1 | None = None
    """For fact-checking: instead of the passages, read the first N sentences of their pages."""

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and for options that exclude each other."""
        check_options(self)
        if self.redirects and self.kb is None:
            raise SetupError("--redirects needs --kb, the release that has them.")
        if self.first_sentences is not None and self.kb is None:
            raise SetupError("--first-sentences needs --kb, the release that has the pages.")
