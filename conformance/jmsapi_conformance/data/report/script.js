"use strict";
// The page is whole without this; it filters, and fills in what belongs to a requirement when it is opened.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const one = (id) => document.getElementById(id);
  const table = one("matrix"), search = one("search"), chapter = one("chapter"), level = one("level");
  const verdicts = [...document.querySelectorAll(".verdicts input")], backends = [...document.querySelectorAll(".backends input")];
  const rows = [...table.querySelectorAll("tr.row")];
  const element = (name, text, kind) => {
    const made = document.createElement(name);
    if (text) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const words = new Map();
  const wordsOf = (row) => {  // what a search looks through: the requirement, its tests, and the reasons given
    if (!words.has(row.id)) {
      const it = data.requirements[row.id], said = [row.id, it.text, it.section, it.test, it.note, it.api, it.elsewhere];
      for (const t of it.tests) {
        said.push(data.tests[t]);
        for (const column of data.columns) if (column.reasons[t] !== undefined) said.push(data.reasons[column.reasons[t]]);
      }
      words.set(row.id, said.join("\n").toLowerCase());
    }
    return words.get(row.id);
  };
  const checked = (boxes) => boxes.filter((box) => box.checked).map((box) => box.value);

  function apply() {
    const shown = checked(backends).map(Number), wanted = checked(verdicts), terms = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    data.columns.forEach((_, i) => table.classList.toggle("nocol-" + i, !shown.includes(i)));
    let count = 0;
    for (const row of rows) {
      const fits = (!chapter.value || row.dataset.chapter === chapter.value) && (!level.value || row.dataset.level === level.value)
        && (!wanted.length || shown.some((i) => wanted.includes(row.dataset.verdicts[i])))
        && terms.every((term) => wordsOf(row).includes(term));
      row.hidden = !fits;
      if (fits) count += 1;
      if (isOpen(row)) { close(row); if (fits) open(row); }
    }
    for (const body of table.tBodies) body.hidden = ![...body.rows].some((row) => row.classList.contains("row") && !row.hidden);
    one("found").textContent = count + " of " + rows.length + " requirements";
    one("nothing").hidden = count > 0;
  }

  function remember() {
    const said = new URLSearchParams();
    if (search.value) said.set("q", search.value);
    if (chapter.value) said.set("chapter", chapter.value);
    if (level.value) said.set("level", level.value);
    if (checked(verdicts).length) said.set("verdict", checked(verdicts).join(""));
    if (backends.some((box) => !box.checked)) said.set("backend", checked(backends).join("."));
    try { history.replaceState(null, "", said.size ? "#?" + said : location.pathname + location.search); } catch { /* some viewers of files allow none */ }
  }
  function recall() {
    let hash = location.hash.slice(1);
    try { hash = decodeURIComponent(hash); } catch { /* a stray % names nothing */ }
    if (hash.startsWith("?")) {
      const said = new URLSearchParams(location.hash.slice(2));
      search.value = said.get("q") ?? ""; chapter.value = said.get("chapter") ?? ""; level.value = said.get("level") ?? "";
      for (const box of verdicts) box.checked = (said.get("verdict") ?? "").includes(box.value);
      if (said.has("backend")) for (const box of backends) box.checked = said.get("backend").split(".").includes(box.value);
    }
    apply();
    const named = hash ? one(hash) : null;
    if (named?.classList.contains("row")) { open(named); button(named).focus({ preventScroll: true }); named.scrollIntoView(); }
  }

  const button = (row) => row.querySelector("button");
  const isOpen = (row) => button(row).getAttribute("aria-expanded") === "true";
  function close(row) {
    if (!isOpen(row)) return;
    row.nextElementSibling.remove();
    button(row).setAttribute("aria-expanded", "false");
  }
  function open(row) {
    if (isOpen(row)) return;
    const it = data.requirements[row.id], detail = element("tr", "", "detail"), cell = element("td"), list = element("dl");
    cell.colSpan = data.columns.length + 1;
    for (const [word, text] of [["Section", it.section], ["Requirement", it.text], ["Level, scope", it.level + ", " + it.scope], ["Members", it.api],
      ["How to see it", it.test], ["Note", it.note], ["Needs", it.elsewhere]])
      if (text) list.append(element("dt", word), element("dd", text));
    cell.append(list);
    if (!it.tests.length) cell.append(element("p", "Here is no test that names this requirement: none was run, or there is none."));
    const shown = checked(backends).map(Number);
    for (const t of it.tests) {
      const alike = new Map();  // backends that say the same of this test
      for (const i of shown) {
        const column = data.columns[i], letter = column.verdicts[t];
        if (letter === ".") continue;
        const why = data.reasons[column.reasons[t]] ?? "", remark = data.reasons[column.remarks[t]] ?? "", same = letter + why + "\n" + remark;
        if (!alike.has(same)) alike.set(same, { letter, why, remark, titles: [] });
        alike.get(same).titles.push(column.title);
      }
      if (!alike.size) continue;
      const tests = element("ul");
      for (const { letter, why, remark, titles } of alike.values()) {
        const kind = letter.toLowerCase(), item = element("li");
        item.append(element("span", data.verdicts[kind].sign, "key " + kind), element("span", data.verdicts[kind].word + ": ", "hidden"), " " + titles.join(", "));
        if (letter !== kind) item.append(" ", element("span", "(new in this level: only reports)", "only"));
        for (const text of [why, remark]) if (text) item.append(element("span", text, "why"));
        tests.append(item);
      }
      const heading = element("h3");
      heading.append(element("code", data.tests[t]));
      cell.append(heading, tests);
    }
    const known = new Map();  // what certificates in short say, which have no tests
    for (const i of shown) {
      const kind = row.dataset.verdicts[i];
      if (data.columns[i].short && kind !== "u") known.set(kind, [...(known.get(kind) ?? []), data.columns[i].title]);
    }
    if (known.size) {
      const list = element("ul");
      for (const [kind, titles] of known) {
        const item = element("li");
        item.append(element("span", data.verdicts[kind].sign, "key " + kind), element("span", data.verdicts[kind].word + ": ", "hidden"), " " + titles.join(", "));
        list.append(item);
      }
      cell.append(element("h3", "Verdicts whose tests are not in the certificate"), list);
    }
    detail.append(cell);
    row.after(detail);
    button(row).setAttribute("aria-expanded", "true");
  }
  const toggle = (row) => (isOpen(row) ? close(row) : open(row));
  function move(from, step) {
    const seen = rows.filter((row) => !row.hidden), at = seen.indexOf(from);
    const next = seen[at < 0 ? 0 : Math.min(seen.length - 1, Math.max(0, at + step))];
    if (next) { button(next).focus(); next.scrollIntoView({ block: "nearest" }); }
  }

  table.addEventListener("click", (event) => {
    const row = event.target.closest("tr.row");
    if (row) toggle(row);
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input[type=search], select");
    const row = event.target.closest?.("tr.row");
    if (event.key === "/" && !typing) { event.preventDefault(); search.focus(); search.select(); }
    else if (event.key === "Escape" && event.target === search) { search.value = ""; apply(); remember(); }
    else if (event.key === "Escape") rows.forEach(close);
    else if (event.key === "ArrowDown" && (event.target === search || event.target === table || row || event.target === document.body)) { event.preventDefault(); move(row, 1); }
    else if (event.key === "ArrowUp" && row) { event.preventDefault(); move(row, -1); }
    else if (event.key === "Home" && row) { event.preventDefault(); move(row, -rows.length); }
    else if (event.key === "End" && row) { event.preventDefault(); move(row, rows.length); }
  });
  document.querySelector("form.filters").addEventListener("submit", (event) => event.preventDefault());
  let waiting = 0;
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => { apply(); remember(); }, 120); });
  for (const box of [chapter, level, ...verdicts, ...backends]) box.addEventListener("change", () => { apply(); remember(); });
  one("reset").addEventListener("click", () => {
    search.value = chapter.value = level.value = "";
    for (const box of verdicts) box.checked = false;
    for (const box of backends) box.checked = true;
    apply(); remember(); search.focus();
  });
  one("theme").addEventListener("click", () => {
    const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  window.addEventListener("hashchange", recall);
  recall();
})();
