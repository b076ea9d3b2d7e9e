"""Options of ``kbsource passages``."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from kbsource.errors import SetupError
from mapping.options import check_options, option
from mapping.passages.cut import CutOptions
from mapping.passages.forms import FORMS, line_forms
from pipelines.options.fields import memory_option, output_option


@dataclass(frozen=True, slots=True)
class PassagesOptions:
    """Which corpus is made."""

    kb: str = option(help="folder of a release", metavar="RELEASE")
    output: str = output_option("the corpus")
    cut: CutOptions = field(default_factory=CutOptions)
    formats: tuple[str, ...] = option(
        (),
        "write the passages in this form too; may be given several times",
        flag="--format",
        metavar="NAME",
        choices={name: form.meaning for name, form in FORMS.items()},
        is_repeated=True,
    )
    worker_memory_bytes: int = memory_option()

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, for a form that is given twice and one that the unit rules out."""
        check_options(self)
        if len(set(self.formats)) < len(self.formats):
            raise SetupError(f"--format is {', '.join(self.formats)}; give each form once.")
        if self.cut.is_by_sentence and any(form.needs_pages for form in line_forms(self.formats)):
            raise SetupError(
                "--format kilt names paragraphs of KILT, which not all running text has; cut with --unit tokens-100 "
                "or words-100."
            )

    def data_options(self) -> dict[str, Any]:
        """Gives the options that decide the bytes of the corpus, as JSON values for the manifest."""
        return {**asdict(self.cut), "formats": sorted(self.formats)}
