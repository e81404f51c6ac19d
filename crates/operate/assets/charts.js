// Charts over time: lines with uPlot, and a heat map.

import { buckets, grown, lines, quantile, sum, written } from "/figures.js";

const POINTS = 450;
const LINES = 8;
const QUANTILES = [["p50", 0.5], ["p99", 0.99], ["p99.9", 0.999]];
const BACKDROP = [["compaction", "compactions", ["compaction_read", "compaction_write"]], ["flush", "flushes", ["flush"]], ["group", "log groups", ["commitlog"]]];

// The moments of all charts, in seconds since 1970.
export const moments = [];

export function moment(at) {
  moments.push(at);
  if (moments.length > POINTS) moments.shift();
}

// Steps of axes in bytes.
const POWERS = Array.from({ length: 60 }, (_, power) => 2 ** power);

const decadesOnly = (splits) => splits.map((value) => (Number.isInteger(Math.log10(value)) ? value : null));

// Steps of the axis of time, in seconds.
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 300, 600];

const clock = (at, hasSeconds) => new Date(at * 1000).toLocaleTimeString("en-GB", hasSeconds ? {} : { hour: "2-digit", minute: "2-digit" });

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function swatch(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const square = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  svg.setAttribute("viewBox", "0 0 1 1");
  svg.setAttribute("aria-hidden", "true");
  square.setAttribute("width", "1");
  square.setAttribute("height", "1");
  square.setAttribute("class", name);
  svg.append(square);
  return svg;
}

export function card(panel) {
  const made = element("section", { className: "card", id: `panel-${panel.name}` });
  // The only panel of a section is the section.
  const title = element(panel.title === panel.section ? "h2" : "h3", { id: `title-${panel.name}`, textContent: panel.title });
  made.setAttribute("aria-labelledby", title.id);
  made.append(title, element("p", { className: "question", textContent: panel.question }));
  return made;
}

// Numbers between two looks.
class History {
  lines = new Map();

  add(values) {
    for (const name of values.keys()) {
      if (!this.lines.has(name)) this.lines.set(name, new Array(moments.length - 1).fill(null));
    }
    for (const [name, points] of this.lines) {
      points.push(values.get(name) ?? null);
      if (points.length > POINTS) points.shift();
      if (points.every((point) => point === null)) this.lines.delete(name);
    }
  }
}

function rates(before, now, seconds) {
  const found = new Map();
  for (const [name, value] of now) {
    const past = before?.get(name);
    const isKnown = past !== undefined && past !== null && value !== null && value >= past && seconds > 0;
    found.set(name, isKnown ? (value - past) / seconds : null);
  }
  return found;
}

// What the node does beside the requests, drawn behind the charts of its section.
export class Backdrop {
  #history = new History();
  #before = null;

  add(rows, seconds) {
    const now = lines(rows);
    const grown = rates(this.#before, now, seconds);
    this.#before = now;
    this.#history.add(new Map(BACKDROP.map(([name, , purposes]) => [name, purposes.reduce((all, of) => all + (grown.get(of) ?? 0), 0)])));
  }

  legend() {
    return BACKDROP.map(([name, title], at) => element("li", { className: "behind" }, at === 0 ? "behind: " : "", swatch(name), title));
  }

  draw(chart) {
    const { left, top, width, height } = chart.bbox;
    const context = chart.ctx;
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    for (const [name] of BACKDROP) {
      const points = this.#history.lines.get(name) ?? [];
      const most = Math.max(...points.map((point) => point ?? 0), 1);
      context.fillStyle = color(`--${name}`);
      points.forEach((point, at) => {
        if (!point || at === 0) return;
        const [from, to] = [moments[at - 1], moments[at]].map((x) => chart.valToPos(x, "x", true));
        const tall = name === "group" ? height * 0.3 * (point / most) : height;
        context.fillRect(from, top + height - tall, to - from, tall);
      });
    }
    context.restore();
  }
}

export class Lines {
  #panel;
  #backdrop;
  #legend = element("ul", { className: "legend" });
  #plot = element("div", { className: "plot" });
  #history = new History();
  #before = null;
  #chart = null;
  #names = [];

  constructor(panel, backdrop) {
    this.#panel = panel;
    this.#backdrop = backdrop;
    this.element = card(panel);
    this.element.append(this.#legend, this.#plot);
    this.#plot.setAttribute("role", "img");
    this.#plot.setAttribute("aria-label", `${panel.title}: a chart of the last minutes; the newest values are above it`);
    new ResizeObserver(() => this.#chart?.setSize(this.#size())).observe(this.#plot);
  }

  add(rows, seconds) {
    this.#history.add(this.#values(rows, seconds));
    const ranked = [...this.#history.lines].map(([name, points]) => [name, Math.max(...points.map((point) => point ?? 0))]);
    const isQuantile = this.#panel.kind === "quantiles";
    const others = ranked.sort(([, a], [, b]) => b - a).filter(([, most], at) => most > 0 || at === 0);
    const shown = isQuantile ? [...this.#history.lines] : others.slice(0, LINES);
    const names = shown.map(([name]) => name);
    const isSame = names.length === this.#names.length && names.every((name) => this.#names.includes(name));
    if (!isSame) this.#names = isQuantile ? names : names.sort();
    if (!isSame || !this.#chart) this.redraw();
    else this.#chart.setData(this.#data());
    this.#tell(moments.length - 1);
  }

  #values(rows, seconds) {
    if (this.#panel.kind === "quantiles") {
      const now = buckets(rows).get("") ?? new Map();
      const counted = grown(now, this.#before);
      this.#before = now;
      return new Map(QUANTILES.map(([name, at]) => [name, counted.size ? quantile(counted, at) : null]));
    }
    const now = lines(rows);
    const values = this.#panel.kind === "rates" ? rates(this.#before, now, seconds) : now;
    this.#before = now;
    return values;
  }

  #size() {
    return { width: Math.max(this.#plot.clientWidth, 200), height: 190 };
  }

  #data() {
    return [moments, ...this.#names.map((name) => this.#history.lines.get(name))];
  }

  // Anew, with the colours of the scheme.
  redraw() {
    this.#chart?.destroy();
    const [text, grid, unit] = [color("--soft"), color("--grid"), this.#panel.unit];
    const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "12px system-ui, sans-serif" };
    const isLog = this.#panel.kind === "quantiles";
    const decades = (_, least, most) => [10 ** Math.floor(Math.log10(least || 1e5)), 10 ** Math.ceil(Math.log10((most || 1e7) * 1.01))];
    const fromZero = (_, least, most) => [0, most > 0 ? most * 1.1 : 1];
    const options = {
      ...this.#size(),
      legend: { show: false },
      cursor: { sync: { key: "moments" }, drag: { x: false, y: false } },
      scales: { x: { time: true }, y: isLog ? { distr: 3, range: decades } : { range: fromZero } },
      axes: [{ ...axis, size: 30, space: 62, incrs: STEPS, values: (_, splits, axis, space, step) => splits.map((at) => clock(at, step < 60)) }, { ...axis, size: 74, grid: { ...axis.grid, filter: (_, splits) => (isLog ? decadesOnly(splits) : splits) }, incrs: unit.startsWith("bytes") ? POWERS : undefined, values: (_, values) => values.map((value) => (value === null ? "" : written(value, unit))) }],
      series: [{}, ...this.#names.map((name, at) => ({ label: name, stroke: color(`--c${at}`), width: 1.8, points: { show: () => moments.length < 4 } }))],
      hooks: {
        drawClear: [(chart) => this.#backdrop?.draw(chart)],
        setCursor: [(chart) => this.#tell(chart.cursor.idx ?? moments.length - 1)],
      },
    };
    this.#chart = new uPlot(options, this.#data(), this.#plot);
  }

  // The values at a moment.
  #tell(at) {
    const items = this.#names.map((name, index) => {
      const value = element("b", { textContent: written(this.#history.lines.get(name)?.[at], this.#panel.unit) });
      return element("li", {}, swatch(`s${index}`), `${name} `, value);
    });
    this.#legend.replaceChildren(...items, ...(this.#backdrop?.legend() ?? []));
  }
}

// Latencies as `biolatency` counts them: a row for each power of two, a column for each moment.
export class Heat {
  #panel;
  #choice = element("select", { id: "purpose" });
  #canvas = element("canvas", { className: "heat" });
  #said = element("p", { className: "question" });
  #before = new Map();
  #columns = [];
  #purposes = [];

  constructor(panel) {
    this.#panel = panel;
    this.element = card(panel);
    const label = element("label", { htmlFor: this.#choice.id, textContent: "Purpose " });
    this.element.append(element("p", { className: "tools" }, label, this.#choice), element("div", { className: "plot" }, this.#canvas), this.#said);
    this.#canvas.setAttribute("role", "img");
    this.#choice.onchange = () => this.redraw();
    this.#canvas.onmousemove = (event) => this.#tell(event.offsetX, event.offsetY);
    this.#canvas.onmouseleave = () => this.#tell();
    new ResizeObserver(() => this.redraw()).observe(this.#canvas);
  }

  add(rows) {
    const now = buckets(rows);
    this.#columns.push(new Map([...now].map(([purpose, counts]) => [purpose, grown(counts, this.#before.get(purpose))])));
    if (this.#columns.length > POINTS) this.#columns.shift();
    this.#before = now;
    const purposes = [...now.keys()].sort();
    if (purposes.join() !== this.#purposes.join()) {
      const chosen = this.#choice.value || "user_read";
      this.#purposes = purposes;
      this.#choice.replaceChildren(...purposes.map((name) => element("option", { value: name, textContent: name, selected: name === chosen })));
    }
    this.redraw();
  }

  #counts() {
    return this.#columns.map((column) => column.get(this.#choice.value) ?? new Map());
  }

  #rows() {
    const seen = this.#counts().flatMap((counts) => [...counts.keys()]).map(Math.log2);
    const [least, most] = [Math.min(14, ...seen), Math.max(24, ...seen)];
    return { least, most, count: most - least + 1 };
  }

  redraw() {
    const canvas = this.#canvas;
    const scale = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    [canvas.width, canvas.height] = [width * scale, height * scale];
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    const { least, count } = this.#rows();
    const columns = this.#counts();
    const most = Math.max(2, ...columns.flatMap((counts) => [...counts.values()]));
    const place = this.#place(width, height, count);
    const heat = color("--heat");
    columns.forEach((counts, at) => {
      for (const [below, operations] of counts) {
        const row = Math.log2(below) - least;
        context.fillStyle = `rgb(${heat} / ${0.1 + 0.9 * (Math.log(1 + operations) / Math.log(1 + most)) ** 2})`;
        context.fillRect(place.x(at), place.y(row), place.wide + 0.5, place.tall - 1);
      }
    });
    this.#axis(context, place, { least, count, width, height });
    this.#tell();
  }

  #place(width, height, count) {
    const [left, bottom] = [68, 20];
    const wide = Math.max((width - left) / Math.max(this.#columns.length, 60), 1);
    const tall = (height - bottom) / count;
    const first = width - this.#columns.length * wide;
    return { left, bottom, wide, tall, first, x: (at) => first + at * wide, y: (row) => height - bottom - (row + 1) * tall };
  }

  #axis(context, place, { least, count, width, height }) {
    context.fillStyle = color("--soft");
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (let row = 0; row < count; row += count > 16 ? 3 : 2) {
      const y = place.y(row);
      if (y > 7) context.fillText(written(2 ** (row + least), "ns"), place.left - 6, y);
    }
    context.textBaseline = "bottom";
    if (moments.length) context.fillText(clock(moments.at(-1)), width, height);
    context.textAlign = "left";
    if (moments.length > 60) context.fillText(clock(moments[0]), place.first, height);
    context.strokeStyle = color("--grid");
    context.strokeRect(place.left, 0.5, width - place.left - 0.5, height - place.bottom);
  }

  // A bucket under the pointer, else the newest moment with operations.
  #tell(x, y) {
    const columns = this.#counts();
    let text = "No operation yet.";
    if (x !== undefined) {
      const [width, height] = [this.#canvas.clientWidth, this.#canvas.clientHeight];
      const { least, count } = this.#rows();
      const place = this.#place(width, height, count);
      const at = Math.floor((x - place.first) / place.wide);
      const below = 2 ** (Math.floor((height - place.bottom - y) / place.tall) + least);
      const found = columns[at]?.get(below) ?? 0;
      text = `${written(below / 2, "ns")} to ${written(below, "ns")}: ${written(found)} operations`;
    } else {
      const all = new Map();
      for (const counts of columns) for (const [below, count] of counts) all.set(below, (all.get(below) ?? 0) + count);
      if (all.size) text = `Since the page is open: ${written(sum(all))} operations, half of them below ${written(quantile(all, 0.5), "ns")}, 99 % below ${written(quantile(all, 0.99), "ns")}.`;
    }
    this.#said.textContent = text;
    this.#canvas.setAttribute("aria-label", `${this.#panel.title} for ${this.#choice.value}: a heat map. ${text}`);
  }
}
