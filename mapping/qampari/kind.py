"""The kind of release that QAMPARI is."""

from __future__ import annotations

from kbsource.errors import SetupError
from kbsource.files import Storage, join
from kbsource.release.kind import ListingKind
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import ListingManifest
from kbsource.schema import REJECTED
from mapping.qampari.check_release import RULES, check_release
from mapping.qampari.release_files import DATA, form_of
from mapping.qampari.released import Form
from mapping.qampari.schema import TABLES
from mapping.write.kind import REPORT

QAMPARI_RELEASE = ListingKind(
    name="QAMPARI release",
    format="kbsource-qampari-1",
    made_by="kbsource qampari",
    tables={**TABLES, "rejected": REJECTED},
    files=(DATA, REPORT),
    rules=RULES,
    check=check_release,
    made_from=("kb",),
)


def read_form(output: str, storage: Storage) -> tuple[ListingManifest, Form]:
    """Gives the manifest of a finished release, and how the release is written.

    Raises:
        SetupError: there is none, it is that of something else, or not as it was written.
    """
    manifest = QAMPARI_RELEASE.read(output, storage)
    if (form := form_of(manifest)) is None:
        raise SetupError(f"{join(output, MANIFEST)}: made by another version of kbsource, which can read it.")
    return manifest, form
