// Lists: rows of virtual tables, sorted and filtered here. What a table contains becomes text, never markup.

import { card, element } from "/charts.js";
import { isNumber, written } from "/figures.js";

const ROWS = 200;
// Of a cell; its title has the rest.
const LETTERS = 400;
// A shorter list needs no filter.
const FEW = 8;
const UNITS = [["_ns", "ns"], ["_us", "us"], ["_bytes", "bytes"], ["_ratio", "ratio"]];
const LONG = new Set(["query", "message", "value", "evidence", "cure", "finding", "cost"]);
const BAD = new Set(["ERROR", "WARN", "critical", "warning"]);
const FIRST = { tables: ["read_count", true], slow_requests: ["ended", true], log: ["timestamp", true], settings: ["name", false], findings: ["position", false] };
const HIDDEN = new Set(["task_id", "order_in_millisecond", "position"]);
const COLLAPSED = new Set(["settings"]);

const unitOf = (column) => UNITS.find(([suffix]) => column.endsWith(suffix));
const titleOf = (column) => column.replace(unitOf(column)?.[0] ?? /$^/, "").replaceAll("_", " ");

function compared(a, b) {
  if (isNumber(a) && isNumber(b)) return a - b;
  return String(a ?? "").localeCompare(String(b ?? ""), "en", { numeric: true });
}

export class List {
  #panel;
  #stop;
  #rows = [];
  #order;
  #columns = [];
  #filter = element("input", { type: "search" });
  #count = element("span");
  #tools;
  #head = element("thead");
  #body = element("tbody");
  #none = element("p", { className: "none", textContent: "None." });
  #shown = new Map();
  #mayStop = false;

  // `stop` is called with the row of a compaction that is to be stopped.
  constructor(panel, stop) {
    this.#panel = panel;
    this.#stop = stop;
    this.#order = FIRST[panel.name] ?? [null, false];
    this.#filter.id = `filter-${panel.name}`;
    this.#filter.oninput = () => this.#show();
    const label = element("label", { htmlFor: this.#filter.id, textContent: "Filter" });
    this.#tools = element("p", { className: "tools" }, label, this.#filter, this.#count);
    const table = element("table", {}, element("caption", { className: "skip", textContent: panel.title }), this.#head, this.#body);
    const scroll = element("div", { className: "scroll", tabIndex: 0 }, table);
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", `${panel.title}: rows`);
    this.element = card(panel);
    const parts = [this.#tools, this.#none, scroll];
    if (COLLAPSED.has(panel.name)) {
      parts.splice(0, parts.length, element("details", {}, element("summary", { textContent: "Show all" }), ...parts.slice()));
    }
    this.element.append(...parts);
  }

  add(rows) {
    this.#rows = rows;
    this.#show();
  }

  mayStop(may) {
    if (this.#stop && may !== this.#mayStop) {
      this.#mayStop = may;
      this.#columns = [];
      this.#show();
    }
  }

  #show() {
    const [by, isDescending] = this.#order;
    const wanted = this.#filter.value.toLowerCase();
    const rows = this.#rows.filter((row) => !wanted || Object.values(row).some((value) => String(value).toLowerCase().includes(wanted)));
    if (by) rows.sort((a, b) => compared(a[by], b[by]) * (isDescending ? -1 : 1));
    this.#none.hidden = rows.length > 0;
    this.#none.textContent = wanted ? "No row has that." : "None.";
    this.#tools.hidden = !wanted && rows.length <= FEW;
    this.#count.textContent = rows.length > ROWS ? `${ROWS} of ${written(rows.length)} rows: filter to see others` : `${written(rows.length)} rows`;
    this.#heads(Object.keys(this.#rows[0] ?? {}).filter((column) => !HIDDEN.has(column)));
    const shown = new Map();
    let place = this.#body.firstChild;
    for (const row of rows.slice(0, ROWS)) {
      let key = row.task_id ?? JSON.stringify(row);
      while (shown.has(key)) key += " ";
      const line = this.#shown.get(key) ?? this.#line(row);
      this.#fill(line, row);
      // A line that stays keeps the focus that it may have.
      if (line === place) place = place.nextSibling;
      else this.#body.insertBefore(line, place);
      shown.set(key, line);
    }
    for (const [key, line] of this.#shown) if (!shown.has(key)) line.remove();
    this.#shown = shown;
  }

  #heads(columns) {
    if (columns.length === 0 || columns.join() === this.#columns.join()) return;
    this.#columns = columns;
    this.#shown.forEach((line) => line.remove());
    this.#shown.clear();
    const heads = columns.map((column) => {
      const button = element("button", { type: "button", textContent: titleOf(column) });
      const head = element("th", { scope: "col", className: this.#isNumeric(column) ? "number" : "" }, button);
      head.dataset.column = column;
      button.onclick = () => {
        const isSame = this.#order[0] === column;
        this.#order = [column, isSame ? !this.#order[1] : this.#isNumeric(column)];
        this.#mark();
        this.#show();
      };
      return head;
    });
    if (this.#mayStop) heads.push(element("th", { scope: "col" }, element("span", { textContent: "Stop" })));
    this.#head.replaceChildren(element("tr", {}, ...heads));
    this.#mark();
  }

  #mark() {
    for (const head of this.#head.querySelectorAll("th[data-column]")) {
      const isBy = head.dataset.column === this.#order[0];
      head.setAttribute("aria-sort", isBy ? (this.#order[1] ? "descending" : "ascending") : "none");
    }
  }

  #isNumeric(column) {
    return this.#rows.some((row) => isNumber(row[column]));
  }

  #line(row) {
    const line = element("tr");
    for (const column of this.#columns) {
      const cell = element("td", { className: this.#isNumeric(column) ? "number" : LONG.has(column) ? "long" : "" });
      if (column === "progress_ratio") {
        const bar = element("progress", { max: 1 });
        bar.setAttribute("aria-label", "progress");
        cell.append(bar);
      }
      cell.append(document.createTextNode(""));
      line.append(cell);
    }
    if (this.#mayStop) {
      const button = element("button", { type: "button", className: "danger", textContent: "Stop" });
      button.setAttribute("aria-label", `Stop the compaction of ${row.keyspace_name}.${row.table_name}`);
      button.onclick = () => this.#stop(row);
      line.append(element("td", {}, button));
    }
    return line;
  }

  #fill(line, row) {
    this.#columns.forEach((column, at) => {
      const cell = line.children[at];
      const value = row[column];
      const isTime = column === "timestamp" || column === "ended";
      let text = isNumber(value) ? (column === "port" ? String(value) : written(value, unitOf(column)?.[1])) : String(value ?? "");
      if (isTime && !Number.isNaN(Date.parse(value))) text = new Date(value).toLocaleTimeString("en-GB");
      if (text.length > LETTERS) {
        cell.title = text;
        text = `${text.slice(0, LETTERS)}…`;
      }
      if (cell.lastChild.data !== text) cell.lastChild.data = text;
      if (cell.firstChild.nodeName === "PROGRESS") cell.firstChild.value = value;
      if (BAD.has(value)) cell.classList.add("bad");
    });
  }
}
