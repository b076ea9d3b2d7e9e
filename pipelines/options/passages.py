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
            help="Write the passages in this format too; may be repeated. "
            + "; ".join(f"{name}: {form.meaning}" for name, form in FORMS.items())
            + ".",
        ),
    ] = ()
    base: Release | None = None
    """Passages of an earlier release, cut with the same options. If the title and text of a page did not change, its
    passages are copied from that release. This saves time and does not change the output.
    """
    base_kb: Release | None = None
    """Release of pages that the --base passages were cut from."""
    worker_memory_bytes: Memory = USUAL_MEMORY

    def __post_init__(self) -> None:
        """Raises SetupError in the same cases as ``check_options``, and if a format is repeated or does not work with
        the unit.
        """
        check_options(self)
        if unknown := [name for name in self.formats if name not in FORMS]:
            raise SetupError(f"--format is {unknown[0]}. Choose one of {', '.join(FORMS)}.")
        if len(set(self.formats)) < len(self.formats):
            raise SetupError(f"--format is {', '.join(self.formats)}; give each format only once.")
        if self.cut.is_by_sentence and any(form.needs_pages for form in line_forms(self.formats)):
            raise SetupError(
                "--format kilt numbers paragraphs as KILT does, and some running text is outside of KILT's "
                "paragraphs. Use --unit tokens-100 or words-100."
            )
        if self.cut.tables and any(form.needs_pages for form in line_forms(self.formats)):
            raise SetupError(
                "--format kilt numbers paragraphs as KILT does, and KILT has no tables. Leave --tables out."
            )

    def data_options(self) -> dict[str, Any]:
        """Returns the options that affect the bytes of the corpus, as JSON values for the manifest."""
        return {**asdict(self.cut), "formats": sorted(self.formats)}
