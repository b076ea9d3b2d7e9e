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
    """Options of ``kbsource read``: the questions, the model that reads them, and the form of its inputs."""

    questions: File
    """JSON Lines file with records in KILT's format, AmbER sets or QAMPARI questions. If the questions have ctxs, as
    kbsource qampari-contexts writes them, the model reads these passages.
    """
    _: KW_ONLY
    output: NewFile
    """File for the predictions, which kbsource evaluate reads. The file appears when it is complete."""
    reader: Annotated[ReaderOptions, FLAT]
    form: ReadForm | None = None
    """How the model reads. closed: only the question; read: one prompt with as many passages as fit; fid:
    Fusion-in-Decoder, for seq2seq models; pig: each passage separately, and the answers are united; best: each passage
    separately, and the most probable answer wins; rag-sequence and rag-token: each passage separately, weighted by its
    score; extractive: the answer is a span of a passage; fact-checking: the class of a claim. By default, the form that
    the model was made for (extractive, fact-checking, rag-sequence or rag-token), else read.
    """
    retrieved: File | None = None
    """Passages for the questions, with their texts, as kbsource search writes them."""
    passages_key: Annotated[Literal["ctxs", "positive_ctxs"], Parameter("--contexts")] = "ctxs"
    """Field of a question that contains the passages to read, if --retrieved has none for it: ctxs (search results) or
    positive_ctxs (gold passages).
    """
    top: AtLeast1 = 20
    """Maximum number of passages per question."""
    prompt: File | None = None
    """TOML file with the keys prompt and passage. By default, the package's prompt for the form is used."""
    template_seed: Name | None = None
    """For a slot, draw one of the record's template_questions as the question, with this seed and the record's id."""
    kb: Release | None = None
    """Release of pages. If the answer to a linked mention is a title, the prediction names that page as its provenance.
    --first-sentences reads pages of this release.
    """
    redirects: bool = False
    """Also accept the title of a redirect as the answer to a linked mention."""
    first_sentences: AtLeast1 | None = None
    """For fact-checking: read the first N sentences of the passages' pages instead of the passages."""

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and if options exclude each other."""
        check_options(self)
        if self.redirects and self.kb is None:
            raise SetupError("--redirects needs --kb, the release that contains the redirects.")
        if self.first_sentences is not None and self.kb is None:
            raise SetupError("--first-sentences needs --kb, the release that contains the pages.")
