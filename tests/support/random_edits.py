"""The mini-wiki, with more templates and modules than it has, edited at random: of one seed always the same edits."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from tests.support import make_demo as make
from tests.support import mini_wiki
from tests.support.dumps import page_xml, revision_xml

TEMPLATE, MODULE = 10, 828
_TEMPLATES = {
    "Depth": "{{{1|?}}} fathoms{{#ifexist:{{{2|Port Sellick}}}| by [[{{{2|Port Sellick}}}]]}}",
    "Sounding": "sounded at {{Depth|{{{1|3}}}|{{{2|Ostermoor}}}}} {{Tide mark}}",
    "Tide mark": "(at the [[Halvane|isles]] mark)",
    "Next tide": "{{#invoke:Tides|next}}",
    "Here": "{{PAGENAME}} {{CURRENTYEAR}}",
    "Citation needed": "<sup>[says who?]</sup>",
    "Doubted here": "#REDIRECT [[Template:Citation needed]]",
    "Told": "{{#invoke:Told|told|{{{1|Depth}}}}}",
    "Chart box": "<table class='infobox'><tr><th>Chart</th><td>[[{{{chart|Heron}}}]]</td></tr></table>",
}
_MODULES = {
    "Told": "local p = {}\nfunction p.told(frame)\nlocal t = mw.title.new(frame.args[1])\n"
    "local s = mw.title.new('Template:' .. frame.args[1])\n"
    "return (t.exists and 'there' or 'gone') .. ' ' .. #(s:getContent() or '') .. require('Module:Tides').next()\n"
    "end\nreturn p"
}
_WORDS = "tide lantern quay heron brine mole ferry gull harp islet".split()


class EditedWiki:
    """A wiki to be edited.

    Args:
        seed: of the edits.
    """

    def __init__(self, seed: str) -> None:
        self._draw = random.Random(seed)
        self._head, pages, self._foot = make.split_xml(mini_wiki.XML.read_bytes())
        self.pages = {page.page_id: page for page in map(make.parse_page, pages)}
        self._items: dict[int, str] = {}
        self._last_id, self._last_revision = 400, 600_000
        for namespace, texts in ((TEMPLATE, _TEMPLATES), (MODULE, _MODULES)):
            for name, text in texts.items():
                self._add(name, text, namespace)
        for _ in range(40):
            self.edit_text()

    def edit(self) -> str:
        """Edits the wiki once, and gives how."""
        edits: list[Callable[[], None]] = [
            self.edit_text,
            self.edit_text,
            self.edit_definition,
            self.edit_definition,
            self.move_page,
            self.remove_page,
            self.add_page,
            self.add_redirect,
            self.retarget,
            self.remove_redirect,
            self.add_template,
            self.remove_template,
            self.touch,
            self.give_item,
        ]
        chosen = self._draw.choice(edits)
        chosen()
        return chosen.__name__

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Writes dump and page_props into a folder, and gives their paths."""
        folder.mkdir(parents=True)
        pages = [self.pages[page_id] for page_id in sorted(self.pages)]
        dump, props = folder / "miniwiki-20260201-pages-articles.xml", folder / "miniwiki-20260201-page_props.sql.gz"
        dump.write_bytes(b"".join([self._head, *(page.xml for page in pages), self._foot]))
        rows = [
            row._replace(value=self._items.get(row.page_id, row.value)) if row.name == "wikibase_item" else row
            for row in make.page_props(pages)
        ]
        props.write_bytes(make.gzip_bytes(make.page_props_sql(rows).encode("utf-8")))
        return dump, props

    def edit_text(self) -> None:
        page = self._any(0, is_redirect=False)
        paragraphs = page.text.split("\n\n")
        place = self._draw.randrange(len(paragraphs) + 1)
        if self._draw.random() < 0.2 and place < len(paragraphs):
            del paragraphs[place]
        else:
            paragraphs.insert(place, self._sentence())
        self._put(page.page_id, page.title, "\n\n".join(paragraphs), 0)

    def edit_definition(self) -> None:
        page = self._any(self._draw.choice((TEMPLATE, TEMPLATE, MODULE)), is_redirect=False)
        if page.namespace == MODULE:
            text = page.text.replace("return p", f"-- {self._words(2)}\nreturn p", 1)
            text = text.replace('"14:02"', f'"{self._draw.randrange(10, 24)}:30"')
        else:
            text = page.text + " " + self._draw.choice((self._words(2), self._sentence()))
        self._put(page.page_id, page.title, text, page.namespace)

    def move_page(self) -> None:
        page = self._any(0, is_redirect=self._draw.random() < 0.2)
        title = self._new_title()
        self._put(page.page_id, title, page.text, 0, keeps=page)
        if self._draw.random() < 0.7:
            self._add(page.title, f"#REDIRECT [[{title}]]", 0)

    def remove_page(self) -> None:
        del self.pages[self._any(0, is_redirect=False).page_id]

    def add_page(self) -> None:
        self._add(self._new_title(), f"{self._sentence()}\n\n{self._sentence()}", 0)

    def add_redirect(self) -> None:
        section = self._draw.choice(("", "", "#History"))
        self._add(self._new_title(), f"#REDIRECT [[{self._title()}{section}]]", 0)

    def retarget(self) -> None:
        page = self._any(0, is_redirect=True)
        section = self._draw.choice(("", "#Records"))
        self._put(page.page_id, page.title, f"#REDIRECT [[{self._title()}{section}]]", 0)

    def remove_redirect(self) -> None:
        del self.pages[self._any(0, is_redirect=True).page_id]

    def add_template(self) -> None:
        name = self._draw.choice((self._words(1).capitalize(), "Lost mark", "Tide mark 2"))
        if name in self._templates():
            return
        target = self._draw.choice(self._templates())
        text = self._draw.choice((f"#REDIRECT [[Template:{target}]]", self._sentence(), f"{{{{{target}|4}}}}"))
        self._add(name, text, TEMPLATE)

    def remove_template(self) -> None:
        del self.pages[self._any(TEMPLATE, is_redirect=self._draw.random() < 0.5).page_id]

    def touch(self) -> None:
        page = self._any(0, is_redirect=False)
        self._put(page.page_id, page.title, page.text, 0)

    def give_item(self) -> None:
        page = self._any(0, is_redirect=False)
        self._items[page.page_id] = f"Q{self._draw.randrange(100, 10**6)}"

    def _sentence(self) -> str:
        """A paragraph with a link or a template."""
        link = f"[[{self._title()}{self._draw.choice(('', '|there', '#History'))}]]"
        argument = self._draw.choice((self._title(), str(self._draw.randrange(90))))
        use = f"{{{{{self._draw.choice([*self._templates(), 'Lost mark', 'Tide mark 2'])}|{argument}}}}}"
        asked = f"{{{{#ifexist:{self._title()}|It is told.|Nobody tells of it.}}}}"
        note = f"<ref>{{{{cite book|title={self._words(2)}|last=Pell|year=1901}}}}</ref>"
        made = (link, link, use, use, asked, f"{use} {link}", f"{link}{note}")
        return f"The {self._words(2)} of {self._draw.choice(made)} is {self._words(1)}."

    def _words(self, n: int) -> str:
        return " ".join(self._draw.choice(_WORDS) for _ in range(n))

    def _title(self) -> str:
        """A title that there is, as article or redirect, or that there is not."""
        titles = [page.title for page in self.pages.values() if page.namespace == 0]
        return self._draw.choice([*titles, "Far quay", "Brine harp"])

    def _new_title(self) -> str:
        self._last_id += 1
        return self._draw.choice(("Far quay", "Brine harp", f"{self._words(1).capitalize()} {self._last_id}"))

    def _templates(self) -> list[str]:
        return [page.title.partition(":")[2] for page in self.pages.values() if page.namespace == TEMPLATE]

    def _any(self, namespace: int, *, is_redirect: bool) -> make.DemoPage:
        found = [
            page
            for page in self.pages.values()
            if page.namespace == namespace
            and page.is_redirect == is_redirect
            and page.text
            and page.page_id not in mini_wiki.REJECTED_PAGE_IDS
        ]
        return self._draw.choice(found) if found else self._any(namespace, is_redirect=not is_redirect)

    def _add(self, name: str, text: str, namespace: int) -> None:
        self._last_id += 1
        prefix = {TEMPLATE: "Template:", MODULE: "Module:"}.get(namespace, "")
        self._put(self._last_id, f"{prefix}{name}", text, namespace)

    def _put(self, page_id: int, title: str, text: str, namespace: int, *, keeps: make.DemoPage | None = None) -> None:
        """Puts a page with a new revision, or the one that it had."""
        if keeps is None:
            self._last_revision += 1
        revision = self._last_revision if keeps is None else 500_000 + page_id
        year = 2000 + self._last_revision % 20
        revisions = revision_xml(text, revision_id=revision, timestamp=f"{year}-05-05T05:05:05Z")
        is_redirect = text.lower().startswith("#redirect")
        target = text.partition("[[")[2].partition("]]")[0].partition("#")[0] if is_redirect else None
        xml = page_xml(page_id, title, ns=namespace, redirect=target, revisions=revisions)
        self.pages[page_id] = make.DemoPage(page_id, namespace, title, is_redirect, text, xml)
