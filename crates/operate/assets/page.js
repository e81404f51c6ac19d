// The page: what the node sends becomes charts and lists.

import { Backdrop, Heat, Lines, element, moment } from "/charts.js";
import { List } from "/lists.js";

const find = (id) => document.getElementById(id);
const CHARTS = new Set(["quantiles", "rates", "lines", "heat", "backdrop"]);

// By name: what shows a panel, and the newest rows.
const shown = new Map();
const rows = new Map();
let source = null;
let last = null;
let patience = 1;
// Until the page says that the node is lost: a connection ends now and then.
let late = null;

function inTime() {
  clearTimeout(late);
  late = null;
}

function tell(text, isLost = false) {
  find("state").textContent = text;
  find("state").className = isLost ? "lost" : "";
}

function make(panel, backdrops) {
  if (panel.kind === "backdrop") return backdrops.get(panel.section);
  if (panel.kind === "heat") return new Heat(panel);
  if (panel.kind === "rows") return new List(panel, panel.name === "compactions" ? askToStop : null);
  return new Lines(panel, panel.kind === "quantiles" ? backdrops.get(panel.section) : null);
}

function build({ panels, role }) {
  find("role").textContent = role ? `as ${role}` : "";
  if (shown.size) return;
  const backdrops = new Map(panels.filter((panel) => panel.kind === "backdrop").map((panel) => [panel.section, new Backdrop()]));
  const grids = new Map();
  for (const panel of panels) {
    const made = make(panel, backdrops);
    shown.set(panel.name, { panel, made, refused: element("p", { className: "refused", hidden: true }) });
    if (!grids.has(panel.section)) {
      const grid = element("div", { className: "grid", id: `section-${grids.size}` });
      if (panel.title !== panel.section) find("main").append(element("h2", { textContent: panel.section }));
      grids.set(panel.section, grid);
      find("main").append(grid);
      find("sections").append(element("li", {}, element("a", { href: `#${grid.id}`, textContent: panel.section })));
    }
    made.element?.append(shown.get(panel.name).refused);
    if (made.element) grids.get(panel.section).append(made.element);
  }
}

function take({ at, panels, may_stop }) {
  const seconds = last === null ? 0 : (at - last) / 1000;
  const isNew = last !== at;
  last = at;
  if (isNew) moment(at / 1000);
  for (const [name, { panel, made, refused }] of shown) {
    const now = panels[name];
    if (now) {
      rows.set(name, now.rows ?? []);
      refused.hidden = now.error === undefined;
      refused.textContent = now.error ?? "";
    }
    made.mayStop?.(may_stop);
    // A chart has a point for each look, also where nothing has changed.
    if (CHARTS.has(panel.kind) ? isNew : now) made.add(rows.get(name) ?? [], seconds);
  }
  tell(`live, ${new Date(at).toLocaleTimeString("en-GB")}`);
}

function open() {
  close();
  source = new EventSource("/events");
  source.addEventListener("about", (event) => build(JSON.parse(event.data)));
  source.addEventListener("rows", (event) => {
    patience = 1;
    inTime();
    const all = JSON.parse(event.data);
    if (all.at) take(all);
  });
  source.onerror = () => {
    late ??= setTimeout(() => tell("the node does not answer; trying again", true), 5000);
    if (source?.readyState !== EventSource.CLOSED) return;
    close();
    setTimeout(() => !source && !isPaused() && !document.hidden && open(), patience * 1000);
    patience = Math.min(patience * 2, 30);
  };
}

function close() {
  source?.close();
  source = null;
}

const isPaused = () => find("pause").getAttribute("aria-pressed") === "true";

find("pause").onclick = () => {
  const pauses = !isPaused();
  find("pause").setAttribute("aria-pressed", String(pauses));
  if (pauses) {
    close();
    inTime();
    tell("paused");
  } else open();
};

// A page that is not seen costs the node nothing.
document.onvisibilitychange = () => {
  if (document.hidden) close();
  else if (!isPaused()) open();
};

matchMedia("(prefers-color-scheme: dark)").onchange = () => shown.forEach(({ made }) => made.redraw?.());

function askToStop(row) {
  const dialog = find("ask");
  find("question").textContent = `Stop the compaction of ${row.keyspace_name}.${row.table_name}? Its inputs stay; a later compaction merges them from the beginning.`;
  dialog.returnValue = "no";
  dialog.onclose = () => dialog.returnValue === "stop" && stop(row.task_id);
  dialog.showModal();
}

async function stop(id) {
  const { refused } = shown.get("compactions");
  const answer = await fetch(`/stop?id=${id}`, { method: "POST", headers: { "x-halcyon-page": "1" } });
  refused.hidden = answer.ok;
  refused.textContent = answer.ok ? "" : await answer.text();
}

open();
