"""Whose work is in a release, and under which licence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kbsource.errors import SetupError
from mapping.publish.subject import Subject, toml_facts

TERMS_OF_4 = "20230607"
"""Dumps of this day and later are under version 4.0, see ``licences.toml``."""
LICENCES: dict[str, dict[str, str]] = toml_facts("licences.toml")["licences"]
"""Licences that may be named, by SPDX identifier, with the hub's name and the address of their text."""


@dataclass(frozen=True, slots=True)
class Right:
    """A licence, or that none is known.

    Attributes:
        what: is under it.
        holder: whom to name.
        licence: SPDX identifier; None where the owners name none.
        source: address where that is said.
        note: what else to know.
    """

    what: str
    holder: str
    licence: str | None
    source: str
    note: str = ""

    @property
    def shown(self) -> str:
        """The licence for reading."""
        return "none named; ask its owners" if self.licence is None else self.licence


def rights_of(subject: Subject) -> tuple[Right, ...]:
    """Gives whose work is in a release.

    Raises:
        SetupError: it is from a wiki that is no Wikipedia, or from no dated one, and no licence is given.
    """
    return tuple(_rights(subject))


def _rights(subject: Subject) -> Iterator[Right]:
    known = toml_facts("licences.toml")
    for held in subject.about.holds:
        facts = known.get(held, {})
        if held == "wikipedia":
            of = " ".join(text for text in (subject.wiki, subject.snapshot_day) if text is not None)
            licence, holder, source = _of_wiki(subject)
            yield Right(f"text of the wiki ({of})" if of else "text of the wiki", holder, licence, source)
        elif held == "dataset":
            yield from map(_of_dataset, subject.datasets)
            if not subject.datasets:
                yield Right("questions of a data set", "its authors", None, "", "The manifest does not name it.")
        else:
            what = {"wikidata": "data of Wikidata", "pageviews": "page views"}[held]
            yield Right(what, facts["holder"], subject.licence_of(held) or facts["licence"], facts["source"])


def _of_wiki(subject: Subject) -> tuple[str, str, str]:
    """Gives licence, holder and source of a wiki's text."""
    facts = toml_facts("licences.toml")["wikipedia"]
    is_wikipedia = subject.wikipedia_edition is not None
    holder = facts["holder"] if is_wikipedia else f"contributors of {subject.wiki or 'the wiki'}"
    if (given := subject.licence_of("wikipedia")) is not None:
        return given, holder, facts["source"] if is_wikipedia else (subject.host or "")
    if not is_wikipedia or subject.snapshot is None:
        why = "its manifest names no dump with a date" if is_wikipedia or subject.wiki is None else "no Wikipedia"
        raise SetupError(
            f"wiki {subject.wiki or '?'}: {why}, so the licence of its text is not known; give it with --licence "
            f"({', '.join(LICENCES)})."
        )
    return facts["from_20230607" if subject.snapshot >= TERMS_OF_4 else "before"], holder, facts["source"]


def _of_dataset(name: str) -> Right:
    facts = toml_facts("licences.toml")["dataset"].get(name)
    if facts is None:
        return Right(f"records of {name}", "their authors", None, "")
    what = f"records of {facts['name']}"
    return Right(what, facts["holder"], facts.get("licence"), facts["source"], facts.get("note", ""))


def hub_licences(rights: tuple[Right, ...]) -> list[str]:
    """Gives the hub's names of the licences, each once; ``other`` where one is not known."""
    if any(right.licence is None for right in rights):
        return ["other"]
    return list(dict.fromkeys(LICENCES[right.licence]["hub"] for right in rights if right.licence is not None))


def holders(rights: tuple[Right, ...]) -> list[str]:
    """Gives whom to name, each once."""
    return list(dict.fromkeys(right.holder for right in rights))


def licence_text(subject: Subject, rights: tuple[Right, ...]) -> str:
    """Gives the file ``LICENSE``: what is under which licence, and where its text is."""
    parts = [f"{subject.title}\n\nEach part is under the licence that is named here; ATTRIBUTION.md says whom to name."]
    for right in rights:
        lines = [f"{right.what}: {right.shown}"]
        if right.licence is not None:
            lines.append(f"  {LICENCES[right.licence]['url']}")
        if right.note:
            lines.append(f"  {right.note}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def attribution_text(subject: Subject, rights: tuple[Right, ...]) -> str:
    """Gives the file ``ATTRIBUTION.md``: whose work it is, where it is, and that it was changed."""
    parts = [f"# Attribution\n\n{subject.title}. Snapshot: {subject.snapshot_day or 'see what it was made from'}."]
    for right in rights:
        said = f" See <{right.source}>." if right.source else ""
        licence = right.shown
        if right.licence is not None:
            licence = f"[{right.licence}]({LICENCES[right.licence]['url']})"
        parts.append(f"- {right.what}: by {right.holder}. Licence: {licence}.{said} {right.note}".rstrip())
    if "wikipedia" in subject.about.holds:
        parts.append(_permanent_links(subject))
    parts.append(
        "Changes: the text was taken out of its markup, and what the card names among the limitations was left out; "
        "nothing was reworded. Whoever shares what is made from it names the same authors, and shares text under the "
        "same licence."
    )
    return "\n\n".join(parts) + "\n"


def _permanent_links(subject: Subject) -> str:
    if "pages" in subject.whole.manifest.tables:
        where = f" of <{subject.host}>" if subject.host else ""
        return (
            f"Every row of `pages` has in `url` the permanent link to the revision{where} that its text is of; the "
            "history that this leads to names all of its authors."
        )
    edition = subject.wikipedia_edition
    if edition is None:
        return "The release of pages that this was made from has the permanent link to every revision."
    return (
        f"The page with the id N is at <https://{edition}.wikipedia.org/?curid=N>, and its history names all of its "
        "authors; the release of pages that this was made from has the permanent link to every revision."
    )
