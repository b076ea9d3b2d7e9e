"""Reads the head of a dump: schema version, encoding, and facts about the wiki.

Source: https://www.mediawiki.org/wiki/Help:Export and the export-0.3 to export-0.11 schemas.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import msgspec

from kbsource.documents import read_document
from kbsource.dump.article_records import (
    MAX_RECORD_BYTES,
    TAR_HEAD_BYTES,
    ArticleRecord,
    Form,
    content_form,
    read_article_record,
    unpacked,
)
from kbsource.dump.compressed.damage import Damage
from kbsource.dump.compressed.streams import (
    MAGIC_BYTES,
    UTF8,
    Compression,
    compression_of,
    encoding_of,
    iter_pieces,
    read_up_to,
)
from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, base_name
from kbsource.site import Site

SCHEMA_VERSIONS = frozenset(f"0.{minor}" for minor in range(3, 12))

# The heads of real dumps have less than 10 kB. Comments may come before the root.
_HEAD_BYTES = 1 << 22
_NAME = rb"(?:([A-Za-z_][\w.-]*):)?"
_BEFORE_ROOT = re.compile(rb"<!--.*?-->|<\?.*?\?>|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>", re.DOTALL)
_ROOT = re.compile(rb"<" + _NAME + rb"mediawiki((?:\s[^>]*)?)>")
_PAGE = re.compile(rb"<" + _NAME + rb"page[\s/>]")
_SITEINFO = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?siteinfo\s*>(.*?)</(?:[A-Za-z_][\w.-]*:)?siteinfo\s*>", re.DOTALL)
_ATTRIBUTE = re.compile(rb"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_EXPORT = re.compile(r"/export-(\d+\.\d+)/?\Z")
_FILE_DBNAME = re.compile(
    r"(?:\A|[^a-z0-9_])([a-z][a-z0-9_]*?(?:wik(?:i|tionary|ibooks|inews|iquote|isource|iversity|ivoyage)))"
    r"-(?:\d{8}|\d{4}-\d\d-\d\d|latest|p\d)"
)
# Source: $wgServer and database names of Wikimedia's wikis (site matrix), as of 2026.
_BASE = re.compile(
    r"\A(?:https?:)?//([a-z][a-z-]*)\.(?:wik(ipedia|tionary|ibooks|inews|iquote|isource|iversity|ivoyage))\.org(?:[:/]|\Z)"
)
_SNAPSHOT_DBNAME = re.compile(r"([a-z][a-z0-9_]*?wik[a-z]+)_namespace_\d")
_CONTENT_LANGUAGES = {"simple": "en"}  # content language by the code of the edition, if they differ
_FIRST_LINES = 100
# Other files of a dump's folder, by their first bytes, and what to do about them.
_OTHER_FILES = (
    (re.compile(rb"\d+:\d+:[^\n]+\n"), "the index of a multistream dump, which is not needed. Leave it out."),
    (re.compile(rb"[0-9a-f]{32,64} [ *]\S"), "a list of checksums. Leave it out."),
    (
        re.compile(rb"\s*(?:-- (?:MySQL|MariaDB) dump|/\*|CREATE TABLE|DROP TABLE|INSERT INTO)", re.IGNORECASE),
        "a file of SQL. Leave it out; a build reads page_props.sql.gz if it is given with --page-props.",
    ),
    (re.compile(rb'\[\s*\{"(?:type|id)"'), "a dump of Wikidata. Read it with kbsource wikidata."),
    (
        re.compile(rb"\s*<(?:!doctype\s+html|html)[\s>]", re.IGNORECASE),
        "a web page, such as the error message of a server. Check the address and download the file again.",
    ),
)
_DBNAME_SUFFIX = re.compile(r"wik(?:i|tionary|ibooks|inews|iquote|isource|iversity|ivoyage)\Z")


@dataclass(frozen=True, slots=True)
class DumpHeader:
    """The content of the head of a dump file."""

    site: Site  #: facts about the wiki, from ``<siteinfo>`` or else from the root element and the file name
    schema_version: str | None  #: version of the export schema, such as ``0.11``; None if the file does not state it
    has_siteinfo: bool  #: true if the file has a ``<siteinfo>``
    has_root: bool  #: true if the file has a ``<mediawiki>`` root, false if it is a sequence of pages without a root
    compression: Compression  #: compression of the file, according to its content
    encoding: str  #: character encoding of the XML, ``utf-8``
    prefix: str  #: namespace prefix of the elements, ``mw`` for ``<mw:page>``; empty in all published dumps
    form: Form = "xml"  #: how the content is written


def read_header(path: str, *, allow_unknown_schema: bool = False) -> DumpHeader:
    """Returns the head of a dump file, in any supported form.

    With ``allow_unknown_schema``, a file with an unknown schema version is read as the newest known version.

    Raises:
        SetupError: the file is missing, empty, in an unsupported form, not a MediaWiki dump, or has an unknown schema
            version.
    """
    if not Folder.of(path).exists():
        raise SetupError(f"{path} does not exist.")
    compression, encoding, head, form = _read_head(path)
    if form != "xml":
        site = _site_of_record(_first_record(path, compression, form), path)
        return DumpHeader(site, None, False, False, compression, encoding, "", form)
    page = _PAGE.search(head)
    bare = _BEFORE_ROOT.sub(b"", head[: page.start()] if page else head)
    root = _ROOT.search(bare)
    if root is None and page is None:
        for beginning, what in _OTHER_FILES:
            if beginning.match(head):
                raise SetupError(f"{path} is not a MediaWiki XML dump but {what}")
        raise SetupError(
            f"{path} is not a MediaWiki XML dump: it has neither <mediawiki> nor <page> in its first {len(head):,} "
            f"bytes. "
            "Give the pages-articles file (.xml, or compressed: .bz2, .gz, .zst, .xz) of a dump, or a snapshot of HTML."
        )
    attributes = {
        name.decode("utf-8", "replace"): (double or single).decode("utf-8", "replace")
        for name, double, single in (_ATTRIBUTE.findall(root[2]) if root else ())
    }
    exports = (_EXPORT.search(value) for name, value in attributes.items() if name.startswith("xmlns"))
    version = attributes.get("version") or next((found[1] for found in exports if found), None)
    if version is not None and version not in SCHEMA_VERSIONS and not allow_unknown_schema:
        raise SetupError(
            f"{path} has the unknown export schema {version} (known: 0.3 to 0.11). "
            "Use a newer version of kbsource, or allow unknown schemas to read it as 0.11."
        )
    siteinfo = _SITEINFO.search(bare)
    prefix = (root or page)[1]  # type: ignore[index]  # one of the two was found, see above
    site = _site(siteinfo[0] if siteinfo else None, attributes.get("xml:lang", ""), path, prefix or b"")
    return DumpHeader(
        site=site,
        schema_version=version,
        has_siteinfo=siteinfo is not None,
        has_root=root is not None,
        compression=compression,
        encoding=encoding,
        prefix=(prefix or b"").decode("ascii"),
    )


def _read_head(path: str) -> tuple[Compression, str, bytes, Form]:
    """Returns the compression, the encoding, the content up to the first page (as UTF-8 without a byte order mark), and
    the form of the content.
    """
    with Folder.of(path).open() as file:
        compression = compression_of(read_up_to(file, MAGIC_BYTES), path)
        encoding = ""
        for piece in iter_pieces(file, compression=compression):
            if not isinstance(piece, Damage):
                encoding = encoding_of(piece.data[:1024], path)
                break
        head = b""
        why = ""
        for piece in iter_pieces(file, compression=compression, encoding=encoding or "utf-8"):
            if isinstance(piece, Damage):
                why = why or f" ({piece.detail})"
            else:
                head += piece.data
            if len(head) >= TAR_HEAD_BYTES and (form := content_form(head)) != "xml":
                return compression, encoding or UTF8, head, form
            if len(head) > _HEAD_BYTES or _PAGE.search(head):
                break
    if not head.strip():
        raise SetupError(f"{path} contains nothing that can be decoded{why}. Download it again.")
    return compression, encoding, head.removeprefix(b"\xef\xbb\xbf"), content_form(head)


def _first_record(path: str, compression: Compression, form: Form) -> ArticleRecord:
    """Returns the first readable record of a snapshot.

    Raises:
        SetupError: no record at the beginning of the file can be read.
    """
    line, why = b"", ""
    n_lines = 0
    with Folder.of(path).open() as file:
        pieces = iter_pieces(file, compression=compression)
        for piece in unpacked(pieces) if form == "tar" else pieces:
            if isinstance(piece, Damage):
                why = why or piece.detail
                continue
            *lines, rest = piece.data.split(b"\n")
            for end in (*lines, None):
                line += rest if end is None else end
                if end is None or not line.strip():
                    continue
                try:
                    return read_article_record(line)
                except RecordError as error:
                    why = why or str(error)
                n_lines, line = n_lines + 1, b""
            if len(line) > MAX_RECORD_BYTES or n_lines > _FIRST_LINES:
                break
        if line.strip():
            try:
                return read_article_record(line)
            except RecordError as error:
                why = why or str(error)
    raise SetupError(
        f"{path} is not a snapshot of HTML: there is no article record in its first lines "
        f"({why or 'it has no line'}). Give a "
        "file of JSON lines with name, identifier and article_body, or a tar archive of such files."
    )


def _site_of_record(record: ArticleRecord, path: str) -> Site:
    named = _FILE_DBNAME.search(base_name(path)) or _SNAPSHOT_DBNAME.match(base_name(path))
    dbname = record.is_part_of.identifier or (named[1] if named else "")
    lang = record.in_language.identifier or language_of_dbname(dbname) or "en"
    return Site(
        lang=_CONTENT_LANGUAGES.get(lang, lang),
        dbname=dbname,
        base_url=f"{record.is_part_of.url}/wiki/" if record.is_part_of.url else "",
    )


def _site(siteinfo: bytes | None, lang: str, path: str, prefix: bytes) -> Site:
    named = _FILE_DBNAME.search(base_name(path))
    dbname = named[1] if named else ""
    if siteinfo is None:
        return Site(lang=lang or language_of_dbname(dbname) or "en", dbname=dbname)
    declared = b" xmlns:" + prefix + b'="export"' if prefix else b""
    from lxml import etree  # a slow import, which is not always needed

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, encoding="utf-8")
    try:
        tree = etree.fromstring(b"<head" + declared + b">" + siteinfo + b"</head>", parser)[0]
    except etree.XMLSyntaxError as error:
        raise SetupError(
            f"{path}: the <siteinfo> is not well-formed XML ({error}). Download the file again."
        ) from error
    facts: dict[str, str] = {}
    namespaces: dict[int, str] = {}
    for element in tree.iter("{*}*"):
        name = etree.QName(element).localname
        if name != "namespace":
            facts.setdefault(name, (element.text or "").strip())
            continue
        key = element.get("key", "")
        if not re.fullmatch(r"-?\d+", key):
            raise SetupError(
                f"{path}: the <siteinfo> has a namespace with the key {key!r}, which is not a number. "
                f"Download the file again."
            )
        namespaces[int(key)] = element.text or ""
    dbname = facts.get("dbname") or dbname_of_base(facts.get("base", "")) or dbname
    return Site(
        lang=lang or language_of_dbname(dbname) or "en",
        dbname=dbname,
        name=facts.get("sitename", ""),
        base_url=facts.get("base", ""),
        generator=facts.get("generator", ""),
        case=facts.get("case") or "first-letter",
        namespaces=namespaces,
    )


def dbname_of_base(base_url: str) -> str:
    """Returns the database name of a Wikimedia wiki from its URL, because dumps up to schema 0.8 do not contain it.
    Empty for other wikis.

    >>> dbname_of_base("http://it.wikipedia.org/wiki/Pagina_principale"), dbname_of_base("https://mini.example.org/wiki/A")
    ('itwiki', '')
    """
    found = _BASE.match(base_url)
    if found is None:
        return ""
    code, project = found.groups()
    return f"{code.replace('-', '_')}wik{'i' if project == 'ipedia' else project}"


def language_of_dbname(dbname: str) -> str:
    """Returns the language code in a database name: ``zh_min_nanwiki`` -> ``zh-min-nan``; an empty string if there is
    none.
    """
    found = _DBNAME_SUFFIX.search(dbname)
    return dbname[: found.start()].replace("_", "-") if found else ""


class _Entry(msgspec.Struct, frozen=True):
    """A namespace, or an alias of one. In ``formatversion`` 1, the field ``name`` or ``alias`` is called ``*``."""

    id: int | None = None
    name: str | None = None
    alias: str | None = None
    star: str | None = msgspec.field(default=None, name="*")
    canonical: str | None = None


class _General(msgspec.Struct, frozen=True):
    wikiid: str = ""
    sitename: str = ""
    base: str = ""
    generator: str = ""


class Siteinfo(msgspec.Struct, frozen=True):
    """The fields that kbsource reads in ``query`` of a response to ``api.php?action=query&meta=siteinfo``."""

    general: _General = _General()
    namespaces: dict[int, _Entry] = {}
    namespacealiases: tuple[_Entry, ...] = ()


class _Answer(msgspec.Struct, frozen=True):
    query: Siteinfo


def read_siteinfo_json(path: str) -> Siteinfo:
    """Reads the response of ``api.php?action=query&meta=siteinfo``, plain or gzipped.

    Wikimedia publishes it with a dump as ``…-siteinfo-namespaces.json.gz``. It contains aliases that are not in
    ``<siteinfo>``.

    Raises:
        SetupError: the file is not such a response.
    """
    return read_document(path, _Answer, remedy="download the response to meta=siteinfo again, or leave it out").query


def merge_siteinfo_json(site: Site, data: Siteinfo) -> Site:
    """Returns a site to which the names of namespaces, the aliases and missing facts in a siteinfo response are added.

    Both formats of the response are supported (``formatversion`` 1 and 2).
    """
    general = data.general
    namespaces = dict(site.namespaces)
    aliases = list(site.aliases)
    for key, entry in data.namespaces.items():
        number = key if entry.id is None else entry.id
        namespaces[number] = entry.name or entry.star or ""
        if entry.canonical:
            aliases.append((entry.canonical, number))
    for entry in data.namespacealiases:
        if entry.id is not None:
            aliases.append((entry.alias or entry.star or "", entry.id))
    return replace(
        site,
        dbname=site.dbname or general.wikiid,
        name=site.name or general.sitename,
        base_url=site.base_url or general.base,
        generator=site.generator or general.generator,
        namespaces=namespaces,
        aliases=tuple(dict.fromkeys(aliases)),
    )
