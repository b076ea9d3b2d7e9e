"""Converts the XML of a page to a RawPage.

Source: https://www.mediawiki.org/xml/export-0.11.xsd and its predecessors down to 0.3.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from lxml import etree

from kbsource.errors import RecordError
from kbsource.numerals import unescape
from kbsource.records import RawPage, instant
from kbsource.site import Site
from kbsource.titles import split_namespace

_ID = re.compile(r"\d{1,18}")
_NAMESPACE = re.compile(r"-?\d{1,9}")
# Characters that XML 1.0 forbids, as bytes of UTF-8: controls, U+FFFE and U+FFFF. (Surrogates are not valid UTF-8.)
_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_KEY_ID = re.compile(rb"<(?:[\w.-]+:)?id>\s*(\d{1,18})\s*<")
_KEY_TITLE = re.compile(rb"<(?:[\w.-]+:)?title>([^<]*)<")
_KEY_END = re.compile(rb"<(?:[\w.-]+:)?revision[\s>/]")


class Revision(NamedTuple):
    """One revision of a page.

    Attributes:
        text: wikitext; None if there is no text.
        absence: the reason slug if there is no text: ``text_deleted``, ``text_missing`` or, without a ``<text>``
            element, ``missing_field``. Otherwise empty.
    """

    revision_id: int
    parent_revision_id: int | None
    timestamp: str
    model: str
    text: str | None
    absence: str = ""


class PageHead(NamedTuple):
    """The data of a page except its revisions. ``namespace`` is None if there is no ``<ns>`` element."""

    page_id: int
    namespace: int | None
    title: str
    redirect_title: str | None


def check_characters(data: bytes) -> None:
    """Checks that the data is UTF-8 and contains only characters that XML 1.0 allows.

    Raises:
        RecordError: ``invalid_characters``.
    """
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError(
            "invalid_characters", f"bytes {error.object[error.start : error.end]!r} are not UTF-8"
        ) from None
    if _FORBIDDEN.search(data):
        raise RecordError("invalid_characters", "a character that XML 1.0 forbids")


def page_key(data: bytes) -> str:
    """Returns the page id at the start of a page's XML, which may be malformed. If there is no id, returns the title,
    or else an empty string.
    """
    end = _KEY_END.search(data)
    head = data[: end.start()] if end else data
    if found := _KEY_ID.search(head):
        return str(int(found[1]))
    found = _KEY_TITLE.search(head)
    return unescape(found[1].decode("utf-8", "replace")) if found else ""


class XmlPageReader:
    """Reads pages with lxml. External resources are not loaded, and entities are not expanded."""

    def __init__(self, prefix: str = "") -> None:
        """Prepares to read elements with this namespace prefix."""
        names = ("xsi", prefix) if prefix else ("xsi",)
        declared = "".join(f' xmlns:{name}="urn:export:{name}"' for name in names)
        self._opening = f"<wrap{declared}>".encode("ascii")
        self._parser = etree.XMLParser(
            encoding="utf-8",
            resolve_entities=False,
            no_network=True,
            huge_tree=True,
            load_dtd=False,
            recover=False,
            remove_comments=True,
            remove_pis=True,
        )

    def read_page(self, data: bytes) -> tuple[PageHead, list[Revision]]:
        """Returns the head and the revisions of a complete page, in order.

        Raises:
            RecordError: ``invalid_characters``, ``xml_entity``, ``malformed_xml``, ``missing_field`` or
                ``invalid_field``.
        """
        fields = _fields(self._parse(data))
        return _head(fields), [_revision(element) for element in fields.get("revision", ())]

    def read_outer(self, data: bytes) -> PageHead:
        """Returns the head of a page from its XML without the revisions. Raises the same errors as ``read_page``."""
        return _head(_fields(self._parse(data)))

    def read_revision(self, data: bytes) -> Revision:
        """Returns the revision in a ``<revision>`` element. Raises the same errors as ``read_page``."""
        return _revision(self._parse(data))

    def _parse(self, data: bytes) -> etree._Element:
        try:
            return etree.fromstring(self._opening + data + b"</wrap>", self._parser)[0]
        except etree.XMLSyntaxError as error:
            check_characters(data)  # lxml refuses the same characters, but with another error
            # The first error of this run is the cause. The exception may report the last error, or one of an earlier
            # run.
            log = list(self._parser.error_log)
            first = next((entry for entry in log if entry.level >= etree.ErrorLevels.ERROR), None)
            reason = _XML_REASONS.get(first.type, "malformed_xml") if first else "malformed_xml"
            raise RecordError(reason, first.message if first else str(error)) from None


_XML_REASONS = {
    etree.ErrorTypes.ERR_UNDECLARED_ENTITY: "xml_entity",
    etree.ErrorTypes.WAR_UNDECLARED_ENTITY: "xml_entity",
    etree.ErrorTypes.ERR_INVALID_CHAR: "invalid_characters",
    etree.ErrorTypes.ERR_INVALID_CHARREF: "invalid_characters",
}


_Fields = dict[str, list[etree._Element]]


def _fields(parent: etree._Element) -> _Fields:
    """Returns the elements in an element by their names without prefixes, in order."""
    fields: _Fields = {}
    for child in parent:
        fields.setdefault(child.tag.rpartition("}")[2], []).append(child)
    return fields


def _text(fields: _Fields, name: str) -> str | None:
    elements = fields.get(name)
    if elements is None:
        return None
    if len(elements) > 1:  # two pages or revisions, because tags between them are missing
        raise RecordError("malformed_xml", f"more than one <{name}>")
    (element,) = elements
    if len(element):
        raise RecordError("malformed_xml", f"an element inside <{name}>")
    text = element.text or ""
    if "\r" in text:  # these are from character references; the parser has converted the others to newlines
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def _number(fields: _Fields, name: str, label: str) -> int | None:
    text = _text(fields, name)
    if text is None:
        return None
    text = text.strip()
    if not text.isascii() or not _ID.fullmatch(text):
        raise RecordError("invalid_field", f"{label} is {text[:100]!r}")
    return int(text)


def _head(fields: _Fields) -> PageHead:
    title = _text(fields, "title")
    if not title:
        raise RecordError("missing_field", "title")
    page_id = _number(fields, "id", "id")
    if page_id is None:
        raise RecordError("missing_field", "id")
    namespace = _text(fields, "ns")
    if namespace is not None and not _NAMESPACE.fullmatch(namespace.strip()):
        raise RecordError("invalid_field", f"ns is {namespace[:100]!r}")
    redirect_title = None
    if "redirect" in fields:
        redirect_title = fields["redirect"][0].get("title", "").partition("#")[0]
    return PageHead(page_id, None if namespace is None else int(namespace), title, redirect_title)


def _revision(element: etree._Element) -> Revision:
    fields = _fields(element)
    revision_id = _number(fields, "id", "revision id")
    if revision_id is None:
        raise RecordError("missing_field", "revision id")
    parent_id = _number(fields, "parentid", "parentid")
    timestamp = _text(fields, "timestamp")
    if timestamp is None:
        raise RecordError("missing_field", "timestamp")
    timestamp = timestamp.strip()
    instant(timestamp)
    model = (_text(fields, "model") or "").strip() or "wikitext"
    text = _text(fields, "text")
    # Requested one by one, because lxml lists many attributes in quadratic time.
    known = () if text is None else ((name, fields["text"][0].get(name)) for name in ("deleted", "bytes", "id"))
    attributes = {name: str(value) for name, value in known if value is not None}
    absence = "missing_field" if text is None else _text_absence(attributes, is_empty=not text)
    return Revision(revision_id, parent_id or None, timestamp, model, None if absence else text, absence)


def _text_absence(attributes: dict[str, str], *, is_empty: bool) -> str:
    """Returns the reason slug of a ``<text>`` element that does not contain the text; empty if it does.

    The attribute ``deleted`` marks a text that was hidden by RevisionDelete. In stub dumps, the element is empty and
    has the length (``bytes``) and address (``id``) of the text. The element of an empty page has ``bytes="0"`` or, up
    to schema version 0.10, neither attribute.
    """
    if "deleted" in attributes:
        return "text_deleted"
    if is_empty and attributes.get("bytes", "0" if "id" not in attributes else "") != "0":
        return "text_missing"
    return ""


class PageAssembler:
    """Builds a RawPage from the head and the revisions of a page: selects the revision, determines the namespace, and
    checks that there is a text.
    """

    def __init__(self, site: Site, *, file: str, as_of: str | None, text_namespaces: frozenset[int] | None) -> None:
        """Prepares for a file. The arguments are described in ``reader.read_range``."""
        self._site = site
        self._file = file
        self._as_of = as_of
        self._text_namespaces = text_namespaces

    def is_later(self, revision: Revision) -> bool:
        """Returns whether a revision is later than ``as_of``."""
        return self._as_of is not None and revision.timestamp > self._as_of

    def newer(self, best: Revision | None, revision: Revision) -> Revision | None:
        """Returns the one of two revisions to use: the newer one, unless it is later than ``as_of``."""
        if self.is_later(revision):
            return best
        if best is None or (revision.timestamp, revision.revision_id) > (best.timestamp, best.revision_id):
            return revision
        return best

    def namespace(self, head: PageHead) -> int:
        """Returns the namespace number. If the dump does not state it, it follows from the title's prefix."""
        return split_namespace(head.title, self._site)[0] if head.namespace is None else head.namespace

    def wants_text(self, namespace: int) -> bool:
        """Returns whether the texts of pages in a namespace are requested."""
        return self._text_namespaces is None or namespace in self._text_namespaces

    def assemble(self, head: PageHead, best: Revision | None, *, has_later: bool, offset: int) -> RawPage:
        """Returns the page with the selected revision. If this is not the newest, ``<redirect>`` is ignored, because it
        describes the newest revision.

        Raises:
            RecordError: ``missing_field`` (revision), ``no_revision_as_of``, ``text_deleted`` or ``text_missing``.
        """
        if best is None and has_later:
            raise RecordError("no_revision_as_of", f"all revisions are later than {self._as_of}")
        if best is None:
            raise RecordError("missing_field", "revision")
        namespace = self.namespace(head)
        if best.absence and namespace == 0:
            raise RecordError(best.absence, f"text of revision {best.revision_id}")
        return RawPage(
            head.page_id,
            namespace,
            head.title,
            None if has_later else head.redirect_title,
            best.revision_id,
            best.parent_revision_id,
            best.timestamp,
            best.model,
            (best.text or "") if self.wants_text(namespace) else "",
            self._file,
            offset,
        )
