// Live search, keys, and offsets of what is selected. Every view works without this.
"use strict";

// Search as one types: a combobox whose list stands below the field.
function liveSearch(field) {
  const list = document.createElement("ul");
  list.id = "titles";
  list.className = "titles";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Pages");
  list.hidden = true;
  field.after(list);
  for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-controls": "titles", "aria-expanded": "false" }))
    field.setAttribute(name, value);
  let asked = 0, chosen = -1;

  function choose(number) {
    const rows = [...list.querySelectorAll('[role="option"]')];
    chosen = rows.length ? (number + rows.length) % rows.length : -1;
    rows.forEach((row, i) => row.setAttribute("aria-selected", String(i === chosen)));
    if (chosen >= 0) {
      field.setAttribute("aria-activedescendant", rows[chosen].id);
      rows[chosen].scrollIntoView({ block: "nearest" });
    } else field.removeAttribute("aria-activedescendant");
  }

  function close() {
    asked += 1;
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    choose(-list.childElementCount - 1);
    field.removeAttribute("aria-activedescendant");
    chosen = -1;
  }

  function show(answer) {
    list.replaceChildren(...answer.found.map((page, number) => {
      const row = document.createElement("li");
      row.id = `title-${number}`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", "false");
      row.dataset.url = page.url;
      const title = document.createElement("bdi"), note = document.createElement("bdi");
      title.textContent = page.title;
      note.textContent = page.note;
      note.className = "quiet";
      row.append(title, " ", note);
      return row;
    }));
    if (!answer.found.length) {
      const row = document.createElement("li");
      row.className = "quiet";
      row.setAttribute("role", "option");
      row.setAttribute("aria-disabled", "true");
      row.textContent = answer.ready ? "No title begins like this" : `The titles are being sorted: ${answer.percent} %`;
      list.append(row);
    }
    const text = document.createElement("li");
    text.id = "title-text";
    text.setAttribute("role", "option");
    text.setAttribute("aria-selected", "false");
    text.dataset.url = `${field.form.action}?q=${encodeURIComponent(field.value.trim())}&all=`;
    text.textContent = "Search the text";
    list.append(text);
    list.hidden = false;
    field.setAttribute("aria-expanded", "true");
    chosen = -1;
  }

  async function ask() {
    const text = field.value.trim(), mine = ++asked;
    if (!text) return close();
    try {
      const answer = await (await fetch(`${field.dataset.titles}?q=${encodeURIComponent(text)}`)).json();
      if (mine === asked && document.activeElement === field) show(answer);
    } catch { /* the server has gone; the form says so */ }
  }

  field.addEventListener("input", ask);
  field.addEventListener("focus", () => { if (field.value.trim() && field.value !== field.defaultValue) ask(); });
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { if (!list.hidden) { close(); event.preventDefault(); } else field.blur(); event.stopPropagation(); }
    else if (list.hidden) return;
    else if (event.key === "ArrowDown") { choose(chosen + 1); event.preventDefault(); }
    else if (event.key === "ArrowUp") { choose(chosen < 0 ? -1 : chosen - 1); event.preventDefault(); }
    else if (event.key === "Enter" && chosen >= 0) { location.assign(list.children[chosen].dataset.url); event.preventDefault(); }
  });
  list.addEventListener("mousedown", (event) => {
    const row = event.target.closest("[data-url]");
    event.preventDefault();
    if (row) location.assign(row.dataset.url);
  });
}

// A part of a view whose content is computed in the background is replaced until it is there.
async function replaceUnfinished(part) {
  await new Promise((done) => setTimeout(done, 1500));
  try {
    const text = await (await fetch(location.href)).text();
    const made = new DOMParser().parseFromString(text, "text/html").getElementById(part.id);
    if (!made) return;
    part.replaceWith(made);
    if (made.matches("[data-unfinished]")) replaceUnfinished(made);
  } catch { /* the server has gone */ }
}
document.querySelectorAll("[data-unfinished]").forEach(replaceUnfinished);

// Keys: / to the search, j and k or arrows through a list, Escape out of it.
function moveInList(step) {
  const rows = [...document.querySelectorAll("[data-list] a.row")];
  if (!rows.length) return false;
  const at = rows.indexOf(document.activeElement);
  const next = rows[Math.min(Math.max(at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step, 0), rows.length - 1)];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  return true;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches("textarea")) event.target.form.submit();
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const target = event.target, field = document.getElementById("q");
  if (target.matches("input, select, textarea")) return;
  const inList = target.matches("[data-list] a.row");
  if (event.key === "/" && field) { field.focus(); field.select(); event.preventDefault(); }
  else if (event.key === "j" || (event.key === "ArrowDown" && inList)) { if (moveInList(1)) event.preventDefault(); }
  else if (event.key === "k" || (event.key === "ArrowUp" && inList)) { if (moveInList(-1)) event.preventDefault(); }
  else if (event.key === "Escape") { closeMenus(); target.blur(); }
});

function closeMenus(but) {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (menu !== but) menu.open = false;
}
document.addEventListener("click", (event) => closeMenus(event.target.closest("details.menu")));

// The offsets of what is selected, in code points of the element that it stands in, as the release counts them.
function offset(node, at) {
  const element = (node.nodeType === Node.TEXT_NODE ? node.parentElement : node).closest("[data-e]");
  if (!element) return null;
  const before = document.createRange();
  before.setStart(element, 0);
  before.setEnd(node, at);
  return [Number(element.dataset.e), Number(element.dataset.from || 0) + [...before.toString()].length];
}

function showPlace(output) {
  const selection = getSelection();
  output.textContent = "";
  if (!selection.rangeCount || selection.isCollapsed) return;
  const range = selection.getRangeAt(0);
  const start = offset(range.startContainer, range.startOffset), end = offset(range.endContainer, range.endOffset);
  if (!start || !end) return;
  output.textContent = start[0] === end[0]
    ? `element ${start[0]}, [${start[1]}, ${end[1]})`
    : `element ${start[0]}, ${start[1]} to element ${end[0]}, ${end[1]}`;
}

const search = document.getElementById("q"), place = document.getElementById("place");
if (search) liveSearch(search);
if (place) document.addEventListener("selectionchange", () => showPlace(place));
