"""Options of ``kbsource passages``."""

from __future__ import annotations

from dataclasses import KW_ONLY, asdict, dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from kbsource.errors import SetupError
from mapping.options import FLAT, Release, check_options
from mapping.passages.cut import CutOptions
from mapping.passages.forms import FORMS, line_forms
from pipelines.options.shared import USUAL_MEMORY, Memory, Output


@dataclass(frozen=True, slots=True)
class PassagesOptions:
    """Inputs and options of a corpus of passages."""

    kb: Release
    """Folder of a release of pages."""
    _: KW_ONLY
    output: Output
    cut: Annotated[CutOptions, FLAT] = CutOptions()
    formats: Annotated[
        tuple[str, ...],
        Parameter(
            "--format",
            metavar="NAME",
            choices=tuple(FORMS),
            help="Write the passages in this format too; may be given several times. "
            + "; ".join(f"{name}: {form.meaning}" for name, form in FORMS.items()),
        ),
    ] = ()
    base: Release | None = None
    """Passages of an earlier release, cut with the same options. Passages of pages with the same title and text are
    copied from it. The output has the same bytes and takes less time."""
    base_kb: Release | None = None
    """Release of pages that the --base passages were cut from."""
    worker_memory_bytes: Memory = USUAL_MEMORY

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and for formats that are repeated or that the unit
        excludes."""
        check_options(self)
        if unknown := [name for name in self.formats if name not in FORMS]:
            raise SetupError(f"--format is {unknown[0]}. Choose one of {', '.join(FORMS)}.")
        if len(set(self.formats)) < len(self.formats):
            raise SetupError(f"--format is {', '.join(self.formats)}; give each form once.")
        if self.cut.is_by_sentence and any(form.needs_pages for form in line_forms(self.formats)):
            raise SetupError(
                "--format kilt names paragraphs of KILT, which not all running text has; cut with --unit tokens-100 "
                "or words-100."
            )
        if self.cut.tables and any(form.needs_pages for form in line_forms(self.formats)):
            raise SetupError("--format kilt names paragraphs of KILT, which tables do not have; leave --tables out.")

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the corpus, as JSON values for the manifest."""
        return {**asdict(self.cut), "formats": sorted(self.formats)}
